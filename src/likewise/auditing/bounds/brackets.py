"""What a branch and bound may spend, and what it returns: for each person two numbers with the supremum between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.bounds.table_layout import IntArray
from likewise.core.arrays import FloatArray
from likewise.texts import Said

__all__ = ["INTERRUPTED", "Brackets", "RegionBudget"]

INTERRUPTED = Said("reason.interrupted")


@dataclass(frozen=True)
class RegionBudget:
    """What a branch and bound may spend.

    Parameters
    ----------
    nodes : int, default=10_000
        Regions per person.
    seconds : float, optional
        Of wall time, in all; None is no limit. The whole domain of every person is always looked at.
    stop : callable, optional
        Asked between rounds; True ends the work with the brackets so far.
    tell : callable, optional
        Called between rounds, for whoever looks on.
    """

    nodes: int = 10_000
    seconds: float | None = None
    stop: Callable[[], bool] | None = None
    tell: Callable[[], None] | None = None


@dataclass(frozen=True, eq=False)
class Brackets:
    """For each person what is attained and what cannot be exceeded.

    Parameters
    ----------
    lower, upper : float arrays of shape (n,)
        Bracket of the supremum.
    rows : float array of shape (n, d)
        Encoded valid rows that attain `lower`.
    loss, cost : float arrays of shape (n,)
        Loss and squared fair distance there (0 where a move costs nothing).
    nodes : int array of shape (n,)
        Regions looked at.
    tol : float
        A person is closed when upper − lower ≤ tol + slack.
    slack : float
        The model's own rounding, within `upper`.
    interrupted : bool
        Whether the work was broken off (Ctrl-C): valid all the same, and wider.
    """

    lower: FloatArray
    upper: FloatArray
    rows: FloatArray
    loss: FloatArray
    cost: FloatArray
    nodes: IntArray
    tol: float
    slack: float = 0.0
    interrupted: bool = False

    @property
    def closed(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whose bracket is closed, (n,)."""
        return np.asarray(self.upper - self.lower <= (self.tol + self.slack) * (1 + 1e-9))
