"""What every move of one column does to a person, for models that were read: all values of all columns in one pass.

Trees: a column is set free below each split of the person's own path, and what the leaves there add is booked for the
values that lead to them; one pass costs a few predictions, whatever the number of values. Networks: the sums of the first
layer are kept, and a move changes them by one weight. Moves change components: what the loss is made of, for the person's
label (`family.Components`). Few arrays go through the compiled functions: with many of them compiling takes minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.core.checks import FloatArray, IntArray
from likewise.core.compiled import compiled
from likewise.models.losses import CrossEntropy, Hinge, Loss, Squared, ZeroOne

if TYPE_CHECKING:
    from likewise.auditing.bounds.family import Components
    from likewise.auditing.bounds.regions import TableLayout
    from likewise.auditing.bounds.tree_tables import TableTrees
    from likewise.models.layers import Layers

# What is known of a column: its first encoded column, whether it is one-hot, how many categories it has (0 of a number),
# where its cuts and its cells begin, its first option, and whether places between options are tried (2: whole numbers).
START, HOT, COUNT, FIRST_CUT, FIRST_CELL, FIRST_OPTION, SMOOTH = range(7)
# What is known of an option: its value, its place in the encoding, whether it can be used, and what it adds to the
# squared length and (from the last on) to Qᵀδ.
VALUE, PLACE, USABLE, LENGTH, SHIFT = range(5)
# How components become a loss.
_SCORES, _PROBABILITIES, _HINGE, _DECISIONS, _SQUARED = range(5)
_LEFT, _RIGHT, _COLUMN, _CUT = range(4)


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


def columns_of(layout: TableLayout) -> IntArray:
    """Return what is known of columns, (P + 1, 7); the last row closes what begins with a column."""
    found = np.zeros((layout.n_columns + 1, 7), dtype=np.int64)
    for p, column in enumerate(layout.columns):
        found[p, START], found[p, HOT], found[p, COUNT] = (
            column.start,
            column.width > 1,
            len(column.categories),
        )
    return found


def _loss_arrays(loss: Loss, parts: Components) -> tuple[Any, ...]:
    """How components become a loss."""
    if isinstance(loss, CrossEntropy):
        code = _PROBABILITIES if parts.probabilities else _SCORES
        return code, float(loss.floor), float(loss.upper_bound), parts.ties
    codes = {Hinge: _HINGE, ZeroOne: _DECISIONS, Squared: _SQUARED}
    return codes[type(loss)], 0.0, np.inf, parts.ties


@compiled
def loss_of(loss, components, at, label, target):  # type: ignore[no-untyped-def]
    """Loss of one row of components (M, K) under a label; views of arrays would cost more than the loss."""
    code, floor, ceiling, ties = loss
    if code == _PROBABILITIES:
        return min(max(-np.log(max(-components[at, 0], floor)), 0.0), ceiling)
    if code == _SQUARED:
        over = max(max(components[at, 0] - target, components[at, 1] + target), 0.0)
        return over * over
    top, count = components[at, 0], components.shape[1]
    for k in range(1, count):
        top = max(top, components[at, k])
    if code == _SCORES:
        top = max(top, 0.0)
        rest = np.exp(-top)
        for k in range(count):
            rest += np.exp(components[at, k] - top)
        return min(max(top + np.log(rest), 0.0), ceiling)
    if code == _HINGE:
        return max(1.0 + top, 0.0)
    for k in range(count):
        if components[at, k] > 0.0 or (ties[label, k] and components[at, k] == 0.0):
            return 1.0
    return 0.0


# ---- trees -----------------------------------------------------------------------------------------------


def tree_arrays(trees: TableTrees, layout: TableLayout, loss: Loss, parts: Components) -> MoveArrays:
    """Return trees with every cut as a place among the cuts of its column, every set of categories as bits."""
    inner = trees.left >= 0
    used = inner & (trees.group < 0) & np.isfinite(trees.cut)
    columns = columns_of(layout)
    cuts = [np.unique(trees.cut[used & (trees.column == p)]) for p in range(layout.n_columns)]
    columns[1:, FIRST_CUT] = np.cumsum([len(part) for part in cuts])
    # Cells of a column: its categories, or one more than its cuts; and one where the sums of differences end.
    count = np.where(layout.is_category, layout.count, np.diff(columns[:, FIRST_CUT]) + 1)
    columns[1:, FIRST_CELL] = np.cumsum(count + 1)
    words = max(1, -(-int(layout.count.max(initial=0)) // 64))
    masks = np.zeros((max(len(trees.goes_left), 1), words), dtype=np.uint64)
    # What a walk asks of a node stands side by side: its children, its column (−1 − p of categories), its cut or set.
    nodes = np.empty((len(trees.left), 4), dtype=np.int32)
    nodes[:, _LEFT], nodes[:, _RIGHT] = trees.left, trees.right
    nodes[:, _COLUMN] = np.where(trees.group >= 0, -1 - trees.column, trees.column)
    nodes[:, _CUT] = np.where(trees.group >= 0, trees.group, np.where(trees.cut > 0, 2**30, -1))
    for p, part in enumerate(cuts):
        at = used & (trees.column == p)
        nodes[at, _CUT] = np.searchsorted(part, trees.cut[at])
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
    arrays = trees.roots.astype(np.int64), nodes, masks, values, _depth(trees) + 1, *asked
    every = np.concatenate([*cuts, np.zeros(0)])
    return MoveArrays(True, arrays, _NO_LAYERS, _loss_arrays(loss, parts), every, columns, parts.n_components)


def _depth(trees: TableTrees) -> int:
    level, depth = trees.roots, 0
    while len(level):
        level = level[trees.left[level] >= 0]
        level = np.unique(np.concatenate([trees.left[level], trees.right[level]]))
        depth += 1
    return depth


@compiled
def follow(trees, cell, held, way):  # type: ignore[no-untyped-def]
    """Fill way (N,) with the child that a row goes to, of the nodes whose column is not held at the row's cell yet."""
    _, nodes, masks, _, _, split, first = trees
    for p in range(len(cell)):
        at = cell[p]
        if held[p] == at:
            continue
        held[p] = at
        word, bit = at // 64, np.uint64(at % 64)
        for i in range(first[p], first[p + 1]):
            node = split[i]
            cut = nodes[node, _CUT]
            if nodes[node, _COLUMN] >= 0:
                way[node] = nodes[node, _LEFT] if at <= cut else nodes[node, _RIGHT]
            else:
                left = (masks[cut, word] >> bit) & np.uint64(1) != np.uint64(0)
                way[node] = nodes[node, _LEFT] if left else nodes[node, _RIGHT]


