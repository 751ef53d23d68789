"""Every estimator through scikit-learn's own checks, and through what users do with classifiers."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from likewise import training
from likewise.auditing.search.gradient.search import GradientSearch
from likewise.core.errors import FormatError, InputError
from likewise.fair_metrics import ExpertSubspace
from likewise.models import DifferentiableModel, as_model
from likewise.training import (
    AdversarialDebiasingClassifier,
    CoCLClassifier,
    MLPBaselineClassifier,
    ProjectClassifier,
    SenSeIClassifier,
    SenSRClassifier,
    WassersteinRobustClassifier,
)

# Light: a small network and few, larger steps.
LIGHT = {"hidden_layer_sizes": (16,), "n_steps": 20, "batch_size": 64, "lr": 0.08, "random_state": 0}
ESTIMATORS = [
    MLPBaselineClassifier(**LIGHT),
    SenSRClassifier(ExpertSubspace([0]), validation=None, **LIGHT),
    SenSeIClassifier(ExpertSubspace([0]), rho=0.1, validation=None, **LIGHT),
    ProjectClassifier(ExpertSubspace([0]), **LIGHT),
    WassersteinRobustClassifier(
        eps=0.01, search=GradientSearch(subspace_steps=0, full_steps=1, probes=0), **LIGHT
    ),
    AdversarialDebiasingClassifier([0], strength=0.01, **LIGHT),
    CoCLClassifier([0], strength=0.1, **LIGHT),
]
NEED_TRAINING = {"check_classifiers_train", "check_classifiers_classes"}
each = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)


def exemptions(estimator):
    drawn = (
        "batches are drawn at random, so the rows of a repeated table come in another order; "
        "test_a_weight_of_two_is_two_of_a_row has the same check with the same draws"
    )
    weights = {"check_sample_weight_equivalence_on_dense_data": drawn}
    if isinstance(estimator, (ProjectClassifier, SenSRClassifier, SenSeIClassifier)):
        reason = (
            "the check has two columns and wants an accuracy of .83, but the metric says that one of the two shall "
            "not matter; test_what_may_matter_is_learned asks for it where the other columns are enough"
        )
        return {**weights, "check_classifiers_train": reason}
    return weights


# Where nothing that matters is hidden from it, twenty steps teach a network nothing that a search could make worse.
@pytest.mark.filterwarnings("ignore:SenSeI. the search found nothing")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=exemptions)
def test_scikit_learn_contract(estimator, check):
    # Most checks ask what is accepted, kept and returned; few whether anything was learned, or differs by weights.
    check(estimator if check.func.__name__ in NEED_TRAINING else clone(estimator).set_params(n_steps=3))


def test_every_estimator_is_tried():
    public = {name for name in training.__all__ if name.endswith("Classifier")}
    # Boosting is no network: test_boosting_sklearn.py.
    assert {type(e).__name__ for e in ESTIMATORS} == public - {"FairBoostingClassifier"}


@pytest.fixture(scope="module")
def data():
    """Three classes that columns 1 and 2 tell apart, and a column 0 that leans on the class."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=150)
    centres = np.array([[-1.0, -2.0, -1.5, 0.0], [0.0, 2.0, -1.5, 0.0], [1.0, 0.0, 2.0, 0.0]])
    return centres[y] + rng.normal(size=(150, 4)) * 0.7, np.array(["hire", "meet", "no"])[y]


@each
def test_what_may_matter_is_learned(estimator, data):
    X, y = data
    model = clone(estimator).set_params(n_steps=60).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.predict_proba(X).shape == (150, 3)
    assert model.decision_function(X).shape == (150, 3)
    assert model.classes_.tolist() == ["hire", "meet", "no"]
    assert model.status_ == "finished"
    assert model.n_iter_ == 60


@each
def test_same_seed_same_bytes_and_other_seed_other_bytes(estimator, data):
    X, y = data
    estimator = clone(estimator).set_params(n_steps=5)
    a, b = (clone(estimator).fit(X, y) for _ in range(2))
    other = clone(estimator).set_params(random_state=1).fit(X, y)
    for name, tensor in a.module_.state_dict().items():
        assert tensor.numpy().tobytes() == b.module_.state_dict()[name].numpy().tobytes()
    assert any(
        tensor.numpy().tobytes() != other.module_.state_dict()[name].numpy().tobytes()
        for name, tensor in a.module_.state_dict().items()
    )


