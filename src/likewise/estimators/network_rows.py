"""What a user passes to `fit` and `predict`, as the rows that a network gets."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from likewise.core.arrays import FloatArray, is_tensor, to_numpy
from likewise.core.checks import check_labels, check_same_length
from likewise.core.errors import InputError, bad_parameter
from likewise.domains import TabularDomain
from likewise.estimators.row_weights import some_rows
from likewise.preprocessing.transformer_rows import read_first_rows, read_new_rows, table_or_array
from likewise.training.findings import TrainingWarning

__all__ = ["TrainingRows", "read_labels", "read_rows", "warn_unscaled"]

# Columns that spread more than this were not standardised.
_WIDE = 50.0

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
    sensitive_features : object
        `sensitive_features` as they came; of the same length.
    encoder : TabularDomain or None
        What encoded the rows.
    weights : ndarray of shape (n,), optional
        What each row counts for, all above 0.
    """

    given: Any
    x: FloatArray
    codes: Labels
    sensitive_features: Any
    encoder: TabularDomain | None
    weights: FloatArray | None = None

    def take(self, rows: Labels) -> TrainingRows:
        """Return some of the rows, by index."""
        return TrainingRows(
            some_rows(self.given, rows),
            self.x[rows],
            self.codes[rows],
            some_rows(self.sensitive_features, rows),
            self.encoder,
            None if self.weights is None else self.weights[rows],
        )


def read_rows(
    estimator: Any, X: Any, *, owner: str, domain: Any = None, first: bool = True
) -> tuple[Any, FloatArray, TabularDomain | None]:
    """Return X as it came, encoded in float64, and the encoder, in a first or in a later call."""
    if first:
        given, x, encoder = read_first_rows(estimator, X, owner=owner, domain=domain, min_rows=2)
        return given, np.asarray(x, dtype=np.float64), encoder
    given = table_or_array(X, owner)
    x = np.asarray(read_new_rows(estimator, X, owner=owner), dtype=np.float64)
    return given, x, getattr(estimator, "encoder_", None)


def warn_unscaled(rows: TrainingRows, *, owner: str) -> None:
    """Give a `TrainingWarning` when columns are far from standardised: nothing would be learned from the others."""
    wide = np.flatnonzero(rows.x.std(axis=0) > _WIDE)
    if len(wide):
        names = rows.given.columns if isinstance(rows.given, pd.DataFrame) else range(rows.x.shape[1])
        shown = ", ".join(str(names[i]) for i in wide[:5]) + (", …" if len(wide) > 5 else "")
        warnings.warn(
            f"{owner}: columns are not standardised ({shown}; standard deviations up to "
            f"{rows.x.std(axis=0).max():.3g}), and a network hardly learns from such rows. Pass "
            "domain=TabularDomain() to have the table encoded, or put a StandardScaler in front.",
            TrainingWarning,
            stacklevel=4,
        )


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
    if values.dtype == object:
        # Numbers in a column of objects are numbers.
        values = pd.Series(values).infer_objects().to_numpy()
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