@compiled
def tree_components(trees, way, label, found):  # type: ignore[no-untyped-def]
    """Fill found (K,) with the components of a row, given by the ways it goes."""
    roots, nodes, _, values, _, _, _ = trees
    for k in range(len(found)):
        found[k] = values[label, len(nodes), k]
    for t in range(len(roots)):
        node = roots[t]
        while way[node] >= 0:
            node = way[node]
        for k in range(len(found)):
            found[k] += values[label, node, k]


@compiled
def _explore(trees, columns, way, label, leaf, node, column, begin, end, waiting, sets, total):  # type: ignore[no-untyped-def]
    """Book what a column adds if it takes the cells begin to end, or the categories of sets[0], below a node."""
    _, nodes, masks, values, _, _, _ = trees
    first, n_words = columns[column if column >= 0 else -1 - column, FIRST_CELL], sets.shape[1]
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = node, begin, end
    size = 1
    while size > 0:
        size -= 1
        node, low, high = waiting[size, 0], waiting[size, 1], waiting[size, 2]
        while way[node] >= 0:
            if nodes[node, _COLUMN] != column:
                node = way[node]
                continue
            cut = nodes[node, _CUT]
            if column >= 0:
                if low <= cut < high:
                    waiting[size, 0], waiting[size, 1], waiting[size, 2] = nodes[node, _RIGHT], cut + 1, high
                    size += 1
                    high = cut
                node = nodes[node, _LEFT if high <= cut else _RIGHT]
            else:
                some_left, some_right = False, False
                for w in range(n_words):
                    some_left = some_left or sets[size, w] & masks[cut, w] != np.uint64(0)
                    some_right = some_right or sets[size, w] & ~masks[cut, w] != np.uint64(0)
                if some_left and some_right:
                    # What goes left stays in work, one place up; the rest waits here.
                    for w in range(n_words):
                        sets[size + 1, w] = sets[size, w] & masks[cut, w]
                        sets[size, w] = sets[size, w] & ~masks[cut, w]
                    waiting[size, 0] = nodes[node, _RIGHT]
                    size += 1
                node = nodes[node, _LEFT if some_left else _RIGHT]
        for k in range(total.shape[1]):
            adds = values[label, node, k] - values[label, leaf, k]
            if column >= 0:
                # Summed up in the end.
                total[first + low, k] += adds
                total[first + high + 1, k] -= adds
                continue
            for w in range(n_words):
                left, at = sets[size, w], first + 64 * w
                while left != np.uint64(0):
                    if left & np.uint64(1) != np.uint64(0):
                        total[at, k] += adds
                    left = left >> np.uint64(1)
                    at += 1


