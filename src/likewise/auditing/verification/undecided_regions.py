"""Regions of all columns but the sensitive ones: what is settled of each, and the one that leaves most open is cut first."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from likewise.auditing.bounds.family import Family
from likewise.auditing.bounds.networks import NetworkFamily
from likewise.auditing.bounds.regions import (
    Arrays,
    Pool,
    Regions,
    Split,
    TableLayout,
    divide,
    everything,
    joined,
    open_columns,
)
from likewise.auditing.verification.asked_shares import FlipExamples, SensitiveValues, settled
from likewise.auditing.verification.shares_by_lines import ValueLines, shares_by_lines
from likewise.core.checks import FloatArray, IntArray

# How large a region is, which rows it holds, and how a person reads it.


def _sizes(layout: TableLayout, regions: Regions, apart: Any) -> FloatArray:
    """How many values each region has of each column, or how long its interval is, (n, P); 1 of columns left aside."""
    sizes = regions.high - regions.low + layout.is_integer
    for i in np.flatnonzero(layout.is_category):
        sizes[:, i] = regions.allowed[:, layout.its(i)].sum(axis=1)
    sizes[:, list(apart)] = 1.0
    return sizes


def volumes(layout: TableLayout, regions: Regions, apart: Any = ()) -> FloatArray:
    """Share of the domain that each region is, some columns aside; a whole number counts its values."""
    whole = _sizes(layout, everything(layout), apart)
    # A number with one value leaves nothing to share.
    shares = np.divide(_sizes(layout, regions, apart), whole, out=np.ones(regions.low.shape), where=whole > 0)
    return np.asarray(shares.prod(axis=1))


def count_points(layout: TableLayout, regions: Regions, apart: Any = ()) -> FloatArray:
    """Number of rows of each region, some columns aside; inf where a number is continuous."""
    sizes = _sizes(layout, regions, apart)
    numbers = ~(layout.is_category | layout.is_integer)
    numbers[list(apart)] = False
    sizes[:, numbers] = np.where(sizes[:, numbers] > 0, np.inf, 1.0)
    return np.asarray(sizes.prod(axis=1))


def points_of(layout: TableLayout, region: Regions, apart: Any = ()) -> FloatArray:
    """All rows of one region, (m, P); columns that are left aside are 0."""
    options: list[FloatArray] = []
    for i, column in enumerate(layout.columns):
        if i in set(apart):
            options.append(np.zeros(1))
        elif column.categories:
            options.append(np.flatnonzero(region.allowed[0, layout.its(i)]).astype(np.float64))
        elif column.kind == "integer":
            options.append(np.arange(region.low[0, i], region.high[0, i] + 1.0))
        else:
            options.append(region.low[:1, i])
    return np.array(list(product(*options)), dtype=np.float64)


def describe(layout: TableLayout, low: FloatArray, high: FloatArray, allowed: Any, apart: Any = ()) -> str:
    """Say which rows a region holds: only the columns that it restricts."""
    said = []
    for i, column in enumerate(layout.columns):
        if i in set(apart):
            continue
        if column.categories:
            left = [str(c) for c, ok in zip(column.categories, allowed[layout.its(i)], strict=True) if ok]
            if len(left) < len(column.categories):
                said.append(
                    f"{column.name} = {left[0]}"
                    if len(left) == 1
                    else f"{column.name} in {{{', '.join(left)}}}"
                )
        elif low[i] == high[i] and column.lower < column.upper:
            said.append(f"{column.name} = {low[i]:.6g}")
        elif low[i] > column.lower and high[i] < column.upper:
            said.append(f"{low[i]:.6g} <= {column.name} <= {high[i]:.6g}")
        elif low[i] > column.lower:
            said.append(f"{column.name} >= {low[i]:.6g}")
        elif high[i] < column.upper:
            said.append(f"{column.name} <= {high[i]:.6g}")
    return ", ".join(said) if said else "everybody"


# The first cuts of a domain are kept to this depth, so that a person can read where decisions flip; so many are shown.
_DEPTH, _MOST_SHOWN = 6, 10


@dataclass(eq=False)
class Branch:
    """A region near the root, and how much of the domain within it flips."""

    low: Any
    high: Any
    allowed: Any
    volume: float
    flips: float = 0.0

    def overlaps(self, other: Branch) -> bool:
        """Whether the two share rows: as parts of one tree they do if one holds the other."""
        numbers = bool(((self.low <= other.high) & (other.low <= self.high)).all())
        if not numbers or not len(self.allowed):
            return numbers
        both = self.allowed & other.allowed
        return bool((both == self.allowed).all() or (both == other.allowed).all())


_AT_ONCE = 256
# Regions with so few rows are looked at row by row.
_FEW_ROWS = 8


@dataclass(frozen=True, eq=False)
class _Open(Arrays):
    """Open regions: where they will be cut, and what was settled of them."""

    regions: Regions
    labels: IntArray
    off: Any
    split: Split
    proved: FloatArray
    flips: FloatArray


class UndecidedRegions:
    """What is proved, flips and is open of a whole domain."""

    def __init__(self, family: Family, values: SensitiveValues, examples: FlipExamples) -> None:
        self.family, self.layout, self.values = family, family.layout, values
        # How much is open of a region, its place, and the numbers of the branches that it is in.
        self.heap: list[tuple[float, int, int, tuple[int, ...]]] = []
        self._pool: Pool[_Open] = Pool()
        self.proved = self.flips = self.unknown = 0.0
        self.examples = examples
        self.branches: list[Branch] = []
        self.looked = 0
        self._counter = 0
        self._by_rows_at_all = values.complete
        self._units = family.n_units if isinstance(family, NetworkFamily) else 0
        labels = np.full((1, len(values.low)), -1, dtype=np.int64)
        nothing = np.packbits(np.zeros((1, len(values.low), self._units), dtype=bool), axis=2)
        self._look(everything(self.layout), labels, nothing, np.ones(1), [()])

    @property
    def undecided(self) -> float:
        """Share that is neither proved nor flips."""
        return max(0.0, 1.0 - self.proved - self.flips)

    def advance(self) -> None:
        """Cut the regions that leave most open."""
        count = min(len(self.heap), max(1, _AT_ONCE // len(self.values.low)))
        taken = [heapq.heappop(self.heap) for _ in range(count)]
        cut = self._pool.take([slot for _, _, slot, _ in taken])
        branches = [branch for _, _, _, branch in taken]
        for branch, proved, flips in zip(branches, cut.proved.tolist(), cut.flips.tolist(), strict=True):
            self.proved -= proved
            self.flips -= flips
            self._flips_within(branch, -flips)
        halves, both = divide(self.layout, cut.regions, cut.split), joined([cut, cut])
        self._look(
            halves, both.labels, both.off, volumes(self.layout, halves, self.values.columns), branches * 2
        )

    def worst(self) -> list[Branch]:
        """Branches with the largest share of rows that flip, none within another, none with hardly any."""
        least = max(0.02 * self.branches[0].flips, 1e-12)
        within = sorted(
            (b for b in self.branches if b.flips > least), key=lambda b: (-b.flips / b.volume, -b.volume)
        )
        chosen: list[Branch] = []
        for branch in within:
            if len(chosen) < _MOST_SHOWN and not any(map(branch.overlaps, chosen)):
                chosen.append(branch)
        return sorted(chosen, key=lambda b: -b.flips)

    def _flips_within(self, path: tuple[int, ...], share: float) -> None:
        for number in path:
            self.branches[number].flips += share

    def _look(
        self,
        regions: Regions,
        labels: IntArray,
        off: Any,
        volume: FloatArray,
        branches: list[tuple[int, ...]],
    ) -> None:
        """Settle regions as far as possible, and file what is open."""
        self.looked += len(regions)
        for i, path in enumerate(branches):
            if len(path) <= _DEPTH:
                branches[i] = (*path, len(self.branches))
                self.branches.append(
                    Branch(regions.low[i], regions.high[i], regions.allowed[i], float(volume[i]))
                )
        few = np.full(len(regions), self._by_rows_at_all)
        if self._by_rows_at_all:
            few = count_points(self.layout, regions, self.values.columns) <= _FEW_ROWS
        if few.any():
            at = np.flatnonzero(few)
            self._by_rows(regions.take(at), volume[at], [branches[i] for i in at])
            rest = np.flatnonzero(~few)
            regions, labels, off, volume = regions.take(rest), labels[rest], off[rest], volume[rest]
            branches = [branches[i] for i in rest]
        if not len(regions):
            return
        off, labels = off.copy(), labels.copy()
        importance, proved, flips = self._decide(regions, labels, off)
        proved, flips = proved * volume, flips * volume
        self.proved += float(proved.sum())
        self.flips += float(flips.sum())
        # A row in the middle of each: the first category that is left, the middle of every number.
        middle = (regions.low + regions.high) / 2.0
        middle[:, self.layout.is_integer] = np.floor(middle[:, self.layout.is_integer])
        for p in np.flatnonzero(self.layout.is_category):
            middle[:, p] = regions.allowed[:, self.layout.its(p)].argmax(axis=1)
        self.examples.look(middle[np.argsort(-flips, kind="stable")[:64]], self.family.decisions)
        for branch, share in zip(branches, flips.tolist(), strict=True):
            self._flips_within(branch, share)
        left = volume - proved - flips
        at = np.flatnonzero(left > 1e-12 * volume)
        cuttable = open_columns(self.layout, regions)
        cuttable[:, self.values.columns] = False
        score = np.where(cuttable, np.maximum(importance, 1e-300), -1.0)
        column = score.argmax(axis=1)
        stuck = score[np.arange(len(column)), column] <= 0
        self.unknown += float(left[at[stuck[at]]].sum())
        going = at[~stuck[at]]
        if not len(going):
            return
        part = regions.take(going)
        split = self.family.cuts(part, column[going], middle[going])
        slots = self._pool.add(_Open(part, labels[going], off[going], split, proved[going], flips[going]))
        for i, slot in zip(going, slots, strict=True):
            self._counter += 1
            heapq.heappush(self.heap, (-float(left[i]), self._counter, slot, branches[i]))

    def _decide(
        self, regions: Regions, labels: IntArray, off: Any
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Importance of columns, and the shares that are proved and flip; labels and units that are off are noted."""
        row, part = np.nonzero(labels < 0)
        importance = np.zeros((len(regions), self.layout.n_columns))
        lines = None
        if len(row):
            there = self.values.put(self.layout, regions.take(row), part)
            if isinstance(self.family, NetworkFamily):
                known = np.unpackbits(off[row, part], axis=1, count=self._units).astype(bool)
                found = self.family.decide_by_lines(there, known)
                off[row, part] = np.packbits(found.off, axis=1)
                label, weight = found.label, found.importance
                n_labels, n_lines, width = found.slope.shape[1:]
                labels[row, part] = label
                lines = ValueLines.known(labels, n_labels, n_lines, width)
                still = np.flatnonzero(label < 0)
                lines.put(
                    self.layout,
                    (row[still], part[still]),
                    there.take(still),
                    self.values.columns,
                    found.slope[still],
                    found.offset[still],
                )
            else:
                label, weight, _ = self.family.decide(there, self.family.state(len(row)))
                labels[row, part] = label
            unsure = label < 0
            np.maximum.at(importance, row[unsure], weight[unsure])
        same, flips = (part.astype(np.float64) for part in settled(labels, self.values.covers))
        at = np.flatnonzero((same == 0) & (flips == 0))
        if lines is not None and len(at):
            some = ValueLines(lines.slope[at], lines.offset[at])
            same[at], flips[at] = shares_by_lines(
                self.layout, regions.take(at), self.values.columns, some, self.values.covers
            )
        return importance, same, flips

    def _by_rows(self, regions: Regions, volume: FloatArray, branches: list[tuple[int, ...]]) -> None:
        """Settle regions of few rows row by row: the model is asked."""
        rows = [points_of(self.layout, regions.take([i]), self.values.columns) for i in range(len(regions))]
        sizes = np.array([len(part) for part in rows])
        labels = self.examples.labels(np.concatenate(rows))
        share = np.repeat(volume / sizes, sizes)
        same, flips = settled(labels, np.ones(labels.shape[1], dtype=bool))
        self.proved += float(share[same].sum())
        self.flips += float(share[flips].sum())
        self.unknown += float(share[~same & ~flips].sum())
        first = np.cumsum(sizes) - sizes
        for i, branch in enumerate(branches):
            its = slice(first[i], first[i] + sizes[i])
            self._flips_within(branch, float(share[its] @ flips[its]))
        if flips.any() and self.examples.wants:
            at = np.flatnonzero(flips)[:64]
            self.examples.add(np.concatenate(rows)[at], labels[at])
