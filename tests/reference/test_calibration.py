"""Calibration by simulation: tests reject as often as they say, bounds cover as often as they say."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression

from likewise.auditing.bounds.linear.model import LinearModel
from likewise.auditing.bounds.linear.supremum import exact_supremum
from likewise.auditing.inference.certificate import finite_sample_bound
from likewise.auditing.inference.intervals import gap_test
from likewise.core.exact_sum import Moments
from likewise.data import BoxDomain
from likewise.datasets import load_adult
from likewise.fair_metrics import AttributeSubspace

AUDITS = 400


def adds_more(before, after, threshold):
    """Whether the test rejects that moving people adds at most so much."""
    losses, gains = Moments.of(before), Moments.of(np.asarray(after) - before)
    return gap_test(losses, gains, threshold=threshold, confidence=0.95).rejected


def most_rejections(audits, level=0.05):
    """With probability 0.999 a test of that level rejects no more often."""
    return int(stats.binom.ppf(0.999, audits, level))


def audit_by_gradient(rng, weights, n, steps=8):
    """One audit in float32: fixed steps of ascent inside the sensitive subspace, best iterate kept."""
    d = len(weights)
    X = rng.normal(size=(n, d)).astype(np.float32)
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-X @ weights)), 1, -1).astype(np.float32)
    basis = np.eye(d, dtype=np.float32)[:, :2]
    w = weights.astype(np.float32)

    def losses(x):
        return np.logaddexp(np.float32(0), -y * (x @ w))

    before = losses(X)
    best, x = before.copy(), X.copy()
    for _ in range(steps):
        slope = -(y / (1 + np.exp(y * (x @ w))))[:, None] * w
        x = x + (slope @ basis) @ basis.T + rng.normal(size=(n, 2)).astype(np.float32) @ basis.T
        x[:, :2] = np.clip(x[:, :2], -3, 3)
        best = np.maximum(best, losses(x))
    return before, best


def test_an_exactly_invariant_model_is_rejected_at_most_at_the_level():
    rng = np.random.default_rng(0)
    invariant = np.array([0.0, 0.0, 1.0, -2.0, 0.5])
    rejected = 0
    for _ in range(AUDITS):
        before, after = audit_by_gradient(rng, invariant, n=100)
        rejected += adds_more(before, after, 0.0)
    assert rejected <= most_rejections(AUDITS)


def test_an_unfair_model_is_rejected():
    rng = np.random.default_rng(1)
    unfair = np.array([1.0, 0.0, 1.0, -2.0, 0.5])
    found = [audit_by_gradient(rng, unfair, n=200) for _ in range(20)]
    assert all(adds_more(*losses, 0.1) for losses in found)


def test_the_adult_baseline_is_rejected():
    """Logistic regression on Adult: moves of sex and race that cost nothing raise the loss well beyond chance."""
    data = load_adult()
    fitted = LogisticRegression(max_iter=500).fit(data.X_train.to_numpy(), data.y_train)
    model = LinearModel(fitted.coef_, fitted.intercept_, fitted.classes_)
    metric = AttributeSubspace(attributes=["sex", "race"]).fit(data.X_train).metric_.without_feature_map()
    people, labels = data.X_test.to_numpy()[:1500], data.y_test[:1500]
    domain = BoxDomain.from_data(data.X_train.to_numpy())
    moved = exact_supremum(model, people, labels, metric=metric, lam=np.inf, domain=domain)
    assert moved.exact.all()
    before = model.losses(people, labels)
    assert adds_more(before, np.maximum(before, moved.loss), 0.05)  # rounding


def test_gap_on_the_border_of_the_null():
    rng = np.random.default_rng(3)
    rejected = 0
    for _ in range(AUDITS):
        before = rng.exponential(size=150)
        rejected += adds_more(before, before + rng.gamma(2.0, 0.1, size=150), 0.2)
    assert AUDITS * 0.015 <= rejected <= most_rejections(AUDITS)


class Population:
    """Finitely many kinds of people, each with finitely many places to go: V is a linear programme."""

    def __init__(self, seed, kinds=6, places=5, eps=0.15, upper=2.0):
        rng = np.random.default_rng(seed)
        self.share = rng.dirichlet(np.full(kinds, 2.0))
        self.loss = rng.uniform(0, upper, size=(kinds, places)) ** 2 / upper
        self.cost = rng.exponential(0.5, size=(kinds, places))
        self.cost[:, 0] = 0.0  # staying put
        self.eps, self.upper = eps, upper
        weights = np.repeat(np.eye(kinds), places, axis=1)
        found = linprog(
            -self.loss.ravel(),
            A_ub=[self.cost.ravel()],
            b_ub=[eps],
            A_eq=weights,
            b_eq=self.share,
            bounds=(0, None),
        )
        self.value = -found.fun
        self.gap = self.value - self.share @ self.loss[:, 0]
        # λ* is a corner of some kind's frontier: try them all.
        with np.errstate(divide="ignore", invalid="ignore"):
            rise = self.loss[:, :, None] - self.loss[:, None, :]
            slopes = rise / (self.cost[:, :, None] - self.cost[:, None, :])
        self.lams = np.unique(np.append(slopes[np.isfinite(slopes) & (slopes > 0)], 0.0))
        self.transformed = (self.loss[:, None, :] - self.lams[None, :, None] * self.cost[:, None, :]).max(2)

    def best_lam(self, counts):
        return int((self.lams * self.eps + counts @ self.transformed / counts.sum()).argmin())


def test_the_population_is_consistent():
    population = Population(0)
    at = population.best_lam(population.share)
    dual = population.lams[at] * population.eps + population.share @ population.transformed[:, at]
    assert dual == pytest.approx(population.value, abs=1e-9)
    assert population.gap > 0.1


def test_finite_sample_bound_covers_the_known_value():
    rng = np.random.default_rng(5)
    simulations, n = 1000, 200
    covered = {"value": 0, "gap": 0, "without the margin": 0}
    for simulation in range(simulations):
        population = POPULATIONS[simulation % len(POPULATIONS)]
        first, second = rng.multinomial(n, population.share, size=2)
        at = population.best_lam(first)
        shown = finite_sample_bound(
            np.repeat(population.transformed[:, at], second),
            lambda_=population.lams[at],
            eps=population.eps,
            upper=population.upper,
            losses=np.repeat(population.loss[:, 0], second),
        )
        plain = population.lams[at] * population.eps + second @ population.transformed[:, at] / n
        covered["value"] += shown.value >= population.value
        covered["gap"] += shown.gap >= population.gap
        covered["without the margin"] += plain >= population.value
    assert covered["value"] >= 0.95 * simulations
    assert covered["gap"] >= 0.95 * simulations
    # The margin is what covers: the dual value of the sample alone does not.
    assert covered["without the margin"] < 0.9 * simulations


def test_bounds_are_not_idle():
    """With many people the bound comes close to V."""
    population = POPULATIONS[0]
    counts = np.round(population.share * 200_000).astype(int)
    at = population.best_lam(counts)
    values = np.repeat(population.transformed[:, at], counts)
    args = {"lambda_": population.lams[at], "eps": population.eps, "upper": population.upper}
    assert population.value < finite_sample_bound(values, **args).value < population.value + 0.01


POPULATIONS = [Population(seed) for seed in range(5)]
