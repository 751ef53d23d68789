"""Missing cells: left as they are for a model that takes them, or filled, or a category of their own.

If they are kept, a table gets two things for every column with gaps: the gaps filled with an ordinary value, so that
distances can be measured, and a mark beside it that no twin may change. What goes to the model, and to people who read
the result, has the gaps again: a twin lacks what its person lacks. Ids, dates and texts that a model takes are held in
the same way: the table has their number instead, and the model gets the value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.errors import InputError
from likewise.core.frames import with_columns
from likewise.core.text import truncated

MISSING_WORD = "(missing)"
_MARK = " is missing"


@dataclass(frozen=True, eq=False)
class MissingCells:
    """Which columns of a table have gaps, and what stands in for them.

    Parameters
    ----------
    fills : mapping of str to value
        For each column with gaps the median of a number, or the most frequent category.
    held : mapping of str to Index
        Columns of ids, dates or texts, which no twin may change, and their different values.
    nones : frozenset of str
        Columns whose gaps are None, which an encoder may take for another category than NaN.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [20.0, None, 40.0], "sex": ["F", "M", "M"]})
    >>> missing = find_missing(people)
    >>> marked = missing.marked(people)
    >>> marked.to_dict("list")
    {'age': [20.0, 20.0, 40.0], 'sex': ['F', 'M', 'M'], 'age is missing': [False, True, False]}
    >>> missing.restored(marked).equals(people)
    True
    """

    fills: Mapping[str, Any]
    held: Mapping[str, pd.Index[Any]] = field(default_factory=dict)
    nones: frozenset[str] = frozenset()

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns with gaps."""
        return tuple(self.fills)

    @property
    def marks(self) -> tuple[str, ...]:
        """Names of the columns that say whether a cell is missing."""
        return tuple(name + _MARK for name in self.fills)

    def of(self, columns: Sequence[str]) -> MissingCells:
        """Return the same for some of the columns."""
        fills = {name: fill for name, fill in self.fills.items() if name in set(columns)}
        held = {name: kept for name, kept in self.held.items() if name in set(columns)}
        return MissingCells(fills, held, self.nones)

    def filled(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the table with its gaps filled."""
        new: dict[str, Any] = {
            name: _put(frame[name], frame[name].isna(), fill)
            for name, fill in self.fills.items()
            if name in frame
        }
        new |= {
            name: kept.get_indexer(pd.Index(frame[name])) for name, kept in self.held.items() if name in frame
        }
        return with_columns(frame, new) if new else frame

    def marked(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the table with its gaps filled, and marks where they were."""
        known = [name for name in self.fills if name in frame]
        marks = pd.DataFrame({name + _MARK: frame[name].isna() for name in known}, index=frame.index)
        return pd.concat([self.filled(frame), marks], axis=1)

    def restored(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a marked table with the gaps again, and without the marks."""
        plain = frame.drop(columns=[mark for mark in self.marks if mark in frame])
        new: dict[str, Any] = {
            name: pd.Series(kept.take(frame[name].to_numpy(dtype=np.intp)), index=frame.index)
            for name, kept in self.held.items()
            if name in frame
        }
        for name in self.fills:
            if name + _MARK in frame and name in frame:
                column = frame[name]
                gap = frame[name + _MARK].to_numpy(dtype=bool)
                if name in self.nones:
                    new[name] = column.astype(object).where(~gap, None)
                    continue
                new[name] = (
                    column if column.dtype.kind not in "biu" or not gap.any() else column.astype(object)
                ).mask(gap)
                if column.dtype.kind in "iu" and gap.any():
                    new[name] = new[name].astype(float)
        return with_columns(plain, new) if new else plain


def find_missing(frame: pd.DataFrame, held: Sequence[str] = ()) -> MissingCells:
    """Find the columns with gaps, and a value to fill each with.

    Parameters
    ----------
    frame : DataFrame
        A column without any value gets 0, or the word for a missing category.
    held : sequence of str
        Columns to hold as they are, gaps included.

    Examples
    --------
    >>> find_missing(pd.DataFrame({"age": [20.0, None, 40.0], "sex": ["F", "M", "M"]})).fills
    {'age': 20.0}
    """
    taken = set(map(str, frame.columns))
    fills = {}
    for name in frame.columns:
        column = frame[name]
        if name in held or not column.isna().any():
            continue
        if name + _MARK in taken:
            raise InputError(
                f"the table has a column {name + _MARK!r} already. Rename it, or pass --read missing=impute."
            )
        fills[str(name)] = _fill(column)
    nones = {name for name in fills if frame[name].dtype == object and _is_none(frame[name])}
    return MissingCells(fills, {name: pd.Index(frame[name].unique()) for name in held}, frozenset(nones))


def _is_none(column: pd.Series[Any]) -> bool:
    """Whether every missing cell of a column is None."""
    return all(cell is None for cell in column[column.isna()])


def own_category(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with missing categories as a category of their own; missing numbers get the median."""
    new = {}
    for name, fill in find_missing(frame).fills.items():
        column = frame[name]
        numeric = column.dtype.kind in "iuf"
        if isinstance(column.dtype, pd.CategoricalDtype):
            column = column.cat.add_categories([MISSING_WORD])
        elif not numeric:
            column = column.astype(object)
        new[name] = _put(column, frame[name].isna(), fill if numeric else MISSING_WORD)
    return with_columns(frame, new) if new else frame


def drop_missing(frame: pd.DataFrame, *, owner: str) -> pd.DataFrame:
    """Return the rows without gaps, or say which columns leave nobody."""
    whole = frame.dropna()
    if len(whole):
        return whole
    share = frame.isna().mean().sort_values(ascending=False, kind="stable")
    worst = truncated([f"{name!r} ({part:.0%})" for name, part in share.items() if part > 0], most=5)
    raise InputError(
        f"{owner}: every row has a missing value, so --read missing=drop leaves nobody. The emptiest columns: {worst}. "
        "Leave them out with --read ignore=NAME, or pass --read missing=impute."
    )


def _fill(column: pd.Series[Any]) -> Any:
    known = column.dropna()
    if not len(known):
        return 0.0 if column.dtype.kind in "iuf" else MISSING_WORD
    if column.dtype.kind not in "iuf":
        # The first of the most frequent ones, so that the order of rows does not matter.
        counts = known.astype(object).value_counts()
        return min(
            (value for value, count in counts.items() if count == counts.max()),
            key=lambda v: (str(type(v)), str(v)),
        )
    values = known.to_numpy(dtype=float)
    finite = values[np.isfinite(values)]
    middle = float(np.median(finite)) if len(finite) else 0.0
    # A code or a count is filled with a value that occurs.
    return (
        float(finite[np.abs(finite - middle).argmin()])
        if (finite == np.rint(finite)).all() and len(finite)
        else middle
    )


def _put(column: pd.Series[Any], gap: pd.Series[Any], fill: Any) -> pd.Series[Any]:
    return column.mask(gap.to_numpy(), fill)
