"""Mean and spread of numbers that are never in one place: summaries of parts that can be put together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Moments"]


@dataclass(frozen=True)
class Moments:
    """Count, mean and spread of some numbers.

    Parameters
    ----------
    n : int
    mean : float
    spread : float
        Sum of squared deviations from the mean.
    absolute : float
        Mean of the absolute values.
    largest : float
        The largest absolute value.

    Examples
    --------
    >>> both = Moments.of([1.0, 2.0]).merge(Moments.of([6.0]))
    >>> both.n, both.mean, round(both.std**2, 9), both.largest
    (3, 3.0, 7.0, 6.0)
    """

    n: int = 0
    mean: float = 0.0
    spread: float = 0.0
    absolute: float = 0.0
    largest: float = 0.0

    @classmethod
    def of(cls, values: Any) -> Moments:
        """Summarise an array."""
        array = np.asarray(values, dtype=np.float64)
        if not array.size:
            return cls()
        mean, size = float(array.mean()), np.abs(array)
        return cls(
            array.size, mean, float(((array - mean) ** 2).sum()), float(size.mean()), float(size.max())
        )

    def merge(self, other: Moments) -> Moments:
        """Return the moments of both together (Chan, Golub and LeVeque 1979)."""
        n = self.n + other.n
        if not n:
            return self
        share, apart = other.n / n, other.mean - self.mean
        return Moments(
            n,
            self.mean + share * apart,
            self.spread + other.spread + apart * apart * self.n * share,
            self.absolute + share * (other.absolute - self.absolute),
            max(self.largest, other.largest),
        )

    @property
    def std(self) -> float:
        """Standard deviation with n − 1."""
        return math.sqrt(self.spread / (self.n - 1)) if self.n > 1 else math.nan
