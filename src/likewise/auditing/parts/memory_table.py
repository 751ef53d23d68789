"""People in memory as a table of one part, so that one reduction serves tables of any size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.parts.parquet_table import Part
from likewise.auditing.support.frontier import Ints
from likewise.core.frames import is_frame

__all__ = ["MemoryTable"]


@dataclass(frozen=True, eq=False)
class MemoryTable:
    """Rows and labels that are at hand.

    Parameters
    ----------
    rows : DataFrame or array
    y : array of shape (n,)

    Examples
    --------
    >>> table = MemoryTable(np.zeros((3, 1)), np.array([0, 1, 1]))
    >>> [part.rows for part in table.parts()]
    [3]
    """

    rows: Any
    y: np.ndarray[Any, Any]

    @property
    def paths(self) -> tuple[str, ...]:
        """No files."""
        return ()

    def parts(self, rows: int = 0) -> tuple[Part, ...]:
        """Everybody."""
        return (Part(0, "", (), 0, len(self.y), 0),)

    def chunks(self, part: Part, rows: int = 0) -> Iterator[tuple[Any, Any]]:
        """Yield everybody at once: searches may compare people with each other."""
        yield self.rows, self.y

    def take(self, numbers: Ints) -> Any:
        """Return some people by number, without their labels."""
        return self.rows.iloc[numbers].reset_index(drop=True) if is_frame(self.rows) else self.rows[numbers]

    def pick(self, part: Part, numbers: Ints) -> tuple[Any, Any]:
        """Return some people of the part, with their labels."""
        return self.take(numbers), self.y[numbers]

    def joined(self, picked: Sequence[tuple[Any, Any]], order: Any = None) -> tuple[Any, Any]:
        """Return people that `pick` gave, in an order."""
        ((rows, y),) = picked
        if order is None:
            return rows, y
        return (rows.iloc[order].reset_index(drop=True) if is_frame(rows) else rows[order]), y[order]
