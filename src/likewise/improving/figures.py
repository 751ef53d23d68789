"""Figures of a tally: what was seen with confidence intervals, and what is to be expected of people not seen yet."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from likewise.auditing.inference.intervals import GAIN_LIMITS, mean_lower_limit, mean_upper_limit
from likewise.core.checks import FloatArray
from likewise.core.exact_sum import ExactSum, Moments
from likewise.core.intervals import Interval, Measure, mean_share_interval, proportion_interval
from likewise.evaluation.groups import gap_intervals, gap_summaries
from likewise.models.losses import CrossEntropy

# By how much trainings differ beyond the people they are judged on, from the few folds of a cross-
# validation.


# Standard deviations that are considered, in units of what the folds show, and how finely.
_REACH, _STEPS = 1e3, 2000
# By how much trainings may differ at all, as a standard deviation: of a share, and of the logarithm of a gap.
_SHARE_SCALE, _LOG_SCALE = 0.1, 1.0


def training_variance(
    values: Sequence[float] | FloatArray,
    noise: float,
    count: int,
    random: np.random.Generator,
    scale: float = math.inf,
) -> FloatArray:
    """Draw the variance τ² between trainings, given k values of which each has a variance `noise` besides.

    A random-effects model: value_f ~ N(θ, σ² + τ²), θ unknown. Five folds do not tell τ, so it is not estimated but drawn
    from its posterior under the prior 1/√(σ² + τ²): flat if trainings differ less than people make figures
    differ, and without a scale beyond. Without noise, what it makes of one more value is Student's t with k − 1 degrees
    of freedom; with noise the interval of a further value covers it at least as often as it says (simulated; the
    half-Cauchy prior of Gelman 2006 gives narrower intervals that cover less if trainings differ much). `scale` makes
    the prior proper by a factor exp(−τ²/2scale²): two folds alone would allow anything.
    """
    k, squares = len(values), float(np.var(values)) * len(values)
    seen = noise + squares / k
    if k < 2 or seen <= 0:
        return np.zeros(count)
    tau2 = seen * np.square(np.geomspace(1 / _REACH, _REACH, _STEPS))
    total = noise + tau2
    # log of prior × likelihood, θ integrated out, and τ for steps that grow with it.
    log = 0.5 * np.log(tau2) - 0.5 * k * np.log(total) - 0.5 * squares / total - 0.5 * tau2 / scale**2
    weights = np.exp(log - log.max())
    return np.asarray(random.choice(tau2, p=weights / weights.sum(), size=count))


# What a model did to some people, counted: all figures and their intervals are made of such counts.


class Spread(NamedTuple):
    """Number, sum and sum of squares of something that each person has."""

    n: float
    total: float
    squares: float

    @classmethod
    def of(cls, values: FloatArray) -> Spread:
        """Summarise an array."""
        return cls(len(values), float(values.sum()), float((values**2).sum()))

    @property
    def mean(self) -> float:
        """Mean."""
        return self.total / self.n

    def and_rarely(self, value: float) -> Spread:
        """Count half a person more, with some value: what nobody of a few people has is not impossible."""
        return Spread(self.n + _PRIOR, self.total + _PRIOR * value, self.squares + _PRIOR * value**2)

    @property
    def variance(self) -> float:
        """Of one person, with n − 1 below."""
        if self.n < 2:
            return float("nan")
        return max(self.squares - self.total**2 / self.n, 0.0) / (self.n - 1)


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of a model's decisions about some people."""

    classes: Any
    groups: Mapping[str, Any]
    twins: Any
    pure_gap: Spread
    gap: Spread

    @property
    def n_people(self) -> int:
        """People decided about."""
        return int(self.classes.sum())

    def plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "classes": self.classes.tolist(),
            "groups": {name: counts.tolist() for name, counts in self.groups.items()},
            "twins": self.twins.tolist(),
            "pure_gap": list(self.pure_gap),
            "gap": list(self.gap),
        }

    @classmethod
    def from_plain(cls, stored: Mapping[str, Any]) -> Tally:
        """Read what `plain` wrote."""
        return cls(
            np.array(stored["classes"], dtype=np.int64),
            {name: np.array(counts, dtype=np.int64) for name, counts in stored["groups"].items()},
            np.array(stored["twins"], dtype=np.int64),
            Spread(*stored["pure_gap"]),
            Spread(*stored["gap"]),
        )


def pooled(tallies: Sequence[Tally]) -> Tally:
    """Return the counts of everybody together."""

    def joined(parts: Sequence[Spread]) -> Spread:
        return Spread(*map(sum, zip(*parts, strict=True)))

    return Tally(
        sum(t.classes for t in tallies),
        {name: sum(t.groups[name] for t in tallies) for name in tallies[0].groups},
        sum(t.twins for t in tallies),
        joined([t.pure_gap for t in tallies]),
        joined([t.gap for t in tallies]),
    )


ACCURACY, CHANGED = "balanced accuracy", "changed decisions"
PURE_GAP, GAP, GROUP_GAP = "pure gap", "gap at ε", "group gap"
# Of the difference to the most accurate model, over the folds.
ERROR = "standard error"

