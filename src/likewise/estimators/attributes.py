"""Sensitive attributes of each row, as the codes or vectors that some objectives need beside the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.arrays import FloatArray, is_tensor, to_numpy
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import check_no_missing, is_frame, to_pandas
from likewise.estimators.network_rows import TrainingRows
from likewise.evaluation.table_cells import Table, find_attribute

__all__ = ["AttributeCodes", "ProxyVectors", "attribute_table"]

# A number with more values than this is no class of its own.
_FEW = 10

Codes = np.ndarray[Any, np.dtype[np.int64]]


def attribute_table(rows: TrainingRows, attributes: Any, *, owner: str) -> pd.DataFrame:
    """Return the values of the attributes, one column each, without missing values.

    Parameters
    ----------
    rows : TrainingRows
    attributes : str, int, list of them, or None
        Looked up in the sensitive features first, then among the columns of X (original or 0/1 columns
        ``name_value``); None means all sensitive features.
    owner : str

    Examples
    --------
    >>> people = pd.DataFrame({"age": [1.0, 2.0], "sex_M": [0.0, 1.0]})
    >>> rows = TrainingRows(people, people.to_numpy(), np.array([0, 1]), None, None)
    >>> attribute_table(rows, "sex", owner="fit")["sex"].tolist()
    ['not M', 'M']
    """
    table = None if rows.sensitive_features is None else _as_table(rows.sensitive_features, owner)
    if attributes is None:
        if table is None:
            raise InputError(
                f"{owner}: no sensitive attributes were given. Name columns of X in 'attributes', or pass their "
                "values as fit(X, y, sensitive_features=...)."
            )
        found = table
    else:
        names = [attributes] if isinstance(attributes, (str, int, np.integer)) else list(attributes)
        if not names:
            raise bad_parameter(owner, "attributes", allowed="at least one column", got="none")
        found = pd.DataFrame({name: _values(name, table, rows, owner) for name in names})
    check_no_missing(found.set_axis([str(c) for c in found.columns], axis=1), owner=owner, name="attributes")
    return found.reset_index(drop=True)


def _as_table(values: Any, owner: str) -> pd.DataFrame:
    if is_frame(values):
        return to_pandas(values, owner=owner, name="sensitive_features").reset_index(drop=True)
    if isinstance(values, pd.Series):
        return values.to_frame(0 if values.name is None else values.name).reset_index(drop=True)
    if isinstance(values, Mapping):
        return pd.DataFrame({name: np.asarray(column) for name, column in values.items()})
    array = to_numpy(values) if is_tensor(values) else np.asarray(values)
    if array.ndim not in (1, 2):
        raise bad_parameter(
            owner, "sensitive_features", allowed="one column per attribute", got=f"shape {array.shape}"
        )
    return pd.DataFrame(array if array.ndim == 2 else array[:, None])


def _values(name: Any, table: pd.DataFrame | None, rows: TrainingRows, owner: str) -> Any:
    if table is not None and name in table.columns:
        return table[name].to_numpy()
    if isinstance(rows.given, pd.DataFrame) and isinstance(name, str):
        return find_attribute(Table.of(rows.given, owner=owner), name, owner=owner).column
    width = np.shape(rows.given)[1]
    if isinstance(name, (int, np.integer)) and not isinstance(name, bool) and -width <= name < width:
        given = rows.given
        return given.iloc[:, int(name)].to_numpy() if isinstance(given, pd.DataFrame) else given[:, int(name)]
    raise bad_parameter(
        owner,
        "attributes",
        allowed="names of columns of sensitive_features or X, or indices of columns of X",
        got=name,
    )


@dataclass(frozen=True)
class AttributeCodes:
    """Values of each attribute, and the index of each row's value among them.

    Parameters
    ----------
    attributes : str, int, list of them, or None
        As in `attribute_table`.
    values : tuple of tuples
        For each attribute its values, in order. Of one that is cut at the median: ``("<= m", "> m")``.
    cuts : tuple of float or None
        For each attribute the median where it is cut.
    """

    attributes: Any
    values: tuple[tuple[Any, ...], ...]
    cuts: tuple[float | None, ...]

    @classmethod
    def of(cls, rows: TrainingRows, attributes: Any, *, owner: str) -> AttributeCodes:
        """Learn the values from the rows of `fit`."""
        table = attribute_table(rows, attributes, owner=owner)
        values, cuts = [], []
        for name in table.columns:
            column = table[name]
            cut = _median(column)
            known = (f"<= {cut:g}", f"> {cut:g}") if cut is not None else tuple(_sorted(column))
            if len(known) < 2 or (cut is not None and bool((column <= cut).all())):
                raise InputError(
                    f"{owner}: the attribute {name!r} has one value only. An adversary has nothing to guess; "
                    "leave it out."
                )
            values.append(known)
            cuts.append(cut)
        return cls(attributes, tuple(values), tuple(cuts))

    def codes(self, rows: TrainingRows, *, owner: str) -> Codes:
        """Return the index of every row's value, (n, k)."""
        table = attribute_table(rows, self.attributes, owner=owner)
        columns = []
        for name, values, cut in zip(table.columns, self.values, self.cuts, strict=True):
            if cut is not None:
                columns.append((table[name].to_numpy(dtype=float) > cut).astype(np.int64))
                continue
            index = {value: i for i, value in enumerate(values)}
            found = [index.get(value, -1) for value in table[name].tolist()]
            if -1 in found:
                new = table[name].tolist()[found.index(-1)]
                raise InputError(
                    f"{owner}: the attribute {name!r} has the value {new!r}, which the first rows did not have."
                )
            columns.append(np.asarray(found, dtype=np.int64))
        return np.stack(columns, axis=1)


