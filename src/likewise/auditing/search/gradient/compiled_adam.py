"""Adam on a network of one hidden layer, row by row, compiled: a row's hidden units never leave the cache."""

from __future__ import annotations

import math

import numba
import numpy as np

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8
# Hidden units near their kink that are followed one by one.
_WATCHED = 32
# Sums in any order, so that they are vectorised; infinities and NaN keep their meaning.
_MATHS = {"reassoc", "contract", "arcp", "nsz"}
# One function is compiled, the others are written into it. Compiled one by one they are linked in another way when they
# come from the cache on disk, and round in another way: the first process on a machine would have its own results.
_within = numba.njit(fastmath=_MATHS, error_model="numpy", inline="always")


@_within
def _copy(source, target):  # type: ignore[no-untyped-def]
    """Fill target; a slice that is assigned would compile, for seconds, the words of an error that cannot happen."""
    for i in range(len(source)):
        target[i] = source[i]


@_within
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


@_within
def _watch(u, lengths, within, watched):  # type: ignore[no-untyped-def]
    """List the hidden units that may change their sign within a squared distance: |W_j·δ| ≤ ‖W_j‖ ‖δ‖.

    Returns how many they are, and the squared distance up to which the others keep theirs.
    """
    count, reach = 0, u.dtype.type(np.inf)
    for j in range(len(u)):
        share = u[j] * u[j] * lengths[j]
        if share < within and count < len(watched):
            watched[count] = j
            count += 1
        elif share < reach:
            reach = share
    return count, reach


@_within
def _turned(u, units, head, leak, watched, count, moved, slopes, now):  # type: ignore[no-untyped-def]
    """Fill `now` with the slopes where watched units have changed their sign; return what that adds to the margin."""
    added = u.dtype.type(0.0)
    _copy(slopes, now)
    for c in range(count):
        j = watched[c]
        at = u[j]
        for i in range(len(moved)):
            at += units[j, i] * moved[i]
        if (at > 0.0) != (u[j] > 0.0):
            change = head[j] * (1.0 - leak) if at > 0.0 else -head[j] * (1.0 - leak)
            added += change * at
            for i in range(len(moved)):
                now[i] += change * units[j, i]
    return added


@_within
def _penalty(v, scale, basis, costs, product):  # type: ignore[no-untyped-def]
    """Fill product with Σv and return vᵀΣv, Σ = scale·I + Q diag(costs − scale) Qᵀ."""
    rank, width = basis.shape
    total, outside = v.dtype.type(0.0), v.dtype.type(0.0)
    _copy(v, product)
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


@_within
def _adam_step(k, size, slope, price, slopes, product, first, second, v):  # type: ignore[no-untyped-def]
    """Move v by the k-th step along slope · slopes − price · product, kept in product; return that gradient's sum."""
    real = v.dtype.type
    new1, new2, epsilon = real(1.0 - _BETA1), real(1.0 - _BETA2), real(_EPSILON)
    grown, shrink = real(size / (1.0 - _BETA1**k)), real(1.0 / (1.0 - _BETA2**k))
    total = real(0.0)
    # Few arrays per loop: with more of them the compiler cannot tell that they are apart, and does not vectorise.
    for i in range(len(v)):
        product[i] = slope * slopes[i] - price * product[i]
    for i in range(len(v)):
        total += product[i]
        first[i] += new1 * (product[i] - first[i])
    for i in range(len(v)):
        second[i] += new2 * (product[i] * product[i] - second[i])
    for i in range(len(v)):
        v[i] += grown * first[i] / (math.sqrt(second[i] * shrink) + epsilon)
    return total


@_within
def _row(before, network, sign, lam, metric, steps, size, near, v, best, found, room, watched):  # type: ignore[no-untyped-def]
    """Climb one row from v; fill `best` and `found` = (loss, objective, objective at three quarters, sound)."""
    directions, units, weighted, head, lengths, offset, leak = network
    scale, basis, costs = metric
    u, slopes, product, first, second, centre, moved, now = room
    real, width = v.dtype.type, len(v)
    threshold = 3 * steps // 4
    margin, reach, count = real(0.0), real(-1.0), 0
    # About twice as far as a row goes, if each step is as long as its size in every coordinate.
    within = real(4.0 * width * (steps * size) ** 2)
    first[:] = 0.0
    second[:] = 0.0
    product[:] = 0.0
    sound = True
    for k in range(1, steps + 2):
        far, rise = real(0.0), real(0.0)
        if near and k > 1:
            for i in range(width):
                moved[i] = v[i] - centre[i]
                far += moved[i] * moved[i]
                rise += slopes[i] * moved[i]
        if near and far < reach:
            at = margin + rise + _turned(u, units, head, leak, watched, count, moved, slopes, now)
        else:
            at = _look(before, directions, weighted, head, offset, leak, v, u, slopes)
            _copy(slopes, now)
            if near:
                margin = at
                count, reach = _watch(u, lengths, within, watched)
                _copy(v, centre)
        t = sign * at
        small, one = math.exp(-abs(t)), real(1.0)
        loss = max(-t, real(0.0)) + math.log1p(small)
        # ℓ′(t) = −σ(−t)
        slope = -sign * ((small if t > 0.0 else one) / (one + small))
        squared = _penalty(v, scale, basis, costs, product) if lam > 0.0 else real(0.0)
        value = loss - lam * squared
        if k == 1:
            found[0], found[1], found[2] = loss, value, value
            _copy(v, best)
            sound = abs(value) < np.inf
        elif abs(value) < np.inf and value > found[1]:
            found[0], found[1] = loss, value
            _copy(v, best)
        if k > steps:
            sound = sound and abs(loss) < np.inf
            break
        total = _adam_step(k, size, real(slope), real(2.0 * lam), now, product, first, second, v)
        sound = sound and abs(loss + total) < np.inf
        if k == threshold:
            found[2] = found[1]
    found[3] = 1.0 if sound else 0.0


@numba.njit(fastmath=_MATHS, error_model="numpy", cache=True)
def climb(before, network, signs, lam, metric, steps, size, near, v):  # type: ignore[no-untyped-def]
    """Climb ℓ − λ d² with Adam from displacements v, for cross-entropy on a network of one hidden layer.

    With `near` the network is asked again only when a row has gone so far that hidden units may have changed their sign
    besides the few near their kink, which are followed: until then it is linear, and a step costs D instead of D
    times H.
    """
    n, width = v.shape
    best, found = np.empty_like(v), np.empty((n, 4))
    hidden = np.empty(before.shape[1], v.dtype)
    work = np.empty((7, width), v.dtype)
    room = (hidden, work[0], work[1], work[2], work[3], work[4], work[5], work[6])
    watched = np.empty(_WATCHED, np.int64)
    for i in range(n):
        _row(
            before[i],
            network,
            signs[i],
            lam[i],
            metric,
            steps,
            size,
            near,
            v[i],
            best[i],
            found[i],
            room,
            watched,
        )
    return best, found
