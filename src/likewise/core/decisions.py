"""One decision per row from any model; anything else is an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from likewise.core.checks import check_labels, check_same_length, is_torch_module, to_numpy
from likewise.core.errors import InputError, ModelError, bad_parameter

# What counts as a list of decisions, and which pairs of lists may be compared.


LabelArray: TypeAlias = np.ndarray[Any, Any]


def are_scores(values: LabelArray) -> bool:
    """Whether numbers are scores rather than labels: some of them is not a whole number."""
    return values.dtype.kind == "f" and bool((values != np.floor(values)).any())


def check_pair(
    y_true: Any, y_pred: Any, *, owner: str, min_classes: int = 1
) -> tuple[LabelArray, LabelArray]:
    """Return true and predicted labels as arrays of one length that can be compared with each other."""
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
        if all(isinstance(label, str) for label in labels):
            return "text"
        numbers = all(isinstance(label, (bool, int, float, np.bool_, np.number)) for label in labels)
        return "numbers" if numbers else "objects"
    return f"{labels.dtype} values"


def check_model(model: Any, *, owner: str) -> None:
    """Raise an error unless `model` has `predict` or can be called."""
    if is_torch_module(model) and not hasattr(model, "predict"):
        raise bad_parameter(
            owner,
            "model",
            "an object with predict, or a function of a table",
            f"the torch module {type(model).__name__}, which gives scores of tensors",
            "Wrap it: likewise.models.as_model(module).",
        )
    if isinstance(model, type) or not (hasattr(model, "predict") or callable(model)):
        got = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise bad_parameter(
            owner,
            "model",
            "an object with predict, or a function of a table",
            got,
            "Pass a fitted model or model.predict.",
        )


def decide(model: Any, table: Any, n: int, *, owner: str, scores: bool = False) -> LabelArray:
    """Return one decision per row of a table."""
    raw = model.predict(table) if hasattr(model, "predict") else model(table)
    answer = to_numpy(raw)
    if answer.ndim == 2 and answer.shape[1] == 1:
        answer = answer[:, 0]
    if answer.ndim == 2:
        raise ModelError(
            f"{owner}: the model answered with a table of shape {answer.shape} where one decision per row is "
            "needed. If these are scores by class, pass lambda table: scores(table).argmax(axis=1)."
        )
    if answer.ndim != 1 or len(answer) != n:
        got = f"{len(answer)} decisions" if answer.ndim == 1 else f"an answer of shape {answer.shape}"
        raise ModelError(f"{owner}: the model gave {got} for {n} rows. It must give one per row, in order.")
    missing = np.asarray(pd.isna(answer))
    if missing.any():
        raise ModelError(
            f"{owner}: the model gave no decision (NaN or None) for {int(missing.sum())} of {n} rows, "
            f"first at row {int(missing.argmax())}. Check the model and its input there."
        )
    if not scores and are_scores(answer):
        row = int(np.argmax(answer != np.floor(answer)))
        raise ModelError(
            f"{owner}: the model gave scores, not decisions ({answer[row]} at row {row}). "
            "Cut them, for example lambda table: model.predict_proba(table)[:, 1] > 0.5."
        )
    return answer


def decisions_differ(decided: Sequence[LabelArray], tolerance: float | None = None) -> Any:
    """Whether the decisions about a row are not all the same; numbers are if they are within `tolerance` of each other."""
    if tolerance is None:
        return np.logical_or.reduce([other != decided[0] for other in decided[1:]])
    return np.ptp(np.stack(decided).astype(float), axis=0) > tolerance
