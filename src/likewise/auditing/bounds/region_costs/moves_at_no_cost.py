"""Which part of a domain moves that cost nothing can reach at all."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.auditing.bounds.regions import Regions
from likewise.auditing.bounds.table_layout import TableLayout
from likewise.core.arrays import FloatArray, to_numpy

__all__ = ["free_regions"]


def free_regions(layout: TableLayout, metric: Any, regions: Regions, own: FloatArray) -> Regions:
    """Hold every column that no free direction touches at the person's own value.

    Exact where free directions are whole columns; elsewhere a set that contains all free moves.

    Parameters
    ----------
    layout : TableLayout
    metric : FairMetric
        On encoded rows.
    regions : Regions
        Whole domains of n people.
    own : float array of shape (n, P)
        Their values.

    Returns
    -------
    Regions

    Examples
    --------
    >>> from likewise.core.subspace import Subspace
    >>> from likewise.domains import BoxDomain
    >>> from likewise.fair_metrics import FairMetric
    >>> layout = TableLayout.of(BoxDomain([0.0, 0.0], [1.0, 1.0]))
    >>> whole = Regions(np.zeros((1, 2)), np.ones((1, 2)), np.zeros((1, 0), dtype=np.uint8))
    >>> metric = FairMetric.from_subspace(Subspace.from_directions([[0.0, 1.0]]))
    >>> free_regions(layout, metric, whole, np.array([[0.3, 0.4]])).low
    array([[0.3, 0. ]])
    """
    if metric.n_features is None:
        touched = np.zeros(layout.width, dtype=bool)
    else:
        basis = np.asarray(to_numpy(metric.null_space.basis), dtype=np.float64)
        touched = np.abs(basis).max(axis=1, initial=0.0) > 1e-12
    low, high, allowed = regions.low.copy(), regions.high.copy(), regions.allowed.copy()
    for i, column in enumerate(layout.columns):
        moves = touched[column.slice]
        if column.kind != "categorical":
            if not moves[0]:
                low[:, i] = high[:, i] = own[:, i]
            continue
        count, first = len(column.categories), int(layout.offset[i])
        reach = np.repeat(moves, count) if column.width == 1 else moves
        codes = own[:, i].astype(np.int64)
        stay = np.arange(count)[None, :] == codes[:, None]
        allowed[:, first : first + count] &= stay | (reach[None, :] & reach[codes][:, None])
    return Regions(low, high, allowed)
