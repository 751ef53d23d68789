"""Tables and arrays at the door of a scikit-learn estimator: what is raw is encoded, the rest is taken as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from likewise.core.arrays import FloatArray, is_tensor, to_numpy
from likewise.core.checks import check_matrix
from likewise.core.errors import bad_parameter
from likewise.core.frames import declared_encoded, is_frame, is_raw, to_pandas
from likewise.domains import TabularDomain
from likewise.fair_metrics.feature_maps import is_encoder

__all__ = ["read_first_rows", "read_new_rows", "table_or_array"]


def read_first_rows(
    estimator: Any, X: Any, *, owner: str, domain: Any = None, min_rows: int = 1
) -> tuple[Any, FloatArray, TabularDomain | None]:
    """Return X of a `fit` as it came, encoded, and the encoder; set what scikit-learn remembers of the columns.

    A frame with columns that are not numeric is encoded by `domain`, or by a `TabularDomain` made from it.
    Numeric frames and arrays are taken as encoded, unless a domain is given that says otherwise.

    Parameters
    ----------
    estimator : scikit-learn estimator
        Gets ``n_features_in_`` and ``feature_names_in_``.
    X : array, tensor or frame of shape (n, p)
    owner : str
        For error messages.
    domain : TabularDomain, optional
        Fitted or not.
    min_rows : int, default=1

    Returns
    -------
    given : DataFrame or ndarray of shape (n, p)
    x : ndarray of shape (n, d)
        Finite; float64, or float32 where X was.
    encoder : TabularDomain or None
    """
    given = table_or_array(X, owner)
    if domain is not None and not isinstance(domain, TabularDomain):
        raise bad_parameter(
            owner,
            "domain",
            allowed="a TabularDomain, fitted or not, that encodes the table",
            got=type(domain).__name__,
        )
    encoder = _encoder_for(given, domain)
    for name in ("feature_names_in_", "n_features_in_"):
        if hasattr(estimator, name):
            delattr(estimator, name)
    if encoder is None:
        x = validate_data(estimator, given, dtype=[np.float64, np.float32], ensure_min_samples=min_rows)
        return given if isinstance(given, pd.DataFrame) else x, x, None
    x = encoder.encode_array(given)
    estimator.n_features_in_ = int(encoder.n_features_in_)
    if hasattr(encoder, "feature_names_in_"):
        estimator.feature_names_in_ = np.asarray(encoder.feature_names_in_, dtype=object)
    return given, x, encoder


def read_new_rows(estimator: Any, X: Any, *, owner: str) -> FloatArray:
    """Return rows encoded as in `fit`: raw frames by the estimator's encoder, encoded ones as they are."""
    check_is_fitted(estimator)
    X = table_or_array(X, owner)
    encoder = getattr(estimator, "encoder_", None)
    if encoder is None:
        return np.asarray(validate_data(estimator, X, reset=False, dtype=[np.float64, np.float32]))
    raw_arrays = not hasattr(encoder, "feature_names_in_")
    if not declared_encoded(X) if is_frame(X) else raw_arrays:
        return np.asarray(encoder.encode_array(X))
    if is_frame(X):
        return np.asarray(encoder.encoding_.read_encoded(X, owner=owner))
    return np.asarray(check_matrix(X, owner=owner, n_features=encoder.n_features))


def table_or_array(X: Any, owner: str) -> Any:
    """Return a pandas frame with names, or anything else as it is; a numeric frame without names is an array."""
    if is_tensor(X):
        return to_numpy(X)
    if not is_frame(X):
        return X
    if isinstance(X, pd.DataFrame) and not any(isinstance(column, str) for column in X.columns):
        return X.to_numpy() if not is_raw(X) else to_pandas(X, owner=owner, name="X")
    return to_pandas(X, owner=owner, name="X")


def _encoder_for(given: Any, domain: TabularDomain | None) -> TabularDomain | None:
    if domain is None:
        return TabularDomain.from_frame(given) if is_frame(given) and is_raw(given) else None
    if not is_encoder(domain):
        fresh: TabularDomain = clone(domain).fit(given)
        return fresh
    if is_frame(given):
        return None if declared_encoded(given) else domain
    return None if hasattr(domain, "feature_names_in_") else domain
