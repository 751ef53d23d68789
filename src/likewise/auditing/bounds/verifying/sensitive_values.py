"""All values that the sensitive columns can take, as parts of a domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np

from likewise.auditing.bounds.regions import Regions
from likewise.auditing.bounds.table_layout import IntArray, TableLayout
from likewise.core.arrays import FloatArray
from likewise.core.errors import InputError, bad_parameter

__all__ = ["SensitiveValues"]

_FEW = 16
_PIECES = 8
_MOST = 512


@dataclass(frozen=True, eq=False)
class SensitiveValues:
    """Every combination of the sensitive columns: single values, and pieces of numbers that have many.

    Parameters
    ----------
    columns : int array of shape (k,)
    low, high : float arrays of shape (S, k)
        Each combination; both ends are equal for single values and categories.
    covers : bool array of shape (S,)
        Which combinations together make up all values; the others are single values inside them.
    """

    columns: IntArray
    low: FloatArray
    high: FloatArray
    covers: np.ndarray[Any, np.dtype[np.bool_]]

    @classmethod
    def of(cls, layout: TableLayout, names: Sequence[str]) -> SensitiveValues:
        """List the combinations.

        Examples
        --------
        >>> from likewise.domains import BoxDomain
        >>> values = SensitiveValues.of(TableLayout.of(BoxDomain([0.0], [4.0])), ["x0"])
        >>> values.low.ravel()[:3].tolist(), int(values.covers.sum())
        ([0.0, 0.5, 1.0], 8)
        """
        known = [column.name for column in layout.columns]
        wrong = [name for name in names if name not in known]
        if wrong or not names or isinstance(names, str):
            raise bad_parameter(
                "verify",
                "sensitive_features",
                allowed=f"a list of columns of the domain: {', '.join(known[:12])}",
                got=wrong[0] if wrong else names,
            )
        parts = [_parts(layout, known.index(name)) for name in names]
        every = list(product(*parts))
        if len(every) > _MOST:
            raise InputError(
                f"verify: the sensitive columns have {len(every)} combinations, at most {_MOST} are looked at. "
                "Name fewer columns."
            )
        low = np.array([[part[0] for part in one] for one in every])
        high = np.array([[part[1] for part in one] for one in every])
        covers = np.array([all(part[2] for part in one) for one in every])
        return cls(np.array([known.index(name) for name in names]), low, high, covers)

    @property
    def single(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which combinations are single values."""
        return np.asarray((self.low == self.high).all(axis=1))

    def put(self, layout: TableLayout, regions: Regions, which: IntArray) -> Regions:
        """Return regions with their sensitive columns at combinations; one of each."""
        low, high, allowed = regions.low.copy(), regions.high.copy(), regions.allowed.copy()
        for k, column in enumerate(self.columns):
            if not layout.is_category[column]:
                low[:, column], high[:, column] = self.low[which, k], self.high[which, k]
                continue
            first, count = int(layout.offset[column]), int(layout.count[column])
            codes = self.low[which, k]
            allowed[:, first : first + count] = np.arange(count)[None, :] == codes[:, None]
        return Regions(low, high, allowed)


def _parts(layout: TableLayout, column: int) -> list[tuple[float, float, bool]]:
    known = layout.columns[column]
    if known.categories:
        return [(float(code), float(code), True) for code in range(len(known.categories))]
    if not (np.isfinite(known.lower) and np.isfinite(known.upper)):
        raise InputError(
            f"verify: the sensitive column {known.name!r} has no bounded range. Give the domain one."
        )
    if known.kind == "integer" and known.upper - known.lower < _FEW:
        whole = np.arange(np.ceil(known.lower), np.floor(known.upper) + 1)
        return [(float(value), float(value), True) for value in whole]
    edges = np.linspace(known.lower, known.upper, _PIECES + 1)
    if known.kind == "integer":
        edges = np.floor(edges)
        pieces = [(float(a) + (i > 0), float(b), True) for i, (a, b) in enumerate(pairwise(edges))]
    else:
        pieces = [(float(a), float(b), True) for a, b in pairwise(edges)]
    # Single values besides: two of them with different decisions show a flip that a wide piece would hide.
    ends = [(known.lower, known.lower, False), (known.upper, known.upper, False)]
    return [*pieces, *ends]
