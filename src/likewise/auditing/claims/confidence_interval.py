"""A confidence interval that says what it is about."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from likewise.core.errors import bad_parameter
from likewise.core.text import short_number

__all__ = ["ConfidenceInterval", "IntervalAbout"]

IntervalAbout = Literal["given candidates", "population"]
_WORDS: dict[IntervalAbout, str] = {
    "given candidates": "for everybody like those audited, moved among the same candidates",
    "population": "for the population",
}


@dataclass(frozen=True)
class ConfidenceInterval:
    """An interval of a gap, a mean loss or a share, and the quantity it covers.

    Parameters
    ----------
    estimate : float
        Of the people at hand.
    low, high : float
        The ends; `high` is inf where nothing bounds it from above.
    confidence : float
        Probability that the interval covers.
    n : int
        People it was computed from.
    quantity : {"value", "gap", "share"}
        V(ε), the gap V(ε) − mean loss, or a share of people.
    about : {"given candidates", "population"}
        What is covered. "given candidates": the expectation over people of what moves among the candidates of this
        audit add, these candidates held fixed. It grows with their number, so audits of more people are about more.
        "population": the worst case of the population itself, whoever was audited.
    method : str
        How it was made, in words.
    notes : tuple of str
        What it rests on, and why an end is open.

    Examples
    --------
    >>> found = ConfidenceInterval(0.5, 0.4, 0.6, 0.95, 100, "gap", about="population")
    >>> round(found.width, 9), found.open
    (0.2, False)
    >>> print(found)
    95% interval 0.400 to 0.600 for the population
    """

    estimate: float
    low: float
    high: float
    confidence: float
    n: int
    quantity: Literal["value", "gap", "share"]
    about: IntervalAbout = "given candidates"
    method: str = "Student's t"
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", tuple(self.notes))
        if self.about not in _WORDS:
            allowed = " or ".join(repr(name) for name in _WORDS)
            raise bad_parameter("ConfidenceInterval", "about", allowed=allowed, got=self.about)

    @property
    def width(self) -> float:
        """Length of the interval."""
        return self.high - self.low

    @property
    def open(self) -> bool:
        """Whether nothing bounds it from above."""
        return math.isinf(self.high)

    @property
    def about_words(self) -> str:
        """What the interval is about, to follow its ends in a sentence."""
        return _WORDS[self.about]

    def __str__(self) -> str:
        if self.open:
            return (
                f"at least {short_number(self.low)} ({self.confidence:.0%} confidence) {self.about_words}, "
                "no upper end"
            )
        return f"{self.confidence:.0%} interval {short_number(self.low)} to {short_number(self.high)} {self.about_words}"