N_DRAWS = 2000
# The further out a quantile, the more draws it takes to know it.
_N_PREDICTED = 10_000
# What is smaller is none: sums leave 1e-19 of a gap that is 0.
ROUNDING = 1e-9
_MOST_LOG = 50.0
# Jeffreys' prior of a share: nothing is taken for impossible because it was not seen.
_PRIOR = 0.5

CountStatistic = Callable[[FloatArray], FloatArray]


def seen_figures(tally: Tally, *, confidence: float = 0.95) -> tuple[Measure, ...]:
    """Return the figures of people who were looked at, with confidence intervals."""
    values, classes, twins = figure_values(tally), tally.classes, tally.twins
    intervals = {
        ACCURACY: mean_share_interval(classes[:, 1], classes.sum(axis=1), confidence=confidence),
        CHANGED: proportion_interval(int(twins[1]), int(twins.sum()), confidence=confidence),
        PURE_GAP: _of_gains(tally.pure_gap, confidence),
        GAP: _of_gains(tally.gap, confidence),
    }
    for attribute, counts in tally.groups.items():
        found = gap_intervals(counts[..., 1], counts.sum(axis=2), confidence=confidence)
        intervals[f"Gap_RMS {attribute}"] = found[0]
    return tuple(Measure.of(name, value, intervals[name]) for name, value in values.items())


def figure_values(tally: Tally) -> dict[str, float]:
    """Return the figures by their names, without intervals."""
    counted = {name: _value(cells, statistic) for name, cells, statistic in _counted(tally)}
    first = {name: counted.pop(name) for name in (ACCURACY, CHANGED)}
    return {**first, PURE_GAP: tally.pure_gap.mean, GAP: tally.gap.mean, **counted}


def rule_figures(tally: Tally) -> dict[str, float]:
    """Return what a rule looks at: the figures, of the groups' gaps the largest."""
    values = figure_values(tally)
    found = {name: values.pop(name) for name in (ACCURACY, CHANGED, PURE_GAP, GAP)}
    return {**found, GROUP_GAP: max(values.values(), default=math.nan)}


def fold_figures(folds: Mapping[str, Sequence[Tally]]) -> dict[str, dict[str, float]]:
    """Return what a rule looks at, for each model, with the standard error of how much less accurate than the best it is.

    That is over the folds, but at most what it is for two models that have nothing in common: two folds tell little.
    """
    found = {name: rule_figures(pooled(parts)) for name, parts in folds.items()}
    right = {
        name: np.array([rule_figures(part)[ACCURACY] for part in parts]) for name, parts in folds.items()
    }
    best = max(found, key=lambda name: found[name][ACCURACY])
    apart = {name: _variance_of_accuracy(pooled(parts).classes) for name, parts in folds.items()}
    for name, values in found.items():
        less = right[best] - right[name]
        over = np.var(less, ddof=1) / len(less) if len(less) > 1 else 0.0
        values[ERROR] = float(np.sqrt(min(over, apart[best] + apart[name])))
    return found


def _variance_of_accuracy(classes: Any) -> float:
    count, right = classes.sum(axis=1), classes[:, 1]
    return float((right * (count - right) / count**3).sum()) / len(classes) ** 2


