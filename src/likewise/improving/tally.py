"""What a model did to some people, counted: all figures and their intervals are made of such counts.

Counts of different people add up, so those of the folds of a cross-validation are those of everybody held out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.core.arrays import FloatArray

__all__ = ["Spread", "Tally", "pooled"]


@dataclass(frozen=True)
class Spread:
    """Number, sum and sum of squares of something that each person has.

    Examples
    --------
    >>> found = Spread.of(np.array([1.0, 3.0]))
    >>> found.mean, found.variance
    (2.0, 2.0)
    """

    n: int
    total: float
    squares: float

    @classmethod
    def of(cls, values: FloatArray) -> Spread:
        """Summarise an array."""
        return cls(len(values), float(values.sum()), float((values**2).sum()))

    @property
    def mean(self) -> float:
        """Mean."""
        return self.total / self.n

    @property
    def variance(self) -> float:
        """Of one person, with n − 1 below."""
        if self.n < 2:
            return float("nan")
        return max(self.squares - self.total**2 / self.n, 0.0) / (self.n - 1)


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of a model's decisions about some people.

    Parameters
    ----------
    classes : int array of shape (C, 2)
        People of each class who were decided wrong and right.
    groups : mapping of str to int array of shape (G, C, 2)
        The same by the groups of each attribute.
    twins : int array of shape (2,)
        People all of whose twins get the same decision, and the others.
    pure_gap, gap : Spread
        What the worst case adds to each person's loss at ε = 0, and at ε: λ*ε + max_j (ℓ_j − λ* d²_j) − ℓ_i with the
        minimiser λ* of the dual, whose mean is the gap (paper, equation 4).

    Examples
    --------
    >>> one = Tally(np.array([[1, 3], [2, 2]]), {}, np.array([8, 0]), Spread(8, 0.0, 0.0), Spread(8, 4.0, 4.0))
    >>> pooled([one, one]).classes.tolist(), Tally.from_plain(one.plain()).gap.mean
    ([[2, 6], [4, 4]], 0.5)
    """

    classes: Any
    groups: Mapping[str, Any]
    twins: Any
    pure_gap: Spread
    gap: Spread

    @property
    def n_people(self) -> int:
        """People decided about."""
        return int(self.classes.sum())

    def plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "classes": self.classes.tolist(),
            "groups": {name: counts.tolist() for name, counts in self.groups.items()},
            "twins": self.twins.tolist(),
            "pure_gap": [self.pure_gap.n, self.pure_gap.total, self.pure_gap.squares],
            "gap": [self.gap.n, self.gap.total, self.gap.squares],
        }

    @classmethod
    def from_plain(cls, stored: Mapping[str, Any]) -> Tally:
        """Read what `plain` wrote."""
        return cls(
            np.array(stored["classes"], dtype=np.int64),
            {name: np.array(counts, dtype=np.int64) for name, counts in stored["groups"].items()},
            np.array(stored["twins"], dtype=np.int64),
            Spread(*stored["pure_gap"]),
            Spread(*stored["gap"]),
        )


def pooled(tallies: Sequence[Tally]) -> Tally:
    """Return the counts of everybody together."""

    def joined(parts: Sequence[Spread]) -> Spread:
        return Spread(sum(p.n for p in parts), sum(p.total for p in parts), sum(p.squares for p in parts))

    return Tally(
        sum(t.classes for t in tallies),
        {name: sum(t.groups[name] for t in tallies) for name in tallies[0].groups},
        sum(t.twins for t in tallies),
        joined([t.pure_gap for t in tallies]),
        joined([t.gap for t in tallies]),
    )
