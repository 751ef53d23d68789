"""The scan lets every undominated pair through, also where float32 cannot tell distances apart."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.auditing.search.candidates import FallingLoss, scan_pairs


def true_pairs(rows, candidates, prefix):
    pairs = set()
    for i, row in enumerate(rows):
        nearest = np.inf
        for j in range(prefix[i]):
            d2 = float(((row - candidates[j]) ** 2).sum())
            if d2 < nearest:
                nearest = d2
                pairs.add((i, j))
    return pairs


def scanned(rows, candidates, prefix, **choices):
    found = list(scan_pairs(rows, prefix, FallingLoss(candidates), **choices))
    return {(int(i), int(j)) for row, which in found for i, j in zip(row, which, strict=True)}


@pytest.mark.parametrize(("scale", "offset"), [(1.0, 0.0), (1e-3, 5.0), (1e-4, 100.0), (1e6, 1e6)])
@pytest.mark.parametrize("seed", [0, 1])
def test_no_true_pair_is_lost(seed, scale, offset):
    rng = np.random.default_rng(seed)
    candidates = offset + scale * rng.normal(size=(700, 5))
    rows = np.concatenate([offset + scale * rng.normal(size=(30, 5)), candidates[rng.integers(700, size=10)]])
    prefix = rng.integers(0, 701, size=40)
    true, found = true_pairs(rows, candidates, prefix), scanned(rows, candidates, prefix)
    assert true <= found


def test_few_pairs_are_let_through_where_float32_can_tell():
    rng = np.random.default_rng(2)
    candidates, rows = rng.normal(size=(2000, 20)), rng.normal(size=(50, 20))
    prefix = np.full(50, 2000)
    assert len(scanned(rows, candidates, prefix)) < 1.1 * len(true_pairs(rows, candidates, prefix))


@pytest.mark.parametrize("block_bytes", [1, 10_000, 2**25])
def test_blocks_do_not_matter(block_bytes):
    rng = np.random.default_rng(3)
    candidates, rows = rng.normal(size=(300, 3)), rng.normal(size=(70, 3))
    prefix = rng.integers(0, 301, size=70)
    found = scanned(rows, candidates, prefix, block_bytes=block_bytes)
    assert {pair for pair in found if pair[1] < prefix[pair[0]]} >= true_pairs(rows, candidates, prefix)


def test_equal_places_keep_the_first():
    found = scanned(np.zeros((1, 2)), np.ones((400, 2)), np.array([400]))
    assert (0, 0) in found


def test_a_space_of_no_dimension_has_no_distances():
    assert (0, 0) in scanned(np.zeros((1, 0)), np.zeros((3, 0)), np.array([3]))


def test_clusters_far_apart_are_told_apart_in_double_precision():
    rng = np.random.default_rng(4)
    cluster = np.where(rng.random((3000, 1)) < 0.5, -1e6, 1e6) * np.ones((1, 4))
    candidates = cluster + rng.normal(size=(3000, 4))
    rows = candidates[:20] + 0.1
    prefix = np.full(20, 3000)
    found, true = scanned(rows, candidates, prefix), true_pairs(rows, candidates, prefix)
    assert true <= found
    assert len(found) < 3 * len(true)
