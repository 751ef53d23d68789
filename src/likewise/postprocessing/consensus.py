"""One answer from the answers about a person's twins: the mean, the mean of margins, the median, the worst."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from likewise.core.arrays import FloatArray
from likewise.core.errors import InputError, bad_parameter

__all__ = ["How", "check_how", "consensus"]

How: TypeAlias = Literal["mean", "margin", "median", "worst"]

# Below it a probability counts as it, so that one twin's certainty does not silence all others.
_FLOOR = 1e-12


def check_how(how: object, *, owner: str, regression: bool = False) -> None:
    """Raise an error unless `how` is one of the ways to agree.

    Examples
    --------
    >>> check_how("average", owner="TwinConsensus")
    Traceback (most recent call last):
    ...
    likewise.core.errors.InputError: TwinConsensus: 'how' must be 'mean', 'margin', 'median' or 'worst', got 'average'.
    """
    if not isinstance(how, str) or how not in get_args(How):
        raise bad_parameter(owner, "how", allowed="'mean', 'margin', 'median' or 'worst'", got=repr(how))
    if how == "margin" and regression:
        raise InputError(
            f"{owner}: how='margin' needs classes, and the model is a regression. Use how='mean'."
        )


def consensus(outputs: FloatArray, how: How, *, probabilities: bool, favourable: int = -1) -> FloatArray:
    """Return one row of outputs per person.

    Parameters
    ----------
    outputs : ndarray of shape (T, n, C)
        What a model says about T twins of n people: probabilities, scores, or (T, n, 1) values. The order of the
        twins must be the same whoever of them is asked about; then so is every bit of the answer.
    how : {"mean", "margin", "median", "worst"}
        - "mean": of the outputs.
        - "margin": of the logarithms of the probabilities, scaled to sum to 1; of scores their mean.
        - "median": of each class, scaled to sum to 1.
        - "worst": the outputs of the twin who fares worst, by the probability of the favourable class.
    probabilities : bool
        Whether the outputs are.
    favourable : int, default=-1
        Position of the class that is good to get; the last one by default.

    Returns
    -------
    ndarray of shape (n, C)

    Examples
    --------
    >>> twins = np.array([[[0.2, 0.8]], [[0.6, 0.4]]])
    >>> consensus(twins, "mean", probabilities=True), consensus(twins, "worst", probabilities=True)
    (array([[0.4, 0.6]]), array([[0.6, 0.4]]))
    >>> consensus(twins, "margin", probabilities=True).round(3)
    array([[0.38, 0.62]])
    """
    if how == "worst":
        merit = outputs[..., favourable]
        if not probabilities and outputs.shape[2] > 1:
            others = np.delete(outputs, favourable, axis=2)
            merit = merit - others.max(axis=2)
        worst = merit.argmin(axis=0)
        return np.asarray(outputs[worst, np.arange(outputs.shape[1])])
    if how == "median":
        middle = np.median(outputs, axis=0)
        return np.asarray(middle / middle.sum(axis=1, keepdims=True)) if probabilities else middle
    if how == "margin" and probabilities:
        logs = np.log(np.maximum(outputs, _FLOOR)).mean(axis=0)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))
    return np.asarray(outputs.mean(axis=0))
