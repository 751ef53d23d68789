"""Do confidence intervals cover? Coverage and width by simulation, with rare and with common harm.

    OMP_NUM_THREADS=1 python benchmarks/interval_coverage.py [--simulations 400] [--only rare budget groups means attack]
    OMP_NUM_THREADS=1 python benchmarks/interval_coverage.py --only methods pure candidates population

What every interval covers that is printed, 400 simulations of each line:

- rare: the gap at ε = 0 and the limits of its test where few people gain much, with cross-entropy and with the 0-1 loss;
  beside it the share of changed decisions, and what the largest loss of the sample would cover as a ceiling.
- budget: the gap at ε > 0 over fixed candidates, gains at no distance being rare.
- groups: Gap_RMS, Gap_max, the gaps of the classes, balanced accuracy and accuracy; equal, nearly equal and different
  rates, small and large groups. Beside it the percentiles of a bootstrap of Gap_max.
- means: mean changes of score between people and twins, and differences of mean sentiment.
- attack: the same intervals on distributions that nothing was tuned on: log-normal gains cut off at the ceiling,
  mixtures, ties, 2 to 6 groups of random sizes.

How the method of the gap was chosen, by size, dimension and share of the harmed:

People have a sensitive column of −1 and 1 and d − 1 normal features; labels follow a logistic model of the features,
and the audited model adds an effect of the sensitive column: for everybody, or for the 5% whose first feature is
highest. The metric ignores the sensitive column.

The ceiling of the gains is the upper bound of the loss, that of cross-entropy.

- methods: the gap at ε = 0 by every interval that was tried, 100 simulations.
- pure: the gap at ε = 0 among own twins, about the population; truth: a million fresh people. Beside it Student's t,
  the share of changed decisions, and how often "at most the true gap" is rejected at the 5% level.
- candidates: the gap at ε, candidates are the audited people and their twins, about the expectation given these
  candidates; truth: thousands of fresh people moved among the same candidates. Beside it Student's t, about the
  same and, as it was once read, about the population.
- population: the lower limit from a split; truth: the worst case over all places, in closed form, or (5%) among the
  rows of thousands of fresh people, which is below it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit

from likewise.auditing.bounds.linear.supremum import logistic_supremum
from likewise.auditing.dual.finite_dual import dual_curve
from likewise.auditing.dual.frontier import Frontier
from likewise.auditing.dual.moments import Moments
from likewise.auditing.inference.certificate import clt_interval, mean_upper_bound
from likewise.auditing.inference.intervals import (
    frontier_gains,
    gap_interval,
    prices_around,
    share_interval,
    split_interval,
)
from likewise.auditing.inference.limits import (
    dirichlet_mean_tails,
    mean_at_most_p_value,
    mean_lower_limit,
    mean_upper_limit,
)
from likewise.auditing.inference.significance import gap_test_of_moments
from likewise.auditing.search.candidates import CandidateSearch
from likewise.core.intervals import (
    bootstrap_counts,
    bounded_mean_interval,
    mean_share_interval,
    proportion_interval,
)
from likewise.core.subspace import Subspace
from likewise.evaluation.groups import gap_intervals, gap_summaries
from likewise.evaluation.sentiment import sentiment_gap_interval
from likewise.fair_metrics import FairMetric
from likewise.models import as_model
from likewise.models.losses import CrossEntropy

UPPER = CrossEntropy().upper_bound
EPS = 0.1
EFFECT = 1.5
FRESH = {20: 4_000, 100: 4_000, 500: 2_000}
SIZES, DIMENSIONS, HARMS = (20, 100, 500), (2, 4, 8), ("everybody", "5%")
RARE_ABOVE = 1.6448536269514722


Lines = Iterator[tuple[str, dict[str, float]]]


@dataclass(frozen=True)
class World:
    """People, labels and the audited model."""

    d: int
    harmed: str

    @property
    def slope(self) -> Any:
        return np.full(self.d - 1, 1.5 / np.sqrt(self.d - 1))

    def people(self, rng: Any, n: int) -> tuple[Any, Any]:
        sex = rng.choice([-1.0, 1.0], size=n)
        X = np.column_stack([sex, rng.normal(size=(n, self.d - 1))])
        return X, (rng.random(n) < expit(X[:, 1:] @ self.slope)).astype(int)

    def logit(self, X: Any) -> Any:
        reached = 1.0 if self.harmed == "everybody" else X[:, 1] > RARE_ABOVE
        return X[:, 1:] @ self.slope + EFFECT * X[:, 0] * reached

    def losses(self, X: Any, y: Any) -> Any:
        return np.logaddexp(0.0, -(2 * y - 1) * self.logit(X))

    def twin(self, X: Any) -> Any:
        return np.column_stack([-X[:, 0], X[:, 1:]])

    def pure_gains(self, X: Any, y: Any) -> Any:
        return np.maximum(self.losses(self.twin(X), y) - self.losses(X, y), 0.0)

    def flips(self, X: Any) -> Any:
        return (self.logit(X) > 0) != (self.logit(self.twin(X)) > 0)

    def search(self, X: Any, y: Any, pool: Any = None) -> Frontier:
        """The library's own search; with a pool nobody is moved to a row of the audited."""
        chosen = CandidateSearch(
            edits={0: [-1.0, 1.0]}, proxies=None, use_rows=True if pool is None else "pool"
        )
        metric = FairMetric.from_subspace(Subspace.from_directions(np.eye(self.d)[:1]))
        return chosen.run(
            as_model(lambda rows: expit(self.logit(rows))), X, y, metric=metric, pool=pool
        ).frontier

    def gap_among(self, X: Any, y: Any, pool: Any, near: float = 0.3) -> float:
        """Gap at ε of people moved among the places of a pool, by brute force and a search over λ about `near`."""
        features = X[:, 1:]
        squared = (features**2).sum(1)[:, None] + (pool[:, 1:] ** 2).sum(1) - 2 * features @ pool[:, 1:].T
        everywhere = np.concatenate([pool, self.twin(pool)])
        worst = [self.losses(everywhere, np.full(len(everywhere), label)) for label in (0, 1)]
        worst = np.array([np.maximum(*np.split(loss, 2)) for loss in worst])[y]
        own = self.losses(X, y) + self.pure_gains(X, y)
        base = self.losses(X, y).mean()
        worst, squared = worst.astype(np.float32), np.maximum(squared, 0.0).astype(np.float32)

        def dual(price: float) -> float:
            return price * EPS + np.maximum((worst - np.float32(price) * squared).max(1), own).mean() - base

        return golden(dual, near)

    def gap_anywhere(self, X: Any, y: Any) -> float:
        """Gap at ε over all places, where the effect reaches everybody: a linear model without a box."""
        margin = (2 * y - 1) * (X[:, 1:] @ self.slope) - EFFECT
        kappa = float(self.slope @ self.slope)
        base = self.losses(X, y).mean()

        def dual(price: float) -> float:
            return price * EPS + logistic_supremum(margin, kappa, lam=price)[0].mean() - base

        return golden(dual, 1.0)


