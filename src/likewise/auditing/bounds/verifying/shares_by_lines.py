"""Which share of a region is decided where lines alone do it: the same for all sensitive values, or not.

Every sensitive value a and class y has lines U with decision y wherever they are below 0. All are below 0 where the one
whose mean over the region is highest, U*, is below −max over the region of (U − U*): rows on one side of a plane,
which are counted. Lines of twins are nearly parallel, so that little is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.bounds.networks.linear_bounds import extremes
from likewise.auditing.bounds.regions import Regions, box_means, encoded_box
from likewise.auditing.bounds.table_layout import IntArray, TableLayout
from likewise.auditing.bounds.verifying.half_spaces import lowest_terms, share_above
from likewise.core.arrays import FloatArray

__all__ = ["ValueLines", "shares_by_lines"]


@dataclass(frozen=True, eq=False)
class ValueLines:
    """Lines of each region under each sensitive value, functions of the other columns alone.

    Parameters
    ----------
    slope : float array of shape (n, S, L, K, d)
    offset : float array of shape (n, S, L, K)
        Of the highest line over a piece of sensitive values.
    """

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
    """Shares of each region that are proved to keep their decision, and proved to flip; (n,) each.

    Parameters
    ----------
    layout : TableLayout
    regions : Regions
    apart : int array
        The sensitive columns.
    lines : ValueLines
    covers : bool array of shape (S,)
        Which values together are all.
    """
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
