"""Linear bounds of a ReLU network over boxes by back-substitution (CROWN, Zhang et al. 2018; DeepPoly, Singh et al. 2019).

Over a region where a hidden unit's input z lies in [l, u] with l < 0 < u, relu(z) ≤ u (z − l) / (u − l) and
relu(z) ≥ α z for any α in [0, 1]. Put in from the last layer to the first, these turn an output into a linear function
of the input that lies above (or below) it everywhere in the region.

Rounding. With s_k = |W_k| s_{k−1} + |b_k| and s_0 = max |x| over the box, every number that is added up on the way back
from a unit of layer k to the input is at most s_k in size, there are at most 2k + 3 sums of them, and none is the result
of more than N_k = Σ (widths up to k) + 4 (k + 1) roundings. The computed line and its largest value are therefore off by
at most 1.01 N_k (2k + 3) 2⁻⁵³ s_k, which is added to every bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from likewise.auditing.bounds.regions import box_means
from likewise.core.checks import FloatArray, IntArray
from likewise.core.compiled import compiled, is_compiled
from likewise.models.layers import Layers

# Lines above and below a ReLU where its input lies in an interval, and how lines of a layer pass through
# them.


def upper_lines(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Slope and lift of the upper line of units whose input lies in [low, high]; arrays of any one shape."""
    active, dead = low >= 0.0, high <= 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        slanted = high / (high - low)
        lift = -slanted * low
    rise = np.where(active, 1.0, np.where(dead, 0.0, slanted))
    return rise, np.where(active | dead, 0.0, lift)


def lower_slopes(low: FloatArray, high: FloatArray, rise: FloatArray, alpha: str | None) -> FloatArray:
    """Slope of the lower line of the same units."""
    if alpha == "parallel":
        return rise
    if alpha is None:
        return (high > -low).astype(np.float64)
    return ((low >= 0.0) if alpha == "none" else (high > 0.0)).astype(np.float64)