@compiled
def tree_moves(trees, columns, way, label, column_of, cells, out):  # type: ignore[no-untyped-def]
    """Fill out (M + 1, K) with the components if one column takes each option's cell; the last are the row's own."""
    roots, nodes, masks, values, depth, _, _ = trees
    n_columns, n_words, n_parts = len(columns) - 1, masks.shape[1], out.shape[1]
    found = out[len(column_of)]
    total = np.zeros((columns[n_columns, FIRST_CELL], n_parts))
    # Which values of each column lead along the path so far: first and last cell, or a set of categories.
    seen, reach = np.full(n_columns, -1, np.int64), np.zeros((n_columns, 2), np.int64)
    kept, sets = np.zeros((n_columns, n_words), np.uint64), np.zeros((depth + 3, n_words), np.uint64)
    every = np.zeros((n_columns, n_words), np.uint64)
    for p in range(n_columns):
        for code in range(columns[p, COUNT]):
            every[p, code // 64] |= np.uint64(1) << np.uint64(code % 64)
    path, waiting = np.zeros(depth, np.int64), np.zeros((depth + 2, 3), np.int64)
    for k in range(n_parts):
        found[k] = values[label, len(nodes), k]
    for t in range(len(roots)):
        leaf, steps = roots[t], 0
        while way[leaf] >= 0:
            path[steps] = leaf
            steps += 1
            leaf = way[leaf]
        for k in range(n_parts):
            found[k] += values[label, leaf, k]
        for i in range(steps):
            node = path[i]
            goes = way[node] == nodes[node, _LEFT]
            column, cut = nodes[node, _COLUMN], nodes[node, _CUT]
            p = column if column >= 0 else -1 - column
            if seen[p] != t:
                seen[p] = t
                reach[p, 0], reach[p, 1] = 0, columns[p + 1, FIRST_CELL] - columns[p, FIRST_CELL] - 2
                for w in range(n_words):
                    kept[p, w] = every[p, w]
            some, begin, end = False, reach[p, 0], reach[p, 1]
            if column < 0:
                for w in range(n_words):
                    mask = masks[cut, w] if goes else ~masks[cut, w]
                    sets[0, w] = kept[p, w] & ~mask
                    kept[p, w] = kept[p, w] & mask
                    some = some or sets[0, w] != np.uint64(0)
            elif goes:
                some, begin, reach[p, 1] = end > cut, max(begin, cut + 1), min(end, cut)
            else:
                some, end, reach[p, 0] = begin <= cut, min(end, cut), max(begin, cut + 1)
            if some:
                other = nodes[node, _RIGHT if goes else _LEFT]
                _explore(trees, columns, way, label, leaf, other, column, begin, end, waiting, sets, total)
    for p in range(n_columns):
        if columns[p, COUNT] == 0:
            for c in range(columns[p, FIRST_CELL] + 1, columns[p + 1, FIRST_CELL]):
                for k in range(n_parts):
                    total[c, k] += total[c - 1, k]
    for o in range(len(column_of)):
        for k in range(n_parts):
            out[o, k] = found[k] + total[columns[column_of[o], FIRST_CELL] + cells[o], k]


_NO_TREES = (
    np.zeros(0, dtype=np.int64),
    np.zeros((0, 4), dtype=np.int32),
    np.zeros((0, 1), dtype=np.uint64),
    np.zeros((0, 0, 0)),
    0,
    np.zeros(0, dtype=np.int32),
    np.zeros(1, dtype=np.int64),
)

# ---- networks --------------------------------------------------------------------------------------------


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
    about = _loss_arrays(loss, parts), np.zeros(0), columns_of(layout), parts.n_components
    return MoveArrays(False, _NO_TREES, arrays, *about)


@compiled
def _forward(layers, label, begin, width, one, two, out):  # type: ignore[no-untyped-def]
    """Fill rows of out (M, K) from `begin` on, from what leaves the first layer, one (H, width)."""
    _, weights, sizes, last = layers
    at, sums = 0, np.empty(width)
    for layer in range(1, len(sizes)):
        inputs = sizes[layer - 1]
        for i in range(sizes[layer]):
            for o in range(width):
                sums[o] = weights[at + inputs]
            for j in range(inputs):
                for o in range(width):
                    sums[o] += weights[at + j] * one[j, o]
            for o in range(width):
                two[i, o] = max(sums[o], 0.0)
            at += inputs + 1
        one, two = two, one
    inputs = last.shape[2] - 1
    for k in range(out.shape[1]):
        for o in range(width):
            sums[o] = last[label, k, inputs]
        for j in range(inputs):
            for o in range(width):
                sums[o] += last[label, k, j] * one[j, o]
        for o in range(width):
            out[begin + o, k] = sums[o]


@compiled
def _moved_sums(first, columns, place, sums, p, option, least, one):  # type: ignore[no-untyped-def]
    """Fill one (H, width) with what leaves the first layer if column p takes the places of its options."""
    begin, start = columns[p, FIRST_OPTION], columns[p, START]
    width, hot = columns[p + 1, FIRST_OPTION] - begin, columns[p, HOT] != 0
    moved = np.empty(width)
    for o in range(width):
        moved[o] = option[begin + o, PLACE] - place[p]
    for j in range(len(sums)):
        if hot:
            rest = sums[j] - first[j, start + int(place[p])]
            for o in range(width):
                one[j, o] = max(rest + first[j, start + int(option[begin + o, PLACE])], least)
        else:
            for o in range(width):
                one[j, o] = max(sums[j] + first[j, start] * moved[o], least)
    return width


@compiled
def layer_moves(layers, columns, place, label, listed, option, out):  # type: ignore[no-untyped-def]
    """Fill out (M + 1, K) with the components if a listed column takes each option's place; the last are the row's own.

    What enters the first layer of a linear model are the components themselves.
    """
    first, _, sizes, last = layers
    linear = len(sizes) == 0
    first = last[label] if linear else first
    widest, highest = 1, len(first)
    for i in range(len(listed)):
        p = listed[i]
        widest = max(widest, columns[p + 1, FIRST_OPTION] - columns[p, FIRST_OPTION])
    for i in range(len(sizes)):
        highest = max(highest, sizes[i])
    one, two, sums = np.empty((highest, widest)), np.empty((highest, widest)), np.empty(len(first))
    least = -np.inf if linear else 0.0
    for j in range(len(sums)):
        sums[j] = first[j, first.shape[1] - 1]
        for p in range(len(place)):
            start = columns[p, START]
            sums[j] += first[j, start + int(place[p])] if columns[p, HOT] != 0 else place[p] * first[j, start]
    for i in range(-1, len(listed)):
        begin, width = len(out) - 1, 1
        if i >= 0:
            begin = columns[listed[i], FIRST_OPTION]
            width = _moved_sums(first, columns, place, sums, listed[i], option, least, one)
        else:
            for j in range(len(sums)):
                one[j, 0] = max(sums[j], least)
        if linear:
            for k in range(len(sums)):
                for o in range(width):
                    out[begin + o, k] = one[k, o]
        else:
            _forward(layers, label, begin, width, one, two, out)


_NO_LAYERS = (
    np.zeros((0, 0)),
    np.zeros(0),
    np.zeros(0, dtype=np.int64),
    np.zeros((0, 0, 0)),
)
