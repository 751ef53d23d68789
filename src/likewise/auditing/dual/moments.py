"""Mean and spread of numbers that are never in one place: exact summaries of parts that can be put together."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from likewise.core.exact_sum import ExactSum


@dataclass(frozen=True)
class Moments:
    """Count, sums and range of some numbers, without rounding.

    Merging is associative and commutative to the bit, so parts of a table give what one pass over it gives,
    whatever their sizes and their order. Make one with `of`.
    """

    n: int = 0
    total: ExactSum = field(default_factory=ExactSum)
    magnitude: ExactSum = field(default_factory=ExactSum)
    squares: ExactSum = field(default_factory=ExactSum)
    positives: int = 0
    smallest: float = math.inf
    largest: float = -math.inf

    @classmethod
    def of(cls, values: Any) -> Moments:
        """Summarise an array."""
        array = np.asarray(values, dtype=np.float64).ravel()
        if not array.size:
            return cls()
        total, smallest = ExactSum.of(array), float(array.min())
        return cls(
            n=array.size,
            total=total,
            magnitude=total if smallest >= 0 else ExactSum.of(np.abs(array)),
            squares=ExactSum.of_squares(array),
            positives=int(np.count_nonzero(array > 0)),
            smallest=smallest,
            largest=float(array.max()),
        )

    def merge(self, other: Moments) -> Moments:
        """Return the moments of both together."""
        return Moments(
            self.n + other.n,
            self.total + other.total,
            self.magnitude + other.magnitude,
            self.squares + other.squares,
            self.positives + other.positives,
            min(self.smallest, other.smallest),
            max(self.largest, other.largest),
        )

    @property
    def mean(self) -> float:
        """The mean, rounded once; 0 of no numbers."""
        return float(self.total.fraction / self.n) if self.n else 0.0

    @property
    def absolute(self) -> float:
        """Mean of the absolute values."""
        return float(self.magnitude.fraction / self.n) if self.n else 0.0

    @property
    def spread(self) -> Fraction:
        """Sum of squared deviations from the mean, exactly."""
        return self.squares.fraction - self.total.fraction**2 / self.n if self.n else Fraction(0)

    @property
    def std(self) -> float:
        """Standard deviation with n − 1."""
        return math.sqrt(self.spread / (self.n - 1)) if self.n > 1 else math.nan
