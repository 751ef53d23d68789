"""Which column of a region to cut: the one whose width makes the lines of a network loose."""

from __future__ import annotations

import numpy as np

from likewise.auditing.bounds.networks.linear_bounds import Hidden
from likewise.auditing.bounds.table_layout import TableLayout
from likewise.core.arrays import FloatArray
from likewise.models.relu_network import ReluNetwork

__all__ = ["column_importance"]


def column_importance(
    net: ReluNetwork,
    layout: TableLayout,
    hidden: Hidden,
    effect: FloatArray,
    spread: FloatArray,
    straight: FloatArray,
) -> FloatArray:
    """How much of what is open each column is responsible for, (n, P); 0 where it is one value already.

    A hidden unit that may be on or off leaves open |effect| · min(−l, u) / (u − l) for each unit of width of what
    enters it, and a column is responsible for as much of that width as it moves the unit.

    Parameters
    ----------
    net : ReluNetwork
    layout : TableLayout
    hidden : Hidden
    effect : float array of shape (n, U)
        Weight of each hidden unit in the outputs that matter.
    spread : float array of shape (n, d)
        Widths of the regions, encoded.
    straight : float array of shape (n, d)
        What the straight part of the lines leaves open for each unit of width.
    """
    low, high = hidden.bounds[:, 0], hidden.bounds[:, 1]
    with np.errstate(invalid="ignore"):
        even = np.minimum(-low, high) / (high - low)
    loose = np.where((low < 0) & (high > 0), even, 0.0) * effect
    score = straight.copy()
    if loose.shape[1]:
        first = len(net.weights[0])
        score += loose[:, :first] @ np.abs(net.weights[0])
        if hidden.reach.shape[1]:
            score += (loose[:, None, first:] @ hidden.reach)[:, 0]
    score = np.maximum(score * spread, 1e-12 * (spread > 0))
    return np.asarray(np.add.reduceat(score, layout.start, axis=1))
