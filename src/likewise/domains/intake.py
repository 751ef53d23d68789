"""Whatever the user passes, frame or array, as a pandas frame with the columns of a domain."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import validate_data

from likewise.core.arrays import is_tensor, to_numpy
from likewise.core.errors import InputError
from likewise.core.frames import check_columns, is_frame, to_pandas
from likewise.domains.dtypes import Dtype, describe_schema, library_of

__all__ = ["own_columns", "read_table"]


def read_table(estimator: Any, X: Any, *, owner: str) -> tuple[pd.DataFrame, str, dict[str, Dtype]]:
    """Read what a domain is fitted on.

    Parameters
    ----------
    estimator : TabularDomain
        Learns `n_features_in_` from an array.
    X : data frame, or array-like of shape (n, p)
        Columns of an array are called ``x0``, ``x1``, …
    owner : str
        For error messages.

    Returns
    -------
    frame : pandas.DataFrame
    library : str
        The user's own library.
    dtypes : dict of str to Dtype
        What each column is stored as in it.
    """
    if not is_frame(X):
        frame = _array_to_frame(estimator, X, None, owner=owner)
        return frame, "numpy", describe_schema(frame)
    frame, library, dtypes = to_pandas(X, owner=owner, name="X"), library_of(X), describe_schema(X)
    if library == "polars":
        # A polars Categorical shares its levels with every other frame of the process.
        shared = [name for name, dtype in dtypes.items() if dtype.name == "Categorical"]
        frame = frame.assign(**{name: frame[name].cat.remove_unused_categories() for name in shared})
    return frame, library, dtypes


def own_columns(estimator: Any, table: Any, names: Sequence[str], *, named: bool, owner: str) -> pd.DataFrame:
    """Rows as a pandas frame with just the columns of a fitted domain, in their original order.

    Parameters
    ----------
    estimator : TabularDomain
        Fitted.
    table : data frame, or array-like of shape (n, p)
        The rows.
    names : sequence of str
        The columns.
    named : bool
        Whether the domain was fitted on a frame. scikit-learn's warnings say where a frame meets an array.
    owner : str
        For error messages.

    Returns
    -------
    pandas.DataFrame of shape (n, p)
    """
    if not is_frame(table):
        return _array_to_frame(estimator, table, names, owner=owner)
    frame = to_pandas(table, owner=owner)
    if not named and list(frame.columns) != list(names) and frame.shape[1] == len(names):
        warnings.warn(
            f"X has feature names, but {type(estimator).__name__} was fitted without feature names",
            stacklevel=4,
        )
        return frame.set_axis(list(names), axis=1)
    check_columns(frame, names, owner=owner)
    known = set(names)
    extra = [column for column in frame.columns if column not in known]
    if extra:
        shown = ", ".join(repr(column) for column in extra[:8])
        raise InputError(
            f"{owner}: 'frame' has column(s) that the domain does not know: {shown}. "
            "Drop them: frame[list(domain.feature_names_in_)]."
        )
    return frame if list(frame.columns) == list(names) else frame[list(names)]


def _array_to_frame(estimator: Any, X: Any, names: Sequence[str] | None, *, owner: str) -> pd.DataFrame:
    """Return an array as a frame with the given names, or x0, x1, … while fitting."""
    values = to_numpy(X) if is_tensor(X) else X
    try:
        values = validate_data(estimator, values, reset=names is None, dtype=None, ensure_all_finite=False)
    except ValueError as error:
        raise InputError(f"{owner}: {error}") from error
    names = [f"x{i}" for i in range(values.shape[1])] if names is None else list(names)
    missing = pd.isna(values)
    if missing.any():
        row, column = np.argwhere(missing)[0]
        raise InputError(
            f"{owner}: 'X' has {int(missing.sum())} missing value(s) (NaN or None), first at row {row}, "
            f"column {names[column]!r}. Drop those rows or impute them first."
        )
    return pd.DataFrame(values, columns=pd.Index(names)).infer_objects()
