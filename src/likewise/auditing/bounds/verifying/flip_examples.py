"""Pairs of rows that differ in the sensitive columns alone and are decided differently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.bounds.table_layout import IntArray
from likewise.auditing.bounds.verifying.sensitive_values import SensitiveValues
from likewise.core.arrays import FloatArray

__all__ = ["Flip", "FlipExamples"]

_EXAMPLES = 20


@dataclass(frozen=True, eq=False)
class Flip:
    """Two rows that differ in the sensitive columns alone and are decided differently.

    Parameters
    ----------
    first, second : float arrays of shape (d,)
        Encoded valid rows.
    decisions : tuple of int
        What is decided for each, as positions of classes.
    """

    first: FloatArray
    second: FloatArray
    decisions: tuple[int, int]


class FlipExamples:
    """Rows asked of a model under every single sensitive value; the first pairs that differ are kept.

    Parameters
    ----------
    family : Decider
    values : SensitiveValues
    """

    def __init__(self, family: Any, values: SensitiveValues) -> None:
        self._family, self._values = family, values
        self._single = np.flatnonzero(values.single)
        self.found: list[Flip] = []

    def labels(self, rows: FloatArray) -> IntArray:
        """Decisions of rows of values under every single sensitive value, (m, s); −1 where rounding leaves it open."""
        size = len(self._single)
        every = np.repeat(rows, size, axis=0)
        every[:, self._values.columns] = np.tile(self._values.low[self._single], (len(rows), 1))
        return np.asarray(self._family.decisions(every), dtype=np.int64).reshape(len(rows), size)

    def look(self, rows: FloatArray) -> None:
        """Keep pairs that rows show to flip, as long as there are few."""
        if len(self.found) >= _EXAMPLES or not len(rows):
            return
        labels = self.labels(rows)
        highest = labels.max(axis=1)
        lowest = np.where(labels >= 0, labels, np.iinfo(np.int64).max).min(axis=1)
        for i in np.flatnonzero((highest >= 0) & (highest > lowest))[: _EXAMPLES - len(self.found)]:
            a, b = int((labels[i] == lowest[i]).argmax()), int(labels[i].argmax())
            pair = np.repeat(rows[i][None], 2, axis=0)
            pair[:, self._values.columns] = self._values.low[self._single[[a, b]]]
            first, second = self._family.layout.encode(pair)
            self.found.append(Flip(first, second, (int(labels[i, a]), int(labels[i, b]))))