@each
def test_files_predict_the_same_bytes(estimator, data, tmp_path):
    X, y = data
    model = clone(estimator).set_params(n_steps=5).fit(X, y)
    model.save(tmp_path / "model.safetensors")
    loaded = type(model).load(tmp_path / "model.safetensors")
    assert loaded.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.n_features_in_ == 4
    assert str(loaded) == str(model)
    loaded.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "model.safetensors").read_bytes()
    refitted = loaded.fit(X, y)
    assert refitted.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()


@each
def test_partial_fit_goes_on_after_a_file_as_without_one(estimator, data, tmp_path):
    X, y = data
    model = clone(estimator).set_params(n_steps=5)
    for _ in range(3):
        model.partial_fit(X[:100], y[:100], classes=["hire", "meet", "no"])
    model.save(tmp_path / "model.safetensors", training=True)
    loaded = type(model).load(tmp_path / "model.safetensors")
    pickled = pickle.loads(pickle.dumps(model))
    assert len(loaded.history_) == len(model.history_)
    for part in (model, loaded, pickled):
        part.partial_fit(X[100:], y[100:])
    assert loaded.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert pickled.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()


@each
def test_file_is_refused_when_damaged_newer_or_another(estimator, data, tmp_path):
    X, y = data
    path = tmp_path / "model.safetensors"
    model = clone(estimator).set_params(n_steps=2).fit(X, y)
    model.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    with pytest.raises(FormatError, match="damaged"):
        type(model).load(path)
    path.write_bytes(whole.replace(b'\\"schema\\": 1', b'\\"schema\\": 9'))
    with pytest.raises(FormatError, match="newer version"):
        type(model).load(path)
    path.write_bytes(whole.replace(b"classes_", b"klasses_"))
    with pytest.raises(FormatError, match="damaged"):
        type(model).load(path)
    path.write_bytes(whole)
    others = [type(e) for e in ESTIMATORS if type(e) is not type(model)]
    with pytest.raises(FormatError, match=f"holds a {type(model).__name__}, not a {others[0].__name__}"):
        others[0].load(path)
    assert type(training.load(path)) is type(model)
    with safe_open(path, framework="numpy") as file:
        assert json.loads(file.metadata()["likewise"])["schema"] == 1


@each
def test_works_in_pipelines_searches_and_calibration(estimator, data):
    X, y = data
    pipeline = make_pipeline(StandardScaler(), clone(estimator))
    assert cross_val_score(pipeline, X, y, cv=2).mean() > 0.6
    # It learns there; what follows is about being called.
    estimator = clone(estimator).set_params(n_steps=3)
    pipeline = make_pipeline(StandardScaler(), clone(estimator))
    name = pipeline.steps[-1][0]
    search = GridSearchCV(pipeline, {f"{name}__lr": [0.01, 0.08]}, cv=2).fit(X, y)
    assert search.best_params_[f"{name}__lr"] in (0.01, 0.08)
    calibrated = CalibratedClassifierCV(clone(estimator), cv=2).fit(X, y)
    assert calibrated.predict_proba(X[:5]).shape == (5, 3)


@each
def test_models_are_differentiable_alone_and_behind_a_scaler(estimator, data):
    X, y = data
    estimator = clone(estimator).set_params(n_steps=5)
    model = clone(estimator).fit(X, y)
    adapter = as_model(model)
    assert isinstance(adapter, DifferentiableModel)
    np.testing.assert_allclose(adapter.predict_proba(X), model.predict_proba(X), atol=1e-5)
    assert adapter.predict(X).tolist() == model.predict(X).tolist()
    pipeline = make_pipeline(StandardScaler(), clone(estimator)).fit(X, y)
    adapter = as_model(pipeline)
    assert isinstance(adapter, DifferentiableModel)
    np.testing.assert_allclose(adapter.predict_proba(X), pipeline.predict_proba(X), atol=1e-5)
    oracle = adapter.gradient_oracle()
    import torch

    x = torch.tensor(X[:4], dtype=torch.float64)
    loss, gradient = oracle(x, torch.tensor([0, 1, 2, 0]))
    step = 1e-6 * torch.eye(4, dtype=torch.float64)
    for j in range(4):
        slope = (oracle.loss(x + step[j], torch.tensor([0, 1, 2, 0])) - loss) / 1e-6
        np.testing.assert_allclose(slope, gradient[:, j], atol=1e-3)


