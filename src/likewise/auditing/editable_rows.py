"""The audited rows as a table in which single columns can be read and rewritten: raw frames and encoded arrays.

Twins differ from a person in a few columns. A raw frame keeps its own dtypes, so that the model sees what it was
trained on; in an encoded array the indicator columns of a category are rewritten together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from likewise.core.checks import BoolArray, FloatArray, IntArray, check_matrix, python_scalar, to_numpy
from likewise.core.errors import InputError, bad_parameter, no_rows
from likewise.core.frames import check_columns, check_no_missing, to_pandas
from likewise.counterfactuals.edits import Edit, EditParts, check_combinations, edited_columns
from likewise.data.encoding import Encoding
from likewise.data.target import unique_values

if TYPE_CHECKING:
    from likewise.counterfactuals.edited_rows import TwinMaker

# A numeric column with more values than this is not tried at all of them.
MAX_VALUES = 20


def check_may_change(names: Sequence[Hashable], fixed: Sequence[Hashable]) -> None:
    """Refuse edits of columns that the domain says may not change."""
    frozen = [name for name in names if name in fixed]
    if frozen:
        raise InputError(
            f"audit: column {frozen[0]!r} is to be edited, but the domain says that it may not change. "
            "Leave it out of 'edits', or out of the domain's 'immutable'."
        )


@dataclass(frozen=True, eq=False)
class Field:
    """One column with the values it may be given."""

    name: Hashable
    values: tuple[Any, ...]
    codes: IntArray

    def code_of(self, value: Any) -> int:
        """Position of one value, or an error that lists what there is."""
        if value in self.values:
            return self.values.index(value)
        shown = ", ".join(repr(v) for v in self.values[:12]) + (", …" if len(self.values) > 12 else "")
        raise InputError(f"audit: column {self.name!r} has no value {value!r}. Its values: {shown}.")


def editable_rows(
    X: Any, encoding: Encoding | None, *, raw: bool, marks: Mapping[str, str] | None = None
) -> EditableRows:
    """Wrap rows; `marks` names for some columns the column that says whether a cell is missing."""
    known = {} if encoding is None else encoding.by_name
    if raw:
        frame = to_pandas(X, owner="audit", name="X").reset_index(drop=True)
        if not len(frame):
            raise no_rows("audit")
        check_no_missing(frame, owner="audit", name="X")
        return EditableFrame(frame, known, marks)
    width = None if encoding is None else encoding.n_features
    return EditableArray(to_numpy(check_matrix(X, owner="audit", n_features=width)).astype(np.float64), known)


class EditableFrame:
    """A raw pandas frame, with what a `TabularDomain` knows of its columns, if there is one.

    A missing cell of a column with a mark has no code, and is not missing any more once a value is written there.
    """

    def __init__(
        self, frame: pd.DataFrame, known: Mapping[str, Any], marks: Mapping[str, str] | None = None
    ) -> None:
        self.frame, self.known, self.n_rows = frame, known, len(frame)
        self.marks = {name: mark for name, mark in (marks or {}).items() if mark in frame}

    def missing(self, name: Hashable) -> BoolArray:
        """Whether the cell of a column is missing, shape (n,)."""
        mark = self.marks.get(str(name))
        return np.zeros(self.n_rows, dtype=bool) if mark is None else self.frame[mark].to_numpy(dtype=bool)

    def field(self, name: Hashable, values: Sequence[Any] | None = None) -> Field:
        """Read a column; `values` defaults to all that the domain or the data know of it."""
        check_columns(self.frame, [str(name)], owner="audit", name="X")
        column = self.frame[str(name)]
        known = self.known.get(str(name))
        if values is None:
            values = known.categories if known is not None and known.categories else few_values(column)
        else:
            values = _allowed(values, name, known)
            self._typed(str(name), values)
        return Field(name, tuple(values), np.where(self.missing(name), -1, _codes(column, values)))

    def two_valued(self) -> tuple[Hashable, ...]:
        """Names of the columns of numbers with at most two values."""
        return tuple(
            c for c in self.frame if self.frame[c].dtype.kind in "biuf" and self.frame[c].nunique() < 3
        )

    def numbers(self, name: Hashable) -> FloatArray | None:
        """Return a numeric column in original units; None for a category."""
        known = self.known.get(str(name))
        if str(name) not in self.frame or self.frame[str(name)].dtype.kind not in "iuf":
            return None
        return None if known is not None and known.categories else self.frame[str(name)].to_numpy(dtype=float)

    def writable(self, name: Hashable, values: FloatArray) -> list[Any]:
        """Return those numbers, as the column holds them, that it can hold; rising, each once."""
        dtype: Any = self.frame[str(name)].dtype
        known = self.known.get(str(name))
        whole = dtype.kind in "iu"
        typed = pd.Series(np.round(values) if whole else values).astype(dtype).unique()
        return sorted(
            v for v in map(python_scalar, typed) if known is None or known.lower <= v <= known.upper
        )

    def rewrite(self, rows: IntArray, new: Sequence[tuple[Field, IntArray]]) -> pd.DataFrame:
        """Return copies of some rows with columns rewritten; a code of -1 leaves the row's value."""
        frame = self.frame.take(rows).reset_index(drop=True)
        for field, codes in _changes(rows, new):
            if (codes < 0).all():
                continue
            name = str(field.name)
            levels = self._typed(name, field.values)
            both = pd.concat([frame[name], levels], ignore_index=True)
            index = np.where(codes < 0, np.arange(len(rows)), len(rows) + codes)
            frame[name] = pd.Series(both.array.take(index), dtype=both.dtype)
            if name in self.marks:
                mark = frame[self.marks[name]]
                frame[self.marks[name]] = mark.where(codes < 0, mark.dtype.type(0))
        return frame

    def below(self, other: EditableRows) -> EditableFrame:
        """Return these rows followed by the other's."""
        if not isinstance(other, EditableFrame) or list(other.frame.columns) != list(self.frame.columns):
            raise InputError("pool: must have the columns of 'X', in the same order and units.")
        return EditableFrame(pd.concat([self.frame, other.frame], ignore_index=True), self.known)

    def _typed(self, name: str, values: Sequence[Any]) -> pd.Series[Any]:
        """Return values as a series of the column's own dtype."""
        dtype: Any = self.frame[name].dtype
        try:
            series: pd.Series[Any] = pd.Series(list(values), dtype=dtype)
        except (TypeError, ValueError) as error:
            raise _cannot_hold(name, values, dtype) from error
        if series.isna().any() or list(series) != list(values):
            raise _cannot_hold(name, values, dtype)
        return series


