"""Do confidence intervals cover? Coverage and width by simulation, with rare and with common harm.

    OMP_NUM_THREADS=1 python benchmarks/interval_coverage.py [--simulations 400] [--only methods pure candidates population]

People have a sensitive column of −1 and 1 and d − 1 normal features; labels follow a logistic model of the features,
and the audited model adds an effect of the sensitive column: for everybody, or for the 5% whose first feature is
highest. The metric ignores the sensitive column.

The ceiling of the gains is the largest loss among the people and their twins under either label.

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
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit

from likewise.auditing.bounds.linear.closed_form import logistic_supremum
from likewise.auditing.claims.certificate import clt_interval
from likewise.auditing.claims.concentration import mean_upper_bound
from likewise.auditing.claims.dirichlet_mean import dirichlet_mean_tails
from likewise.auditing.claims.intervals import frontier_gains, gap_interval, prices_around, share_interval
from likewise.auditing.claims.mean_limits import mean_at_most_p_value, mean_lower_limit, mean_upper_limit
from likewise.auditing.claims.sample_splitting import split_interval
from likewise.auditing.search.candidates.candidate_search import CandidateSearch
from likewise.auditing.support.finite_dual import dual_curve
from likewise.auditing.support.frontier import Frontier
from likewise.auditing.support.moments import Moments
from likewise.core.subspace import Subspace
from likewise.fair_metrics import FairMetric
from likewise.models import as_model

EPS = 0.1
EFFECT = 1.5
FRESH = {20: 4_000, 100: 4_000, 500: 2_000}
SIZES, DIMENSIONS, HARMS = (20, 100, 500), (2, 4, 8), ("everybody", "5%")
RARE_ABOVE = 1.6448536269514722


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

    def ceiling(self, X: Any) -> float:
        """The largest loss among the candidates, the people and their twins, under either label."""
        return max(self.losses(rows, label).max() for rows in (X, self.twin(X)) for label in (0, 1))

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
        ours = gap_interval(
            {np.inf: found}, lambda_=np.inf, eps=0.0, ceiling=world.ceiling(X), about="population"
        )
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
        gains, ceiling = world.pure_gains(X, y), world.ceiling(X)
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
        found = gap_interval(gains, lambda_=best, eps=EPS, ceiling=world.ceiling(X))
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


PARTS = {"methods": methods, "pure": pure, "candidates": candidates, "population": population}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulations", type=int, default=400)
    parser.add_argument("--only", choices=PARTS, nargs="*", default=list(PARTS))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for part in options.only:
        start, head = time.process_time(), None
        for n in SIZES:
            for harmed in HARMS:
                for d in DIMENSIONS:
                    found = PARTS[part](World(d, harmed), n, options.simulations, options.seed)
                    if head is None:
                        head = list(found)
                        print(
                            f"\n{part}\n| harmed | d | n | {' | '.join(head)} |\n|{'---|' * (3 + len(head))}"
                        )
                    print(
                        f"| {harmed} | {d} | {n} | {' | '.join(f'{v:.3f}' for v in found.values())} |",
                        flush=True,
                    )
        print(f"\n{time.process_time() - start:.0f} CPU s")


if __name__ == "__main__":
    main()
