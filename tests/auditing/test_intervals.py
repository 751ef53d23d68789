"""Intervals of the gap: what they are about, where they are open, and how they are put together."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from likewise.auditing.dual.finite_dual import Frontier, dual_curve
from likewise.auditing.inference.certificate import ConfidenceInterval
from likewise.auditing.inference.intervals import (
    gap_interval,
    mean_lower_limit,
    mean_upper_limit,
    prices_around,
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
    return curve, {p: Moments.of(frontier.gains(p)) for p in prices_around(curve, eps)}


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
    assert lam * 0.02 + frontier.gains(lam).mean() == pytest.approx(curve.gap(0.02))
    assert frontier.gains(FREE).mean() == pytest.approx(curve.gap(0.0))


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
        gains = frontier.gains(price)
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


def test_an_interval_is_plain_and_comes_back():
    found = gap_interval({FREE: Moments.of([0.0, 0.5])}, lambda_=FREE, eps=0.0, ceiling=1.0)
    assert ConfidenceInterval(**json.loads(json.dumps(asdict(found)))) == found


def test_bad_input_is_named():
    gains = {1.0: Moments.of([0.1, 0.2])}
    with pytest.raises(InputError, match="'about'"):
        gap_interval(gains, lambda_=1.0, eps=0.1, ceiling=1.0, about="sample")
    with pytest.raises(InputError, match=r"'lambda_' must be one of the prices \[1.0\]"):
        gap_interval(gains, lambda_=2.0, eps=0.1, ceiling=1.0)
    with pytest.raises(InputError, match="prices from 0 to below inf"):
        gap_interval({np.inf: gains[1.0]}, lambda_=np.inf, eps=0.1, ceiling=1.0)
    with pytest.raises(InputError, match="different numbers of people"):
        gap_interval({0.0: Moments.of([0.1]), **gains}, lambda_=1.0, eps=0.1, ceiling=1.0)
    with pytest.raises(InputError, match="'gains' is empty"):
        gap_interval({}, lambda_=1.0, eps=0.1, ceiling=1.0)
    with pytest.raises(InputError, match="'confidence'"):
        gap_interval(gains, lambda_=1.0, eps=0.1, ceiling=1.0, confidence=95)