@dataclass(frozen=True)
class ProxyVectors:
    """Attributes as vectors: numbers as they are, categories as 0/1 columns (one for two categories).

    Parameters
    ----------
    attributes : str, int, list of them, or None
        As in `attribute_table`.
    categories : tuple of tuple or None
        For each attribute its categories; None for a number.
    """

    attributes: Any
    categories: tuple[tuple[Any, ...] | None, ...]

    @classmethod
    def of(cls, rows: TrainingRows, attributes: Any, *, owner: str) -> ProxyVectors:
        """Learn the categories from the rows of `fit`."""
        table = attribute_table(rows, attributes, owner=owner)
        categories = [None if _is_number(table[c]) else tuple(_sorted(table[c])) for c in table.columns]
        return cls(attributes, tuple(categories))

    @property
    def width(self) -> int:
        """Length of a vector."""
        return sum(1 if kinds is None or len(kinds) == 2 else len(kinds) for kinds in self.categories)

    def vectors(self, rows: TrainingRows, *, owner: str) -> FloatArray:
        """Return the vectors, (n, `width`)."""
        table = attribute_table(rows, self.attributes, owner=owner)
        parts = []
        for name, kinds in zip(table.columns, self.categories, strict=True):
            if kinds is None:
                parts.append(table[name].to_numpy(dtype=np.float64)[:, None])
                continue
            column = table[name].to_numpy(dtype=object)
            shown = kinds[1:] if len(kinds) == 2 else kinds
            parts.append(np.stack([column == kind for kind in shown], axis=1).astype(np.float64))
        return np.concatenate(parts, axis=1)


def _is_number(column: pd.Series[Any]) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column.dtype)) and not pd.api.types.is_bool_dtype(column.dtype)


def _median(column: pd.Series[Any]) -> float | None:
    """The median of a number with too many values for classes; None for anything else."""
    if not _is_number(column) or column.nunique() <= _FEW:
        return None
    numbers = column.to_numpy(dtype=float)
    cut = float(np.median(numbers))
    # Where half of the rows or more have the largest value, the cut goes below it.
    return cut if bool((numbers > cut).any()) else float(numbers[numbers < cut].max())


def _sorted(column: pd.Series[Any]) -> list[Any]:
    values = pd.unique(column).tolist()
    try:
        return sorted(values)
    except TypeError:  # values of several types have no order of their own
        return sorted(values, key=lambda value: (str(type(value)), str(value)))
