"""Adam on a network of one hidden layer, row by row, compiled: a row's hidden units never leave the cache."""

from __future__ import annotations

import math

import numba
import numpy as np

__all__ = ["climb"]

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8
# Sums in any order, so that they are vectorised; infinities and NaN keep their meaning.
_MATHS = {"reassoc", "contract", "arcp", "nsz"}


@numba.njit(fastmath=_MATHS, cache=True)
def _look(before, directions, weighted, head, offset, leak, v, u, slopes):  # type: ignore[no-untyped-def]
    """Fill u with what enters the hidden units at v, and slopes with the gradient of the margin; return the margin."""
    width, hidden = directions.shape
    for j in range(hidden):
        u[j] = before[j]
    for i in range(width):
        c = v[i]
        for j in range(hidden):
            u[j] += c * directions[i, j]
    total = u.dtype.type(0.0)
    for j in range(hidden):
        total += head[j] * (u[j] if u[j] > 0.0 else leak * u[j])
    for i in range(width):
        slope = u.dtype.type(0.0)
        for j in range(hidden):
            slope += weighted[i, j] if u[j] > 0.0 else leak * weighted[i, j]
        slopes[i] = slope
    return total + offset


@numba.njit(fastmath=_MATHS, cache=True)
def _reach(u, lengths):  # type: ignore[no-untyped-def]
    """Squared distance within which no hidden unit changes its sign: |W_j·δ| ≤ ‖W_j‖ ‖δ‖."""
    nearest = u.dtype.type(np.inf)
    for j in range(len(u)):
        share = u[j] * u[j] * lengths[j]
        nearest = share if share < nearest else nearest
    return nearest


@numba.njit(fastmath=_MATHS, cache=True)
def _penalty(v, scale, basis, costs, product):  # type: ignore[no-untyped-def]
    """Fill product with Σv and return vᵀΣv, Σ = scale·I + Q diag(costs − scale) Qᵀ."""
    rank, width = basis.shape
    total, outside = v.dtype.type(0.0), v.dtype.type(0.0)
    product[:] = v
    # What lies inside the basis is taken out first, so that no digits are lost.
    for k in range(rank):
        inside = v.dtype.type(0.0)
        for i in range(width):
            inside += basis[k, i] * v[i]
        total += costs[k] * inside * inside
        for i in range(width):
            product[i] -= basis[k, i] * inside
    for i in range(width):
        outside += product[i] * product[i]
        product[i] *= scale
    for k in range(rank):
        if costs[k] != 0.0:
            inside = v.dtype.type(0.0)
            for i in range(width):
                inside += basis[k, i] * v[i]
            for i in range(width):
                product[i] += costs[k] * inside * basis[k, i]
    return total + scale * outside


@numba.njit(fastmath=_MATHS, cache=True)
def _adam_step(k, size, slope, price, slopes, product, first, second, v):  # type: ignore[no-untyped-def]
    """Move v by the k-th step along slope · slopes − price · product; return the sum of that gradient."""
    real = v.dtype.type
    new1, new2, epsilon = real(1.0 - _BETA1), real(1.0 - _BETA2), real(_EPSILON)
    grown, shrink = real(size / (1.0 - _BETA1**k)), real(1.0 / (1.0 - _BETA2**k))
    total = real(0.0)
    for i in range(len(v)):
        g = slope * slopes[i] - price * product[i]
        total += g
        first[i] += new1 * (g - first[i])
        second[i] += new2 * (g * g - second[i])
        v[i] += grown * first[i] / (np.sqrt(second[i] * shrink) + epsilon)
    return total


@numba.njit(fastmath=_MATHS, cache=True)
def _row(before, network, sign, lam, metric, steps, size, near, v, best, found, room):  # type: ignore[no-untyped-def]
    """Climb one row from v; fill `best` and `found` = (loss, objective, objective at three quarters, sound)."""
    directions, weighted, head, lengths, offset, leak = network
    scale, basis, costs = metric
    u, slopes, product, first, second, centre = room
    real, width = v.dtype.type, len(v)
    threshold = 3 * steps // 4
    margin, reach = real(0.0), real(-1.0)
    first[:] = 0.0
    second[:] = 0.0
    product[:] = 0.0
    sound = True
    for k in range(1, steps + 2):
        far, rise = real(0.0), real(0.0)
        if near and k > 1:
            for i in range(width):
                moved = v[i] - centre[i]
                far += moved * moved
                rise += slopes[i] * moved
        if near and far < reach:
            at = margin + rise
        else:
            at = _look(before, directions, weighted, head, offset, leak, v, u, slopes)
            if near:
                margin, reach = at, _reach(u, lengths)
                centre[:] = v
        t = sign * at
        small = math.exp(-abs(t))
        loss = max(-t, 0.0) + math.log1p(small)
        # ℓ′(t) = −σ(−t)
        slope = -sign * (small / (1.0 + small) if t > 0.0 else 1.0 / (1.0 + small))
        squared = _penalty(v, scale, basis, costs, product) if lam > 0.0 else real(0.0)
        value = loss - lam * squared
        if k == 1:
            found[0], found[1], found[2] = loss, value, value
            best[:] = v
            sound = abs(value) < np.inf
        elif abs(value) < np.inf and value > found[1]:
            found[0], found[1] = loss, value
            best[:] = v
        if k > steps:
            sound = sound and abs(loss) < np.inf
            break
        total = _adam_step(k, size, real(slope), real(2.0 * lam), slopes, product, first, second, v)
        sound = sound and abs(loss + total) < np.inf
        if k == threshold:
            found[2] = found[1]
    found[3] = 1.0 if sound else 0.0


@numba.njit(cache=True)
def climb(before, network, signs, lam, metric, steps, size, near, v):  # type: ignore[no-untyped-def]
    """Climb ℓ − λ d² with Adam from displacements v, for cross-entropy on a network of one hidden layer.

    With `near` the network is asked again only when a row has gone so far that a hidden unit may have changed its
    sign: until then it is linear, and a step costs D instead of D times H.

    Parameters
    ----------
    before : float array of shape (n, H)
        What enters the hidden units at v = 0.
    network : tuple
        directions (D, H), directions times head (D, H), head (H,), 1 / squared length of each unit's weights (H,),
        offset, leak.
    signs, lam : float arrays of shape (n,)
        −1 for class 0, 1 for class 1; λ.
    metric : tuple
        scale, basis (k, D), costs (k,) of Σ.
    steps : int
    size : float
    near : bool
    v : float array of shape (n, D)
        Overwritten.

    Returns
    -------
    best : float array of shape (n, D)
    found : float64 array of shape (n, 4)
        Loss and objective there, the best objective after three quarters of the steps, and 1 where all was finite.
    """
    n, width = v.shape
    best, found = np.empty_like(v), np.empty((n, 4))
    room = (
        np.empty(before.shape[1], v.dtype),
        np.empty(width, v.dtype),
        np.empty(width, v.dtype),
        np.empty(width, v.dtype),
        np.empty(width, v.dtype),
        np.empty(width, v.dtype),
    )
    for i in range(n):
        _row(before[i], network, signs[i], lam[i], metric, steps, size, near, v[i], best[i], found[i], room)
    return best, found