class EditableArray:
    """Encoded rows: columns of a `TabularDomain` by name, or columns of a plain array by position."""

    def __init__(self, array: np.ndarray[Any, Any], known: Mapping[str, Any]) -> None:
        self.array, self.known, self.n_rows = array, known, len(array)

    def missing(self, name: Hashable) -> BoolArray:
        return np.zeros(self.n_rows, dtype=bool)

    def field(self, name: Hashable, values: Sequence[Any] | None = None) -> Field:
        if name in self.known:
            column = self.known[str(name)]
            if column.categories:
                values = column.categories if values is None else _allowed(values, name, column)
                cells = self.array[:, column.start : column.stop]
                own = (cells[:, 0] > 0.5).astype(np.int64) if column.is_binary else cells.argmax(axis=1)
                index = [values.index(c) if c in values else -1 for c in column.categories]
                return Field(name, tuple(values), np.asarray(index, dtype=np.int64)[own])
        at, column = self._place(name)
        part = pd.Series(self.array[:, at])
        if column is None:
            values = few_values(part) if values is None else [float(v) for v in values]
            return Field(name, tuple(values), _codes(part, values))
        if values is None:
            levels = few_values(part)
            units = column.number(levels).tolist()
            shown = [float(round(v)) for v in units] if column.kind == "integer" else units
            return Field(name, tuple(shown), _codes(part, levels))
        values = _allowed(values, name, column)
        encoded = column.place(values)
        near = np.abs(self.array[:, [at]] - encoded) <= 1e-9 * (1 + np.abs(encoded))
        return Field(name, tuple(values), np.where(near.any(axis=1), near.argmax(axis=1), -1))

    def two_valued(self) -> tuple[Hashable, ...]:
        return tuple(
            name
            for name, column in self.known.items()
            if column.is_binary or column.upper - column.lower == 1
        )

    def numbers(self, name: Hashable) -> FloatArray | None:
        if name in self.known and self.known[str(name)].categories:
            return None
        at, column = self._place(name)
        if column is None:
            return self.array[:, at]
        units = column.number(self.array[:, at])
        return np.rint(units) if column.kind == "integer" else np.asarray(units)

    def writable(self, name: Hashable, values: FloatArray) -> list[Any]:
        return [float(value) for value in np.unique(values)]

    def rewrite(self, rows: IntArray, new: Sequence[tuple[Field, IntArray]]) -> Any:
        array = self.array[rows]
        for field, codes in _changes(rows, new):
            hit = np.flatnonzero(codes >= 0)
            place, cells = self._cells(field)
            array[np.ix_(hit, place)] = cells[codes[hit]]
        return array

    def below(self, other: EditableRows) -> EditableArray:
        if not isinstance(other, EditableArray) or other.array.shape[1] != self.array.shape[1]:
            raise InputError("pool: must have the columns of 'X', in the same order and encoding.")
        return EditableArray(np.concatenate([self.array, other.array]), self.known)

    def places(self, field: Field) -> IntArray:
        """Positions of the cells that a column is written in."""
        return self._cells(field)[0]

    def _cells(self, field: Field) -> tuple[IntArray, np.ndarray[Any, Any]]:
        """Encoded columns of a field, and what to write there for each of its values."""
        column = self.known.get(str(field.name)) if field.name in self.known else None
        if column is None or not column.categories:
            at, column = self._place(field.name)
            numbers = np.array(field.values, dtype=float)
            return np.array([at]), (numbers if column is None else column.place(numbers))[:, None]
        levels = list(column.categories)
        cells = np.eye(len(levels))[[levels.index(value) for value in field.values]]
        return np.arange(column.start, column.stop), cells[:, 1:] if column.is_binary else cells

    def _place(self, name: Hashable) -> tuple[int, Any]:
        if name in self.known:
            return int(self.known[str(name)].start), self.known[str(name)]
        if isinstance(name, (int, np.integer)) and 0 <= name < self.array.shape[1]:
            return int(name), None
        if self.known:
            check_columns(pd.DataFrame(columns=list(self.known)), [str(name)], owner="audit", name="domain")
        raise bad_parameter(
            "audit",
            "edits",
            allowed=f"column positions between 0 and {self.array.shape[1] - 1} for an array",
            got=name,
            remedy="Pass domain=TabularDomain.from_frame(frame) to use the names of the original columns.",
        )


