"""Sharp bounds of the rates of groups that are known by probability only (Kallus, Mao and Zhou 2022).

Known are the joint distribution of what happened and p, and p as P(group | names and places); nothing is assumed about what
happened given the group and p. For a level z of p, with q and o the chances there of "happened" and of "counted, but did
not happen", the mass of "happened, group a" may be anything from max(0, p_a + q − 1) to min(q, p_a), that of the others from
max(0, p_a + o − 1) to min(o, p_a). The rate of a group is largest if the first is largest and the second least. Both are
attained at once, also together with the opposite ends of any other group (`tests/proxies/test_bounds.py` asks a linear
program), so these ends are sharp for rates, differences and ratios of two groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeRegressor

from likewise.core.checks import FloatArray
from likewise.core.intervals import least_mean
from likewise.proxies.estimates import Events


@dataclass(frozen=True)
class Ends:
    """Least and largest rate of each group, and the same with sampling error; each (k,)."""

    low: FloatArray
    high: FloatArray
    outer_low: FloatArray
    outer_high: FloatArray


def rate_bounds(events: Events, p: FloatArray, *, confidence: float) -> Ends:
    """Bounds of the rates, and outer limits that hold for each end of each rate with (1 + confidence) / 2.

    Which of the two sides of a minimum is the less is judged for each person from other people (five folds of a
    regression tree). A wrong judgement makes the bounds wider on average, never narrower, so the means that
    are taken need no correction, and their limits are those of means of bounded numbers.
    """
    happened, other = events.happened, events.counted - events.happened
    q, o = _chances(happened, other, p)
    tail = (1.0 - confidence) / 2
    ends = np.empty((4, p.shape[1]))
    for a in range(p.shape[1]):
        most, least_other = masses(happened, other, p[:, a], q, o)
        most_other, least = masses(other, happened, p[:, a], o, q)
        ends[0, a] = 1.0 - _share(most_other, least)
        ends[1, a] = _share(most, least_other)
        ends[2, a] = 1.0 - _largest_share(most_other, least, tail)
        ends[3, a] = _largest_share(most, least_other, tail)
    ends[0], ends[1] = np.minimum(ends[0], ends[1]), np.maximum(ends[0], ends[1])
    ends[2], ends[3] = np.minimum(ends[2], ends[0]), np.maximum(ends[3], ends[1])
    return Ends(*ends)


def masses(
    happened: FloatArray, other: FloatArray, p: FloatArray, q: FloatArray, o: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Largest mass of "happened, in the group" and least mass of "counted otherwise, in the group", person by person.

    `q` and `o` only choose the side of each minimum; with q = happened and o = other these are the exact ends of a
    distribution.
    """
    return np.where(q <= p, happened, p), np.where(p + o > 1.0, p + other - 1.0, 0.0)


def _chances(happened: FloatArray, other: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    n = len(p)
    found = np.empty((n, 2))
    both = np.column_stack([happened, other])
    least = max(10, int(np.sqrt(n)))
    folds = KFold(min(5, n), shuffle=True, random_state=0)
    for train, test in folds.split(p):
        tree = DecisionTreeRegressor(min_samples_leaf=least, random_state=0)
        found[test] = tree.fit(p[train], both[train]).predict(p[test])
    return found[:, 0], found[:, 1]


def _share(part: FloatArray, rest: FloatArray) -> float:
    mass, whole = max(float(part.sum()), 0.0), max(float(part.sum()), 0.0) + max(float(rest.sum()), 0.0)
    return mass / whole if whole > 0 else 1.0


def _largest_share(part: FloatArray, rest: FloatArray, tail: float) -> float:
    """Upper limit of E part / (E part + E rest): the largest r at which E[(1 − r) part − r rest] may still be 0."""
    # (1 − r) part − r rest is at most 1; d = 1 minus it has sums that are polynomials of r.
    d, slope, n = 1.0 - part, part + rest, len(part)
    sums = float(d.sum()), float(slope.sum())
    squares = float(d @ d), 2.0 * float(d @ slope), float(slope @ slope)
    low, high = 0.0, 1.0
    for _ in range(40):
        r = (low + high) / 2
        far = least_mean(sums[0] + r * sums[1], squares[0] + r * squares[1] + r * r * squares[2], n, tail)
        low, high = (r, high) if far <= 1.0 else (low, r)
    return high
