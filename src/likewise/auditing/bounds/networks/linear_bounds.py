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
from typing import Literal

import numpy as np

from likewise.auditing.bounds.networks.live_units import live_bounds
from likewise.auditing.bounds.networks.relaxed_units import lower_slopes, pass_through, upper_lines
from likewise.auditing.bounds.regions import box_means
from likewise.auditing.bounds.table_layout import IntArray
from likewise.core.arrays import FloatArray
from likewise.core.compiled import is_compiled
from likewise.models.relu_network import ReluNetwork

__all__ = ["Hidden", "Lines", "extremes", "hidden_bounds", "output_lines"]

_UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True, eq=False)
class Lines:
    """Linear functions of the input that bound each of K outputs from above.

    Parameters
    ----------
    slope : float array of shape (n, K, d)
    offset : float array of shape (n, K)
    highest : float array of shape (n, K)
        No output exceeds this over its region; where several lines were tried, the least of their largest values.
    effect : float array of shape (n, K, U)
        Weight of what leaves each hidden unit of the layers before.
    """

    slope: FloatArray
    offset: FloatArray
    highest: FloatArray
    effect: FloatArray


@dataclass(frozen=True, eq=False)
class Hidden:
    """What is known of the hidden units over boxes.

    Parameters
    ----------
    bounds : float array of shape (n, 2, U)
        Lower and upper of what enters each unit.
    reach : float array of shape (n, U − H, d)
        For the hidden layers after the first: how much each input moves what enters each unit that may be on or off,
        by its upper line.
    size : float array of shape (n, H)
        Bound of the size of everything that is added up for a unit of the last hidden layer, or of the inputs.
    """

    bounds: FloatArray
    reach: FloatArray
    size: FloatArray


def extremes(slope: FloatArray, lower: FloatArray, upper: FloatArray, blocks: IntArray) -> FloatArray:
    """Largest value of slopeᵀx over boxes whose one-hot blocks hold exactly one 1; (n, K) for slopes (n, K, d).

    Examples
    --------
    >>> extremes(np.array([[[1.0, -2.0]]]), np.zeros((1, 2)), np.ones((1, 2)), np.zeros((0, 3), dtype=int))
    array([[1.]])
    """
    centre, radius = (lower + upper) / 2.0, (upper - lower) / 2.0
    with np.errstate(invalid="ignore"):
        top = (slope @ centre[:, :, None] + np.abs(slope) @ radius[:, :, None])[:, :, 0]
    for first, last, _ in blocks:
        part = slope[:, :, first:last]
        held = part @ centre[:, first:last, None] + np.abs(part) @ radius[:, first:last, None]
        top += np.where(upper[:, None, first:last] > 0, part, -np.inf).max(axis=2) - held[:, :, 0]
    return np.asarray(top)


def hidden_bounds(
    net: ReluNetwork, lower: FloatArray, upper: FloatArray, blocks: IntArray, known: FloatArray
) -> Hidden:
    """Bounds of what enters every hidden unit.

    Parameters
    ----------
    net : ReluNetwork
    lower, upper : float arrays of shape (n, d)
        The regions, encoded.
    blocks : int array of shape (B, 3)
        One-hot blocks of the layout.
    known : float array of shape (n, 2, U)
        Bounds that hold already for all U hidden units (those of a larger region), ±∞ where there are none.

    Returns
    -------
    Hidden
        Never wider than what was known.
    """
    found = known.copy()
    errors, size = [], np.maximum(np.abs(lower), np.abs(upper))
    for k, (weight, bias) in enumerate(zip(net.weights[:-1], net.biases[:-1], strict=True)):
        size = size @ np.abs(weight).T + np.abs(bias)
        errors.append(_rounding(net, k) * size)
    if not errors:
        return Hidden(found, np.zeros((len(lower), 0, net.n_inputs)), size)
    error = np.concatenate(errors, axis=1)
    reach = np.zeros((len(lower), error.shape[1] - errors[0].shape[1], net.n_inputs))
    fill = live_bounds if is_compiled() else _all_bounds
    fill(net, lower, upper, blocks, found, error, reach)
    return Hidden(found, reach, size)


def _all_bounds(
    net: ReluNetwork,
    lower: FloatArray,
    upper: FloatArray,
    blocks: IntArray,
    bounds: FloatArray,
    error: FloatArray,
    reach: FloatArray,
) -> None:
    """What `live_bounds` does, for all units and without being compiled."""
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
    net: ReluNetwork,
    head: FloatArray,
    hidden: Hidden,
    lower: FloatArray,
    upper: FloatArray,
    blocks: IntArray,
    *,
    best_at: Literal["top", "mean"] = "top",
) -> Lines:
    """Linear upper bounds of K combinations of the outputs; of several choices of α the best for each.

    Parameters
    ----------
    net : ReluNetwork
    head : float array of shape (K, C)
        The combinations.
    hidden : Hidden
        From `hidden_bounds`.
    lower, upper, blocks
        As there.
    best_at : {"top", "mean"}
        Which line is kept: the one whose largest value is least, or the one whose mean over the region is.
    """
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


def _rounding(net: ReluNetwork, layer: int) -> float:
    """By which share of the sizes s_k a bound of layer k may be off."""
    steps = sum(weight.shape[1] for weight in net.weights[: layer + 1]) + 4 * (layer + 1)
    return float(1.01 * steps * (2 * layer + 3) * _UNIT_ROUNDOFF)


def _back(
    net: ReluNetwork,
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
