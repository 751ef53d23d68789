"""Steps in bins: the exact curve where bins are single steps, exact at every edge where they are not."""

import numpy as np
import pytest

from likewise.auditing.dual.finite_dual import (
    ALL_BITS,
    BinnedSteps,
    Frontier,
    dual_curve,
    solve_dual,
    steps_of,
)


def random_frontier(seed, n=400):
    rng = np.random.default_rng(seed)
    row = rng.integers(n, size=20 * n)
    distance = np.where(rng.random(len(row)) < 0.1, 0.0, rng.exponential(size=len(row)))
    return Frontier.from_points(
        base_loss=rng.random(n),
        row=row,
        squared_distance=distance,
        loss=rng.exponential(size=len(row)) * np.sqrt(distance + 0.1),
        candidate=np.arange(len(row)),
    )


def merged(parts, bits):
    first, *others = (BinnedSteps.of(steps_of(part), bits=bits) for part in parts)
    for other in others:
        first = first.merge(other)
    return first


@pytest.mark.parametrize("cuts", [(400,), (100, 250, 400), (1, 2, 399, 400)], ids=str)
def test_with_all_bits_it_is_the_exact_curve_whatever_the_parts(cuts):
    frontier = random_frontier(0)
    parts = [frontier.take(slice(a, b)) for a, b in zip((0, *cuts[:-1]), cuts, strict=True)]
    exact = dual_curve(frontier)
    free = exact.values[0] - exact.base_loss
    curve = merged(parts, ALL_BITS).curve(n=400, base=exact.base_loss, free=free)
    assert curve.eps == pytest.approx(exact.eps, rel=1e-12)
    assert curve.values == pytest.approx(exact.values, rel=1e-12)
    assert curve.slopes.tolist() == exact.slopes.tolist()


@pytest.mark.parametrize("eps", [0.0, 0.01, 0.2, 1.0, 50.0], ids=str)
def test_bins_are_exact_at_their_edges_and_after_refinement_at_the_budget(eps):
    frontier = random_frontier(1)
    exact = dual_curve(frontier)
    free = exact.values[0] - exact.base_loss
    coarse = BinnedSteps.of(steps_of(frontier), bits=2)
    assert len(coarse) < 60
    curve = coarse.curve(n=400, base=exact.base_loss, free=free)
    assert curve.values == pytest.approx(exact.value(curve.eps), rel=1e-12)
    assert (np.diff(curve.slopes) < 0).all()
    budgets = np.linspace(0, exact.eps[-1], 300)
    assert (curve.value(budgets) <= exact.value(budgets) + 1e-12).all()
    at = coarse.bin_at(eps, 400)
    if at is None:
        assert eps >= exact.eps[-1]
        return
    low, high = coarse.low[at], coarse.high[at]
    fine = coarse.refined(at, BinnedSteps.of(steps_of(frontier), low=low, high=high))
    curve = fine.curve(n=400, base=exact.base_loss, free=free)
    solution = solve_dual(frontier, eps)
    assert curve.value(eps) == pytest.approx(solution.value, rel=1e-12)
    assert curve.lambda_(eps) == solution.lambda_


def test_nothing_to_gain():
    still = Frontier.from_points(base_loss=[0.3], row=[], squared_distance=[], loss=[], candidate=[])
    spectrum = BinnedSteps.of(steps_of(still), bits=8)
    assert len(spectrum) == 0
    assert spectrum.bin_at(0.1, 1) is None
    assert spectrum.merge(spectrum).curve(n=1, base=0.3, free=0.0).value(0.1) == 0.3
