"""The fair metric as numbers, so that the page can measure how comparable two rows are."""

from __future__ import annotations

from typing import Any

from likewise.fair_metrics import FairMetric
from likewise.fair_metrics.metric import COSTS_NOTHING
from likewise.report.explore.packing import pack

__all__ = ["metric_document"]

# Numbers of the basis that a page carries.
_MOST = 20_000


def metric_document(metric: FairMetric, width: int) -> dict[str, Any] | None:
    """Return d² = scale · ‖δ − QQᵀδ‖² + Σ costs · (Qᵀδ)² as plain data, of encoded rows.

    Parameters
    ----------
    metric : FairMetric
        Of rows that the domain encoded.
    width : int
        Of such a row.

    Returns
    -------
    dict or None
        None where the metric reads the table by a map of its own, or is too large for a page.

    Examples
    --------
    >>> from likewise.fair_metrics import euclidean
    >>> document = metric_document(euclidean(2), 2)
    >>> document["scale"], document["costs"], document["basis"]["shape"]
    (1.0, [], [2, 0])
    """
    if metric.feature_map is not None or metric.n_features not in (None, width):
        return None
    basis = metric.basis if metric.n_features else metric.basis.reshape(width, 0)
    if basis.size > _MOST:
        return None
    costs = metric.scale + metric.values
    return {
        "scale": float(metric.scale),
        "basis": pack(basis),
        "costs": [float(cost) for cost in costs],
        # A move that costs less than this share of its squared length is free: rounding, not a cost.
        "free": COSTS_NOTHING * max(float(metric.scale), float(costs.max(initial=0.0))),
    }
