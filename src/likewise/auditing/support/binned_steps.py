"""The steps of all people by their gain per transport, in bins where there are too many: what V(ε) needs.

The primal of the dual on a finite support is a fractional knapsack: the best use of a budget takes the steps by
falling gain per transport (their slope), so one sort gives V(ε) for all ε. Where there are too many steps to hold,
those whose slopes agree in the leading bits are added up. The curve through the bins' sums is exact at every edge of
a bin and a chord in between; the one bin in which λ* lies is then asked for again, more finely.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.support.dual_curve import DualCurve
from likewise.auditing.support.frontier import Floats, Ints
from likewise.auditing.support.frontier_steps import Steps

__all__ = ["ALL_BITS", "BinnedSteps"]

# Bits of a float64's mantissa: with all of them every slope has a bin of its own.
ALL_BITS = 52
_FIELDS = ("low", "high", "transport", "gain", "count")


@dataclass(frozen=True, eq=False)
class BinnedSteps:
    """Steps that cost something, or their sums in bins of their slope.

    Parameters
    ----------
    bits : int
        How many leading bits of the mantissa tell bins apart: their width is 2⁻ᵇⁱᵗˢ of their slope. With all bits
        steps are kept one by one until they are asked for, so that the sums do not depend on how people were cut
        into parts.
    low, high : float arrays of shape (k,)
        The smallest and the largest slope that occurs in each bin.
    transport, gain : float arrays of shape (k,)
        Sums over the steps in each bin.
    count : int array of shape (k,)
        How many steps they are.

    Examples
    --------
    >>> from likewise.auditing.support.frontier import Frontier
    >>> from likewise.auditing.support.frontier_steps import steps_of
    >>> frontier = Frontier.from_points(
    ...     base_loss=[0.0, 0.0], row=[0, 1], squared_distance=[1.0, 1.0], loss=[3.0, 1.0], candidate=[0, 1]
    ... )
    >>> steps = BinnedSteps.of(steps_of(frontier))
    >>> steps.high, steps.gain
    (array([3., 1.]), array([3., 1.]))
    >>> steps.curve(n=2, base=0.0, free=0.0).values
    array([0. , 1.5, 2. ])
    """

    bits: int
    low: Floats
    high: Floats
    transport: Floats
    gain: Floats
    count: Ints

    @classmethod
    def of(cls, steps: Steps, *, bits: int = ALL_BITS, low: float = 0.0, high: float = np.inf) -> BinnedSteps:
        """Take the steps that cost something and whose slope lies between `low` and `high`, both included."""
        priced = np.isfinite(steps.slope) & (steps.transport > 0)
        chosen = np.flatnonzero(priced & (steps.slope >= low) & (steps.slope <= high))
        slope = steps.slope[chosen]
        ones = np.ones(len(chosen), dtype=np.int64)
        listed = cls(bits, slope, slope, steps.transport[chosen], steps.gain[chosen], ones)
        return listed if bits == ALL_BITS else listed.summed()

    def summed(self) -> BinnedSteps:
        """Return the bins by falling slope, each once."""
        # The bits of positive floats are ordered as the floats are.
        key = self.high.view(np.int64) >> (ALL_BITS - self.bits)
        order = np.argsort(-key, kind="stable")
        first = np.flatnonzero(np.diff(key[order], prepend=key[order[:1]] + 1)) if len(key) else order

        def added(values: Any, how: Any = np.add) -> Any:
            return how.reduceat(values[order], first) if len(first) else values

        return BinnedSteps(
            self.bits,
            added(self.low, np.minimum),
            added(self.high, np.maximum),
            added(self.transport),
            added(self.gain),
            added(self.count),
        )

    def __len__(self) -> int:
        return len(self.high)

    def merge(self, other: BinnedSteps) -> BinnedSteps:
        """Return the steps of both, which must have the same bits."""
        both = (np.concatenate([getattr(self, name), getattr(other, name)]) for name in _FIELDS)
        listed = BinnedSteps(self.bits, *both)
        return listed if self.bits == ALL_BITS else listed.summed()

    def refined(self, k: int, finer: BinnedSteps) -> BinnedSteps:
        """Return the bins with bin k replaced by the finer bins of the same steps; none is added up any more."""
        fine = finer.summed()
        columns = [
            np.concatenate([getattr(self, name)[:k], getattr(fine, name), getattr(self, name)[k + 1 :]])
            for name in _FIELDS
        ]
        return BinnedSteps(ALL_BITS, *columns)

    def bin_at(self, eps: float, n: int) -> int | None:
        """Return the bin in which the budget of n rows ends, None where it is more than all of them need."""
        k = int(np.searchsorted(np.cumsum(self.transport) / n, eps, side="right"))
        return k if k < len(self) else None

    def curve(self, *, n: float, base: float, free: float) -> DualCurve:
        """Return ε ↦ V(ε) of people whose mass is n.

        Parameters
        ----------
        n : float
        base : float
            Their mean loss.
        free : float
            Their mean gain from moves that cost nothing.
        """
        bins = self.summed()
        eps = np.concatenate([[0.0], np.cumsum(bins.transport) / n])
        values = base + free + np.concatenate([[0.0], np.cumsum(bins.gain) / n])
        with np.errstate(over="ignore"):
            slopes = np.clip(bins.gain / bins.transport, bins.low, bins.high)
        return DualCurve(base, eps, values, slopes)
