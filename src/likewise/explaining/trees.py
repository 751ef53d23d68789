"""The cheapest change for a tree ensemble: best first over boxes of cells between thresholds.

Between two thresholds of a column all numbers go to the same leaves, so a number has as many options as it has cells, each
at the cost of its nearest possible value. A box is an interval of cells for every number and a set for every category; its
cheapest row is the cheapest option of every column. Boxes are opened in the order of that cost, so the first whose cheapest
row has the favourable decision is the optimum. A box whose highest reachable leaves do not add up to it is dropped.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.auditing.bounds.tree_tables import peaks
from likewise.auditing.bounds.trees import highest_leaf, packed, side_of
from likewise.core.checks import BoolArray, FloatArray
from likewise.core.compiled import compiled, fill
from likewise.explaining.engine import Ask, Effort, Least

if TYPE_CHECKING:
    from likewise.auditing.bounds.trees import TreeFamily
    from likewise.explaining.moves import Moves

_DENIED = 3
_EMPTY, _FOUND, _UNCLEAR, _FULL = 0, 1, 2, 4


@compiled
def _has(words, first, j):  # type: ignore[no-untyped-def]
    """Whether a set of categories, words from the first on, has one."""
    return (words[first + j // 64] >> np.uint64(j % 64)) & np.uint64(1) != 0


@compiled
def _goes_left(at, trees, first_word, pick):  # type: ignore[no-untyped-def]
    """Whether a row of options goes left at a node."""
    _, _, column, cut, group, words_left, _, _ = trees
    p = column[at]
    if group[at] < 0:
        return pick[p] <= cut[at]
    return _has(words_left[group[at]], first_word[p], pick[p])


@compiled
def _leaf(root, trees, first_word, pick):  # type: ignore[no-untyped-def]
    """The leaf of a row of options in one tree."""
    left, right = trees[0], trees[1]
    at = root
    while left[at] >= 0:
        at = left[at] if _goes_left(at, trees, first_word, pick) else right[at]
    return at


@compiled
def _worst(roots, base, trees, first_word, pick):  # type: ignore[no-untyped-def]
    """The component of a row of options that is furthest from favourable, and its number."""
    worst, number = np.inf, 0
    for k in range(base.shape[0]):
        total = base[k]
        for t in range(roots.shape[0]):
            total += trees[6][_leaf(roots[t], trees, first_word, pick), k]
        if total < worst:
            worst, number = total, k
    return worst, number


@compiled
def _reaches(roots, base, slack, rest, trees, first_word, low, high, words, stack):  # type: ignore[no-untyped-def]
    """Whether the leaves that a box reaches may add up to the favourable decision."""
    n_components = base.shape[0]
    for k in range(n_components):
        total = base[k]
        for t in range(roots.shape[0]):
            total += highest_leaf(roots[t], k, trees, first_word, low, high, words, stack)
            if total + rest[t + 1, k] < -slack:
                return False
    return True


@compiled
def _broken(pick, offset, clauses):  # type: ignore[no-untyped-def]
    """The first rule that a row of options breaks, or −1."""
    in_rule, holds = clauses
    for c in range(in_rule.shape[0]):
        all_hold = True
        for p in range(pick.shape[0]):
            if in_rule[c, p] and not holds[c, offset[p] + pick[p]]:
                all_hold = False
                break
        if all_hold:
            return c
    return -1


@compiled
def _cheapest(p, low, high, words, first_word, offset, count, is_category, own, costs):  # type: ignore[no-untyped-def]
    """The cheapest option of a column in a box, or −1."""
    if not is_category[p]:
        if low[p] <= own[p] <= high[p]:
            return own[p]
        if low[p] > own[p]:
            for j in range(low[p], high[p] + 1):
                if costs[offset[p] + j] < np.inf:
                    return j
        else:
            for j in range(high[p], low[p] - 1, -1):
                if costs[offset[p] + j] < np.inf:
                    return j
        return -1
    best = -1
    for j in range(count[p]):
        cost = costs[offset[p] + j]
        if _has(words, first_word[p], j) and cost < np.inf and (best < 0 or cost < costs[offset[p] + best]):
            best = j
    return best


@compiled
def _push(heap, size, key, at):  # type: ignore[no-untyped-def]
    """Put a box on the heap: the cheapest on top, the older of two equals."""
    i = size
    heap[i] = at
    while i > 0:
        up = (i - 1) // 2
        a, b = heap[up], heap[i]
        if key[a] < key[b] or (key[a] == key[b] and a < b):
            break
        heap[up], heap[i] = b, a
        i = up


@compiled
def _pop(heap, size, key):  # type: ignore[no-untyped-def]
    top = heap[0]
    heap[0] = heap[size - 1]
    size -= 1
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size:
            a, b = heap[child + 1], heap[child]
            if key[a] < key[b] or (key[a] == key[b] and a < b):
                child += 1
        a, b = heap[child], heap[i]
        if not (key[a] < key[b] or (key[a] == key[b] and a < b)):
            break
        heap[child], heap[i] = b, a
        i = child
    return top


@compiled
def _tighten(n, spare, boxes, table, person):  # type: ignore[no-untyped-def]
    """Take options out of a box that would make its cheapest row dearer by `spare` or more."""
    lows, highs, words, picks, _, _ = boxes
    first_word, offset, count, is_category = table
    own, costs = person
    for p in range(own.shape[0]):
        most = costs[offset[p] + picks[n, p]] + spare
        if is_category[p]:
            for j in range(count[p]):
                if not costs[offset[p] + j] < most:
                    words[n, first_word[p] + j // 64] &= ~(np.uint64(1) << np.uint64(j % 64))
        else:
            while highs[n, p] > picks[n, p] and not costs[offset[p] + highs[n, p]] < most:
                highs[n, p] -= 1
            while lows[n, p] < picks[n, p] and not costs[offset[p] + lows[n, p]] < most:
                lows[n, p] += 1


@compiled
def _add(n, p, boxes, heap, counts, best, model, table, person, clauses, stack):  # type: ignore[no-untyped-def]
    """Finish box n, of which column p was cut: its cheapest row, and whether it can be favourable at all."""
    lows, highs, words, picks, key, state = boxes
    roots, base, slack, rest, trees = model
    first_word, offset, count, is_category = table
    own, costs = person
    for q in range(own.shape[0]):
        if p < 0 or q == p:
            option = _cheapest(
                q, lows[n], highs[n], words[n], first_word, offset, count, is_category, own, costs
            )
            if option < 0:
                return
            picks[n, q] = option
    total = 0.0
    for q in range(own.shape[0]):
        total += costs[offset[q] + picks[n, q]]
    if total >= best[0][0]:
        return
    # Without a change that is known, at least what cannot be had at all goes.
    _tighten(n, best[0][0] - total, boxes, table, person)
    if not _reaches(roots, base, slack, rest, trees, first_word, lows[n], highs[n], words[n], stack):
        return
    key[n] = total
    worst = _worst(roots, base, trees, first_word, picks[n])[0]
    # Refused, surely favourable, or too near the line to say.
    state[n] = 0 if worst < -slack else 1 if worst > slack else 2
    if state[n] == 1 and _broken(picks[n], offset, clauses) < 0:
        best[0][0] = total
        fill(best[1], picks[n])
        # Nothing in this box is cheaper than its cheapest row.
        return
    _push(heap, counts[1], key, n)
    counts[1] += 1
    counts[0] += 1


@compiled
def _greedy(best, model, table, person, clauses):  # type: ignore[no-untyped-def]
    """A first favourable row: the option that gains most for its cost, again and again."""
    roots, base, slack, _rest, trees = model
    first_word, offset, count, _is_category = table
    own, costs = person
    pick = own.astype(np.int32)
    score = _worst(roots, base, trees, first_word, pick)[0]
    spent = 0.0
    for _ in range(8):
        column, option, rate = -1, -1, 0.0
        for p in range(own.shape[0]):
            before = pick[p]
            for j in range(count[p]):
                extra = costs[offset[p] + j] - costs[offset[p] + before]
                if j == before or not extra < best[0][0] - spent or extra <= 0.0:
                    continue
                pick[p] = j
                reached = _worst(roots, base, trees, first_word, pick)[0]
                if reached > slack and _broken(pick, offset, clauses) < 0:
                    best[0][0] = spent + extra
                    fill(best[1], pick)
                elif (reached - score) / extra > rate:
                    column, option, rate = p, j, (reached - score) / extra
            pick[p] = before
        if best[0][0] < np.inf or column < 0:
            return
        spent += costs[offset[column] + option] - costs[offset[column] + pick[column]]
        pick[column] = option
        score = _worst(roots, base, trees, first_word, pick)[0]


@compiled
def _cut_rule(n, c, boxes, table, clauses):  # type: ignore[no-untyped-def]
    """A column, and the last cell on the left, at which a broken rule is open in a box; −1 if it holds everywhere."""
    lows, highs, words, _, _, _ = boxes
    first_word, offset, count, is_category = table
    in_rule, holds = clauses
    for p in range(count.shape[0]):
        if not in_rule[c, p]:
            continue
        if is_category[p]:
            for j in range(count[p]):
                if _has(words[n], first_word[p], j) and not holds[c, offset[p] + j]:
                    return p, -1
        else:
            for j in range(lows[n, p], highs[n, p]):
                if holds[c, offset[p] + j] != holds[c, offset[p] + j + 1]:
                    return p, j
    return -1, -1


@compiled
def _cut_trees(n, boxes, model, table, waiting, gaps, nodes, stack):  # type: ignore[no-untyped-def]
    """The node to cut a box at: of the column that leaves most open, in the tree that leaves most open."""
    lows, highs, words, picks, _, _ = boxes
    roots, base, _slack, _rest, trees = model
    left, right, column, cut, group, words_left, values, peak = trees
    first_word = table[0]
    k = _worst(roots, base, trees, first_word, picks[n])[1]
    waiting[:] = 0.0
    for t in range(roots.shape[0]):
        nodes[t] = -1
        here = values[_leaf(roots[t], trees, first_word, picks[n]), k]
        gap = highest_leaf(roots[t], k, trees, first_word, lows[n], highs[n], words[n], stack) - here
        gaps[t] = gap
        if gap <= 0.0:
            continue
        at = roots[t]
        while left[at] >= 0:
            side = side_of(at, column, cut, group, words_left, first_word, lows[n], highs[n], words[n])
            goes = _goes_left(at, trees, first_word, picks[n])
            other = right[at] if goes else left[at]
            if side == 2 and peak[other, k] > here:
                nodes[t] = at
                waiting[column[at]] += gap
                break
            at = left[at] if goes else right[at]
    chosen = np.argmax(waiting)
    best, node = 0.0, -1
    for t in range(roots.shape[0]):
        if nodes[t] >= 0 and column[nodes[t]] == chosen and gaps[t] > best:
            best, node = gaps[t], nodes[t]
    return node


@compiled
def _open_column(n, boxes, table):  # type: ignore[no-untyped-def]
    """A column with more than one option left, and the last cell on the left; −1 if there is none."""
    lows, highs, words, picks, _, _ = boxes
    first_word, _offset, count, is_category = table
    for p in range(count.shape[0]):
        if is_category[p]:
            for j in range(count[p]):
                if _has(words[n], first_word[p], j) and j != picks[n, p]:
                    return p, -1
        elif highs[n, p] > lows[n, p]:
            return p, min(picks[n, p], highs[n, p] - 1)
    return -1, -1


@compiled
def _start(boxes, heap, counts, best, model, table, person, clauses, stack):  # type: ignore[no-untyped-def]
    """Find a first row, and put the whole domain on the heap."""
    lows, highs, words, _, _, _ = boxes
    first_word, _offset, count, is_category = table
    counts[:] = 0
    best[0][0] = np.inf
    _greedy(best, model, table, person, clauses)
    for p in range(count.shape[0]):
        lows[0, p], highs[0, p] = 0, count[p] - 1
        if is_category[p]:
            for w in range(first_word[p], first_word[p + 1]):
                words[0, w] = np.uint64(0)
            for j in range(count[p]):
                words[0, first_word[p] + j // 64] |= np.uint64(1) << np.uint64(j % 64)
    _add(0, -1, boxes, heap, counts, best, model, table, person, clauses, stack)


@compiled
def _advance(boxes, heap, counts, best, model, table, person, clauses, work, most):  # type: ignore[no-untyped-def]
    """Open boxes until an answer, `most` of them, or no room is left; counts: boxes, on the heap, opened."""
    lows, highs, words, picks, key, state = boxes
    first_word, offset, count, is_category = table
    trees = model[4]
    waiting, gaps, nodes, stack, marks = work
    opened = 0
    while counts[1] > 0:
        if key[heap[0]] >= best[0][0]:
            return 1, -1
        if opened >= most:
            return 3, -1
        if counts[0] + 2 > lows.shape[0]:
            return 4, -1
        n = _pop(heap, counts[1], key)
        counts[1] -= 1
        counts[2] += 1
        opened += 1
        rule = _broken(picks[n], offset, clauses)
        at = -1
        node = -1
        if rule >= 0:
            p, at = _cut_rule(n, rule, boxes, table, clauses)
            if p < 0:
                continue
        elif state[n] == 2:
            return 2, n
        elif state[n] == 3:
            p, at = _open_column(n, boxes, table)
            if p < 0:
                continue
        else:
            node = _cut_trees(n, boxes, model, table, waiting, gaps, nodes, stack)
            if node < 0:
                p, at = _open_column(n, boxes, table)
                if p < 0:
                    continue
            else:
                p = trees[2][node]
                at = trees[3][node]
        if is_category[p]:
            for w in range(first_word[p], first_word[p + 1]):
                marks[w] = np.uint64(0)
                if node >= 0:
                    marks[w] = trees[5][trees[4][node], w]
            if node < 0:
                for j in range(count[p]):
                    inside = clauses[1][rule, offset[p] + j] if rule >= 0 else j == picks[n, p]
                    if inside:
                        marks[first_word[p] + j // 64] |= np.uint64(1) << np.uint64(j % 64)
        for half in range(2):
            m = counts[0]
            fill(lows[m], lows[n])
            fill(highs[m], highs[n])
            fill(words[m], words[n])
            fill(picks[m], picks[n])
            if is_category[p]:
                for w in range(first_word[p], first_word[p + 1]):
                    words[m, w] = words[n, w] & (marks[w] if half == 0 else ~marks[w])
            elif half == 0:
                highs[m, p] = at
            else:
                lows[m, p] = at + 1
            _add(m, p, boxes, heap, counts, best, model, table, person, clauses, stack)
    if best[0][0] < np.inf:
        return 1, -1
    return 0, -1


class TreeEngine:
    """Least changes of a tree ensemble that was read and checked."""

    def __init__(self, family: TreeFamily, moves: Moves, favourable: int) -> None:
        self.moves, self.layout = moves, family.layout
        trees, layout = family.trees, family.layout
        inner = trees.left >= 0
        self.edges = [
            _edges(layout.columns[p], trees.cut[inner & (trees.group < 0) & (trees.column == p)], moves, p)
            for p in range(layout.n_columns)
        ]
        cells = [len(c.categories) or len(e) + 1 for c, e in zip(layout.columns, self.edges, strict=True)]
        self._count = np.array(cells, dtype=np.int64)
        self._offset = np.cumsum(self._count) - self._count
        words = np.where(layout.is_category, (self._count + 63) // 64, 0)
        self._first_word = np.append(0, np.cumsum(words)).astype(np.int64)
        cut = np.zeros(len(trees.left), dtype=np.int64)
        for p, edges in enumerate(self.edges):
            nodes = np.flatnonzero(inner & (trees.group < 0) & (trees.column == p))
            # −1: nothing goes left; the last cell: everything does.
            cut[nodes] = np.where(trees.cut[nodes] == -np.inf, -1, np.searchsorted(edges, trees.cut[nodes]))
        words_left = packed(trees.goes_left, layout.offset, layout.count, self._first_word)
        # All components below 0 are the favourable decision; here all must be above.
        values, base = -trees.values[favourable], -trees.base[favourable]
        peak = peaks(trees.left, trees.right, values[None])[0]
        rest = np.vstack([np.cumsum(peak[trees.roots][::-1], axis=0)[::-1], np.zeros((1, values.shape[1]))])
        arrays = (trees.left, trees.right, trees.column, cut, trees.group, words_left, values, peak)
        # The sums here are rounded as well.
        slack = 2.0 * float(trees.slack) + 1e-13 * (1.0 + float(np.abs(peak[trees.roots]).sum()))
        self._model = (trees.roots, base, slack, rest, arrays)
        self._table = (self._first_word, self._offset, self._count, layout.is_category)
        deepest = len(trees.left) + 2
        n_trees = len(trees.roots)
        self._work = (
            np.zeros(layout.n_columns), np.zeros(n_trees), np.zeros(n_trees, dtype=np.int64),
            np.zeros(min(deepest, 4096), dtype=np.int64), np.zeros(max(int(self._first_word[-1]), 1), dtype=np.uint64),
        )  # fmt: skip
        self._boxes, self._heap = self._room(1024)

    def _room(self, size: int) -> tuple[Any, Any]:
        p, w = self.layout.n_columns, int(self._first_word[-1])
        boxes = (
            np.zeros((size, p), dtype=np.int32), np.zeros((size, p), dtype=np.int32),
            np.zeros((size, w), dtype=np.uint64), np.zeros((size, p), dtype=np.int32),
            np.zeros(size), np.zeros(size, dtype=np.int8),
        )  # fmt: skip
        return boxes, np.zeros(size, dtype=np.int64)

    def options(self, rows: FloatArray) -> tuple[FloatArray, FloatArray, Any]:
        """Value and cost of every option of every person, (n, O) each, and the options they have, (n, P)."""
        n, total = len(rows), int(self._count.sum())
        values, costs = np.zeros((n, total)), np.full((n, total), np.inf)
        own = np.zeros((n, self.layout.n_columns), dtype=np.int64)
        at = np.arange(n)
        for p, column in enumerate(self.layout.columns):
            its = slice(int(self._offset[p]), int(self._offset[p] + self._count[p]))
            if column.categories:
                own[:, p] = rows[:, p].astype(np.int64)
                values[:, its] = np.arange(self._count[p])
                if self.moves.actions[p].actionable:
                    costs[:, its] = self.moves.actions[p].cost
            else:
                own[:, p] = np.searchsorted(self.edges[p], rows[:, p])
                values[:, its], costs[:, its] = self._cells(p, rows[:, p], own[:, p])
            values[at, its.start + own[:, p]], costs[at, its.start + own[:, p]] = rows[:, p], 0.0
        return values, costs, own

    def _cells(self, p: int, x: FloatArray, own: Any) -> tuple[FloatArray, FloatArray]:
        """The nearest possible number of every cell, and its cost, (n, cells) each."""
        edges, step = self.edges[p], self.moves.steps[p]
        n, cells = len(x), len(edges) + 1
        if not self.moves.actions[p].actionable or cells == 1:
            return np.tile(x[:, None], (1, cells)), np.full((n, cells), np.inf)
        below = np.append(-np.inf, edges)[None, :]
        above = np.append(edges, np.inf)[None, :]
        mine = x[:, None]
        right = np.arange(cells)[None, :] > own[:, None]
        # The first number above the cell's lower edge, or the last that is not above its upper one.
        with np.errstate(invalid="ignore"):
            steps = np.where(right, np.floor((below - mine) / step) + 1.0, np.floor((above - mine) / step))
        low, high = (ends[:, None] for ends in self.moves.ends(p, x))
        least = self.moves.outside(p, x)[:, None]
        steps = np.where(np.isfinite(steps), steps, 0.0)
        steps = np.where(right, np.maximum(steps, least), np.minimum(steps, -least))
        found = self.moves.stepped(p, mine, steps)
        for _ in range(2):
            # Rounding may leave it one step off.
            short, far = (
                right & ((found <= below) | (found < low)),
                ~right & ((found > above) | (found > high)),
            )
            steps = steps + short - far
            found = self.moves.stepped(p, mine, steps)
        near = self.moves.stepped(p, mine, np.where(right, steps - 1.0, steps + 1.0))
        nearer = np.where(right, (steps > 1) & (near > below), (steps < -1) & (near <= above))
        found = np.where(nearer & (near >= low) & (near <= high), near, found)
        inside = (found > below) & (found <= above) & (found >= low) & (found <= high)
        return found, np.where(inside, self.moves.number_costs(p, mine, found), np.inf)

    def least(
        self,
        own: FloatArray,
        fixed: BoolArray,
        ask: Ask,
        effort: Effort,
        *,
        fewest: bool = False,
        options: tuple[FloatArray, FloatArray, Any] | None = None,
    ) -> Least:
        """The cheapest change of one person; see `Engine`. `options` are the person's, if they are known already."""
        values, costs, at = options or (part[0] for part in self.options(own[None, :]))
        place = self._offset + at
        if fixed.any():
            costs = costs.copy()
            for p in np.flatnonzero(fixed).tolist():
                its = slice(int(self._offset[p]), int(self._offset[p] + self._count[p]))
                costs[its] = np.inf
            costs[place] = 0.0
        if fewest:
            costs = costs + self.moves.surcharge
            costs[place] = 0.0
        clauses = self._clauses(own)
        counts = np.zeros(3, dtype=np.int64)
        best = np.full(1, np.inf), np.zeros(len(own), dtype=np.int64)
        person, work = (at.astype(np.int64), costs), self._work
        _start(self._boxes, self._heap, counts, best, self._model, self._table, person, clauses, work[3])
        clock, asked = time.process_time(), 0
        while True:
            boxes, heap = self._boxes, self._heap
            most = min(2_000, effort.regions - int(counts[2]))
            kind, n = _advance(
                boxes, heap, counts, best, self._model, self._table, person, clauses, work, most
            )
            looked = int(counts[2])
            if kind == _EMPTY:
                return Least("none", np.inf, np.inf, None, looked)
            if kind == _FOUND:
                cost = float(best[0][0])
                return Least("proved", cost, cost, values[self._offset + best[1]], looked)
            if kind == _UNCLEAR:
                # So near the line that rounding decides: only the model itself can say.
                asked += 1
                found, cost = values[self._offset + boxes[3][n]], float(boxes[4][n])
                if ask(found[None, :])[0]:
                    return Least("proved", cost, cost, found, looked)
                boxes[5][n] = _DENIED
                _push(heap, int(counts[1]), boxes[4], n)
                counts[1] += 1
            elif kind == _FULL:
                self._grow()
            if looked >= effort.regions or asked > 1_000 or time.process_time() - clock > effort.seconds:
                break
        lower, cost = float(self._boxes[4][self._heap[0]]), float(best[0][0])
        found_row = None if np.isinf(cost) else values[self._offset + best[1]]
        return Least("bracket", cost, min(lower, cost), found_row, looked)

    def _grow(self) -> None:
        boxes, heap = self._room(2 * len(self._heap))
        for new, old in zip((*boxes, heap), (*self._boxes, self._heap), strict=True):
            new[: len(old)] = old
        self._boxes, self._heap = boxes, heap

    def _clauses(self, own: FloatArray) -> tuple[Any, Any]:
        """The rules that bind a person as masks of options."""
        active = self.moves.active(own)
        in_rule = np.zeros((len(active), self.layout.n_columns), dtype=bool)
        holds = np.zeros((len(active), int(self._count.sum())), dtype=bool)
        for c, clause in enumerate(active):
            for atom in clause:
                p = atom.column
                its = slice(int(self._offset[p]), int(self._offset[p] + self._count[p]))
                sample = np.arange(self._count[p]) if self.layout.is_category[p] else _inside(self.edges[p])
                now = atom.holds(np.asarray(sample, dtype=np.float64))
                holds[c, its] = holds[c, its] & now if in_rule[c, p] else now
                in_rule[c, p] = True
        return in_rule, holds


def _edges(column: Any, cuts: FloatArray, moves: Moves, p: int) -> FloatArray:
    """Last numbers of cells: thresholds of the trees, and numbers that rules name."""
    if column.categories:
        return np.zeros(0)
    in_rules = np.array(
        sorted({v for clause in moves.clauses for atom in clause if atom.column == p for v in atom.values})
    )
    before = in_rules - 1.0 if column.kind == "integer" else np.nextafter(in_rules, -np.inf)
    edges = np.unique(np.concatenate([cuts[np.isfinite(cuts)], in_rules, before]))
    return np.unique(np.floor(edges)) if column.kind == "integer" else edges


def _inside(edges: FloatArray) -> FloatArray:
    """A number of every cell: its upper edge; above the last one anything."""
    return np.append(edges, np.inf)
