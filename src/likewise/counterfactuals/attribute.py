"""The set of counterparts that is the same whichever of them one starts from.

The counterpart of a counterpart need not be the person: two people of one group may have the same counterpart in the
other. But a maker that makes the same counterpart of the same row every time is a map of rows to rows, and whoever is
sent from group to group again and again ends in a circle. A person, their counterpart, and the counterpart's
counterpart all end in the same one. So what is said of the circle is said of all of them alike: exactly for two
groups, and to the extent that the study shows for more.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd

from likewise.core.checks import IntArray
from likewise.core.errors import InputError
from likewise.core.frames import check_columns, to_pandas
from likewise.counterfactuals.cells import Table, put_rows
from likewise.counterfactuals.edited_rows import MadeTwins, TwinMaker, has_cells
from likewise.counterfactuals.edits import Edits, cells_of, resolve_edits

# Counterparts that differ in the edited columns and in nothing else (*ceteris paribus*): the edits of every study.


class AttributeTwins:
    """Only the attribute changes.

    Parameters
    ----------
    edits : mapping, Edit or sequence
        As in `correspondence_study`.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"sex": ["F", "M"], "role": ["Wife", "Husband"]})
    >>> made = AttributeTwins({"sex": ["F", "M"]}).fit(people).make(people)
    >>> made.tables[0]["sex"].tolist(), made.tables[0]["role"].tolist()
    (['F', 'F'], ['Wife', 'Husband'])
    """

    def __init__(self, edits: Edits) -> None:
        self.edits = edits

    @property
    def fitted(self) -> bool:
        """Whether `fit` was called."""
        return hasattr(self, "variants_")

    @property
    def n_variants(self) -> int:
        """How many variants everybody has."""
        return len(self.variants_)

    def values_of(self, column: Any) -> tuple[Any, ...]:
        """Return the values of one edited column, in the order of the variants."""
        return tuple(dict.fromkeys(variant[column] for variant in self.variants_))

    def fit(self, people: Any) -> Self:
        """Look up the values of the edited columns."""
        owner = type(self).__name__
        table = Table(to_pandas(people, owner=owner, name="people"))
        variants, attributes = resolve_edits(self.edits, table, owner=owner)
        self.variants_ = tuple(variants)
        self.cells_ = tuple(cells_of(variant, attributes) for variant in variants)
        return self

    def make(self, people: Any) -> MadeTwins:
        """Return everybody in every variant."""
        owner = type(self).__name__
        if not self.fitted:
            raise InputError(f"{owner}: the values of the columns are not known yet. Call fit(people) first.")
        table = Table(to_pandas(people, owner=owner, name="people"))
        check_columns(table.native, [c for cell in self.cells_ for c in cell], owner=owner, name="people")
        own = [has_cells(table.native, cell) for cell in self.cells_]
        tables = tuple(
            table.replace({c: table.entry(c, v, owner=owner) for c, v in cell.items()})
            for cell in self.cells_
        )
        return MadeTwins(
            tables, self.variants_, np.stack(own), np.ones((len(tables), table.n_rows), dtype=bool)
        )


Keys = np.ndarray[Any, np.dtype[np.uint64]]

_STEPS = 40
_DIGITS = 9  # numbers that agree so far are one number


def orbit_representatives(maker: TwinMaker, people: pd.DataFrame) -> pd.DataFrame:
    """Return, for each person, one row of the circle that they and all their counterparts end in.

    Parameters
    ----------
    maker : TwinMaker
        Fitted; gives the same counterpart for the same row.
    people : DataFrame of n rows

    Returns
    -------
    DataFrame of n rows
        All of the maker's first group, in the order of the people.

    Examples
    --------
    >>> from likewise.counterfactuals.attribute import AttributeTwins
    >>> people = pd.DataFrame({"sex": ["M", "F"], "age": [30, 30]})
    >>> orbit_representatives(AttributeTwins({"sex": ["F", "M"]}).fit(people), people).values.tolist()
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


def _around(maker: TwinMaker, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of the first group, sent through every other group and back."""
    now = rows
    for group in (*range(1, maker.n_variants), 0):
        now = maker.make(now).tables[group]
    return now


def _least_of_circles(maker: TwinMaker, now: pd.DataFrame, waiting: IntArray, keys: Keys) -> pd.DataFrame:
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
