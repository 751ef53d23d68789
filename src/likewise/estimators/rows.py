"""What a user passes to `fit` and `predict`, as the rows that a network gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from likewise.core.arrays import FloatArray, is_tensor, to_numpy
from likewise.core.checks import check_labels, check_matrix, check_same_length
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import is_frame, to_pandas
from likewise.domains import TabularDomain

__all__ = ["TrainingRows", "read_labels", "read_new_rows", "read_training_rows"]

Labels = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """The rows of one `fit`.

    Parameters
    ----------
    given : DataFrame or ndarray
        X as it came: what learners of metrics are fitted on.
    x : ndarray of shape (n, d)
        Encoded rows.
    codes : ndarray of int of shape (n,)
        Class indices.
    sensitive : object
        `sensitive_features` as they came; of the same length.
    encoder : TabularDomain or None
        What encoded the rows.
    """

    given: Any
    x: FloatArray
    codes: Labels
    sensitive: Any
    encoder: TabularDomain | None


def read_training_rows(
    estimator: Any, X: Any, *, owner: str, domain: Any = None, first: bool = True
) -> tuple[Any, FloatArray, TabularDomain | None]:
    """Return X as it came, encoded, and the encoder; and set what scikit-learn remembers of the columns.

    A frame with columns that are not numeric is encoded by `domain`, or by a `TabularDomain` made from it.
    Numeric frames and arrays are taken as encoded, unless a domain is given that says otherwise.
    """
    if is_tensor(X):
        X = to_numpy(X)
    given = to_pandas(X, owner=owner, name="X") if is_frame(X) else X
    if not first:
        return given, read_new_rows(estimator, X, owner=owner), getattr(estimator, "encoder_", None)
    _check_domain(domain, owner)
    encoder = _encoder_for(given, domain)
    if encoder is None:
        _forget_names(estimator)
        x = validate_data(estimator, given, dtype=[np.float64, np.float32], ensure_min_samples=2)
        return given if isinstance(given, pd.DataFrame) else x, np.asarray(x, dtype=np.float64), None
    x = np.asarray(encoder.encode_array(given), dtype=np.float64)
    _forget_names(estimator)
    estimator.n_features_in_ = int(encoder.n_features_in_)
    if hasattr(encoder, "feature_names_in_"):
        estimator.feature_names_in_ = np.asarray(encoder.feature_names_in_, dtype=object)
    return given, x, encoder


def read_new_rows(estimator: Any, X: Any, *, owner: str) -> FloatArray:
    """Return rows encoded as in `fit`: raw frames by the encoder, encoded frames and arrays as they are."""
    check_is_fitted(estimator)
    if is_tensor(X):
        X = to_numpy(X)
    encoder = getattr(estimator, "encoder_", None)
    if is_frame(X):
        X = to_pandas(X, owner=owner, name="X")
    if encoder is None:
        return np.asarray(
            validate_data(estimator, X, reset=False, dtype=[np.float64, np.float32]), dtype=np.float64
        )
    raw_arrays = not hasattr(encoder, "feature_names_in_")
    if is_frame(X) and not _is_encoded(X, encoder):
        return np.asarray(encoder.encode_array(X), dtype=np.float64)
    if not is_frame(X) and raw_arrays:
        return np.asarray(encoder.encode_array(X), dtype=np.float64)
    return np.asarray(check_matrix(X, owner=owner, n_features=encoder.n_features), dtype=np.float64)


def read_labels(y: Any, x: FloatArray, *, owner: str, classes: Any = None) -> tuple[Labels, Labels]:
    """Return the class labels and the class index of every row.

    Parameters
    ----------
    y : array-like of shape (n,)
    x : ndarray of shape (n, d)
        The rows, for their number.
    owner : str
    classes : array-like, optional
        All labels that can occur, where `y` may lack some (`partial_fit`).
    """
    if y is None:
        raise InputError(
            f"{owner} requires y to be passed, but the target y is None. Pass one label per row."
        )
    values = column_or_1d(to_numpy(y) if is_tensor(y) else y, warn=True)
    labels = check_labels(values, owner=owner, min_classes=1 if classes is not None else 2)
    check_classification_targets(labels)
    check_same_length(owner, X=x, y=labels)
    if classes is None:
        known, codes = np.unique(labels, return_inverse=True)
        return known, np.asarray(codes, dtype=np.int64)
    known = np.unique(to_numpy(classes))
    if len(known) < 2:
        raise bad_parameter(owner, "classes", allowed="two or more labels", got=known.tolist())
    codes = np.searchsorted(known, labels).clip(max=len(known) - 1)
    if not bool((known[codes] == labels).all()):
        new = sorted({str(label) for label in labels[known[codes] != labels]})
        raise InputError(
            f"{owner}: 'y' has labels that are not among the classes {known.tolist()}: {', '.join(new[:5])}. "
            "Name all classes in the first call of partial_fit."
        )
    return known, np.asarray(codes, dtype=np.int64)


def _check_domain(domain: Any, owner: str) -> None:
    if domain is not None and not isinstance(domain, TabularDomain):
        raise bad_parameter(
            owner,
            "domain",
            allowed="a TabularDomain, fitted or not, that encodes the table",
            got=type(domain).__name__,
            remedy="A set that bounds the search is another thing: pass it as search_domain=.",
        )


def _encoder_for(given: Any, domain: TabularDomain | None) -> TabularDomain | None:
    if domain is None:
        return TabularDomain.from_frame(given) if is_frame(given) and _is_raw(given) else None
    if not _is_fitted(domain):
        fresh: TabularDomain = clone(domain).fit(given)
        return fresh
    if is_frame(given):
        return None if _is_encoded(given, domain) else domain
    return None if hasattr(domain, "feature_names_in_") else domain


def _is_raw(frame: pd.DataFrame) -> bool:
    """Whether a frame has columns that are not numbers, so that it must be encoded first."""
    return any(getattr(dtype, "kind", "O") not in "biuf" for dtype in frame.dtypes)


def _is_encoded(frame: pd.DataFrame, encoder: TabularDomain) -> bool:
    """Whether a frame has the encoded columns; where both are called the same, it counts as raw."""
    names = [str(name) for name in encoder.get_feature_names_out()]
    return list(frame.columns) == names and names != list(getattr(encoder, "feature_names_in_", []))


def _is_fitted(domain: TabularDomain) -> bool:
    try:
        check_is_fitted(domain)
    except NotFittedError:
        return False
    return True


def _forget_names(estimator: Any) -> None:
    for name in ("feature_names_in_", "n_features_in_"):
        if hasattr(estimator, name):
            delattr(estimator, name)
