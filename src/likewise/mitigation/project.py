"""Rows without their sensitive directions: the paper's "Project"."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from likewise.core.checks import FloatArray, check_matrix, check_same_length, is_tensor, to_numpy
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import declared_encoded, is_frame, is_raw, to_pandas, to_same_library
from likewise.core.parameters import parameters_from_fields
from likewise.core.subspace import Subspace
from likewise.data.tabular import TabularDomain
from likewise.fair_metrics import FairMetric
from likewise.fair_metrics.learner import ready_metric
from likewise.fair_metrics.naming import is_encoder

# Input of a scikit-learn estimator: raw tables are encoded, everything else is taken as it is.


def read_first_rows(
    estimator: Any, X: Any, *, owner: str, domain: Any = None, min_rows: int = 1
) -> tuple[Any, FloatArray, TabularDomain | None]:
    """Return X of a `fit` as it came, encoded, and the encoder; set what scikit-learn remembers of the columns.

    A frame with columns that are not numeric is encoded by `domain`, or by a `TabularDomain` made from it.
    Numeric frames and arrays are taken as encoded, unless a domain is given that says otherwise.
    """
    given = table_or_array(X, owner)
    if domain is not None and not isinstance(domain, TabularDomain):
        raise bad_parameter(
            owner, "domain", "a TabularDomain, fitted or not, that encodes the table", type(domain).__name__
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


@parameters_from_fields
class Project(TransformerMixin, BaseEstimator):
    """Project rows off the sensitive subspace of a fair metric: x ↦ x (I − QQᵀ).

    Whatever is trained on the result treats people who differ along the subspace alone the same.

    Parameters
    ----------
    metric : FairMetric, learner or list of them, optional
        Whose sensitive subspace is removed: ready, or a learner such as ``AttributeSubspace(["sex"])`` that is
        cloned and fitted inside `fit`; several mean the union. Default: ``AttributeSubspace()`` on the
        `sensitive_features` given to `fit`.
    domain : TabularDomain, optional
        Encoder of raw frames, fitted or not. Without it one is made if a frame has columns of text.

    Attributes
    ----------
    metric_ : FairMetric
    subspace_ : Subspace
        What is removed.
    encoder_ : TabularDomain
        Only if raw frames are encoded.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from likewise.fair_metrics import ExpertSubspace
    >>> people = pd.DataFrame({"skill": [1.0, 2.0], "sex_M": [0.0, 1.0]})
    >>> Project(ExpertSubspace(["sex"])).fit_transform(people)
       skill  sex_M
    0    1.0    0.0
    1    2.0    0.0
    """

    metric: Any = field(default=None, kw_only=False)
    domain: TabularDomain | None = None

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None) -> Project:
        """Learn what to remove.

        Parameters
        ----------
        X : array, tensor or frame of shape (n, p)
        y : ignored
            There for pipelines.
        sensitive_features : array, Series, frame or dict, optional
            Sensitive attributes that are not columns of X, for a learner.

        Returns
        -------
        Project
            itself
        """
        owner = type(self).__name__
        self.__dict__.pop("encoder_", None)
        carried = getattr(self.metric, "feature_map", None)
        domain = carried if self.domain is None and isinstance(carried, TabularDomain) else self.domain
        given, x, encoder = read_first_rows(self, X, owner=owner, domain=domain)
        if encoder is not None:
            self.encoder_ = encoder
        if sensitive_features is not None and not isinstance(sensitive_features, dict):
            check_same_length(owner, X=x, sensitive_features=sensitive_features)
        self.metric_ = ready_metric(
            self.metric, given, owner=owner, sensitive_features=sensitive_features, encoder=encoder
        )
        check_width(self.metric_, x.shape[1], owner=owner)
        self.subspace_ = projected_off(self.metric_, owner=owner)
        return self

    def transform(self, X: Any) -> Any:
        """Remove the subspace from rows.

        Parameters
        ----------
        X : array, tensor or frame of shape (n, p)
            As in `fit`, or encoded already.

        Returns
        -------
        ndarray or frame of shape (n, d)
            A frame gives a frame of its own library, with the names of the (encoded) columns; an array an array.
        """
        x = read_new_rows(self, X, owner=type(self).__name__)
        projected = self.subspace_.remove(x)
        if not is_frame(table_or_array(X, type(self).__name__)):
            return projected
        index = X.index if isinstance(X, pd.DataFrame) else None
        frame = pd.DataFrame(projected, columns=list(self.get_feature_names_out()), index=index, copy=False)
        return to_same_library(frame, X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray[Any, Any]:
        """Names of the columns: those of the encoding, or those of X."""
        check_is_fitted(self)
        given = _check_feature_names_in(self, input_features)
        encoder = getattr(self, "encoder_", None)
        return np.asarray(given if encoder is None else encoder.get_feature_names_out(), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def check_width(metric: FairMetric, width: int, *, owner: str) -> None:
    """Raise unless a metric is of as many columns as the encoded rows."""
    if metric.n_features not in (None, width):
        raise InputError(
            f"{owner}: the metric is of {metric.n_features} columns, the encoded rows have {width}. "
            "Learn it on the same table, or pass the learner itself to have it fitted here."
        )


def projected_off(metric: FairMetric, *, owner: str) -> Subspace:
    """Return the sensitive subspace of a metric, once there is one and it leaves something."""
    found = metric.subspace
    if found is None or found.dim == 0:
        raise InputError(
            f"{owner}: there is nothing to project off: the metric has no sensitive subspace. "
            "Pass one that has, such as ExpertSubspace(['sex'])."
        )
    if found.dim >= found.n_features:
        raise InputError(
            f"{owner}: the subspace to project off is the whole space of {found.n_features} feature(s): nothing "
            "would be left. Name fewer directions."
        )
    return found
