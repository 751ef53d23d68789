"""Planted sensitive subspaces are found again: largest principal angle below 0.02 rad (n = 20,000)."""

import numpy as np
import pytest

from likewise.core.subspace import Subspace
from likewise.fair_metrics import AttributeSubspace, ComparableSubspace

N, D = 20_000, 12
LIMIT = 0.02


def orthonormal(rng, d, k):
    return np.linalg.qr(rng.normal(size=(d, k)))[0]


def largest_angle(learner, directions):
    return float(learner.subspace_.principal_angles(Subspace.from_directions(directions))[0])


def factor_model(rng, *, group_size=4, k=3, noise=0.3, dtype=np.float64):
    """φ = A u + B v + noise with v shared inside a group (Appendix B.2)."""
    A = orthonormal(rng, D, k) * 2.0
    B = rng.normal(size=(D, 4))
    groups = np.repeat(np.arange(N // group_size), group_size)
    v = rng.normal(size=(N // group_size, 4))[groups] * 5.0
    X = rng.normal(size=(N, k)) @ A.T + v @ B.T + noise * rng.normal(size=(N, D))
    return X.astype(dtype), groups, A.T


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("solver", ["gram", "randomized"])
def test_comparable_groups_find_the_sensitive_factors(solver, dtype):
    X, groups, planted = factor_model(np.random.default_rng(0), dtype=dtype)
    learner = ComparableSubspace(n_components=3, solver=solver, random_state=0).fit(X, groups=groups)
    assert learner.subspace_.dim == 3
    assert largest_angle(learner, planted) < LIMIT


def test_parallel_analysis_finds_how_many_factors_there_are():
    X, groups, planted = factor_model(np.random.default_rng(1))
    learner = ComparableSubspace(random_state=0).fit(X, groups=groups)
    assert learner.n_components_ == 3
    assert largest_angle(learner, planted) < LIMIT


@pytest.mark.parametrize("seed", range(3))
def test_softmax_regression_finds_the_subspace_of_four_categories(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    # Four classes at the corners of a regular simplex in three dimensions.
    corners = np.linalg.svd(np.eye(4) - 0.25)[2][:3]
    A = 20.0 * orthonormal(rng, D, 3) @ corners
    classes = (X @ A + rng.gumbel(size=(N, 4))).argmax(1)
    learner = AttributeSubspace(regularization=1e-5).fit(X, np.array(list("abcd"))[classes])
    assert learner.kinds_ == {0: "categorical"}
    assert learner.subspace_.dim == 3
    assert largest_angle(learner, A.T) < LIMIT


def test_ridge_finds_the_direction_of_a_continuous_attribute():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, D))
    w = orthonormal(rng, D, 1)[:, 0]
    learner = AttributeSubspace().fit(X, 40 + 10 * (X @ w + 0.5 * rng.normal(size=N)))
    assert learner.kinds_ == {0: "continuous"}
    assert largest_angle(learner, w[None, :]) < LIMIT


def test_poisson_finds_the_direction_of_a_count():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(N, D))
    w = orthonormal(rng, D, 1)[:, 0]
    counts = rng.poisson(np.exp(1.0 + 0.6 * X @ w))
    learner = AttributeSubspace(regularization=1e-4).fit(X, counts)
    assert learner.kinds_ == {0: "count"}
    assert largest_angle(learner, w[None, :]) < LIMIT
