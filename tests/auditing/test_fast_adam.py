"""The compiled Adam takes the same way as the one in torch, and steps aside where it does not serve."""

import os
import subprocess
import sys

import pytest
import torch

from likewise.auditing.search.gradient import ascent as fast
from likewise.auditing.search.gradient.ascent import RowStatus, adam, fast_adam
from likewise.auditing.search.gradient.spaces import FreeSpace, Quadratic, RowSpace, free_moves
from likewise.core.subspace import Subspace
from likewise.data import BoxDomain, Unbounded
from likewise.fair_metrics import FairMetric, euclidean
from likewise.models import make_oracle

numba = pytest.importorskip("numba")
N, D = 60, 7


def network(activation=None, outputs=2, dtype=torch.float64, hidden=9):
    torch.manual_seed(0)
    layers = (torch.nn.Linear(D, hidden), activation or torch.nn.ReLU(), torch.nn.Linear(hidden, outputs))
    net = torch.nn.Sequential(*layers).to(dtype)
    with torch.no_grad():
        for p in net.parameters():
            p.mul_(3.0)
    return net


def rows(dtype=torch.float64):
    g = torch.Generator().manual_seed(1)
    x = torch.randn(N, D, generator=g, dtype=torch.float64).to(dtype)
    return x, torch.randint(0, 2, (N,), generator=g)


def subspace_metric(weight):
    return FairMetric.from_subspace(
        Subspace.from_directions([[1.0, 1, 0, 0, 0, 0, 0], [0, 0, 1, 0, -1, 0, 0]]), weight
    )


def row_space(net, x, y, metric, lam=0.3, domain=None):
    penalty = Quadratic.of(metric, x)
    return RowSpace(
        make_oracle(net), x, y, torch.full((len(x),), lam, dtype=x.dtype),
        penalty=penalty, domain=domain or Unbounded(), radius=1.0,
    )  # fmt: skip


def free_space(net, x, y, metric):
    moves = free_moves(Unbounded(), torch.as_tensor(metric.null_space.basis, dtype=x.dtype), exact=False)
    return FreeSpace.of(make_oracle(net), x, y, moves, 1.0)


def same(one, two, *, rtol=1e-7, atol=1e-9):
    for name in ("v", "loss", "objective", "status", "steps"):
        torch.testing.assert_close(getattr(one, name), getattr(two, name), rtol=rtol, atol=atol, msg=name)


@pytest.fixture
def used(monkeypatch):
    """Counts the calls of the compiled loop."""
    calls, kernel = [], fast._kernel()

    def counted(*args):
        calls.append(args[7])
        return kernel(*args)

    monkeypatch.setattr(fast, "_kernel", lambda: counted)
    return calls


@pytest.mark.parametrize("activation", [torch.nn.ReLU(), torch.nn.LeakyReLU(0.2)], ids=["relu", "leaky"])
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("size", [1e-4, 0.05, 3.0])
def test_all_coordinates(activation, outputs, size, used):
    (x, y), net = rows(), network(activation, outputs)
    for metric in (euclidean(D), subspace_metric(0.0), subspace_metric(0.01)):
        space = row_space(net, x, y, metric)
        start = 0.1 * x.flip(0)
        options = {"steps": 25, "step_size": size, "tol": 1e-3}
        same(fast_adam(space, start, **options), adam(space, start, **options))
    assert used == [True] * 3


@pytest.mark.parametrize("size", [0.1, 10.0])
@pytest.mark.parametrize("steps", [0, 1, 2, 30])
def test_free_directions(size, steps, used):
    (x, y), net = rows(), network()
    space = free_space(net, x, y, subspace_metric(0.0))
    options = {"steps": steps, "step_size": size, "tol": 1e-3}
    same(fast_adam(space, space.zero(), **options), adam(space, space.zero(), **options))
    assert used == [False]


