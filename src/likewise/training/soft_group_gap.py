"""A penalty on the groups' different rates of decisions, class by class, with its gradient by hand.

The decision is softened to s = softmax(κ f); for two classes that is σ(κ (f_1 − f_0)). In every class of people the
mean soft decision of each group is held against the mean over the groups:

    Σ_attributes Σ_classes Σ_groups ‖ m_group − mean of m over the groups ‖²

For two groups and two classes a term is the squared difference of the groups' mean soft decisions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from likewise.core.arrays import FloatArray

__all__ = ["GroupCells", "soft_gap"]

Ints = np.ndarray[Any, np.dtype[np.int64]]

KAPPA = 3.0
# The mean of fewer people says little about their group.
MIN_PEOPLE = 20


@dataclass(frozen=True, eq=False)
class GroupCells:
    """People by attribute, class and group.

    Parameters
    ----------
    average : sparse array of shape (cells, n)
        Weights whose product with a column is its mean in each cell.
    centre : sparse array of shape (cells, cells)
        Takes the mean over the groups of the same attribute and class away.

    Examples
    --------
    >>> cells = GroupCells.of([np.array([0, 0, 1, 1])], np.zeros(4, int), np.ones(4), min_people=1)
    >>> (cells.average @ np.array([1.0, 3.0, 5.0, 5.0])).tolist()
    [2.0, 5.0]
    """

    average: sparse.csr_array
    centre: sparse.csr_array

    @classmethod
    def of(
        cls, groups: list[Ints], labels: Ints, weight: FloatArray, *, min_people: int = MIN_PEOPLE
    ) -> GroupCells:
        """Count people into cells.

        Parameters
        ----------
        groups : list of int arrays of shape (n,)
            The group of each person, one array per attribute; -1 where it is not known.
        labels : int array of shape (n,)
            Classes.
        weight : array of shape (n,)
        min_people : int, default=20
            Cells with fewer people are left out.
        """
        n = len(labels)
        rows: list[tuple[Ints, FloatArray]] = []
        blocks = []
        for codes in groups:
            for label in np.unique(labels):
                members = [
                    np.flatnonzero((codes == g) & (labels == label)) for g in np.unique(codes[codes >= 0])
                ]
                kept = [m for m in members if len(m) >= min_people and weight[m].sum() > 0]
                if len(kept) < 2:
                    continue
                rows += [(m, weight[m] / weight[m].sum()) for m in kept]
                blocks.append(np.eye(len(kept)) - 1.0 / len(kept))
        indptr = np.concatenate([[0], np.cumsum([len(m) for m, _ in rows])]).astype(np.int64)
        index = np.concatenate([np.zeros(0, dtype=np.int64), *(m for m, _ in rows)])
        values = np.concatenate([np.zeros(0), *(share for _, share in rows)])
        average = sparse.csr_array((values, index, indptr), shape=(len(rows), n))
        centre = sparse.csr_array(sparse.block_diag(blocks)) if blocks else sparse.csr_array((0, 0))
        return cls(average, centre)

    def at(self, node: Ints, n_nodes: int) -> GroupCells:
        """Return the same means over nodes at which people stand, `node` saying where each does.

        Examples
        --------
        >>> cells = GroupCells.of([np.array([0, 0, 1, 1])], np.zeros(4, int), np.ones(4), min_people=1)
        >>> cells.at(np.array([0, 0, 0, 1]), 2).average.toarray().tolist()
        [[1.0, 0.0], [0.5, 0.5]]
        """
        n = len(node)
        place = sparse.csr_array((np.ones(n), node, np.arange(n + 1)), shape=(n, n_nodes))
        return GroupCells(sparse.csr_array(self.average @ place), self.centre)


def soft_gap(
    scores: FloatArray, cells: GroupCells, *, kappa: float = KAPPA
) -> tuple[float, FloatArray, FloatArray]:
    """Return the penalty, its gradient by the scores and a bound of its curvature.

    Parameters
    ----------
    scores : ndarray of shape (n, C)
    cells : GroupCells
    kappa : float, default=3.0
        How sharp the soft decision is.

    Returns
    -------
    value : float
    gradient : ndarray of shape (n, C)
    curvature : ndarray of shape (n, C)
        A diagonal matrix that is nowhere below the Gauss-Newton part of the Hessian in one column of scores:
        (Σ a_i δ_i)² ≤ Σ a_i · Σ a_i δ_i², with a_i what a person's score does to their cell's mean.

    Examples
    --------
    >>> cells = GroupCells.of([np.array([0, 1])], np.zeros(2, int), np.ones(2), min_people=1)
    >>> value, gradient, curvature = soft_gap(np.array([[0.0, 0.0], [0.0, 9.0]]), cells)
    >>> round(value, 3), gradient.shape
    (0.25, (2, 2))
    """
    if not cells.average.shape[0]:
        return 0.0, np.zeros_like(scores), np.zeros_like(scores)
    sharp = kappa * scores
    soft = np.exp(sharp - sharp.max(axis=1, keepdims=True))
    soft /= soft.sum(axis=1, keepdims=True)
    apart = cells.centre @ (cells.average @ soft)
    # The centred means sum to 0 within a class, so the mean over the groups has no gradient of its own.
    by_soft = 2.0 * (cells.average.T @ apart)
    by_scores = kappa * soft * (by_soft - (by_soft * soft).sum(axis=1, keepdims=True))
    # A score moves its own soft decision by κ s (1 − s), and the others together by no more.
    moves = np.sqrt(2.0) * kappa * soft * (1.0 - soft)
    curvature = 2.0 * moves * (cells.average.T @ (cells.average @ moves))
    return float((apart**2).sum()), np.asarray(by_scores), np.asarray(curvature)
