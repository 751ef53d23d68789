"""Smaller regions at no loss: what lies too far away to beat the best row known is taken off first.

Where the loss is at most U over a region and a row attains the value v, a row x with U − λ d²(x, x₀) ≤ v cannot beat it.
So a category, or an end of an interval, leaves the region when the least d² with it exceeds (U − v) / λ.
"""

from __future__ import annotations

import numpy as np

from likewise.auditing.bounds.number_codes import decode_number, encode_number, is_curved, rounding_at
from likewise.auditing.bounds.region_costs.cost_descent import begin, project, sweep, tangent
from likewise.auditing.bounds.region_costs.least_cost import LeastCostForm
from likewise.auditing.bounds.regions import Regions, encoded_box
from likewise.auditing.bounds.table_layout import TableLayout
from likewise.core.arrays import FloatArray
from likewise.core.compiled import compiled

__all__ = ["within_reach"]

_HALVINGS = 10
_SWEEPS = 20


def within_reach(
    layout: TableLayout,
    form: LeastCostForm,
    regions: Regions,
    origin: FloatArray,
    warm: FloatArray,
    reach: FloatArray,
) -> Regions:
    """Take off each region what is further than its reach.

    Parameters
    ----------
    layout : TableLayout
    form : LeastCostForm
        Σ of the metric.
    regions : Regions
        n of them.
    origin, warm : float arrays of shape (n, d)
        The people, and points to start from, encoded.
    reach : float array of shape (n,)
        Squared fair distance beyond which nothing matters.

    Returns
    -------
    Regions
        Parts of the given ones that hold every row within reach of its person.

    Examples
    --------
    >>> from likewise.domains import BoxDomain
    >>> layout = TableLayout.of(BoxDomain([-8.0], [8.0]))
    >>> whole = Regions(np.array([[-8.0]]), np.array([[8.0]]), np.zeros((1, 0), dtype=np.uint8))
    >>> form = LeastCostForm(1.0, np.zeros((1, 0)), np.zeros(0))
    >>> near = within_reach(layout, form, whole, np.zeros((1, 1)), np.zeros((1, 1)), np.ones(1))
    >>> bool(near.high[0, 0] >= 1.0), bool(near.high[0, 0] < 1.1)
    (True, True)
    """
    lower, upper = encoded_box(layout, regions)
    now = Regions(regions.low.copy(), regions.high.copy(), regions.allowed.copy())
    kinds = np.where(layout.is_category, 2, np.where(layout.is_integer, 1, 0))
    shape = (kinds, layout.start, layout.count, layout.offset, layout.numbers)
    metric = (form.scale, form.basis, form.values)
    _shrink(lower, upper, now.low, now.high, now.allowed, origin, warm, metric, layout.blocks, shape, reach)
    return now


@compiled
def _too_far(lower, upper, origin, warm, metric, blocks, in_block, reach, zeros, x, inside):  # type: ignore[no-untyped-def]
    """Whether the least d² over a region exceeds the reach: at the first proof, or the first row that does not."""
    begin(lower, upper, warm, blocks, in_block, x)
    project(x, origin, metric[1], inside)
    for _ in range(_SWEEPS):
        value, bound = tangent(lower, upper, origin, metric, blocks, in_block, 1.0, zeros, x, inside)
        if bound > reach:
            return True
        if value <= reach:
            return False
        if sweep(lower, upper, origin, metric, blocks, in_block, 1.0, zeros, x, inside) < 1e-12:
            return False
    return False


@compiled
def _shrink(lower, upper, low, high, allowed, origin, warm, metric, blocks, shape, reach):  # type: ignore[no-untyped-def]
    """Take off `low`, `high` and `allowed` what is too far."""
    kinds, start, count, offset, numbers = shape
    n, width = lower.shape
    zeros, x, inside = np.zeros(width), np.empty(width), np.empty(len(metric[2]))
    in_block = np.zeros(width, dtype=np.bool_)
    for i in range(n):
        if not np.isfinite(reach[i]):
            continue
        a, b = lower[i], upper[i]
        for p in range(len(kinds)):
            j = start[p]
            if kinds[p] == 2:
                left = 0
                for c in range(count[p]):
                    left += allowed[i, offset[p] + c]
                for c in range(count[p]):
                    if left <= 1 or allowed[i, offset[p] + c] == 0:
                        continue
                    if count[p] == 2:
                        a[j], b[j] = float(c), float(c)
                    else:
                        a[j : j + count[p]], b[j : j + count[p]] = 0.0, 0.0
                        a[j + c], b[j + c] = 1.0, 1.0
                    far = _too_far(
                        a, b, origin[i], warm[i], metric, blocks, in_block, reach[i], zeros, x, inside
                    )
                    if far:
                        # The last one stays, so that the region remains one; its own bound then says it is too far.
                        allowed[i, offset[p] + c] = 0
                        left -= 1
                    if count[p] == 2:
                        a[j] = 0.0 if allowed[i, offset[p]] != 0 else 1.0
                        b[j] = 1.0 if allowed[i, offset[p] + 1] != 0 else 0.0
                    else:
                        for k in range(count[p]):
                            b[j + k] = 1.0 if allowed[i, offset[p] + k] != 0 else 0.0
                            a[j + k] = b[j + k] if left == 1 else 0.0
                continue
            whole = kinds[p] == 1
            own = min(max(decode_number(p, origin[i, j], numbers), low[i, p]), high[i, p])
            if whole:
                own = np.rint(own)
            for side in (1, -1):
                # The end comes to the middle while everything beyond it is too far.
                inner, outer = own, high[i, p] if side > 0 else low[i, p]
                if not np.isfinite(outer):
                    continue
                # Where even the end itself is within reach, nothing comes off.
                kept = a[j] if side > 0 else b[j]
                if side * (outer - inner) <= 0.0:
                    continue
                edge = encode_number(p, outer, numbers)
                edge -= side * rounding_at(p, edge, numbers)
                if side > 0:
                    a[j] = edge
                else:
                    b[j] = edge
                far = _too_far(a, b, origin[i], warm[i], metric, blocks, in_block, reach[i], zeros, x, inside)
                if side > 0:
                    a[j] = kept
                else:
                    b[j] = kept
                if not far:
                    continue
                for _ in range(_HALVINGS):
                    middle = (inner + outer) / 2.0
                    if is_curved(p, numbers):
                        ends = encode_number(p, inner, numbers), encode_number(p, outer, numbers)
                        middle = decode_number(p, (ends[0] + ends[1]) / 2.0, numbers)
                        middle = min(max(middle, min(inner, outer)), max(inner, outer))
                    step = 0.0
                    if whole:
                        middle = np.floor(middle) if side > 0 else np.ceil(middle)
                        step = float(side)
                    if side * (outer - middle) <= 0.0 or side * (outer - inner) <= 0.0:
                        break
                    edge = encode_number(p, middle + step, numbers)
                    edge -= side * rounding_at(p, edge, numbers)
                    if side > 0:
                        kept, a[j] = a[j], edge
                    else:
                        kept, b[j] = b[j], edge
                    far = _too_far(
                        a, b, origin[i], warm[i], metric, blocks, in_block, reach[i], zeros, x, inside
                    )
                    if side > 0:
                        a[j] = kept
                    else:
                        b[j] = kept
                    if far:
                        outer = middle
                        end = encode_number(p, middle, numbers)
                        end += side * rounding_at(p, end, numbers)
                        if side > 0:
                            high[i, p], b[j] = middle, end
                        else:
                            low[i, p], a[j] = middle, end
                    else:
                        inner = middle + step
