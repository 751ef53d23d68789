"""Mend a fitted classifier of texts without training: answer with the mean over a text's swaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from likewise.core.arrays import FloatArray
from likewise.core.errors import bad_parameter
from likewise.text.edited import TextEdit

__all__ = ["SwapConsensus"]


class SwapConsensus(ClassifierMixin, BaseEstimator):
    """A classifier of texts that answers alike for all texts that an edit makes equal.

    Every text is edited in each of a few fixed ways, such as its names replaced by one name or another, and the
    answers become their mean. Two texts that differ only in what the edits replace are then the same texts to the
    model. A text that no edit changes is asked about as it is: a name that is not found still counts.

    Parameters
    ----------
    model : fitted classifier
        With ``predict_proba`` on lists of texts, such as a pipeline.
    edits : sequence of edits
        Each must replace, not add to: ``NameSwap(names=("Emily",))`` and others of its kind.
    how : {"mean", "margin"}, default="mean"
        Mean of the probabilities, or of their logarithms.

    Examples
    --------
    >>> from likewise.text import NameSwap
    >>> class Length:
    ...     classes_ = np.array([0, 1])
    ...     def predict_proba(self, texts):
    ...         p = np.array([1 / len(text) for text in texts])
    ...         return np.stack([1 - p, p], axis=1)
    >>> fair = SwapConsensus(Length(), [NameSwap(names=("Emily",)), NameSwap(names=("Jo",))])
    >>> a, b = fair.predict_proba(["I met Lakisha there.", "I met Greg there."])[:, 1]
    >>> bool(a == b)
    True
    """

    def __init__(self, model: Any, edits: Sequence[TextEdit], how: str = "mean") -> None:
        self.model = model
        self.edits = edits
        self.how = how

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Nothing is learned; the model is fitted already."""
        return self

    @property
    def classes_(self) -> Any:
        """Of the model."""
        return self.model.classes_

    def predict_proba(self, X: Iterable[str]) -> FloatArray:
        """Return the mean of the model's probabilities over the swaps, (n, C)."""
        if not self.edits:
            raise bad_parameter("SwapConsensus", "edits", allowed="at least one edit", got=self.edits)
        if self.how not in ("mean", "margin"):
            raise bad_parameter("SwapConsensus", "how", allowed="'mean' or 'margin'", got=self.how)
        texts = list(X)
        answers = [self.model.predict_proba([edit(text).text for text in texts]) for edit in self.edits]
        if self.how == "mean":
            mean: FloatArray = np.mean(answers, axis=0)
            return mean
        odds = np.exp(np.mean(np.log(np.maximum(answers, 1e-300)), axis=0))
        shares: FloatArray = odds / odds.sum(axis=1, keepdims=True)
        return shares

    def predict(self, X: Iterable[str]) -> Any:
        """Return the likeliest class of each text."""
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    def __sklearn_is_fitted__(self) -> bool:
        return True
