"""Do confidence intervals cover? Every interval that the package prints, by simulation.

    OMP_NUM_THREADS=1 python benchmarks/interval_coverage.py [--simulations 400] [--only rare matched selection ...]
    OMP_NUM_THREADS=1 python benchmarks/interval_coverage.py --list

`--list` names every interval that is printed, where it is made and which part simulates it. The parts:

- rare: the gap at ε = 0 and the limits of its test if few people gain much, with cross-entropy and with the 0-1 loss;
  beside it the share of changed decisions, and what the largest loss of the sample would cover as a ceiling.
- tolerance: the gap at ε > 0 over fixed candidates, gains at no distance being rare.
- audit: `lw.audit` itself: the share of changed decisions, the gap and the limits of its test.
- verify: the share of all rows of a domain that `lw.verify` samples.
- bounds: confidence of bounds from a sample (betting, empirical Bernstein), from one side.
- groups: Gap_RMS, Gap_max, the gaps of the classes, balanced accuracy and accuracy; equal, nearly equal and different
  rates, small and large groups, groups without a class.
- selection: differences and ratios of selection rates, and impact ratios.
- means: mean changes of score between people and counterfactuals, and differences of mean sentiment.
- attack: the same intervals on distributions that nothing was tuned on: log-normal gains cut off at the ceiling,
  mixtures, ties, 2 to 6 groups of random sizes.
- attribute: `twin_study` and `correspondence_study` with only the attribute changed.
- matched: `twin_study` with comparable real people, with and without replacement.
- consequences: `twin_study` with consequences learned along a graph, over refits; known counterfactuals.
- diagnose: how well a probe predicts a sensitive column.
- recourse: what the favourable decision costs refused people, by group: medians and shares.
- text: audits of scores of texts: every interval with few, unequal and dominant clusters, false alarms and equivalence at
  the margin over everything in a run of several models, and power.
- pure, candidates: the gap by size, dimension and share of the harmed. People have a sensitive column of −1
  and 1 and d − 1 normal features; labels follow a logistic model of the features, and the audited model adds an effect of
  the sensitive column: for everybody, or for the 5% whose first feature is highest. "pure" is the gap at ε = 0 about the
  population; "candidates" that at ε given the candidates.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import expit

import likewise as lw
from likewise.auditing.bounds.linear.supremum import logistic_supremum
from likewise.auditing.dual.finite_dual import Frontier, dual_curve
from likewise.auditing.inference.certificate import ConfidenceInterval, mean_upper_bound
from likewise.auditing.inference.intervals import (
    betting_upper_limit,
    gap_interval,
    gap_test,
    mean_at_most_p_value,
    prices_around,
)
from likewise.auditing.search.candidates import CandidateSearch
from likewise.core.exact_sum import Moments
from likewise.core.intervals import bounded_mean_interval, mean_share_interval, proportion_interval
from likewise.core.subspace import Subspace
from likewise.counterfactuals import Boosting, Consequences, MatchedTwins, twin_study
from likewise.counterfactuals.changes import Outcomes, SharedPeople, quantities
from likewise.evaluation.groups import gap_intervals, gap_summaries
from likewise.evaluation.impact import impact_ratio_limits, selection_measures
from likewise.evaluation.sentiment import sentiment_gap_interval
from likewise.explaining.burden import _burden as burden_of
from likewise.fair_metrics import FairMetric
from likewise.fair_metrics.diagnosis import probe
from likewise.models import as_model
from likewise.models.losses import CrossEntropy
from likewise.text.cluster_inference import AuditDesign, PairedScores, cluster_means
from likewise.text.score_audit import audit_together

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
        chosen = CandidateSearch(edits={0: [-1.0, 1.0]}, use_rows=True if pool is None else "pool")
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


def students(gains: Any, spent: float = 0.0) -> ConfidenceInterval:
    """Student's interval of a mean gain, to compare with."""
    low, high = stats.t.interval(0.95, len(gains) - 1, loc=gains.mean(), scale=stats.sem(gains))
    return ConfidenceInterval(spent + gains.mean(), spent + low, spent + high, 0.95, len(gains), "gap")


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
        student = students(gains)
        flips = proportion_interval(int(world.flips(X).sum()), n, confidence=0.95)
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


def candidates(world: World, n: int, simulations: int, seed: int) -> dict[str, float]:
    rng = np.random.default_rng([seed, world.d, n, 1])
    beyond = population_gap(world, rng)
    rows = []
    for _ in range(simulations):
        X, y = world.people(rng, n)
        frontier = world.search(X, y)
        curve = dual_curve(frontier)
        best = float(curve.lambda_(EPS))
        gains = {price: Moments.of(frontier.gains(price)) for price in prices_around(curve, EPS)}
        found = gap_interval(gains, lambda_=best, eps=EPS, ceiling=UPPER)
        student = students(frontier.conjugate(best) - frontier.base_loss, best * EPS)
        truth = world.gap_among(*world.people(rng, FRESH[n]), X, max(best, 0.01))
        ours = (truth, covers(found, truth), found.width)
        rows.append((*ours, covers(student, truth), student.width, covers(student, beyond)))
    names = ("truth", "coverage", "width", "t coverage", "t width", "t coverage of the population")
    return dict(zip(names, np.mean(rows, axis=0), strict=True))


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
        test = gap_test(found, found, threshold=truth, ceiling=ceiling, confidence=0.95)
        sample = gap_interval({np.inf: found}, lambda_=np.inf, eps=0.0, ceiling=max(float(gains.max()), 1e-9))
        changed = proportion_interval(int((gains > 0).sum()), n, confidence=0.95)
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


