"""What each row counts for: a user's `sample_weight`, and classes that count alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_array

from likewise.core.arrays import FloatArray, is_tensor, to_numpy
from likewise.core.checks import check_same_length
from likewise.core.errors import bad_parameter
from likewise.core.frames import is_frame, to_pandas

__all__ = ["canonical_order", "classes_alike", "read_sample_weight", "some_rows"]

Ints = np.ndarray[Any, Any]


def read_sample_weight(sample_weight: Any, x: FloatArray, *, owner: str) -> FloatArray | None:
    """Return the weights of the rows; None where there are none or all are the same.

    Examples
    --------
    >>> read_sample_weight([1, 2], np.zeros((2, 1)), owner="fit")
    array([1., 2.])
    >>> read_sample_weight([3, 3], np.zeros((2, 1)), owner="fit") is None
    True
    """
    if sample_weight is None:
        return None
    values = to_numpy(sample_weight) if is_tensor(sample_weight) else sample_weight
    weights = check_array(values, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weights.ndim != 1:
        raise bad_parameter(
            owner, "sample_weight", allowed="one number per row", got=f"shape {weights.shape}"
        )
    check_same_length(owner, X=x, sample_weight=weights)
    if weights.min() < 0 or weights.max() == 0:
        raise bad_parameter(
            owner,
            "sample_weight",
            allowed="numbers >= 0, not all of them 0",
            got="only zeros" if weights.max() == 0 else f"{weights.min():g}",
        )
    return None if np.ptp(weights) == 0 else np.asarray(weights)


def classes_alike(codes: Ints, weights: FloatArray | None) -> FloatArray:
    """Return weights under which every class counts for the same, rows within a class as before.

    Examples
    --------
    >>> classes_alike(np.array([0, 0, 1]), None)
    array([0.25, 0.25, 0.5 ])
    """
    own = np.ones(len(codes)) if weights is None else weights
    totals = np.bincount(codes, weights=own)
    return np.asarray(own / totals[codes] / np.count_nonzero(totals))


def canonical_order(x: FloatArray, codes: Ints) -> Ints:
    """Return an order of the rows that does not depend on the one they came in.

    Drawn by their weights in this order, a row of weight 2 and two of that row make the same batches.

    Examples
    --------
    >>> canonical_order(np.array([[2.0], [1.0], [2.0]]), np.array([1, 0, 0]))
    array([1, 2, 0])
    """
    return np.lexsort((codes, *x.T[::-1]))


def some_rows(values: Any, rows: Ints) -> Any:
    """Return some rows of whatever holds one entry per row: an array, a Series, a frame, a dict of columns, or None.

    Examples
    --------
    >>> some_rows({"sex": ["F", "M"]}, np.array([1]))["sex"].tolist()
    ['M']
    """
    if values is None:
        return None
    if is_frame(values):
        return to_pandas(values, owner="fit", name="sensitive_features").iloc[rows].reset_index(drop=True)
    if isinstance(values, pd.Series):
        return values.iloc[rows].reset_index(drop=True)
    if isinstance(values, dict):
        return {name: np.asarray(column)[rows] for name, column in values.items()}
    return (to_numpy(values) if is_tensor(values) else np.asarray(values))[rows]
