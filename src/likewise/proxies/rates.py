"""Rates of groups that are known by probability: estimates by three assumptions, and sharp bounds that assume nothing.

The estimates are weighted, under independence of the names, and from people whose group is known. Each brings the influence
of every person on it, so that differences, ratios and comparisons between estimates have standard errors that allow for
everything they share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtr, ndtri, stdtrit
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.tree import DecisionTreeRegressor

from likewise.core.checks import FloatArray, IntArray
from likewise.core.intervals import Measure, least_mean, share_limits


@dataclass(frozen=True)
class Events:
    """Who is counted in a rate, and of whom it happened: a rate is P(happened | counted, group)."""

    happened: FloatArray
    counted: FloatArray


@dataclass(frozen=True)
class Rates:
    """Rates of the groups, (k,), and the influence of each person on them, (n, k); NaN if the rate of a group is not identified.

    `people` is how many people each rate can rest upon at most, (k,), `alike` the covariance of the rates if everybody's
    outcome were equally likely, (k, k). Of a small group of which little is known, the distribution is not normal: a rate
    has the exact limits of a share of as many people as its standard error corresponds to (Korn and Graubard 1998),
    differences and ratios combine these (after Zou and Donner 2008). What is seen of errors and correlations is not trusted
    beyond `alike`: both look small, or certain, if hardly anything happened, or to hardly anybody.
    """

    values: FloatArray
    influence: FloatArray
    people: FloatArray
    alike: FloatArray

    def rate(self, group: int, confidence: float) -> Measure:
        """The rate of a group with its interval."""
        low, high = self._limits(group, ndtri([(1 - confidence) / 2, (1 + confidence) / 2]), confidence)
        return Measure("", self._value(group), float(low), float(high), _METHOD)

    def difference(self, group: int, other: int, confidence: float) -> Measure:
        """The rate of a group minus that of another."""
        low, high = self._apart(group, other, confidence, np.positive)
        return Measure("", self._value(group) - self._value(other), low, high, _METHOD)

    def ratio(self, group: int, other: int, confidence: float) -> Measure:
        """The rate of a group over that of another; the interval is made on the log scale."""
        mine, theirs = self._value(group), self._value(other)
        if not min(mine, theirs) > _NEVER:
            return Measure("", np.nan, np.nan, np.nan)
        low, high = np.exp(self._apart(group, other, confidence, np.log)).tolist()
        return Measure("", mine / theirs, low, high, _METHOD)

    def _value(self, group: int) -> float:
        return min(max(float(self.values[group]), 0.0), 1.0)

    def _limits(self, group: int, at: FloatArray, confidence: float) -> FloatArray:
        """Limits of a rate that lie so many standard normal deviations off, on people worth as many as at `confidence`."""
        rate = self._value(group)
        people, error = float(self.people[group]), standard_error(self.influence[:, group])
        # A rate of 0 or 1 tells as much as one a person away from it.
        inside = (rate * people + 1) / (people + 2)
        people = min(people, inside * (1 - inside) / max(float(self.alike[group, group]), 1e-300))
        if error > 0 and 0 < rate < 1:
            people = min(people, rate * (1 - rate) / error**2)
        tail = (1.0 - confidence) / 2
        people *= float(ndtri(tail) / stdtrit(max(people - 1.0, 1.0), tail)) ** 2
        low, high = share_limits(rate * people, people, confidence=1 - 2 * ndtr(-np.abs(at)))
        return np.where(at < 0, low, high)

    def _apart(self, group: int, other: int, confidence: float, scale: Any) -> tuple[float, float]:
        """Ends of the difference of two rates on a scale: the farthest of all pairs that are jointly as likely.

        Where limits lie in proportion to the deviations this is Zou and Donner's rule. Near 0 or 1 they crowd, and a rate
        that may as well be 1 leaves the other rate its whole interval.
        """
        angle, together = np.linspace(0, 2 * np.pi, 73), self._together(group, other)
        reach = float(ndtri((1 + confidence) / 2))
        mine = reach * np.cos(angle)
        theirs = together * mine + np.sqrt(max(1 - together**2, 0.0)) * reach * np.sin(angle)
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = scale(self._limits(group, mine, confidence)) - scale(
                self._limits(other, theirs, confidence)
            )
        return float(np.nanmin(apart)), float(np.nanmax(apart))

    def _together(self, group: int, other: int) -> float:
        """Correlation of two rates, the lower of two: what they share makes a difference surer."""
        pair = self.influence[:, [group, other]]
        return min(
            _correlation(pair.T @ pair), _correlation(self.alike[np.ix_([group, other], [group, other])])
        )


def _correlation(covariance: FloatArray) -> float:
    sizes = float(np.sqrt(np.prod(np.diag(covariance))))
    return float(covariance[0, 1]) / sizes if sizes > 0 else 0.0


_METHOD = "combined"
# A rate below this is of something that never happened; a fit comes near 0 without reaching it.
_NEVER = 1e-6


def standard_error(influence: FloatArray) -> float:
    """Of an estimate, from the influence of each person."""
    return float(np.sqrt((influence**2).sum()))


def _variance(events: Events) -> float:
    """Of everybody's outcome if it were equally likely."""
    share = (events.happened.sum() + 0.5) / (events.counted.sum() + 1.0)
    return float(share * (1.0 - share))