def test_single_precision_finds_as_much():
    (x, y), net = rows(torch.float32), network(dtype=torch.float32)
    space = row_space(net, x, y, subspace_metric(0.01))
    options = {"steps": 40, "step_size": 1e-2, "tol": 1e-3}
    one, two = fast_adam(space, space.zero(), **options), adam(space, space.zero(), **options)
    assert one.v.dtype == one.loss.dtype == torch.float32
    torch.testing.assert_close(one.objective, two.objective, rtol=1e-4, atol=1e-4)


def test_a_unit_without_weights_and_one_at_its_kink():
    (x, y), net = rows(), network()
    with torch.no_grad():
        net[0].weight[0] = 0.0
        net[0].bias[0] = 0.0
        net[0].bias[1] = -(x[0] @ net[0].weight[1])
    space = row_space(net, x, y, euclidean(D))
    options = {"steps": 20, "step_size": 1e-3, "tol": 1e-3}
    same(fast_adam(space, space.zero(), **options), adam(space, space.zero(), **options))


def test_rows_that_are_not_finite_are_marked_and_alone():
    (x, y), net = rows(), network()
    x[3] = 1e308
    space = row_space(net, x, y, euclidean(D))
    track = fast_adam(space, space.zero(), steps=5, step_size=0.1, tol=1e-3)
    lost = track.status == RowStatus.NON_FINITE.value
    assert lost.nonzero().tolist() == [[3]]
    assert torch.isfinite(track.v).all()


@pytest.mark.parametrize(
    "case", ["two hidden layers", "tanh", "three classes", "hinge", "box", "large", "no numba"]
)
def test_where_it_does_not_serve_torch_does(case, used, monkeypatch):
    (x, y), net, domain = rows(), network(), Unbounded()
    if case == "two hidden layers":
        net = torch.nn.Sequential(
            net[:2], torch.nn.Linear(9, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)
        ).double()
    elif case == "tanh":
        net = network(torch.nn.Tanh())
    elif case == "three classes":
        net = network(outputs=3)
    elif case == "box":
        domain = BoxDomain([-3.0] * D, [3.0] * D)
    elif case == "large":
        net = network(hidden=5000)
    elif case == "no numba":
        monkeypatch.setattr(fast, "_kernel", lambda: None)
    space = row_space(net, x, y, euclidean(D), domain=domain)
    if case == "hinge":
        space = RowSpace(
            make_oracle(net, "hinge"), x, y, space.lam, penalty=space.penalty, domain=domain, radius=1.0
        )
    options = {"steps": 5, "step_size": 0.1, "tol": 1e-3}
    same(fast_adam(space, space.zero(), **options), adam(space, space.zero(), **options), rtol=0, atol=0)
    assert used == []


_CLIMB = """
import hashlib
import numpy as np
from likewise.auditing.search.gradient.compiled_adam import climb

rng, real = np.random.default_rng(0), np.float32
directions, head = (rng.normal(size=shape).astype(real) for shape in ((41, 100), 100))
lengths = (1 / (directions**2).sum(0)).astype(real)
network = (directions, directions.T.copy(), directions * head, head, lengths, real(0.1), real(0.0))
before, signs = rng.normal(size=(50, 100)).astype(real), rng.choice([-1, 1], 50).astype(real)
metric = (real(1.0), rng.normal(size=(3, 41)).astype(real), np.ones(3, real))
prices = np.full(50, 0.1, real)
best, found = climb(before, network, signs, prices, metric, 40, 0.01, True, np.zeros((50, 41), real))
print(hashlib.sha256(best.tobytes() + found.tobytes()).hexdigest(), sum(climb.stats.cache_hits.values()))
"""


def test_code_from_the_cache_rounds_as_code_just_compiled(tmp_path):
    place = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    first, again = (
        subprocess.run(
            [sys.executable, "-c", _CLIMB], env=place, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    )
    assert (first[1], again[1]) == ("0", "1")  # compiled, then found
    assert first[0] == again[0]
