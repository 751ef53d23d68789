"""The steps of all people by their gain per transport, added up in bins: what V(ε) needs, in bounded memory.

`dual_curve` sorts the steps from corner to corner of every row. Where there are too many to hold, steps whose gain
per transport (their slope) agrees in the leading bits are added up. The curve through the bins' sums is exact
at every edge of a bin and a chord in between; the one bin in which λ* lies is then asked for again, more finely.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.support.finite_dual import DualCurve, priced_steps
from likewise.auditing.support.frontier import Floats, Frontier, Ints

__all__ = ["ALL_BITS", "Spectrum"]

# Bits of a float64's mantissa: with all of them every slope has a bin of its own.
ALL_BITS = 52


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Sums of steps in bins of their slope, by falling slope.

    Parameters
    ----------
    bits : int
        How many leading bits of the mantissa tell bins apart: their width is 2⁻ᵇⁱᵗˢ of their slope.
    low, high : float arrays of shape (k,)
        The smallest and the largest slope that occurs in each bin.
    transport, gain : float arrays of shape (k,)
        Sums over the steps in each bin.
    count : int array of shape (k,)
        How many steps they are.

    Examples
    --------
    >>> frontier = Frontier.from_points(
    ...     base_loss=[0.0, 0.0], row=[0, 1], squared_distance=[1.0, 1.0], loss=[3.0, 1.0], candidate=[0, 1]
    ... )
    >>> spectrum = Spectrum.of(frontier)
    >>> spectrum.high, spectrum.gain
    (array([3., 1.]), array([3., 1.]))
    >>> spectrum.curve(n=2, base=0.0, free=0.0).values
    array([0. , 1.5, 2. ])
    """

    bits: int
    low: Floats
    high: Floats
    transport: Floats
    gain: Floats
    count: Ints

    @classmethod
    def of(
        cls, frontier: Frontier, *, bits: int = ALL_BITS, low: float = 0.0, high: float = np.inf
    ) -> Spectrum:
        """Add up the steps of a frontier whose slope lies between `low` and `high`, both included."""
        steps = priced_steps(frontier)
        chosen = np.flatnonzero((steps.slope >= low) & (steps.slope <= high))
        slope = steps.slope[chosen]
        return cls._added(
            bits,
            slope,
            slope,
            steps.transport[chosen],
            steps.gain[chosen],
            np.ones(len(chosen), dtype=np.int64),
        )

    @classmethod
    def _added(
        cls, bits: int, low: Floats, high: Floats, transport: Floats, gain: Floats, count: Ints
    ) -> Spectrum:
        # The bits of positive floats are ordered as the floats are.
        key = high.view(np.int64) >> (ALL_BITS - bits)
        order = np.argsort(-key, kind="stable")
        first = np.flatnonzero(np.diff(key[order], prepend=key[order[:1]] + 1)) if len(key) else order

        def added(values: Any, how: Any = np.add) -> Any:
            return how.reduceat(values[order], first) if len(first) else values

        return cls(
            bits, added(low, np.minimum), added(high, np.maximum), added(transport), added(gain), added(count)
        )

    def __len__(self) -> int:
        return len(self.high)

    def merge(self, other: Spectrum) -> Spectrum:
        """Return the sums over the steps of both, which must have the same bits."""
        pairs = [
            np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("low", "high", "transport", "gain", "count")
        ]
        return self._added(self.bits, *pairs)

    def refined(self, k: int, finer: Spectrum) -> Spectrum:
        """Return the bins with bin k replaced by the finer bins of the same steps."""
        columns = [
            np.concatenate([getattr(self, name)[:k], getattr(finer, name), getattr(self, name)[k + 1 :]])
            for name in ("low", "high", "transport", "gain", "count")
        ]
        return Spectrum(self.bits, *columns)

    def bin_at(self, eps: float, n: int) -> int | None:
        """Return the bin in which the budget of n rows ends, None where it is more than all of them need."""
        k = int(np.searchsorted(np.cumsum(self.transport) / n, eps, side="right"))
        return k if k < len(self) else None

    def curve(self, *, n: int, base: float, free: float) -> DualCurve:
        """Return ε ↦ V(ε) of n rows.

        Parameters
        ----------
        n : int
        base : float
            Their mean loss.
        free : float
            Their mean gain from moves that cost nothing.
        """
        eps = np.concatenate([[0.0], np.cumsum(self.transport) / n])
        values = base + free + np.concatenate([[0.0], np.cumsum(self.gain) / n])
        slopes = np.clip(self.gain / self.transport, self.low, self.high)
        return DualCurve(base, eps, values, slopes)