def golden(function: Any, near: float, steps: int = 11) -> float:
    """Minimum of a function with one valley, over prices up to thirty times smaller or larger."""
    low, high, ratio = np.log(near / 30.0), np.log(near * 30.0), (np.sqrt(5.0) - 1.0) / 2.0
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at = [function(np.exp(left)), function(np.exp(right))]
    for _ in range(steps):
        if at[0] < at[1]:
            high, right = right, left
            left = high - ratio * (high - low)
            at = [function(np.exp(left)), at[0]]
        else:
            low, left = left, right
            right = low + ratio * (high - low)
            at = [at[1], function(np.exp(right))]
    return min(at)


def pure(world: World, n: int, simulations: int, seed: int) -> dict[str, float]:
    rng = np.random.default_rng([seed, world.d, n])
    X, y = world.people(rng, 10**6)
    truth, share = world.pure_gains(X, y).mean(), world.flips(X).mean()
    rows = []
    for _ in range(simulations):
        X, y = world.people(rng, n)
        gains = world.pure_gains(X, y)
        found = Moments.of(gains)
        ours = gap_interval({np.inf: found}, lambda_=np.inf, eps=0.0, ceiling=UPPER, about="population")
        student = clt_interval(gains, lambda_=0.0, eps=0.0)
        flips = share_interval(int(world.flips(X).sum()), n)
        rejected = mean_at_most_p_value(found, truth) <= 0.05
        rows.append(
            (
                covers(ours, truth),
                ours.width,
                covers(student, truth),
                student.width,
                covers(flips, share),
                rejected,
            )
        )
    names = ("coverage", "width", "t coverage", "t width", "share coverage", "rejected at the border")
    return {"truth": truth} | dict(zip(names, np.mean(rows, axis=0), strict=True))


