"""How often a decision is right: accuracy, and accuracy averaged over the classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.core.checks import IntArray, check_number
from likewise.core.decisions import check_pair
from likewise.core.intervals import Interval, mean_share_interval, proportion_interval


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


def accuracy_interval(y_true: Any, y_pred: Any, *, confidence: float = 0.95) -> Interval:
    """Exact confidence interval of `accuracy` (see `proportion_interval`).

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        True and predicted labels.
    confidence : float in (0, 1), default=0.95

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
    return proportion_interval(int(np.sum(truth == decided)), len(truth), confidence=confidence)


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
    right, people = _recalls(truth, decided)
    # Balanced Acc = (1/|C|) Σ_c P(Ŷ = c | Y = c), Appendix D.5.
    return float(np.mean(right / people))


def balanced_accuracy_interval(y_true: Any, y_pred: Any, *, confidence: float = 0.95) -> Interval:
    """Confidence interval of `balanced_accuracy`: the exact intervals of the classes' recalls combined.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        True and predicted labels.
    confidence : float in (0, 1), default=0.95

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
    check_number(confidence, owner=owner, name="confidence", low=0, high=1, open_low=True, open_high=True)
    truth, decided = check_pair(y_true, y_pred, owner=owner, min_classes=2)
    return mean_share_interval(*_recalls(truth, decided), confidence=confidence)


def _recalls(truth: Any, decided: Any) -> tuple[IntArray, IntArray]:
    """How many of each class are recognised, and how many there are."""
    classes, code = np.unique(truth, return_inverse=True)
    right = np.bincount(code[truth == decided], minlength=len(classes))
    return right.astype(np.int64), np.bincount(code).astype(np.int64)