def expected_figures(
    folds: Sequence[Tally],
    *,
    n_people: int,
    n_audited: int,
    n_searched: int | None = None,
    selection_optimism: Mapping[str, float] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> tuple[Measure, ...]:
    """Return what the same figures of other people are expected to be: prediction intervals that hold together.

    A figure of people not seen yet varies by who was seen, by who will be, and by the training: no two trainings give
    the same model. The first two come from the counts (Dirichlet-multinomial with Jeffreys' prior) and, for gaps, from
    the variance s²(1/n + 1/m); the third, τ²(1 + 1/k), from how the k folds differ beyond that (`training_variance`), for
    gaps in their logarithms: a training that goes on for longer has a gap larger by some factor. With q figures each
    interval has the level 1 − (1 − confidence)/q, so that all hold together (Bonferroni).
    """
    whole = pooled(folds)
    level = 1 - (1 - confidence) / (4 + _n_groups(whole))
    random, shifts = np.random.default_rng(seed), selection_optimism or {}
    found = []
    parts = [list(_counted(tally)) for tally in folds]
    for number, (name, cells, statistic) in enumerate(_counted(whole)):
        size = n_audited if name == CHANGED else n_people
        draws = _predicted(cells, statistic, size, random, _N_PREDICTED)
        values = [_value(part[number][1], statistic) for part in parts]
        within = [
            _predicted(part[number][1], statistic, int(part[number][1].sum()), random) for part in parts
        ]
        # Predictions of as many people as were seen vary twice as much as what was seen; a fold may lack a group.
        noise = float(np.mean([np.nanvar(draw) for draw in within if np.isfinite(draw).any()])) / 2
        drawn = _other_training(draws, values, noise, random)
        found.append(_announced(name, _value(cells, statistic), drawn, level, shifts.get(name, 0.0)))
    for name, seen, spread, own in (
        (
            PURE_GAP,
            whole.pure_gap.mean,
            whole.pure_gap.and_rarely(whole.gap.mean),
            [tally.pure_gap for tally in folds],
        ),
        (GAP, whole.gap.mean, whole.gap, [tally.gap for tally in folds]),
    ):
        half = (
            math.sqrt(spread.variance * (1 / spread.n + 1 / (n_searched or n_audited)))
            if spread.n > 1
            else 0.0
        )
        draws = spread.mean + half * random.standard_t(max(spread.n - 1, 1), size=_N_PREDICTED)
        noise = float(np.mean([s.variance / s.n if s.n > 1 else 0.0 for s in own]))
        drawn = _other_training(draws, [s.mean for s in own], noise, random, factor=True)
        measure = _announced(name, seen, drawn, level, shifts.get(name, 0.0))
        found.insert(-_n_groups(whole) or len(found), measure)
    return tuple(found)


def _other_training(
    draws: FloatArray,
    folds: Sequence[float],
    noise: float,
    random: np.random.Generator,
    *,
    factor: bool = False,
) -> FloatArray:
    """Add to draws how trainings differ; with `factor`, if every fold has a gap, multiply them with it."""
    known = np.asarray([value for value in folds if math.isfinite(value)])
    if not len(known):
        return draws
    times = factor and known.min() > ROUNDING
    scale = max(float(known.max()), ROUNDING) if factor else _SHARE_SCALE
    if times:
        known, noise, scale = np.log(known), noise / float(known.mean()) ** 2, _LOG_SCALE
    moved = np.sqrt(training_variance(known, noise, len(draws), random, scale) * (1 + 1 / len(known)))
    moved *= random.normal(size=len(draws))
    # Beyond such a factor it is all the same, and no number.
    return np.asarray(draws * np.exp(np.minimum(moved, _MOST_LOG)) if times else draws + moved)


def _announced(name: str, value: float, draws: FloatArray, level: float, shift: float) -> Measure:
    low, high = np.nanquantile(draws, [(1 - level) / 2, (1 + level) / 2])
    low, high = min(low, low + shift), max(high, high + shift)
    top = math.inf if name in (PURE_GAP, GAP) else 1.0  # all others are shares, or differences of shares
    return Measure(name, value, max(float(low), 0.0), min(float(high), top), "predictive")


def _predicted(
    cells: FloatArray, statistic: CountStatistic, size: int, random: np.random.Generator, count: int = N_DRAWS
) -> FloatArray:
    """Draws of a figure of other people."""
    shares = random.dirichlet(cells + _PRIOR, size=count)
    return np.asarray(statistic(random.multinomial(size, shares).astype(float))[:, 0])


def _value(cells: FloatArray, statistic: CountStatistic) -> float:
    return float(statistic(cells[None].astype(float))[0, 0])


def group_gap(figures: tuple[Measure, ...]) -> float:
    """Return the largest Gap_RMS of all attributes; NaN if none was measured."""
    return max((m.value for m in figures if m.name.startswith("Gap_RMS ")), default=math.nan)


def _n_groups(tally: Tally) -> int:
    return len(tally.groups)


def _counted(tally: Tally) -> Iterator[tuple[str, FloatArray, CountStatistic]]:
    """Figures of counts: name, cells, and a statistic of (r, cells) that gives (r, 1)."""
    yield ACCURACY, tally.classes.ravel(), _balanced_accuracy
    yield CHANGED, tally.twins, lambda counts: counts[:, 1:] / counts.sum(axis=1, keepdims=True)
    for attribute, counts in tally.groups.items():
        shape: tuple[int, ...] = counts.shape
        yield f"Gap_RMS {attribute}", counts.ravel(), _rms_of(shape)


def _balanced_accuracy(counts: FloatArray) -> FloatArray:
    cells = counts.reshape(len(counts), -1, 2)
    with np.errstate(invalid="ignore"):
        return np.asarray((cells[..., 1] / cells.sum(axis=2)).mean(axis=1, keepdims=True))


def _rms_of(shape: tuple[int, ...]) -> CountStatistic:
    def rms(counts: FloatArray) -> FloatArray:
        cells = counts.reshape(len(counts), *shape)
        with np.errstate(invalid="ignore"):
            rates = cells[..., 1] / cells.sum(axis=3)
        return gap_summaries(rates)[:, :1]

    return rms


def _of_gains(spread: Spread, confidence: float) -> Interval:
    """Limits of a mean of gains; what was not seen may be as large as the loss can be, and λ*ε more (at most the mean)."""
    ceiling = CrossEntropy().upper_bound + spread.mean
    # All but the two sums is taken at its worst, which hardly widens limits below so high a ceiling.
    total, most = ExactSum.of([spread.total]), int(spread.n) if spread.total > 0 else 0
    numbers = Moments(
        int(spread.n), total, total, ExactSum.of([spread.squares]), most, 0.0, ceiling if most else 0.0
    )
    level = 0.5 + confidence / 2
    low, high = mean_lower_limit(numbers, level=level), mean_upper_limit(numbers, ceiling, level=level)
    return Interval(min(low, spread.mean), max(high, spread.mean), confidence, GAIN_LIMITS)