def methods(world: World, n: int, simulations: int, seed: int) -> dict[str, float]:
    """Intervals that were tried for the gap at ε = 0: coverage and mean width of each."""
    rng = np.random.default_rng([seed, world.d, n, 3])
    truth = world.pure_gains(*world.people(rng, 10**6)).mean()
    rows = []
    for _ in range(min(simulations, 100)):
        X, y = world.people(rng, n)
        gains, ceiling = world.pure_gains(X, y), UPPER
        found = [interval(gains, ceiling) for interval in METHODS.values()]
        rows.append([number for low, high in found for number in (low <= truth <= high, high - low)])
    heads = [f"{name} {what}" for name in METHODS for what in ("coverage", "width")]
    return dict(zip(heads, np.mean(rows, axis=0), strict=True))


def student(gains: Any, ceiling: float) -> tuple[float, float]:
    half = stats.t.ppf(0.975, len(gains) - 1) * stats.sem(gains)
    return gains.mean() - half, gains.mean() + half


def share_times_mean(gains: Any, ceiling: float) -> tuple[float, float]:
    """Clopper–Pearson for the share of harmed, Student's t for their mean, 97.5% each."""
    harmed = gains[gains > 0]
    share = share_interval(len(harmed), len(gains), confidence=0.975)
    if len(harmed) < 2:
        return 0.0, share.high * ceiling
    half = stats.t.ppf(0.9875, len(harmed) - 1) * stats.sem(harmed)
    return share.low * max(0.0, harmed.mean() - half), share.high * min(ceiling, harmed.mean() + half)


def bernstein(gains: Any, ceiling: float) -> tuple[float, float]:
    """Maurer and Pontil's empirical Bernstein bound from both sides."""
    margin = mean_upper_bound(gains, ceiling, confidence=0.975) - gains.mean()
    return max(0.0, gains.mean() - margin), min(ceiling, gains.mean() + margin)


def gaffke(gains: Any, ceiling: float) -> tuple[float, float]:
    """Gaffke's limits of all numbers, which no summary of a few sums holds."""
    values, counts = np.unique(np.append(gains, 0.0), return_counts=True)
    low = 0.0
    if values[-1] > 0:
        low = brentq(lambda q: dirichlet_mean_tails(values, counts, q)[0] - 0.025, 0.0, values[-1])
    values, counts = np.unique(np.append(gains, ceiling), return_counts=True)
    return low, brentq(lambda q: dirichlet_mean_tails(values, counts, q)[1] - 0.025, 0.0, ceiling)


def ours(gains: Any, ceiling: float) -> tuple[float, float]:
    found = Moments.of(gains)
    return mean_lower_limit(found, level=0.975), mean_upper_limit(found, ceiling, level=0.975)


METHODS = {
    "t": student,
    "share × t": share_times_mean,
    "empirical Bernstein": bernstein,
    "Gaffke, all gains": gaffke,
    "Gaffke, sums": ours,
}


def candidates(world: World, n: int, simulations: int, seed: int) -> dict[str, float]:
    rng = np.random.default_rng([seed, world.d, n, 1])
    beyond = population_gap(world, rng)
    rows = []
    for _ in range(simulations):
        X, y = world.people(rng, n)
        frontier = world.search(X, y)
        curve = dual_curve(frontier)
        best = float(curve.lambda_(EPS))
        gains = {price: Moments.of(frontier_gains(frontier, price)) for price in prices_around(curve, EPS)}
        found = gap_interval(gains, lambda_=best, eps=EPS, ceiling=UPPER)
        student = clt_interval(frontier.conjugate(best), lambda_=best, eps=EPS, losses=frontier.base_loss)
        truth = world.gap_among(*world.people(rng, FRESH[n]), X, max(best, 0.01))
        ours = (truth, covers(found, truth), found.width)
        rows.append((*ours, covers(student, truth), student.width, covers(student, beyond)))
    names = ("truth", "coverage", "width", "t coverage", "t width", "t coverage of the population")
    return dict(zip(names, np.mean(rows, axis=0), strict=True))


