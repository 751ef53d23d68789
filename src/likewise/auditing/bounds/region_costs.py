"""Which part of a domain moves that cost nothing can reach at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.bounds.regions import (
    MetricArrays,
    Regions,
    TableLayout,
    decode_number,
    encode_number,
    encoded_box,
)
from likewise.core.checks import FloatArray, to_numpy
from likewise.core.compiled import compiled, fill

# Compiled coordinate descent on price · d² − slope·x over a region, and the tangents that bound it from
# below.


_SWEEPS = 40
_CLOSE = 1e-7
# Relative rounding that is taken off every bound.
_ROUNDING = 1e-13


@compiled
def _half_slope(j, x, origin, inside, metric):  # type: ignore[no-untyped-def]
    """(Σ(x − x₀))_j, from the coordinates inside the basis."""
    scale, basis, values = metric
    total = scale * (x[j] - origin[j])
    for k in range(len(values)):
        total += values[k] * basis[j, k] * inside[k]
    return total


@compiled
def _gradient(j, x, origin, inside, metric, price, slope):  # type: ignore[no-untyped-def]
    """Slope of price · d² − slope·x along coordinate j."""
    return 2.0 * price * _half_slope(j, x, origin, inside, metric) - slope[j]


@compiled
def _curvature(j, other, metric):  # type: ignore[no-untyped-def]
    """d² of a unit step along coordinate j, and back along another if that is not −1."""
    scale, basis, values = metric
    total = scale if other < 0 else 2.0 * scale
    for k in range(len(values)):
        step = basis[j, k] if other < 0 else basis[j, k] - basis[other, k]
        total += values[k] * step * step
    return total


@compiled
def _move(j, step, x, inside, basis):  # type: ignore[no-untyped-def]
    """Move one coordinate."""
    x[j] += step
    for k in range(len(inside)):
        inside[k] += basis[j, k] * step


@compiled
def project(x, origin, basis, inside):  # type: ignore[no-untyped-def]
    """Fill `inside` with the coordinates of x − x₀ in the basis."""
    for k in range(len(inside)):
        total = 0.0
        for j in range(len(x)):
            total += basis[j, k] * (x[j] - origin[j])
        inside[k] = total


@compiled
def begin(lower, upper, warm, blocks, in_block, x):  # type: ignore[no-untyped-def]
    """The warm start brought into the region."""
    for j in range(len(x)):
        x[j] = min(max(warm[j], lower[j]), upper[j])
        if not np.isfinite(x[j]):
            x[j] = 0.0
    for b in range(len(blocks)):
        total, last = 0.0, blocks[b, 0]
        for j in range(blocks[b, 0], blocks[b, 1]):
            in_block[j] = True
            total += x[j]
            if upper[j] > 0.0:
                last = j
        for j in range(blocks[b, 0], blocks[b, 1]):
            if total > 0.0:
                x[j] = x[j] / total
            else:
                x[j] = 1.0 if j == last else 0.0


@compiled
def sweep(lower, upper, origin, metric, blocks, in_block, price, slope, x, inside):  # type: ignore[no-untyped-def]
    """One pass of coordinate descent: numbers one by one, categories by exchanging shares; returns the largest step."""
    basis = metric[1]
    largest = 0.0
    for j in range(len(x)):
        if in_block[j] or lower[j] == upper[j]:
            continue
        gradient = _gradient(j, x, origin, inside, metric, price, slope)
        curvature = 2.0 * price * _curvature(j, -1, metric)
        if curvature > 1e-12:
            new = min(max(x[j] - gradient / curvature, lower[j]), upper[j])
        elif gradient > 0.0:
            new = lower[j]
        elif gradient < 0.0:
            new = upper[j]
        else:
            new = x[j]
        if np.isfinite(new) and new != x[j]:
            largest = max(largest, abs(new - x[j]))
            _move(j, new - x[j], x, inside, basis)
    for b in range(len(blocks)):
        for _ in range(3):
            best, worst, g_best, g_worst = -1, -1, np.inf, -np.inf
            for j in range(blocks[b, 0], blocks[b, 1]):
                if upper[j] == 0.0:
                    continue
                g = _gradient(j, x, origin, inside, metric, price, slope)
                if g < g_best:
                    best, g_best = j, g
                if x[j] > 0.0 and g > g_worst:
                    worst, g_worst = j, g
            if best < 0 or worst < 0 or best == worst or g_worst - g_best <= 1e-12:
                break
            curvature = 2.0 * price * _curvature(best, worst, metric)
            step = x[worst]
            if curvature > 1e-12:
                step = min(step, (g_worst - g_best) / curvature)
            largest = max(largest, step)
            _move(best, step, x, inside, basis)
            if step == x[worst]:
                # Exactly none left, whatever the rounding of a difference.
                _move(worst, -step, x, inside, basis)
                x[worst] = 0.0
            else:
                _move(worst, -step, x, inside, basis)
    return largest


@compiled
def tangent(lower, upper, origin, metric, blocks, in_block, price, slope, x, inside):  # type: ignore[no-untyped-def]
    """F at x, and the least value of its tangent over the region, less the rounding of the sums."""
    value, least, size = 0.0, 0.0, 0.0
    for j in range(len(x)):
        half = _half_slope(j, x, origin, inside, metric)
        term = price * half * (x[j] - origin[j]) - slope[j] * x[j]
        value += term
        size += abs(term)
        if in_block[j]:
            continue
        g = 2.0 * price * half - slope[j]
        if g > 0.0:
            change = g * (lower[j] - x[j])
        elif g < 0.0:
            change = g * (upper[j] - x[j])
        else:
            change = 0.0
        least += change
        size += abs(change)
    for b in range(len(blocks)):
        lowest, mixed = np.inf, 0.0
        for j in range(blocks[b, 0], blocks[b, 1]):
            if upper[j] == 0.0:
                continue
            g = _gradient(j, x, origin, inside, metric, price, slope)
            lowest = min(lowest, g)
            mixed += g * x[j]
            size += abs(g)
        least += lowest - mixed
    return value, value + least - _ROUNDING * size


@compiled
def _choose(low, high, allowed, origin, metric, shape, price, slope, x, inside, row):  # type: ignore[no-untyped-def]
    """Turn x into a row that can exist, then improve it column by column among such rows; fills `row` with values."""
    basis = metric[1]
    kinds, start, count, offset, numbers = shape
    for p in range(len(kinds)):
        if kinds[p] < 2:
            value = decode_number(p, x[start[p]], numbers)
            if kinds[p] == 1:
                value = np.rint(value)
            row[p] = min(max(value, low[p]), high[p])
            _move(start[p], encode_number(p, row[p], numbers) - x[start[p]], x, inside, basis)
        elif count[p] == 2:
            code = 1.0 if x[start[p]] >= 0.5 else 0.0
            if allowed[offset[p] + int(code)] == 0:
                code = 1.0 - code
            row[p] = code
            _move(start[p], code - x[start[p]], x, inside, basis)
        else:
            best, share = -1, -1.0
            for c in range(count[p]):
                if allowed[offset[p] + c] != 0 and x[start[p] + c] > share:
                    best, share = c, x[start[p] + c]
            row[p] = best
            for c in range(count[p]):
                _move(start[p] + c, (1.0 if c == best else 0.0) - x[start[p] + c], x, inside, basis)
    for _ in range(4):
        changed = False
        for p in range(len(kinds)):
            j = start[p]
            if kinds[p] < 2:
                if low[p] == high[p]:
                    continue
                g = _gradient(j, x, origin, inside, metric, price, slope)
                curvature = 2.0 * price * _curvature(j, -1, metric)
                if curvature <= 1e-12:
                    continue
                value = decode_number(p, x[j] - g / curvature, numbers)
                if kinds[p] == 1:
                    value = np.rint(value)
                value = min(max(value, low[p]), high[p])
                if value != row[p]:
                    row[p] = value
                    _move(j, encode_number(p, value, numbers) - x[j], x, inside, basis)
                    changed = kinds[p] == 1 or changed
            elif count[p] > 1:
                now, best, gain = int(row[p]), int(row[p]), -1e-12
                for c in range(count[p]):
                    if c == now or allowed[offset[p] + c] == 0:
                        continue
                    if count[p] == 2:
                        gained, other = _gradient(j, x, origin, inside, metric, price, slope) * (c - now), -1
                    else:
                        gained, other = _gradient(j + c, x, origin, inside, metric, price, slope), j + now
                        gained -= _gradient(other, x, origin, inside, metric, price, slope)
                    change = gained + price * _curvature(j if other < 0 else j + c, other, metric)
                    if change < gain:
                        best, gain = c, change
                if best != now:
                    changed = True
                    row[p] = best
                    if count[p] == 2:
                        _move(j, float(best - now), x, inside, basis)
                    else:
                        _move(j + now, -1.0, x, inside, basis)
                        _move(j + best, 1.0, x, inside, basis)
        if not changed:
            break


@compiled
def least_cost(lower, upper, low, high, allowed, origin, warm, metric, blocks, shape, price, slope, out):  # type: ignore[no-untyped-def]
    """Fill bound (n,), point (n, d) and values (n, P)."""
    bound, point, rows = out
    n, width = lower.shape
    inside = np.empty(len(metric[2]))
    in_block = np.zeros(width, dtype=np.bool_)
    x = np.empty(width)
    for i in range(n):
        begin(lower[i], upper[i], warm[i], blocks, in_block, x)
        project(x, origin[i], metric[1], inside)
        value, best = tangent(
            lower[i], upper[i], origin[i], metric, blocks, in_block, price[i], slope[i], x, inside
        )
        fill(point[i], x)
        for number in range(_SWEEPS):
            if value - best <= _CLOSE * (1.0 + abs(value)):
                break
            moved = sweep(
                lower[i], upper[i], origin[i], metric, blocks, in_block, price[i], slope[i], x, inside
            )
            if number % 3 == 2 or moved < 1e-12:
                # Anew, so that the rounding of the steps does not add up in the bound.
                project(x, origin[i], metric[1], inside)
                value, below = tangent(
                    lower[i], upper[i], origin[i], metric, blocks, in_block, price[i], slope[i], x, inside
                )
                best = max(best, below)
            if moved < 1e-12:
                break
        bound[i] = best
        fill(point[i], x)
        _choose(low[i], high[i], allowed[i], origin[i], metric, shape, price[i], slope[i], x, inside, rows[i])


# The least of price · d² − slope·x over a region, from below, and a valid row close to where it is.


@dataclass(frozen=True, eq=False)
class LeastCost:
    """What `least` found for each region."""

    bound: FloatArray
    point: FloatArray
    values: FloatArray

    @staticmethod
    def over(
        layout: TableLayout,
        form: MetricArrays,
        regions: Regions,
        origin: FloatArray,
        warm: FloatArray,
        price: FloatArray,
        slope: FloatArray | None = None,
    ) -> LeastCost:
        """Minimise over each region."""
        lower, upper = encoded_box(layout, regions)
        slope = np.zeros_like(lower) if slope is None else slope
        n = len(regions)
        bound, point = np.empty(n), np.empty((n, layout.width))
        values = np.empty((n, layout.n_columns))
        least_cost(
            lower,
            upper,
            regions.low,
            regions.high,
            regions.allowed,
            origin,
            warm,
            (form.scale, form.basis, form.values),
            layout.blocks,
            layout.shape,
            price,
            slope,
            (bound, point, values),
        )
        return LeastCost(bound, point, values)


def free_regions(layout: TableLayout, metric: Any, regions: Regions, own: FloatArray) -> Regions:
    """Hold every column that no free direction touches at the person's own value.

    Exact where free directions are whole columns; elsewhere a set that contains all free moves.
    """
    if metric.n_features is None:
        touched = np.zeros(layout.width, dtype=bool)
    else:
        basis = np.asarray(to_numpy(metric.null_space.basis), dtype=np.float64)
        touched = np.abs(basis).max(axis=1, initial=0.0) > 1e-12
    low, high, allowed = regions.low.copy(), regions.high.copy(), regions.allowed.copy()
    for i, column in enumerate(layout.columns):
        moves = touched[column.slice]
        if column.kind != "categorical":
            if not moves[0]:
                low[:, i] = high[:, i] = own[:, i]
            continue
        count = len(column.categories)
        reach = np.repeat(moves, count) if column.width == 1 else moves
        codes = own[:, i].astype(np.int64)
        stay = np.arange(count)[None, :] == codes[:, None]
        allowed[:, layout.its(i)] &= stay | (reach[None, :] & reach[codes][:, None])
    return Regions(low, high, allowed)
