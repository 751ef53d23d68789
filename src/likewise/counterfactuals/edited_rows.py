"""A person's counterparts as an ordered set, the same for the person and for each of the counterparts.

Each `TwinFactor` is a list of settings of some columns. People who have one of the settings are counterparts of the same
people with the others; if a factor counts for everybody, what stands in its columns does not matter at all. All
combinations of the factors' settings are the counterparts of a person.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
import pandas as pd

from likewise.core.checks import BoolArray, IntArray
from likewise.core.errors import InputError
from likewise.core.frames import check_columns, to_pandas, with_columns
from likewise.counterfactuals.cells import Table, put_rows
from likewise.counterfactuals.edits import (
    Edit,
    Edits,
    cells_of,
    check_combinations,
    edited_columns,
    maker_with,
    read_edits,
    resolve_edits,
)

# The contract of makers of counterparts: who or what stands beside each person, variant by variant.


@dataclass(frozen=True, eq=False)
class MadeTwins:
    """One table of counterparts per variant, everybody's in the order of the people.

    Parameters
    ----------
    tables : tuple of DataFrame
        For each variant the counterparts of all people, with the people's own columns.
    variants : tuple of mapping
        What each variant is: ``{"sex": "Female"}``.
    own : bool array of shape (variants, n)
        Where the variant is the person as they are.
    usable : bool array of shape (variants, n)
        Where there is a counterpart that may be compared; else the row is the person's own, as a filler.
    why_not : mapping of str to bool array of shape (variants, n)
        What made counterparts unusable, in words: nothing is dropped without one.

    Examples
    --------
    >>> people = pd.DataFrame({"sex": ["F", "M"]})
    >>> tables = tuple(people.assign(sex=value) for value in "FM")
    >>> own = np.array([[True, False], [False, True]])
    >>> made = MadeTwins(tables, ({"sex": "F"}, {"sex": "M"}), own, np.ones((2, 2), dtype=bool))
    >>> made.compared.sum(axis=0).tolist()
    [1, 1]
    """

    tables: tuple[pd.DataFrame, ...]
    variants: tuple[Mapping[str, Any], ...]
    own: BoolArray
    usable: BoolArray
    why_not: Mapping[str, BoolArray] = field(default_factory=dict)

    @property
    def compared(self) -> BoolArray:
        """Where there is a twin other than the person, (variants, n)."""
        found: BoolArray = self.usable & ~self.own
        return found

    @property
    def n_people(self) -> int:
        """How many people there are."""
        return int(self.usable.shape[1])


class TwinMaker(Protocol):
    """What makes counterparts: `fit` looks at people, `make` gives the counterparts of the same or of other people.

    Examples
    --------
    >>> class OneYearOlder:
    ...     fitted, n_variants = True, 2
    ...     def fit(self, people):
    ...         return self
    ...     def make(self, people):
    ...         own = np.array([[True] * len(people), [False] * len(people)])
    ...         tables = (people, people.assign(age=people["age"] + 1))
    ...         return MadeTwins(tables, ({}, {"age": "one more"}), own, np.ones_like(own))
    >>> from likewise.counterfactuals import correspondence_study
    >>> people = pd.DataFrame({"age": [30, 49]})
    >>> correspondence_study(lambda table: table["age"] < 50, people, OneYearOlder()).consistency
    0.5
    """

    @property
    def fitted(self) -> bool:
        """Whether `fit` was called."""
        ...

    @property
    def n_variants(self) -> int:
        """How many variants everybody has, themselves included; known once fitted."""
        ...

    def fit(self, people: Any) -> Self:
        """Learn what twins need from a table of people."""
        ...

    def make(self, people: Any) -> MadeTwins:
        """Return the twins of people, the same for the same rows."""
        ...


def maker_of(edits: Any, *, owner: str) -> TwinMaker | None:
    """Return the maker that edits stand for: itself, or that of an `Edit` with consequences; else None."""
    if hasattr(edits, "fit") and hasattr(edits, "make") and not isinstance(edits, type):
        given: TwinMaker = edits
        return given
    parts = [edits] if isinstance(edits, (Edit, Mapping)) or not isinstance(edits, (list, tuple)) else edits
    carrying = [part for part in parts if isinstance(part, Edit) and part.consequences is not None]
    if not carrying:
        return None
    if len(parts) > 1:
        raise InputError(
            f"{owner}: an Edit with consequences stands alone, got {len(parts)} edits. Study one after the other."
        )
    made: TwinMaker = maker_with(carrying[0])
    if not hasattr(made, "make"):
        raise InputError(
            f"{owner}: 'consequences' of Edit({carrying[0].column!r}) must be a Consequences, got "
            f"{type(made).__name__}. Pass likewise.counterfactuals.Consequences(graph=..., rules=...)."
        )
    return made


def ready_maker(edits: Any, people: Any, *, owner: str) -> TwinMaker | None:
    """Return the fitted maker that edits stand for, or None; what was passed unfitted stays so, a copy is fitted."""
    maker = maker_of(edits, owner=owner)
    if maker is None or maker.fitted:
        return maker
    return copy.deepcopy(maker).fit(people)


def has_cells(frame: pd.DataFrame, cells: Mapping[str, Any]) -> BoolArray:
    """Whether each row has these values, (n,); a missing cell has none."""
    same = [np.asarray((frame[c] == v).fillna(False), dtype=bool) for c, v in cells.items()]
    return np.asarray(np.logical_and.reduce([np.ones(len(frame), dtype=bool), *same]))


@dataclass(frozen=True)
class TwinFactor:
    """Columns, and the settings of them that make no difference between people."""

    settings: tuple[Mapping[str, Any], ...]
    everybody: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are set."""
        return tuple(self.settings[0])

    def members(self, frame: pd.DataFrame) -> BoolArray:
        """Whether each row has the twins of this factor, (n,)."""
        if self.everybody:
            return np.ones(len(frame), dtype=bool)
        return np.asarray(np.logical_or.reduce([has_cells(frame, setting) for setting in self.settings]))


