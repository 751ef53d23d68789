"""A fitted domain as plain JSON and back: no pickle, and nothing of the rows it was fitted on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.core.errors import FormatError
from likewise.core.plain_forms import check_form, is_scalar
from likewise.domains.column import Column
from likewise.domains.curve import Curve
from likewise.domains.description_form import DESCRIPTION
from likewise.domains.reading import plain

__all__ = ["Description", "read_description", "write_description"]

FORMAT = "likewise.TabularDomain"
# Version 2 has columns on scales that are not linear; without such columns a description is of version 1, which
# older packages read.
VERSIONS = (1, 2)
PARAMETERS = {"immutable", "ranges", "integers", "categories", "scales"}


@dataclass(frozen=True)
class Description:
    """What a fitted `TabularDomain` consists of."""

    parameters: dict[str, Any]
    library: str
    names: tuple[str, ...]
    columns: tuple[Column, ...]


def write_description(description: Description) -> dict[str, Any]:
    """Return the description as dicts, lists, strings, numbers, booleans and None only."""
    parameters = {name: _plain(value) for name, value in description.parameters.items()}
    if not parameters.get("scales"):
        parameters.pop("scales", None)
    new = "scales" in parameters or any(column.curve is not None for column in description.columns)
    return {
        "format": FORMAT,
        "version": 2 if new else 1,
        "parameters": parameters,
        "library": description.library,
        "names": list(description.names),
        "columns": [column.to_dict() for column in description.columns],
    }


def read_description(values: Mapping[str, Any]) -> Description:
    """Read what `write_description` wrote.

    Examples
    --------
    >>> read_description({"format": "something else"})
    Traceback (most recent call last):
    ...
    likewise.core.errors.FormatError: TabularDomain.from_dict: this is no description of a TabularDomain. Pass what to_dict() returned.
    """
    owner = "TabularDomain.from_dict"
    if not isinstance(values, Mapping) or values.get("format") != FORMAT:
        raise FormatError(
            f"{owner}: this is no description of a TabularDomain. Pass what to_dict() returned."
        )
    if values.get("version") not in VERSIONS:
        raise FormatError(
            f"{owner}: the description has version {values.get('version')!r}, this package reads up to {VERSIONS[-1]}. "
            "Update the package, or fit the domain again."
        )
    try:
        check_form(values, DESCRIPTION, "it")
        columns = tuple(Column.from_dict(column) for column in values["columns"])
        description = Description(
            {"scales": None, **values["parameters"]}, str(values["library"]), tuple(values["names"]), columns
        )
        _check_consistent(description)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(
            f"{owner}: the description is damaged ({type(error).__name__}: {error}). Fit the domain again."
        ) from error
    return description


def _check_consistent(description: Description) -> None:
    columns = description.columns
    if set(description.parameters) != PARAMETERS:
        raise ValueError(f"parameters are {sorted(description.parameters)}")
    starts = [0, *(column.stop for column in columns)]
    if not columns or sorted(column.name for column in columns) != sorted(description.names):
        raise ValueError("names and columns do not fit together")
    if [column.start for column in columns] != starts[:-1]:
        raise ValueError("columns do not follow each other")
    for column in columns:
        width = len(column.categories) if column.kind == "categorical" and not column.is_binary else 1
        if not all(is_scalar(value) for value in column.categories):
            raise ValueError(f"column {column.name!r} has categories that are no text or numbers")
        if column.width != width:
            raise ValueError(f"column {column.name!r} has the wrong width")
        if column.kind not in ("continuous", "integer", "categorical"):
            raise ValueError(f"column {column.name!r} has the kind {column.kind!r}")
        if not (column.scale > 0 and np.isfinite([column.mean, column.scale]).all()):
            raise ValueError(f"column {column.name!r} has the scale {column.scale!r}")
        if not column.lower <= column.upper:
            raise ValueError(f"column {column.name!r} has an empty range")
        if column.curve is not None and column.kind == "categorical":
            raise ValueError(f"column {column.name!r} has categories and the scale of a number")


def _plain(value: Any) -> Any:
    """Return a parameter as plain JSON; an infinite end of a range as None, which means the same."""
    value = plain(value)
    if isinstance(value, Curve):
        return value.name
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(_plain(item) for item in value)
    if isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
