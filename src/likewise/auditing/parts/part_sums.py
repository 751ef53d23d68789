"""What the parts of an audit answer: small, and the same whatever order or place they were made in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.support.binned_steps import Spectrum
from likewise.auditing.support.frontier import Floats, Ints
from likewise.auditing.support.moments import Moments

__all__ = ["HARM_EDGES", "Outcome", "Tally", "Worst"]

# Bins of harm (increase of loss) that people are counted in.
HARM_EDGES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, np.inf)


@dataclass(frozen=True, eq=False)
class Worst:
    """The most harmed people, the worst first; of equals the one who comes first in the table.

    Parameters
    ----------
    harm : float array of shape (k,)
    person : int array of shape (k,)
        Their numbers.
    corner : int array of shape (k,)
        How many corners along their frontier their twin is.

    Examples
    --------
    >>> one = Worst.of(np.array([0.1, 0.9]), np.array([0, 1]), np.array([1, 1]), top=2)
    >>> two = Worst.of(np.array([0.9, 0.5]), np.array([2, 3]), np.array([2, 1]), top=2)
    >>> one.merge(two, top=3).person
    array([1, 2, 3])
    """

    harm: Floats
    person: Ints
    corner: Ints

    @classmethod
    def of(cls, harm: Floats, person: Ints, corner: Any, *, top: int) -> Worst:
        """Keep the `top` worst."""
        order = np.lexsort((person, -harm))[:top]
        return cls(harm[order], person[order], np.asarray(corner)[order])

    def merge(self, other: Worst, *, top: int) -> Worst:
        """Return the worst of both."""
        columns = (
            np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("harm", "person", "corner")
        )
        return self.of(*columns, top=top)


@dataclass(frozen=True, eq=False)
class Tally:
    """What the search found in one part, or in several.

    Parameters
    ----------
    losses : Moments
        Of the people's losses where they stand.
    free : Moments
        Of what moves that cost nothing add.
    flips : int
        People whose twin at no fair distance gets another decision.
    spectrum : Spectrum
        The steps that cost something.
    worst : Worst
        The most harmed at no fair distance.
    cpu : float
        Seconds.
    """

    losses: Moments
    free: Moments
    flips: int
    spectrum: Spectrum
    worst: Worst
    cpu: float

    def merge(self, other: Tally, *, top: int) -> Tally:
        """Return the tally of both parts' people."""
        return Tally(
            self.losses.merge(other.losses),
            self.free.merge(other.free),
            self.flips + other.flips,
            self.spectrum.merge(other.spectrum),
            self.worst.merge(other.worst, top=top),
            self.cpu + other.cpu,
        )


@dataclass(frozen=True, eq=False)
class Outcome:
    """What λ* means for one part, or for several.

    Parameters
    ----------
    gains : Moments
        Of ℓ^c_λ − ℓ at λ*.
    worst : Worst
        The most harmed at the budget.
    histogram : int array of shape (11,)
        People by harm, between the `HARM_EDGES`.
    written : int
        People written to the map's files.
    cpu : float
        Seconds.
    """

    gains: Moments
    worst: Worst
    histogram: Ints
    written: int
    cpu: float

    def merge(self, other: Outcome, *, top: int) -> Outcome:
        """Return the outcome of both parts' people."""
        return Outcome(
            self.gains.merge(other.gains),
            self.worst.merge(other.worst, top=top),
            self.histogram + other.histogram,
            self.written + other.written,
            self.cpu + other.cpu,
        )
