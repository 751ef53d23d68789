"""Tree ensembles for the branch and bound: loss at the sum of the highest leaves, cuts at the trees' own splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from likewise.auditing.bounds.family import Components, Family, LossBound, MoveArrays
from likewise.auditing.bounds.regions import Regions, Split, TableLayout, halves
from likewise.auditing.bounds.shared_costs import LeafPaths, shared_costs
from likewise.auditing.bounds.tree_tables import FeatureSource, TableTrees
from likewise.auditing.search.person_moves import COLUMN, CUT, FIRST_CELL, FIRST_CUT, LEFT, RIGHT
from likewise.core.checks import FloatArray, IntArray
from likewise.core.compiled import compiled
from likewise.models.losses import Loss, Squared, ZeroOne
from likewise.models.tree_ensemble import TreeEnsemble

# Compiled walks through trees: the highest leaf that a region reaches, and the leaf of a row.


@compiled
def side_of(node, column, cut, group, left_words, first_word, low, high, words):  # type: ignore[no-untyped-def]
    """0 if a region goes left, 1 if it goes right, 2 where both."""
    p = column[node]
    g = group[node]
    if g < 0:
        if high[p] <= cut[node]:
            return 0
        return 1 if low[p] > cut[node] else 2
    some_left, some_right = False, False
    for w in range(first_word[p], first_word[p + 1]):
        if words[w] & left_words[g, w]:
            some_left = True
        if words[w] & ~left_words[g, w]:
            some_right = True
    if some_left and some_right:
        return 2
    return 0 if some_left else 1


@compiled
def _pack(flags, offset, count, first_word, words):  # type: ignore[no-untyped-def]
    """Flags of all categories as bits, each column from a word of its own."""
    words[:] = 0
    for p in range(len(count)):
        for c in range(count[p]):
            if flags[offset[p] + c] != 0:
                words[first_word[p] + c // 64] |= np.uint64(1) << np.uint64(c % 64)


@compiled
def packed(flags, offset, count, first_word):  # type: ignore[no-untyped-def]
    """Return flags (n, M) as words (n, W)."""
    words = np.zeros((len(flags), first_word[-1]), dtype=np.uint64)
    for i in range(len(flags)):
        _pack(flags[i], offset, count, first_word, words[i])
    return words


@compiled
def highest_leaf(at, k, trees, first_word, low, high, words, stack):  # type: ignore[no-untyped-def]
    """The highest component k of a leaf below a node that a region reaches."""
    left, right, column, cut, group, left_words, values, peak = trees
    best = -np.inf
    stack[0] = at
    size = 1
    while size > 0:
        size -= 1
        at = stack[size]
        if peak[at, k] <= best:
            continue
        if left[at] < 0:
            best = values[at, k]
            continue
        side = side_of(at, column, cut, group, left_words, first_word, low, high, words)
        if side == 0:
            stack[size] = left[at]
            size += 1
        elif side == 1:
            stack[size] = right[at]
            size += 1
        elif peak[left[at], k] > peak[right[at], k]:
            # The more promising side last, so that it is looked at first.
            stack[size] = right[at]
            stack[size + 1] = left[at]
            size += 2
        else:
            stack[size] = left[at]
            stack[size + 1] = right[at]
            size += 2
    return best


@compiled
def highest_leaves(trees, bits, low, high, allowed, label, start, state, top):  # type: ignore[no-untyped-def]
    """Find the highest leaf of every tree over every region."""
    left, right, column, cut, group, _, values, peak = trees
    offset, count, first_word, left_words = bits
    n, n_trees, width = top.shape
    stack = np.empty(4096, dtype=np.int64)
    words = np.empty(first_word[-1], dtype=np.uint64)
    for i in range(n):
        own = left, right, column, cut, group, left_words, values[label[i]], peak[label[i]]
        _pack(allowed[i], offset, count, first_word, words)
        for t in range(n_trees):
            node = np.int64(start[i, t])
            while left[node] >= 0:
                side = side_of(node, column, cut, group, left_words, first_word, low[i], high[i], words)
                if side == 2:
                    break
                node = left[node] if side == 0 else right[node]
            state[i, t] = node
            for k in range(width):
                top[i, t, k] = highest_leaf(node, k, own, first_word, low[i], high[i], words, stack)


@compiled
def leaves_of_rows(trees, first, rows, start, leaf):  # type: ignore[no-untyped-def]
    """Fill leaf (n, T) with the leaf of every row of values in every tree, from a node that it lies below."""
    left, right, column, cut, group, goes_left, _, _ = trees
    n, n_trees = leaf.shape
    for i in range(n):
        for t in range(n_trees):
            node = start[i, t]
            while left[node] >= 0:
                p = column[node]
                if group[node] < 0:
                    goes = rows[i, p] <= cut[node]
                else:
                    goes = goes_left[group[node], first[p] + int(rows[i, p])] != 0
                node = left[node] if goes else right[node]
            leaf[i, t] = node


_HARDLY = 1e-300
# Rows whose leaves are looked up at once.
_AT_ONCE = 4_096


class TreeFamily(Family):
    """Bounds of a tree ensemble's loss over regions of a table."""

    def __init__(
        self,
        trees: TreeEnsemble,
        layout: TableLayout,
        sources: Sequence[FeatureSource],
        loss: Loss,
        answered: float = 0.0,
    ) -> None:
        parts = Components.of(loss, trees.values.shape[1], probabilities=trees.kind == "probabilities")
        self.trees = t = TableTrees.of(trees, layout, sources, parts)
        super().__init__(layout, trees.kind, parts, t.slack, answered)
        self._outputs = trees.values, trees.base, trees.slack
        offset, count = layout.offset, layout.count
        first_word = np.append(0, np.cumsum((count + 63) // 64))
        self._bits = (offset, count, first_word, packed(t.goes_left, offset, count, first_word))
        self._walk = (t.left, t.right, t.column, t.cut, t.group, t.goes_left, t.values, t.peak)
        self.numbers = (*self._walk, t.roots, t.base)

    @cached_property
    def moves(self) -> MoveArrays:
        """The trees for a search by moves: every cut a place among the cuts of its column, every set of categories bits."""
        trees, layout = self.trees, self.layout
        inner = trees.left >= 0
        used = inner & (trees.group < 0) & np.isfinite(trees.cut)
        cuts = [np.unique(trees.cut[used & (trees.column == p)]) for p in range(layout.n_columns)]
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
        level, depth = trees.roots, 1
        while len(level):
            level = level[trees.left[level] >= 0]
            level = np.unique(np.concatenate([trees.left[level], trees.right[level]]))
            depth += 1
        asked = split.astype(np.int32), first.astype(np.int64)
        found = self._move_arrays(trees=(trees.roots.astype(np.int64), nodes, masks, values, depth, *asked))
        found.columns[1:, FIRST_CUT] = np.cumsum([len(part) for part in cuts])
        # Cells of a column: its categories, or one more than its cuts; and one where the sums of differences end.
        count = np.where(layout.is_category, layout.count, np.diff(found.columns[:, FIRST_CUT]) + 1)
        found.columns[1:, FIRST_CELL] = np.cumsum(count + 1)
        return replace(found, cuts=np.concatenate([*cuts, np.zeros(0)]))

    def state(self, n: int) -> IntArray:
        """Every tree at its root, (n, T)."""
        return np.tile(self.trees.roots.astype(np.int32), (n, 1))

    def bound(self, regions: Regions, origin: FloatArray, targets: Any, state: Any) -> LossBound:
        """Upper bound of the loss over each region, and where each tree stands there."""
        label = self.parts.labels(targets)
        reached = np.empty_like(state)
        top = np.empty((*state.shape, self.parts.n_components))
        highest_leaves(
            self._walk,
            self._bits,
            regions.low,
            regions.high,
            regions.allowed,
            label,
            state,
            reached,
            top,
        )
        highest = top.sum(axis=1) + self.trees.base[label] + self._within
        same = (self.trees.left[reached] < 0).all(axis=1)
        return LossBound(self._highest_losses(highest, targets), None, reached, (top, highest), same)

    def priced(
        self,
        regions: Regions,
        origin: FloatArray,
        targets: Any,
        bound: LossBound,
        separable: tuple[float, FloatArray],
        price: float,
        attained: FloatArray,
    ) -> FloatArray:
        """Upper bound of loss − λ d² over each region that takes into account how far away high leaves are.

        Rows that do not beat what is attained may exceed it. A loss that is convex in its one component lies below its
        chord between the component at which it reaches that value and the highest one within reach.
        """
        nothing = np.full(len(regions), np.inf)
        if self._paths is None or self.parts.n_components != 1 or isinstance(self.parts.loss, Squared):
            return nothing
        label, highest = self.parts.labels(targets), bound.extra[1][:, 0]
        flips = isinstance(self.parts.loss, ZeroOne)
        factors = np.array([1.0, 4.0, 16.0] if flips else [0.25, 1.0])
        prices = np.tile(price * factors, (len(regions), 1))
        sums = self._sums(regions, origin, label, separable, prices, bound.state)
        if flips:
            # Another decision has a component of at least 0: so far away is it.
            away = np.maximum(-sums / prices, 0.0).max(axis=1)
            return np.asarray(np.minimum(bound.upper, np.maximum(1.0 - price * away, 0.0)))
        # Whoever beats what is attained is no further away than this, and no higher.
        reach = np.maximum(bound.upper - attained, 0.0) / price
        top = np.minimum(highest, (sums + prices * reach[:, None]).min(axis=1))
        floor = self.parts.least_component(np.maximum(attained, 1e-15), self._answered)
        # Where the loss is clipped, or probabilities are answered as 0, it is not convex: such a component, if it is within
        # reach at all, has the highest loss there is, as far away as it is.
        limit = self.parts.loss.upper_bound
        if self._answered:
            limit = min(limit, -np.log(2.0 * self._answered))
        brink = self.parts.least_component(np.full(len(floor), 0.9 * limit), self._answered)
        beyond = np.maximum(((np.minimum(brink, top)[:, None] - sums) / prices).max(axis=1), 0.0)
        last = np.where(top > brink, bound.upper - price * beyond, -np.inf)
        top = np.minimum(top, brink)
        ends = [self._highest_losses(component[:, None], targets) for component in (floor, top)]
        with np.errstate(invalid="ignore", divide="ignore"):
            rise = np.where(top > floor, (ends[1] - ends[0]) / (top - floor), 0.0)
        # sup of b·f − λ d² is b times the sup at the price λ / b, which falls as the price rises.
        steep = np.flatnonzero(rise > 1.0)
        highest_sum = sums[:, 1].copy()
        if len(steep):
            at_slope = (price / rise[steep])[:, None]
            part = regions.take(steep)
            given = part, origin[steep], label[steep], separable, at_slope, bound.state[steep]
            highest_sum[steep] = self._sums(*given)[:, 0]
        chord = ends[0] + rise * np.maximum(highest_sum - floor, 0.0)
        found = np.maximum(np.where(top <= floor, ends[0], np.minimum(chord, ends[1])), last)
        return np.asarray(found + 1e-9 * (1.0 + np.abs(found)))

    def _sums(
        self,
        regions: Regions,
        origin: FloatArray,
        label: IntArray,
        separable: tuple[float, FloatArray],
        prices: FloatArray,
        state: Any,
    ) -> FloatArray:
        """Upper bounds of the component less price · d², as high as the model's rounding allows."""
        assert self._paths is not None
        leaves = self.trees.values[:, :, 0]
        sums = shared_costs(
            self._paths, leaves, state, self.layout, separable, regions, origin, label, prices
        )
        return np.asarray(sums + self.trees.base[label] + self._within)

    @cached_property
    def _paths(self) -> LeafPaths | None:
        return LeafPaths.of(self.trees, self.layout)

    def decide(self, regions: Regions, state: Any) -> tuple[Any, FloatArray, Any]:
        """The one decision of all rows of each region or −1, how much each column matters, and the state."""
        label = np.full(len(regions), -1, dtype=np.int64)
        spread = np.zeros(state.shape)
        for y in range(len(self.trees.base)):
            bound = self.bound(regions, np.zeros(0), np.full(len(regions), y), state)
            top, highest = bound.extra
            label[(highest + self.slack < 0).all(axis=1)] = y
            state = bound.state
            # Highest leaf of one label minus that of another: what the tree leaves open.
            spread += top.sum(axis=2)
        undecided = self.trees.left[state] >= 0
        column = self.trees.column[state]
        importance = np.zeros((len(regions), self.layout.n_columns))
        rows = np.arange(len(regions))[:, None]
        np.add.at(importance, (rows, column), np.where(undecided, np.maximum(spread, 1e-12), 0.0))
        return label, importance, state

    def outputs(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What the trees add up to at rows of values, (n, C), and how far the model's own sum may lie from it, (n,)."""
        leaves, base, slack = self._outputs
        total = np.tile(base, (len(values), 1))
        for first in range(0, len(values), _AT_ONCE):
            part = values[first : first + _AT_ONCE]
            total[first : first + len(part)] += leaves[self._leaves(part, self.state(len(part)))].sum(axis=1)
        return total, np.full(len(values), slack)

    def split_rows(self, base: FloatArray, rng: np.random.Generator, most: int) -> FloatArray:
        """Rows on both sides of the trees' splits."""
        return self.trees.split_rows(self.layout, base, rng, most)

    def decisions(self, values: FloatArray) -> Any:
        """The decision of rows of values, (n,); −1 if the model's rounding leaves it open."""
        leaf = self._leaves(values, self.state(len(values)))
        label = np.full(len(values), -1, dtype=np.int64)
        for y in range(len(self.trees.base)):
            components = self.trees.values[y, leaf].sum(axis=1) + self.trees.base[y]
            label[(components < -self.trees.slack).all(axis=1)] = y
        return label

    def cuts(self, regions: Regions, column: Any, values: FloatArray) -> Split:
        """Cut a column where the first tree that waits for it does, else in the middle."""
        state = self.bound(regions, np.zeros(0), np.zeros(len(regions)), self.state(len(regions))).state
        waits = (self.trees.left[state] >= 0) & (self.trees.column[state] == np.asarray(column)[:, None])
        tree = waits.argmax(axis=1)
        rows = np.arange(len(regions))
        node, found = state[rows, tree], waits[rows, tree]
        split = halves(self.layout, regions, np.asarray(column), values)
        split.cut[found] = self.trees.cut[node[found]]
        among = found & (self.trees.group[node] >= 0)
        split.left[among] = self.trees.goes_left[self.trees.group[node[among]]]
        return split

    def reads(self, column: int) -> bool:
        """Whether any tree splits by a column."""
        return bool((self.trees.column[self.trees.left >= 0] == column).any())

    def _components(self, values: FloatArray, label: IntArray) -> FloatArray:
        return self._sums_at(self._leaves(values, self.state(len(values))), label)

    def _rounding(self, values: FloatArray) -> float:
        return self.trees.slack

    def look(
        self, regions: Regions, targets: Any, bound: LossBound, values: FloatArray
    ) -> tuple[FloatArray, FloatArray, Split]:
        """Loss at a row of each region, how much the trees leave open there, and where to cut.

        Of the trees whose first open split is on one column, the one whose highest reachable leaf is furthest above
        its leaf at the row says where.
        """
        leaf = self._leaves(values, bound.state)
        label = self.parts.labels(targets)
        top, highest = bound.extra
        weights = self.parts.weights(highest, targets)
        at = self.trees.values[label[:, None], leaf]
        gap = ((top - at) * weights[:, None, :]).sum(axis=2)
        rows = np.arange(len(leaf))
        # Trees that wait for the same column are decided together: cut the column that they leave most open.
        column = self.trees.column[bound.state]
        undecided = self.trees.left[bound.state] >= 0
        waiting = np.zeros((len(leaf), self.layout.n_columns))
        # A tree whose leaves are equally high still rounds its sum one way or another.
        np.add.at(waiting, (rows[:, None], column), np.where(undecided, np.maximum(gap, _HARDLY), 0.0))
        wanted = undecided & (column == waiting.argmax(axis=1)[:, None])
        tree = np.where(wanted, gap, -1.0).argmax(axis=1)
        node = bound.state[rows, tree]
        cuttable = self.trees.left[node] >= 0
        chosen = np.where(cuttable, self.trees.column[node], -1)
        group = self.trees.group[node]
        left = np.zeros((len(leaf), self.layout.n_categories), dtype=np.uint8)
        among = cuttable & (group >= 0)
        left[among] = self.trees.goes_left[group[among]]
        losses = self.parts.losses(self._sums_at(leaf, label), targets)
        return losses, np.asarray(bound.upper - losses), Split(chosen, self.trees.cut[node], left)

    def _leaves(self, values: FloatArray, state: Any) -> IntArray:
        leaf = np.empty(state.shape, dtype=np.int64)
        leaves_of_rows(self._walk, self.layout.offset, values, state, leaf)
        return leaf

    def _sums_at(self, leaf: IntArray, label: IntArray) -> FloatArray:
        """Components of rows that reach some leaves."""
        return np.asarray(self.trees.values[label[:, None], leaf].sum(axis=1) + self.trees.base[label])
