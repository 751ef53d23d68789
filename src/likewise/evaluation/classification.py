"""How often a decision is right: accuracy, and accuracy averaged over the classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.core.checks import FloatArray, IntArray
from likewise.core.decisions import check_pair
from likewise.core.intervals import (
    METHODS,
    Interval,
    bootstrap_counts,
    check_choices,
    mean_share_interval,
    proportion_interval,
)
from likewise.core.randomness import RandomState


def accuracy(y_true: Any, y_pred: Any) -> float:
    """Share of people whose label is predicted.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        True and predicted labels.

    Returns
    -------
    float

    Examples
    --------
    >>> accuracy([0, 0, 0, 1], [0, 0, 0, 0])
    0.75
    """
    truth, decided = check_pair(y_true, y_pred, owner="accuracy")
    return float(np.mean(truth == decided))


def accuracy_interval(
    y_true: Any,
    y_pred: Any,
    *,
    confidence: float = 0.95,
    method: str = "exact",
    n_resamples: int = 2000,
    random_state: RandomState = 0,
) -> Interval:
    """Confidence interval of `accuracy`.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        True and predicted labels.
    confidence, method, n_resamples, random_state
        As in `proportion_interval`.

    Returns
    -------
    Interval

    Examples
    --------
    >>> low, high = accuracy_interval([0, 0, 0, 1] * 100, [0, 0, 0, 0] * 100)
    >>> 0.70 < low < 0.75 < high < 0.80
    True
    """
    truth, decided = check_pair(y_true, y_pred, owner="accuracy_interval")
    return proportion_interval(
        int(np.sum(truth == decided)),
        len(truth),
        confidence=confidence,
        method=method,
        n_resamples=n_resamples,
        random_state=random_state,
    )


def balanced_accuracy(y_true: Any, y_pred: Any) -> float:
    """Mean over the classes of the share of the class that is predicted (the paper's B-Acc, Appendix D.5).

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        True and predicted labels; two or more classes in `y_true`.

    Returns
    -------
    float
        Equals `sklearn.metrics.balanced_accuracy_score`.

    Examples
    --------
    >>> balanced_accuracy([0, 0, 0, 1], [0, 0, 0, 0])
    0.5
    """
    truth, decided = check_pair(y_true, y_pred, owner="balanced_accuracy", min_classes=2)
    return float(_mean_recall(_cells(truth, decided)[None].astype(float))[0])


def balanced_accuracy_interval(
    y_true: Any,
    y_pred: Any,
    *,
    confidence: float = 0.95,
    method: str = "combined",
    n_resamples: int = 2000,
    random_state: RandomState = 0,
) -> Interval:
    """Confidence interval of `balanced_accuracy`.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        True and predicted labels.
    confidence : float in (0, 1), default=0.95
    method : {"combined", "percentile", "basic", "bca"}, default="combined"
        The exact intervals of the classes' recalls combined (`mean_share_interval`), or a bootstrap, which covers too
        seldom where a class is small or always recognised.
    n_resamples, random_state
        As in `bootstrap_interval`; only for a bootstrap.

    Returns
    -------
    Interval

    Examples
    --------
    >>> low, high = balanced_accuracy_interval([0, 1] * 100, [0, 1, 0, 0] * 50)
    >>> low < 0.75 < high
    True
    """
    owner = "balanced_accuracy_interval"
    truth, decided = check_pair(y_true, y_pred, owner=owner, min_classes=2)
    check_choices(owner, n_resamples, confidence, method, ("combined", *METHODS))
    cells = _cells(truth, decided)
    if method == "combined":
        return mean_share_interval(cells[1::2], cells[0::2] + cells[1::2], confidence=confidence)
    return bootstrap_counts(
        _mean_recall,
        cells,
        confidence=confidence,
        method=method,
        n_resamples=n_resamples,
        random_state=random_state,
    )[0]


def _cells(truth: Any, decided: Any) -> IntArray:
    """Counts of (class, wrong), (class, right), class by class."""
    classes, code = np.unique(truth, return_inverse=True)
    cell = 2 * code + (truth == decided)
    return np.bincount(cell, minlength=2 * len(classes)).astype(np.int64)


def _mean_recall(counts: FloatArray) -> FloatArray:
    # Balanced Acc = (1/|C|) Σ_c P(Ŷ = c | Y = c), Appendix D.5; NaN where nobody of a class was drawn.
    wrong, right = counts[:, 0::2], counts[:, 1::2]
    with np.errstate(invalid="ignore"):
        return np.asarray((right / (wrong + right)).mean(axis=1))