def population(world: World, n: int, simulations: int, seed: int) -> dict[str, float]:
    rng = np.random.default_rng([seed, world.d, n, 2])
    truth = population_gap(world, rng)
    rows = []
    for simulation in range(simulations):
        X, y = world.people(rng, n)

        def search(people: Any, pool: Any, X: Any = X, y: Any = y) -> Frontier:
            return world.search(X[people], y[people], X[pool])

        found = split_interval(n, search=search, eps=EPS, random_state=simulation)
        rows.append((covers(found, truth), found.low))
    return {"truth": truth} | dict(zip(("coverage", "mean lower limit"), np.mean(rows, axis=0), strict=True))


def population_gap(world: World, rng: Any) -> float:
    """Over all places, or, where only some are harmed, among the rows of many: no more than over all."""
    if world.harmed == "everybody":
        return world.gap_anywhere(*world.people(rng, 100_000))
    return world.gap_among(*world.people(rng, 3_000), world.people(rng, 6_000)[0])


def covers(interval: Any, truth: float) -> bool:
    return bool(interval.low <= truth <= interval.high)


SHARES, RARE_SIZES = (0.001, 0.003, 0.01, 0.03, 0.3), (200, 1_000, 5_000)
LOSSES = {"cross-entropy": (UPPER, 8.0), "0-1": (1.0, 1.0)}


def tally(hits: Any) -> Any:
    """Mean of rows of hits and widths; open intervals have no width."""
    rows = np.asarray(hits, dtype=float)
    return np.where(np.isinf(rows), np.nan, rows).mean(axis=0)


def pure_line(
    draw: Any, truth: float, share: float, n: int, ceiling: float, simulations: int
) -> dict[str, float]:
    """Intervals of the gap at ε = 0 from gains, and of the share of people who have one."""
    rows = []
    for _ in range(simulations):
        gains = draw(n)
        found = Moments.of(gains)
        gap = gap_interval({np.inf: found}, lambda_=np.inf, eps=0.0, ceiling=ceiling)
        test = gap_test_of_moments(found, found, threshold=truth, ceiling=ceiling, confidence=0.95)
        sample = gap_interval({np.inf: found}, lambda_=np.inf, eps=0.0, ceiling=max(float(gains.max()), 1e-9))
        changed = share_interval(int((gains > 0).sum()), n)
        low, high = test.interval
        rows.append(
            (
                covers(gap, truth),
                gap.width,
                low <= truth <= high,
                not test.rejected,
                covers(changed, share),
                covers(sample, truth),
                sample.width,
            )
        )
    names = ("gap", "width", "limits of the test", "not rejected", "share of people")
    names += ("sample's ceiling", "its width")
    return {"truth": truth} | dict(zip(names, tally(rows), strict=True))


def rare(simulations: int, seed: int) -> Lines:
    for loss, (ceiling, gain) in LOSSES.items():
        for share in SHARES:
            for n in RARE_SIZES:
                rng = np.random.default_rng([seed, n, int(share * 1e4)])

                def draw(size: int, rng: Any = rng, share: float = share, gain: float = gain) -> Any:
                    return np.where(rng.random(size) < share, gain, 0.0)

                yield (
                    f"{loss}, {share:.1%} gain {gain:g}, n = {n:,}",
                    pure_line(draw, share * gain, share, n, ceiling, simulations),
                )


