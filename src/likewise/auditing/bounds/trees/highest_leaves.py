"""Compiled walks through trees: the highest leaf that a region reaches, and the leaf of a row."""

from __future__ import annotations

import numpy as np

from likewise.core.compiled import compiled

__all__ = ["highest_leaves", "leaves_of_rows", "packed"]


@compiled
def _side(node, column, cut, group, left_words, first_word, low, high, words):  # type: ignore[no-untyped-def]
    """0 where a region goes left, 1 where it goes right, 2 where both."""
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
def highest_leaves(trees, bits, low, high, allowed, label, start, state, top):  # type: ignore[no-untyped-def]
    """Find the highest leaf of every tree over every region.

    Parameters
    ----------
    trees : tuple
        left, right, column, cut, group, goes_left, values, peak of `TableTrees`.
    bits : tuple
        offset, count (P,) of the layout's categories, first word of each column (P + 1,), packed `goes_left` (G, W).
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
    left, right, column, cut, group, _, values, peak = trees
    offset, count, first_word, left_words = bits
    n, n_trees, width = top.shape
    stack = np.empty(4096, dtype=np.int64)
    words = np.empty(first_word[-1], dtype=np.uint64)
    for i in range(n):
        y = label[i]
        _pack(allowed[i], offset, count, first_word, words)
        for t in range(n_trees):
            node = np.int64(start[i, t])
            while left[node] >= 0:
                side = _side(node, column, cut, group, left_words, first_word, low[i], high[i], words)
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
                    side = _side(at, column, cut, group, left_words, first_word, low[i], high[i], words)
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
