"""Texts as vectors: the mean of the vectors of their words."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from likewise.core.arrays import FloatArray
from likewise.core.errors import bad_parameter
from likewise.datasets.sentiment import load_sentiment
from likewise.datasets.vectors import WordVectors
from likewise.text.words_in_text import folded, words_of

__all__ = ["WordMean"]


class WordMean(TransformerMixin, BaseEstimator):
    """A text becomes the mean of the vectors of those of its words that have one; zero where none has.

    Parameters
    ----------
    vectors : WordVectors, optional
        The bundled GloVe 6B by default, 100 numbers for opinion words and first names; most other words have none.
    scale : float, default=1.0
        What the means are multiplied by: a mean of words is shorter than a word.

    Attributes
    ----------
    vectors_ : WordVectors

    Examples
    --------
    >>> encoder = WordMean().fit(["Emily wrote a brilliant letter."])
    >>> encoder.transform(["Emily: brilliant!", "of the"]).shape
    (2, 100)
    """

    def __init__(self, vectors: WordVectors | None = None, scale: float = 1.0) -> None:
        self.vectors = vectors
        self.scale = scale

    def fit(self, X: Iterable[str], y: Any = None) -> Self:
        """Load the vectors; the texts are not looked at."""
        self.vectors_ = _bundled() if self.vectors is None else self.vectors
        return self

    def transform(self, X: Iterable[str]) -> FloatArray:
        """Return one row per text."""
        if isinstance(X, str):
            raise bad_parameter("WordMean", "X", allowed="a list of texts", got=X[:40])
        texts = list(X)
        rows = np.zeros((len(texts), self.vectors_.dim), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            known = [key for key in (folded(word.text) for word in words_of(text)) if key in self.vectors_]
            if known:
                row[:] = self.vectors_.take(known).mean(axis=0) * self.scale
        return rows

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "vectors_")


@cache
def _bundled() -> WordVectors:
    return load_sentiment().vectors