def weighted_rates(events: Events, p: FloatArray) -> Rates:
    """Everybody counts in every group by their probability: right if the outcome is independent of the group given p."""
    people, overlap = events.counted @ p, (p * events.counted[:, None]).T @ p
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = events.happened @ p / people
        off = p * (events.happened[:, None] - rates * events.counted[:, None])
        # As many people as equal weights would need to be as sure.
        alike = _variance(events) * overlap / np.outer(people, people)
        return Rates(rates, off / people, people**2 / np.diag(overlap), alike)


class IndependentNames:
    """Rates that make the outcomes most likely if names tell nothing of the outcome beyond the group (and the place).

    A multinomial logistic model of what happened given group and place, of which the group is known by probability: the
    assumption of BIRDiE (McCartan et al. 2025), with the shares of the groups in the area as the place.
    """

    def __init__(self, events: Events, p: FloatArray, area: FloatArray | None) -> None:
        states = np.where(events.counted > 0, np.where(events.happened > 0, 1, 0), 2)
        self.states = 3 if (states == 2).any() else 2
        self.eye = np.eye(self.states)[states]
        self.p, self.events = p, events
        # One share follows from the others; centred, so that the intercepts are those of the average place.
        place = np.zeros((len(p), 0)) if area is None else area[:, 1:] - area[:, 1:].mean(0)
        self.place = place[:, place.std(0) > 1e-6]
        start = np.zeros((self.states - 1, p.shape[1] + self.place.shape[1]))
        options: Any = {"maxiter": 500}
        self.fitted = minimize(self._loss, start.ravel(), jac=True, method="L-BFGS-B", options=options).x

    def _chances(self, packed: FloatArray) -> FloatArray:
        """P(state | group, place), (n, k, states)."""
        k = self.p.shape[1]
        weights = packed.reshape(self.states - 1, -1)
        odds = np.ones((len(self.p), k, self.states))
        for state, row in enumerate(weights, start=1):
            # Beyond this the chances do not change any more.
            odds[:, :, state] = np.exp(np.clip(row[:k] + (self.place @ row[k:])[:, None], -200.0, 200.0))
        return np.asarray(odds / odds.sum(axis=2, keepdims=True))

    def _owned(self, chances: FloatArray) -> tuple[FloatArray, FloatArray]:
        """P(group | names, place, state), (n, k), and the chance of the state, (n,)."""
        joint = self.p * np.matmul(chances, self.eye[:, :, None])[:, :, 0]
        seen = np.maximum(joint.sum(1), 1e-300)
        return joint / seen[:, None], seen

    def posterior(self) -> FloatArray:
        """P(group | names, place, what happened) under the assumption, (n, k)."""
        return self._owned(self._chances(self.fitted))[0]

    def _slopes(self, chances: FloatArray, owned: FloatArray) -> FloatArray:
        """Gradient of each person's loss, (n, parameters)."""
        parts = []
        for state in range(1, self.states):
            off = owned * (chances[:, :, state] - self.eye[:, [state]])
            parts += [off, off.sum(1)[:, None] * self.place]
        return np.concatenate(parts, axis=1)

    def _loss(self, packed: FloatArray) -> tuple[float, FloatArray]:
        chances = self._chances(packed)
        owned, seen = self._owned(chances)
        value, pull = self._penalty(packed)
        slope = self._slopes(chances, owned).sum(0) + pull
        return (value - float(np.log(seen).sum())) / len(self.p), slope / len(self.p)

    def _penalty(self, packed: FloatArray) -> tuple[float, FloatArray]:
        # Half a pseudo-person pulls each group towards the others: a group of few people keeps finite rates.
        k = self.p.shape[1]
        weights = packed.reshape(self.states - 1, -1)
        off = np.zeros_like(weights)
        off[:, :k] = weights[:, :k] - weights[:, :k].mean(1, keepdims=True)
        return 0.125 * float((off**2).sum()), 0.25 * off.ravel()

    def _values(self, packed: FloatArray) -> FloatArray:
        other, happened = (self.p * self._chances(packed)[:, :, state] for state in (0, 1))
        return np.asarray(happened.sum(0) / (happened + other).sum(0))

    def rates(self) -> Rates:
        """The rates, with the sandwich covariance of the fitted model (White 1982)."""
        n, packed = len(self.p), self.fitted
        steps = 1e-4 * np.eye(len(packed))
        bend = np.stack([(self._loss(packed + h)[1] - self._loss(packed - h)[1]) / 2e-4 for h in steps])
        slope = np.stack([(self._values(packed + h) - self._values(packed - h)) / 2e-4 for h in steps])
        chances = self._chances(packed)
        off = self._slopes(chances, self._owned(chances)[0])
        moved = -off @ np.linalg.pinv((bend + bend.T) / 2) / n
        values = self._values(packed)
        counted = self.p * (chances[:, :, 0] + chances[:, :, 1])
        direct = (self.p * chances[:, :, 1] - values * counted) / counted.sum(0)
        return Rates(values, direct + moved @ slope, counted.sum(0), self._alike())

    def _alike(self) -> FloatArray:
        """By least squares on group and place, at the mean place of each group."""
        mine = self.p * self.events.counted[:, None]
        design = np.hstack([self.p, self.place])
        # What cannot be told apart has no end of variance.
        gram = (design * self.events.counted[:, None]).T @ design + 1e-6 * np.eye(design.shape[1])
        at = np.hstack(
            [np.eye(self.p.shape[1]), mine.T @ self.place / np.maximum(mine.sum(0), 1e-6)[:, None]]
        )
        return np.asarray(_variance(self.events) * at @ np.linalg.inv(gram) @ at.T)


