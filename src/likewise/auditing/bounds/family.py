"""What a family of models says of regions: how high the loss can be, and where to cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from likewise.auditing.bounds.regions import Regions, Split
from likewise.auditing.bounds.table_layout import IntArray, TableLayout
from likewise.core.arrays import FloatArray

__all__ = ["BoolArray", "Family", "LossBound"]

BoolArray: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, eq=False)
class LossBound:
    """What a family says of regions: loss(x) ≤ upper + slopeᵀ(x − x₀) for every row x of the region.

    Parameters
    ----------
    upper : float array of shape (n,)
    slope : float array of shape (n, d), optional
        By the encoded row; None is 0.
    state : array of shape (n, …)
        What the family wants back with the parts of a region.
    extra : object
        What it wants back when it is asked where to cut.
    same : bool array of shape (n,), optional
        Whether the model gives all rows of the region one and the same answer; None of a family whose answers change
        from row to row.
    """

    upper: FloatArray
    slope: FloatArray | None
    state: Any
    extra: Any = None
    same: BoolArray | None = None

    def take(self, at: Any) -> LossBound:
        """Return some of them."""
        extra = None if self.extra is None else tuple(part[at] for part in self.extra)
        slope = None if self.slope is None else self.slope[at]
        same = None if self.same is None else self.same[at]
        return LossBound(self.upper[at], slope, self.state[at], extra, same)

    def put(self, at: IntArray, other: LossBound) -> None:
        """Overwrite some of them."""
        self.upper[at], self.state[at] = other.upper, other.state
        if self.slope is not None and other.slope is not None:
            self.slope[at] = other.slope
        if self.same is not None and other.same is not None:
            self.same[at] = other.same
        for part, new in zip(self.extra or (), other.extra or (), strict=True):
            part[at] = new


class Family(Protocol):
    """A family of models that can be bounded over regions.

    Attributes
    ----------
    layout : TableLayout
    slack : float
        How far the model's own losses, rounded as they are, may lie from the exact ones that are bounded here. It is
        added to every upper value at the end: cutting regions cannot remove it.
    """

    layout: TableLayout
    slack: float

    def state(self, n: int) -> Any:
        """State of n whole domains, an array of n rows."""

    def bound(self, regions: Regions, origin: FloatArray, targets: Any, state: Any) -> LossBound:
        """Upper bound of the loss over each region."""

    def look(
        self, regions: Regions, targets: Any, bound: LossBound, values: FloatArray
    ) -> tuple[FloatArray, FloatArray, Split]:
        """Loss at a row of each region, how much the bound leaves open there, and where to cut."""

    def losses(self, values: FloatArray, targets: Any) -> FloatArray:
        """Exact loss of rows of values."""

    def sure_losses(self, values: FloatArray, targets: Any) -> FloatArray:
        """At most the loss that the model itself gives rows of values, whatever its rounding."""
