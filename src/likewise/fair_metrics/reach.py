"""What a budget ε means in the table's own units: how far one column may move alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from likewise.fair_metrics.metric import FairMetric

__all__ = ["reach"]

# Below this squared distance per unit, relative to the coordinate's own length, a direction is free but for rounding.
_FREE = 1e-12


def reach(metric: FairMetric, eps: float, columns: Iterable[Any]) -> dict[str, float | None]:
    """Return by how many of its own units each number may change alone at a squared fair distance of ε.

    One unit of column j is δ = e_j / scale_j in φ(x), and costs δᵀΣδ, so √ε buys √(ε / δᵀΣδ) units.

    Parameters
    ----------
    metric : FairMetric
        In the coordinates of `columns`.
    eps : float
    columns : iterable
        Encoded columns, with ``name``, ``kind``, ``scale``, ``curve``, ``start`` and ``stop``. Categories are left out,
        and numbers on a curved scale, of which a unit costs more here and less there.

    Returns
    -------
    dict of str to float or None
        None where moving the column costs nothing.

    Examples
    --------
    >>> import pandas as pd
    >>> import likewise as lw
    >>> people = pd.DataFrame({"age": [20.0, 40.0], "hours": [0.0, 20.0], "sex": ["F", "M"]})
    >>> domain = lw.TabularDomain.from_frame(people)
    >>> metric = lw.ExpertSubspace(["sex"], domain=domain).fit(people).metric_
    >>> reach(metric, 0.25, domain.columns_)
    {'age': 5.0, 'hours': 5.0}
    """
    found: dict[str, float | None] = {}
    for column in columns:
        if column.kind == "categorical" or column.curve is not None or column.stop - column.start != 1:
            continue
        scale = float(column.scale)
        delta = np.zeros((1, metric.n_features or column.stop))
        delta[0, column.start] = 1.0
        cost = float(np.asarray(metric.squared_norm(delta))[0])
        found[str(column.name)] = None if cost <= _FREE else scale * math.sqrt(eps / cost)
    return found