# Known people of a group who are counted, for a rate of theirs.
_LEAST_KNOWN = 10


def known_rates(events: Events, p: FloatArray, codes: IntArray, rows: IntArray) -> Rates:
    """Rates from people whose group is known, who are a random sample; everybody else only makes them more precise.

    Prediction-powered means (Angelopoulos et al. 2023): `p` may be any guess of the group, right or wrong. Its weight gives the
    least variance if outcomes are equally likely for all, so that it does not rest on the outcomes of few; neither does how
    many people a rate is worth. NaN for a group with fewer than 10 known people who are counted.
    """
    n, k = p.shape
    rest = np.setdiff1d(np.arange(n), rows)
    eye = np.eye(k)[codes]
    happened, counted = events.happened, events.counted
    values, influence, people = np.full(k, np.nan), np.full((n, k), np.nan), np.full(k, np.nan)
    for a in range(k):
        own = eye[:, a]
        if own @ counted[rows] < _LEAST_KNOWN:
            continue
        guess, elsewhere = p[rows, a], p[rest, a]
        power = 0.0
        if len(rest) and (guess * counted[rows]).any():
            fit = float((own * guess) @ counted[rows] / (guess**2 @ counted[rows]))
            power = fit / (1.0 + len(rows) / len(rest))
        means = [
            float(np.mean((own - power * guess) * what[rows]))
            + (power * float(np.mean(elsewhere * what[rest])) if power else 0.0)
            for what in (happened, counted)
        ]
        if means[1] <= 0:
            power, means = 0.0, [float(np.mean(own * what[rows])) for what in (happened, counted)]
        values[a] = rate = min(max(means[0] / means[1], 0.0), 1.0)
        off, mine = happened - rate * counted, np.zeros(n)
        mine[rows] = _centred((own - power * guess) * off[rows]) / len(rows)
        worth = float((own - power * guess) ** 2 @ counted[rows]) / len(rows) ** 2
        if power:
            mine[rest] = _centred(power * elsewhere * off[rest]) / len(rest)
            worth += power**2 * float(elsewhere**2 @ counted[rest]) / len(rest) ** 2
        people[a] = means[1] ** 2 / worth
        # As wide as Student's t has it with so many known people of the group.
        number = float(own @ counted[rows])
        influence[:, a] = mine / means[1] * float(stdtrit(number - 1.0, 0.975) / ndtri(0.975))
    # Their groups have different people.
    return Rates(values, influence, people, np.zeros((k, k)))


