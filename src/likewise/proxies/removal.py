"""Removal of an attribute's part from a column: every value moves to its rank in the distribution of all groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from likewise.core.checks import FloatArray, IntArray
from likewise.core.frames import has_numbers

# Fewer people than this tell too little of the distribution of a column.
_FEW = 20


def without_attribute(
    column: pd.Series[Any], group: IntArray, strata: IntArray, target: IntArray, rng: np.random.Generator
) -> pd.Series[Any]:
    """Move every group of a stratum to the distribution of all its people, as few values and as little as can be.

    P(value | group, stratum) becomes P(value | target stratum). Numbers keep their rank, ties drawn at random; of a category
    only as many people as a group has too many change it.
    """
    numeric = has_numbers(column)
    codes, kinds = pd.factorize(column, use_na_sentinel=False, sort=numeric)
    moved = codes.copy()
    move = _by_rank if numeric else _by_value
    for stratum in np.unique(strata):
        inside = np.flatnonzero(strata == stratum)
        for value in np.unique(target[inside]):
            rows = inside[target[inside] == value]
            pool = codes[target == value] if target is not strata else codes[inside]
            for one in np.unique(group[rows]):
                mine = rows[group[rows] == one]
                # The group's own distribution is that of the whole stratum, of which these are a part.
                own = codes[inside[group[inside] == one]]
                if min(len(own), len(pool)) >= _FEW:
                    moved[mine] = move(codes[mine], own, pool, len(kinds), rng)
    changed = moved != codes
    if not changed.any():
        return column
    result = column.copy()
    result[changed] = np.asarray(kinds)[moved[changed]]
    return result


def _by_rank(
    values: IntArray, own: IntArray, pool: IntArray, size: int, rng: np.random.Generator
) -> IntArray:
    own, pool = np.sort(own), np.sort(pool)
    low, high = np.searchsorted(own, values, "left"), np.searchsorted(own, values, "right")
    rank = (low + rng.uniform(size=len(values)) * (high - low)) / len(own)
    return np.asarray(pool[np.minimum((rank * len(pool)).astype(int), len(pool) - 1)])


def _by_value(
    values: IntArray, own: IntArray, pool: IntArray, size: int, rng: np.random.Generator
) -> IntArray:
    have = np.bincount(own, minlength=size) / len(own)
    want = np.bincount(pool, minlength=size) / len(pool)
    missing = np.maximum(want - have, 0.0)
    moved = np.array(values)
    if missing.sum() > 0:
        keep = np.minimum(1.0, want / np.maximum(have, 1e-300))
        leaves = rng.uniform(size=len(values)) > keep[values]
        moved[leaves] = rng.choice(size, int(leaves.sum()), p=missing / missing.sum())
    return moved


def shuffled(column: pd.Series[Any], strata: IntArray, rng: np.random.Generator) -> pd.Series[Any]:
    """Exchange the values among the people of each stratum."""
    order = np.arange(len(column))
    for stratum in np.unique(strata):
        rows = np.flatnonzero(strata == stratum)
        order[rows] = rng.permutation(rows)
    result = column.iloc[order]
    result.index = column.index
    return result


def as_numbers(frame: pd.DataFrame) -> FloatArray:
    """Columns as numbers that a tree can split: categories by how common they are, missing cells as the least."""
    parts = []
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column.dtype):
            numbers = column.to_numpy(dtype=float, na_value=np.nan)
            known = numbers[np.isfinite(numbers)]
            parts.append(np.where(np.isfinite(numbers), numbers, known.min() - 1.0 if len(known) else 0.0))
        else:
            parts.append(pd.factorize(column.astype(str))[0].astype(float))
    return np.column_stack(parts) if parts else np.zeros((len(frame), 0))