# Rows whose columns can be read as codes and rewritten.
EditableRows: TypeAlias = EditableFrame | EditableArray


def _changes(rows: IntArray, new: Sequence[tuple[Field, IntArray]]) -> Iterator[tuple[Field, IntArray]]:
    """A value that stays is not written anew, so that rounding of the encoding does not move it."""
    return ((field, np.where(codes == field.codes[rows], -1, codes)) for field, codes in new)


def few_values(column: pd.Series[Any]) -> list[Any]:
    """Return all values of a column in order; of a number with very many, its smallest, largest and quartiles."""
    values: Any = pd.unique(column)
    if column.dtype.kind in "iuf" and len(values) > MAX_VALUES:
        ends = np.quantile(column.to_numpy(dtype=float), [0.0, 0.25, 0.5, 0.75, 1.0], method="nearest")
        values = column[column.isin(ends)].unique()
    return unique_values(values)


def _codes(column: pd.Series[Any], values: Sequence[Any]) -> IntArray:
    index = pd.Index(list(values))
    if column.dtype.kind not in "iuf":
        index = index.astype(object)
    # A repeated person costs one lookup: a table has few distinct values.
    codes, seen = pd.factorize(column)
    found = index.get_indexer(pd.Index(np.asarray(seen), dtype=index.dtype))
    return np.asarray(found[codes], dtype=np.int64)


