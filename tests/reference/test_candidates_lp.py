"""The exact dual equals the transport linear programme (paper, equation 3) solved by scipy, whole curve included."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from likewise.auditing.dual.finite_dual import Frontier, dual_curve, solve_dual
from likewise.auditing.search.candidates import CandidateSearch
from likewise.core.subspace import Subspace
from likewise.fair_metrics import FairMetric
from likewise.models import as_model


def transport_lp(d2, loss, eps, weight=None):
    """Largest mean loss over plans that move row i's mass among all candidates at mean cost at most eps."""
    n, m = loss.shape
    mass = np.full(n, 1 / n) if weight is None else weight / weight.sum()
    rows = sparse.kron(sparse.eye(n), np.ones((1, m)))
    answer = linprog(
        -loss.ravel(),
        A_ub=d2.reshape(1, -1) if np.isfinite(eps) else None,
        b_ub=[eps] if np.isfinite(eps) else None,
        A_eq=rows,
        b_eq=mass,
        method="highs",
    )
    assert answer.status == 0
    return -answer.fun


def problem(seed):
    """Rows are candidates too; some pairs cost nothing; losses depend on candidate and label only."""
    rng = np.random.default_rng(seed)
    n, extra, classes = int(rng.integers(2, 9)), int(rng.integers(0, 12)), int(rng.integers(2, 4))
    place = rng.normal(size=(n + extra, 2))
    place[n // 2] = place[0]
    if extra:
        place[-1] = place[1]
    table = rng.exponential(size=(n + extra, classes))
    y = rng.integers(classes, size=n)
    d2 = ((place[:n, None] - place[None]) ** 2).sum(-1)
    return d2, table[:, y].T.copy()


def frontier_of(d2, loss):
    n, m = d2.shape
    row, column = np.divmod(np.arange(n * m), m)
    base = loss[np.arange(n), np.arange(n)]
    return Frontier.from_points(
        base_loss=base, row=row, squared_distance=d2.ravel(), loss=loss.ravel(), candidate=column
    )


@pytest.mark.parametrize("seed", range(25))
def test_value_equals_the_linear_programme(seed):
    d2, loss = problem(seed)
    frontier = frontier_of(d2, loss)
    for eps in (0.0, 1e-3, 0.05, 0.4, 2.0, np.inf):
        assert solve_dual(frontier, eps).value == pytest.approx(transport_lp(d2, loss, eps), abs=1e-8)


@pytest.mark.parametrize("seed", range(100, 106))
def test_whole_curve_equals_the_linear_programme(seed):
    d2, loss = problem(seed)
    curve = dual_curve(frontier_of(d2, loss))
    between = (curve.eps[:-1] + curve.eps[1:]) / 2
    for eps in np.concatenate([curve.eps, between, [curve.eps[-1] + 1]]):
        assert curve.value(eps) == pytest.approx(transport_lp(d2, loss, eps), abs=1e-8)
    assert (np.diff(curve.values) >= 0).all()
    assert (np.diff(curve.slopes) < 0).all()


@pytest.mark.parametrize("seed", range(300, 308))
def test_candidate_search_of_a_model_equals_the_linear_programme(seed):
    """From model, metric and rows to V(ε): the support is every row with every value of the sensitive column."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 12))
    X = np.column_stack([rng.normal(size=(n, 3)), rng.integers(2, size=n)])
    y = rng.integers(3, size=n)
    weight = rng.normal(size=(4, 3))
    model = as_model(
        lambda Z: np.exp(np.sin(Z @ weight)) / np.exp(np.sin(Z @ weight)).sum(axis=1, keepdims=True)
    )
    metric = FairMetric.from_subspace(
        Subspace.from_directions(np.eye(4)[3:] + 0.1 * rng.normal(size=(1, 4))), 0.01
    )
    found = CandidateSearch(edits=[3]).run(model, X, y, metric=metric)
    values = np.unique(X[:, 3])
    support = np.concatenate([np.column_stack([X[:, :3], np.full(n, value)]) for value in values])
    d2 = np.stack([metric.squared_distance(np.repeat(x[None], len(support), 0), support) for x in X])
    loss = np.stack([model.losses(support, np.full(len(support), label)) for label in y])
    curve = dual_curve(found.frontier)
    for eps in (0.0, 1e-4, 0.01, 0.1, 1.0, np.inf, *curve.eps[1:4]):
        assert curve.value(eps) == pytest.approx(transport_lp(d2, loss, eps), abs=1e-8)
