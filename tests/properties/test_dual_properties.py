"""Whatever the points are: V is concave and non-decreasing, weak duality holds, and the map is affordable."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st

from likewise.auditing.dual.finite_dual import Frontier, dual_curve, solve_dual

number = st.floats(0, 1e3, allow_nan=False, allow_subnormal=False)
tidy = st.integers(0, 8).map(float)  # many ties and zeros
point = st.tuples(st.integers(0, 3), st.one_of(number, tidy), st.one_of(number, tidy))


def dual_objective(frontier, lam, eps):
    """λε + mean_i max_j (loss_ij − λ d²_ij), which is at least V(ε) for every λ ≥ 0."""
    return (lam * eps if lam > 0 else 0.0) + frontier.conjugate(lam).mean()


@st.composite
def frontiers(draw):
    base = draw(st.lists(st.one_of(number, tidy), min_size=4, max_size=4))
    points = draw(st.lists(point, max_size=25))
    row, d2, loss = zip(*points, strict=True) if points else ((), (), ())
    built = Frontier.from_points(
        base_loss=base, row=row, squared_distance=d2, loss=loss, candidate=range(len(points))
    )
    return built, np.array(base), np.array(row, int), np.array(d2), np.array(loss)


@settings(max_examples=100, deadline=None)
@given(frontiers(), st.floats(0, 100))
def test_conjugate_is_the_maximum_over_all_points(given_points, lam):
    frontier, base, row, d2, loss = given_points
    worst = base.copy()
    np.maximum.at(worst, row, loss - lam * d2)
    np.testing.assert_allclose(frontier.conjugate(lam), worst, rtol=1e-9, atol=1e-9)


@settings(max_examples=100, deadline=None)
@given(frontiers())
def test_curve_is_concave_and_does_not_fall(given_points):
    curve = dual_curve(given_points[0])
    assert (np.diff(curve.values) >= 0).all()
    assert (np.diff(curve.slopes) <= 0).all()
    assert curve.values[0] >= curve.base_loss
    a, b = np.meshgrid(curve.eps, curve.eps)
    chord = (curve.value(a.ravel()) + curve.value(b.ravel())) / 2
    assert (curve.value((a + b).ravel() / 2) >= chord - 1e-9 * (1 + np.abs(chord))).all()


@settings(max_examples=100, deadline=None)
@given(frontiers(), st.one_of(st.floats(0, 1e3), st.just(np.inf)), st.floats(0, 1e3))
def test_weak_and_strong_duality(given_points, eps, lam):
    frontier = given_points[0]
    solution = solve_dual(frontier, eps)
    slack = 1e-9 * (1 + abs(solution.value))
    assert dual_objective(frontier, lam, eps) >= solution.value - slack
    at_best = dual_objective(frontier, solution.lambda_, eps)
    assert abs(at_best - solution.value) <= slack + 1e-9 * solution.lambda_ * min(eps, 1e6)
    assert solution.transport <= eps * (1 + 1e-9) + 1e-12
    assert frontier.squared_distance[solution.corner].mean() <= solution.transport * (1 + 1e-9) + 1e-12