def _centred(values: FloatArray) -> FloatArray:
    return np.asarray(values - values.mean())


# Sharp bounds of the rates (Kallus, Mao and Zhou 2022).
#
# Known are the joint distribution of what happened and p, and p as P(group | names and places); nothing is assumed about what
# happened given the group and p. For a level z of p, with q and o the chances there of "happened" and of "counted, but did
# not happen", the mass of "happened, group a" may be anything from max(0, p_a + q − 1) to min(q, p_a), that of the others from
# max(0, p_a + o − 1) to min(o, p_a). The rate of a group is largest if the first is largest and the second least. Both are
# attained at once, also together with the opposite ends of any other group (`tests/proxies/test_bounds.py` asks a linear
# program), so these ends are sharp for rates, differences and ratios of two groups.


@dataclass(frozen=True)
class Ends:
    """Least and largest rate of each group, and the same with sampling error; each (k,)."""

    low: FloatArray
    high: FloatArray
    outer_low: FloatArray
    outer_high: FloatArray


def rate_bounds(events: Events, p: FloatArray, *, confidence: float) -> Ends:
    """Bounds of the rates, and outer limits that hold for each end of each rate with (1 + confidence) / 2.

    Which of the two sides of a minimum is the less is judged by regression trees on p. A wrong judgement makes the bounds
    wider, never narrower: of these people if all who have the same p are judged alike, on average if each is judged from
    other people (five folds), where the means that are taken need no correction and their limits are those of means of
    bounded numbers. The bounds are the wider of both.
    """
    happened, other = events.happened, events.counted - events.happened
    tail = (1.0 - confidence) / 2
    low, high, outer_low, outer_high = np.ones((4, p.shape[1])) * [[1.0], [0.0], [1.0], [0.0]]
    for q, o in _chances(happened, other, p):
        for a in range(p.shape[1]):
            most, least_other = masses(happened, other, p[:, a], q, o)
            most_other, least = masses(other, happened, p[:, a], o, q)
            low[a] = min(low[a], 1.0 - _share(most_other, least))
            high[a] = max(high[a], _share(most, least_other))
            # The limits are those of the folds, which come last.
            outer_low[a] = min(low[a], 1.0 - _largest_share(most_other, least, tail))
            outer_high[a] = max(high[a], _largest_share(most, least_other, tail))
    return Ends(low, high, outer_low, outer_high)


def masses(
    happened: FloatArray, other: FloatArray, p: FloatArray, q: FloatArray, o: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Largest mass of "happened, in the group" and least mass of "counted otherwise, in the group", person by person.

    `q` and `o` only choose the side of each minimum; with q = happened and o = other these are the exact ends of a
    distribution.
    """
    return np.where(q <= p, happened, p), np.where(p + o > 1.0, p + other - 1.0, 0.0)


def _chances(happened: FloatArray, other: FloatArray, p: FloatArray) -> list[FloatArray]:
    """The chances of both events at each person's p, (2, n): of one function of p, and from other people."""
    n, both = len(p), np.column_stack([happened, other])
    tree = DecisionTreeRegressor(min_samples_leaf=max(10, int(np.sqrt(n))), random_state=0)
    apart = cross_val_predict(tree, p, both, cv=KFold(min(5, n), shuffle=True, random_state=0))
    return [tree.fit(p, both).predict(p).T, apart.T]


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
