"""Within-group scatter Σ_g Φ_gᵀ H_g Φ_g of Algorithm 3: whole, streamed, or only its top directions."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh

from likewise.core.arrays import FloatArray
from likewise.fair_metrics.comparable_groups import Groups, centred_chunks

__all__ = ["Scatter", "leading_directions", "top_of_gram"]


class Scatter:
    """Sum of squares and products around the group means, accumulated in float64.

    Parameters
    ----------
    n_features : int

    Attributes
    ----------
    gram : ndarray of shape (d, d)
        Σ_g Φ_gᵀ H_g Φ_g.
    freedom : int
        Degrees of freedom: rows minus groups.

    Examples
    --------
    >>> from likewise.fair_metrics.comparable_groups import read_groups
    >>> scatter = Scatter(1)
    >>> for rows in ([[0.0], [2.0]], [[4.0]]):
    ...     scatter.add(np.array(rows), read_groups("fit", ["a"] * len(rows), len(rows)), remember=True)
    >>> scatter.gram, scatter.freedom
    (array([[8.]]), 2)
    """

    def __init__(self, n_features: int) -> None:
        self.gram: FloatArray = np.zeros((n_features, n_features))
        self.freedom = 0
        self._places: dict[Any, int] = {}
        self._counts: FloatArray = np.zeros(0)
        self._means: FloatArray = np.zeros((0, n_features))

    def add(self, X: FloatArray, groups: Groups, *, remember: bool) -> None:
        """Add rows.

        Parameters
        ----------
        X : ndarray of shape (n, d)
        groups : Groups
        remember : bool
            A group with a label that came before goes on; else every group is a new one, and nothing is kept
            of it.
        """
        sizes = groups.sizes
        for chunk in centred_chunks(X, groups):
            self.gram += chunk.rows.T @ chunk.rows
            if remember and len(chunk.means):
                numbers = slice(chunk.first, chunk.first + len(chunk.means))
                self._merge(groups.labels[numbers].tolist(), sizes[numbers].astype(float), chunk.means)
        self.freedom += int(sizes.sum())
        if not remember:
            self.freedom -= len(sizes)

    def _merge(self, labels: list[Any], sizes: FloatArray, means: FloatArray) -> None:
        """Merge groups with what came of them before, as Chan, Golub and LeVeque (1979): no large differences."""
        places = np.array([self._places.get(label, -1) for label in labels])
        new = places < 0
        self.freedom -= int(new.sum())
        if new.any():
            for i in np.flatnonzero(new):
                self._places[labels[i]] = len(self._places)
            self._counts = np.concatenate([self._counts, sizes[new]])
            self._means = np.concatenate([self._means, means[new]])
        old = places[~new]
        if len(old):
            before, more = self._counts[old], sizes[~new]
            gap = means[~new] - self._means[old]
            scaled = gap * np.sqrt(before * more / (before + more))[:, None]
            self.gram += scaled.T @ scaled
            self._means[old] += gap * (more / (before + more))[:, None]
            self._counts[old] = before + more


def top_of_gram(gram: FloatArray, count: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Largest eigenvalues, descending, and their eigenvectors as columns; all of them without `count`.

    Examples
    --------
    >>> top_of_gram(np.diag([1.0, 3.0, 2.0]), 2)[0]
    array([3., 2.])
    """
    d = len(gram)
    wanted = None if count is None or count >= d else (d - count, d - 1)
    values, vectors = eigh(gram, subset_by_index=wanted)
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1]


def leading_directions(
    X: FloatArray, groups: Groups, count: int, rng: np.random.Generator, *, passes: int = 8, extra: int = 10
) -> tuple[FloatArray, FloatArray, float]:
    """Top directions by randomised subspace iteration (Halko, Martinsson and Tropp 2011), for wide X.

    Every pass multiplies the centred rows chunk by chunk, so neither a centred copy of X nor a d × d matrix
    is made.

    Returns
    -------
    eigenvalues : ndarray of shape (count,)
    vectors : ndarray of shape (d, count)
    total : float
        Trace of the scatter.
    """
    d = X.shape[1]
    width = min(count + extra, d)
    vectors = np.linalg.qr(rng.normal(size=(d, width)))[0]
    for _ in range(passes):
        cast = vectors.astype(X.dtype)
        product, total = np.zeros((d, width)), 0.0
        for chunk in centred_chunks(X, groups):
            product += chunk.rows.T @ (chunk.rows @ cast)
            total += float(np.einsum("ij,ij->", chunk.rows, chunk.rows, dtype=np.float64))
        # Rayleigh and Ritz: the scatter as seen inside the current directions.
        small = vectors.T @ product
        values, turn = np.linalg.eigh((small + small.T) / 2)
        ritz = (vectors @ turn)[:, ::-1]
        vectors = np.linalg.qr(product)[0]
    return np.maximum(values[::-1][:count], 0.0), ritz[:, :count], total
