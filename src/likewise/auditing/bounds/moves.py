"""Trees and networks that were read, as the arrays that the compiled search around a person takes (`search.person_moves`).

Few arrays go through the compiled functions: with many of them compiling takes minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.auditing.search.person_moves import (
    COLUMN,
    COUNT,
    CUT,
    DECISIONS,
    FIRST_CELL,
    FIRST_CUT,
    HINGE,
    HOT,
    LEFT,
    PROBABILITIES,
    RIGHT,
    SCORES,
    SQUARED,
    START,
)
from likewise.core.checks import FloatArray, IntArray
from likewise.models.losses import CrossEntropy, Hinge, Loss, Squared, ZeroOne

if TYPE_CHECKING:
    from likewise.auditing.bounds.family import Components
    from likewise.auditing.bounds.regions import TableLayout
    from likewise.auditing.bounds.tree_tables import TableTrees
    from likewise.models.layers import Layers


_NO_INTEGERS = np.zeros(0, dtype=np.int64)
_NO_TREES = (
    _NO_INTEGERS,
    np.zeros((0, 4), dtype=np.int32),
    np.zeros((0, 1), dtype=np.uint64),
    np.zeros((0, 0, 0)),
    0,
    np.zeros(0, dtype=np.int32),
    np.zeros(1, dtype=np.int64),
)
_NO_LAYERS = np.zeros((0, 0)), np.zeros(0), _NO_INTEGERS, np.zeros((0, 0, 0))


@dataclass(frozen=True, eq=False)
class MoveArrays:
    """A model as the compiled loops take it: its trees or its layers, and how its components become a loss."""

    is_tree: bool
    trees: tuple[Any, ...]
    layers: tuple[Any, ...]
    loss: tuple[Any, ...]
    cuts: FloatArray
    columns: IntArray
    n_components: int

    def cells(self, values: FloatArray, column: IntArray) -> Any:
        """Return between which cuts values lie, or which category they are, (n, m) int32."""
        found = np.zeros(values.shape, dtype=np.int32)
        for p in range(len(self.columns) - 1) if self.is_tree else ():
            at = column == p
            cuts = self.cuts[self.columns[p, FIRST_CUT] : self.columns[p + 1, FIRST_CUT]]
            # At a cut itself a value goes left.
            known = values[:, at]
            found[:, at] = known if self.columns[p, COUNT] else np.searchsorted(cuts, known, side="left")
        return found


def _known(layout: TableLayout, loss: Loss, parts: Components) -> tuple[tuple[Any, ...], IntArray]:
    """How components become a loss, and what is known of columns, (P + 1, 7); the last row closes what begins with a column."""
    columns = np.zeros((layout.n_columns + 1, 7), dtype=np.int64)
    for p, column in enumerate(layout.columns):
        columns[p, [START, HOT, COUNT]] = column.start, column.width > 1, len(column.categories)
    if isinstance(loss, CrossEntropy):
        code = PROBABILITIES if parts.probabilities else SCORES
        return (code, float(loss.floor), float(loss.upper_bound), parts.ties), columns
    codes = {Hinge: HINGE, ZeroOne: DECISIONS, Squared: SQUARED}
    return (codes[type(loss)], 0.0, np.inf, parts.ties), columns


def tree_arrays(trees: TableTrees, layout: TableLayout, loss: Loss, parts: Components) -> MoveArrays:
    """Return trees with every cut as a place among the cuts of its column, every set of categories as bits."""
    inner = trees.left >= 0
    used = inner & (trees.group < 0) & np.isfinite(trees.cut)
    about, columns = _known(layout, loss, parts)
    cuts = [np.unique(trees.cut[used & (trees.column == p)]) for p in range(layout.n_columns)]
    columns[1:, FIRST_CUT] = np.cumsum([len(part) for part in cuts])
    # Cells of a column: its categories, or one more than its cuts; and one where the sums of differences end.
    count = np.where(layout.is_category, layout.count, np.diff(columns[:, FIRST_CUT]) + 1)
    columns[1:, FIRST_CELL] = np.cumsum(count + 1)
    words = max(1, -(-int(layout.count.max(initial=0)) // 64))
    masks = np.zeros((max(len(trees.goes_left), 1), words), dtype=np.uint64)
    # What a walk asks of a node stands side by side: its children, its column (−1 − p of categories), its cut or set.
    nodes = np.empty((len(trees.left), 4), dtype=np.int32)
    nodes[:, LEFT], nodes[:, RIGHT] = trees.left, trees.right
    nodes[:, COLUMN] = np.where(trees.group >= 0, -1 - trees.column, trees.column)
    nodes[:, CUT] = np.where(trees.group >= 0, trees.group, np.where(trees.cut > 0, 2**30, -1))
    for p, part in enumerate(cuts):
        at = used & (trees.column == p)
        nodes[at, CUT] = np.searchsorted(part, trees.cut[at])
    for node in np.flatnonzero(inner & (trees.group >= 0)):
        p, g = trees.column[node], trees.group[node]
        for code in np.flatnonzero(trees.goes_left[g, layout.its(p)]):
            masks[g, code // 64] |= np.uint64(1) << np.uint64(code % 64)
    # What is summed before any tree stands behind the last leaf.
    values = np.ascontiguousarray(np.concatenate([trees.values, trees.base[:, None]], axis=1))
    # The nodes of each column one after the other, so that a move of one column asks these alone.
    split = np.flatnonzero(inner)
    split = split[np.argsort(trees.column[split], kind="stable")]
    first = np.searchsorted(trees.column[split], np.arange(layout.n_columns + 1))
    asked = split.astype(np.int32), first.astype(np.int64)
    level, depth = trees.roots, 1
    while len(level):
        level = level[trees.left[level] >= 0]
        level = np.unique(np.concatenate([trees.left[level], trees.right[level]]))
        depth += 1
    arrays = trees.roots.astype(np.int64), nodes, masks, values, depth, *asked
    every = np.concatenate([*cuts, np.zeros(0)])
    return MoveArrays(True, arrays, _NO_LAYERS, about, every, columns, parts.n_components)


def layer_arrays(
    net: Layers, head: FloatArray, layout: TableLayout, loss: Loss, parts: Components
) -> MoveArrays:
    """Return a network with what its last layer adds to the components of every label; biases are last columns."""
    last = np.einsum("lck,cj->lkj", parts.mixing, head @ net.weights[-1])
    offset = np.einsum("lck,c->lk", parts.mixing, head @ net.biases[-1])
    hidden = [
        np.column_stack([weight, bias])
        for weight, bias in zip(net.weights[:-1], net.biases[:-1], strict=True)
    ]
    arrays = (
        np.ascontiguousarray(hidden[0] if hidden else np.zeros((0, layout.width + 1))),
        np.concatenate([np.zeros(0), *(layer.ravel() for layer in hidden[1:])]),
        np.array([len(layer) for layer in hidden], dtype=np.int64),
        np.ascontiguousarray(np.concatenate([last, offset[:, :, None]], axis=2)),
    )
    about, columns = _known(layout, loss, parts)
    return MoveArrays(False, _NO_TREES, arrays, about, np.zeros(0), columns, parts.n_components)
