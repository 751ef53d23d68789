"""The user's own module, and the network that an estimator trains."""

import numpy as np
import pytest
import torch
from torch import nn

from likewise.core.errors import InputError
from likewise.fair_metrics import ExpertSubspace
from likewise.models import as_model
from likewise.training import MLPBaselineClassifier, ProjectClassifier, SenSRClassifier, TrainingConfig

FEW = {"n_steps": 40, "batch_size": 50, "lr": 0.05, "random_state": 0}


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    return X, np.where(X[:, 1] > 0, "yes", "no")


class Own(nn.Module):
    def __init__(self, n_in=3, n_out=2):
        super().__init__()
        self.inner = nn.Linear(n_in, 8)
        self.drop = nn.Dropout(0.2)
        self.outer = nn.Linear(8, n_out)

    def forward(self, x):
        return self.outer(self.drop(torch.tanh(self.inner(x))))


def test_a_module_is_copied_and_left_alone(data):
    X, y = data
    own = Own()
    before = {name: tensor.clone() for name, tensor in own.state_dict().items()}
    model = MLPBaselineClassifier(module=own, **FEW).fit(X, y)
    assert model.score(X, y) > 0.9
    assert isinstance(model.module_, Own)
    assert all(torch.equal(before[name], tensor) for name, tensor in own.state_dict().items())
    assert model.module_.training is False
    again = MLPBaselineClassifier(module=own, **FEW).fit(X, y)
    assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()


@pytest.mark.parametrize("factory", [Own, lambda n_in, n_out: Own(n_in, n_out), lambda: Own(3, 2)])
def test_a_factory_is_seeded_and_the_global_generator_left_alone(data, factory):
    X, y = data
    torch.manual_seed(7)
    state = torch.get_rng_state()
    a, b = (MLPBaselineClassifier(module=factory, **FEW).fit(X, y) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), state)
    assert a.predict_proba(X).tobytes() == b.predict_proba(X).tobytes()
    other = MLPBaselineClassifier(module=factory, **{**FEW, "random_state": 1}).fit(X, y)
    assert other.predict_proba(X).tobytes() != a.predict_proba(X).tobytes()


@pytest.mark.parametrize(
    "own",
    [
        nn.Linear(3, 1),
        nn.Sequential(nn.Linear(3, 1), nn.Sigmoid()),
        nn.Sequential(nn.Linear(3, 2), nn.Softmax(dim=1)),
        nn.Sequential(nn.Linear(3, 2), nn.LogSoftmax(dim=1)),
        nn.Linear(3, 2).double(),
    ],
    ids=["one logit", "sigmoid", "softmax", "log-softmax", "double"],
)
def test_modules_may_end_in_other_ways(data, own):
    X, y = data
    model = MLPBaselineClassifier(module=own, **FEW).fit(X, y)
    assert model.score(X, y) > 0.9
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X) == "yes", model.decision_function(X) > 0)
    np.testing.assert_allclose(as_model(model).predict_proba(X), model.predict_proba(X), atol=1e-5)


def test_sensr_and_project_train_a_users_module(data):
    X, y = data
    for model in (
        SenSRClassifier(ExpertSubspace([0]), module=Own, blind_to=None, validation=None, **FEW),
        SenSRClassifier(
            ExpertSubspace([0]), blind_to=["auto", ExpertSubspace([2])], module=Own, validation=None, **FEW
        ),
        ProjectClassifier(ExpertSubspace([2]), module=Own, **FEW),
    ):
        model.fit(X, y)
        assert model.score(X, y) > 0.85
        if model.removed_ is not None:
            moved = X + np.array([[0.0, 0.0, 9.0]])
            np.testing.assert_allclose(model.predict_proba(moved), model.predict_proba(X), atol=1e-5)
            with pytest.raises(AttributeError, match="not a plain MLP"):
                _ = model.coefs_


def test_the_network_behind_a_projection_is_one_plain_mlp(data):
    X, y = data
    model = ProjectClassifier(ExpertSubspace([0]), hidden_layer_sizes=(6, 5), activation="tanh", **FEW).fit(
        X, y
    )
    assert [w.shape for w in model.coefs_] == [(3, 6), (6, 5), (5, 2)]
    hidden = X
    for i, (weight, bias) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
        hidden = hidden @ weight + bias
        hidden = np.tanh(hidden) if i < 2 else hidden
    np.testing.assert_allclose(hidden[:, 1] - hidden[:, 0], model.decision_function(X), rtol=1e-10)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"module": "mlp"}, "'module' must be a torch module, or a function"),
        ({"module": lambda: 3}, "a function that returns a torch module"),
        ({"hidden_layer_sizes": (0,)}, "'hidden_layer_sizes' must be a whole number"),
        ({"activation": "step"}, "'activation' must be one of"),
        ({"n_steps": 0}, "'steps' must be a whole number"),
        ({"lr": 0.0}, "'lr' must be"),
        ({"batch_size": 1}, "batch_size"),
        ({"training": TrainingConfig(sampling="other")}, "sampling"),
        ({"training": TrainingConfig(optimizer="lion")}, "'optimizer' must be one of"),
    ],
)
def test_bad_choices(data, choices, message):
    with pytest.raises(InputError, match=message):
        MLPBaselineClassifier(**{**FEW, **choices}).fit(*data)


def test_one_hidden_layer_may_be_a_number(data):
    assert MLPBaselineClassifier(hidden_layer_sizes=7, **FEW).fit(*data).module_[0].out_features == 7


def test_no_hidden_layer_is_a_linear_model_that_audits_know(data):
    model = MLPBaselineClassifier(hidden_layer_sizes=(), **FEW).fit(*data)
    coef, _intercept = as_model(model).linear_form()
    assert coef.shape == (2, 3)
