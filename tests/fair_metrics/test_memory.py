"""All pairs of 20,000 × 20,000 rows with 41 columns stay far below 1 GB of extra memory."""

import tracemalloc

import numpy as np

from likewise.core.subspace import Subspace
from likewise.fair_metrics import ComparableSubspace, FairMetric

MEGABYTE = 1e6


def peak_of(work):
    """Largest number of bytes that `work` held at once, beyond what was there before."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_all_pairs_of_twenty_thousand_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 41)).astype(np.float32)
    metric = FairMetric.from_subspace(Subspace(np.linalg.qr(rng.normal(size=(41, 3)))[0]))
    nearest = np.empty(len(X), dtype=np.float32)

    def work():
        for rows, block in metric.blocks(X):
            block[np.arange(len(block)), np.arange(len(X))[rows]] = np.inf
            nearest[rows] = block.min(1)

    # The whole table of distances would take 1,600 MB.
    assert peak_of(work) < 200 * MEGABYTE
    some = metric.pairwise(X[:5], X)
    some[np.arange(5), np.arange(5)] = np.inf
    np.testing.assert_allclose(nearest[:5], some.min(1), rtol=1e-4)


def test_comparable_groups_are_centred_without_a_copy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 64)).astype(np.float32)
    labels = rng.integers(50_000, size=len(X))
    learner = ComparableSubspace(n_components=2)
    assert X.nbytes > 50 * MEGABYTE
    assert peak_of(lambda: learner.fit(X, groups=labels)) < 50 * MEGABYTE
