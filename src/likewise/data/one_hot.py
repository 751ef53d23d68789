"""One-hot columns of a model, recognised by their names in a table that was not encoded: `sex_Male` is sex = Male."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from likewise.core.checks import python_scalar
from likewise.core.errors import InputError
from likewise.core.frames import same_words, with_columns
from likewise.core.text import truncated

_SEPARATORS = ("_", "__", "=", ".", ":", "-", " ", "/", "|")
# Texts and ids are not one-hot.
_MOST_VALUES = 5_000
_MISSING = frozenset({"nan", "NaN", "None", "<NA>", "NaT"})
# What scikit-learn calls columns that a ColumnTransformer passes through; a scaled one is not the table's.
_PASSED = ("remainder__", "passthrough__")
WRAPPER = (
    "score = lambda frame: model.predict_proba(pd.get_dummies(frame).reindex("
    "columns=model.feature_names_in_, fill_value=0))[:, 1]"
)


@dataclass(frozen=True, eq=False)
class OneHotColumns:
    """How a table becomes the columns of a model, in the model's order.

    `copied` are the columns taken as they are and their places; `places` the place of each value of a column;
    `omitted` the value of a column that is 0 in all its places; `absent` the columns of values that nobody has.
    """

    names: tuple[str, ...]
    copied: Mapping[str, int]
    places: Mapping[str, Mapping[Any, int]]
    missing: Mapping[str, int]
    omitted: Mapping[str, Any]
    absent: Mapping[str, str]

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that the model uses."""
        return (*self.copied, *self.places)

    def owners(self) -> tuple[str, ...]:
        """The column of the table behind each column of the model."""
        found = {**self.absent} | {self.names[place]: name for name, place in self.copied.items()}
        for name, places in self.places.items():
            found |= {self.names[place]: name for place in places.values()}
        found |= {self.names[place]: name for name, place in self.missing.items()}
        return tuple(found[name] for name in self.names)

    def answers(self, name: str, place: int, values: Sequence[Any]) -> tuple[float, ...]:
        """Return what a column of the model is for each of some values of a column of the table."""
        return tuple(float(self.places[name].get(value) == place) for value in values)

    def encode(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of a table as the model takes them."""
        hot = np.zeros((len(frame), len(self.names)))
        for name, places in self.places.items():
            column = frame[name].astype(object)
            known = column.map(places).to_numpy(dtype=float)
            gone = column.isna().to_numpy()
            if name in self.missing:
                known[gone] = self.missing[name]
            unknown = np.isnan(known) & ~gone
            if name in self.omitted:
                unknown &= (column != self.omitted[name]).to_numpy()
            if unknown.any():
                value = column.to_numpy()[unknown.argmax()]
                _refuse(f"column {name!r} has the value {value!r}, for which the model has no column")
            rows = np.flatnonzero(~np.isnan(known))
            hot[rows, known[rows].astype(np.int64)] = 1.0
        encoded = pd.DataFrame(hot, columns=list(self.names), index=frame.index)
        own = {self.names[place]: frame[name] for name, place in self.copied.items()}
        return with_columns(encoded, own) if own else encoded

    def note(self) -> str:
        """Say what was recognised, and what has no column of its own."""
        name, places = next(iter(self.places.items()))
        value, place = next(iter(places.items()))
        said = (
            f"the model takes one-hot columns, recognised by their names ({self.names[place]!r} is {name} = {value}): "
            f"{truncated([repr(column) for column in self.places])}."
        )
        if self.omitted:
            left = truncated([f"{column} = {value}" for column, value in self.omitted.items()])
            said += f" Taken for the value that was dropped when the model's columns were made: {left}."
        if self.absent:
            said += f" Nobody in the table has the value of {truncated([repr(one) for one in self.absent], most=5)}."
        return said


def match_one_hot(names: Sequence[str], frame: pd.DataFrame) -> OneHotColumns | None:
    """Recognise a model's columns in a table; None if none of them is a value of a column.

    Raises
    ------
    InputError
        Some are recognised and others are not, or a value of the table has no column.
    """
    copied: dict[str, int] = {}
    rest = []
    for place, name in enumerate(names):
        own = _copied(name, frame)
        if own is None:
            rest.append(place)
        elif own in copied:
            _refuse(f"two of its columns are the table's {own!r}: {names[copied[own]]!r} and {name!r}")
        else:
            copied[own] = place
    spelled = _Spellings(frame, [names[place] for place in rest])
    places: dict[str, dict[Any, int]] = {}
    styles: dict[str, set[str]] = {}
    unknown = []
    for place in rest:
        found = spelled.find(names[place])
        if found is None:
            unknown.append(place)
        else:
            column, value, start = found
            if value in places.setdefault(column, {}):
                _refuse(f"two of its columns are {column} = {value}: {names[place]!r} and another")
            places[column][value] = place
            styles.setdefault(column, set()).add(start)
    if not places:
        return None
    absent, missing = {}, {}
    for place in unknown:
        column, value = _level(names[place], styles, frame)
        if value in _MISSING:
            missing[column] = place
        else:
            absent[names[place]] = column
    _check_adjacent(names, places, missing, absent)
    omitted = _omitted(places, styles, absent, frame)
    return OneHotColumns(tuple(names), copied, places, missing, omitted, absent)


def _check_adjacent(
    names: Sequence[str],
    places: Mapping[str, Mapping[Any, int]],
    missing: Mapping[str, int],
    absent: Mapping[str, str],
) -> None:
    """Refuse a value that nobody has if its column is apart: get_dummies and encoders write those of a column side by side."""
    for column in dict.fromkeys(absent.values()):
        beside = [place for place, name in enumerate(names) if absent.get(name) == column]
        block = sorted([*places[column].values(), *beside, *([missing[column]] if column in missing else [])])
        apart = next((b for a, b in itertools.pairwise(block) if b > a + 1), None)
        if apart is not None:
            _refuse(
                f"its column {names[apart]!r} is not a column of the table, and not beside the values of {column!r}"
            )


def _copied(name: str, frame: pd.DataFrame) -> str | None:
    plain = next((name.removeprefix(mark) for mark in _PASSED if name.startswith(mark)), name)
    if name in frame.columns or plain in frame.columns:
        return name if name in frame.columns else plain
    same = [str(column) for column in frame.columns if same_words(column, plain)]
    return same[0] if len(same) == 1 else None


class _Spellings:
    """The names that values of a table's columns can have as columns of their own."""

    def __init__(self, frame: pd.DataFrame, names: Sequence[str]) -> None:
        self.exact: dict[str, list[tuple[str, Any, str]]] = {}
        self.loose: dict[str, list[tuple[str, Any, str]]] = {}
        for column in map(str, frame.columns):
            values = _values(frame[column])
            # Every value but one needs a column.
            most = len(names) + 1 if frame[column].dtype.kind in "iuf" else _MOST_VALUES
            if len(values) > most:
                continue
            for value in values:
                for text in _texts(value):
                    for separator in _SEPARATORS:
                        start = f"{column}{separator}"
                        self.exact.setdefault(start + text, []).append((column, value, start))
                    self.loose.setdefault(_words(f"{column}_{text}"), []).append(
                        (column, value, f"{column}_")
                    )

    def find(self, name: str) -> tuple[str, Any, str] | None:
        """Return the column and the value of a name, and how the name begins before the value."""
        prefix, _, last = name.partition("__")
        for start, found in (
            ("", self.exact.get(name)),
            (f"{prefix}__", self.exact.get(last)),
            ("", self.loose.get(_words(name))),
            (f"{prefix}__", self.loose.get(_words(last))),
        ):
            if found:
                different = list(dict.fromkeys((column, value) for column, value, _ in found))
                if len(different) > 1:
                    both = " or ".join(f"{column} = {value}" for column, value in different[:3])
                    _refuse(f"its column {name!r} can be {both}")
                column, value, before = found[0]
                return column, value, start + before
        return None


def _values(column: pd.Series[Any]) -> list[Any]:
    """The values of a column, those included that are declared and nobody in the table has."""
    declared = isinstance(column.dtype, pd.CategoricalDtype)
    found = column.dtype.categories if declared else column.dropna().unique()  # type: ignore[union-attr]
    return list(map(python_scalar, found))


def _texts(value: Any) -> Iterator[str]:
    """How get_dummies and encoders write a value: 1 and 1.0 are one number."""
    yield str(value)
    if isinstance(value, float) and value.is_integer():
        yield str(int(value))
    elif isinstance(value, int) and not isinstance(value, bool):
        yield str(float(value))


def _words(text: str) -> str:
    return re.sub(r"[\W_]+", "_", text)


def _level(name: str, styles: Mapping[str, set[str]], frame: pd.DataFrame) -> tuple[str, str]:
    """Return the column, and the value that nobody in the table has, of a column of the model."""
    found = []
    for column, starts in styles.items():
        for start in starts:
            loose = re.sub(r"\W", "_", name), re.sub(r"\W", "_", start)
            if name.startswith(start) or (start.endswith("_") and loose[0].startswith(loose[1])):
                found.append((column, name[len(start) :]))
                break
    if len(found) != 1 or found[0][1] == "infrequent_sklearn":
        what = "is not a column of the table, nor a value of one" if not found else "can be several values"
        _refuse(f"its column {name!r} {what}")
    column, value = found[0]
    if frame[column].dtype.kind in "biuf" and value not in _MISSING:
        try:
            float(value)
        except ValueError:
            _refuse(f"its column {name!r} is not a column of the table, nor a value of one")
    return column, value


def _omitted(
    places: Mapping[str, Mapping[Any, int]],
    styles: Mapping[str, set[str]],
    absent: Mapping[str, str],
    frame: pd.DataFrame,
) -> dict[str, Any]:
    """Return the value of each column that was left out because the others say it; refuse values that are unknown."""
    omitted, whole, pairs, several = {}, [], [], []
    for name, known in places.items():
        values = _values(frame[name])
        own = [text for text, owner in absent.items() if owner == name]
        levels = [text[len(start) :] for text in own for start in list(styles[name])[:1]]
        # A declared value that nobody has may be unknown to the model, unless it is the one that was dropped.
        rest = [
            value
            for value in values
            if value not in known
            and ((frame[name] == value).any() or _is_first(value, known, levels, frame[name]))
        ]
        if not rest:
            whole += [name] if len(values) > 1 else []
            pairs += [name] if len(known) + len(own) == 2 else []
            continue
        binary = len(known) + len(levels) == 1
        if len(rest) > 1 or not (binary or _is_first(rest[0], known, levels, frame[name])):
            shown = truncated([repr(value) for value in rest], most=5)
            _refuse(f"column {name!r} of the table has values for which the model has no column: {shown}")
        omitted[name] = rest[0]
        several += [] if binary else [name]
    # drop_first drops a value of every column, drop="if_binary" one of every column with two values.
    lacking, against = (several, whole) if several and whole else (list(omitted), pairs)
    if lacking and against:
        _refuse(
            f"{lacking[0]} = {omitted[lacking[0]]} has no column, while every value of {against[0]!r} has one: it may have "
            "been dropped or be unknown to the model"
        )
    return omitted


def _is_first(value: Any, known: Mapping[Any, int], levels: Sequence[str], column: pd.Series[Any]) -> bool:
    """Whether a value is the first of its column, which get_dummies(drop_first=True) and OneHotEncoder(drop="first") drop."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return bool(column.dtype.categories[0] == value)
    if column.dtype.kind in "biuf":
        return all(value < other for other in (*known, *map(float, levels)))
    return all(str(value) < str(other) for other in (*known, *levels))


def _refuse(why: str) -> NoReturn:
    raise InputError(
        f"The model takes one-hot columns, and this table cannot be encoded for it by their names: {why}. Fit the model in "
        f"a pipeline with its encoder, or audit a function that encodes the table:\n    {WRAPPER}\n"
        "Pass `score` in place of the model (on the command line package.module:score)."
    )
