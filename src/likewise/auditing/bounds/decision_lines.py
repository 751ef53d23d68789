"""Where in a region a decision is certain: linear functions that are all below 0 there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from likewise.auditing.bounds.regions import Regions
from likewise.auditing.bounds.table_layout import IntArray
from likewise.core.arrays import FloatArray

__all__ = ["DecisionLines", "LineDecider"]


@dataclass(frozen=True, eq=False)
class DecisionLines:
    """A row x of the region is decided as class y wherever slope[y, k]ᵀx + offset[y, k] < 0 for every k.

    Parameters
    ----------
    label : int array of shape (n,)
        The one decision of all rows of the region, or −1.
    importance : float array of shape (n, P)
        How much each column leaves open.
    slope : float array of shape (n, L, K, d)
        By the encoded row.
    offset : float array of shape (n, L, K)
    off : bool array of shape (n, U)
        What the family wants back with the parts of a region: hidden units that are off all over it.
    """

    label: IntArray
    importance: FloatArray
    slope: FloatArray
    offset: FloatArray
    off: Any


@runtime_checkable
class LineDecider(Protocol):
    """A family that also says where in a region a decision is certain."""

    n_units: int

    def decide_by_lines(self, regions: Regions, off: Any) -> DecisionLines:
        """Decide regions as far as lines do; (n, U) units are known to be off."""

    def decisions(self, values: FloatArray) -> Any:
        """The decision of rows, −1 where rounding leaves it open."""