@dataclass(frozen=True)
class Line:
    """People on a line who may be moved to 30 places; some have a twin at no distance besides."""

    share: float
    loss: str

    def people(self, rng: Any, n: int) -> tuple[Any, Any]:
        return rng.normal(size=n), rng.random(n) < self.share

    @property
    def places(self) -> Any:
        return stats.norm.ppf((np.arange(30) + 0.5) / 30)

    def at(self, place: Any) -> Any:
        return (place > 1.0).astype(float) if self.loss == "0-1" else np.logaddexp(0.0, 1.5 * place)

    def gains(self, z: Any, harmed: Any, price: float) -> Any:
        own = self.at(z)
        free = np.where(harmed, np.maximum(LOSSES[self.loss][1], own), own)
        moved = (self.at(self.places) - price * (z[:, None] - self.places) ** 2).max(axis=1)
        return np.maximum(moved, free) - own

    def frontier(self, z: Any, harmed: Any) -> Frontier:
        n, k = len(z), len(self.places)
        twins = np.flatnonzero(harmed)
        row = np.concatenate([np.repeat(np.arange(n), k), twins])
        squared = np.concatenate([((z[:, None] - self.places) ** 2).ravel(), np.zeros(len(twins))])
        worst = np.maximum(LOSSES[self.loss][1], self.at(z[twins]))
        loss = np.concatenate([np.tile(self.at(self.places), n), worst])
        candidate = np.arange(len(row))
        return Frontier.from_points(
            base_loss=self.at(z), row=row, squared_distance=squared, loss=loss, candidate=candidate
        )


def budget(simulations: int, seed: int) -> Lines:
    for loss, (ceiling, _) in LOSSES.items():
        for share in (0.001, 0.01, 0.03):
            for eps in (0.01, 0.1):
                world = Line(share, loss)
                rng = np.random.default_rng([seed, int(share * 1e4), int(eps * 100)])
                fresh = world.people(rng, 200_000)
                grid = np.geomspace(1e-3, 1e3, 61)
                values = [price * eps + world.gains(*fresh, price).mean() for price in grid]
                near = grid[int(np.argmin(values))]
                truth = min(
                    price * eps + world.gains(*fresh, price).mean()
                    for price in near * np.geomspace(0.8, 1.25, 21)
                )
                for n in (100, 500):
                    rows = []
                    for _ in range(simulations):
                        frontier = world.frontier(*world.people(rng, n))
                        curve = dual_curve(frontier)
                        gains = {
                            p: Moments.of(frontier_gains(frontier, p)) for p in prices_around(curve, eps)
                        }
                        best = float(curve.lambda_(eps))
                        found = gap_interval(gains, lambda_=best, eps=eps, ceiling=ceiling)
                        rows.append((covers(found, truth), found.width))
                    yield (
                        f"{loss}, {share:.1%} rare, ε = {eps:g}, n = {n}",
                        {"truth": truth} | dict(zip(("gap", "width"), tally(rows), strict=True)),
                    )


GROUPS = {
    "3 × 200, equal": ([[100, 100]] * 3, [[0.8, 0.7]] * 3),
    "3 × 200, nearly equal": ([[100, 100]] * 3, [[0.8, 0.7], [0.81, 0.7], [0.8, 0.72]]),
    "3 × 200, different": ([[100, 100]] * 3, [[0.8, 0.7], [0.6, 0.7], [0.8, 0.5]]),
    "2 × 300, equal": ([[200, 100]] * 2, [[0.9, 0.7]] * 2),
    "2 × 300, nearly equal": ([[200, 100]] * 2, [[0.9, 0.7], [0.89, 0.72]]),
    "2 × 300, different": ([[200, 100]] * 2, [[0.9, 0.7], [0.75, 0.8]]),
    "10 and 300, equal": ([[6, 4], [200, 100]], [[0.95, 0.7]] * 2),
    "10 and 300, different": ([[6, 4], [200, 100]], [[0.9, 0.5], [0.95, 0.8]]),
    "6 and 24, nearly always right": ([[3, 3], [12, 12]], [[0.98, 0.99], [0.95, 0.97]]),
    "4,500 and 8,500, different": ([[3000, 1500], [6000, 2500]], [[0.93, 0.6], [0.9, 0.65]]),
    "6 groups of 8 to 1,600, equal": (
        [[5, 3], [10, 8], [300, 200], [50, 40], [1000, 600], [20, 9]],
        [[0.9, 0.6]] * 6,
    ),
    "6 groups of 8 to 1,600, different": (
        [[5, 3], [10, 8], [300, 200], [50, 40], [1000, 600], [20, 9]],
        [[0.9, 0.6], [0.8, 0.5], [0.9, 0.6], [0.92, 0.7], [0.85, 0.55], [0.99, 0.9]],
    ),
    "2 × 320, 8 classes, equal": ([[40] * 8] * 2, [[0.9, 0.8, 0.7, 0.6, 0.9, 0.95, 0.5, 0.3]] * 2),
}


