"""The least of price · d² − slope·x over a region, from below, and a valid row close to where it is.

With Σ = scale·I + Q diag(values) Qᵀ the function F(x) = price · (x − x₀)ᵀΣ(x − x₀) − slopeᵀx is convex on the box of
the numbers times the simplices of the categories. Coordinate descent gives a point; the tangent there lies below F
everywhere, and its least value over the region is a sum of one term per column: a valid lower bound at any point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.bounds.region_costs.cost_descent import least_cost
from likewise.auditing.bounds.regions import Regions, encoded_box
from likewise.auditing.bounds.table_layout import TableLayout
from likewise.core.arrays import FloatArray, to_numpy

__all__ = ["LeastCost", "LeastCostForm"]


@dataclass(frozen=True, eq=False)
class LeastCostForm:
    """Σ of a fair metric as plain arrays: scale, basis (d, k) and values (k,)."""

    scale: float
    basis: FloatArray
    values: FloatArray

    @classmethod
    def of(cls, metric: Any, width: int) -> LeastCostForm:
        """Take them from a `FairMetric` on encoded rows of d = width columns."""
        if metric.n_features is None:
            return cls(float(metric.scale), np.zeros((width, 0)), np.zeros(0))
        basis = np.ascontiguousarray(to_numpy(metric.basis), dtype=np.float64)
        return cls(float(metric.scale), basis, np.asarray(to_numpy(metric.values), dtype=np.float64))

    @property
    def largest(self) -> float:
        """Largest eigenvalue of Σ, or a bound of it."""
        return max(self.scale, float((self.scale + self.values).max(initial=0.0)))


@dataclass(frozen=True, eq=False)
class LeastCost:
    """What `least` found for each region.

    Parameters
    ----------
    bound : float array of shape (n,)
        At most the least value of F over the region.
    point : float array of shape (n, d)
        Encoded, perhaps with shares of categories and fractions of whole numbers.
    values : float array of shape (n, P)
        A row of the region that can exist.
    """

    bound: FloatArray
    point: FloatArray
    values: FloatArray

    @staticmethod
    def over(
        layout: TableLayout,
        form: LeastCostForm,
        regions: Regions,
        origin: FloatArray,
        warm: FloatArray,
        price: FloatArray,
        slope: FloatArray | None = None,
    ) -> LeastCost:
        """Minimise over each region.

        Parameters
        ----------
        layout : TableLayout
        form : LeastCostForm
        regions : Regions
            n of them.
        origin, warm : float arrays of shape (n, d)
            The person x₀, and where to start; both encoded.
        price : float array of shape (n,)
        slope : float array of shape (n, d), optional

        Returns
        -------
        LeastCost
        """
        lower, upper = encoded_box(layout, regions)
        slope = np.zeros_like(lower) if slope is None else slope
        n = len(regions)
        bound, point = np.empty(n), np.empty((n, layout.width))
        values = np.empty((n, layout.n_columns))
        kinds = np.where(layout.is_category, 2, np.where(layout.is_integer, 1, 0))
        shape = (kinds, layout.start, layout.count, layout.offset, layout.numbers)
        least_cost(
            lower,
            upper,
            regions.low,
            regions.high,
            regions.allowed,
            origin,
            warm,
            (form.scale, form.basis, form.values),
            layout.blocks,
            shape,
            price,
            slope,
            (bound, point, values),
        )
        return LeastCost(bound, point, values)
