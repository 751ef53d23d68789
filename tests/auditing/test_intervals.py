"""Intervals of the gap: what they are about, where they are open, and how they are put together."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from scipy import stats

from likewise.auditing.dual.finite_dual import Frontier, dual_curve
from likewise.auditing.inference.certificate import Bound, ConfidenceInterval
from likewise.auditing.inference.intervals import (
    frontier_gains,
    gap_interval,
    halves,
    mean_lower_limit,
    mean_upper_limit,
    population_interval,
    prices_around,
    share_interval,
    split_interval,
)
from likewise.core.errors import InputError
from likewise.core.exact_sum import Moments

FREE = np.inf


def line_frontier(place, people, pool):
    """Loss = place on a line; anybody may be moved to the place of anybody in the pool."""
    row, to = (part.ravel() for part in np.meshgrid(np.arange(len(people)), pool, indexing="ij"))
    return Frontier.from_points(
        base_loss=place[people],
        row=row,
        squared_distance=(place[people[row]] - place[to]) ** 2,
        loss=place[to],
        candidate=to,
    )


@pytest.fixture
def frontier():
    place = np.random.default_rng(0).uniform(size=60)
    return line_frontier(place, np.arange(60), np.arange(60))


def summaries(frontier, eps):
    curve = dual_curve(frontier)
    return curve, {p: Moments.of(frontier_gains(frontier, p)) for p in prices_around(curve, eps)}


def test_prices_hold_the_one_of_the_audit_and_its_neighbours(frontier):
    curve = dual_curve(frontier)
    for eps in (1e-4, 0.01, 0.1, 10.0):
        prices = prices_around(curve, eps)
        assert float(curve.lambda_(eps)) in prices
        assert prices[0] == 0.0
        assert prices[-1] == curve.slopes[0]
        assert list(prices) == sorted(set(prices))
        assert len(prices) <= 19
    assert prices_around(curve, 0.0) == (FREE,)


def test_gains_are_those_of_the_dual(frontier):
    curve = dual_curve(frontier)
    lam = float(curve.lambda_(0.02))
    assert lam * 0.02 + frontier_gains(frontier, lam).mean() == pytest.approx(curve.gap(0.02))
    assert frontier_gains(frontier, FREE).mean() == pytest.approx(curve.gap(0.0))


def test_the_gap_has_the_smallest_lower_end_of_all_prices(frontier):
    curve, gains = summaries(frontier, 0.02)
    lam = float(curve.lambda_(0.02))
    found = gap_interval(gains, lambda_=lam, eps=0.02, ceiling=1.0)
    assert found.estimate == pytest.approx(curve.gap(0.02))
    ends = [price * 0.02 + mean_lower_limit(g, level=0.975) for price, g in gains.items()]
    assert found.low == min(ends)
    assert found.high == lam * 0.02 + mean_upper_limit(gains[lam], 1.0, level=0.975)
    assert (found.about, found.quantity, found.n) == ("given candidates", "gap", 60)
    assert "no gain of anybody exceeds 1, the upper bound of the loss" in found.notes
    wider = gap_interval(gains, lambda_=lam, eps=0.02, ceiling=1.0, confidence=0.99)
    assert wider.low < found.low < found.high < wider.high


def test_parts_in_any_order_give_the_same_interval(frontier):
    curve, whole = summaries(frontier, 0.02)
    lam = float(curve.lambda_(0.02))
    merged = {}
    for price in whole:
        gains = frontier_gains(frontier, price)
        merged[price] = Moments.of(gains[40:]).merge(Moments.of(gains[:7])).merge(Moments.of(gains[7:40]))
    choices = {"lambda_": lam, "eps": 0.02, "ceiling": 1.0}
    assert gap_interval(merged, **choices) == gap_interval(whole, **choices)


def test_none_seen_is_not_none():
    nobody = {FREE: Moments.of(np.zeros(100))}
    found = gap_interval(nobody, lambda_=FREE, eps=0.0, ceiling=4.0, about="population")
    assert (found.estimate, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(4.0 * (1 - 0.025 ** (1 / 100)))
    assert not found.open


def test_without_a_ceiling_the_upper_end_is_open_and_says_so():
    found = gap_interval({FREE: Moments.of([0.0, 0.5])}, lambda_=FREE, eps=0.0, ceiling=None)
    assert found.open
    assert found.high == np.inf
    assert "the loss has no upper bound" in found.notes[0]
    # All of the confidence is the lower end's.
    assert found.low == mean_lower_limit(Moments.of([0.0, 0.5]), level=0.95)
    assert "no upper end" in str(found)


class TestPopulation:
    def test_a_lower_limit_alone_is_one_sided(self, frontier):
        _, gains = summaries(frontier, 0.02)
        found = population_interval(gains, eps=0.02)
        assert found.low == min(p * 0.02 + mean_lower_limit(g, level=0.95) for p, g in gains.items())
        assert found.high == np.inf
        assert found.about == "population"
        assert "outside the candidates" in found.notes[0]

    def test_a_bound_closes_it_and_takes_its_share_of_the_confidence(self, frontier):
        _, gains = summaries(frontier, 0.02)
        bound = Bound(value=0.9, gap=0.4, eps=0.02, n=30, method="dual", confidence=0.975, about="population")
        found = population_interval(gains, eps=0.02, bound=bound)
        assert found.high == 0.4
        assert found.low == min(p * 0.02 + mean_lower_limit(g, level=0.975) for p, g in gains.items())

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"about": "sample"}, "a Bound of the population"),
            ({"eps": 0.3}, "at eps=0.3"),
            ({"confidence": 0.95}, "Make it at 0.975"),
        ],
    )
    def test_bounds_that_do_not_fit_are_refused(self, frontier, change, message):
        _, gains = summaries(frontier, 0.02)
        good = {"eps": 0.02, "confidence": 0.975, "about": "population"}
        with pytest.raises(InputError, match=message):
            population_interval(
                gains, eps=0.02, bound=Bound(value=0.9, gap=0.4, n=30, method="dual", **{**good, **change})
            )

    def test_a_split_keeps_people_and_candidates_apart(self):
        place = np.random.default_rng(1).uniform(size=101)
        asked = []

        def search(people, pool):
            asked.append((people, pool))
            return line_frontier(place, people, pool)

        found = split_interval(101, search=search, eps=0.02, random_state=5)
        first, second = halves(101, 5)
        assert [tuple(map(list, pair)) for pair in asked] == [
            (list(first), list(first)),
            (list(second), list(first)),
        ]
        assert (found.n, found.about) == (51, "population")
        assert 0 < found.low < found.estimate


def test_shares_are_exact():
    found = share_interval(3, 50, about="given candidates", confidence=0.9)
    expected = stats.binomtest(3, 50).proportion_ci(0.9)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert (found.quantity, found.about, found.estimate) == ("share", "given candidates", 0.06)


def test_an_interval_is_plain_and_comes_back():
    found = share_interval(3, 50)
    assert ConfidenceInterval(**json.loads(json.dumps(asdict(found)))) == found


def test_bad_input_is_named():
    gains = {1.0: Moments.of([0.1, 0.2])}
    with pytest.raises(InputError, match="'about'"):
        gap_interval(gains, lambda_=1.0, eps=0.1, ceiling=1.0, about="sample")
    with pytest.raises(InputError, match=r"'lambda_' must be one of the prices \[1.0\]"):
        gap_interval(gains, lambda_=2.0, eps=0.1, ceiling=1.0)
    with pytest.raises(InputError, match="prices from 0 to below inf"):
        population_interval({np.inf: gains[1.0]}, eps=0.1)
    with pytest.raises(InputError, match="different numbers of people"):
        population_interval({0.0: Moments.of([0.1]), **gains}, eps=0.1)
    with pytest.raises(InputError, match="'gains' is empty"):
        population_interval({}, eps=0.1)
    with pytest.raises(InputError, match="'confidence'"):
        gap_interval(gains, lambda_=1.0, eps=0.1, ceiling=1.0, confidence=95)
