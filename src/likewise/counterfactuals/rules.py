"""Hard rules for counterparts: value maps, implications and forbidden combinations."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.checks import BoolArray
from likewise.core.errors import FormatError, InputError, bad_parameter, did_you_mean, listed
from likewise.core.files import Fields, ListOf, check_form, read_toml
from likewise.core.frames import check_columns, with_columns

Condition = Mapping[str, Any]


@dataclass(frozen=True)
class ValueMap:
    """Values of a column that become others in a counterpart.

    Parameters
    ----------
    when : mapping
        What the counterpart must be: ``{"sex": "Female"}``. A list of values stands for any of them.
    column : str
    values : mapping
        Old value to new: ``{"Husband": "Wife"}``. Other values stay.

    Examples
    --------
    >>> print(ValueMap({"sex": "Female"}, "role", {"Husband": "Wife"}))
    when sex = Female: role Husband becomes Wife
    """

    when: Condition
    column: str
    values: Mapping[Any, Any]

    def __str__(self) -> str:
        became = ", ".join(f"{old} becomes {new}" for old, new in self.values.items())
        return f"when {_condition_words(self.when)}: {self.column} {became}"


@dataclass(frozen=True)
class Implication:
    """If a row is so, then it must be so.

    Parameters
    ----------
    when, then : mapping
        Column to value; a list of values stands for any of them.

    Examples
    --------
    >>> rule = Implication({"relationship": "Husband"}, {"sex": "Male"})
    >>> people = pd.DataFrame({"relationship": ["Husband", "Child"], "sex": ["Female", "Female"]})
    >>> rule.broken(people).tolist()
    [True, False]
    """

    when: Condition
    then: Condition

    def broken(self, table: pd.DataFrame) -> BoolArray:
        """Whether each row breaks the rule."""
        return _holds(self.when, table) & ~_holds(self.then, table)

    def __str__(self) -> str:
        return f"{_condition_words(self.when)} implies {_condition_words(self.then)}"


@dataclass(frozen=True)
class Forbidden:
    """A combination of values that nobody has.

    Parameters
    ----------
    what : mapping
        Column to value; a list of values stands for any of them.

    Examples
    --------
    >>> rule = Forbidden({"sex": "Female", "relationship": ["Husband", "Father"]})
    >>> people = pd.DataFrame({"sex": ["Female", "Female", "Male"], "relationship": ["Father", "Child", "Father"]})
    >>> rule.broken(people).tolist()
    [True, False, False]
    """

    what: Condition

    def broken(self, table: pd.DataFrame) -> BoolArray:
        """Whether each row breaks the rule."""
        return _holds(self.what, table)

    def __str__(self) -> str:
        return f"nobody has {_condition_words(self.what)}"


@dataclass(frozen=True)
class Rules:
    """Rules that counterparts must satisfy.

    Parameters
    ----------
    maps : tuple of ValueMap
        Applied to every counterpart whose edited column changed, before the graph; a column with a map follows that map
        instead of the edited column, and its other causes in the graph.
    implications : tuple of Implication
    forbidden : tuple of Forbidden

    Examples
    --------
    >>> rules = Rules(
    ...     maps=(ValueMap({"sex": "Female"}, "role", {"Husband": "Wife"}),),
    ...     implications=(Implication({"role": "Husband"}, {"sex": "Male"}),),
    ... )
    >>> women = pd.DataFrame({"sex": ["Female", "Female"], "role": ["Husband", "Child"]})
    >>> rules.broken(women).tolist(), rules.repaired(women)["role"].tolist()
    ([True, False], ['Wife', 'Child'])
    """

    maps: tuple[ValueMap, ...] = ()
    implications: tuple[Implication, ...] = ()
    forbidden: tuple[Forbidden, ...] = ()

    def __or__(self, other: Rules) -> Rules:
        return Rules(
            (*self.maps, *(m for m in other.maps if m not in self.maps)),
            (*self.implications, *(i for i in other.implications if i not in self.implications)),
            (*self.forbidden, *(f for f in other.forbidden if f not in self.forbidden)),
        )

    @property
    def mapped(self) -> tuple[str, ...]:
        """Columns that follow a value map."""
        return tuple(dict.fromkeys(rule.column for rule in self.maps))

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that the rules name."""
        named = [name for rule in self.maps for name in (*rule.when, rule.column)]
        named += [name for rule in self.implications for name in (*rule.when, *rule.then)]
        named += [name for rule in self.forbidden for name in rule.what]
        return tuple(dict.fromkeys(named))

    def repaired(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table of twins with the value maps applied; every map sees the values before all maps."""
        changed: dict[str, pd.Series[Any]] = {}
        for rule in self.maps:
            column = changed.get(rule.column, table[rule.column]).copy()
            concerned = _holds(rule.when, table)
            for old, new in rule.values.items():
                some = concerned & np.asarray(table[rule.column].isin([old]), dtype=bool)
                if some.any():
                    array = column.array.copy()
                    array[some] = new  # the dtype stays
                    column = pd.Series(array, index=column.index, name=column.name)
            changed[rule.column] = column
        return with_columns(table, changed) if changed else table

    def broken(self, table: pd.DataFrame) -> BoolArray:
        """Whether each row breaks an implication or is forbidden, (n,)."""
        found = np.zeros(len(table), dtype=bool)
        checks: list[Implication | Forbidden] = [*self.implications, *self.forbidden]
        for rule in checks:
            found |= rule.broken(table)
        return found

    def check(self, table: pd.DataFrame, *, owner: str) -> None:
        """Raise an error if the rules do not fit the table, or contradict each other.

        They may name no column that the table lacks, map no value that its column lacks, ask for nothing that no row of
        it can be, and map one value to two.
        """
        check_columns(table, self.columns, owner=owner, name="people")
        for rule in self.maps:
            _check_values(table[rule.column], [*rule.values, *rule.values.values()], "maps", owner)
        conditions = [rule.when for rule in self.maps]
        conditions += [part for rule in self.implications for part in (rule.when, rule.then)]
        conditions += [rule.what for rule in self.forbidden]
        for condition in conditions:
            for column, value in condition.items():
                allowed = allowed_values(value)
                if not table[column].isin(allowed).any():
                    _check_values(table[column], allowed, "speaks of", owner)
        for one, other in itertools.combinations(self.maps, 2):
            if one.column != other.column or _apart(one.when, other.when):
                continue
            for value in one.values:
                if value in other.values and one.values[value] != other.values[value]:
                    raise InputError(
                        f"{owner}: two rules contradict each other: {one}; {other}. Let {value!r} become one value."
                    )
        for first, second in itertools.combinations(self.implications, 2):
            if first.when == second.when and _apart(first.then, second.then):
                raise InputError(f"{owner}: two rules contradict each other: {first}; {second}.")

    def matched_to(self, table: pd.DataFrame) -> Rules:
        """Return the rules with words for numbers read as numbers if a column has numbers: keys of TOML are words."""
        return replace(
            self,
            maps=tuple(
                replace(rule, values={_as_in(table.get(rule.column), k): v for k, v in rule.values.items()})
                for rule in self.maps
            ),
        )

    def sentences(self) -> tuple[str, ...]:
        """Return every rule in words."""
        return tuple(str(rule) for rule in (*self.maps, *self.implications, *self.forbidden))


_FORM = Fields(
    {},
    {
        "map": ListOf(Fields({"when": dict, "column": str, "values": dict})),
        "implies": ListOf(Fields({"if": dict, "then": dict})),
        "forbid": ListOf(dict),
    },
)


def read_rules(rules: Any, *, owner: str) -> Rules:
    """Read rules: a `Rules`, a mapping of the same shape as the TOML file, its path, or None for none.

    Parameters
    ----------
    rules : Rules, mapping, path or None
        ``{"map": [{"when": {...}, "column": ..., "values": {...}}], "implies": [{"if": {...}, "then": {...}}],
        "forbid": [{...}]}``; each part may be left out.
    owner : str
        For error messages.

    Examples
    --------
    >>> print(*read_rules({"forbid": [{"sex": "Female", "role": "Husband"}]}, owner="twins").sentences())
    nobody has sex = Female and role = Husband
    """
    if rules is None:
        return Rules()
    if isinstance(rules, Rules):
        return rules
    if isinstance(rules, (str, Path)):
        return read_rules(read_toml(rules, owner=owner), owner=owner)
    if not isinstance(rules, Mapping):
        raise bad_parameter(
            owner, "rules", "a Rules, a dict, or the path of a TOML file", type(rules).__name__
        )
    try:
        check_form(rules, _FORM, "it")
    except FormatError as error:
        raise InputError(f"{owner}: 'rules' must have the form of a file of rules: {error}.") from error
    maps, implies, forbid = (rules.get(name, ()) for name in ("map", "implies", "forbid"))
    conditions = [part[key] for part in maps for key in ("when", "values")]
    if not all((*conditions, *(condition for part in implies for condition in part.values()), *forbid)):
        raise bad_parameter(owner, "rules", "columns with values in every condition", "none in one")
    return Rules(
        tuple(ValueMap(**part) for part in maps),
        tuple(Implication(part["if"], part["then"]) for part in implies),
        tuple(Forbidden(what) for what in forbid),
    )


def _check_values(column: pd.Series[Any], values: Iterable[Any], verb: str, owner: str) -> None:
    seen = list(column.dropna().unique())
    unknown = [value for value in values if not column.isin([value]).any()]
    if unknown:
        words = sorted(map(str, seen))
        meant = did_you_mean(unknown[0], words)
        raise InputError(
            f"{owner}: a rule {verb} {column.name!r} with {unknown[0]!r}, which never occurs there{meant}. "
            f"Its values: {listed(words)}."
        )


def _apart(one: Condition, other: Condition) -> bool:
    """Whether two conditions can never hold together."""
    return any(not set(allowed_values(one[c])) & set(allowed_values(other[c])) for c in one if c in other)


def _as_in(column: pd.Series[Any] | None, value: Any) -> Any:
    if column is None or not isinstance(value, str) or not pd.api.types.is_numeric_dtype(column.dtype):
        return value
    if pd.api.types.is_bool_dtype(column.dtype):
        return {"true": True, "false": False}.get(value.lower(), value)
    try:
        number = float(value)
    except ValueError:
        return value
    return int(number) if number.is_integer() else number


def allowed_values(value: Any) -> list[Any]:
    """Return the values that a condition on one column names."""
    return list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]


def _holds(condition: Condition, table: pd.DataFrame) -> BoolArray:
    found = np.ones(len(table), dtype=bool)
    for column, value in condition.items():
        found &= np.asarray(table[column].isin(allowed_values(value)), dtype=bool)
    return found


def _condition_words(condition: Condition) -> str:
    parts = []
    for column, value in condition.items():
        many = isinstance(value, (list, tuple, set, frozenset))
        parts.append(f"{column} is one of {', '.join(map(str, value))}" if many else f"{column} = {value}")
    return " and ".join(parts)
