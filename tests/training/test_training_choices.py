"""Held-out rows, checkpoints, interruptions, going on: what the loop offers reaches the estimators."""

import numpy as np
import pytest
import torch

from likewise.core.errors import InputError
from likewise.fair_metrics import ExpertSubspace
from likewise.training import (
    AdversarialDebiasingClassifier,
    MLPBaselineClassifier,
    SenSRClassifier,
    TrainingConfig,
    TrainingWarning,
)

FEW = {"n_steps": 40, "batch_size": 50, "lr": 0.05, "random_state": 0, "hidden_layer_sizes": (8,)}


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    return X, (X[:, 1] + rng.normal(size=200) > 0).astype(int)


def weights(model):
    return [tensor.numpy().tobytes() for tensor in model.module_.state_dict().values()]


def test_validation_keeps_the_best_weights_and_patience_stops(data):
    X, y = data
    choices = {**FEW, "n_steps": 3000, "hidden_layer_sizes": (50,)}
    model = MLPBaselineClassifier(validation=0.3, training=TrainingConfig(patience=2), **choices).fit(X, y)
    assert model.status_ == "stopped_early"
    assert model.n_iter_ < 3000
    held = model.history_["validation"]
    assert np.isfinite(held).sum() >= 3
    with pytest.raises(InputError, match=r"'patience' must be None if no rows are held out.*validation=0.2"):
        MLPBaselineClassifier(training=TrainingConfig(patience=2), **FEW).fit(X, y)
    with pytest.raises(InputError, match="'validation' must be a finite number > 0 and < 1"):
        MLPBaselineClassifier(validation=1.5, **FEW).fit(X, y)


def test_an_interrupted_run_goes_on_to_the_same_bytes(data, tmp_path, monkeypatch):
    X, y = data
    make = lambda **c: SenSRClassifier(  # noqa: E731
        ExpertSubspace([0]), blind_to=["auto", ExpertSubspace([2])], **{**FEW, "validation": None, **c}
    )
    whole = make().fit(X, y)
    path = tmp_path / "run.safetensors"
    make(n_steps=17, training=TrainingConfig(checkpoint=path)).fit(X, y)
    resumed = make(training=TrainingConfig(checkpoint=path, resume=True)).fit(X, y)
    assert weights(resumed) == weights(whole)
    assert resumed.n_iter_ == 40
    with pytest.raises(InputError, match="'random_state' must be an int if resume=True"):
        make(training=TrainingConfig(checkpoint=path, resume=True), random_state=None).fit(X, y)
    with pytest.raises(InputError, match="of a run with another"):
        make(training=TrainingConfig(checkpoint=path, resume=True), lr=0.01).fit(X, y)


def test_ctrl_c_keeps_what_was_reached_and_says_so(data, monkeypatch):
    X, y = data
    from likewise.training.objective import ERM

    plain, calls = ERM.step, []

    def step(self, net, batch, state):
        calls.append(1)
        if len(calls) == 11:
            raise KeyboardInterrupt
        return plain(self, net, batch, state)

    monkeypatch.setattr(ERM, "step", step)
    with pytest.warns(TrainingWarning, match="interrupted by the keyboard after 10 steps"):
        model = MLPBaselineClassifier(**FEW).fit(X, y)
    assert model.status_ == "interrupted"
    assert np.isfinite(model.predict_proba(X)).all()


def test_a_loss_that_is_not_finite_is_said(data):
    X, y = data
    huge = lambda parameters, lr: torch.optim.SGD(parameters, lr=1e30)  # noqa: E731
    with pytest.warns(TrainingWarning, match="not finite at step"):
        model = MLPBaselineClassifier(**{**FEW, "training": TrainingConfig(optimizer=huge)}).fit(X, y)
    assert model.status_ == "diverged"
    assert np.isfinite(model.predict_proba(X)).all()


def test_findings_are_kept_and_warned_about(data):
    X, y = data
    with pytest.warns(TrainingWarning, match="the loss did not fall"):
        model = MLPBaselineClassifier(**{**FEW, "lr": 1e-9, "n_steps": 60}).fit(X, y)
    assert [finding.code for finding in model.findings_] == ["loss_flat"]


def test_global_state_is_left_alone(data):
    X, y = data
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)
    threads, state, legacy = torch.get_num_threads(), torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    MLPBaselineClassifier(**{**FEW, "random_state": None, "training": TrainingConfig(threads=2)}).fit(
        X, y
    ).predict(X)
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)
    assert (np.random.get_state()[1] == legacy).all()  # noqa: NPY002


def test_without_a_seed_runs_differ_and_generators_are_taken(data):
    X, y = data
    a, b = (MLPBaselineClassifier(**{**FEW, "random_state": None}).fit(X, y) for _ in range(2))
    assert weights(a) != weights(b)
    a, b = (
        MLPBaselineClassifier(**{**FEW, "random_state": np.random.default_rng(3)}).fit(X, y) for _ in range(2)
    )
    assert weights(a) == weights(b)


def test_partial_fit_begins_like_fit_and_goes_on(data):
    X, y = data
    model = MLPBaselineClassifier(**FEW)
    with pytest.raises(InputError, match="'classes' must be all class labels in the first call"):
        model.partial_fit(X, y)
    model.partial_fit(X[:60], y[:60], classes=[0, 1])
    assert model.n_iter_ == 2
    before = model.score(X, y)
    for _ in range(30):
        model.partial_fit(X, y)
    assert model.n_iter_ == 122
    assert model.score(X, y) > max(before, 0.7)
    ones = y == 1
    model.partial_fit(X[ones], y[ones], steps=3)
    assert model.n_iter_ == 125
    with pytest.raises(InputError, match=r"labels that are not among the classes \[0, 1\]: 7"):
        model.partial_fit(X, np.full(200, 7))
    with pytest.raises(InputError, match="those of the first call"):
        model.partial_fit(X, y, classes=[0, 1, 2])


def test_partial_fit_keeps_the_metric_and_the_adversary(data):
    X, y = data
    model = SenSRClassifier(**FEW)
    model.partial_fit(X, y, classes=[0, 1], sensitive_features=X[:, 0] > 0)
    metric = model.metric_
    model.partial_fit(X[:50], y[:50])
    assert model.metric_ is metric
    adversary = AdversarialDebiasingClassifier(**FEW)
    sex = np.where(X[:, 0] > 0, "F", "M")
    adversary.partial_fit(X, y, classes=[0, 1], sensitive_features=sex)
    adversary.partial_fit(X[:20], y[:20], sensitive_features=sex[:20])
    with pytest.raises(InputError, match="has the value 'X', which the first rows did not have"):
        adversary.partial_fit(X[:20], y[:20], sensitive_features=np.full(20, "X"))
