"""Steps from corner to corner of everybody's frontier: what each costs, and what it gains per transport."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.support.frontier import Floats, Frontier, Ints

__all__ = ["Steps", "steps_of"]


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps, whose they are, and what they gain per transport (inf: they cost nothing).

    Parameters
    ----------
    row : int array of shape (k,)
    transport, gain : float arrays of shape (k,)
        Of the row's mass.
    slope : float array of shape (k,)
        Gain per transport, whatever the mass; it falls along a row.
    """

    row: Ints
    transport: Floats
    gain: Floats
    slope: Floats

    def goes(self, lam: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether each step is taken at λ: those that gain more than λ per transport, and the free ones always."""
        return np.asarray((self.slope > lam) | np.isinf(self.slope))

    def taken(self, lam: float, n_rows: int) -> Ints:
        """How many steps each row takes at λ."""
        return np.bincount(self.row[self.goes(lam)], minlength=n_rows)


def steps_of(frontier: Frontier, weight: Floats | None = None) -> Steps:
    """Return the steps of all rows.

    Parameters
    ----------
    frontier : Frontier
    weight : float array of shape (n,), optional
        Mass of each row; 1 by default.

    Examples
    --------
    >>> frontier = Frontier.from_points(
    ...     base_loss=[0.0], row=[0, 0], squared_distance=[0.0, 2.0], loss=[1.0, 4.0], candidate=[0, 1]
    ... )
    >>> steps_of(frontier).slope
    array([inf, 1.5])
    """
    row = frontier.row
    step = np.flatnonzero(row[1:] == row[:-1]) if len(row) else np.zeros(0, dtype=np.int64)
    transport = frontier.squared_distance[step + 1] - frontier.squared_distance[step]
    gain = frontier.loss[step + 1] - frontier.loss[step]
    free = transport <= 0
    with np.errstate(divide="ignore", over="ignore"):
        slope = np.where(free, np.inf, gain / np.where(free, 1.0, transport))
    if weight is not None:
        transport, gain = weight[row[step]] * transport, weight[row[step]] * gain
    return Steps(row[step], transport, gain, slope)
