"""A person's counterparts as a set: the same set, in the same order, whichever of the counterparts one starts from.

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

from likewise.core.checks import IntArray
from likewise.core.errors import InputError
from likewise.core.frames import check_columns, with_columns
from likewise.counterfactuals.cells import Table
from likewise.counterfactuals.edits import MAX_VARIANTS, Edit, cells_of, maker_with, read_edits, resolve_edits

# The contract of makers of counterparts: who or what stands beside each person, variant by variant.


Mask = np.ndarray[Any, np.dtype[np.bool_]]


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
    own: Mask
    usable: Mask
    why_not: Mapping[str, Mask] = field(default_factory=dict)

    @property
    def compared(self) -> Mask:
        """Where there is a twin other than the person, (variants, n)."""
        found: Mask = self.usable & ~self.own
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


Places = IntArray


def has_cells(frame: pd.DataFrame, cells: Mapping[str, Any]) -> Mask:
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

    def members(self, frame: pd.DataFrame) -> Mask:
        """Whether each row has the twins of this factor, (n,)."""
        if self.everybody:
            return np.ones(len(frame), dtype=bool)
        return np.asarray(np.logical_or.reduce([has_cells(frame, setting) for setting in self.settings]))


def twin_factors(sensitive: Any, edits: Any, frame: pd.DataFrame, *, owner: str) -> tuple[TwinFactor, ...]:
    """Spell out the factors that sensitive columns and edits ask for, with the values that a table has."""
    factors = [_resolved(part, frame, True, owner) for part in _sensitive_edits(sensitive)]
    if edits is not None:
        factors += [_resolved(part, frame, False, owner) for part in read_edits(edits, owner=owner)]
    return _checked(factors, owner)


def spelled_out_factors(sensitive: Any, edits: Any, *, owner: str) -> tuple[TwinFactor, ...] | None:
    """Return the factors if all values are listed, so that no table is needed; else None."""
    parts: list[tuple[Any, bool]] = [(part, True) for part in _sensitive_edits(sensitive)]
    parts += [(part, False) for part in (() if edits is None else read_edits(edits, owner=owner))]
    factors = []
    for part, everybody in parts:
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
) -> Iterator[tuple[Places, pd.DataFrame]]:
    """Yield, per combination of settings, whose counterpart is a new one, and these counterparts alone.

    Whoever lacks a factor stays the same under all of its settings, and need not be looked at again.
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
    frame: pd.DataFrame, factors: Sequence[TwinFactor], members: Sequence[Mask], owner: str
) -> Iterator[pd.DataFrame]:
    table = Table(frame)
    filled = {
        (k, column, number): _filled(table, members[k], column, setting[column], owner)
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


def _sensitive_edits(sensitive: Any) -> list[Edit]:
    if sensitive is None:
        return []
    if isinstance(sensitive, str):
        return [Edit(sensitive)]
    if isinstance(sensitive, Mapping):
        return [Edit(column, values) for column, values in sensitive.items()]
    return [Edit(column) for column in sensitive]


def _resolved(part: Any, frame: pd.DataFrame, everybody: bool, owner: str) -> TwinFactor:
    columns = [part.column] if isinstance(part, Edit) else list(dict.fromkeys(k for v in part for k in v))
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
    if n_twins(factors) > MAX_VARIANTS:
        raise InputError(
            f"{owner}: everybody would have {n_twins(factors):,} twins; at most {MAX_VARIANTS:,} are made. "
            "Name fewer columns or list fewer values."
        )
    return tuple(factors)


def _filled(table: Table, members: Mask, column: str, value: Any, owner: str) -> Any:
    entry = table.entry(column, value, owner=owner)
    if members.all():
        return entry.take(np.zeros(len(members), dtype=np.intp))
    filled = table.native[column].astype(entry.dtype).array.copy()
    filled[members] = entry[0]
    return filled
