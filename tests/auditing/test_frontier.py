"""The frontier keeps exactly the corners, whatever the order and the grouping of the points."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.auditing.dual.finite_dual import Frontier
from likewise.core.errors import InputError, ModelError


def points(seed, n=6, m=40, *, coarse=False):
    rng = np.random.default_rng(seed)
    d2, loss = rng.exponential(size=(n, m)), rng.normal(size=(n, m))
    if coarse:  # many ties in both coordinates, many points at no distance
        d2, loss = np.floor(3 * d2) / 2, np.round(2 * loss) / 2
    base = loss[:, 0].copy()
    d2[:, 0] = 0.0
    row, column = np.divmod(np.arange(n * m), m)
    return base, row, d2, loss, column


def build(base, row, d2, loss, column):
    return Frontier.from_points(
        base_loss=base, row=row, squared_distance=d2.ravel(), loss=loss.ravel(), candidate=column
    )


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_conjugate_equals_brute_force_for_every_lambda(seed, coarse):
    base, row, d2, loss, column = points(seed, coarse=coarse)
    frontier = build(base, row, d2, loss, column)
    for lam in [0.0, *np.geomspace(1e-3, 1e4, 60)]:
        np.testing.assert_allclose(
            frontier.conjugate(lam), (loss - lam * d2).max(axis=1), rtol=1e-13, atol=1e-12
        )


@pytest.mark.parametrize("coarse", [False, True])
def test_every_corner_but_the_row_itself_is_needed(coarse):
    frontier = build(*points(5, coarse=coarse))
    row, d2, loss = frontier.row, frontier.squared_distance, frontier.loss
    for i in range(frontier.n_rows):
        d, f = d2[row == i], loss[row == i]
        assert d[0] == 0
        assert f[0] == frontier.base_loss[i]
        assert (np.diff(f) > 0).all()
        start = 1 if len(d) > 1 and d[1] == 0 else 0
        assert (np.diff(d[start:]) > 0).all()
        slopes = np.diff(f[start:]) / np.diff(d[start:])
        assert (np.diff(slopes) < 0).all()


def test_matches_a_plain_hull_of_each_row():
    base, row, d2, loss, column = points(7, n=20, m=15)
    frontier = build(base, row, d2, loss, column)
    for i in range(20):
        corners = [(0.0, base[i])]
        while True:  # gift wrapping from the row itself: the steepest step up, the longest of equals
            d0, f0 = corners[-1]
            steps = [
                ((f - f0) / (d - d0), d, f) for d, f in zip(d2[i], loss[i], strict=True) if d > d0 and f > f0
            ]
            if not steps:
                break
            corners.append(max(steps)[1:])
        mine = slice(frontier.indptr[i], frontier.indptr[i + 1])
        np.testing.assert_array_equal(frontier.squared_distance[mine], [d for d, _ in corners])
        np.testing.assert_array_equal(frontier.loss[mine], [f for _, f in corners])


def test_candidates_name_their_points():
    base, row, d2, loss, column = points(1)
    frontier = build(base, row, d2, loss, column)
    moved = frontier.candidate >= 0
    where = frontier.row[moved], frontier.candidate[moved]
    np.testing.assert_array_equal(d2[where], frontier.squared_distance[moved])
    np.testing.assert_array_equal(loss[where], frontier.loss[moved])


def test_order_of_points_and_rows_does_not_matter():
    base, row, d2, loss, column = points(2, n=9)
    whole = build(base, row, d2, loss, column)
    shuffle = np.random.default_rng(0).permutation(len(row))
    again = Frontier.from_points(
        base_loss=base,
        row=row[shuffle],
        squared_distance=d2.ravel()[shuffle],
        loss=loss.ravel()[shuffle],
        candidate=column[shuffle],
    )
    order = np.random.default_rng(1).permutation(9)
    parts = [build(base[[i]], np.zeros(40, int), d2[i], loss[i], np.arange(40)) for i in order]
    for other in (again, Frontier.stack(parts).take(np.argsort(order))):
        for name in ("indptr", "squared_distance", "loss", "candidate"):
            np.testing.assert_array_equal(getattr(whole, name), getattr(other, name))


def test_merge_is_the_frontier_of_all_points():
    base, row, d2, loss, column = points(3, coarse=True)
    left, right = column < 17, column >= 17
    halves = [
        Frontier.from_points(
            base_loss=base,
            row=row[s],
            squared_distance=d2.ravel()[s],
            loss=loss.ravel()[s],
            candidate=column[s] - o,
        )
        for s, o in ((left, 0), (right, 17))
    ]
    merged, whole = halves[0].merge(halves[1], offset=17), build(base, row, d2, loss, column)
    np.testing.assert_array_equal(merged.indptr, whole.indptr)
    np.testing.assert_array_equal(merged.squared_distance, whole.squared_distance)
    np.testing.assert_array_equal(merged.loss, whole.loss)


def test_best_is_the_nearest_of_equals_and_attains_the_conjugate():
    frontier = build(*points(4))
    for lam in (0.0, 0.3, 5.0, 1e6):
        best = frontier.best(lam)
        np.testing.assert_array_equal(
            frontier.loss[best] - lam * frontier.squared_distance[best], frontier.conjugate(lam)
        )
    tie = Frontier.from_points(base_loss=[0.0], row=[0], squared_distance=[1.0], loss=[2.0], candidate=[3])
    assert tie.candidate[tie.best(2.0)].tolist() == [-1]


def test_a_long_staircase_of_one_row_is_pruned_to_its_chord():
    d = np.arange(1.0, 2001.0)
    frontier = Frontier.from_points(
        base_loss=[0.0], row=np.zeros(2000, int), squared_distance=d, loss=d**2, candidate=np.arange(2000)
    )
    assert frontier.candidate.tolist() == [-1, 1999]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_losses_that_are_not_finite_raise(bad):
    with pytest.raises(ModelError, match="not finite"):
        Frontier.from_points(base_loss=[0.0], row=[0], squared_distance=[1.0], loss=[bad], candidate=[0])
    with pytest.raises(ModelError, match="not finite"):
        Frontier.from_points(base_loss=[bad], row=[], squared_distance=[], loss=[], candidate=[])


@pytest.mark.parametrize("distance", [-1.0, np.nan])
def test_distances_must_be_finite_and_not_negative(distance):
    with pytest.raises(InputError, match="squared_distance"):
        Frontier.from_points(base_loss=[0.0], row=[0], squared_distance=[distance], loss=[1.0], candidate=[0])


def test_other_rows_cannot_be_merged():
    one = Frontier.from_points(base_loss=[0.0], row=[], squared_distance=[], loss=[], candidate=[])
    two = Frontier.from_points(base_loss=[1.0], row=[], squared_distance=[], loss=[], candidate=[])
    with pytest.raises(InputError, match="not of the same rows"):
        one.merge(two)
    with pytest.raises(InputError, match="row"):
        Frontier.from_points(base_loss=[0.0], row=[1], squared_distance=[1.0], loss=[1.0], candidate=[0])
