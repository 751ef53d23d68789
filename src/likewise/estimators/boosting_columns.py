"""A raw table as the numbers that boosted trees split on: numbers as they are, categories as codes, holes as holes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.arrays import FloatArray
from likewise.core.errors import InputError, bad_parameter
from likewise.evaluation.twin_makers import TwinMaker
from likewise.evaluation.twins import TwinFactor, canonical_rows
from likewise.twins.orbits import circle_rows

__all__ = ["TreeColumns", "monotone_directions", "sensitive_columns"]

# More categories than this are no help to a tree; the rarest count as missing.
MAX_CATEGORIES = 254


@dataclass(frozen=True, eq=False)
class TreeColumns:
    """What a table becomes: twins made one, sensitive columns left out, the others as numbers.

    Parameters
    ----------
    names : tuple of str
        The columns that trees may split on.
    categories : tuple
        For each of them the categories, or None for numbers.
    factors : tuple of TwinFactor
        Values that are made one first.
    maker : TwinMaker, optional
        Fitted; everybody is shown as the row that they and all their twins by it end in.

    Examples
    --------
    >>> people = pd.DataFrame({"job": ["b", "a", None], "age": [30, None, 50]})
    >>> TreeColumns.of(people, (), (), owner="fit").matrix(people, owner="fit")
    array([[ 1., 30.],
           [ 0., nan],
           [nan, 50.]])
    """

    names: tuple[str, ...]
    categories: tuple[tuple[Any, ...] | None, ...]
    factors: tuple[TwinFactor, ...]
    maker: TwinMaker | None = None

    @classmethod
    def of(
        cls,
        frame: pd.DataFrame,
        left_out: Sequence[str],
        factors: Sequence[TwinFactor],
        *,
        owner: str,
        maker: TwinMaker | None = None,
    ) -> TreeColumns:
        """Learn the columns of a table.

        Parameters
        ----------
        frame : DataFrame
        left_out : sequence of str
            Columns that no tree sees.
        factors : sequence of TwinFactor
            Values that make no difference.
        owner : str
        maker : TwinMaker, optional
        """
        names = tuple(str(name) for name in frame.columns if name not in set(left_out))
        if not names:
            raise InputError(f"{owner}: no column is left to decide by: all of them are sensitive.")
        merged = _merged(frame, factors, maker, owner)
        return cls(names, tuple(_categories(merged[name], owner) for name in names), tuple(factors), maker)

    @property
    def categorical(self) -> tuple[bool, ...]:
        """Which columns are codes of categories."""
        return tuple(values is not None for values in self.categories)

    def matrix(self, frame: pd.DataFrame, *, owner: str) -> FloatArray:
        """Return the numbers of a table with the same columns, (n, d); categories never seen count as missing."""
        merged = _merged(frame, self.factors, self.maker, owner)
        matrix = np.empty((len(frame), len(self.names)))
        for i, (name, values) in enumerate(zip(self.names, self.categories, strict=True)):
            matrix[:, i] = _numbers(merged[name], owner) if values is None else _codes(merged[name], values)
        return matrix


def _merged(
    frame: pd.DataFrame, factors: Sequence[TwinFactor], maker: TwinMaker | None, owner: str
) -> pd.DataFrame:
    """Everybody as the row that stands for all their twins."""
    if maker is None:
        return canonical_rows(frame, factors, owner=owner)
    return circle_rows(maker, frame)


def sensitive_columns(sensitive: Any, frame: pd.DataFrame, *, owner: str) -> dict[str, tuple[str, ...]]:
    """Return the columns that hold each sensitive attribute: itself, or its 0/1 columns ``name_value``.

    Parameters
    ----------
    sensitive : None, str, int or sequence of them
        Names; positions where the rows came as an array.
    frame : DataFrame
    owner : str

    Examples
    --------
    >>> sensitive_columns("sex", pd.DataFrame(columns=["age", "sex_F", "sex_M"]), owner="fit")
    {'sex': ('sex_F', 'sex_M')}
    """
    if sensitive is None:
        return {}
    if isinstance(sensitive, (str, int, np.integer)):
        sensitive = [sensitive]
    if isinstance(sensitive, Mapping) or not isinstance(sensitive, (Sequence, np.ndarray, pd.Index)):
        raise bad_parameter(
            owner, "sensitive_features", allowed="names of columns", got=type(sensitive).__name__
        )
    found: dict[str, tuple[str, ...]] = {}
    for name in map(str, sensitive):
        if name in frame.columns:
            found[name] = (name,)
            continue
        parts = tuple(column for column in frame.columns if column.startswith(f"{name}_"))
        if not parts:
            from likewise.core.frames import check_columns

            check_columns(frame, [name], owner=owner, name="X")
        found[name] = parts
    return found


def monotone_directions(
    constraints: Any, columns: TreeColumns, all_names: Sequence[str], *, owner: str
) -> tuple[int, ...]:
    """Return -1, 0 or 1 for each column of the trees.

    Parameters
    ----------
    constraints : None, mapping of column to direction, or one direction per column of X
    columns : TreeColumns
    all_names : sequence of str
        Columns of X.
    owner : str
    """
    if constraints is None:
        return (0,) * len(columns.names)
    if not isinstance(constraints, Mapping):
        given = list(constraints)
        if len(given) != len(all_names):
            raise bad_parameter(
                owner,
                "monotone_constraints",
                allowed=f"one direction for each of the {len(all_names)} columns, or a dict of some",
                got=f"{len(given)}",
            )
        constraints = dict(zip(all_names, given, strict=True))
    known = {str(name): direction for name, direction in constraints.items()}
    unknown = [name for name in known if name not in all_names]
    wrong = [d for d in known.values() if d not in (-1, 0, 1)]
    codes = [n for n, c in zip(columns.names, columns.categorical, strict=True) if c and known.get(n)]
    if unknown or wrong or codes:
        got = (
            f"the column {unknown[0]!r}, which X does not have"
            if unknown
            else repr(wrong[0] if wrong else codes)
        )
        raise bad_parameter(
            owner, "monotone_constraints", allowed="-1, 0 or 1 for columns of numbers", got=got
        )
    return tuple(int(known.get(name, 0)) for name in columns.names)


def _is_number(column: pd.Series[Any]) -> bool:
    return getattr(column.dtype, "kind", "O") in "biuf" and not isinstance(column.dtype, pd.CategoricalDtype)


def _categories(column: pd.Series[Any], owner: str) -> tuple[Any, ...] | None:
    if _is_number(column):
        return None
    if getattr(column.dtype, "kind", "O") in "mM":
        raise InputError(
            f"{owner}: column {column.name!r} holds dates. Turn it into a number first, such as days since a date."
        )
    counts = column.value_counts()
    common = counts[counts > 0].index[:MAX_CATEGORIES]
    values = [value.item() if isinstance(value, np.generic) else value for value in common]
    return tuple(sorted(values, key=lambda value: (str(type(value)), str(value))))


def _numbers(column: pd.Series[Any], owner: str) -> FloatArray:
    try:
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise InputError(f"{owner}: column {column.name!r} was numbers when fitted: {error}.") from error
    if np.isinf(numbers).any():
        raise InputError(
            f"{owner}: column {column.name!r} has infinity at row {int(np.isinf(numbers).argmax())}. Mark it as missing."
        )
    return numbers


def _codes(column: pd.Series[Any], values: tuple[Any, ...]) -> FloatArray:
    place = {value: float(i) for i, value in enumerate(values)}
    distinct, which = pd.factorize(column, use_na_sentinel=True)[::-1]
    known = np.array([place.get(value, np.nan) for value in list(distinct)] + [np.nan])
    return np.asarray(known[which])
