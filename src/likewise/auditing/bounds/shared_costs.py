"""The highest sum of leaves less its price, over a region: every tree pays a share of every column's distance.

The highest leaves of different trees lie at different rows, each far away in some column, and their plain sum ignores
what it costs to get there. For shares α_tp ≥ 0 with Σ_t α_tp = 1 for every column p,

    sup over x of  Σ_t v_t(x) − λ d²(x)  ≤  Σ_t max over leaves of  v − λ Σ_p α_tp c_p(leaf),

where c_p(leaf) is the least that column p can add to d² on the leaf's part of the region (a Lagrangian relaxation of "all
trees see one row"). Any shares give a bound; a few steps of exponentiated gradient find good ones.

Distances are made separable: with μ one of the eigenvalues of Σ and P the projection on the directions whose eigenvalue is
smaller, d²(δ) ≥ μ ‖δ − Pδ‖² ≥ μ Σ_j dist(δ_j, [range of (Pδ)_j over the region])².
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.bounds.regions import (
    MetricArrays,
    Regions,
    TableLayout,
    encode_number,
    encoded_box,
    rounding_at,
)
from likewise.auditing.bounds.tree_tables import TableTrees
from likewise.core.checks import FloatArray, IntArray
from likewise.core.compiled import compiled

# Leaves with their conditions, at most: a forest of unpruned trees has far more, and does without.
_MOST = 60_000
_STEPS = 8


@dataclass(frozen=True, eq=False)
class LeafPaths:
    """Every leaf with the conditions that lead to it, one for each column."""

    first: IntArray
    below: IntArray
    leaf: IntArray
    start: IntArray
    condition: IntArray
    column: IntArray
    low: FloatArray
    high: FloatArray
    mask: IntArray
    masks: np.ndarray[Any, np.dtype[np.uint8]]

    @classmethod
    def of(cls, trees: TableTrees, layout: TableLayout) -> LeafPaths | None:
        """Walk every path of every tree; None if there are too many."""
        first, leaf, start, condition = [0], list[int](), [0], list[int]()
        column, mask, masks = list[int](), list[int](), list[Any]()
        low, high = list[float](), list[float]()
        known_as: dict[tuple[Any, ...], int] = {}
        owner = np.repeat(np.arange(layout.n_columns), layout.count)
        own = [(owner == p).astype(np.uint8) for p in range(layout.n_columns)]
        begin, end = np.full(len(trees.left), -1), np.full(len(trees.left), -1)
        for root in trees.roots:
            stack: list[tuple[int, dict[int, Any] | None]] = [(int(root), {})]
            while stack:
                node, known = stack.pop()
                if known is None:
                    end[node] = len(leaf)
                    continue
                # A node with several ways to it has leaves in several places.
                begin[node] = len(leaf) if begin[node] == -1 else -2
                stack.append((node, None))
                if trees.left[node] < 0:
                    for p, (a, b, allowed) in known.items():
                        key = (p, a, b, None if allowed is None else allowed.tobytes())
                        if key not in known_as:
                            known_as[key] = len(column)
                            column.append(p)
                            low.append(a)
                            high.append(b)
                            mask.append(-1 if allowed is None else len(masks))
                            if allowed is not None:
                                masks.append(allowed)
                        condition.append(known_as[key])
                    leaf.append(node)
                    start.append(len(condition))
                    if len(leaf) > _MOST:
                        return None
                    continue
                p, group, cut = int(trees.column[node]), int(trees.group[node]), float(trees.cut[node])
                a, b, allowed = known.get(p, (-np.inf, np.inf, None))
                if group >= 0:
                    goes = trees.goes_left[group]
                    every = own[p] if allowed is None else allowed
                    for child, left in (
                        (trees.left[node], every & goes),
                        (trees.right[node], every & (1 - goes)),
                    ):
                        if left.any():
                            stack.append((int(child), known | {p: (a, b, left)}))
                    continue
                after = cut + 1.0 if layout.is_integer[p] else float(np.nextafter(cut, np.inf))
                if min(b, cut) >= a:
                    stack.append((int(trees.left[node]), known | {p: (a, min(b, cut), None)}))
                if max(a, after) <= b:
                    stack.append((int(trees.right[node]), known | {p: (max(a, after), b, None)}))
            first.append(len(leaf))
        ends = np.stack([np.maximum(begin, -1), np.where(begin >= 0, end, -1)], axis=1)
        return cls(
            np.array(first),
            ends.astype(np.int64),
            np.array(leaf, dtype=np.int64),
            np.array(start),
            np.array(condition, dtype=np.int64),
            np.array(column, dtype=np.int64),
            np.array(low, dtype=np.float64),
            np.array(high, dtype=np.float64),
            np.array(mask, dtype=np.int64),
            np.array(masks, dtype=np.uint8).reshape(len(masks), layout.n_categories),
        )


def separable_part(form: MetricArrays) -> tuple[float, FloatArray]:
    """Return μ and P with d²(δ) ≥ μ ‖δ − Pδ‖², P projecting on as few directions as a large μ allows."""
    sigma = form.scale * np.eye(len(form.basis)) + (form.basis * form.values) @ form.basis.T
    sizes, directions = np.linalg.eigh(sigma)
    if sizes[-1] <= 0.0:
        # Nothing costs anything; rounding may leave eigenvalues below 0.
        return 0.0, np.eye(len(sigma))
    scale = float(sizes[sizes >= 0.5 * sizes[-1]].min())
    taken = directions[:, sizes < scale]
    # Eigenvalues are right to rounding.
    return max(scale - 1e-12 * float(sizes[-1]), 0.0), taken @ taken.T


def shared_costs(
    paths: LeafPaths,
    values: FloatArray,
    state: IntArray,
    layout: TableLayout,
    separable: tuple[float, FloatArray],
    regions: Regions,
    origin: FloatArray,
    label: IntArray,
    prices: FloatArray,
) -> FloatArray:
    """Upper bounds of the sum of leaves less price · d² over each region, one for each of several prices."""
    lower, upper = encoded_box(layout, regions)
    low, high = lower - origin, upper - origin
    scale, projection = separable
    rise, fall = np.maximum(projection, 0.0), np.minimum(projection, 0.0)
    # The range of (Pδ)_j over the box; a little more, for the rounding of these sums.
    least, most = low @ rise.T + high @ fall.T, high @ rise.T + low @ fall.T
    wider = 1e-12 * (1.0 + np.abs(low) + np.abs(high)).max(axis=1, keepdims=True)
    found = np.empty(prices.shape)
    leaves = paths.first, paths.below, paths.leaf, paths.start, paths.condition
    conditions = paths.column, paths.low, paths.high, paths.mask, paths.masks
    _bounds(
        (*leaves, *conditions),
        values,
        np.asarray(state, dtype=np.int64),
        layout.shape,
        scale,
        (regions.low, regions.high, regions.allowed),
        origin,
        least - wider,
        most + wider,
        np.asarray(label, dtype=np.int64),
        prices,
        _STEPS,
        found,
    )
    return found


@compiled
def _off(low, high, least, most):  # type: ignore[no-untyped-def]
    """Squared distance between two intervals, rounded down."""
    gap = max(low - most, least - high)
    return gap * gap * (1.0 - 1e-12) if gap > 0.0 else 0.0


@compiled
def _category_costs(i, shape, allowed, origin, least, most, scale, cost):  # type: ignore[no-untyped-def]
    """What each category that is left adds to d² at the least; −1 for one that is not."""
    kinds, start, count, offset, _ = shape
    for p in range(len(kinds)):
        if kinds[p] != 2:
            continue
        j = start[p]
        for c in range(count[p]):
            at = offset[p] + c
            if allowed[i, at] == 0:
                cost[at] = -1.0
                continue
            total = 0.0
            if count[p] == 2:
                move = float(c) - origin[i, j]
                total = _off(move, move, least[i, j], most[i, j])
            else:
                for k in range(count[p]):
                    move = (1.0 if k == c else 0.0) - origin[i, j + k]
                    total += _off(move, move, least[i, j + k], most[i, j + k])
            cost[at] = scale * total


@compiled
def _bounds(paths, values, state, shape, scale, box, origin, least, most, label, prices, steps, found):  # type: ignore[no-untyped-def]
    first, below, leaf, start, condition, column, path_low, path_high, mask, masks = paths
    kinds, begin, count, offset, numbers = shape
    low, high, allowed = box
    n, n_prices = prices.shape
    n_trees, n_columns = len(first) - 1, len(kinds)
    size = len(leaf)
    cost = np.empty(max(allowed.shape[1], 1))
    # What is left of the leaves: their value and what each condition costs.
    kept_value, kept_start = np.empty(size), np.empty(size + 1, dtype=np.int64)
    ranked = np.empty(size, dtype=np.int64)
    kept_column, kept_cost = np.empty(len(condition), dtype=np.int64), np.empty(len(condition))
    # What each distinct condition costs at the least; ∞ if the region does not meet it.
    price_of = np.empty(len(column))
    tree_first = np.empty(n_trees + 1, dtype=np.int64)
    share, paid = np.empty((n_trees, n_columns)), np.empty((n_trees, n_columns))
    uses = np.zeros((n_trees, n_columns))
    for t in range(n_trees):
        for q in range(start[first[t]], start[first[t + 1]]):
            uses[t, column[condition[q]]] = 1.0
    for i in range(n):
        _category_costs(i, shape, allowed, origin, least, most, scale, cost)
        for q in range(len(column)):
            p = column[q]
            price_of[q] = np.inf
            if kinds[p] == 2:
                for k in range(offset[p], offset[p] + count[p]):
                    if masks[mask[q], k] != 0 and cost[k] >= 0.0:
                        price_of[q] = min(price_of[q], cost[k])
                continue
            a, b = max(path_low[q], low[i, p]), min(path_high[q], high[i, p])
            if a <= b:
                j = begin[p]
                left, right = encode_number(p, a, numbers), encode_number(p, b, numbers)
                left -= rounding_at(p, left, numbers)
                right += rounding_at(p, right, numbers)
                price_of[q] = scale * _off(left - origin[i, j], right - origin[i, j], least[i, j], most[i, j])
        kept, conditions = 0, 0
        for t in range(n_trees):
            tree_first[t] = kept
            begin_at, end_at = below[state[i, t], 0], below[state[i, t], 1]
            if begin_at < 0:
                begin_at, end_at = first[t], first[t + 1]
            for s in range(begin_at, end_at):
                reached = True
                kept_start[kept] = conditions
                at = conditions
                for q in range(start[s], start[s + 1]):
                    c = price_of[condition[q]]
                    if c == np.inf:
                        reached = False
                        break
                    if c > 0.0:
                        kept_column[at], kept_cost[at] = column[condition[q]], c
                        at += 1
                if reached:
                    kept_value[kept] = values[label[i], leaf[s]]
                    conditions = at
                    # The leaves of a tree by falling value.
                    place = kept
                    while place > tree_first[t] and kept_value[ranked[place - 1]] < kept_value[kept]:
                        ranked[place] = ranked[place - 1]
                        place -= 1
                    ranked[place] = kept
                    kept += 1
        tree_first[n_trees], kept_start[kept] = kept, conditions
        for w in range(n_prices):
            found[i, w] = _relaxed(
                tree_first,
                ranked,
                kept_value,
                kept_start,
                kept_column,
                kept_cost,
                uses,
                prices[i, w],
                steps,
                share,
                paid,
            )


@compiled
def _relaxed(tree_first, ranked, value, start, column, cost, uses, price, steps, share, paid):  # type: ignore[no-untyped-def]
    """The least over some shares of Σ_t max over leaves of value − price · Σ_p share · cost."""
    n_trees, n_columns = share.shape
    for p in range(n_columns):
        total = 0.0
        for t in range(n_trees):
            total += uses[t, p]
        for t in range(n_trees):
            share[t, p] = uses[t, p] / total if total > 0.0 else 0.0
    best = np.inf
    for step in range(steps):
        total = 0.0
        paid[:] = 0.0
        for t in range(n_trees):
            top, at = -np.inf, -1
            for place in range(tree_first[t], tree_first[t + 1]):
                s = ranked[place]
                v = value[s]
                if v <= top:
                    break
                for q in range(start[s], start[s + 1]):
                    v -= price * share[t, column[q]] * cost[q]
                if v > top:
                    top, at = v, s
            total += top
            if at >= 0:
                for q in range(start[at], start[at + 1]):
                    paid[t, column[q]] = cost[q]
        best = min(best, total)
        if step + 1 == steps:
            break
        for p in range(n_columns):
            largest = 0.0
            for t in range(n_trees):
                largest = max(largest, paid[t, p])
            if largest <= 0.0:
                continue
            rate = 3.0 / (largest * np.sqrt(step + 1.0))
            total, nothing = 0.0, np.exp(-rate * largest)
            for t in range(n_trees):
                if uses[t, p] == 0.0:
                    continue
                factor = nothing if paid[t, p] == 0.0 else np.exp(rate * (paid[t, p] - largest))
                # A share that is gone would never come back.
                share[t, p] = share[t, p] * factor + 1e-6
                total += share[t, p]
            for t in range(n_trees):
                share[t, p] /= total
    # Shares add up to 1 to rounding, and so does what was paid.
    return best + 1e-9 * (1.0 + abs(best))
