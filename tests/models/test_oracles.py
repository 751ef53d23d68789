"""Hand-written gradients against autograd and finite differences, and modules that come back untouched."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from likewise.core.errors import InputError, ModelError
from likewise.models import AutogradOracle, CustomLoss, MLPOracle, make_oracle
from likewise.models.network import network_of

D = 5


def _norm(width: int) -> nn.BatchNorm1d:
    norm = nn.BatchNorm1d(width)
    norm.running_mean.uniform_(-0.5, 0.5)
    norm.running_var.uniform_(0.5, 2.0)
    with torch.no_grad():
        norm.weight.uniform_(0.5, 1.5)
        norm.bias.uniform_(-0.5, 0.5)
    return norm


def _net(name: str, n_outputs: int) -> nn.Module:
    torch.manual_seed(len(name) + n_outputs)
    hidden = {
        "relu": nn.ReLU(),
        "tanh": nn.Tanh(),
        "sigmoid": nn.Sigmoid(),
        "leaky": nn.LeakyReLU(0.2),
        "gelu": nn.GELU(),
        "silu": nn.SiLU(),
        "elu": nn.ELU(0.7),
        "softplus": nn.Softplus(),
    }
    if name == "linear":
        return nn.Linear(D, n_outputs).double()
    if name == "no bias":
        return nn.Sequential(
            nn.Linear(D, 7, bias=False), nn.Tanh(), nn.Linear(7, n_outputs, bias=False)
        ).double()
    if name == "deep":
        inner = nn.Sequential(nn.Linear(9, 6), nn.Dropout(0.5), nn.Tanh())
        return nn.Sequential(
            nn.Flatten(), nn.Linear(D, 9), nn.ReLU(), inner, nn.Linear(6, n_outputs)
        ).double()
    if name == "linear chain":
        return nn.Sequential(
            nn.Linear(D, 4), nn.Identity(), nn.Linear(4, 3), nn.Linear(3, n_outputs)
        ).double()
    if name == "chain then relu":
        return nn.Sequential(
            nn.Linear(D, 4), nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3), nn.Linear(3, n_outputs)
        ).double()
    if name == "batch norms":
        first, last = nn.Linear(D, 8), nn.Linear(8, n_outputs)
        return nn.Sequential(_norm(D), first, _norm(8), nn.ReLU(), _norm(8), last, _norm(n_outputs)).double()
    return nn.Sequential(nn.Linear(D, 8), hidden[name], nn.Linear(8, n_outputs)).double()


NETS = (
    "linear", "relu", "tanh", "sigmoid", "leaky", "gelu", "silu", "elu", "softplus",
    "no bias", "deep", "linear chain", "chain then relu", "batch norms",
)  # fmt: skip


def _focal(scores: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    p = scores.softmax(1).gather(1, y[:, None])[:, 0]
    return (1 - p) ** 2 * -p.log()


LOSSES = {
    "cross_entropy": ("cross_entropy", (1, 2, 4)),
    "hinge": ("hinge", (1, 2, 4)),
    "custom": (_focal, (1, 2, 4)),
    "squared": ("squared", (1,)),
}
CASES = [(net, loss, c) for net in NETS for loss, (_, widths) in LOSSES.items() for c in widths]


def _problem(loss: str, n_outputs: int, n: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(n, D, generator=generator, dtype=torch.float64)
    if loss == "squared":
        return x, torch.randn(n, generator=generator, dtype=torch.float64)
    return x, torch.randint(0, max(n_outputs, 2), (n,), generator=generator)


def _finite_differences(function, x: torch.Tensor, h: float = 1e-6) -> torch.Tensor:
    gradient = torch.empty_like(x)
    for j in range(x.shape[1]):
        step = torch.zeros_like(x)
        step[:, j] = h
        gradient[:, j] = (function(x + step) - function(x - step)) / (2 * h)
    return gradient


@pytest.mark.parametrize(("net", "loss", "n_outputs"), CASES)
def test_by_hand_equals_autograd_and_finite_differences(net, loss, n_outputs):
    module = _net(net, n_outputs)
    x, y = _problem(loss, n_outputs)
    fast, slow = make_oracle(module, LOSSES[loss][0]), make_oracle(module, LOSSES[loss][0], fast=False)
    assert isinstance(fast, MLPOracle)
    assert isinstance(slow, AutogradOracle)
    (fast_loss, fast_gradient), (slow_loss, slow_gradient) = fast(x, y), slow(x, y)
    torch.testing.assert_close(fast_loss, slow_loss, atol=1e-10, rtol=1e-10)
    torch.testing.assert_close(fast_gradient, slow_gradient, atol=1e-10, rtol=1e-10)
    torch.testing.assert_close(fast.loss(x, y), fast_loss)
    torch.testing.assert_close(slow.loss(x, y), slow_loss)
    differences = _finite_differences(lambda at: slow.loss(at, y), x)
    torch.testing.assert_close(fast_gradient, differences, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize(
    ("net", "loss", "n_outputs"),
    [c for c in CASES if c[0] in ("linear", "relu", "deep", "batch norms", "linear chain")],
)
def test_folded_equals_the_rows_it_stands_for(net, loss, n_outputs, rank):
    module = _net(net, n_outputs)
    x, y = _problem(loss, n_outputs)
    basis = torch.linalg.qr(
        torch.randn(D, rank, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    )[0]
    z = torch.randn(len(x), rank, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    plain = make_oracle(module, LOSSES[loss][0], fast=False)
    expected_loss, gradient = plain(x + z @ basis.T, y)
    keep = torch.tensor([4, 1, 9])
    for oracle in (plain, make_oracle(module, LOSSES[loss][0])):
        folded = oracle.fold(x, basis.numpy())
        found_loss, found_gradient = folded(z, y)
        torch.testing.assert_close(found_loss, expected_loss)
        torch.testing.assert_close(found_gradient, gradient @ basis)
        torch.testing.assert_close(folded.loss(z, y), expected_loss)
        some_loss, some_gradient = folded.take(keep)(z[keep], y[keep])
        torch.testing.assert_close(some_loss, expected_loss[keep])
        torch.testing.assert_close(some_gradient, (gradient @ basis)[keep])


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("n_outputs", [2, 4])
def test_a_row_does_not_depend_on_the_rows_beside_it(fast, n_outputs):
    oracle = make_oracle(_net("deep", n_outputs), fast=fast)
    x, y = _problem("cross_entropy", n_outputs)
    loss, gradient = oracle(x, y)
    for rows in ([3], [11, 0, 5], list(range(12))[::-1]):
        some_loss, some_gradient = oracle(x[rows], y[rows])
        torch.testing.assert_close(some_loss, loss[rows])
        torch.testing.assert_close(some_gradient, gradient[rows])


def test_what_was_returned_is_not_written_over_by_the_next_call():
    oracle = make_oracle(_net("relu", 2))
    x, y = _problem("cross_entropy", 2)
    loss, gradient = oracle(x, y)
    before = loss.clone(), gradient.clone()
    oracle(x + 1.0, y)
    oracle.fold(x, np.eye(D)[:, :2])(torch.ones(12, 2, dtype=torch.float64), y)
    assert torch.equal(loss, before[0])
    assert torch.equal(gradient, before[1])


def test_targets_changed_in_place_are_seen():
    oracle = make_oracle(_net("relu", 2))
    x, y = _problem("cross_entropy", 2)
    oracle(x, y)
    y.copy_(1 - y)
    torch.testing.assert_close(oracle(x, y)[0], make_oracle(_net("relu", 2), fast=False)(x, y)[0])


@pytest.mark.parametrize("n_outputs", [2, 4])
def test_training_updates_are_seen(n_outputs):
    module = _net("batch norms", n_outputs)
    oracle = make_oracle(module)
    assert isinstance(oracle, MLPOracle)
    x, y = _problem("cross_entropy", n_outputs)
    before = oracle.loss(x, y)
    with torch.no_grad():
        module[1].weight.add_(0.5)
    after = oracle.loss(x, y)
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after, AutogradOracle(module).loss(x, y))


@pytest.mark.parametrize(
    ("ending", "n_outputs"), [(nn.Softmax(dim=1), 3), (nn.LogSoftmax(dim=-1), 3), (nn.Sigmoid(), 1)]
)
@pytest.mark.parametrize("loss", ["cross_entropy", "hinge"])
def test_a_softmax_at_the_end_is_seen(ending, n_outputs, loss):
    bare = _net("tanh", n_outputs)
    ended = nn.Sequential(bare, ending)
    x, y = _problem("cross_entropy", n_outputs)
    expected = make_oracle(bare, loss)(x, y)
    for oracle in (make_oracle(ended, loss), make_oracle(ended, loss, fast=False)):
        torch.testing.assert_close(oracle(x, y), expected)
    # A user's own loss gets what really comes out.
    own = make_oracle(ended, CustomLoss(lambda out, target: out.sum(dim=1) + 0 * target))
    assert isinstance(own, AutogradOracle)
    if not isinstance(ending, nn.LogSoftmax):
        torch.testing.assert_close(own(x, y)[0], torch.ones(12, dtype=torch.float64))


class _Scaled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


def _hooked() -> nn.Module:
    net = nn.Sequential(nn.Linear(D, 3), nn.ReLU(), nn.Linear(3, 2))
    net[0].register_forward_hook(lambda module, args, out: out + 1)
    return net


@pytest.mark.parametrize(
    "module",
    [
        _Scaled(D, 2),
        nn.Sequential(_Scaled(D, 3), nn.ReLU(), nn.Linear(3, 2)),
        _hooked(),
        nn.Sequential(nn.ReLU(), nn.Linear(D, 2)),
        nn.Sequential(nn.Linear(D, 2), nn.ReLU()),
        nn.Sequential(nn.Linear(D, 3), nn.LayerNorm(3), nn.Linear(3, 2)),
        nn.utils.parametrizations.weight_norm(nn.Linear(D, 2)),
        nn.Sequential(nn.Linear(D, 3), nn.GELU(approximate="tanh"), nn.Linear(3, 2)),
    ],
    ids=[
        "subclass",
        "inner subclass",
        "hook",
        "relu first",
        "relu last",
        "layer norm",
        "weight norm",
        "gelu tanh",
    ],
)
def test_anything_that_is_not_plain_goes_by_autograd(module):
    assert network_of(module) is None
    assert isinstance(make_oracle(module), AutogradOracle)
    x, y = torch.randn(6, D, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 1] * 3)
    loss, gradient = make_oracle(module)(x, y)
    expected = nn.functional.cross_entropy(module.eval()(x), y, reduction="none")
    torch.testing.assert_close(loss, expected.detach())
    assert gradient.shape == x.shape
    assert gradient.abs().sum() > 0


@pytest.mark.parametrize("fast", [True, False])
def test_bad_targets_and_rows_are_refused(fast):
    oracle = make_oracle(_net("relu", 2), fast=fast)
    x, y = _problem("cross_entropy", 2)
    with pytest.raises(InputError, match="0 to 1, got 0 to 2"):
        oracle(x, torch.where(torch.arange(12) == 0, 2, y * 0))
    with pytest.raises(InputError, match="int64"):
        oracle(x, y.to(torch.float32))
    with pytest.raises(InputError, match="shape"):
        oracle(x, y[:5])
    if fast:
        with pytest.raises(InputError, match="float64"):
            oracle(x.float(), y)
        with pytest.raises(InputError, match="shape"):
            oracle(x[:, :3], y)


def test_a_loss_without_slope_is_refused():
    with pytest.raises(InputError, match="candidate search"):
        make_oracle(_net("relu", 2), "zero_one")


def test_a_module_outside_autograd_is_refused():
    class Detached(nn.Module):
        def forward(self, x):
            return x.detach()[:, :2]

    with pytest.raises(ModelError, match="differentiate"):
        AutogradOracle(Detached())(*_problem("cross_entropy", 2))


def test_an_own_loss_that_reduces_is_refused():
    x, y = _problem("cross_entropy", 2)
    for fast in (True, False):
        oracle = make_oracle(_net("relu", 2), nn.functional.cross_entropy, fast=fast)
        with pytest.raises(ModelError, match="reduction='none'"):
            oracle(x, y)


@pytest.mark.parametrize("fast", [True, False])
def test_nan_weights_give_a_loss_that_is_not_finite(fast):
    module = _net("relu", 2)
    with torch.no_grad():
        module[0].weight[0, 0] = torch.nan
    x, y = _problem("cross_entropy", 2)
    assert not torch.isfinite(make_oracle(module, fast=fast)(x, y)[0]).any()


def test_weights_and_biases_by_hand():
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn(4, D, generator=generator), torch.randn(3, 4, generator=generator)]
    biases = [torch.randn(4, generator=generator), None]
    x = torch.randn(6, D, generator=generator)
    y = torch.tensor([0, 1, 2, 0, 1, 2])
    loss, _ = MLPOracle(weights, biases, "tanh")(x, y)
    scores = torch.tanh(x @ weights[0].T + biases[0]) @ weights[1].T
    torch.testing.assert_close(loss, nn.functional.cross_entropy(scores, y, reduction="none"))
    with pytest.raises(InputError, match="do not fit"):
        MLPOracle(weights, biases, ["tanh", "tanh"])
    with pytest.raises(InputError, match="followed by"):
        MLPOracle(weights[::-1], biases, "tanh")
    with pytest.raises(InputError, match="'activations'"):
        MLPOracle(weights, biases, "softsign")


def test_precision_can_be_changed():
    oracle = make_oracle(_net("batch norms", 3))
    x, y = _problem("cross_entropy", 3)
    single = oracle.to(torch.float32)
    assert single.dtype == torch.float32
    assert oracle.to(torch.float64) is oracle
    torch.testing.assert_close(single(x.float(), y)[1].double(), oracle(x, y)[1], atol=1e-5, rtol=1e-4)


def test_under_inference_mode_and_no_grad():
    x, y = _problem("cross_entropy", 2)
    for fast in (True, False):
        oracle = make_oracle(_net("relu", 2), fast=fast)
        expected = oracle(x, y)
        with torch.no_grad():
            torch.testing.assert_close(oracle(x, y), expected)
        with torch.inference_mode():
            torch.testing.assert_close(oracle(x.clone(), y.clone()), expected)


@pytest.mark.parametrize(
    ("layers", "stages"),
    [
        ([nn.Linear(5, 5, bias=False), nn.Linear(5, 9), nn.ReLU(), nn.Linear(9, 3)], 2),
        ([nn.Linear(6, 2), nn.Linear(2, 7), nn.Tanh(), nn.Linear(7, 2)], 3),
        ([nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)], 1),
        ([nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 1)], 1),
    ],
    ids=["projection in front", "bottleneck", "batch norm between", "one output"],
)
def test_linear_layers_in_a_row_are_multiplied_out_where_that_is_less_work(layers, stages):
    net = nn.Sequential(*layers).eval()
    network = network_of(net)
    assert len(network.stages) == stages
    x, y = (
        torch.randn(7, network.n_inputs, generator=torch.Generator().manual_seed(0)),
        torch.tensor([0, 1] * 3 + [0]),
    )
    for ours, plain in zip(make_oracle(net)(x, y), make_oracle(net, fast=False)(x, y), strict=True):
        torch.testing.assert_close(ours, plain, atol=1e-6, rtol=1e-5)
    basis = torch.eye(network.n_inputs)[:, :2]
    z = torch.ones(7, 2)
    torch.testing.assert_close(
        make_oracle(net).fold(x, basis).loss(z, y), make_oracle(net, fast=False).loss(x + z @ basis.T, y)
    )
