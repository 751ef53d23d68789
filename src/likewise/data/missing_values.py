"""Missing cells: left as they are for a model that takes them, or filled, or a category of their own.

If they are kept, a table gets two things for every column with gaps: the gaps filled with an ordinary value, so that
distances can be measured, and a mark beside it that no counterpart may change. What goes to the model, and to people who read
the result, has the gaps again: a counterpart lacks what its person lacks. Ids, dates and texts that a model takes are held in
the same way: the table has their number instead, and the model gets the value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.checks import by_type
from likewise.core.errors import InputError
from likewise.core.frames import with_columns
from likewise.core.text import option, truncated

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
        Columns of ids, dates or texts, which no counterpart may change, and their different values.
    words : mapping of str to Series
        Columns of dates, intervals, decimals and the like that counterparts exchange: the table has words, and this says
        which value each word stands for.
    own : mapping of str to Series
        For each column with gaps its different missing cells (None, NaN, NA, NaT: an encoder may take them for different
        categories), in the column's own dtype. If there are several, a mark is their number instead of a truth value.

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
    own: Mapping[str, pd.Series[Any]] = field(default_factory=dict)
    words: Mapping[str, pd.Series[Any]] = field(default_factory=dict)

    @property
    def stand_ins(self) -> MissingCells:
        """The columns alone that have numbers or words in the place of their values."""
        return MissingCells({}, self.held, words=self.words)

    @property
    def gaps(self) -> MissingCells:
        """The columns alone that have gaps."""
        return MissingCells(self.fills, own=self.own)

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
        words = {name: known for name, known in self.words.items() if name in set(columns)}
        return MissingCells(fills, held, self.own, words)

    def filled(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the table with its gaps filled."""
        new: dict[str, Any] = {
            name: _put(frame[name], frame[name].isna(), fill)
            for name, fill in self.fills.items()
            if name in frame
        }
        new |= {
            name: kept.get_indexer(pd.Index(frame[name], dtype=kept.dtype))
            for name, kept in self.held.items()
            if name in frame
        }
        return with_columns(frame, new) if new else frame

    def marked(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the table with its gaps filled, and marks where they were."""
        known = [name for name in self.fills if name in frame]
        marks = pd.DataFrame({name + _MARK: self._mark(frame[name]) for name in known}, index=frame.index)
        return pd.concat([self.filled(frame), marks], axis=1)

    def restored(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a marked table with the gaps again, and without the marks."""
        plain = frame.drop(columns=[mark for mark in self.marks if mark in frame])
        new: dict[str, Any] = {
            name: pd.Series(
                kept.take(frame[name].to_numpy(dtype=np.intp)), index=frame.index, dtype=kept.dtype
            )
            for name, kept in self.held.items()
            if name in frame
        }
        for name in self.fills:
            if name + _MARK in frame and name in frame:
                new[name] = _with_gaps(
                    frame[name], frame[name + _MARK].to_numpy(dtype=np.int64), self.own[name]
                )
        for name, known in self.words.items():
            if name in frame:
                at = known.index.get_indexer(pd.Index(new.get(name, frame[name]), dtype=object))
                # The last value stands for a missing cell.
                new[name] = pd.Series(known.array.take(at % len(known)), index=frame.index, dtype=known.dtype)
        return with_columns(plain, new) if new else plain

    def _mark(self, column: pd.Series[Any]) -> pd.Series[Any]:
        """Whether each cell is missing, or which of several missing cells it is."""
        gap, kinds = column.isna(), [type(cell) for cell in self.own[str(column.name)]]
        if len(kinds) < 2:
            return gap
        number = {kind: k for k, kind in enumerate(kinds, 1)}
        told = [number.get(type(cell), 1) for cell in column[gap]]
        return gap.astype(np.int64).mask(gap, pd.Series(told, index=column.index[gap], dtype=np.int64))


def find_missing(
    frame: pd.DataFrame, held: Sequence[str] = (), fills: Mapping[str, Any] | None = None
) -> MissingCells:
    """Find the columns with gaps, and a value to fill each with.

    Parameters
    ----------
    frame : DataFrame
        A column without any value gets 0, or the word for a missing category.
    held : sequence of str
        Columns to hold as they are, gaps included.
    fills : mapping, optional
        What gaps are filled with, if these are rows of a larger table.

    Examples
    --------
    >>> find_missing(pd.DataFrame({"age": [20.0, None, 40.0], "sex": ["F", "M", "M"]})).fills
    {'age': 20.0}
    """
    taken, known = set(map(str, frame.columns)), fills or {}
    found = {}
    for name in frame.columns:
        column = frame[name]
        if name in held or not column.isna().any():
            continue
        if name + _MARK in taken:
            raise InputError(
                f"the table has a column {name + _MARK!r} already. Rename it, or pass {option('missing', 'impute')}."
            )
        counts = column.value_counts() if name not in known else None
        found[str(name)] = known[str(name)] if counts is None else fill_of(counts, column.dtype)
    own = {name: _missing_cells(frame[name]) for name in found}
    return MissingCells(
        found, {name: pd.Index(frame[name].unique(), dtype=frame[name].dtype) for name in held}, own
    )


def _missing_cells(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return the first missing cell of each type, in the column's own dtype."""
    gaps = column[column.isna()]
    return gaps[~gaps.map(type, na_action=None).duplicated()] if column.dtype == object else gaps.head(1)


def _with_gaps(column: pd.Series[Any], mark: Any, own: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column in the dtype that it has in the user's table, with its missing cells again."""
    cells = column if column.dtype == own.dtype else column.astype(own.dtype)
    both = pd.concat([cells, own], ignore_index=True)
    at = np.where(mark > 0, len(cells) + mark - 1, np.arange(len(cells)))
    return pd.Series(both.array.take(at), index=column.index, dtype=own.dtype)


def in_words(column: pd.Series[Any]) -> pd.Series[Any] | None:
    """Return the different values of a column, each at its word, and a missing one last; None if it needs no words."""
    different = column.dropna().drop_duplicates()
    if all(isinstance(value, (str, bool, int, float, np.number, np.bool_)) for value in different):
        return None
    words = different.map(str)
    if words.duplicated().any():
        words = different.map(repr)
    gap = column[column.isna()].head(1)
    known: pd.Series[Any] = pd.concat([different, gap if len(gap) else different.head(1)])
    return known.set_axis(pd.Index([*words, MISSING_WORD], dtype=object))


def own_category(frame: pd.DataFrame, fills: Mapping[str, Any] | None = None) -> pd.DataFrame:
    """Return the table with missing categories as a category of their own; missing numbers get what fills them."""
    new = {}
    for name, fill in (find_missing(frame).fills if fills is None else fills).items():
        column = frame[name]
        numeric = column.dtype.kind in "iuf"
        if isinstance(column.dtype, pd.CategoricalDtype):
            column = column.cat.add_categories([MISSING_WORD])
        elif not numeric and not isinstance(column.dtype, pd.StringDtype):
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
        f"{owner}: every row has a missing value, so {option('missing', 'drop')} leaves nobody. The emptiest columns: {worst}. "
        f"Leave them out ({option('ignore')}), or pass {option('missing', 'impute')}."
    )


def fill_of(counts: pd.Series[Any], dtype: Any) -> Any:
    """Return what fills the gaps of a column, by how often each of its values occurs."""
    counts = counts[counts > 0]
    if not len(counts):
        return 0.0 if dtype.kind in "iuf" else MISSING_WORD
    if dtype.kind not in "iuf":
        # The first of the most frequent ones, so that the order of rows does not matter.
        most = counts.index[(counts == counts.max()).to_numpy()].astype(object)
        return min(most, key=by_type)
    values, weight = counts.index.to_numpy(dtype=float), counts.to_numpy()
    order = np.argsort(values, kind="stable")
    order = order[np.isfinite(values[order])]
    finite, reached = values[order], np.cumsum(weight[order])
    if not len(finite):
        return 0.0
    total = int(reached[-1])
    low, high = (
        float(finite[np.searchsorted(reached, k, side="right")]) for k in ((total - 1) // 2, total // 2)
    )
    middle = (low + high) / 2.0
    # A code or a count is filled with a value that occurs.
    whole = (finite == np.rint(finite)).all()
    return float(finite[np.abs(finite - middle).argmin()]) if whole else middle


def _put(column: pd.Series[Any], gap: pd.Series[Any], fill: Any) -> pd.Series[Any]:
    return column.mask(gap.to_numpy(), fill)