def group_line(people: Any, rates: Any, simulations: int, rng: Any, *, old: bool = True) -> dict[str, float]:
    people, rates = np.asarray(people), np.asarray(rates)
    first, second = np.triu_indices(len(people), k=1)
    gaps = rates[first] - rates[second]
    rms, largest = gap_summaries(rates[None])[0]
    classes = gaps[0] if len(gaps) == 1 else np.abs(gaps).max(axis=0)
    weights, total = people.sum(axis=0), int(people.sum())
    recall = (people * rates).sum(axis=0) / weights
    rows = []
    for simulation in range(simulations):
        right = rng.binomial(people, rates)
        found = gap_intervals(right, people)
        balanced = mean_share_interval(right.sum(axis=0), weights)
        accurate = proportion_interval(int(right.sum()), total)
        of_classes = np.mean([covers(one, truth) for one, truth in zip(found[2:], classes, strict=True)])
        row = [covers(found[0], rms), found[0].high - found[0].low, covers(found[1], largest)]
        row += [found[1].high - found[1].low, of_classes]
        row += [covers(balanced, recall.mean()), covers(accurate, (people * rates).sum() / total)]
        if old:
            cells = np.stack([people - right, right], axis=2).ravel()
            interval = bootstrap_counts(
                lambda counts, shape=people.shape: _gap_max(counts, shape),
                cells,
                n_resamples=300,
                random_state=simulation,
            )[0]
            row.append(covers(interval, largest))
        rows.append(row)
    names = ["Gap_RMS", "width", "Gap_max", "width of it", "gaps of classes", "balanced accuracy", "accuracy"]
    names += ["Gap_max by percentiles"] if old else []
    return {"true Gap_max": float(largest)} | dict(zip(names, tally(rows), strict=True))


