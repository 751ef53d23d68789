"""Trees in terms of a table's columns: every split an exact cut of the values that can exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likewise.auditing.bounds.regions import ByteArray
from likewise.auditing.bounds.score_losses import Components
from likewise.auditing.bounds.table_layout import IntArray, TableLayout
from likewise.auditing.bounds.trees.feature_sources import FeatureSource
from likewise.core.arrays import FloatArray
from likewise.core.errors import InputError
from likewise.models.tree_ensemble import TreeEnsemble

__all__ = ["TableTrees"]


@dataclass(frozen=True, eq=False)
class TableTrees:
    """Nodes of all trees over the columns of a layout.

    Parameters
    ----------
    roots : int array of shape (T,)
    left, right : int arrays of shape (N,)
        −1 at a leaf.
    column : int array of shape (N,)
    cut : float array of shape (N,)
        Numbers up to and with it go left: the last value that can exist and does, found by bisection with the model's
        own arithmetic. −∞ or ∞ where all go one way.
    group : int array of shape (N,)
        Row of `goes_left` for a split on categories, −1 for numbers.
    goes_left : uint8 array of shape (G, M)
        Which of all categories a split sends left.
    values : float array of shape (L, N, K)
        What a leaf adds to the components of each label.
    peak : float array of shape (L, N, K)
        The highest leaf below each node.
    base : float array of shape (L, K)
        What is added besides.
    slack : float
        How far the model's own components may lie from these sums.
    """

    roots: IntArray
    left: IntArray
    right: IntArray
    column: IntArray
    cut: FloatArray
    group: IntArray
    goes_left: ByteArray
    values: FloatArray
    peak: FloatArray
    base: FloatArray
    slack: float

    @classmethod
    def of(
        cls, trees: TreeEnsemble, layout: TableLayout, sources: Sequence[FeatureSource], parts: Components
    ) -> TableTrees:
        """Translate an ensemble."""
        if len(sources) != trees.n_features:
            raise InputError(
                f"bounds: the trees have {trees.n_features} features, {len(sources)} were described."
            )
        inner = np.flatnonzero(trees.left >= 0)
        column = np.zeros(len(trees.left), dtype=np.int64)
        column[inner] = [sources[j].column for j in trees.feature[inner]]
        cut = np.zeros(len(trees.left))
        group = np.full(len(trees.left), -1, dtype=np.int64)
        masks: list[ByteArray] = []
        for node in inner:
            if layout.is_category[column[node]]:
                group[node] = len(masks)
                masks.append(_mask(trees, int(node), layout, sources[trees.feature[node]]))
        for j, source in enumerate(sources):
            nodes = inner[(trees.feature[inner] == j) & (group[inner] < 0)]
            if len(nodes):
                cut[nodes] = _cuts(trees, nodes, layout, source)
        values = np.einsum("nc,lck->lnk", trees.values, parts.mixing)
        # One output enters a component with weight at most 1 in each sign, so at most two rounded sums do.
        slack = trees.slack * float(np.abs(parts.mixing).sum(axis=1).max())
        return cls(
            trees.roots,
            trees.left,
            trees.right,
            column,
            cut,
            group,
            np.array(masks, dtype=np.uint8).reshape(len(masks), layout.n_categories),
            values,
            _peaks(trees, values),
            np.einsum("c,lck->lk", trees.base, parts.mixing),
            slack,
        )

    def thresholds(self, layout: TableLayout) -> dict[str, list[float]]:
        """Cuts of every number by name, for a search that steps over them."""
        used = (self.left >= 0) & (self.group < 0) & np.isfinite(self.cut)
        return {
            column.name: np.unique(self.cut[used & (self.column == i)]).tolist()
            for i, column in enumerate(layout.columns)
            if column.kind != "categorical"
        }


def _mask(trees: TreeEnsemble, node: int, layout: TableLayout, source: FeatureSource) -> ByteArray:
    mask = np.zeros(layout.n_categories, dtype=np.uint8)
    first, count = int(layout.offset[source.column]), int(layout.count[source.column])
    mask[first : first + count] = trees.goes_left(node, source(np.arange(count, dtype=np.float64)))
    return mask


def _cuts(trees: TreeEnsemble, nodes: IntArray, layout: TableLayout, source: FeatureSource) -> FloatArray:
    """The last value of a number that each node sends left, by bisection over the values that can exist."""
    column = layout.columns[source.column]
    whole = column.kind == "integer"

    def left(at: IntArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        values = at.astype(np.float64) if whole else _from_order(at)
        return trees._goes_left(nodes, source(values))

    edge = 2**52 if whole else int(_order(np.array([np.finfo(np.float64).max]))[0])
    low, high = np.full(len(nodes), -edge, dtype=np.int64), np.full(len(nodes), edge, dtype=np.int64)
    none, every = ~left(low), left(high)
    while (high - 1 > low).any():
        middle = low // 2 + high // 2 + (low % 2 + high % 2) // 2
        goes = left(middle)
        low, high = np.where(goes, middle, low), np.where(goes, high, middle)
    found = low.astype(np.float64) if whole else _from_order(low)
    return np.where(none, -np.inf, np.where(every, np.inf, found))


def _order(values: FloatArray) -> IntArray:
    """Doubles as integers in the same order."""
    bits = values.view(np.int64)
    return np.where(bits >= 0, bits, np.int64(-(2**63)) - bits)


def _from_order(order: IntArray) -> FloatArray:
    return np.where(order >= 0, order, np.int64(-(2**63)) - order).view(np.float64)


def _peaks(trees: TreeEnsemble, values: FloatArray) -> FloatArray:
    peak = np.where((trees.left < 0)[None, :, None], values, -np.inf)
    order, stack = [], list(trees.roots)
    while stack:
        node = int(stack.pop())
        if trees.left[node] >= 0:
            order.append(node)
            stack += [int(trees.left[node]), int(trees.right[node])]
    for node in reversed(order):
        peak[:, node] = np.maximum(peak[:, trees.left[node]], peak[:, trees.right[node]])
    return peak