def pass_through(
    slope: FloatArray, rise: FloatArray, lift: FloatArray, least: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Upper lines in what leaves the units of a layer as upper lines in what enters them."""
    if is_compiled():
        mixed = np.empty((len(rise), *slope.shape[1:]))
        offset = np.empty(mixed.shape[:2])
        _mix(slope, rise, lift, least, mixed, offset)
        return mixed, offset
    up = np.maximum(slope, 0.0)
    return np.where(slope > 0, rise[:, None, :], least[:, None, :]) * slope, (up @ lift[:, :, None])[:, :, 0]


@compiled
def _mix(slope, rise, lift, least, mixed, offset):  # type: ignore[no-untyped-def]
    n, count, width = mixed.shape
    shared = len(slope) == 1
    for i in range(n):
        own = 0 if shared else i
        for k in range(count):
            total = 0.0
            for h in range(width):
                s = slope[own, k, h]
                if s > 0.0:
                    mixed[i, k, h] = s * rise[i, h]
                    total += s * lift[i, h]
                else:
                    mixed[i, k, h] = s * least[i, h]
            offset[i, k] = total


# The same bounds of hidden units as `linear_bounds`, compiled: only units that may be on are put in on the
# way back.


@cache
def _flat(net: Layers) -> tuple[Any, Any, Any]:
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


_UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True, eq=False)
class Lines:
    """Linear functions of the input that bound each of K outputs from above."""

    slope: FloatArray
    offset: FloatArray
    highest: FloatArray
    effect: FloatArray


@dataclass(frozen=True, eq=False)
class Hidden:
    """What is known of the hidden units over boxes."""

    bounds: FloatArray
    reach: FloatArray
    size: FloatArray


def extremes(slope: FloatArray, lower: FloatArray, upper: FloatArray, blocks: IntArray) -> FloatArray:
    """Largest value of slopeᵀx over boxes whose one-hot blocks hold exactly one 1; (n, K) for slopes (n, K, d)."""
    centre, radius = (lower + upper) / 2.0, (upper - lower) / 2.0
    with np.errstate(invalid="ignore"):
        top = (slope @ centre[:, :, None] + np.abs(slope) @ radius[:, :, None])[:, :, 0]
    for first, last, _ in blocks:
        part = slope[:, :, first:last]
        held = part @ centre[:, first:last, None] + np.abs(part) @ radius[:, first:last, None]
        top += np.where(upper[:, None, first:last] > 0, part, -np.inf).max(axis=2) - held[:, :, 0]
    return np.asarray(top)


def hidden_bounds(
    net: Layers, lower: FloatArray, upper: FloatArray, blocks: IntArray, known: FloatArray
) -> Hidden:
    """Bounds of what enters every hidden unit."""
    found = known.copy()
    errors, size = [], np.maximum(np.abs(lower), np.abs(upper))
    for k, (weight, bias) in enumerate(zip(net.weights[:-1], net.biases[:-1], strict=True)):
        size = size @ np.abs(weight).T + np.abs(bias)
        errors.append(_rounding(net, k) * size)
    if not errors:
        return Hidden(found, np.zeros((len(lower), 0, net.n_inputs)), size)
    error = np.concatenate(errors, axis=1)
    reach = np.zeros((len(lower), error.shape[1] - errors[0].shape[1], net.n_inputs))
    box = lower, upper, blocks
    if is_compiled():
        _bound(*_flat(net), *box, found, error, reach)
    else:
        _all_bounds(net, *box, found, error, reach)
    return Hidden(found, reach, size)


def _all_bounds(
    net: Layers,
    lower: FloatArray,
    upper: FloatArray,
    blocks: IntArray,
    bounds: FloatArray,
    error: FloatArray,
    reach: FloatArray,
) -> None:
    """What `_bound` does, for all units and without being compiled."""
    before = lower, upper
    first, at = len(net.weights[0]), 0
    for k, (weight, bias) in enumerate(zip(net.weights[:-1], net.biases[:-1], strict=True)):
        width = len(weight)
        part, off = bounds[:, :, at : at + width], error[:, at : at + width]
        both = np.concatenate([-weight, weight]), np.concatenate([-bias, bias])
        rise, lift = upper_lines(bounds[:, 0], bounds[:, 1])
        least = lower_slopes(bounds[:, 0], bounds[:, 1], rise, None)
        lines = _back(net, k, *both, (rise, lift, least), lower, upper, blocks)
        _narrow(part, -lines.highest[:, :width] - off, lines.highest[:, width:] + off)
        if k > 0:
            # Intervals alone are sometimes narrower than lines; after them no bound exceeds its size.
            centre, radius = (before[0] + before[1]) / 2.0, (before[1] - before[0]) / 2.0
            middle, around = centre @ weight.T + bias, radius @ np.abs(weight).T + off
            _narrow(part, middle - around, middle + around)
            reach[:, at - first : at - first + width] = np.abs(lines.slope[:, width:])
        before = np.maximum(part[:, 0], 0.0), np.maximum(part[:, 1], 0.0)
        at += width


def _narrow(part: FloatArray, low: FloatArray, high: FloatArray) -> None:
    np.maximum(part[:, 0], low, out=part[:, 0])
    np.minimum(part[:, 1], high, out=part[:, 1])
    # Rounding may cross two bounds of a unit that cannot move.
    np.maximum(part[:, 1], part[:, 0], out=part[:, 1])


def output_lines(
    net: Layers,
    head: FloatArray,
    hidden: Hidden,
    lower: FloatArray,
    upper: FloatArray,
    blocks: IntArray,
    *,
    best_at: Literal["top", "mean"] = "top",
) -> Lines:
    """Linear upper bounds of K combinations of the outputs; of several choices of α the best for each."""
    weight, bias = head @ net.weights[-1], head @ net.biases[-1]
    last = len(net.weights) - 1
    size = np.asarray(hidden.size) @ (np.abs(head) @ np.abs(net.weights[-1])).T
    error = _rounding(net, last) * (size + np.abs(head) @ np.abs(net.biases[-1]))
    choices = (None,) if last == 0 else (None, "none", "all", "parallel")
    low, high = hidden.bounds[:, 0], hidden.bounds[:, 1]
    rise, lift = upper_lines(low, high)
    relaxed = [(rise, lift, lower_slopes(low, high, rise, alpha)) for alpha in choices]
    tried = [_back(net, last, weight, bias, units, lower, upper, blocks) for units in relaxed]
    mean = box_means(lower, upper, blocks)
    best, rank = tried[0], _rank(tried[0], mean, best_at)
    for other in tried[1:]:
        own = _rank(other, mean, best_at)
        better = own < rank
        best = Lines(
            np.where(better[:, :, None], other.slope, best.slope),
            np.where(better, other.offset, best.offset),
            np.minimum(other.highest, best.highest),
            np.where(better[:, :, None], other.effect, best.effect),
        )
        rank = np.minimum(own, rank)
    return Lines(best.slope, best.offset + error, best.highest + error, best.effect)


def _rank(lines: Lines, mean: FloatArray, best_at: str) -> FloatArray:
    if best_at == "top":
        return lines.highest
    return np.asarray(lines.offset + (lines.slope @ mean[:, :, None])[:, :, 0])


def _rounding(net: Layers, layer: int) -> float:
    """By which share of the sizes s_k a bound of layer k may be off."""
    steps = sum(weight.shape[1] for weight in net.weights[: layer + 1]) + 4 * (layer + 1)
    return float(1.01 * steps * (2 * layer + 3) * _UNIT_ROUNDOFF)


def _back(
    net: Layers,
    layer: int,
    weight: FloatArray,
    bias: FloatArray,
    units: tuple[FloatArray, FloatArray, FloatArray],
    lower: FloatArray,
    upper: FloatArray,
    blocks: IntArray,
) -> Lines:
    """Upper lines of weight · (what enters layer `layer`) + bias, put in back to the input; rounding is not added."""
    n = len(lower)
    widths = [len(w) for w in net.weights[:-1]]
    # The same for all regions until it has passed the first units.
    slope: FloatArray = weight[None]
    offset = np.broadcast_to(bias, (n, len(bias))).copy()
    effects: list[FloatArray] = []
    wanted = layer == len(net.weights) - 1
    for k in range(layer - 1, -1, -1):
        first = sum(widths[:k])
        its = [part[:, first : first + widths[k]] for part in units]
        if wanted:
            effects.append(np.broadcast_to(slope, (n, *slope.shape[1:])))
        mixed, lifted = pass_through(slope, *its)
        offset += lifted + mixed @ net.biases[k]
        # One product of two matrices is faster than n small ones.
        slope = (mixed.reshape(-1, widths[k]) @ net.weights[k]).reshape(n, len(bias), -1)
    slope = np.broadcast_to(slope, (n, *slope.shape[1:]))
    highest = extremes(slope, lower, upper, blocks) + offset
    # From the first hidden layer to the last.
    effect = np.concatenate(effects[::-1], axis=2) if effects else np.zeros((n, len(bias), 0))
    return Lines(np.asarray(slope), offset, highest, effect)