@each
def test_raw_tables_with_categories(estimator):
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "skill": rng.normal(50, 10, 120),
            "job": rng.choice(["clerk", "cook", "nurse"], 120),
            "sex": rng.choice(["F", "M"], 120),
        }
    )
    y = (people["skill"] + 5 * (people["job"] == "nurse") > 52).map({True: "yes", False: "no"})
    model = clone(estimator).set_params(n_steps=60)
    if hasattr(model, "metric"):
        model.set_params(metric=ExpertSubspace(["sex"]))
    if hasattr(model, "attributes"):
        model.set_params(attributes=["sex"])
    model.fit(people, y)
    assert model.score(people, y) > 0.85
    assert list(model.feature_names_in_) == ["skill", "job", "sex"]
    assert model.n_features_in_ == 3
    assert model.encoder_.n_features == 5
    encoded = model.encoder_.encode(people)
    np.testing.assert_array_equal(model.predict_proba(encoded), model.predict_proba(people))
    np.testing.assert_array_equal(model.predict_proba(encoded.to_numpy()), model.predict_proba(people))
    np.testing.assert_array_equal(model.predict(people[["sex", "skill", "job"]]), model.predict(people))
    np.testing.assert_allclose(as_model(model).predict_proba(people), model.predict_proba(people), atol=1e-5)
    with pytest.raises(InputError, match="a category never seen"):
        model.predict(people.assign(job="pilot"))


@each
def test_bad_input_is_refused_before_training(estimator, data, monkeypatch):
    X, y = data

    def never(*args, **kwargs):
        raise AssertionError("training started")

    monkeypatch.setattr("likewise.training.estimators.network_classifier.train", never)
    with pytest.raises(InputError, match="one class only"):
        clone(estimator).fit(X, np.full(150, "hire"))
    with pytest.raises(InputError, match="lengths differ: X has 150 rows, sensitive_features has 3"):
        clone(estimator).fit(X, y, sensitive_features=[0, 1, 0])
    with pytest.raises(ValueError, match="NaN"):
        clone(estimator).fit(np.where(np.arange(150)[:, None] == 7, np.nan, X), y)
    with pytest.raises(InputError, match="gives 2 scores per row, 'y' has 3 classes"):
        clone(estimator).set_params(module=lambda n, k: __import__("torch").nn.Linear(n, 2)).fit(X, y)
    with pytest.raises(InputError, match="cannot be applied to rows of 4 columns"):
        clone(estimator).set_params(module=__import__("torch").nn.Linear(9, 3)).fit(X, y)
    if "eps" in estimator.get_params():
        with pytest.raises(InputError, match="'eps' must be a finite number >= 0, got -1"):
            clone(estimator).set_params(eps=-1).fit(X, y)
    if "metric" in estimator.get_params():
        other = ExpertSubspace([0]).fit(np.ones((2, 7))).metric_
        with pytest.raises(InputError, match="the metric is of 7 columns, the encoded rows have 4"):
            clone(estimator).set_params(metric=other).fit(X, y)


@each
def test_sensitive_features_are_routed_through_a_search(estimator, data):
    X, y = data
    sensitive = pd.DataFrame({"group": np.where(X[:, 0] > 0, "a", "b")})
    model = clone(estimator).set_params(n_steps=5)
    if "metric" in model.get_params():
        model.set_params(metric=None)
    if "attributes" in model.get_params():
        model.set_params(attributes=None)
    if "group_penalty" in model.get_params():
        model.set_params(group_penalty=0.5)
    with config_context(enable_metadata_routing=True):
        model.set_fit_request(sensitive_features=True)
        tuned = "eps" if "eps" in model.get_params() else "lr"
        search = GridSearchCV(model, {tuned: [1e-3, 1e-2]}, cv=2, error_score="raise")
        search.fit(X, y, sensitive_features=sensitive)
    best = search.best_estimator_
    if "metric" in model.get_params():
        assert best.metric_.subspace.dim == 1
    if "attributes" in model.get_params():
        kept = best.attributes_.values if hasattr(best, "attributes_") else best.proxy_.categories
        assert kept == (("a", "b"),)
