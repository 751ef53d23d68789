"""Scores smoothed over a graph: argmin_f Σ m_i (f_i − s_i)² + λ Σ_{i<j} W_ij (f_i − f_j)², that is (M + λL) f = M s.

GLIF (Petersen, Mukherjee, Sun, Yurochkin: Post-processing for Individual Fairness, NeurIPS 2021), equation 2.3 with the
unnormalised Laplacian L = D − W, and its inductive form, equation 3.4, for people who are not in the graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from likewise.core.arrays import FloatArray
from likewise.core.errors import NotConvergedError

__all__ = ["extend_scores", "neighbour_graph", "smooth_scores"]

Ints = np.ndarray[Any, np.dtype[np.int64]]


def neighbour_graph(index: Ints, weight: FloatArray) -> sparse.csr_array:
    """Return the symmetric weights W (n, n): two rows are joined when either names the other.

    Parameters
    ----------
    index : int array of shape (n, k)
        The neighbours that each row names.
    weight : float array of shape (n, k)
        How comparable they are, from 0 to 1.

    Examples
    --------
    >>> neighbour_graph(np.array([[1], [0], [1]]), np.array([[0.5], [0.5], [0.2]])).toarray()
    array([[0. , 0.5, 0. ],
           [0.5, 0. , 0.2],
           [0. , 0.2, 0. ]])
    """
    n, k = index.shape
    one_way = sparse.csr_array(
        (weight.ravel(), index.ravel().astype(np.int32), np.arange(0, n * k + 1, k, dtype=np.int64)),
        shape=(n, n),
    )
    one_way.sum_duplicates()
    return sparse.csr_array(one_way.maximum(one_way.T))


def smooth_scores(
    scores: FloatArray,
    graph: sparse.csr_array,
    strength: float,
    *,
    mass: FloatArray | None = None,
    tol: float = 1e-12,
) -> FloatArray:
    """Solve (M + λL) f = M s for every column of scores by conjugate gradients.

    Parameters
    ----------
    scores : ndarray of shape (n, c)
        Of the model.
    graph : sparse array of shape (n, n)
        W, symmetric.
    strength : float
        λ ≥ 0.
    mass : ndarray of shape (n,), optional
        How many people a node stands for; 1 by default.
    tol : float, default=1e-12
        Residual, relative to the right side, at which the solver stops.

    Returns
    -------
    ndarray of shape (n, c)

    Examples
    --------
    >>> graph = neighbour_graph(np.array([[1], [0]]), np.array([[1.0], [1.0]]))
    >>> smooth_scores(np.array([[0.0], [3.0]]), graph, 1.0).ravel().round(9).tolist()
    [1.0, 2.0]
    """
    m = np.ones(len(scores)) if mass is None else mass
    diagonal = m + strength * graph.sum(axis=1)
    system = LinearOperator(
        graph.shape, matvec=lambda f: diagonal * f - strength * (graph @ f), dtype=np.float64
    )
    scaling = LinearOperator(graph.shape, matvec=lambda f: f / diagonal, dtype=np.float64)
    smoothed = np.empty_like(scores, dtype=np.float64)
    for column in range(scores.shape[1]):
        # From the mean: the constant part of the scores is kept as it is.
        middle = float(m @ scores[:, column] / m.sum())
        right = m * (scores[:, column] - middle)
        found, status = cg(system, right, rtol=tol, atol=0.0, maxiter=10_000, M=scaling)
        if status != 0:
            raise NotConvergedError(
                f"GraphSmoothing: the smoothed scores were not found within 10,000 steps (strength {strength:g}). "
                "Lower the strength."
            )
        smoothed[:, column] = found + middle
    return smoothed


def extend_scores(
    scores: FloatArray, smoothed: FloatArray, weight: FloatArray, strength: float
) -> FloatArray:
    """Return the scores of new rows: the minimiser in f_new with everybody else's smoothed score held.

    Parameters
    ----------
    scores : ndarray of shape (q, c)
        Of the model for the new rows.
    smoothed : ndarray of shape (q, k, c)
        Of their neighbours in the graph.
    weight : ndarray of shape (q, k)
        W between them.
    strength : float

    Examples
    --------
    >>> extend_scores(np.array([[0.0]]), np.array([[[2.0]]]), np.array([[1.0]]), 1.0)
    array([[1.]])
    """
    pulled = scores + strength * np.einsum("qk,qkc->qc", weight, smoothed)
    return np.asarray(pulled / (1.0 + strength * weight.sum(axis=1, keepdims=True)))
