"""Ask any model for one decision per row, and take no answer that is none."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.arrays import to_numpy
from likewise.core.errors import ModelError, bad_parameter
from likewise.evaluation.labels import LabelArray, are_scores

__all__ = ["check_model", "decide"]


def check_model(model: Any, *, owner: str) -> None:
    """Raise an error unless `model` has `predict` or can be called.

    Examples
    --------
    >>> check_model("net.pt", owner="evaluate")
    Traceback (most recent call last):
    ...
    likewise.core.errors.InputError: evaluate: 'model' must be an object with predict, or a function of a table, got str. Pass a fitted model or model.predict.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module) and not hasattr(model, "predict"):
        raise bad_parameter(
            owner,
            "model",
            allowed="an object with predict, or a function of a table",
            got=f"the torch module {type(model).__name__}, which gives scores of tensors",
            remedy="Wrap it: likewise.models.as_model(module).",
        )
    if isinstance(model, type) or not (hasattr(model, "predict") or callable(model)):
        got = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise bad_parameter(
            owner,
            "model",
            allowed="an object with predict, or a function of a table",
            got=got,
            remedy="Pass a fitted model or model.predict.",
        )


def decide(model: Any, table: Any, n: int, *, owner: str, scores: bool = False) -> LabelArray:
    """Return one decision per row of a table.

    Parameters
    ----------
    model : object with `predict`, or callable
        Gets the table as it is.
    table : data frame or array of n rows
        What the model wants.
    n : int
        How many decisions must come.
    owner : str
        For the error message.
    scores : bool, default=False
        Whether numbers that are no labels are welcome.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> decide(lambda table: [row[0] > 1 for row in table], [[1], [2]], 2, owner="study").tolist()
    [False, True]
    """
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
