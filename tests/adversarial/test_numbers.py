"""The printed numbers against brute force of their own: shares, decisions, rounds, and whose answers they are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import likewise as lw
from likewise.core.errors import InputError
from likewise.models import DifferentiableModel
from likewise.models.sklearn_network import read_layers
from likewise.models.tree_ensemble import read_trees
from likewise.models.xgboost_trees import kept_rounds

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
y = (X[:, 0] + RNG.normal(size=300) > 0).astype(int)
OTHERS = RNG.normal(size=(150, 3))
OTHER_LABELS = (OTHERS[:, 0] + RNG.normal(size=150) > 0).astype(int)
PROBES = RNG.normal(size=(400, 3))


# Decisions are the model's own.


def catboost_of(threshold):
    from catboost import CatBoostClassifier

    model = CatBoostClassifier(iterations=10, verbose=False, allow_writing_files=False, random_seed=0)
    model.fit(X, y).set_probability_threshold(threshold)
    return model


def test_catboost_with_a_probability_threshold_decides_as_its_predict(tmp_path):
    model = catboost_of(0.7)
    model.save_model(str(tmp_path / "model.cbm"))
    own = model.predict(PROBES)
    # The class of the largest probability is another decision about some of these people.
    assert (own != model.predict_proba(PROBES).argmax(axis=1)).any()
    labels = (PROBES[:, 0] > 0).astype(int)
    for loss in ("cross_entropy", "zero_one", "hinge"):
        isolated = loss == "zero_one"
        file = lw.load_model(tmp_path / "model.cbm", loss=loss, trust=not isolated)
        for one in (lw.as_model(model, loss=loss), file):
            assert np.array_equal(one.predict(PROBES), own)
            if loss == "zero_one":
                assert np.array_equal(one.losses(PROBES, labels), own != labels)


def test_the_changed_share_of_catboost_goes_by_its_threshold():
    from catboost import CatBoostClassifier

    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(sex=(RNG.random(300) < 0.5).astype(int))
    label = (X[:, 0] + frame["sex"] + RNG.normal(size=300) > 0.5).astype(int)
    model = CatBoostClassifier(iterations=20, verbose=False, allow_writing_files=False, random_seed=0)
    model.fit(frame, label).set_probability_threshold(0.7)
    true = np.mean(model.predict(frame.assign(sex=0)) != model.predict(frame.assign(sex=1)))
    by_half = np.mean(
        (model.predict_proba(frame.assign(sex=0))[:, 1] > 0.5)
        != (model.predict_proba(frame.assign(sex=1))[:, 1] > 0.5)
    )
    assert true != by_half
    metric = lw.ExpertSubspace(["sex"]).fit(frame).metric_
    assert lw.audit(model, frame, label, metric=metric, eps=0.0).sensitive.changed == true


def test_trees_with_another_threshold_are_not_read_as_if_they_had_none():
    assert read_trees(catboost_of(0.5)) is not None
    with pytest.raises(InputError, match=r"decides at a probability of 0\.7"):
        read_trees(catboost_of(0.7))


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_wrappers_decide_by_their_own_predict(library, monkeypatch):
    """A wrapper whose `predict` says something else than its outputs, as one with a threshold does."""
    if library == "xgboost":
        from xgboost import XGBClassifier as Wrapper

        model = Wrapper(n_estimators=5).fit(X, y)
    else:
        from lightgbm import LGBMClassifier as Wrapper

        model = Wrapper(n_estimators=5, verbose=-1).fit(X, y)

    plain = Wrapper.predict

    def strict(self, rows, **options):
        if options:
            return plain(self, rows, **options)
        return (self.predict_proba(rows)[:, 1] > 0.7).astype(int)

    monkeypatch.setattr(Wrapper, "predict", strict)
    wanted = (model.predict_proba(PROBES)[:, 1] > 0.7).astype(int)
    labels = (PROBES[:, 0] > 0).astype(int)
    assert np.array_equal(lw.as_model(model).predict(PROBES), wanted)
    assert np.array_equal(lw.as_model(model, loss="zero_one").losses(PROBES, labels), wanted != labels)


# A subclass is asked, not read.


def upside_down(base):
    """A subclass that answers the opposite of its parent."""

    class Mine(base):
        def predict_proba(self, rows):
            return np.asarray(super().predict_proba(rows))[:, ::-1]

        def predict(self, rows):
            return np.asarray(self.classes_)[self.predict_proba(rows).argmax(axis=1)]

    return Mine


def bases():
    from catboost import CatBoostClassifier
    from lightgbm import LGBMClassifier
    from xgboost import XGBClassifier

    return {
        "xgboost": (XGBClassifier, {"n_estimators": 5}),
        "lightgbm": (LGBMClassifier, {"n_estimators": 5, "verbose": -1}),
        "catboost": (CatBoostClassifier, {"iterations": 5, "verbose": False, "allow_writing_files": False}),
        "linear": (LogisticRegression, {}),
        "network": (MLPClassifier, {"hidden_layer_sizes": (4,), "max_iter": 2000, "random_state": 0}),
        "own": (lw.MLPBaselineClassifier, {"n_steps": 20, "random_state": 0}),
    }


@pytest.mark.parametrize("kind", list(bases()))
def test_a_subclass_is_audited_by_its_own_answers(kind):
    base, choices = bases()[kind]
    model = upside_down(base)(**choices).fit(X, y)
    parent = base.predict_proba(model, PROBES)
    adapter = lw.as_model(model)
    np.testing.assert_allclose(adapter.predict_proba(PROBES), np.asarray(parent)[:, ::-1])
    assert np.array_equal(adapter.predict(PROBES), model.predict(PROBES))
    wrong = lw.as_model(model, loss="zero_one").losses(PROBES, model.predict(PROBES))
    assert not wrong.any()


@pytest.mark.parametrize("kind", ["xgboost", "catboost"])
def test_the_trees_of_a_subclass_are_not_read(kind):
    base, choices = bases()[kind]
    with pytest.raises(InputError, match="may answer in another way"):
        read_trees(lw.as_model(upside_down(base)(**choices).fit(X, y)))


def test_weights_are_read_from_exact_types_only():
    class MyLogistic(LogisticRegression):
        pass

    class MyScaler(StandardScaler):
        def transform(self, rows, copy=None):
            return -super().transform(rows, copy)

    class Duck:
        """Has what a linear model has, and what a selector has."""

        coef_, intercept_, classes_ = np.ones((1, 3)), np.zeros(1), np.array([0, 1])

        def get_support(self):
            return np.array([True, True, True])

        def fit(self, rows, labels=None):
            return self

        def transform(self, rows):
            return np.asarray(rows) ** 2

    assert read_layers(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)) is not None
    assert read_layers(MyLogistic().fit(X, y)) is None
    assert read_layers(make_pipeline(MyScaler(), LogisticRegression()).fit(X, y)) is None
    assert read_layers(Duck()) is None
    assert read_layers(make_pipeline(Duck(), LogisticRegression()).fit(X, y)) is None
    assert isinstance(lw.as_model(LogisticRegression().fit(X, y)), DifferentiableModel)
    assert not isinstance(lw.as_model(MyLogistic().fit(X, y)), DifferentiableModel)


# Rounds after early stopping.


def stopped(how):
    from xgboost import XGBClassifier
    from xgboost.callback import EarlyStopping

    choices = {
        "rounds": {"early_stopping_rounds": 5},
        "callback": {"callbacks": [EarlyStopping(rounds=5)]},
        "save_best": {"callbacks": [EarlyStopping(rounds=5, save_best=True)]},
        "none": {},
    }[how]
    model = XGBClassifier(n_estimators=40, learning_rate=0.9, **choices)
    return model.fit(X, y, eval_set=[(OTHERS, OTHER_LABELS)], verbose=False)


@pytest.mark.parametrize("ending", ["json", "ubj"])
@pytest.mark.parametrize("how", ["rounds", "callback", "save_best", "none"])
def test_xgboost_stopped_early_answers_as_what_was_saved(how, ending, tmp_path):
    import xgboost

    model = stopped(how)
    matrix = xgboost.DMatrix(PROBES)
    every = model.get_booster().predict(matrix, output_margin=True)
    own = model.predict(PROBES, output_margin=True)
    # Unless the later trees were thrown away, they would change the answers.
    assert np.allclose(every, own) == (how in ("save_best", "none"))
    by_wrapper, by_booster = tmp_path / f"wrapper.{ending}", tmp_path / f"booster.{ending}"
    model.save_model(by_wrapper)
    model.get_booster().save_model(by_booster)
    again = xgboost.XGBClassifier()
    again.load_model(by_wrapper)
    np.testing.assert_allclose(again.predict(PROBES, output_margin=True), own)
    cases = [
        (lw.as_model(model), own),
        (lw.as_model(again), own),
        (lw.as_model(model.get_booster()), every),
        (lw.load_model(by_wrapper, trust=True), own),
        (lw.load_model(by_booster, trust=True), every),
    ]
    if how == "rounds" and ending == "json":
        cases += [(lw.load_model(by_wrapper), own), (lw.load_model(by_booster), every)]
    for adapter, margin in cases:
        outputs = adapter.outputs(PROBES)
        np.testing.assert_allclose(outputs[:, 1] - outputs[:, 0], margin, atol=1e-6)
        np.testing.assert_allclose(read_trees(adapter).outputs(PROBES)[:, 0], margin, atol=1e-5)
        assert np.array_equal(adapter.predict(PROBES), margin > 0)


def test_kept_rounds_are_those_of_predict():
    for how in ("rounds", "callback", "save_best"):
        model = stopped(how)
        assert kept_rounds(model) == model.best_iteration + 1
        assert kept_rounds(model.get_booster()) is None
    assert kept_rounds(stopped("none")) is None


def test_a_consensus_of_a_stopped_model_is_the_same_after_saving(tmp_path):
    model = stopped("rounds")
    rows = pd.DataFrame(PROBES, columns=["a", "b", "c"])
    people = pd.DataFrame(X, columns=["a", "b", "c"]).assign(c=(X[:, 2] > 0).astype(float))
    model.fit(
        people, y, eval_set=[(pd.DataFrame(OTHERS, columns=["a", "b", "c"]), OTHER_LABELS)], verbose=False
    )
    assert model.best_iteration + 1 < len(model.get_booster().get_dump())
    fair = lw.TwinConsensus(model, edits={"c": [0.0, 1.0]}).fit(people, y)
    fair.save(tmp_path / "fair.json")
    again = lw.load_model(tmp_path / "fair.json", trust=True)
    np.testing.assert_allclose(again.predict_proba(rows), fair.predict_proba(rows))


@pytest.mark.parametrize("best", [True, False])
def test_catboost_and_lightgbm_stopped_early(best, tmp_path):
    import lightgbm
    from catboost import CatBoostClassifier

    cat = CatBoostClassifier(
        iterations=40, learning_rate=0.9, verbose=False, allow_writing_files=False, use_best_model=best
    ).fit(X, y, eval_set=(OTHERS, OTHER_LABELS))
    assert (cat.tree_count_ < 40) == best
    cat.save_model(str(tmp_path / "cat.cbm"))
    data = lightgbm.Dataset(X, y, free_raw_data=False)
    light = lightgbm.train(
        {"objective": "binary", "verbose": -1, "learning_rate": 0.9},
        data,
        40,
        valid_sets=[lightgbm.Dataset(OTHERS, OTHER_LABELS, reference=data)],
        callbacks=[lightgbm.early_stopping(5, verbose=False)] if best else [],
    )
    light.save_model(tmp_path / "light.txt")
    light.save_model(tmp_path / "all.txt", num_iteration=-1)
    every = lightgbm.Booster(model_file=tmp_path / "all.txt")
    raw = cat.predict(PROBES, prediction_type="RawFormulaVal")
    for adapter, scores in [
        (lw.as_model(cat), raw),
        (lw.load_model(tmp_path / "cat.cbm", trust=True), raw),
        (lw.as_model(light), light.predict(PROBES, raw_score=True)),
        (lw.load_model(tmp_path / "light.txt", trust=True), light.predict(PROBES, raw_score=True)),
        (lw.load_model(tmp_path / "all.txt", trust=True), every.predict(PROBES, raw_score=True)),
    ]:
        np.testing.assert_allclose(read_trees(adapter).outputs(PROBES)[:, 0], scores, atol=1e-9)
        np.testing.assert_allclose(adapter.predict_proba(PROBES)[:, 1], 1 / (1 + np.exp(-scores)), atol=1e-9)
