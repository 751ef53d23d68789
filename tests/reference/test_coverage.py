"""Coverage of the intervals an audit prints, by simulation: few people, rare gains, candidates from the sample.

The full tables are made by benchmarks/interval_coverage.py; here a few of its worst cells with fewer simulations.
"""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from likewise.auditing.dual.finite_dual import dual_curve
from likewise.auditing.inference.intervals import (
    gap_interval,
    mean_at_most_p_value,
    prices_around,
)
from likewise.auditing.search.candidates import CandidateSearch
from likewise.core.exact_sum import Moments
from likewise.core.intervals import proportion_interval
from likewise.core.subspace import Subspace
from likewise.fair_metrics import FairMetric
from likewise.models import as_model
from likewise.models.losses import CrossEntropy

EPS, EFFECT, UPPER = 0.1, 1.5, CrossEntropy().upper_bound


def fewest(simulations, level=0.95):
    """With probability 0.999 an interval of that level covers at least as often."""
    return int(stats.binom.ppf(0.001, simulations, level))


class World:
    """A sensitive column of −1 and 1 that the model uses for everybody, or for the 5% with the highest feature."""

    def __init__(self, d, rare):
        self.d, self.rare = d, rare
        self.slope = np.full(d - 1, 1.5 / np.sqrt(d - 1))

    def people(self, rng, n):
        X = np.column_stack([rng.choice([-1.0, 1.0], size=n), rng.normal(size=(n, self.d - 1))])
        return X, (rng.random(n) < expit(X[:, 1:] @ self.slope)).astype(int)

    def logit(self, X):
        reached = X[:, 1] > 1.645 if self.rare else 1.0
        return X[:, 1:] @ self.slope + EFFECT * X[:, 0] * reached

    def losses(self, X, y):
        return np.logaddexp(0.0, -(2 * y - 1) * self.logit(X))

    def twins(self, X):
        return X * np.append(-1.0, np.ones(self.d - 1))

    def gains(self, X, y):
        return np.maximum(self.losses(self.twins(X), y) - self.losses(X, y), 0.0)

    def flips(self, X):
        return (self.logit(X) > 0) != (self.logit(self.twins(X)) > 0)

    def search(self, X, y, pool=None):
        chosen = CandidateSearch({0: [-1.0, 1.0]}, use_rows=True if pool is None else "pool")
        metric = FairMetric.from_subspace(Subspace.from_directions(np.eye(self.d)[:1]))
        model = as_model(lambda rows: expit(self.logit(rows)))
        return chosen.run(model, X, y, metric=metric, pool=pool).frontier


@pytest.mark.parametrize(("rare", "n"), [(True, 20), (True, 100), (False, 20)])
def test_pure_gap_shares_and_p_values_of_few_people(rare, n):
    """Student's t covers 38% and 69% of the time where 5% are harmed."""
    world, simulations = World(2, rare), 200
    rng = np.random.default_rng(0)
    X, y = world.people(rng, 400_000)
    truth, share = world.gains(X, y).mean(), world.flips(X).mean()
    covered = {"gap": 0, "share": 0, "student": 0}
    rejected = 0
    for _ in range(simulations):
        X, y = world.people(rng, n)
        found = Moments.of(world.gains(X, y))
        gap = gap_interval({np.inf: found}, lambda_=np.inf, eps=0.0, ceiling=UPPER, about="population")
        flips = proportion_interval(int(world.flips(X).sum()), n, confidence=0.95)
        gains = world.gains(X, y)
        reach = stats.t.ppf(0.975, n - 1) * stats.sem(gains)
        covered["gap"] += gap.low <= truth <= gap.high
        covered["share"] += flips.low <= share <= flips.high
        covered["student"] += abs(gains.mean() - truth) <= reach
        rejected += mean_at_most_p_value(found, truth) <= 0.05
    assert covered["gap"] >= fewest(simulations)
    assert covered["share"] >= fewest(simulations)
    assert rejected <= stats.binom.ppf(0.999, simulations, 0.05)
    assert not rare or covered["student"] < 0.8 * simulations


@pytest.mark.parametrize(("d", "rare"), [(2, True), (8, False)])
def test_the_gap_given_its_candidates(d, rare):
    """Candidates are the audited people themselves; the truth is that of fresh people among the same candidates."""
    world, simulations, n = World(d, rare), 40, 40
    rng = np.random.default_rng(1)
    fresh = world.people(rng, 500)
    covered = 0
    for _ in range(simulations):
        X, y = world.people(rng, n)
        frontier = world.search(X, y)
        curve = dual_curve(frontier)
        gains = {p: Moments.of(frontier.gains(p)) for p in prices_around(curve, EPS)}
        found = gap_interval(gains, lambda_=float(curve.lambda_(EPS)), eps=EPS, ceiling=UPPER)
        truth = dual_curve(world.search(*fresh, X)).gap(EPS)
        covered += found.low <= truth <= found.high
    assert covered >= fewest(simulations)