def _gap_max(counts: Any, shape: Any) -> Any:
    cells = counts.reshape(len(counts), *shape, 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        return gap_summaries(cells[..., 1] / cells.sum(axis=3))[:, 1]


def groups(simulations: int, seed: int) -> Lines:
    for number, (name, (people, rates)) in enumerate(GROUPS.items()):
        yield name, group_line(people, rates, simulations, np.random.default_rng([seed, number]))


def means(simulations: int, seed: int) -> Lines:
    """Changes of score in [−1, 1] with rare flips either way, and Welch's t of two groups of names."""
    rng = np.random.default_rng([seed, 5])
    for up, down, small in ((0.003, 0.0, 0.0), (0.01, 0.01, 0.0), (0.03, 0.001, 0.0), (0.003, 0.0, 0.02)):
        for n in (100, 1_000):
            rows = []
            for _ in range(simulations):
                jump = rng.choice([1.0, -1.0, 0.0], p=[up, down, 1 - up - down], size=n)
                values = np.clip(np.where(jump != 0, jump, rng.normal(0, small, n) if small else 0.0), -1, 1)
                found = bounded_mean_interval(values, -1.0, 1.0)
                half = stats.t.ppf(0.975, n - 1) * stats.sem(values)
                rows.append(
                    (covers(found, up - down), found.high - found.low, abs(values.mean() - up + down) <= half)
                )
            yield (
                f"change of score, up {up:.1%}, down {down:.1%}, noise {small:g}, n = {n}",
                {"truth": up - down} | dict(zip(("mean", "width", "Student's t"), tally(rows), strict=True)),
            )
    for first, second in ((10, 10), (10, 60), (50, 50)):
        rows = []
        for _ in range(simulations):
            one, two = rng.gamma(4.0, 0.5, first), rng.normal(0.0, 1.0, second)
            found = sentiment_gap_interval(one, two)
            plain = sentiment_gap_interval(one, two, method="percentile", n_resamples=300)
            rows.append((covers(found, 2.0), found.high - found.low, covers(plain, 2.0)))
        yield (
            f"difference of sentiment, {first} and {second} names",
            {"truth": 2.0} | dict(zip(("mean", "width", "percentiles"), tally(rows), strict=True)),
        )


def attack(simulations: int, seed: int) -> Lines:
    """Distributions that no choice above was made on."""
    rng = np.random.default_rng([seed, 11])
    shapes = {
        "log-normal gains (σ = 3), cut off": lambda n: np.minimum(rng.lognormal(-3.0, 3.0, n), UPPER),
        "0.3% log-normal (σ = 1.5) about 5": lambda n: (
            np.minimum(rng.lognormal(1.6, 1.5, n), UPPER) * (rng.random(n) < 0.003)
        ),
        "half exponential .02, 0.5% at the ceiling": lambda n: np.where(
            rng.random(n) < 0.005, UPPER, rng.exponential(0.02, n) * (rng.random(n) < 0.5)
        ),
        "ties at 0, .1 and 20 (1%)": lambda n: rng.choice([0.0, 0.1, 20.0], p=[0.6, 0.39, 0.01], size=n),
        "Pareto 1.1, cut off": lambda n: np.minimum(0.05 * (rng.pareto(1.1, n) + 1.0), UPPER),
        "beta(.05, 1) of the ceiling": lambda n: UPPER * rng.beta(0.05, 1.0, n),
    }
    for name, draw in shapes.items():
        people = draw(8_000_000)
        truth, share = float(people.mean()), float((people > 0).mean())
        for n in (50, 400, 3_000):
            yield f"{name}, n = {n:,}", pure_line(draw, truth, share, n, UPPER, simulations)


def attack_groups(simulations: int, seed: int) -> Lines:
    rng = np.random.default_rng([seed, 12])
    for number in (2, 3, 4, 5, 6):
        for kind in ("equal", "nearly equal", "different"):
            people = 1 + rng.multinomial(40 * 4 ** rng.integers(4), rng.dirichlet(np.full(3 * number, 0.7)))
            people = people.reshape(number, 3)
            rates = np.tile(rng.beta(3.0, 1.0, 3), (number, 1))
            if kind != "equal":
                spread = 0.02 if kind == "nearly equal" else 0.25
                rates = np.clip(rates + rng.normal(0.0, spread, rates.shape), 0.01, 0.995)
            name = f"{number} groups of {people.sum(axis=1).min()} to {people.sum(axis=1).max()}, {kind}"
            yield name, group_line(people, rates, simulations, rng, old=False)


BY_WORLD = {"methods": methods, "pure": pure, "candidates": candidates, "population": population}
PRINTED = {
    "rare": (rare,),
    "budget": (budget,),
    "groups": (groups,),
    "means": (means,),
    "attack": (attack, attack_groups),
}


def by_world(part: str, simulations: int, seed: int) -> Lines:
    for n in SIZES:
        for harmed in HARMS:
            for d in DIMENSIONS:
                found = BY_WORLD[part](World(d, harmed), n, simulations, seed)
                yield f"{harmed} | {d} | {n}", found


def show(title: str, first: str, lines: Lines) -> None:
    start, head = time.process_time(), None
    for name, found in lines:
        if list(found) != head:
            head = list(found)
            print(
                f"\n{title}\n| {first} | {' | '.join(head)} |\n|{'---|' * (first.count('|') + 1 + len(head))}"
            )
        print(f"| {name} | {' | '.join(f'{v:.3f}' for v in found.values())} |", flush=True)
    print(f"\n{time.process_time() - start:.0f} CPU s")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulations", type=int, default=400)
    parser.add_argument("--only", choices=[*PRINTED, *BY_WORLD], nargs="*", default=list(PRINTED))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for part in options.only:
        for lines in PRINTED.get(part, ()):
            show(part, "", lines(options.simulations, options.seed))
        if part in BY_WORLD:
            show(part, "harmed | d | n", by_world(part, options.simulations, options.seed))


if __name__ == "__main__":
    main()
