"""Which share of a region is decided where lines alone do it: the same for all sensitive values, or not.

Every sensitive value a and class y has lines U with decision y wherever they are below 0. All are below 0 where the one
whose mean over the region is highest, U*, is below −max over the region of (U − U*): rows on one side of a plane,
which are counted. Lines of twins are nearly parallel, so that little is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.bounds.linear_bounds import extremes
from likewise.auditing.bounds.regions import Regions, TableLayout, box_means, encoded_box
from likewise.core.checks import FloatArray, IntArray
from likewise.core.compiled import compiled

# How many rows of a region lie where a linear function is positive, never counted too high.


_BINS = 256


def lowest_terms(layout: TableLayout, regions: Regions, slope: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Least and largest term of each column over its region, (n, P) each, for a line slopeᵀx by the encoded row."""
    least, most = np.empty(regions.low.shape), np.empty(regions.low.shape)
    for i, column in enumerate(layout.columns):
        if not column.categories:
            part = slope[:, column.start]
            ends = [part * column.place(end[:, i]) for end in (regions.low, regions.high)]
            least[:, i], most[:, i] = np.minimum(*ends), np.maximum(*ends)
            continue
        terms, left = _category_terms(layout, slope, i), regions.allowed[:, layout.its(i)] != 0
        least[:, i] = np.where(left, terms, np.inf).min(axis=1)
        most[:, i] = np.where(left, terms, -np.inf).max(axis=1)
    return least, most


def _category_terms(layout: TableLayout, slope: FloatArray, i: int) -> FloatArray:
    """What each category of a column adds, (n, C)."""
    column = layout.columns[i]
    if column.is_binary:
        return np.stack([np.zeros(len(slope)), slope[:, column.start]], axis=1)
    return slope[:, column.slice]


def share_above(
    layout: TableLayout, regions: Regions, apart: IntArray, slope: FloatArray, offset: FloatArray
) -> FloatArray:
    """Share of the rows of each region, some columns aside, where slopeᵀx + offset > 0 for all values of those."""
    least, most = lowest_terms(layout, regions, slope)
    reach = most - least
    reach[:, apart] = 0.0
    # Values are counted by equal steps; where a scale has none, only the least value of a number counts.
    reach[:, layout.curved] = 0.0
    # What must be exceeded above the least value; a little more, for the rounding of these sums.
    size = np.abs(offset) + np.maximum(np.abs(least), np.abs(most)).sum(axis=1)
    need = -(offset + least.sum(axis=1)) + 1e-12 * size
    share = np.zeros(len(regions))
    share[need < 0] = 1.0
    at = np.flatnonzero((need >= 0) & (need < reach.sum(axis=1)))
    if len(at):
        terms = np.zeros((len(at), layout.n_categories))
        for i in np.flatnonzero(layout.is_category):
            terms[:, layout.its(i)] = _category_terms(layout, slope[at], int(i)) - least[at, i][:, None]
        values = np.where(layout.is_integer[None, :], regions.high[at] - regions.low[at] + 1.0, 0.0)
        share[at] = _counted(
            layout.shape[0],
            layout.offset,
            layout.count,
            values,
            regions.allowed[at],
            np.ascontiguousarray(reach[at]),
            terms,
            need[at],
            _BINS,
        )
    # Sums of probabilities are exact to far less than this.
    return np.maximum(share - 1e-12 * (share < 1.0), 0.0)


