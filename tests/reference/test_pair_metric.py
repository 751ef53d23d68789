"""PairMetric finds a planted metric again, and the optimum that an independent optimiser finds."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from likewise.core.subspace import Subspace
from likewise.fair_metrics import PairMetric
from likewise.fair_metrics.pair_metric import comparable_probability, pair_losses

D = 5


def planted(seed=0):
    """Σ with one free direction and unequal costs along the others."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(D, D)))[0]
    return (Q * [0.0, 0.3, 0.6, 1.0, 1.5]) @ Q.T, Q[:, :1]


def judged(sigma, m, seed):
    """Pairs at all distances, judged by the model itself."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=(m, D))
    second = first + rng.normal(size=(m, D)) * rng.uniform(0.2, 2.0, size=(m, 1))
    delta = first - second
    p = comparable_probability(np.einsum("nd,de,ne->n", delta, sigma, delta))
    return first, second, rng.random(m) < p


def test_finds_a_planted_metric_and_its_free_direction():
    sigma, free = planted()
    errors = []
    for m in (2_000, 50_000):
        learner = PairMetric(regularization=1e-5).fit_pairs(*judged(sigma, m, 1))
        errors.append(np.linalg.norm(learner.sigma_ - sigma) / np.linalg.norm(sigma))
    assert errors[1] < 0.08
    # Sampling error falls with the root of the number of pairs: by 5 here.
    assert errors[1] < errors[0] / 2
    assert learner.metric_.squared_norm(free.T)[0] < 0.01
    cheapest = np.linalg.eigh(learner.sigma_)[1][:, :1]
    assert float(Subspace(cheapest).principal_angles(Subspace(free))[0]) < 0.05


def test_is_positive_semi_definite_and_reaches_the_border():
    """Judgements by two columns alone: the other three are cheap, and where noise says "less than nothing", free."""
    learner = PairMetric(regularization=1e-5).fit_pairs(*judged(np.diag([2.0, 1.0, 0, 0, 0]), 5_000, 0))
    assert np.linalg.eigvalsh(learner.sigma_).min() > -1e-12
    assert np.diag(learner.sigma_)[2:].max() < 0.03
    assert learner.subspace_.dim >= 1
    assert np.abs(learner.subspace_.basis[:2]).max() < 0.05


def test_likelihood_of_other_pairs_beats_every_multiple_of_the_euclidean_metric():
    sigma, _ = planted()
    learner = PairMetric().fit_pairs(*judged(sigma, 3_000, 2))
    first, second, comparable = judged(sigma, 5_000, 3)
    squared = ((first - second) ** 2).sum(1)

    def euclidean(scale):
        return float(pair_losses(scale * squared, comparable.astype(float)).mean())

    best = -minimize_scalar(euclidean, bounds=(1e-3, 10), method="bounded").fun
    truth = pair_losses(np.einsum("nd,de,ne->n", first - second, sigma, first - second), comparable * 1.0)
    reached = learner.log_likelihood(first, second, comparable)
    assert reached > best + 0.01
    assert reached > -truth.mean() - 0.005


@pytest.mark.parametrize("regularization", [0.0, 0.05])
def test_agrees_with_an_independent_optimiser(regularization):
    """L-BFGS over Σ = LLᵀ, a different parametrisation of the same convex problem, with its own gradient."""
    first, second, comparable = judged(planted(4)[0], 400, 4)
    delta, y = first - second, comparable.astype(float)

    def objective(packed):
        L = packed.reshape(D, D)
        s = ((delta @ L) ** 2).sum(1)
        p = np.clip(2.0 / (1.0 + np.exp(s)), 1e-300, 1 - 1e-15)
        loss = -(y * np.log(p) + (1 - y) * np.log1p(-p)).mean() + regularization * s.mean()
        # dp/ds = −2eˢ/(1+eˢ)² = −p(2−p)/2
        slope = -p * (2 - p) / 2 * (-(y / p) + (1 - y) / (1 - p)) / len(y) + regularization / len(y)
        return loss, (2 * (delta * slope[:, None]).T @ (delta @ L)).ravel()

    found = minimize(objective, np.eye(D).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 5000})
    root = found.x.reshape(D, D)
    learner = PairMetric(regularization=regularization, tol=1e-9).fit_pairs(first, second, comparable)
    mean = learner.metric_.squared_norm(delta).mean()
    assert -learner.log_likelihood_ + regularization * mean == pytest.approx(found.fun, abs=1e-6)
    np.testing.assert_allclose(learner.sigma_, root @ root.T, atol=5e-3)


def test_units_of_the_columns_do_not_matter():
    """Years or days, dollars or cents: the same judgements give the same distances."""
    first, second, comparable = judged(planted()[0], 500, 5)
    units = np.array([0.1, 1.0, 365.0, 100.0, 3.0])
    plain = PairMetric(tol=1e-9).fit_pairs(first, second, comparable)
    scaled = PairMetric(tol=1e-9).fit_pairs(first * units, second * units, comparable)
    expected = plain.metric_.squared_distance(first, second)
    np.testing.assert_allclose(
        scaled.metric_.squared_distance(first * units, second * units), expected, rtol=1e-3, atol=1e-4
    )
