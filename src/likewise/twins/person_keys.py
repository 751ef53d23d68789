"""Numbers in [0, 1) that belong to a person: the same for the same row, in every table and every process."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.arrays import FloatArray

__all__ = ["fold_of", "position_of", "row_keys"]

Keys = np.ndarray[Any, np.dtype[np.uint64]]


def row_keys(frame: pd.DataFrame, columns: Sequence[str]) -> Keys:
    """Return one number per row that depends on the values of some columns and on nothing else.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [30, 40, 30], "sex": ["F", "M", "F"]})
    >>> keys = row_keys(frame, ["age", "sex"])
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    keys = np.zeros(len(frame), dtype=np.uint64)
    for name in columns:
        column = frame[name]
        numbers = getattr(column.dtype, "kind", "O") in "iufb" and not isinstance(
            column.dtype, pd.CategoricalDtype
        )
        # 30 and 30.0 are one value, whatever library read the table.
        values = column.astype(float) if numbers else column.astype(object).astype(str)
        hashed = pd.util.hash_array(np.asarray(values, dtype=float if numbers else object))
        keys = _mixed(keys ^ hashed)
    return keys


def position_of(keys: Keys, name: str, seed: int) -> FloatArray:
    """Return a position in [0, 1) per key, another for every name and seed.

    Examples
    --------
    >>> keys = np.arange(10_000, dtype=np.uint64)
    >>> bool(abs(position_of(keys, "job", 0).mean() - 0.5) < 0.02)
    True
    """
    return np.asarray((_salted(keys, name, seed) >> np.uint64(11)).astype(float) / 2.0**53)


def fold_of(keys: Keys, folds: int, seed: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the fold of each key, 0 to folds − 1."""
    return (_salted(keys, "fold", seed) % np.uint64(folds)).astype(np.int64)


def _salted(keys: Keys, name: str, seed: int) -> Keys:
    salt = np.array([zlib.crc32(name.encode()) + (seed << 32)], dtype=np.uint64)
    return _mixed(keys ^ _mixed(salt))


def _mixed(x: Keys) -> Keys:
    # The finaliser of splitmix64; products wrap around on purpose.
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(x ^ (x >> np.uint64(31)))
