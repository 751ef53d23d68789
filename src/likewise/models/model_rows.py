"""The rows a model is asked about, as the table or the array that it was made for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.arrays import is_tensor, to_numpy
from likewise.core.checks import check_matrix
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import check_columns, is_frame, to_pandas

__all__ = ["are_made_up", "named", "numeric_matrix", "same_words", "select_columns", "table_or_matrix"]

# Names that a library makes up when it was trained on an array: f0, Column_3, x1, 7.
_MADE_UP = re.compile(r"(f|x|Column_|column_|feature_)?\d+")


def are_made_up(names: Sequence[str]) -> bool:
    """Whether a library made these names up because it was trained on an array: they stand for positions.

    Examples
    --------
    >>> are_made_up(["f0", "f1"]), are_made_up(["age", "f1"])
    (True, False)
    """
    return all(_MADE_UP.fullmatch(str(name)) for name in names)


def same_words(one: object, other: object) -> bool:
    """Whether two names differ only in signs that some library cannot write: ``hours_per_week``, ``hours per week``.

    Examples
    --------
    >>> same_words("hours_per_week", "hours per week")
    True
    """
    return _plain(one) == _plain(other)


def select_columns(frame: pd.DataFrame, names: Sequence[str] | None, *, owner: str) -> pd.DataFrame:
    """Return the columns a model was fitted on, by name and in its order; more columns are left out.

    Names that a library made up because it saw an array stand for positions; a library that writes
    ``hours_per_week`` for ``hours per week`` is understood.

    Examples
    --------
    >>> frame = pd.DataFrame({"b": [1], "a": [2], "c": [3]})
    >>> list(select_columns(frame, ["a", "b"], owner="audit").columns)
    ['a', 'b']
    """
    if names is None or list(frame.columns) == list(names):
        return frame
    if all(name in frame.columns for name in names):
        return frame[list(names)]
    if are_made_up(names) and len(names) == frame.shape[1]:
        return frame
    written = {_plain(column): column for column in frame.columns}
    if len(written) == frame.shape[1] and all(_plain(name) in written for name in names):
        return frame[[written[_plain(name)] for name in names]]
    check_columns(frame, names, owner=owner, name="X")
    return frame


def _plain(name: object) -> str:
    return re.sub(r"\W", "_", str(name))


def numeric_matrix(
    X: Any, *, owner: str, n_features: int | None = None, missing: bool = False
) -> np.ndarray[Any, np.dtype[np.floating[Any]]]:
    """Return X as a C-ordered floating array of shape (n, d) in which only NaN may be not finite, and only if `missing`.

    Examples
    --------
    >>> numeric_matrix([[1.0, None]], owner="audit", missing=True)
    array([[ 1., nan]])
    """
    if is_tensor(X):
        X = to_numpy(X)
    if not missing:
        return np.ascontiguousarray(check_matrix(X, owner=owner, n_features=n_features))
    if is_frame(X):
        X = to_pandas(X, owner=owner, name="X")
    try:
        matrix = X.to_numpy(dtype=float, na_value=np.nan) if is_frame(X) else np.asarray(X)
        matrix = matrix if matrix.dtype.kind == "f" else matrix.astype(float)
    except (TypeError, ValueError) as error:
        raise bad_parameter(
            owner, "X", allowed="a numeric matrix", got=str(error), remedy="Encode categories first."
        ) from error
    filled = np.where(np.isnan(matrix), 0.0, matrix)
    check_matrix(filled, owner=owner, n_features=n_features)
    return np.ascontiguousarray(matrix)


def named(rows: Any, names: Sequence[str] | None) -> Any:
    """Return an array as a frame when the model knows its columns by name; a frame as it is.

    Examples
    --------
    >>> list(named(np.zeros((1, 2)), ["a", "b"]).columns)
    ['a', 'b']
    """
    if names is None or isinstance(rows, pd.DataFrame):
        return rows
    return pd.DataFrame(rows, columns=list(names))


def table_or_matrix(
    X: Any,
    *,
    owner: str,
    takes_frame: bool,
    feature_names: Sequence[str] | None,
    n_features: int | None,
    missing: bool,
) -> Any:
    """Return X as the model wants it: a pandas frame of its own columns, or a numeric array (n, d)."""
    if takes_frame:
        if not is_frame(X):
            raise bad_parameter(
                owner,
                "X",
                allowed="a table with named columns (pandas, polars or arrow), since the model was made on one",
                got=f"{type(X).__name__}",
                remedy="Pass the frame, or takes_frame=False if the model takes an array.",
            )
        frame = select_columns(to_pandas(X, owner=owner, name="X"), feature_names, owner=owner)
        if len(frame) == 0:
            raise InputError(f"{owner}: 'X' is empty: it has no rows. Pass at least one row.")
        return frame
    if is_frame(X):
        X = select_columns(to_pandas(X, owner=owner, name="X"), feature_names, owner=owner)
        text = [str(column) for column in X.columns if X[column].dtype.kind not in "biuf"]
        if text:
            raise InputError(
                f"{owner}: 'X' has columns that are not numeric: {', '.join(text[:8])}. "
                "Encode them first (TabularDomain.from_frame(frame).encode(frame)), "
                "or pass takes_frame=True to as_model if the model takes the table itself."
            )
    return numeric_matrix(X, owner=owner, n_features=n_features, missing=missing)
