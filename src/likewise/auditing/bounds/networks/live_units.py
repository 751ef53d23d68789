"""The same bounds of hidden units as `linear_bounds`, compiled: only units that may be on are put in on the way back.

In small regions most units are off. Their columns are left out of every product, and units that a larger region, or plain
intervals, already show to be on or off are not bounded by lines at all.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from likewise.auditing.bounds.table_layout import IntArray
from likewise.core.arrays import FloatArray
from likewise.core.compiled import compiled
from likewise.models.relu_network import ReluNetwork

__all__ = ["live_bounds"]


def live_bounds(
    net: ReluNetwork,
    lower: FloatArray,
    upper: FloatArray,
    blocks: IntArray,
    bounds: FloatArray,
    error: FloatArray,
    reach: FloatArray,
) -> None:
    """Narrow the bounds of hidden units, in place.

    Parameters
    ----------
    net : ReluNetwork
    lower, upper : float arrays of shape (n, d)
    blocks : int array of shape (B, 3)
    bounds : float array of shape (n, 2, U)
        What is known; narrowed.
    error : float array of shape (n, U)
        Rounding to add.
    reach : float array of shape (n, U − H, d)
        Is filled with the sizes of the slopes of upper lines, 0 for units that are on or off.
    """
    weights, biases, sizes = _flat(net)
    _bound(weights, biases, sizes, lower, upper, blocks, bounds, error, reach)


@cache
def _flat(net: ReluNetwork) -> tuple[Any, Any, Any]:
    """All hidden weights and biases in one array each, and the widths of inputs and hidden layers."""
    sizes = np.array([net.n_inputs, *(len(weight) for weight in net.weights[:-1])], dtype=np.int64)
    weights = np.concatenate([weight.ravel() for weight in net.weights[:-1]])
    return weights, np.concatenate(net.biases[:-1]), sizes


@compiled
def _bound(weights, biases, sizes, lower, upper, blocks, bounds, error, reach):  # type: ignore[no-untyped-def]
    n, width = lower.shape
    layers, widest = len(sizes) - 1, 0
    for k in range(len(sizes)):
        widest = max(widest, sizes[k])
    # Of the live units of each layer: which they are, their relaxation, and their weights from live units before.
    live, count = np.empty((layers, widest), dtype=np.int64), np.zeros(layers, dtype=np.int64)
    rise, lift, least = np.empty((layers, widest)), np.empty((layers, widest)), np.empty((layers, widest))
    packed = np.empty((layers, widest, widest))
    centre, radius = np.empty(width), np.empty(width)
    line, other = np.empty(widest), np.empty(widest)
    for i in range(n):
        for j in range(width):
            centre[j], radius[j] = (lower[i, j] + upper[i, j]) / 2.0, (upper[i, j] - lower[i, j]) / 2.0
        # As in the loop: of a constant, the functions below would be compiled once more.
        at, unit = np.int64(0), np.int64(0)
        for k in range(layers):
            before = sizes[k]
            for h in range(sizes[k + 1]):
                u, first = unit + h, at + h * before
                if bounds[i, 1, u] <= 0.0:
                    continue
                slack = error[i, u]
                if k > 0:
                    # Intervals first.
                    middle, around = biases[u], slack
                    for c in range(count[k - 1]):
                        v = unit - before + live[k - 1, c]
                        a, b = max(bounds[i, 0, v], 0.0), bounds[i, 1, v]
                        w = weights[first + live[k - 1, c]]
                        middle += w * (a + b) / 2.0
                        around += abs(w) * (b - a) / 2.0
                    bounds[i, 0, u] = max(bounds[i, 0, u], middle - around)
                    bounds[i, 1, u] = min(bounds[i, 1, u], middle + around)
                if k == 0 or (bounds[i, 0, u] < 0.0 and bounds[i, 1, u] > 0.0):
                    for side in range(2):
                        sign = 2.0 * side - 1.0
                        offset = sign * biases[u]
                        if k == 0:
                            for j in range(width):
                                line[j] = sign * weights[first + j]
                        else:
                            for c in range(count[k - 1]):
                                line[c] = sign * weights[first + live[k - 1, c]]
                            offset += _to_input(
                                k, line, other, live, count, rise, lift, least, packed, biases, sizes, unit
                            )
                        top = offset + _largest(line, centre, radius, upper[i], blocks) + slack
                        if side == 1:
                            bounds[i, 1, u] = min(bounds[i, 1, u], top)
                            if k > 0:
                                for j in range(width):
                                    reach[i, u - sizes[1], j] = abs(line[j])
                        else:
                            bounds[i, 0, u] = max(bounds[i, 0, u], -top)
                bounds[i, 1, u] = max(bounds[i, 0, u], bounds[i, 1, u])
            _gather(i, k, unit, at, bounds, weights, sizes, live, count, rise, lift, least, packed)
            at += sizes[k + 1] * before
            unit += sizes[k + 1]


@compiled
def _gather(i, k, unit, at, bounds, weights, sizes, live, count, rise, lift, least, packed):  # type: ignore[no-untyped-def]
    """Note the live units of a layer that is bounded."""
    before, found = sizes[k], 0
    for h in range(sizes[k + 1]):
        low, high = bounds[i, 0, unit + h], bounds[i, 1, unit + h]
        if high <= 0.0:
            continue
        live[k, found] = h
        if low >= 0.0:
            rise[k, found], lift[k, found], least[k, found] = 1.0, 0.0, 1.0
        else:
            rise[k, found] = high / (high - low)
            lift[k, found] = -rise[k, found] * low
            least[k, found] = 1.0 if high > -low else 0.0
        if k == 0:
            for j in range(before):
                packed[k, found, j] = weights[at + h * before + j]
        else:
            for c in range(count[k - 1]):
                packed[k, found, c] = weights[at + h * before + live[k - 1, c]]
        found += 1
    count[k] = found


@compiled
def _to_input(k, line, other, live, count, rise, lift, least, packed, biases, sizes, unit):  # type: ignore[no-untyped-def]
    """Put an upper line in the live units of layer k − 1 back to the input, in place; return what is added to it."""
    offset = 0.0
    first = unit
    for j in range(k - 1, -1, -1):
        first -= sizes[j + 1]
        columns = sizes[0] if j == 0 else count[j - 1]
        for v in range(columns):
            other[v] = 0.0
        for c in range(count[j]):
            s = line[c]
            if s > 0.0:
                offset += s * lift[j, c]
                s *= rise[j, c]
            else:
                s *= least[j, c]
            if s != 0.0:
                offset += s * biases[first + live[j, c]]
                row = packed[j, c]
                for v in range(columns):
                    other[v] += s * row[v]
        # A slice that is assigned would compile, for seconds, the words of an error that cannot happen.
        for v in range(columns):
            line[v] = other[v]
    return offset


@compiled
def _largest(line, centre, radius, upper, blocks):  # type: ignore[no-untyped-def]
    """Largest value of a linear function over a box whose one-hot blocks hold exactly one 1."""
    top = 0.0
    for j in range(len(centre)):
        top += line[j] * centre[j] + abs(line[j]) * radius[j]
    for b in range(len(blocks)):
        best = -np.inf
        for j in range(blocks[b, 0], blocks[b, 1]):
            top -= line[j] * centre[j] + abs(line[j]) * radius[j]
            if upper[j] > 0.0:
                best = max(best, line[j])
        top += best
    return top
