"""A number with its confidence interval."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Interval", "Measure"]


@dataclass(frozen=True)
class Interval:
    """A two-sided confidence interval; unpacks as `low, high`.

    Parameters
    ----------
    low, high : float
        The ends. Both NaN where the data cannot tell (one observation, or too few people in a group):
        unknown, not narrow.
    confidence : float, default=0.95
        The level.
    method : str, default=""
        How it was made: ``"exact"``, or ``"percentile"``, ``"basic"``, ``"bca"`` for a bootstrap.

    Examples
    --------
    >>> low, high = Interval(0.1, 0.3)
    >>> 0.2 in Interval(0.1, 0.3), high
    (True, 0.3)
    """

    low: float
    high: float
    confidence: float = 0.95
    method: str = ""

    def __iter__(self) -> Iterator[float]:
        return iter((self.low, self.high))

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Measure:
    """One number of an evaluation with its interval.

    Parameters
    ----------
    name : str
        What was measured.
    value : float
        The number on the data at hand.
    low, high : float
        Ends of its confidence interval; NaN where it is unknown.
    method : str, default=""
        How the interval was made.

    Examples
    --------
    >>> print(Measure("accuracy", 0.8134, 0.8052, 0.8214, "exact"))
    accuracy 0.813 [0.805, 0.821]
    """

    name: str
    value: float
    low: float
    high: float
    method: str = ""

    @classmethod
    def of(cls, name: str, value: float, interval: Interval) -> Measure:
        """Join a value and its interval."""
        return cls(name, value, interval.low, interval.high, interval.method)

    def __str__(self) -> str:
        return f"{self.name} {self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"
