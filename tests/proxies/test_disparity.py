"""Differences between groups known by probability: references by hand and by EM, worlds with a known truth, odd input."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.proxies.rates import Events, IndependentNames, known_rates, weighted_rates


def world(seed=0, n=6000, groups=3):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(groups, 0.4), n)
    group = (rng.uniform(size=(n, 1)) > p.cumsum(1)).sum(1)
    return rng, p, group


def by_em(happened, p, steps=3000):
    """Rates that make the outcomes most likely if they depend on the group alone: expectation, maximisation."""
    rates = np.full(p.shape[1], 0.5)
    for _ in range(steps):
        chance = np.where(happened[:, None] > 0, rates, 1 - rates) * p
        chance /= chance.sum(1, keepdims=True)
        rates = happened @ chance / chance.sum(0)
    return rates


def test_weighted_rates_by_hand():
    p = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    rates = weighted_rates(Events(np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 1.0])), p)
    np.testing.assert_allclose(rates.values, [1.1 / 1.6, 0.9 / 1.4])
    np.testing.assert_allclose(rates.influence.sum(0), 0.0, atol=1e-12)


def test_the_corrected_rates_are_those_of_em():
    rng, p, group = world(n=3000)
    happened = (rng.uniform(size=len(p)) < np.array([0.6, 0.4, 0.5])[group]) * 1.0
    model = IndependentNames(Events(happened, np.ones(len(p))), p, None)
    # The pull of half a person moves them by less than this.
    np.testing.assert_allclose(model.rates().values, by_em(happened, p), atol=1e-3)
    np.testing.assert_allclose(model.posterior().sum(1), 1.0)


def test_the_standard_errors_are_those_of_the_bootstrap():
    rng, p, group = world(1, n=1500, groups=2)
    events = Events((rng.uniform(size=len(p)) < np.array([0.6, 0.4])[group]) * 1.0, np.ones(len(p)))
    gaps = []
    for _ in range(60):
        rows = rng.integers(0, len(p), len(p))
        again = IndependentNames(Events(events.happened[rows], events.counted[rows]), p[rows], None)
        gaps.append(float(np.subtract(*again.rates().values)))
    found = IndependentNames(events, p, None).rates()
    error = np.sqrt(((found.influence[:, 0] - found.influence[:, 1]) ** 2).sum())
    assert error == pytest.approx(np.std(gaps), rel=0.3)


@pytest.mark.parametrize(
    ("told", "size", "rates", "by_name"),
    [
        ((2, 50), 23, (0.1, 0.4), False),
        ((2, 50), 23, (0.9, 0.5), False),
        # A rate of 1 was taken to be as sure as that of everybody who may be of the group: it held in .89.
        ((2, 18), 30, (0.95, 0.5), False),
        # Two rates of one and the same person of whom it happened were taken to be correlated: it held in .78.
        ((0.03, 0.27), 30, (0.03, 0.003), True),
        # A rate that may as well be 1 left the other half of its interval: the ratio held in .92.
        ((0.006, 0.144), 6, (0.95, 0.5), False),
    ],
)
def test_the_interval_of_a_small_group_holds(told, size, rates, by_name):
    """Half of the people are counted, as in a true positive rate."""
    rng = np.random.default_rng(0)
    n, rates = int(size * sum(told) / told[0]), np.array(rates)
    names = rng.beta(*told, 100_000)
    truth = rates
    if by_name:
        chance = names * rates[0] + (1 - names) * rates[1]
        truth = np.array([names @ chance / names.sum(), (1 - names) @ chance / (1 - names).sum()])
    held = []
    for _ in range(100):
        p = rng.beta(*told, n)
        first = p if by_name else (rng.uniform(size=n) < p) * 1.0
        happened = rng.uniform(size=n) < first * rates[0] + (1 - first) * rates[1]
        counted = (rng.uniform(size=n) < 0.5) * 1.0
        events, both = Events(happened * counted, counted), np.column_stack([p, 1 - p])
        found = weighted_rates(events, both) if by_name else IndependentNames(events, both, None).rates()
        truths = truth[0], truth[0] - truth[1], truth[0] / truth[1]
        ends = found.rate(0, 0.95), found.difference(0, 1, 0.95), found.ratio(0, 1, 0.95)
        # There is no ratio to what never happened.
        held.append(
            [np.isnan(one.low) or one.low <= true <= one.high for one, true in zip(ends, truths, strict=True)]
        )
    assert np.mean(held, axis=0).min() >= 0.93


def test_error_rates_are_corrected_too():
    rng, p, group = world(2, n=5000, groups=2)
    y = (rng.uniform(size=len(p)) < np.array([0.3, 0.6])[group]).astype(int)
    decided = (rng.uniform(size=len(p)) < np.where(y == 1, np.array([0.9, 0.6])[group], 0.2)).astype(int)
    found = lw.disparity_bounds(decided, pd.DataFrame(p, columns=["a", "b"]), y=y, reference="a")
    assert list(dict.fromkeys(found.table["measure"])) == [
        "selection",
        "error",
        "true positive",
        "false positive",
    ]
    one = found.figure("b", "difference", "true positive")
    truth = decided[(group == 1) & (y == 1)].mean() - decided[(group == 0) & (y == 1)].mean()
    assert one.corrected.low < truth < one.corrected.high
    assert one.weighted.value > one.corrected.value
    assert one.outer_low < one.low < truth < one.high < one.outer_high


def test_an_effect_of_the_place_is_allowed_for_if_places_are_known():
    rng, p, _ = world(3, n=8000, groups=2)
    area = np.clip(0.5 * p[:, [0]] + 0.5 * rng.beta(2, 2, (len(p), 1)), 0, 1)
    area = np.hstack([area, 1 - area])
    group = (rng.uniform(size=len(p)) > p[:, 0]).astype(int)
    chance = 1 / (1 + np.exp(-(np.array([0.0, -0.6])[group] + 2.0 * (area[:, 0] - 0.5))))
    decided = (rng.uniform(size=len(p)) < chance).astype(int)
    plain = lw.group_probabilities(pd.DataFrame(p, columns=["a", "b"]))
    truth = decided[group == 1].mean() - decided[group == 0].mean()
    without, within = (
        lw.disparity_bounds(decided, given, reference="a").figure("b", "difference").corrected
        for given in (plain, replace(plain, area=area))
    )
    assert abs(within.value - truth) < 0.03 < abs(without.value - truth)


def test_rates_from_known_people_hold_if_hardly_anything_happens():
    """What others add is judged by their names: judged by the outcomes of a few, rates held in .8."""
    held = []
    rng, p, group = world(2, n=2000, groups=2)
    for _ in range(200):
        happened = (rng.uniform(size=len(p)) < np.array([0.02, 0.03])[group]) * 1.0
        rows = rng.choice(len(p), 200, replace=False)
        found = known_rates(Events(happened, np.ones(len(p))), p, group[rows], rows)
        ends = found.rate(0, 0.95), found.rate(1, 0.95), found.difference(0, 1, 0.95)
        held.append(
            [one.low <= true <= one.high for one, true in zip(ends, (0.02, 0.03, -0.01), strict=True)]
        )
    assert np.mean(held, axis=0).min() >= 0.93


def test_people_of_known_group_give_rates_that_assume_nothing():
    rng, p, group = world(4, n=6000, groups=2)
    # Of one group, those whose names tell it are treated worse: neither assumption holds.
    chance = np.where(group == 0, 0.7 - 0.5 * p[:, 0], 0.6)
    happened = (rng.uniform(size=len(p)) < chance) * 1.0
    rows = rng.choice(len(p), 1500, replace=False)
    known = np.full(len(p), None, object)
    known[rows] = np.array(["a", "b"], object)[group[rows]]
    found = lw.disparity_bounds(happened, pd.DataFrame(p, columns=["a", "b"]), known=known, reference="b")
    gap = found.figure("a", "difference")
    truth = happened[group == 0].mean() - happened[group == 1].mean()
    assert gap.known.low < truth < gap.known.high
    assert not gap.corrected.low < truth < gap.corrected.high
    assert any("does not hold" in one for one in found.findings)
    alone = known_rates(
        Events(happened, np.ones(len(p))), np.full_like(p, 0.5), group[rows], rows
    ).difference(0, 1, 0.95)
    assert gap.known.high - gap.known.low < alone.high - alone.low < gap.outer_high - gap.outer_low


def test_probabilities_that_do_not_fit_the_known_people_are_said():
    rng, p, group = world(5, n=2000, groups=2)
    wrong = np.column_stack([p[:, 0] ** 3, 1 - p[:, 0] ** 3])
    known = np.array(["a", "b"], object)[group]
    decided = rng.integers(0, 2, len(p))
    found = lw.disparity_bounds(decided, pd.DataFrame(wrong, columns=["a", "b"]), known=known)
    assert any("do not fit" in one for one in found.findings)
    right = lw.disparity_bounds(decided, pd.DataFrame(p, columns=["a", "b"]), known=known)
    assert not right.findings


def test_what_never_happens_to_anybody_fails_no_assumption():
    """A corrected gap of −1e−7 was said to differ from a known one of 0."""
    _, p, group = world(6, n=800, groups=2)
    known = np.where(np.arange(800) % 2 == 0, np.array(["a", "b"], object)[group], None)
    y = np.arange(800) % 2
    found = lw.disparity_bounds(y, pd.DataFrame(p, columns=["a", "b"]), y=y, known=known)
    assert not found.findings
    ratios = found.table[(found.table["kind"] == "ratio") & (found.table["measure"] == "false positive")]
    assert ratios["corrected"].isna().all()


def test_four_fifths_is_decided_by_bounds_only():
    p = pd.DataFrame({"a": [1.0, 0.0] * 500, "b": [0.0, 1.0] * 500})
    sure = lw.disparity_bounds(np.array([0, 1] * 500), p, reference="b").figure("a", "ratio")
    assert (sure.verdict, sure.high) == ("below", 0.0)
    # A tenth of those who may be a, nine tenths of the others.
    vague = pd.DataFrame({"a": [0.6, 0.4] * 2000, "b": [0.4, 0.6] * 2000})
    decided = np.array([0, 1] * 9 + [1, 0]).tolist() * 200
    open_ = lw.disparity_bounds(decided, vague, reference="b").figure("a", "ratio")
    assert open_.verdict == "open"
    assert open_.weighted.high < 0.8, "the weighted estimate alone would have said below"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"decisions": [1, 0, 1]}, "lengths differ"),
        ({"decisions": [1, None, 0, 1]}, "1 missing"),
        ({"favourable": "yes"}, "one of the decisions"),
        ({"reference": "c"}, "one of"),
        ({"known": ["c", None, None, None]}, "one of"),
        ({"confidence": 1.0}, "confidence"),
    ],
)
def test_what_cannot_be_used_is_said(change, words):
    given = {
        "decisions": [1, 0, 1, 0],
        "probabilities": pd.DataFrame({"a": [0.5] * 4, "b": [0.5] * 4}),
    } | change
    with pytest.raises(lw.InputError, match=words):
        lw.disparity_bounds(given.pop("decisions"), given.pop("probabilities"), **given)
