"""Trees as plain data: nodes in the order of a walk, so that the left child of a node is the next one."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.models.tree_ensemble import TreeEnsemble
from likewise.report.explore.packing import pack

__all__ = ["tree_document"]


def tree_document(trees: TreeEnsemble) -> dict[str, Any]:
    """Return an ensemble as plain data.

    Parameters
    ----------
    trees : TreeEnsemble

    Returns
    -------
    dict
        Per node ``feature`` (−1 at a leaf), ``threshold``, ``right`` (how far on the right child stands), ``missing``
        (1 where a missing value goes left) and, where there are splits on categories, ``set`` (−1 for a number); the
        ``leaves`` in the order in which they stand, one row each.

    Examples
    --------
    >>> stump = TreeEnsemble.from_nodes(
    ...     roots=[0], left=[2, -1, -1], right=[1, -1, -1], feature=[0, 0, 0], threshold=[0.5, 0.0, 0.0],
    ...     values=[[0.0], [2.0], [-1.0]], base=[0.0], kind="scores", n_features=1,
    ... )
    >>> from likewise.report.explore.packing import unpack
    >>> document = tree_document(stump)
    >>> unpack(document["right"]).tolist(), unpack(document["leaves"]).ravel().tolist()
    ([2, 0, 0], [-1.0, 2.0])
    """
    order, starts = _walk(trees)
    place = np.empty(len(trees.left), dtype=np.int64)
    place[order] = np.arange(len(order))
    leaf = trees.left[order] < 0
    by_category = trees.last[order] > trees.first[order]
    document: dict[str, Any] = {
        "kind": "trees",
        "roots": pack(np.asarray(starts, dtype=np.int64)),
        "feature": pack(np.where(leaf, -1, trees.feature[order])),
        "threshold": pack(np.where(leaf | by_category, 0.0, trees.threshold[order])),
        "right": pack(np.where(leaf, 0, place[trees.right[order]] - np.arange(len(order)))),
        "missing": pack(trees.missing_left[order]),
        "leaves": pack(trees.values[order][leaf]),
        "base": [float(value) for value in trees.base],
        "strict": bool(trees.strict),
        "single": bool(trees.single.any()),
        "single_sum": bool(trees.roundoff > 2.0**-53),
        # scikit-learn's forests refuse what single precision cannot hold; XGBoost takes it for infinite.
        "bounded": bool(trees.single.any() and trees.kind == "probabilities"),
    }
    if by_category.any():
        document |= _sets(trees, order, by_category)
    return document


def _walk(trees: TreeEnsemble) -> tuple[np.ndarray[Any, Any], list[int]]:
    """Nodes of all trees with each left child behind its parent, and where each tree begins."""
    order: list[int] = []
    starts: list[int] = []
    left, right = trees.left.tolist(), trees.right.tolist()
    for root in trees.roots.tolist():
        starts.append(len(order))
        stack = [root]
        while stack:
            node = stack.pop()
            order.append(node)
            if left[node] >= 0:
                stack += [right[node], left[node]]
    return np.asarray(order, dtype=np.int64), starts


def _sets(trees: TreeEnsemble, order: np.ndarray[Any, Any], by_category: Any) -> dict[str, Any]:
    nodes = order[by_category]
    number = np.full(len(order), -1, dtype=np.int64)
    number[by_category] = np.arange(len(nodes))
    spans = [trees.codes[trees.first[node] : trees.last[node]] for node in nodes]
    ends = np.cumsum([0, *(len(span) for span in spans)])
    return {
        "set": pack(number),
        "ends": pack(ends),
        "codes": pack(np.concatenate(spans)),
        # One library sends the listed categories left, another right, in all of its splits.
        "listed_left": bool(trees.listed_left[nodes].all()),
    }
