"""Counts become figures: the same as from predictions, and intervals that cover what they are about."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from likewise.evaluation import balanced_accuracy, group_gaps
from likewise.improving.figures import expected_figures, seen_figures
from likewise.improving.tally import Spread, Tally, pooled


def random_people(random, n, lift=0.1):
    y = random.integers(2, size=n)
    group = random.integers(3, size=n)
    right = random.random(n) < 0.7 + lift * group * y
    return y, group, np.where(right, y, 1 - y)


def tally_of(y, group, decided, changed, gains):
    counts = np.zeros((3, 2, 2), dtype=int)
    np.add.at(counts, (group, y, (decided == y).astype(int)), 1)
    twins = np.array([(~changed).sum(), changed.sum()])
    return Tally(counts.sum(axis=0), {"g": counts}, twins, Spread.of(gains * 0), Spread.of(gains))


def test_figures_are_those_of_the_predictions():
    random = np.random.default_rng(0)
    y, group, decided = random_people(random, 900)
    gains = random.exponential(size=900)
    found = {m.name: m for m in seen_figures(tally_of(y, group, decided, random.random(900) < 0.1, gains))}
    assert found["balanced accuracy"].value == pytest.approx(balanced_accuracy(y, decided))
    assert found["Gap_RMS g"].value == pytest.approx(group_gaps(y, decided, group).rms)
    assert found["gap at ε"].value == pytest.approx(gains.mean())
    assert list(found) == ["balanced accuracy", "changed decisions", "pure gap", "gap at ε", "Gap_RMS g"]


def test_parts_add_up_to_the_whole():
    random = np.random.default_rng(1)
    y, group, decided = random_people(random, 400)
    changed, gains = random.random(400) < 0.2, random.exponential(size=400)
    parts = [
        tally_of(y[p], group[p], decided[p], changed[p], gains[p]) for p in np.array_split(np.arange(400), 3)
    ]
    whole = tally_of(y, group, decided, changed, gains)
    for one, other in zip(seen_figures(pooled(parts)), seen_figures(whole), strict=True):
        assert one.value == pytest.approx(other.value)
    assert Tally.from_plain(whole.plain()).plain() == whole.plain()


def test_what_is_announced_holds_for_other_people():
    """Of 40 worlds at least 90% must have every figure inside: the level is 95% for all together."""
    random = np.random.default_rng(2)
    held = 0
    for world in range(40):
        n, m = 600, 200
        y, group, decided = random_people(random, n + m)
        changed, gains = random.random(n + m) < 0.03, random.exponential(size=n + m)
        rest = slice(n, None)
        announced = expected_figures(
            [tally_of(y[p], group[p], decided[p], changed[p], gains[p]) for p in np.split(np.arange(n), 3)],
            n_people=m,
            n_audited=m,
            seed=world,
        )
        seen = seen_figures(tally_of(y[rest], group[rest], decided[rest], changed[rest], gains[rest]))
        held += all(a.low <= s.value <= a.high for a, s in zip(announced, seen, strict=True))
    assert held >= 0.9 * 40


def test_what_never_happened_is_not_taken_for_impossible():
    tally = Tally(np.array([[5, 95], [5, 95]]), {}, np.array([200, 0]), Spread(200, 0, 0), Spread(200, 0, 0))
    changed = expected_figures([tally, tally], n_people=100, n_audited=100)[1]
    assert changed.low == 0.0
    assert 0.0 < changed.high < 0.1


def test_trainings_that_differ_widen_what_is_announced():
    def fold(mean):
        return Tally(
            np.array([[5, 95], [5, 95]]),
            {},
            np.array([200, 0]),
            Spread(200, 0, 0),
            Spread.of(np.full(200, mean)),
        )

    steady, shaky = (
        expected_figures([fold(0.3 - d), fold(0.3), fold(0.3 + d)], n_people=100, n_audited=100)[3]
        for d in (0, 0.1)
    )
    assert steady.high - steady.low < 1e-6
    assert shaky.low < 0.1
    assert shaky.high > 0.5


def test_no_share_above_one_is_announced():
    """Broke once: 54% to 119% of the decisions were said to change."""
    folds = [
        Tally(np.array([[5, 95], [5, 95]]), {}, np.array(twins), Spread(200, 0, 0), Spread(200, 0, 0))
        for twins in ([60, 140], [2, 198], [20, 180])
    ]
    assert expected_figures(folds, n_people=100, n_audited=100)[1].high == 1.0


def test_what_is_announced_of_one_of_many_is_wider_by_bonferroni():
    tally = Tally(
        np.array([[5, 95], [5, 95]]), {}, np.array([200, 0]), Spread(200, 0, 0), Spread(200, 60, 40)
    )
    halves = []
    for among in (1, 10):
        gap = expected_figures([tally, tally], n_people=50, n_audited=50, among=among)[3]
        level = 1 - 0.05 / (4 * among)
        # What Student's t says of the mean of 50 others, with the mean and variance of all 400.
        half = stats.t.ppf((1 + level) / 2, 399) * np.sqrt(
            pooled([tally, tally]).gap.variance * (1 / 400 + 1 / 50)
        )
        assert (gap.high - gap.low) / 2 == pytest.approx(half, rel=0.05)
        halves.append(half)
    assert halves[1] > 1.25 * halves[0]