def _allowed(values: Sequence[Any], name: Hashable, known: Any) -> list[Any]:
    """Return the values asked for, once the domain agrees that they can exist."""
    if isinstance(values, str) or not len(values):
        allowed = f"a list of values for {name!r}"
        raise bad_parameter("audit", "edits", allowed=allowed, got=values, remedy=f"Write [{values!r}].")
    if known is None:
        return list(values)
    if known.categories:
        wrong = [value for value in values if value not in known.categories]
        allowed = f"among the categories of {name!r}: {', '.join(map(repr, known.categories[:12]))}"
    else:
        wrong = [
            v for v in values if not known.lower <= v <= known.upper or (known.kind == "integer" and v % 1)
        ]
        whole = "whole numbers " if known.kind == "integer" else ""
        allowed = f"{whole}between {known.lower:g} and {known.upper:g} for {name!r}"
    if wrong:
        raise bad_parameter(
            "audit", "edits", allowed=allowed, got=wrong[0], remedy="The domain rules it out."
        )
    return list(values)


def _cannot_hold(name: str, values: Sequence[Any], dtype: Any) -> InputError:
    return InputError(
        f"audit: column {name!r} is of type {dtype} and cannot hold every value of {list(values)[:12]!r}. "
        "Use values of its own type, or convert the column first."
    )


