"""The gradient search against the exact supremum of linear models, and against brute force on a grid."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from likewise.auditing.bounds.linear.model import LinearModel
from likewise.auditing.bounds.linear.search import exact_dual
from likewise.auditing.bounds.linear.supremum import exact_supremum
from likewise.auditing.search.gradient.search import GradientSearch
from likewise.core.subspace import Subspace
from likewise.data import BoxDomain, DataRangeDomain, Unbounded
from likewise.fair_metrics import FairMetric, euclidean, mahalanobis
from likewise.models import AutogradOracle, MLPOracle, make_oracle


def random_metric(rng, d, kind):
    if kind == "euclidean":
        return euclidean(d)
    if kind == "mahalanobis":
        root = rng.normal(size=(d, d))
        return mahalanobis(root @ root.T / d)
    subspace = Subspace.from_directions(rng.normal(size=(max(d - 2, 1), d)))
    return FairMetric.from_subspace(subspace, weight=kind)


def random_problem(seed, classes=2):
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(2, 9)), 40
    metric = random_metric(rng, d, ["euclidean", "mahalanobis", 0.01, 0.3][seed % 4])
    rows = 1 if classes == 2 else classes
    w, b = rng.normal(size=(rows, d)) * 10 ** rng.uniform(-0.5, 0.7), rng.normal(size=rows)
    return metric, w, b, rng.normal(size=(n, d)), rng.integers(0, classes, size=n)


def linear_oracle(w, b, *, fast=True):
    net = torch.nn.Linear(w.shape[1], len(w)).double()
    with torch.no_grad():
        net.weight.copy_(torch.as_tensor(w))
        net.bias.copy_(torch.as_tensor(b))
    return make_oracle(net, fast=fast)


def values(search, oracle, X, y, lam, metric, domain):
    found = search.run(oracle, torch.as_tensor(X), torch.as_tensor(y), metric=metric, domain=domain, lam=lam)
    assert found.finite.all()
    return found.objective(lam).numpy()


@pytest.mark.parametrize("seed", range(12))
def test_value_of_a_logistic_model_is_the_exact_one(seed):
    metric, w, b, X, y = random_problem(seed)
    oracle, model = linear_oracle(w, b, fast=seed % 2 == 0), LinearModel(w, b)
    assert isinstance(oracle, MLPOracle if seed % 2 == 0 else AutogradOracle)
    search = GradientSearch()
    for eps in (1e-4, 1e-2, 0.1, 1.0, 10.0):
        exact = exact_dual(model, X, y, metric=metric, eps=eps)

        def dual(log_lam, eps=eps):
            lam = float(np.exp(log_lam))
            inner = values(search, oracle, X, y, lam, metric, Unbounded())
            true = exact_supremum(model, X, y, metric=metric, lam=lam).value
            assert (inner <= true + 1e-6).all()
            return lam * eps + inner.mean()

        middle = np.log(exact.lam)
        found = minimize_scalar(
            dual, bounds=(middle - 0.5, middle + 0.5), method="bounded", options={"maxiter": 5}
        )
        value = min(found.fun, dual(middle))
        assert value == pytest.approx(exact.value, rel=1e-3)


@pytest.mark.parametrize("seed", range(6))
def test_softmax_rows_reach_the_exact_supremum(seed):
    metric, w, b, X, y = random_problem(seed, classes=3)
    oracle, model = linear_oracle(w, b), LinearModel(w, b)
    for lam in (0.3, 3.0, 30.0):
        exact = exact_supremum(model, X, y, metric=metric, lam=lam).value
        found = values(GradientSearch(restarts=8), oracle, X, y, lam, metric, Unbounded())
        assert (found <= exact + 1e-6).all()
        assert found.mean() == pytest.approx(exact.mean(), rel=1e-3)


@pytest.mark.parametrize("seed", range(8))
def test_rows_in_a_box_reach_the_exact_supremum(seed):
    metric, w, b, X, y = random_problem(seed)
    domain = BoxDomain(X.min(0), X.max(0), immutable=(0,) if seed % 2 else ())
    oracle, model = linear_oracle(w, b), LinearModel(w, b)
    for lam in (0.0, 0.3, 3.0):
        exact = exact_supremum(model, X, y, metric=metric, lam=lam, domain=domain).value
        found = values(GradientSearch(full_steps=60, tol=1e-5), oracle, X, y, lam, metric, domain)
        assert (found <= exact + 1e-6).all()
        assert found.mean() == pytest.approx(exact.mean(), rel=1e-3)


@pytest.mark.parametrize("lam", [0.5, np.inf])
def test_free_directions_are_followed_to_the_edge_of_the_data(lam):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(30, 4)), rng.integers(0, 2, size=30)
    w, b = rng.normal(size=(1, 4)), rng.normal(size=1)
    subspace = Subspace.from_directions(rng.normal(size=(2, 4)))
    metric = FairMetric.from_subspace(subspace)
    domain = DataRangeDomain.from_data(X, subspace)
    exact = exact_supremum(LinearModel(w, b), X, y, metric=metric, lam=lam, domain=domain).value
    found = values(GradientSearch(), linear_oracle(w, b), X, y, lam, metric, domain)
    np.testing.assert_allclose(found, exact, rtol=1e-3, atol=1e-6)
    assert (found <= exact + 1e-6).all()


def test_restarts_find_the_maxima_of_a_small_network_in_a_square():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 12), torch.nn.ReLU(), torch.nn.Linear(12, 2)).double()
    with torch.no_grad():
        net[0].weight.mul_(4)
        net[2].weight.mul_(4)
    rng = np.random.default_rng(0)
    X, y = torch.as_tensor(rng.uniform(-1, 1, size=(25, 2))), torch.as_tensor(rng.integers(0, 2, size=25))
    side = torch.linspace(-1, 1, 401, dtype=torch.float64)
    grid = torch.cartesian_prod(side, side)
    oracle = make_oracle(net)
    domain = BoxDomain([-1.0, -1.0], [1.0, 1.0])
    search = GradientSearch(restarts=24)
    for lam in (0.1, 1.0):
        found = search.run(oracle, X, y, metric=euclidean(2), domain=domain, lam=lam).objective(lam)
        best = torch.stack(
            [
                (oracle.loss(grid, label.expand(len(grid))) - lam * (grid - row).square().sum(1)).max()
                for row, label in zip(X, y, strict=True)
            ]
        )
        assert (found <= best + 1e-2).all()  # the grid is that fine
        assert found.mean() >= 0.98 * best.mean()
