"""How many sensitive directions there are is found, also where they are many among few columns."""

import numpy as np
import pytest

from likewise.fair_metrics import ComparableSubspace
from likewise.fair_metrics.comparable import count_factors, largest_noise_eigenvalue


def rows_of(seed, d, k, *, uneven, groups=500, size=4):
    """Groups of rows that differ by k factors of standard deviations 2 to 5, and by noise in every column."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.normal(size=(d, d)))[0][:, :k]
    strength = rng.uniform(2, 5, size=k)
    noise = np.exp(rng.uniform(-1, 1, size=d)) if uneven else np.ones(d)
    n = groups * size
    own = np.repeat(rng.normal(size=(groups, d)) * 10, size, axis=0)
    return own + (rng.normal(size=(n, k)) * strength) @ directions.T + rng.normal(size=(n, d)) * noise


@pytest.mark.parametrize("uneven", [False, True], ids=["even noise", "uneven noise"])
@pytest.mark.parametrize(("d", "k"), [(20, 3), (20, 7), (20, 12), (50, 20)])
def test_as_many_as_were_planted(d, k, uneven):
    for seed in range(3):
        X = rows_of(seed, d, k, uneven=uneven)
        learner = ComparableSubspace("auto").fit(X, groups=np.arange(len(X)) // 4)
        assert learner.n_components_ == k, seed


@pytest.mark.parametrize(("d", "n"), [(5, 40), (20, 300), (60, 30)])
def test_the_edge_of_noise_is_that_of_simulated_noise(d, n):
    rng = np.random.default_rng(0)
    tops = [np.linalg.svd(rng.normal(size=(n, d)), compute_uv=False)[0] ** 2 for _ in range(1000)]
    limit = largest_noise_eigenvalue(d, n)
    assert np.quantile(tops, 0.97) < limit < 1.05 * np.quantile(tops, 0.995)


def test_noise_is_hardly_ever_taken_for_a_factor():
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(100):
        X = rng.normal(size=(200, 15)) * np.exp(rng.uniform(-2, 2, size=15))
        found += count_factors(X.T @ X, 200) > 0
    assert found <= 4


def test_columns_without_spread_and_exact_low_rank():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2)) @ rng.normal(size=(2, 9))
    X = np.column_stack([X, np.zeros(100)])
    assert count_factors(X.T @ X, 100) == 2
    assert count_factors(np.zeros((4, 4)), 10) == 0
    assert count_factors(np.eye(1), 10) == 0


def test_the_answer_does_not_depend_on_the_units_of_the_columns():
    X = rows_of(0, 20, 7, uneven=False)
    centred = X.reshape(500, 4, 20) - X.reshape(500, 4, 20).mean(axis=1, keepdims=True)
    flat = centred.reshape(-1, 20)
    wide = flat * np.geomspace(1e-3, 1e3, 20)
    assert count_factors(flat.T @ flat, 1500) == count_factors(wide.T @ wide, 1500) == 7
