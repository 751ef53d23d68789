"""Open regions in one block of memory: places are given back and used again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from likewise.auditing.bounds.regions import Regions, Split
from likewise.core.arrays import FloatArray

__all__ = ["NodePool"]


class NodePool:
    """Regions with their family's state, a point to start from and where they will be cut.

    Examples
    --------
    >>> pool = NodePool()
    >>> none = np.zeros((1, 0), dtype=np.uint8)
    >>> region = Regions(np.zeros((1, 1)), np.ones((1, 1)), none)
    >>> pool.add(region, np.zeros((1, 1)), np.zeros((1, 1)), Split(np.array([0]), np.array([0.5]), none), np.ones(1))
    [0]
    >>> pool.take([0])[0].high
    array([[1.]])
    """

    def __init__(self) -> None:
        self._arrays: list[np.ndarray[Any, Any]] = []
        self._free: list[int] = []
        self._size = 0

    def add(
        self, regions: Regions, state: Any, point: FloatArray, split: Split, reach: FloatArray
    ) -> list[int]:
        """Store regions; return their places."""
        parts = (
            regions.low,
            regions.high,
            regions.allowed,
            np.asarray(state),
            point.astype(np.float32),
            split.column,
            split.cut,
            split.left,
            reach,
        )
        if not self._arrays:
            self._arrays = [np.empty((0, *part.shape[1:]), dtype=part.dtype) for part in parts]
        n = len(regions)
        slots = [self._free.pop() for _ in range(min(n, len(self._free)))]
        fresh = n - len(slots)
        self._grow(self._size + fresh)
        slots += range(self._size, self._size + fresh)
        self._size += fresh
        for array, part in zip(self._arrays, parts, strict=True):
            array[slots] = part
        return slots

    def take(self, slots: Sequence[int]) -> tuple[Regions, Any, FloatArray, Split, FloatArray]:
        """Return what is stored in places, and free them."""
        low, high, allowed, state, point, column, cut, left, reach = (
            array[list(slots)] for array in self._arrays
        )
        self.free(slots)
        return Regions(low, high, allowed), state, point.astype(np.float64), Split(column, cut, left), reach

    def free(self, slots: Sequence[int]) -> None:
        """Give places back."""
        self._free += slots

    def _grow(self, size: int) -> None:
        have = len(self._arrays[0])
        if size <= have:
            return
        want = max(size, 2 * have, 1024)
        self._arrays = [
            np.concatenate([array, np.empty((want - have, *array.shape[1:]), dtype=array.dtype)])
            for array in self._arrays
        ]