@compiled
def _counted(kinds, offset, count, values, allowed, reach, terms, need, bins):  # type: ignore[no-untyped-def]
    n, columns = reach.shape
    share = np.empty(n)
    mass, fresh = np.empty(bins), np.empty(bins)
    for i in range(n):
        widest, others = -1, 0.0
        for p in range(columns):
            others += reach[i, p]
            if kinds[p] != 2 and reach[i, p] > 0.0 and (widest < 0 or reach[i, p] > reach[i, widest]):
                widest = p
        if widest >= 0:
            others -= reach[i, widest]
        # Whatever the grid counts as its end or beyond is enough by itself, or as much as there is.
        step = min(need[i], others) / (bins - 1) * (1.0 + 1e-12) + 1e-300
        total = 0.0
        # Of a constant, the functions below would be compiled once more.
        mass[0], used = 1.0, np.int64(1)
        for p in range(columns):
            if p == widest or reach[i, p] <= 0.0:
                continue
            fresh[:] = 0.0
            if kinds[p] == 2:
                its = slice(offset[p], offset[p] + count[p])
                used, enough = _with_category(
                    terms[i, its], allowed[i, its], mass, used, fresh, step, need[i]
                )
            else:
                size = values[i, p] if kinds[p] == 1 else 0.0
                used, enough = _with_number(reach[i, p], size, mass, used, fresh, step, need[i])
            total += enough
            # A slice that is assigned would compile the words of an error that cannot happen.
            for b in range(used):
                mass[b] = fresh[b]
        size = values[i, widest] if widest >= 0 and kinds[widest] == 1 else 0.0
        span = reach[i, widest] if widest >= 0 else 0.0
        share[i] = total + _with_widest(span, size, mass, used, step, need[i])
    return share


@compiled
def _with_category(terms, allowed, mass, used, fresh, step, need):  # type: ignore[no-untyped-def]
    """Convolve with the terms of a category's values; return how far the masses reach, and what is enough by now."""
    left, top, enough = 0, used, 0.0
    for c in range(len(terms)):
        left += allowed[c]
    for c in range(len(terms)):
        if allowed[c] != 0:
            shift = int(min(terms[c] / step, float(len(mass))))
            enough += _shifted(mass, used, fresh, shift, 1.0 / left, step, need)
            top = max(top, min(used + shift, len(mass)))
    return top, enough


@compiled
def _with_number(reach, size, mass, used, fresh, step, need):  # type: ignore[no-untyped-def]
    """The same for a number: `size` whole values, 0 for a continuous one.

    Of a whole number the k-th value adds k steps of its own; bin b begins at the first that reaches it.
    """
    unit = reach / (size - 1.0) if size > 0.0 else reach
    last = int(min(reach / step, float(len(mass))))
    begin, top, enough = 0.0, used, 0.0
    for b in range(last + 1):
        if size > 0.0:
            end = min(np.ceil((b + 1) * step / unit + 1e-9), size) if b < last else size
            weight = (end - begin) / size
        else:
            end = min((b + 1) * step / unit, 1.0) if b < last else 1.0
            weight = end - begin
        if weight > 0.0:
            enough += _shifted(mass, used, fresh, b, weight, step, need)
            top = max(top, min(used + b, len(mass)))
        begin = max(begin, end)
    return top, enough


@compiled
def _with_widest(reach, size, mass, used, step, need):  # type: ignore[no-untyped-def]
    """Share of all rows that is enough, with the values of the widest number counted for each grid point."""
    total = 0.0
    for b in range(used):
        short = need - b * step
        if short < 0.0:
            total += mass[b]
        elif size > 0.0:
            over = size - 1.0 - np.floor(short / (reach / (size - 1.0)) + 1e-9)
            total += mass[b] * max(over, 0.0) / size
        elif reach > 0.0:
            total += mass[b] * max(1.0 - short / reach - 1e-12, 0.0)
    return total


@compiled
def _shifted(mass, used, fresh, shift, weight, step, need):  # type: ignore[no-untyped-def]
    """Add a shifted copy of the masses; return what falls off the end if it is enough there, and put it there if not."""
    bins = len(mass)
    inside = min(used, max(bins - shift, 0))
    for b in range(inside):
        fresh[b + shift] += weight * mass[b]
    rest = 0.0
    for b in range(inside, used):
        rest += weight * mass[b]
    if rest > 0.0 and (bins - 1) * step <= need:
        fresh[bins - 1] += rest
        return 0.0
    return rest