# The candidates of an audit: rows as they are, twins with columns edited, and their consequences, made only when asked for.


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidate rows by number: whose row, and which edit.

    The first candidates are the rows as they are, in their order.
    """

    people: EditableRows
    fields: tuple[Field, ...]
    combinations: IntArray
    source: IntArray
    edit: IntArray
    made: tuple[Any, ...] = ()
    maker: TwinMaker | None = None

    def __len__(self) -> int:
        return len(self.source)

    def settled_edits(self, edits: EditParts) -> EditParts:
        """Return the edits with the values that these rows gave them, so that other rows cannot change them."""
        values = {field.name: tuple(field.values) for field in self.fields}
        found: list[Any] = []
        for part in edits:
            if isinstance(part, Edit):
                part = replace(part, values=values[part.column])
                if part.consequences is not None and self.maker is not None:
                    part = replace(part, consequences=self.maker)
            found.append(part)
        return tuple(found)

    def take(self, index: Any) -> Any:
        """Make some candidates, as the kind of table the audited rows are."""
        from likewise.counterfactuals.cells import put_rows

        chosen = np.asarray(index, dtype=np.int64)
        rows, edit = self.source[chosen], self.edit[chosen]
        edited = (edit >= 0) & (edit < len(self.combinations))
        codes = np.full((len(rows), len(self.fields)), -1)
        codes[edited] = self.combinations[edit[edited]]
        table = self.people.rewrite(rows, list(zip(self.fields, codes.T, strict=True)))
        for number, twins in enumerate(self.made):
            at = np.flatnonzero(edit == len(self.combinations) + number)
            table = put_rows(table, twins.iloc[rows[at]], at)
        return table


def plan_candidates(
    people: EditableRows,
    edits: EditParts,
    *,
    fixed: Sequence[Hashable] = (),
    owner: str = "audit",
    carry: bool = False,
) -> Candidates:
    """List the candidates that rows give rise to."""
    names = edited_columns(edits, owner=owner)
    check_may_change(names, fixed)
    fields = tuple(people.field(name, _values(edits, name)) for name in names)
    combinations = _combinations(edits, fields)
    rows = np.arange(people.n_rows)
    source: list[IntArray] = [rows]
    edit = [np.full(len(rows), -1)]
    own = np.stack([field.codes for field in fields], axis=1) if fields else np.zeros((len(rows), 0))
    for k, combination in enumerate(combinations):
        mine: IntArray = np.flatnonzero(((own != combination) & (combination >= 0)).any(axis=1))
        source.append(mine)
        edit.append(np.full(len(mine), k))
    made: tuple[Any, ...] = ()
    maker: TwinMaker | None = None
    if carry and any(isinstance(part, Edit) and part.consequences is not None for part in edits):
        made, maker, compared = _carried(people, edits, fixed, owner)
        for k, some in enumerate(compared):
            source.append(some)
            edit.append(np.full(len(some), len(combinations) + k))
    return Candidates(people, fields, combinations, np.concatenate(source), np.concatenate(edit), made, maker)


def _carried(
    people: EditableRows, edits: EditParts, fixed: Sequence[Hashable], owner: str
) -> tuple[tuple[Any, ...], TwinMaker, list[IntArray]]:
    """Twins with the consequences of the one edit that has some: tables, their maker, and whose are to be compared."""
    if not isinstance(people, EditableFrame):
        raise InputError(
            f"{owner}: an Edit with consequences needs the people in their own columns. Pass the raw table as X, and a "
            "model that takes it."
        )
    from likewise.counterfactuals.edited_rows import ready_maker

    carrying = [part for part in edits if isinstance(part, Edit) and part.consequences is not None]
    maker = ready_maker(carrying if len(carrying) > 1 else carrying[0], people.frame, owner=owner)
    assert maker is not None
    frozen = [name for name in getattr(maker, "moved_", ()) if name in fixed]
    if frozen:
        raise InputError(
            f"{owner}: column {frozen[0]!r} follows from {carrying[0].column!r}, but the domain says that it may not "
            "change. Leave it out of the graph, or out of the domain's 'immutable'."
        )
    made = maker.make(people.frame)
    return made.tables, maker, [np.flatnonzero(mask) for mask in made.compared]


def _values(edits: EditParts, name: Hashable) -> list[Any] | None:
    """Values that the edits ask for in one column; None for all there are."""
    for part in edits:
        if isinstance(part, Edit) and part.column == name:
            every = part.values is None or (isinstance(part.values, str) and part.values == "all")
            return None if every else part.values  # type: ignore[return-value]
    asked = [v[name] for part in edits if not isinstance(part, Edit) for v in part if name in v]  # type: ignore[index]
    return list(dict.fromkeys(asked))


def _combinations(edits: EditParts, fields: tuple[Field, ...]) -> IntArray:
    """Every edit as one row of codes, one for each field; −1 leaves the field as it is."""
    if not fields:
        return np.zeros((0, 0), dtype=np.int64)
    place = {field.name: k for k, field in enumerate(fields)}
    choices: list[list[dict[int, int]]] = []
    for part in edits:
        if isinstance(part, Edit):
            at = place[part.column]
            choices.append([{at: code} for code in range(len(fields[at].values))])
        else:
            choices.append(
                [
                    {place[name]: fields[place[name]].code_of(value) for name, value in variant.items()}
                    for variant in part
                ]
            )
    total = math.prod(map(len, choices))
    check_combinations(total, owner="audit")
    rows = np.full((total, len(fields)), -1, dtype=np.int64)
    for row, parts in zip(rows, itertools.product(*choices), strict=True):
        for codes in parts:
            for at, code in codes.items():
                row[at] = code
    return rows
