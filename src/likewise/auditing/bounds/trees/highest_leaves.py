"""Compiled walks through trees: the highest leaf that a region reaches, and the leaf of a row."""

from __future__ import annotations

import numpy as np

from likewise.core.compiled import compiled

__all__ = ["highest_leaves", "leaves_of_rows"]


@compiled
def _side(node, column, cut, group, goes_left, first, count, low, high, allowed):  # type: ignore[no-untyped-def]
    """0 where a region goes left, 1 where it goes right, 2 where both."""
    p = column[node]
    if group[node] < 0:
        if high[p] <= cut[node]:
            return 0
        return 1 if low[p] > cut[node] else 2
    some_left, some_right = False, False
    for c in range(first[p], first[p] + count[p]):
        if allowed[c] != 0:
            if goes_left[group[node], c] != 0:
                some_left = True
            else:
                some_right = True
    if some_left and some_right:
        return 2
    return 0 if some_left else 1


@compiled
def highest_leaves(trees, first, count, low, high, allowed, label, start, state, top):  # type: ignore[no-untyped-def]
    """Find the highest leaf of every tree over every region.

    Parameters
    ----------
    trees : tuple
        left, right, column, cut, group, goes_left, values, peak of `TableTrees`.
    first, count : int arrays of shape (P,)
        Of the layout's categories.
    low, high, allowed
        The regions.
    label : int array of shape (n,)
    start : int array of shape (n, T)
        A node of each tree that the region lies below.
    state : int array of shape (n, T)
        Filled with the first node that the region does not decide.
    top : float array of shape (n, T, K)
        Filled with the highest leaf.
    """
    left, right, column, cut, group, goes_left, values, peak = trees
    n, n_trees, width = top.shape
    stack = np.empty(4096, dtype=np.int64)
    for i in range(n):
        y = label[i]
        for t in range(n_trees):
            node = start[i, t]
            while left[node] >= 0:
                side = _side(
                    node, column, cut, group, goes_left, first, count, low[i], high[i], allowed[i]
                )
                if side == 2:
                    break
                node = left[node] if side == 0 else right[node]
            state[i, t] = node
            if left[node] < 0:
                for k in range(width):
                    top[i, t, k] = values[y, node, k]
                continue
            for k in range(width):
                best, size = -np.inf, 1
                stack[0] = node
                while size > 0:
                    size -= 1
                    at = stack[size]
                    if peak[y, at, k] <= best:
                        continue
                    if left[at] < 0:
                        best = values[y, at, k]
                        continue
                    side = _side(
                        at, column, cut, group, goes_left, first, count, low[i], high[i], allowed[i]
                    )
                    if side == 0:
                        stack[size] = left[at]
                        size += 1
                    elif side == 1:
                        stack[size] = right[at]
                        size += 1
                    elif peak[y, left[at], k] > peak[y, right[at], k]:
                        # The more promising side last, so that it is looked at first.
                        stack[size] = right[at]
                        stack[size + 1] = left[at]
                        size += 2
                    else:
                        stack[size] = left[at]
                        stack[size + 1] = right[at]
                        size += 2
                top[i, t, k] = best


@compiled
def leaves_of_rows(trees, first, rows, start, leaf):  # type: ignore[no-untyped-def]
    """Fill leaf (n, T) with the leaf of every row of values in every tree, from a node that it lies below."""
    left, right, column, cut, group, goes_left, values, peak = trees
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