def tolerance(simulations: int, seed: int) -> Lines:
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
                        gains = {p: Moments.of(frontier.gains(p)) for p in prices_around(curve, eps)}
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


def group_line(people: Any, rates: Any, simulations: int, rng: Any) -> dict[str, float]:
    people, rates = np.asarray(people), np.asarray(rates)
    first, second = np.triu_indices(len(people), k=1)
    gaps = rates[first] - rates[second]
    rms, largest = gap_summaries(rates[None])[0]
    classes = gaps[0] if len(gaps) == 1 else np.abs(gaps).max(axis=0)
    weights, total = people.sum(axis=0), int(people.sum())
    recall = (people * rates).sum(axis=0) / weights
    rows = []
    for _ in range(simulations):
        right = rng.binomial(people, rates)
        found = gap_intervals(right, people)
        balanced = mean_share_interval(right.sum(axis=0), weights)
        accurate = proportion_interval(int(right.sum()), total)
        of_classes = np.mean([covers(one, truth) for one, truth in zip(found[2:], classes, strict=True)])
        row = [covers(found[0], rms), found[0].high - found[0].low, covers(found[1], largest)]
        row += [found[1].high - found[1].low, of_classes]
        rows.append([*row, covers(balanced, recall.mean()), covers(accurate, (people * rates).sum() / total)])
    names = ["Gap_RMS", "width", "Gap_max", "width of it", "gaps of classes", "balanced accuracy", "accuracy"]
    return {"true Gap_max": float(largest)} | dict(zip(names, tally(rows), strict=True))


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
            rows.append((covers(found, 2.0), found.high - found.low))
        yield (
            f"difference of sentiment, {first} and {second} names",
            {"truth": 2.0} | dict(zip(("mean", "width"), tally(rows), strict=True)),
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
            yield name, group_line(people, rates, simulations, rng)


def selection(simulations: int, seed: int) -> Lines:
    """Equal, nearly equal and different rates, rare selections included; 2 to 6 groups, 60 to 3,000 people."""
    rng = np.random.default_rng([seed, 21])
    for number in (2, 3, 4, 6):
        for total in (60, 600, 3_000):
            for kind in ("equal", "nearly equal", "different"):
                people = 5 + rng.multinomial(total - 5 * number, rng.dirichlet(np.full(number, 2.0)))
                rates = np.full(number, rng.choice([0.02, 0.1, 0.4, 0.8]))
                if kind != "equal":
                    rates = np.clip(
                        rates * rng.lognormal(0.0, 0.05 if kind == "nearly equal" else 0.5, number),
                        0.005,
                        0.99,
                    )
                truth = np.ptp(rates), rates.min() / rates.max(), rates / rates.max()
                rows = []
                for _ in range(simulations):
                    taken = rng.binomial(people, rates)
                    group = np.repeat(np.arange(number), people)
                    chosen = np.concatenate([np.arange(n) < k for n, k in zip(people, taken, strict=True)])
                    gap, ratio = selection_measures(chosen, group, attribute="g")
                    low, high = impact_ratio_limits(taken, people)
                    inside = (low <= truth[2] + 1e-12) & (truth[2] <= high + 1e-12)
                    rows.append([covers(gap, truth[0]), gap.high - gap.low, ratio.low <= truth[1] + 1e-12 <= ratio.high + 2e-12,
                                 ratio.high - ratio.low, inside.mean()])  # fmt: skip
                names = ("difference", "width", "ratio", "width of it", "impact ratios")
                name = (
                    f"{number} groups, {total:,} people, rates {rates.min():.3f} to {rates.max():.3f}, {kind}"
                )
                yield name, {"true ratio": float(truth[1])} | dict(zip(names, tally(rows), strict=True))


def missing_cells(simulations: int, seed: int) -> Lines:
    """Groups and classes drawn at random, so that some groups have nobody of a class."""
    rng = np.random.default_rng([seed, 22])
    for number, n in ((2, 60), (3, 60), (4, 200)):
        shares = rng.dirichlet(np.full(number, 2.0))
        base, rates = rng.uniform(0.02, 0.3, number), rng.uniform(0.3, 0.95, (number, 2))
        truth, rows = gap_summaries(rates[None])[0], []
        for _ in range(simulations):
            group = rng.choice(number, p=shares, size=n)
            y = (rng.random(n) < base[group]).astype(int)
            cells, right = 2 * group + y, rng.random(n) < rates[group, y]
            people = np.bincount(cells, minlength=2 * number).reshape(number, 2)
            found = gap_intervals(np.bincount(cells[right], minlength=2 * number).reshape(number, 2), people)
            known = [
                np.isnan(one.low) or covers(one, number) for one, number in zip(found, truth, strict=False)
            ]
            rows.append((*known, (people == 0).any()))
        names = ("Gap_RMS", "Gap_max", "share of samples with an empty cell")
        yield f"{number} groups, {n} people, rare class", dict(zip(names, tally(rows), strict=True))


def audit_line(simulations: int, seed: int) -> Lines:
    """An effect of sex on the share of people whose skill is in a narrow range, and none at all."""
    for share, n in ((0.0, 200), (0.003, 200), (0.003, 1_000), (0.03, 200), (0.03, 1_000), (0.3, 200)):
        rng = np.random.default_rng([seed, 23, n, int(1e4 * share)])
        low, high = stats.norm.ppf([0.5, 0.5 + share])

        def chance(frame: Any, low: float = low, high: float = high) -> Any:
            reached = (frame["skill"] > low) & (frame["skill"] < high)
            return expit(np.where(reached, np.where(frame["sex"] == "M", 3.0, -3.0), frame["skill"] - 1.0))

        def people(n: int, rng: Any = rng) -> Any:
            return pd.DataFrame({"skill": rng.normal(size=n), "sex": rng.choice(["F", "M"], n)})

        model = as_model(chance, takes_frame=True)

        def losses(frame: Any, y: Any, chance: Any = chance) -> Any:
            p = chance(frame)
            return -np.log(np.where(y == 1, p, 1 - p))

        many = people(400_000)
        y = (rng.random(len(many)) < 0.4).astype(int)
        other = many.assign(sex=np.where(many["sex"] == "M", "F", "M"))
        own, theirs = losses(many, y), losses(other, y)
        gap = float(np.maximum(theirs - own, 0.0).mean())
        changed = float(((chance(many) > 0.5) != (chance(other) > 0.5)).mean())
        rows = []
        for _ in range(simulations):
            some = people(n)
            labels = (rng.random(n) < 0.4).astype(int)
            found = lw.audit(model, some, labels, sensitive_features=["sex"], eps=0.0)
            only, test = found.sensitive, found.test.interval
            rows.append((only.gap_interval[0] <= gap <= only.gap_interval[1], covers(found.interval, gap),
                         test[0] <= gap <= test[1], only.changed_interval[0] <= changed <= only.changed_interval[1]))  # fmt: skip
        names = ("gap, only sex changed", "gap at ε = 0", "limits of the test", "share of changed decisions")
        yield (
            f"{share:.1%} affected, n = {n}",
            {"true share": changed} | dict(zip(names, tally(rows), strict=True)),
        )


def verify(simulations: int, seed: int) -> Lines:
    for width in (0.0002, 0.003, 0.05):
        frame = pd.DataFrame(
            {"sex": ["F", "M"] * 50, "a": np.linspace(0.0, 1.0, 100), "b": np.tile(np.arange(5), 20)}
        )

        def decide(table: Any, width: float = width) -> Any:
            return (table["a"] + width * (table["sex"] == "M") > 0.5).astype(int)

        rows = []
        for number in range(simulations):
            found = lw.verify(decide, frame, sensitive_features=["sex"], random_state=seed + number).sampled
            rows.append((covers(found, width), found.high - found.low))
        yield f"{width:.2%} of all rows", dict(zip(("share", "width"), tally(rows), strict=True))


def bounds(simulations: int, seed: int) -> Lines:
    rng = np.random.default_rng([seed, 24])
    shapes = {
        "uniform": lambda n: rng.random(n),
        "0 but for 1% of 1": lambda n: (rng.random(n) < 0.01).astype(float),
        "1 but for 1% of 0": lambda n: (rng.random(n) > 0.01).astype(float),
        "beta(.1, .3)": lambda n: rng.beta(0.1, 0.3, n),
        "all .2": lambda n: np.full(n, 0.2),
    }
    for name, draw in shapes.items():
        truth = float(draw(4_000_000).mean())
        for n in (50, 500):
            rows = []
            for _ in range(simulations):
                values, pilot = draw(n), draw(24)
                betting = betting_upper_limit(values, 1.0, pilot=pilot, level=0.95, planned=n)
                bernstein = mean_upper_bound(values, 1.0, confidence=0.95)
                rows.append(
                    (betting >= truth - 1e-12, betting - truth, bernstein >= truth, bernstein - truth)
                )
            names = ("betting", "above the truth by", "empirical Bernstein", "above by")
            yield f"{name}, n = {n}", {"truth": truth} | dict(zip(names, tally(rows), strict=True))


def study_lines(make: Any, ask: Any, simulations: int) -> dict[str, float]:
    """Coverage of everything that a question of `twin_study` prints, about the mean over samples of this size."""
    values, ends = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(simulations):
            answer = ask(make())
            told = [answer.changed, *answer.effects]
            told += [one for group in answer.groups for one in (group.changed, group.change)]
            values.append([one.value for one in told])
            ends.append([(one.low, one.high) for one in told])
    truth, limits = np.mean(values, axis=0), np.array(ends)
    inside = ((limits[:, :, 0] <= truth + 1e-12) & (truth <= limits[:, :, 1] + 1e-12)).mean(axis=0)
    width, effects = (limits[:, :, 1] - limits[:, :, 0]).mean(axis=0), len(answer.effects)
    of_groups = inside[1 + effects :]
    return {"share": truth[0], "changed": inside[0], "width": width[0], "effect": truth[1], "effects": inside[1 : 1 + effects].min(),
            "width of it": width[1], "groups, changed": of_groups[::2].min(), "groups, change": of_groups[1::2].min()}  # fmt: skip


def attribute(simulations: int, seed: int) -> Lines:
    """Only the attribute changes, and the correspondence study of the same people."""
    for share in (0.001, 0.01, 0.03, 0.3):
        for n in (100, 1_000):
            rng = np.random.default_rng([seed, 31, n, int(1e4 * share)])
            covered = []

            def make(rng: Any = rng, n: int = n) -> Any:
                return pd.DataFrame({"sex": rng.choice(["F", "M"], n), "u": rng.random(n)})

            def decide(t: Any, share: float = share) -> Any:
                return ((t["u"] < share) & (t["sex"] == "M")).astype(int)

            def ask(people: Any, decide: Any = decide, share: float = share, covered: Any = covered) -> Any:
                study = lw.correspondence_study(decide, people, {"sex": None})
                covered.append(1 - share in study.interval())
                return twin_study(decide, people, "sex", questions=["attribute"])["attribute"]

            found = study_lines(make, ask, simulations)
            yield f"{share:.1%} change, n = {n:,}", found | {"consistency": float(np.mean(covered))}


def skewed(rng: Any, n: int, share: float) -> pd.DataFrame:
    """Two features, of which a skewed one differs between the groups a little, and what the metric does not see."""
    man = rng.random(n) < share
    return pd.DataFrame({
        "sex": np.where(man, "M", "F"), "x": rng.gamma(2.0 + 0.5 * man), "z": rng.standard_t(5, n), "u": rng.random(n),
    })  # fmt: skip


class Scored:
    """Probabilities that depend on features, sex and, for the decision, on chance."""

    classes_ = np.array([0, 1])

    def __init__(self, effect: float) -> None:
        self.effect = effect

    def predict_proba(self, t: Any) -> Any:
        p = expit(t["x"] - 2.0 + 0.5 * t["z"] + self.effect * (t["sex"] == "M"))
        return np.stack([1 - np.asarray(p), np.asarray(p)], axis=1)

    def predict(self, t: Any) -> Any:
        return (self.predict_proba(t)[:, 1] > 0.5).astype(int)


MATCHED = {
    "1% by chance": lambda t: (t["u"] < 0.01).astype(int),
    "30% by chance": lambda t: (t["u"] < 0.3).astype(int),
    "men 6%, women 1% by chance": lambda t: (t["u"] < np.where(t["sex"] == "M", 0.06, 0.01)).astype(int),
    "of the features only": lambda t: (t["x"] + 0.3 * t["z"] > 2.0).astype(int),
    "of features, sex and chance": lambda t: (t["x"] + (t["sex"] == "M") + 2 * t["u"] > 3.0).astype(int),
    "probabilities, no effect": Scored(0.0),
    "probabilities, effect 1": Scored(1.0),
}


def matched_answer(
    model: Any, people: dict[str, Any], replace: bool
) -> tuple[list[float], list[tuple[float, float]]]:
    """What `twin_study` prints of two groups matched by x and z, without the time that tables take."""
    maker = MatchedTwins("sex", replace=replace)
    codes = (people["sex"] == "M").astype(np.int64)
    maker.values_, maker.groups_ = ("F", "M"), [np.flatnonzero(codes == h) for h in (0, 1)]
    maker.places_, maker.same_people_ = np.stack([people["x"], people["z"]], axis=1), True
    maker.neighbours_ = maker.own_neighbours_ = maker._neighbours(maker.places_, codes, np.arange(len(codes)))
    maker.matched_, _ = maker._matches(maker.places_, codes)
    maker.pool_ = people
    scores = isinstance(model, Scored)
    decision = np.asarray(model.predict(people) if scores else model(people))
    score = model.predict_proba(people)[:, 1] if scores else decision.astype(float)
    compared, own = maker.matched_ >= 0, np.stack([codes == 0, codes == 1])

    def placed(values: Any) -> Any:
        return np.stack([values, *np.where(compared, values[maker.matched_], values)])

    outcomes = Outcomes(("F", "M"), np.arange(2), own, compared, placed(decision), placed(score), None)
    near = np.stack(
        [maker.neighbours_, *np.where(compared, maker.neighbours_[maker.matched_], np.arange(len(codes)))]
    )
    shared = SharedPeople(
        np.stack([np.arange(len(codes)), *maker.matched_]), decision[near], score[near], not replace
    )
    told = quantities(outcomes, people["sex"], (-1.0, 1.0))
    found = [quantity.measure(outcomes, 0.95, shared) for quantity in told]
    return [one.value for one in found], [(one.low, one.high) for one in found]


def matched(simulations: int, seed: int) -> Lines:
    """The truth is the mean over samples of the same size."""
    names = ("changed", "effect", "women changed", "women change", "men changed", "men change")
    for replace in (True, False):
        for name, model in MATCHED.items():
            for n in (100, 300, 1_000):
                rng = np.random.default_rng([seed, 32, n, len(name)])
                drawn = (
                    {k: v.to_numpy() for k, v in skewed(rng, n, 0.35).items()} for _ in range(simulations)
                )
                values, ends = zip(*(matched_answer(model, people, replace) for people in drawn), strict=True)
                truth, limits = np.mean(values, axis=0), np.array(ends)
                inside = (limits[:, :, 0] <= truth + 1e-12) & (truth <= limits[:, :, 1] + 1e-12)
                width = (limits[:, :, 1] - limits[:, :, 0]).mean(axis=0)
                line = {"true share": truth[0], "true effect": truth[1]} | dict(
                    zip(names, inside.mean(axis=0), strict=True)
                )
                words = "with" if replace else "without"
                yield (
                    f"{words} replacement, {name}, n = {n:,}",
                    line | {"width of changed": width[0], "of effect": width[1]},
                )


def matched_otherwise(simulations: int, seed: int) -> Lines:
    """Three groups, several comparators, a learned metric, other people as the pool."""

    def three(rng: Any, n: int) -> Any:
        return skewed(rng, n, 0.35).assign(sex=rng.choice(["F", "M", "X"], n, p=[0.5, 0.3, 0.2]))

    kinds: dict[str, Any] = {
        "three groups": (three, {}, None),
        "three groups, without replacement": (three, {"replace": False}, None),
        "3 comparators": (lambda rng, n: skewed(rng, n, 0.5), {"k": 3}, None),
        "1 in 10 a man": (lambda rng, n: skewed(rng, n, 0.1), {}, None),
        "compared with 300 others": (lambda rng, n: skewed(rng, n, 0.5), {}, 300),
    }  # fmt: skip
    for name, (draw, options, others) in kinds.items():
        ignoring = lw.ExpertSubspace(["sex", "u"]).fit(draw(np.random.default_rng(0), 1_000)).metric_
        for words in ("of features, sex and chance",):
            rng = np.random.default_rng([seed, 33, len(name)])

            def make(draw: Any = draw, rng: Any = rng) -> Any:
                return draw(rng, 300)

            def ask(people: Any, draw: Any = draw, rng: Any = rng, words: str = words, options: Any = options,
                    others: Any = others, ignoring: Any = ignoring) -> Any:  # fmt: skip
                how = MatchedTwins("sex", metric=ignoring, **options)
                pool = None if others is None else draw(rng, others)
                return twin_study(
                    MATCHED[words], people, "sex", questions=["matched"], matched=how, reference=pool
                )["matched"]

            yield f"{name}, {words}, n = 300", study_lines(make, ask, simulations)


def consequences(simulations: int, seed: int) -> Lines:
    """A linear and a bent structural model; the truth is that of a million people and their known counterfactuals."""
    graph = {"sex": ["school", "pay"], "age": ["school", "pay"], "school": ["pay"]}

    def world(rng: Any, n: int, bent: bool, effect: float) -> tuple[Any, Any]:
        sex, age = rng.integers(0, 2, n), rng.normal(40, 10, n)
        u, v = rng.normal(size=(2, n))

        def of(s: Any) -> Any:
            school = 12 + 0.05 * age + effect * s + (1 + 0.3 * s * bent) * u
            pay = 0.8 * school + 0.02 * age + effect * s + v + bent * np.sin(school)
            return pd.DataFrame({"sex": np.where(s == 1, "M", "F"), "age": age, "school": school, "pay": pay})

        return of(sex), of(1 - sex)

    for bent, effect, n in ((False, 0.0, 200), (False, 1.0, 200), (False, 1.0, 600), (True, 1.0, 400)):
        rng = np.random.default_rng([seed, 34, n, int(bent), int(effect)])
        cut = float(world(rng, 100_000, bent, effect)[0]["pay"].quantile(0.7))

        def decide(t: Any, cut: float = cut) -> Any:
            return (t["pay"] > cut).astype(int)

        people, other = world(rng, 1_000_000, bent, effect)
        own, theirs = decide(people).to_numpy(), decide(other).to_numpy()
        man = (people["sex"] == "M").to_numpy()
        change = theirs - own
        truth = [np.mean(own != theirs), np.where(man, -change, change).mean(), np.mean(change[~man] != 0),
                 change[~man].mean(), np.mean(change[man] != 0), change[man].mean()]  # fmt: skip
        rows = []
        for number in range(simulations):
            some = world(rng, n, bent, effect)[0]
            given = Consequences(graph=graph, boosting=Boosting(n_iter=20))
            answer = twin_study(
                decide,
                some,
                "sex",
                questions=["consequences"],
                consequences=given,
                refits=20,
                random_state=number,
            )["consequences"]
            told = [answer.changed, *answer.effects]
            told += [one for group in answer.groups for one in (group.changed, group.change)]
            rows.append(
                [covers(one, t) for one, t in zip(told, truth, strict=True)] + [told[0].high - told[0].low]
            )
        names = ("changed", "effect", "women changed", "women change", "men changed", "men change", "width")
        name = f"{'bent' if bent else 'linear'}, effect {effect:g}, n = {n}, 20 refits"
        yield name, {"true share": truth[0]} | dict(zip(names, tally(rows), strict=True))


def diagnose(simulations: int, seed: int) -> Lines:
    """AUC of a probe trained on 4/5 of n people; the truth is the mean AUC of such probes on 20,000 others."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    for slope, n in ((0.0, 200), (0.5, 200), (0.5, 1_000), (2.0, 200)):
        rng = np.random.default_rng([seed, 35, n, int(10 * slope)])

        def draw(n: int, rng: Any = rng, slope: float = slope) -> tuple[Any, Any]:
            X = rng.normal(size=(n, 4))
            return X, (rng.random(n) < expit(slope * X[:, 0])).astype(int)

        Xf, yf = draw(20_000)
        found, truths = [], []
        for number in range(simulations):
            X, y = draw(n)
            found.append(probe("linear", X, y, classes=True, folds=5, seed=number))
            Xt, yt = draw(4 * n // 5)
            truths.append(
                roc_auc_score(yf, LogisticRegression(max_iter=2000).fit(Xt, yt).decision_function(Xf))
            )
        truth = float(np.mean(truths))
        rows = [(covers(one, truth), one.high - one.low) for one in found]
        yield (
            f"slope {slope:g}, n = {n}",
            {"truth": truth} | dict(zip(("AUC", "width"), tally(rows), strict=True)),
        )


def recourse(simulations: int, seed: int) -> Lines:
    """The burden of refused people, by group: samples of 6,000 people whose least changes are known. Few, or half, have no way."""
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder
    from sklearn.tree import DecisionTreeClassifier

    def draw(rng: Any, n: int, barred: float) -> Any:
        words = {"sex": rng.choice(["F", "M"], n), "barred": np.where(rng.random(n) < barred, "yes", "no")}
        return pd.DataFrame({"skill": rng.normal(size=n), "hours": rng.integers(0, 60, n), **words})

    def told(people: Any) -> list[Any]:
        groups = [burden_of("sex", group, people[people["sex"] == group], 0.95) for group in "FM"]
        return [part for one in groups for part in (one.cost, one.without, one.dearer, one.cheaper)]

    names = [f"{group}: {part}" for group in "FM" for part in ("cost", "without", "dearer", "cheaper")]
    for effect, barred in ((0.0, 0.003), (0.6, 0.03), (0.6, 0.45)):
        rng = np.random.default_rng([seed, 41, int(10 * effect), int(1e4 * barred)])
        many = draw(rng, 6_000, 0.2)
        score = many["skill"] + many["hours"] / 20 - 2 + effect * (many["sex"] == "M")
        score = score - 9 * (many["barred"] == "yes") + rng.logistic(size=len(many)) / 3
        words = (OrdinalEncoder(categories=[["F", "M"], ["no", "yes"]]), ["sex", "barred"])
        tree = DecisionTreeClassifier(max_depth=6, min_samples_leaf=40, random_state=0)
        model = make_pipeline(make_column_transformer(words, remainder="passthrough"), tree)
        model.fit(many, (score > 0).astype(int))
        given: Any = {"favourable": 1, "actions": {"barred": "fixed"}, "rules": None}
        everybody = lw.recourse(model, draw(rng, 6_000, barred), sensitive_features=["sex"], **given).people
        truth = [one.value for one in told(everybody)]
        for n in (30, 100, 500):
            rows = []
            for _ in range(simulations):
                found = told(everybody.iloc[rng.integers(len(everybody), size=n)])
                rows.append([not (one.low > t or one.high < t) for one, t in zip(found, truth, strict=True)])
            name = f"effect {effect:g}, {barred:.1%} barred, {n} refused"
            yield name, {"true cost": truth[0]} | dict(zip(names, tally(rows), strict=True))


BY_WORLD = {"pure": pure, "candidates": candidates}
# Text audits: clusters of texts, how their sizes and variances differ, and the noise of a score.
LAYOUTS: dict[str, list[int]] = {
    "4 × 3": [3] * 4,
    "6 × 3": [3] * 6,
    "8, one with half": [21] + [3] * 7,
    "12, one with 90%": [99] + [1] * 11,
    "20 of 1 to 20": list(range(1, 21)),
    "40 × 2": [2] * 40,
}
NOISES = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "t, 3 degrees": lambda rng, shape: rng.standard_t(3, shape) / np.sqrt(3),
    "exponential": lambda rng, shape: rng.exponential(size=shape) - 1.0,
}
PLACEBO_COST = -0.25


def text_scores(
    rng: Any, sizes: list[int], n_edits: int, effects: Any, noise: str = "normal", noisy: float = 1.0
) -> Any:
    """Changes of edits and three placebos: texts of a cluster share noise, and any edit at all costs something."""
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    draw = NOISES[noise]
    shape = (len(clusters), 1 + n_edits + 3)
    shared = draw(rng, (len(sizes), shape[1]))[clusters]
    spread = np.where(clusters == 0, noisy, 1.0)[:, None]
    scores = spread * (0.5 * shared + 0.6 * draw(rng, shape))
    scores[:, 1:] += PLACEBO_COST
    scores[:, 1 : 1 + n_edits] += effects
    return scores[:, 1:] - scores[:, :1], clusters


def paired(changes: Any, clusters: Any, edits: Any, flips: Any = None, bounds: Any = None) -> PairedScores:
    placebos = tuple(f"placebo_{n}" for n in range(changes.shape[1] - len(edits)))
    return PairedScores(
        tuple(range(len(changes))), clusters, tuple(edits), placebos, changes, flips, 0, bounds
    )


def text_intervals(simulations: int, seed: int) -> Lines:
    """Every interval of a text audit, at no effect and at one: four values of one family, the first has the effect."""
    edits = [f"name_{letter}" for letter in "abcd"]
    for noise in NOISES:
        for name, sizes in LAYOUTS.items():
            for effect, noisy in ((0.0, 1.0), (0.5, 1.0), (0.5, 5.0)):
                rng = np.random.default_rng([seed, 60, len(sizes), int(10 * effect), int(noisy)])
                effects = np.array([effect, 0.0, 0.0, 0.0])
                many = [text_scores(rng, sizes, 4, effects, noise, noisy) for _ in range(2000)]
                size = np.mean([cluster_means(np.abs(one), clusters) for one, clusters in many], axis=(0, 1))
                excess = size[:4].mean() - size[4:].mean()
                rows = []
                for _ in range(simulations):
                    changes, clusters = text_scores(rng, sizes, 4, effects, noise, noisy)
                    part = audit_together({"": paired(changes, clusters, edits)}, n_flips=99, rng=rng).parts[
                        0
                    ]
                    family = part.families[0]
                    chosen = effects[edits.index(family.worst)]
                    row = [covers(part.edits[0].change, effect + PLACEBO_COST)]
                    row += [covers(part.edits[0].shift, effect), covers(family.shift, chosen)]
                    row += [covers(family.change, chosen + PLACEBO_COST), covers(family.excess, excess)]
                    row += [
                        np.mean(
                            [
                                covers(one, t)
                                for one, t in zip(part.pairs, [effect] * 3 + [0] * 3, strict=True)
                            ]
                        )
                    ]
                    rows.append([*row, part.edits[0].shift.high - part.edits[0].shift.low])
                names = (
                    "change",
                    "shift",
                    "shift of the strongest",
                    "its change",
                    "excess",
                    "pairs",
                    "width",
                )
                unequal = ", one noisy" if noisy > 1 else ""
                yield (
                    f"{noise}, {name}{unequal}, effect {effect:g}",
                    dict(zip(names, tally(rows), strict=True)),
                )


def text_decisions(simulations: int, seed: int) -> Lines:
    """Scores that are decisions: an edit turns some of them, placebos turn others."""
    for name, sizes in LAYOUTS.items():
        for by_edit, by_placebo in ((0.02, 0.02), (0.3, 0.05)):
            rng = np.random.default_rng([seed, 61, len(sizes), int(100 * by_edit)])
            clusters = np.repeat(np.arange(len(sizes)), sizes)
            rows = []
            for _ in range(simulations):
                # Texts of a cluster turn together half of the time.
                shape = (len(clusters), 3)
                same = rng.random((len(sizes), 3))[clusters]
                draws = np.where(rng.random((len(sizes), 1))[clusters] < 0.5, same, rng.random(shape))
                turned = (draws < [by_edit, by_placebo, by_placebo]).astype(float)
                scores = paired(-turned, clusters, ["name_a"], turned, (-1.0, 1.0))
                effect = audit_together({"": scores}, n_flips=99, rng=rng).parts[0].families[0]
                row = [covers(effect.change, -by_edit), covers(effect.shift, by_placebo - by_edit)]
                rows.append([*row, covers(effect.changed, by_edit - by_placebo)])
            yield (
                f"{name}, {by_edit:.0%} by the edit, {by_placebo:.0%} by a placebo",
                dict(zip(("change", "shift", "changed decisions"), tally(rows), strict=True)),
            )


# Models, families and values of a family in one run, and the clusters.
RUNS = {
    "11 models × 4 families, 12 × 1": (11, 4, 1, [1] * 12),
    "3 models × 2 families × 3, 20 of 1 to 20": (3, 2, 3, list(range(1, 21))),
    "2 models × 2 families × 3, 12, one with 90%": (2, 2, 3, [99] + [1] * 11),
    "2 models × 1 family × 4, 8, one with half": (2, 1, 4, [21] + [3] * 7),
    "1 model × 2 families × 2, 40 × 2": (1, 2, 2, [2] * 40),
}


def text_alarms(simulations: int, seed: int) -> Lines:
    """Over everything in a run: effects where there are none, and equivalence of edits that stand at the margin.

    Without placebos, which are a second hurdle: an effect must differ from them too.
    """
    margin = 1.0
    for noise in NOISES:
        for name, (models, families, values, sizes) in RUNS.items():
            edits = [f"f{family}_{value}" for family in range(families) for value in range(values)]
            for noisy in (1.0, 5.0):
                rng = np.random.default_rng([seed, 62, models, families, int(noisy)])
                rows = []
                for _ in range(simulations):
                    parts: dict[str, dict[str, PairedScores]] = {"null": {}, "far": {}}
                    for model in range(models):
                        found, clusters = text_scores(rng, sizes, len(edits), -PLACEBO_COST, noise, noisy)
                        changes = found[:, : len(edits)]
                        parts["null"][str(model)] = paired(changes, clusters, edits)
                        parts["far"][str(model)] = paired(changes + margin, clusters, edits)
                    null = audit_together(parts["null"], n_flips=1999, rng=rng)
                    far = audit_together(parts["far"], margin=margin, n_flips=1999, rng=rng)
                    row = [
                        any(one.verdict == verdict for part in audits for one in getattr(part, kind))
                        for audits, verdict in ((null, "shifted"), (far, "equivalent"))
                        for kind in ("families", "edits")
                    ]
                    rows.append(row)
                names = ("family shifted", "edit shifted", "family equivalent", "edit equivalent")
                unequal = ", one noisy" if noisy > 1 else ""
                yield f"{noise}, {name}{unequal}", dict(zip(names, tally(rows), strict=True))


DESIGNS = (
    (AuditDesign(0.3, 0.6, repeats=2, n_placebos=2), 30, 0.3),
    (AuditDesign(0.3, 0.6, repeats=2, n_placebos=2), 60, 0.3),
    (AuditDesign(0.5, 0.3, n_edits=4), 10, 1.0),
    (AuditDesign(0.5, 0.3, n_edits=88, values_per_family=3), 17, 1.2),
    (AuditDesign(0.5, 0.5, n_edits=2, values_per_family=3), 24, 0.6),
    (AuditDesign(0.4, 0.4, n_placebos=0, texts_per_cluster=4, cluster_correlation=0.5), 64, 0.3),
    (AuditDesign(0.4, 0.4, texts_per_cluster=10, cluster_correlation=0.2), 100, 0.35),
    (AuditDesign(0.3, 0.5, repeats=5, n_edits=8), 83, 0.2),
    (AuditDesign(0.3, 0.5, repeats=5, n_edits=8), 8, 1.0),
)


def text_power(simulations: int, seed: int) -> Lines:
    """Power as it is claimed, and the share of audits that show the effect."""
    for number, (design, n_texts, effect) in enumerate(DESIGNS):
        rng = np.random.default_rng([seed, 63, number])
        clusters = np.arange(n_texts) // design.texts_per_cluster
        share = design.cluster_correlation
        edits = [
            f"f{family}_{value}"
            for family in range(design.n_edits)
            for value in range(design.values_per_family)
        ]

        def noise(
            sd: float, variants: int, rng: Any = rng, clusters: Any = clusters, share: float = share
        ) -> Any:
            both = np.sqrt(share) * rng.normal(size=(clusters.max() + 1, variants))[clusters]
            return sd * (both + np.sqrt(1 - share) * rng.normal(size=(len(clusters), variants)))

        found = 0
        for _ in range(simulations):
            repeat = design.repeat_sd / np.sqrt(design.repeats)
            variants = len(edits) + design.n_placebos
            changes = noise(design.text_sd, variants) + noise(repeat, variants) - noise(repeat, 1)
            changes[:, 0] += effect
            result = audit_together({"": paired(changes, clusters, edits)}, rng=rng).parts[0]
            found += result.families[0].verdict == "shifted"
        yield (
            f"{n_texts} texts, effect {effect:g}, {design.n_edits} × {design.values_per_family} edits",
            {"claimed": design.power(n_texts, effect), "shown": found / simulations},
        )


PRINTED = {
    "rare": (rare,),
    "tolerance": (tolerance,),
    "audit": (audit_line,),
    "verify": (verify,),
    "bounds": (bounds,),
    "groups": (groups, missing_cells),
    "selection": (selection,),
    "means": (means,),
    "attack": (attack, attack_groups),
    "attribute": (attribute,),
    "matched": (matched, matched_otherwise),
    "consequences": (consequences,),
    "diagnose": (diagnose,),
    "recourse": (recourse,),
    "text": (text_power, text_decisions, text_intervals, text_alarms),
}
# Every interval that is printed: where it is made, and which part simulates it.
INVENTORY = {
    "audit: gap at ε = 0, only sensitive columns changed": (
        "auditing.inference.intervals.gap_interval",
        "rare audit attack pure",
    ),
    "audit: gap at ε > 0 given its candidates": (
        "auditing.inference.intervals.gap_interval",
        "tolerance candidates",
    ),
    "audit: share of changed decisions": ("core.intervals.proportion_interval", "rare audit attack"),
    "audit: test of the gap, limits and p-value": (
        "auditing.inference.intervals.gap_test",
        "rare audit attack",
    ),
    "audit: bound from a sample of people": ("auditing.bounds.exact_search", "bounds"),
    "audit: bound for the population": ("auditing.inference.certificate.finite_sample_bound", "bounds"),
    "verify: sampled share of all rows": ("auditing.verification.asked_shares.sample_rows", "verify"),
    "evaluate: accuracy, balanced accuracy": ("core.intervals", "groups attack"),
    "evaluate: S-Con, GR-Con, consistency": ("counterfactuals.correspondence", "attribute"),
    "evaluate, group_gaps: Gap_RMS, Gap_max, gaps of classes": (
        "evaluation.groups.gap_intervals",
        "groups attack",
    ),
    "evaluate: selection difference and ratio": ("evaluation.impact.selection_measures", "selection"),
    "impact_ratios: impact ratio": ("evaluation.impact.impact_ratio_limits", "selection"),
    "sentiment_gaps: race, gender, cuisine": ("evaluation.sentiment", "means"),
    "twin_study: only the attribute": ("counterfactuals.changes.Quantity", "attribute means"),
    "twin_study: comparable real people": ("counterfactuals.changes.SharedPeople", "matched"),
    "twin_study: consequences": ("counterfactuals.changes.refit_measures", "consequences"),
    "diagnose: AUC or R² of probes": ("fair_metrics.diagnosis.probe", "diagnose"),
    "diagnose: angles (spread of resamples, not an interval)": ("fair_metrics.stability", "none"),
    "recourse: median costs, shares without a way, dearer, cheaper": ("explaining.burden", "recourse"),
    "disparity_bounds: rates, differences, ratios, bounds": ("proxies.rates", "proxies.py intervals"),
    "proxy_test: carries, moves": ("proxies.columns", "proxies.py columns"),
    "proxy_test: needed": ("core.intervals.bounded_mean_interval", "means"),
    "improve: announced figures": ("improving.figures", "announced_intervals.py"),
    "audit_scores, audit_texts: change, shift, excess, pairs, changed decisions": (
        "text.cluster_inference",
        "text",
    ),
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
    parser.add_argument("--only", choices=[*PRINTED, *BY_WORLD], nargs="*", default=[*PRINTED, "pure"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list:
        for name, (made, part) in INVENTORY.items():
            print(f"{name:58s} {made:52s} {part}")
        return
    for part in options.only:
        for lines in PRINTED.get(part, ()):
            show(part, "", lines(options.simulations, options.seed))
        if part in BY_WORLD:
            show(part, "harmed | d | n", by_world(part, options.simulations, options.seed))


if __name__ == "__main__":
    main()
