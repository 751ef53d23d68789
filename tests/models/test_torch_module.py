"""A torch module is left exactly as it came, whatever happens inside."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from likewise.core.errors import InputError, ModelError
from likewise.models import AutogradOracle, MLPOracle, as_model, make_oracle

ROWS = np.random.default_rng(0).normal(size=(30, 4))
LABELS = np.random.default_rng(1).integers(0, 2, 30)


class Restless(nn.Module):
    """Draws random numbers, counts its calls, renormalises a weight, and may raise half way."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 2)
        self.drop = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(2)
        self.fails = fails
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        self.linear.weight.data.mul_(1.01)
        out = self.norm(self.drop(self.linear(x))) + 0 * torch.rand(len(x), 1)
        if self.fails:
            raise RuntimeError("half way")
        return out


def _state(module: nn.Module) -> dict[str, object]:
    return {
        "modes": [part.training for part in module.modules()],
        "bytes": [tensor.detach().numpy().tobytes() for tensor in (*module.parameters(), *module.buffers())],
        "requires_grad": [parameter.requires_grad for parameter in module.parameters()],
        "grads": [None if p.grad is None else p.grad.numpy().tobytes() for p in module.parameters()],
        "random": torch.get_rng_state().numpy().tobytes(),
        "names": sorted(module.state_dict()),
        "grad mode": torch.is_grad_enabled(),
        "threads": torch.get_num_threads(),
    }


def _prepared(module: nn.Module) -> nn.Module:
    """A mixture of modes, frozen parameters and gradients that were there before."""
    module.train()
    parts = list(module.modules())
    parts[-1].eval()
    for i, parameter in enumerate(module.parameters()):
        parameter.requires_grad_(i % 2 == 0)
        if i == 0:
            parameter.grad = torch.full_like(parameter, 3.0)
    return module


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("action", ["losses", "oracle", "oracle loss", "folded"])
def test_a_restless_module_is_left_as_it_came(action, fails):
    module = _prepared(Restless(fails=fails))
    x, y = torch.tensor(ROWS, dtype=torch.float32), torch.tensor(LABELS)
    oracle = make_oracle(module)
    assert isinstance(oracle, AutogradOracle)
    actions = {
        "losses": lambda: as_model(module).losses(ROWS, LABELS),
        "oracle": lambda: oracle(x, y),
        "oracle loss": lambda: oracle.loss(x, y),
        "folded": lambda: oracle.fold(x, np.eye(4)[:, :1])(torch.zeros(30, 1), y),
    }
    before = _state(module)
    for _ in range(3):
        if fails:
            with pytest.raises((ModelError, RuntimeError), match="half way"):
                actions[action]()
        else:
            actions[action]()
        assert _state(module) == before


def test_a_plain_module_is_left_as_it_came():
    module = _prepared(
        nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Dropout(0.3), nn.Linear(3, 2))
    )
    before = _state(module)
    x, y = torch.tensor(ROWS, dtype=torch.float32), torch.tensor(LABELS)
    model = as_model(module)
    model.losses(ROWS, LABELS)
    for oracle in (make_oracle(module), make_oracle(module, fast=False), model.gradient_oracle()):
        oracle(x, y)
    assert isinstance(make_oracle(module), MLPOracle)
    assert _state(module) == before


def test_a_graph_of_the_caller_stays_valid():
    module = Restless()
    x, y = torch.tensor(ROWS, dtype=torch.float32, requires_grad=True), torch.tensor(LABELS)
    loss = nn.functional.cross_entropy(module.linear(x), y)
    as_model(module).losses(ROWS, LABELS)
    loss.backward()
    assert module.linear.weight.grad is not None


def test_rows_of_the_caller_are_not_written_to():
    module = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 2))
    rows, x = ROWS.astype(np.float32), torch.tensor(ROWS, dtype=torch.float32)
    before, x_before = rows.copy(), x.clone()
    as_model(module).losses(rows, LABELS)
    make_oracle(module)(x, torch.tensor(LABELS))
    make_oracle(module).loss(x, torch.tensor(LABELS))
    assert np.array_equal(rows, before)
    assert torch.equal(x, x_before)
    assert not x.requires_grad


def test_dropout_is_off_and_batch_norm_uses_what_it_learned():
    module = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout(0.9), nn.Linear(3, 2)).train()
    model = as_model(module)
    one = model.outputs(ROWS[:1])
    np.testing.assert_allclose(one, model.outputs(ROWS)[:1], atol=1e-6)


def test_a_batch_norm_without_statistics_is_refused():
    module = nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2, track_running_stats=False))
    with pytest.raises(InputError, match="running statistics"):
        as_model(module)
    with pytest.raises(InputError, match="running statistics"):
        make_oracle(module)


