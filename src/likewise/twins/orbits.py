"""The set of twins that is the same whichever of them one starts from.

The twin of a twin need not be the person: two people of one group may have the same twin in the other. But a maker that
makes the same twin of the same row every time is a map of rows to rows, and whoever is sent from group to group again
and again ends in a circle. A person, their twin, and the twin's twin all end in the same one. So what is said of the
circle is said of all of them alike: exactly for two groups, and to the extent that the study shows for more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from likewise.evaluation.twin_makers import TwinMaker
from likewise.twins.row_writing import put_rows

__all__ = ["circle_rows", "circle_tables"]

Ints = np.ndarray[Any, np.dtype[np.int64]]
Keys = np.ndarray[Any, np.dtype[np.uint64]]

_STEPS = 40
_DIGITS = 9  # numbers that agree so far are one number


def circle_rows(maker: TwinMaker, people: pd.DataFrame) -> pd.DataFrame:
    """Return, for each person, one row of the circle that they and all their twins end in.

    Parameters
    ----------
    maker : TwinMaker
        Fitted; gives the same twin for the same row.
    people : DataFrame of n rows

    Returns
    -------
    DataFrame of n rows
        All of the maker's first group, in the order of the people.

    Examples
    --------
    >>> from likewise.twins.attribute_twins import AttributeTwins
    >>> people = pd.DataFrame({"sex": ["M", "F"], "age": [30, 30]})
    >>> circle_rows(AttributeTwins({"sex": ["F", "M"]}).fit(people), people).values.tolist()
    [['F', 30], ['F', 30]]
    """
    first = maker.make(people).tables[0].reset_index(drop=True)
    now, waiting = first.copy(), np.arange(len(people))
    keys = _keys(now)
    for _ in range(_STEPS):
        if not len(waiting):
            return now
        there = _around(maker, now.iloc[waiting])
        new = _keys(there)
        moved = np.flatnonzero(new != keys[waiting])
        now, waiting = put_rows(now, there.iloc[moved], waiting[moved]), waiting[moved]
        keys[waiting] = new[moved]
    return _least_of_circles(maker, now, waiting, keys)


def circle_tables(maker: TwinMaker, people: pd.DataFrame) -> tuple[pd.DataFrame, ...]:
    """Return one table per group: the row of the circle, and its twins in the other groups.

    Parameters
    ----------
    maker, people
        As in `circle_rows`.

    Returns
    -------
    tuple of DataFrame of n rows
        In the order of the maker's groups.

    Examples
    --------
    >>> from likewise.twins.attribute_twins import AttributeTwins
    >>> people = pd.DataFrame({"sex": ["M", "F"], "age": [30, 30]})
    >>> women, men = circle_tables(AttributeTwins({"sex": ["F", "M"]}).fit(people), people)
    >>> men.values.tolist()
    [['M', 30], ['M', 30]]
    """
    return maker.make(circle_rows(maker, people)).tables


def _around(maker: TwinMaker, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of the first group, sent through every other group and back."""
    now = rows
    for group in (*range(1, maker.n_variants), 0):
        now = maker.make(now).tables[group]
    return now


def _least_of_circles(maker: TwinMaker, now: pd.DataFrame, waiting: Ints, keys: Keys) -> pd.DataFrame:
    """Rows that go in longer circles: the one with the least key stands for its circle."""
    best, least = now, keys.copy()
    walking, start, at = waiting, keys.copy(), now.iloc[waiting]
    for _ in range(_STEPS):
        if not len(walking):
            break
        at = _around(maker, at)
        new = _keys(at)
        lower = np.flatnonzero(new < least[walking])
        best = put_rows(best, at.iloc[lower], walking[lower])
        least[walking[lower]] = new[lower]
        going = np.flatnonzero(new != start[walking])
        walking, at = walking[going], at.iloc[going]
    return best


def _keys(rows: pd.DataFrame) -> Keys:
    """One number per row, whoever else is asked about; numbers count to fewer digits than they have.

    A way back is rounded. What is rounded here depends on the number alone.
    """
    columns: dict[Any, Any] = {}
    for name in rows.columns:
        column = rows[name]
        if getattr(column.dtype, "kind", "O") == "f":
            values = column.to_numpy(dtype=float, na_value=np.nan)
            known = np.isfinite(values) & (values != 0)
            size = np.ceil(np.log10(np.abs(np.where(known, values, 1.0))))
            digits = min(_DIGITS, np.finfo(getattr(column.dtype, "numpy_dtype", column.dtype)).precision - 1)
            unit = 10.0 ** (size - digits)
            columns[name] = np.where(known, np.rint(values / unit) * unit, values + 0.0)
        else:
            columns[name] = column.astype(object).astype(str).to_numpy()
    hashed = pd.util.hash_pandas_object(pd.DataFrame(columns), index=False).to_numpy()
    return np.array(hashed, dtype=np.uint64)