def twin_factors(sensitive: Any, edits: Any, frame: pd.DataFrame, *, owner: str) -> tuple[TwinFactor, ...]:
    """Spell out the factors that sensitive columns and edits ask for, with the values that a table has."""
    return _checked([_resolved(*part, frame, owner) for part in _parts(sensitive, edits, owner)], owner)


def spelled_out_factors(sensitive: Any, edits: Any, *, owner: str) -> tuple[TwinFactor, ...] | None:
    """Return the factors if all values are listed, so that no table is needed; else None."""
    factors = []
    for part, everybody in _parts(sensitive, edits, owner):
        settings = part
        if isinstance(part, Edit):
            if part.values is None or isinstance(part.values, str) or len(part.values) < 2:
                return None
            settings = [{part.column: value} for value in part.values]
        factors.append(TwinFactor(tuple(dict(setting) for setting in settings), everybody))
    return _checked(factors, owner)


def n_twins(factors: Sequence[TwinFactor]) -> int:
    """How many twins a person has at most, themselves included."""
    return math.prod(len(factor.settings) for factor in factors)


def different_twins(
    frame: pd.DataFrame, factors: Sequence[TwinFactor], *, owner: str
) -> Iterator[tuple[IntArray, pd.DataFrame]]:
    """Yield, per combination of settings, whose counterpart is a new one, and these counterparts alone.

    A person who lacks a factor stays the same under all of its settings, and need not be looked at again.
    """
    check_columns(frame, [c for factor in factors for c in factor.columns], owner=owner, name="X")
    members = [factor.members(frame) for factor in factors]
    sizes = [len(factor.settings) for factor in factors]
    strides = [math.prod(sizes[k + 1 :]) for k in range(len(sizes))]
    places = itertools.product(*(range(size) for size in sizes))
    for number, (numbers, table) in enumerate(
        zip(places, _tables(frame, factors, members, owner), strict=True)
    ):
        source = np.zeros(len(frame), dtype=np.intp)
        for k, chosen in enumerate(numbers):
            source += strides[k] * chosen * members[k]
        new = source == number
        yield source, table if new.all() else table[new]