@dataclass(frozen=True, eq=False)
class ValueLines:
    """Lines of each region under each sensitive value, functions of the other columns alone."""

    slope: FloatArray
    offset: FloatArray

    @classmethod
    def known(cls, labels: IntArray, n_labels: int, n_lines: int, width: int) -> ValueLines:
        """Lines of what is decided already, (n, S) labels: below 0 for its class, above 0 for all others."""
        offset = np.where(np.arange(n_labels)[None, None, :] == labels[:, :, None], -1.0, 1.0)
        slope = np.zeros((*labels.shape, n_labels, n_lines, width))
        return cls(slope, np.repeat(offset[..., None], n_lines, axis=3))

    def put(
        self,
        layout: TableLayout,
        at: Any,
        there: Regions,
        apart: IntArray,
        slope: FloatArray,
        offset: FloatArray,
    ) -> None:
        """Write down lines of some regions and values; sensitive columns count with their largest term."""
        m, labels, lines, width = slope.shape
        each = np.repeat(np.arange(m), labels * lines)
        flat = slope.reshape(-1, width)
        most = lowest_terms(layout, there.take(each), flat)[1][:, apart].sum(axis=1)
        ours = np.isin(layout.owner, apart)
        self.slope[at] = np.where(ours, 0.0, slope)
        self.offset[at] = offset + most.reshape(offset.shape)


def shares_by_lines(
    layout: TableLayout, regions: Regions, apart: IntArray, lines: ValueLines, covers: Any
) -> tuple[FloatArray, FloatArray]:
    """Shares of each region that are proved to keep their decision, and proved to flip; (n,) each."""
    n, _, labels, _, width = lines.slope.shape
    lower, upper = encoded_box(layout, regions)
    mean = box_means(lower, upper, layout.blocks)
    middle = (lines.slope.reshape(n, -1, width) @ mean[:, :, None]).reshape(lines.offset.shape) + lines.offset
    largest = np.maximum(np.abs(lower), np.abs(upper))
    rows = np.arange(n)
    proved = np.zeros(n)
    for y in range(labels):
        slope = lines.slope[:, covers, y].reshape(n, -1, width)
        offset = lines.offset[:, covers, y].reshape(n, -1)
        first = middle[:, covers, y].reshape(n, -1).argmax(axis=1)
        own, base = slope[rows, first], offset[rows, first]
        above = extremes(slope - own[:, None], lower, upper, layout.blocks) + offset - base[:, None]
        lift = np.maximum(above.max(axis=1), 0.0)
        # For the rounding of these sums, however much of them cancels.
        size = (np.abs(slope) @ largest[:, :, None])[:, :, 0] + np.abs(offset)
        lift += 1e-12 * size.max(axis=1)
        proved += share_above(layout, regions, apart, -own, -(base + lift))
    flips = np.zeros(n)
    if labels == 2 and middle.shape[3] == 1:
        flips = _flips(layout, regions, apart, lines, middle)
    return np.minimum(proved, 1.0), np.minimum(flips, 1.0 - np.minimum(proved, 1.0))


def _flips(
    layout: TableLayout, regions: Regions, apart: IntArray, lines: ValueLines, middle: FloatArray
) -> FloatArray:
    """P(A and B) ≥ P(A) + P(B) − 1, for the value that is surest of each class in the mean."""
    rows = np.arange(len(regions))
    pick = [middle[:, :, y, 0].argmin(axis=1) for y in (0, 1)]
    # Both lines below 0 at once is only possible where they leave something between them.
    at = np.flatnonzero(middle[rows, pick[0], 0, 0] + middle[rows, pick[1], 1, 0] < 0)
    flips = np.zeros(len(regions))
    if len(at):
        part = regions.take(at)
        total = -np.ones(len(at))
        for y in (0, 1):
            slope, offset = lines.slope[at, pick[y][at], y, 0], lines.offset[at, pick[y][at], y, 0]
            total += share_above(layout, part, apart, -slope, -offset)
        flips[at] = np.maximum(total, 0.0)
    return flips
