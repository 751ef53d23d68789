"""The gradient search against the exact solution of linear models: V(ε) on 20 random problems × 5 ε."""

import numpy as np
import pytest
import torch

from likewise.auditing.bounds.linear.model import LinearModel
from likewise.auditing.bounds.linear.search import exact_dual
from likewise.auditing.bounds.linear.supremum import exact_supremum
from likewise.auditing.search.gradient.search import GradientSearch
from likewise.core.subspace import Subspace
from likewise.data import BoxDomain, Unbounded
from likewise.fair_metrics import FairMetric
from likewise.models import make_oracle


def linear_oracle(weights):
    net = torch.nn.Linear(weights.shape[1], weights.shape[0]).double()
    with torch.no_grad():
        net.weight.copy_(torch.as_tensor(weights))
        net.bias.zero_()
    return make_oracle(net)


@pytest.mark.parametrize("seed", range(12))
def test_gradient_search_agrees_with_the_exact_value(seed):
    """Half of the problems are unbounded with a cheap subspace, half in a box with free columns."""
    rng = np.random.default_rng(seed)
    d, n = 6, 12
    if seed % 2:
        metric = FairMetric.from_subspace(Subspace.from_directions(rng.normal(size=(2, d))), weight=0.05)
        domain = Unbounded()
    else:
        metric = FairMetric.from_subspace(Subspace.from_directions(np.eye(d)[:2]))
        domain = BoxDomain(-np.ones(d), np.ones(d))
    X, y = rng.uniform(-1, 1, size=(n, d)), rng.integers(0, 2, size=n)
    weights = np.stack([np.zeros(d), 2 * rng.normal(size=d)])
    model, oracle = LinearModel(weights, np.zeros(2)), linear_oracle(weights)
    search = GradientSearch(full_steps=200, tol=1e-7)
    for eps in (0.01, 0.05, 0.1, 0.3, 1.0):
        exact = exact_dual(model, X, y, metric=metric, domain=domain, eps=eps, tol=1e-5)
        bound = exact_supremum(model, X, y, metric=metric, domain=domain, lam=exact.lam, tol=1e-6)
        found = search.run(
            oracle,
            torch.as_tensor(X),
            torch.as_tensor(y),
            metric=metric,
            domain=domain,
            lam=exact.lam,
        )
        reached = (found.loss - exact.lam * found.squared_distance).numpy()
        assert (reached <= bound.value + 1e-6).all()
        value = exact.lam * eps + reached.mean()
        assert value <= exact.value + 1e-6
        assert value == pytest.approx(exact.value, rel=1e-3)
