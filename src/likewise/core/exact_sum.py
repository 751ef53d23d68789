"""Exact sums of floating-point numbers: partial sums can be added in any order with the same result.

A float is an integer times a power of two, so a sum of floats is one as well. Kept as a pair of Python integers it
is exact: adding is associative and commutative to the bit, and only reading it as a float rounds, once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from likewise.core.checks import IntArray
from likewise.core.errors import InputError

_MANTISSA = 53
_HALF = 27
_LOW = (1 << _HALF) - 1
# Below this many terms a sum of integers under 2**27 stays below 2**53, where floats hold integers exactly.
_CHUNK = 1 << 24


@dataclass(frozen=True)
class ExactSum:
    """The number ``integer * 2**exponent``, a sum that was never rounded.

    Equal sums have equal fields: the integer is odd, or both are 0.
    """

    integer: int = 0
    exponent: int = 0

    @classmethod
    def of(cls, values: Any) -> ExactSum:
        """Sum an array exactly."""
        total = cls()
        for part in _chunks(values):
            mantissa, exponent = _split(part)
            total += cls._binned(mantissa, exponent)
        return total

    @classmethod
    def of_squares(cls, values: Any) -> ExactSum:
        """Sum the squares of an array exactly."""
        total = cls()
        for part in _chunks(values):
            mantissa, exponent = _split(np.abs(part))
            high, low = mantissa >> _HALF, mantissa & _LOW
            # (h 2²⁷ + l)² = h² 2⁵⁴ + h l 2²⁸ + l²: each product fits into an integer of 64 bits.
            for product, shift in ((high * high, 2 * _HALF), (high * low, _HALF + 1), (low * low, 0)):
                total += cls._binned(product, 2 * exponent + shift)
        return total

    @classmethod
    def _binned(cls, integers: IntArray, exponents: IntArray) -> ExactSum:
        """Sum ``integers * 2**exponents``: once per exponent with machine numbers, then with Python's."""
        if not integers.size:
            return cls()
        first = int(exponents.min())
        place = exponents - first
        high = np.bincount(place, weights=integers >> _HALF)
        low = np.bincount(place, weights=integers & _LOW)
        total = 0
        for shift in np.flatnonzero((high != 0) | (low != 0)):
            total += ((int(high[shift]) << _HALF) + int(low[shift])) << int(shift)
        return cls._reduced(total, first)

    @classmethod
    def _reduced(cls, integer: int, exponent: int) -> ExactSum:
        if integer == 0:
            return cls()
        zeros = (integer & -integer).bit_length() - 1
        return cls(integer >> zeros, exponent + zeros)

    def __add__(self, other: ExactSum) -> ExactSum:
        base = min(self.exponent, other.exponent)
        integer = (self.integer << (self.exponent - base)) + (other.integer << (other.exponent - base))
        return self._reduced(integer, base)

    @property
    def fraction(self) -> Fraction:
        """The sum as an exact fraction."""
        if self.exponent >= 0:
            return Fraction(self.integer << self.exponent)
        return Fraction(self.integer, 1 << -self.exponent)

    def __float__(self) -> float:
        return float(self.fraction)


def _chunks(values: Any) -> list[Any]:
    array = np.asarray(values, dtype=np.float64).ravel()
    if not np.isfinite(array).all():
        row = int((~np.isfinite(array)).argmax())
        raise InputError(
            f"ExactSum: the number at position {row} is {array[row]}. Only finite numbers have an exact sum."
        )
    return [array[start : start + _CHUNK] for start in range(0, len(array), _CHUNK)]


def _split(values: Any) -> tuple[IntArray, IntArray]:
    """Integers below 2⁵³ and exponents whose products are the values."""
    fraction, exponent = np.frexp(values)
    return np.ldexp(fraction, _MANTISSA).astype(np.int64), exponent.astype(np.int64) - _MANTISSA


# Mean and spread of numbers that are never in one place: exact summaries of parts that can be put together.


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
