"""What counts as a list of decisions, and which pairs of lists may be compared."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from likewise.core.checks import check_labels, check_same_length
from likewise.core.errors import InputError

__all__ = ["LabelArray", "are_scores", "check_pair"]

LabelArray: TypeAlias = np.ndarray[Any, Any]


def are_scores(values: LabelArray) -> bool:
    """Whether numbers are scores rather than labels: some of them is no whole number.

    Examples
    --------
    >>> are_scores(np.array([0.2, 0.9])), are_scores(np.array([0.0, 1.0])), are_scores(np.array(["a"]))
    (True, False, False)
    """
    return values.dtype.kind == "f" and bool((values != np.floor(values)).any())


def check_pair(
    y_true: Any, y_pred: Any, *, owner: str, min_classes: int = 1
) -> tuple[LabelArray, LabelArray]:
    """Return true and predicted labels as arrays of one length that can be compared with each other.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Labels.
    owner : str
        For the error message.
    min_classes : int, default=1
        How many classes `y_true` must have.

    Returns
    -------
    tuple of two ndarrays of shape (n,)

    Examples
    --------
    >>> check_pair([0, 1], ["0", "1"], owner="accuracy")
    Traceback (most recent call last):
    ...
    likewise.core.errors.InputError: accuracy: 'y_true' holds numbers and 'y_pred' holds text, so no label can be equal. Convert one to the other's kind.
    """
    truth = check_labels(y_true, owner=owner, name="y_true", min_classes=min_classes)
    decided = check_labels(y_pred, owner=owner, name="y_pred", min_classes=1)
    check_same_length(owner, y_true=truth, y_pred=decided)
    kinds = [_kind(truth), _kind(decided)]
    if kinds[0] != kinds[1]:
        raise InputError(
            f"{owner}: 'y_true' holds {kinds[0]} and 'y_pred' holds {kinds[1]}, so no label can be equal. "
            "Convert one to the other's kind."
        )
    if are_scores(decided) and not are_scores(truth):
        row = int(np.argmax(decided != np.floor(decided)))
        raise InputError(
            f"{owner}: 'y_pred' holds scores, not labels ({decided[row]} at row {row}). "
            "Turn them into decisions first, for example (scores > 0.5).astype(int)."
        )
    return truth, decided


def _kind(labels: LabelArray) -> str:
    if labels.dtype.kind in "biuf":
        return "numbers"
    if labels.dtype.kind in "USO" or labels.dtype.kind == "T":
        return "text" if all(isinstance(label, str) for label in labels) else _kind_of_objects(labels)
    return f"{labels.dtype} values"


def _kind_of_objects(labels: LabelArray) -> str:
    numbers = all(isinstance(label, (bool, int, float, np.bool_, np.number)) for label in labels)
    return "numbers" if numbers else "objects"
