"""Special budgets, the worst-case map; tests/reference/ has the comparison with the LP."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.auditing.dual.finite_dual import Frontier, dual_curve, solve_dual, steps_of
from likewise.core.errors import InputError


def dual_objective(frontier, lam, eps):
    """λε + mean_i max_j (loss_ij − λ d²_ij), which is at least V(ε) for every λ ≥ 0."""
    return (lam * eps if lam > 0 else 0.0) + frontier.conjugate(lam).mean()


def random_frontier(seed, n=30, m=25, *, zero=True):
    rng = np.random.default_rng(seed)
    d2, loss = rng.exponential(size=(n, m)), rng.exponential(size=(n, m))
    if zero:
        d2[rng.random((n, m)) < 0.1] = 0.0
    row, column = np.divmod(np.arange(n * m), m)
    return Frontier.from_points(
        base_loss=rng.exponential(size=n) / 2,
        row=row,
        squared_distance=d2.ravel(),
        loss=loss.ravel(),
        candidate=column,
    )


def spent(frontier, solution):
    """Transport and value of the map, with the fraction of the first row whose step worth λ* does not fit."""
    at, (i, share) = solution.corner, split(frontier, solution)
    d, f = frontier.squared_distance[at].copy(), frontier.loss[at].copy()
    if share:
        d[i] += share * (frontier.squared_distance[at[i] + 1] - d[i])
        f[i] += share * (frontier.loss[at[i] + 1] - f[i])
    return d.mean(), f.mean()


def split(frontier, solution):
    """The row that is split, and the share of it that moves on."""
    steps, taken = steps_of(frontier), solution.corner - frontier.indptr[:-1]
    ahead = np.flatnonzero((steps.slope == solution.lambda_) & (steps.row >= 0))
    ahead = [k for k in ahead if taken[steps.row[k]] == k - np.searchsorted(steps.row, steps.row[k])]
    room = solution.transport * frontier.n_rows - frontier.squared_distance[solution.corner].sum()
    if not ahead or room <= 1e-9 * solution.transport:
        return None, 0.0
    return int(steps.row[ahead[0]]), min(room / steps.transport[ahead[0]], 1.0)


@pytest.mark.parametrize("eps", [0.0, 1e-6, 0.01, 0.1, 0.5, 3.0, np.inf])
def test_map_attains_value_within_budget_and_lambda_attains_the_dual(eps):
    frontier = random_frontier(0)
    solution = solve_dual(frontier, eps)
    transport, value = spent(frontier, solution)
    assert transport <= eps * (1 + 1e-12)
    assert transport == pytest.approx(solution.transport, abs=1e-14)
    assert value == pytest.approx(solution.value, abs=1e-12)
    assert dual_objective(frontier, solution.lambda_, eps) == pytest.approx(solution.value, abs=1e-12)
    for lam in (0.0, 0.5 * solution.lambda_, 2 * solution.lambda_ + 0.1):
        assert dual_objective(frontier, lam, eps) >= solution.value - 1e-12


def test_budget_of_zero_moves_only_for_nothing_and_inf_takes_the_worst():
    frontier = random_frontier(1)
    nothing, all_of_it = solve_dual(frontier, 0.0), solve_dual(frontier, np.inf)
    free = frontier.squared_distance == 0
    best_free = np.maximum.reduceat(np.where(free, frontier.loss, -np.inf), frontier.indptr[:-1])
    assert nothing.value == pytest.approx(best_free.mean(), abs=1e-14)
    assert nothing.gap > 0
    assert nothing.transport == 0
    assert np.isfinite(nothing.lambda_)
    assert all_of_it.lambda_ == 0
    assert all_of_it.value == pytest.approx(np.maximum.reduceat(frontier.loss, frontier.indptr[:-1]).mean())
    assert (all_of_it.corner == frontier.indptr[1:] - 1).all()


def test_curve_and_solution_agree_and_gaps_invert():
    frontier = random_frontier(2)
    curve = dual_curve(frontier)
    for eps in [0.0, 0.03, 0.4, float(curve.eps[5]), 99.0]:
        assert curve.value(eps) == solve_dual(frontier, eps).value
        assert curve.gap(eps) == pytest.approx(curve.value(eps) - frontier.base_loss.mean(), abs=1e-14)
    pure, top = curve.gap(0.0), curve.gap(np.inf)
    for delta in np.linspace(pure, top, 17)[1:-1]:
        assert curve.gap(curve.eps_for_gap(delta)) == pytest.approx(delta, abs=1e-12)
    assert curve.eps_for_gap(pure / 2) == 0.0
    assert curve.eps_for_gap(top + 1e-6) == np.inf
    np.testing.assert_array_equal(curve.value([0.0, 0.4]), [curve.value(0.0), curve.value(0.4)])


def test_thinned_curve_lies_on_and_below_the_curve():
    curve = dual_curve(random_frontier(3, n=200))
    thin = curve.thin(30)
    assert 2 < len(thin.eps) <= 30
    assert (thin.eps[0], thin.eps[-1]) == (curve.eps[0], curve.eps[-1])
    np.testing.assert_array_equal(curve.value(thin.eps), thin.values)
    grid = np.linspace(0, curve.eps[-1], 500)
    assert (thin.value(grid) <= curve.value(grid) + 1e-14).all()
    assert np.abs(thin.value(grid) - curve.value(grid)).max() < 0.02 * np.ptp(curve.values)
    assert curve.thin(10**6) is curve


def test_rows_that_tie_take_their_step_in_their_order_and_one_is_split():
    frontier = Frontier.from_points(
        base_loss=[0.0] * 3,
        row=[0, 1, 2],
        squared_distance=[1.0, 1.0, 2.0],
        loss=[1.0, 1.0, 0.5],
        candidate=[0, 1, 2],
    )
    solution = solve_dual(frontier, 0.5)
    assert split(frontier, solution) == (1, pytest.approx(0.5))
    assert frontier.candidate[solution.corner].tolist() == [0, -1, -1]
    whole = solve_dual(frontier, 1 / 3)
    assert split(frontier, whole) == (None, 0.0)
    assert frontier.candidate[whole.corner].tolist() == [0, -1, -1]


def test_nothing_to_gain_is_a_flat_curve():
    still = Frontier.from_points(base_loss=[1.0, 2.0], row=[], squared_distance=[], loss=[], candidate=[])
    solution = solve_dual(still, 0.5)
    assert (solution.value, solution.gap, solution.lambda_, solution.transport) == (1.5, 0.0, 0.0, 0.0)
    assert dual_curve(still).eps_for_gap(0.0) == 0.0


@pytest.mark.parametrize("eps", [-0.1, np.nan, "much"])
def test_bad_budgets_are_named(eps):
    with pytest.raises(InputError, match="'eps' must be"):
        solve_dual(random_frontier(0, n=2), eps)
