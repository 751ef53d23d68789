"""People as plain columns: what a model is asked about travels without pickle and arrives as it was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.errors import InputError
from likewise.models.isolated.messages import Array

__all__ = ["pack_rows", "unpack_rows"]

_MISSING = {"None": None, "nan": np.nan, "NA": pd.NA, "NaT": pd.NaT}


def pack_rows(rows: Any) -> tuple[dict[str, Any], list[Array]]:
    """Return rows as JSON and plain arrays.

    Parameters
    ----------
    rows : DataFrame or array of shape (n, d)
        Columns of numbers, truth values, times, categories, text, or objects that are any of these. The index is
        not kept.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [30, 40], "job": ["cook", None]})
    >>> text, arrays = pack_rows(frame)
    >>> unpack_rows(text, arrays).equals(frame)
    True
    """
    if not isinstance(rows, pd.DataFrame):
        return {"frame": False}, [np.asarray(rows)]
    columns, arrays = [], []
    for place, name in enumerate(rows.columns):
        if not isinstance(name, (str, int)):
            raise InputError(
                f"IsolatedModel: the column {name!r} must have text or a whole number as its name."
            )
        about, parts = _pack_column(rows.iloc[:, place], name)
        columns.append({"name": name, **about})
        arrays += parts
    return {"frame": True, "rows": len(rows), "columns": columns}, arrays


def unpack_rows(text: dict[str, Any], arrays: Sequence[Array]) -> Any:
    """Return the rows that `pack_rows` packed."""
    if not text["frame"]:
        return arrays[0]
    left = list(arrays)
    columns = [_unpack_column(about, left) for about in text["columns"]]
    frame = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=range(text["rows"]))
    frame.columns = pd.Index([about["name"] for about in text["columns"]])
    return frame


def _pack_column(column: pd.Series[Any], name: Any) -> tuple[dict[str, Any], list[Array]]:
    dtype: Any = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        about, parts = _pack_column(pd.Series(dtype.categories), name)
        return {"kind": "categories", "ordered": bool(dtype.ordered), "of": about}, [
            column.cat.codes.to_numpy(),
            *parts,
        ]
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return {"kind": "numbers"}, [column.to_numpy()]
    if isinstance(dtype, np.dtype) and dtype.kind in "mM":
        return {"kind": "times", "type": dtype.str}, [column.to_numpy().view(np.int64)]
    if isinstance(dtype, pd.StringDtype):
        codes, values = pd.factorize(column)
        return {"kind": "words", "type": str(dtype), "values": [str(value) for value in values]}, [
            codes.astype(np.int32)
        ]
    if isinstance(dtype, np.dtype) and dtype.kind == "O":
        codes, different = _distinct(column.to_numpy(), name)
        return {"kind": "objects", "values": different}, [codes]
    missing = column.isna().to_numpy()
    data = getattr(column.array, "_data", None)
    if isinstance(data, np.ndarray) and data.dtype.kind in "biuf":
        return {"kind": "masked", "type": str(dtype)}, [data, missing]
    raise _cannot_travel(name, str(dtype))


def _unpack_column(about: dict[str, Any], left: list[Array]) -> pd.Series[Any]:
    array, kind = left.pop(0), about["kind"]
    if kind == "categories":
        of = _unpack_column(about["of"], left)
        return pd.Series(pd.Categorical.from_codes(array, categories=pd.Index(of), ordered=about["ordered"]))
    if kind == "numbers":
        return pd.Series(array)
    if kind == "times":
        return pd.Series(array.view(np.dtype(about["type"])))
    if kind == "words":
        # A code of −1, for a missing word, finds the last.
        words = pd.array([*about["values"], None], dtype=about["type"])
        return pd.Series(words.take(array))
    if kind == "objects":
        values = np.empty(len(about["values"]), dtype=object)
        values[:] = [_MISSING[word] if tag == "missing" else word for tag, word in about["values"]]
        return pd.Series(values[array], dtype=object)
    masked = pd.array(array, dtype=about["type"])
    masked[left.pop(0)] = pd.NA
    return pd.Series(masked)


def _distinct(values: Array, name: Any) -> tuple[Array, list[tuple[str, Any]]]:
    """Codes of objects, and the different objects: 1, 1.0 and True are three."""
    seen: dict[tuple[str, Any], int] = {}
    codes = np.empty(len(values), dtype=np.int32)
    for place, value in enumerate(values):
        codes[place] = seen.setdefault(_tagged(value, name), len(seen))
    return codes, list(seen)


def _tagged(value: Any, name: Any) -> tuple[str, Any]:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (str, bool, int)):
        return type(value).__name__, value
    if isinstance(value, float):
        return ("missing", "nan") if value != value else ("float", value)
    for word, meant in _MISSING.items():
        if value is meant:
            return "missing", word
    raise _cannot_travel(name, type(value).__name__)


def _cannot_travel(name: Any, kind: str) -> InputError:
    return InputError(
        f"IsolatedModel: column {name!r} holds {kind}, which is not sent to a model file in a process of its own. "
        "Make it text or numbers, or load the model in this process: trust=True (--trust)."
    )
