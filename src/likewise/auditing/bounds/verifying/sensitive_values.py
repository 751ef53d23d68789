"""All values that the sensitive columns can take, as parts of a domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod
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
# Combinations of single values that a model is asked about, at most; a whole number with up to so many values is asked
# about at each of them, another number at so many points.
_MOST_ASKED, _ALL_WHOLE, _POINTS = 1000, 128, 33


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
    asked : float array of shape (A, k)
        Single values that a model is asked about.
    complete : bool
        Whether those are all values that can exist.
    """

    columns: IntArray
    low: FloatArray
    high: FloatArray
    covers: np.ndarray[Any, np.dtype[np.bool_]]
    asked: FloatArray
    complete: bool

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
        columns = np.array([known.index(name) for name in names])
        return cls(columns, low, high, covers, *_asked(layout, columns))

    def rows(self, rows: FloatArray) -> FloatArray:
        """Return rows of values under every combination that is asked about, (n · A, P)."""
        every = np.repeat(rows, len(self.asked), axis=0)
        every[:, self.columns] = np.tile(self.asked, (len(rows), 1))
        return every

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


def _asked(layout: TableLayout, columns: IntArray) -> tuple[FloatArray, bool]:
    """Single values to ask about, and whether they are all that can exist."""
    options, complete = [], True
    for column in (layout.columns[i] for i in columns):
        if column.categories:
            options.append(np.arange(float(len(column.categories))))
        elif column.kind == "integer" and np.floor(column.upper) - np.ceil(column.lower) < _ALL_WHOLE:
            options.append(np.arange(np.ceil(column.lower), np.floor(column.upper) + 1.0))
        else:
            points = np.linspace(column.lower, column.upper, _POINTS)
            options.append(np.unique(np.floor(points)) if column.kind == "integer" else np.unique(points))
            complete = complete and len(options[-1]) == 1
    while prod(map(len, options)) > _MOST_ASKED:
        complete = False
        longest = int(np.argmax([len(part) for part in options]))
        options[longest] = np.append(options[longest][:-1:2], options[longest][-1])
    return np.array(list(product(*options)), dtype=np.float64), complete


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
