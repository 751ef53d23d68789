"""Linear bounds of a ReLU network over boxes by back-substitution (CROWN, Zhang et al. 2018; DeepPoly, Singh et al. 2019).

Over a region where a hidden unit's input z lies in [l, u] with l < 0 < u, relu(z) ≤ u (z − l) / (u − l) and
relu(z) ≥ α z for any α in [0, 1]. Put in from the last layer to the first, these turn an output into a linear function
of the input that lies above (or below) it everywhere in the region.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise.auditing.bounds.table_layout import IntArray
from likewise.core.arrays import FloatArray
from likewise.models.relu_network import ReluNetwork

__all__ = ["Lines", "extremes", "hidden_bounds", "output_lines"]

# Relative rounding that is added to every bound of a unit.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Lines:
    """Linear functions of the input that bound each of K outputs from above.

    Parameters
    ----------
    slope : float array of shape (n, K, d)
    offset : float array of shape (n, K)
    highest : float array of shape (n, K)
        Their largest values over the regions.
    effect : float array of shape (n, K, H)
        Weight of each unit of the first hidden layer; of width 0 where there is none.
    """

    slope: FloatArray
    offset: FloatArray
    highest: FloatArray
    effect: FloatArray


def extremes(slope: FloatArray, lower: FloatArray, upper: FloatArray, blocks: IntArray) -> FloatArray:
    """Largest value of slopeᵀx over boxes whose one-hot blocks hold exactly one 1; (n, K) for slopes (n, K, d).

    Examples
    --------
    >>> extremes(np.array([[[1.0, -2.0]]]), np.zeros((1, 2)), np.ones((1, 2)), np.zeros((0, 3), dtype=int))
    array([[1.]])
    """
    with np.errstate(invalid="ignore"):
        centre, radius = (lower + upper) / 2.0, (upper - lower) / 2.0
        top = np.einsum("nkd,nd->nk", slope, centre) + np.einsum("nkd,nd->nk", np.abs(slope), radius)
        size = np.einsum("nkd,nd->nk", np.abs(slope), np.abs(centre) + radius)
    for first, last, _ in blocks:
        part = slope[:, :, first:last]
        held = np.einsum("nkd,nd->nk", part, centre[:, first:last])
        held += np.einsum("nkd,nd->nk", np.abs(part), radius[:, first:last])
        top += np.where(upper[:, None, first:last] > 0, part, -np.inf).max(axis=2) - held
    return np.asarray(top + _ROUNDING * size)


def hidden_bounds(
    net: ReluNetwork, lower: FloatArray, upper: FloatArray, blocks: IntArray, known: FloatArray
) -> FloatArray:
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
    float array of shape (n, 2, U)
        Lower and upper, never wider than what was known.
    """
    found = known.copy()
    at = 0
    for k in range(len(net.weights) - 1):
        width = len(net.weights[k])
        both = (
            np.concatenate([-net.weights[k], net.weights[k]]),
            np.concatenate([-net.biases[k], net.biases[k]]),
        )
        lines = _back(net, k, *both, found, lower, upper, blocks, None)
        part = found[:, :, at : at + width]
        np.maximum(part[:, 0], -lines.highest[:, :width], out=part[:, 0])
        np.minimum(part[:, 1], lines.highest[:, width:], out=part[:, 1])
        # Rounding may cross two bounds of a unit that cannot move.
        np.maximum(part[:, 1], part[:, 0], out=part[:, 1])
        at += width
    return found


def output_lines(
    net: ReluNetwork,
    head: FloatArray,
    constant: FloatArray,
    hidden: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    blocks: IntArray,
) -> Lines:
    """Linear upper bounds of K combinations of the outputs; of several choices of α the best for each.

    Parameters
    ----------
    net : ReluNetwork
    head : float array of shape (K, C)
        The combinations.
    constant : float array of shape (K,)
    hidden : float array of shape (n, 2, U)
        From `hidden_bounds`.
    lower, upper, blocks
        As there.
    """
    weight, bias = head @ net.weights[-1], head @ net.biases[-1] + constant
    last = len(net.weights) - 1
    best = _back(net, last, weight, bias, hidden, lower, upper, blocks, None)
    if last == 0:
        return best
    for alpha in ("none", "all", "parallel"):
        other = _back(net, last, weight, bias, hidden, lower, upper, blocks, alpha)
        better = other.highest < best.highest
        best = Lines(
            np.where(better[:, :, None], other.slope, best.slope),
            np.where(better, other.offset, best.offset),
            np.where(better, other.highest, best.highest),
            np.where(better[:, :, None], other.effect, best.effect),
        )
    return best


def _back(
    net: ReluNetwork,
    layer: int,
    weight: FloatArray,
    bias: FloatArray,
    hidden: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    blocks: IntArray,
    alpha: str | None,
) -> Lines:
    """Upper lines of weight · (what enters layer `layer`) + bias, put in back to the input."""
    n = len(lower)
    widths = [len(w) for w in net.weights[:-1]]
    slope: FloatArray = np.broadcast_to(weight, (n, *weight.shape))
    offset = np.broadcast_to(bias, (n, len(bias))).copy()
    effect: FloatArray = np.zeros((n, len(bias), 0))
    for k in range(layer - 1, -1, -1):
        first = sum(widths[:k])
        low, high = hidden[:, 0, first : first + widths[k]], hidden[:, 1, first : first + widths[k]]
        rise, lift, least = _relaxed(low, high, alpha)
        if k == 0:
            effect = slope
        up = np.maximum(slope, 0.0)
        offset += np.einsum("nkh,nh->nk", up, lift)
        mixed = slope * least[:, None, :] + up * (rise - least)[:, None, :]
        offset += mixed @ net.biases[k]
        slope = mixed @ net.weights[k]
    highest = extremes(slope, lower, upper, blocks) + offset
    highest += _ROUNDING * np.abs(offset)
    return Lines(np.asarray(slope), offset, highest, effect)


def _relaxed(
    low: FloatArray, high: FloatArray, alpha: str | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Slope and lift of the upper line of each unit, and the slope of its lower line."""
    active, dead = low >= 0.0, high <= 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        slanted = high / (high - low)
        lift = -slanted * low
    rise = np.where(active, 1.0, np.where(dead, 0.0, slanted))
    lift = np.where(active | dead, 0.0, lift)
    if alpha is None:
        least = (high > -low).astype(np.float64)
    elif alpha == "parallel":
        least = rise
    else:
        least = np.full(low.shape, 1.0 if alpha == "all" else 0.0)
    return rise, lift, np.where(active, 1.0, np.where(dead, 0.0, least))