def test_nan_weights_are_an_error_and_never_a_value():
    module = nn.Linear(4, 2)
    with torch.no_grad():
        module.weight.fill_(torch.nan)
    for loss in ("cross_entropy", "hinge", "zero_one"):
        with pytest.raises(ModelError, match="not finite for 30 of 30 rows, first at row 0"):
            as_model(module, loss=loss).losses(ROWS, LABELS)


class Returns(nn.Module):
    def __init__(self, answer) -> None:
        super().__init__()
        self.answer = answer

    def forward(self, x):
        return self.answer(x)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda x: (x[:, :2], x), "returned tuple"),
        (lambda x: x[1:, :2], "shape"),
        (lambda x: x.mean(), "shape"),
        (lambda x: x.reshape(-1, 2, 2), "shape"),
        (lambda x: x[:, :3], "3 columns for 2 classes"),
        (lambda x: x[:, :2].softmax(dim=1), "output='probabilities'"),
    ],
)
def test_wrong_answers_are_errors(answer, message):
    with pytest.raises(ModelError, match=message):
        as_model(Returns(answer), classes=["no", "yes"]).outputs(ROWS)


@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=1)),
        nn.Sequential(nn.Linear(4, 1), nn.Sigmoid()),
        nn.Sequential(nn.Linear(4, 3), nn.LogSoftmax(dim=1)),
    ],
)
def test_probabilities_at_the_end_are_seen(module):
    model, bare = as_model(module), as_model(module[0])
    np.testing.assert_allclose(model.loss_table(ROWS), bare.loss_table(ROWS), atol=1e-5)
    own = as_model(
        Returns(module), output="logits" if isinstance(module[1], nn.LogSoftmax) else "probabilities"
    )
    np.testing.assert_allclose(own.loss_table(ROWS), bare.loss_table(ROWS), atol=1e-5)
    x, y = torch.tensor(ROWS, dtype=torch.float32), torch.tensor(LABELS)
    for other in (model, own):
        torch.testing.assert_close(other.gradient_oracle()(x, y), bare.gradient_oracle()(x, y))
    form, expected = model.linear_form(), bare.linear_form()
    np.testing.assert_allclose(form[0], expected[0])


def test_a_sigmoid_over_several_outputs_is_refused():
    with pytest.raises(InputError, match="Sigmoid over 3 outputs"):
        as_model(nn.Sequential(nn.Linear(4, 3), nn.Sigmoid()))


def test_logits_that_happen_to_look_like_probabilities_can_be_insisted_on():
    module = Returns(lambda x: torch.stack([torch.full((len(x),), 0.3), torch.full((len(x),), 0.7)], dim=1))
    table = as_model(module, output="logits").loss_table(ROWS)
    np.testing.assert_allclose(table[0], -np.log(np.exp([0.3, 0.7]) / np.exp([0.3, 0.7]).sum()), rtol=1e-6)


def test_classes_of_an_unknown_module():
    model = as_model(Returns(lambda x: x[:, :3]))
    with pytest.raises(ModelError, match="not known before"):
        _ = model.classes_
    assert model.targets(LABELS).tolist() == LABELS.tolist()
    with pytest.raises(InputError, match="classes="):
        model.targets(["no", "yes"])
    model.outputs(ROWS)
    assert model.classes_.tolist() == [0, 1, 2]


def test_linear_form():
    linear = nn.Linear(4, 3)
    coef, intercept = as_model(linear).linear_form()
    assert coef.dtype == np.float64
    np.testing.assert_allclose(ROWS @ coef.T + intercept, as_model(linear).outputs(ROWS), atol=1e-6)
    chain = nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 1))
    coef, intercept = as_model(chain).linear_form()
    assert coef.shape == (2, 4)
    np.testing.assert_allclose(ROWS @ coef.T + intercept, as_model(chain).outputs(ROWS), atol=1e-6)
    assert as_model(nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2))).linear_form() is None
    assert as_model(Returns(lambda x: x)).linear_form() is None


def test_a_table_for_a_module_is_refused():
    with pytest.raises(InputError, match="takes_frame"):
        as_model(nn.Linear(4, 2), takes_frame=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_asked_and_not_read(dtype):
    from likewise.models.layers import read_relu_network

    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).to(dtype)
    rows = np.random.default_rng(0).normal(size=(20, 3))
    with torch.no_grad():
        expected = module(torch.tensor(rows, dtype=dtype)).double().numpy()
    model = as_model(module)
    np.testing.assert_array_equal(model.outputs(rows), expected)
    assert model.gradient_oracle().dtype == torch.float32
    assert model.roundoff == torch.finfo(dtype).eps / 2
    assert as_model(nn.Linear(3, 2).to(dtype)).linear_form() is None
    with pytest.raises(InputError, match="rounds too coarsely"):
        read_relu_network(module)


def test_rows_of_another_width_ask_for_encoded_rows():
    module = nn.Sequential(nn.ReLU(), nn.Linear(7, 2))
    with pytest.raises(ModelError, match="pass encoded rows"):
        as_model(module).outputs(np.zeros((5, 3)))