def _tables(
    frame: pd.DataFrame, factors: Sequence[TwinFactor], members: Sequence[BoolArray], owner: str
) -> Iterator[pd.DataFrame]:
    table = Table(frame)

    def filled_column(mine: BoolArray, column: str, value: Any) -> Any:
        entry = table.entry(column, value, owner=owner)
        if mine.all():
            return entry.take(np.zeros(len(mine), dtype=np.intp))
        cells = table.native[column].astype(entry.dtype).array.copy()
        cells[mine] = entry[0]
        return cells

    filled = {
        (k, column, number): filled_column(members[k], column, setting[column])
        for k, factor in enumerate(factors)
        for number, setting in enumerate(factor.settings)
        for column in factor.columns
    }
    for numbers in itertools.product(*(range(len(factor.settings)) for factor in factors)):
        columns = {
            column: filled[k, column, number]
            for k, number in enumerate(numbers)
            for column in factors[k].columns
        }
        yield with_columns(frame, columns) if columns else frame


def canonical_rows(frame: pd.DataFrame, factors: Sequence[TwinFactor], *, owner: str) -> pd.DataFrame:
    """Return the first counterpart of every row: equal for two rows exactly when they are counterparts of each other.

    Examples
    --------
    >>> people = pd.DataFrame({"relationship": ["Wife", "Husband", "Own-child"]})
    >>> spouse = twin_factors(None, {"relationship": ["Husband", "Wife"]}, people, owner="fit")
    >>> canonical_rows(people, spouse, owner="fit")["relationship"].tolist()
    ['Husband', 'Husband', 'Own-child']
    """
    check_columns(frame, [c for factor in factors for c in factor.columns], owner=owner, name="X")
    firsts = [TwinFactor((*factor.settings[:1],), factor.everybody) for factor in factors]
    members = [factor.members(frame) for factor in factors]
    return next(_tables(frame, firsts, members, owner))


def _parts(sensitive: Any, edits: Any, owner: str) -> list[tuple[Any, bool]]:
    """Parts of what is edited, and whether they are sensitive: what stands there does not matter for anybody."""
    if isinstance(sensitive, Mapping):
        mine = [Edit(column, values) for column, values in sensitive.items()]
    else:
        mine = [Edit(column) for column in ([sensitive] if isinstance(sensitive, str) else sensitive or ())]
    return [(one, True) for one in mine] + [
        (part, False) for part in (() if edits is None else read_edits(edits, owner=owner))
    ]


def _resolved(part: Any, everybody: bool, frame: pd.DataFrame, owner: str) -> TwinFactor:
    columns = edited_columns((part,), owner=owner)
    present = [column for column in columns if column in frame.columns]
    known = frame.dropna(subset=present) if present and frame[present].isna().any(axis=None) else frame
    if not len(known):
        raise InputError(f"{owner}: column {columns[0]!r} has only missing values. Leave it out.")
    variants, attributes = resolve_edits([part], Table(known), owner=owner)
    return TwinFactor(tuple(cells_of(variant, attributes) for variant in variants), everybody)


def _checked(factors: list[TwinFactor], owner: str) -> tuple[TwinFactor, ...]:
    seen: set[str] = set()
    for factor in factors:
        if not factor.columns or any(set(s) != set(factor.columns) for s in factor.settings):
            raise InputError(
                f"{owner}: columns that change together must all be named in each dict of 'edits', got "
                f"{[dict(setting) for setting in factor.settings]}."
            )
        twice = seen & set(factor.columns)
        if twice:
            raise InputError(
                f"{owner}: column {sorted(twice)[0]!r} is edited twice. Name it either as sensitive or in 'edits'."
            )
        seen |= set(factor.columns)
    check_combinations(n_twins(factors), owner=owner)
    return tuple(factors)


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
    """Return, for each person, one row of the orbit that they and all their counterparts end in.

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
    >>> from likewise.counterfactuals.edited_rows import AttributeTwins
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
    return _least_of_orbits(maker, now, waiting, keys)


def _around(maker: TwinMaker, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of the first group, sent through every other group and back."""
    now = rows
    for group in (*range(1, maker.n_variants), 0):
        now = maker.make(now).tables[group]
    return now


def _least_of_orbits(maker: TwinMaker, now: pd.DataFrame, waiting: IntArray, keys: Keys) -> pd.DataFrame:
    """Rows in longer orbits: the one with the least key stands for its orbit."""
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
    """One number per row, whatever the other rows are; numbers count to fewer digits than they have.

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
