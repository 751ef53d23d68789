"""Regions of people evaluated: bounded, made smaller, looked at for rows that beat what is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from likewise.auditing.bounds.family import Family, LossBound
from likewise.auditing.bounds.linear_bounds import extremes
from likewise.auditing.bounds.region_costs import (
    LeastCost,
    begin,
    free_regions,
    project,
    sweep,
    tangent,
)
from likewise.auditing.bounds.regions import (
    Arrays,
    MetricArrays,
    Regions,
    Split,
    TableLayout,
    decode_number,
    encode_number,
    encoded_box,
    is_curved,
    joined,
    open_columns,
    rounding_at,
    whole_domain,
)
from likewise.auditing.bounds.shared_costs import separable_part
from likewise.core.checks import BoolArray, FloatArray, IntArray
from likewise.core.compiled import compiled
from likewise.data.encoding import rounding_of_values
from likewise.fair_metrics.metric import COSTS_NOTHING

# Regions whose rows all get one answer: the model itself is asked at a row of each, so that no rounding is
# left.


# (rows of values (m, P), targets (m,)) -> the model's own losses (m,), and the values that it was shown (m, P).
Ask: TypeAlias = Callable[[FloatArray, Any], tuple[FloatArray, FloatArray]]

# A value may change by so many roundings on its way through the encoding and back.
_ULPS = 32.0
# The same on a scale that is not linear, in roundings of its place.
_ROUNDINGS = 4.0


@dataclass(frozen=True, eq=False)
class Contender(Arrays):
    """Regions of one answer: whose, a row of each, an upper bound of what is attained there, and λ d² at the least."""

    people: IntArray
    regions: Regions
    values: FloatArray
    upper: FloatArray
    price: FloatArray


class Contenders:
    """Regions of one answer that may hold somebody's supremum, kept until the model is asked about all of them at once."""

    def __init__(self) -> None:
        self._parts: list[Contender] = []

    def add(self, more: Contender) -> None:
        """Keep regions."""
        if len(more):
            self._parts.append(more)

    def above(self, attained: FloatArray) -> Contender | None:
        """Return those that may exceed what the model itself was seen to attain, by person (n,); None if there are none."""
        kept = [part.take(part.upper > attained[part.people]) for part in self._parts]
        kept = [part for part in kept if len(part)]
        return joined(kept) if kept else None


def rows_that_return(
    layout: TableLayout, regions: Regions, values: FloatArray
) -> tuple[FloatArray, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Move rows off the edges of their regions as far as the rounding of the encoding asks for.

    A model of the table is asked about encoded rows that are decoded for it; a number at the very edge of an interval may
    come back on the other side.
    """
    at = np.flatnonzero(~layout.is_category & ~layout.is_integer)
    values = values.copy()
    if not len(at):
        return values, np.ones(len(values), dtype=np.bool_)
    low, high = regions.low[:, at], regions.high[:, at]
    step = _ULPS * np.spacing(np.abs(values[:, at]) + np.abs(layout.mean[at]))
    for k in np.flatnonzero(layout.curved[at]):
        step[:, k] = rounding_of_values(layout.columns[at[k]], values[:, at[k]], _ROUNDINGS)
    back = layout.values(layout.encode(values))[:, at]
    off = (back < low) | (back > high)
    # An interval of one value has no inside; what comes back is that value, rounded.
    point = low == high
    nearer = np.clip(values[:, at], low + step, np.maximum(high - step, low + step))
    values[:, at] = np.where(off & ~point, nearer, values[:, at])
    back = layout.values(layout.encode(values))[:, at]
    inside = np.where(point, np.abs(back - low) <= step, (back >= low) & (back <= high))
    return values, np.asarray(inside.all(axis=1))


# Smaller regions at no loss: what lies too far away to beat the best row known is taken off first.


_HALVINGS = 10
_SWEEPS = 20


def within_reach(
    layout: TableLayout,
    form: MetricArrays,
    regions: Regions,
    origin: FloatArray,
    warm: FloatArray,
    reach: FloatArray,
) -> Regions:
    """Take off each region what is further than its reach."""
    lower, upper = encoded_box(layout, regions)
    now = regions.made_of(map(np.copy, regions.arrays()))
    metric = form.scale, form.basis, form.values
    _shrink(lower, upper, *now.arrays(), origin, warm, metric, layout.blocks, layout.shape, reach)
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
    width = lower.shape[1]
    zeros, x, inside = np.zeros(width), np.empty(width), np.empty(len(metric[2]))
    in_block = np.zeros(width, dtype=np.bool_)
    for i in range(len(lower)):
        if not np.isfinite(reach[i]):
            continue
        known = origin[i], warm[i], metric, blocks, in_block, reach[i], zeros, x, inside
        for p in range(len(kinds)):
            if kinds[p] == 2:
                its = allowed[i, offset[p] : offset[p] + count[p]]
                _shrink_category(start[p], its, lower[i], upper[i], known)
                continue
            for side in (1, -1):
                _shrink_number(
                    p, start[p], side, kinds[p] == 1, low[i], high[i], lower[i], upper[i], numbers, known
                )


@compiled
def _shrink_category(j, allowed, a, b, known):  # type: ignore[no-untyped-def]
    """Take off the categories of a column that are too far.

    The last one stays, so that the region remains one; its own bound then says it is too far.
    """
    count, left = len(allowed), 0
    for c in range(count):
        left += allowed[c]
    for c in range(count):
        if left <= 1 or allowed[c] == 0:
            continue
        if count == 2:
            a[j], b[j] = float(c), float(c)
        else:
            a[j : j + count], b[j : j + count] = 0.0, 0.0
            a[j + c], b[j + c] = 1.0, 1.0
        if _too_far(a, b, *known):
            allowed[c] = 0
            left -= 1
        if count == 2:
            a[j] = 0.0 if allowed[0] != 0 else 1.0
            b[j] = 1.0 if allowed[1] != 0 else 0.0
        else:
            for k in range(count):
                b[j + k] = 1.0 if allowed[k] != 0 else 0.0
                a[j + k] = b[j + k] if left == 1 else 0.0


@compiled
def _shrink_number(p, j, side, whole, low, high, a, b, numbers, known):  # type: ignore[no-untyped-def]
    """Bring one end of a number towards the person while everything beyond the middle is too far."""
    inner = min(max(decode_number(p, known[0][j], numbers), low[p]), high[p])
    if whole:
        inner = np.rint(inner)
    outer, step = (high[p] if side > 0 else low[p]), (float(side) if whole else 0.0)
    if not np.isfinite(outer) or side * (outer - inner) <= 0.0:
        return
    # Where even the end itself is within reach, nothing comes off.
    if not _far_beyond(p, j, side, outer, a, b, numbers, known):
        return
    for _ in range(_HALVINGS):
        middle = (inner + outer) / 2.0
        if is_curved(p, numbers):
            ends = encode_number(p, inner, numbers), encode_number(p, outer, numbers)
            middle = decode_number(p, (ends[0] + ends[1]) / 2.0, numbers)
            middle = min(max(middle, min(inner, outer)), max(inner, outer))
        if whole:
            middle = np.floor(middle) if side > 0 else np.ceil(middle)
        if side * (outer - middle) <= 0.0 or side * (outer - inner) <= 0.0:
            return
        if not _far_beyond(p, j, side, middle + step, a, b, numbers, known):
            inner = middle + step
            continue
        outer = middle
        end = encode_number(p, middle, numbers)
        end += side * rounding_at(p, end, numbers)
        if side > 0:
            high[p], b[j] = middle, end
        else:
            low[p], a[j] = middle, end


@compiled
def _far_beyond(p, j, side, value, a, b, numbers, known):  # type: ignore[no-untyped-def]
    """Whether all of a region whose number is at a value or beyond it is too far."""
    edge = encode_number(p, value, numbers)
    edge -= side * rounding_at(p, edge, numbers)
    end = a if side > 0 else b
    kept, end[j] = end[j], edge
    far = _too_far(a, b, *known)
    end[j] = kept
    return far


# A region that reaches less than this share of what it did is looked over again for what is out of reach.
_NEARER = 0.6
# Columns up to which distances are made separable: the square of their number is kept.
_WIDE = 600


@dataclass(frozen=True, eq=False)
class Open(Arrays):
    """Regions with their family's state, a point to start from, where they will be cut, and how far they reach."""

    regions: Regions
    state: Any
    point: np.ndarray[Any, np.dtype[np.float32]]
    split: Split
    reach: FloatArray


@dataclass(frozen=True, eq=False)
class Evaluated(Arrays):
    """Regions that were looked at.

    `tol` says how far above what is attained each may stay, and `one_answer` whether the model can be asked about all of it
    at the row `answer.values`.
    """

    answer: Contender
    open: Open
    tol: FloatArray
    one_answer: BoolArray


@dataclass(eq=False)
class RegionEvaluation:
    """The people, their incumbents, and the evaluation of regions.

    Where the model itself can be asked at the end (`asks`), what is attained is kept as low, and what is bounded as high,
    as its rounding allows, and regions of finitely many answers are cut until the model can be asked about each.
    """

    family: Family
    metric: Any
    X: FloatArray
    targets: Any
    lam: float
    tol: float
    asks: bool = False
    layout: TableLayout = field(init=False)

    def __post_init__(self) -> None:
        self.layout, self.n = self.family.layout, len(self.X)
        self.ends = True  # whether cuts come to an end everywhere, at single answers
        self.form = MetricArrays.of(self.metric, self.layout.width)
        weighs = hasattr(self.family, "priced") and self.layout.width <= _WIDE
        self._separable = separable_part(self.form) if weighs else None
        self.own = self.layout.values(self.X)
        # Encoded anew: a person's distance to themself is exactly 0.
        self.origin = self.layout.encode(self.own)
        self.lower, self.cost = np.full(self.n, -np.inf), np.zeros(self.n)
        self.loss, self.values = np.zeros(self.n), self.own.copy()
        self.offer(np.arange(self.n), self.own, self._losses(self.own, self.targets))

    def _losses(self, values: FloatArray, targets: Any) -> FloatArray:
        return self.family.sure_losses(values, targets) if self.asks else self.family.losses(values, targets)

    def _bound(self, regions: Regions, people: IntArray, state: Any) -> LossBound:
        bound = self.family.bound(regions, self.origin[people], self.targets[people], state)
        return replace(bound, upper=bound.upper + self.family.slack) if self.asks else bound

    def ceilings(self) -> FloatArray:
        """A bound for each person that needs no look at their own domain: over all domains at once, (n,)."""
        whole = whole_domain(self.layout, self.own)
        low, high = whole.low.min(axis=0, keepdims=True), whole.high.max(axis=0, keepdims=True)
        hull = Regions(low, high, whole.allowed.max(axis=0, keepdims=True))
        # A squared loss is convex in the target: between two of them it is at most the larger.
        kinds, at = np.unique(self.targets, return_inverse=True)
        ends = kinds[[0, -1]] if self.targets.dtype.kind == "f" else kinds
        tops = []
        for target in ends:
            one = np.full(1, target)
            bound = self.family.bound(hull, self.origin[:1], one, self.family.state(1))
            tops.append(float(_highest(self.layout, hull, bound, self.origin[:1])[0]))
        slack = self.family.slack if self.asks else 0.0
        if len(ends) < len(kinds) or self.targets.dtype.kind == "f":
            return np.full(self.n, max(tops) + slack)
        return np.asarray(tops)[at] + slack

    def allowance(self, regions: Regions, bound: LossBound) -> FloatArray:
        """How far above what is attained a region may stay, (n,)."""
        if not self.asks:
            return np.full(len(regions), self.tol)
        if bound.same is not None:
            return np.full(len(regions), 0.0 if np.isinf(self.lam) else self.tol)
        # Answers that change from row to row: rows of no distance are few, and all looked at where they can be counted;
        # elsewhere the rounding, which lies between the two sides twice, is not worth looking at every row.
        endless = np.full(len(regions), not np.isinf(self.lam))
        numbers = ~self.layout.is_category & ~self.layout.is_integer
        endless |= open_columns(self.layout, regions)[:, numbers].any(axis=1)
        self.ends = self.ends and not endless.any()
        return np.where(endless, self.tol + 2.0 * self.family.slack, 0.0)

    def costs(self, people: IntArray, values: FloatArray) -> FloatArray:
        """Squared fair distances; exactly 0 if it is rounding."""
        delta = self.layout.encode(values) - self.origin[people]
        cost = np.asarray(self.metric.squared_norm(delta))
        free = cost <= COSTS_NOTHING * self.form.largest * (delta**2).sum(axis=1)
        return np.where(free if np.isinf(self.lam) else (delta == 0).all(axis=1), 0.0, cost)

    def offer(self, people: IntArray, values: FloatArray, loss: FloatArray) -> FloatArray:
        """Keep rows that beat the incumbents; return what each attains."""
        cost = self.costs(people, values)
        with np.errstate(invalid="ignore"):
            attained = loss - np.where(cost > 0, self.lam * cost, 0.0)
        # The last assignment of a person wins, and the values rise.
        for i in np.argsort(attained, kind="stable"):
            person = people[i]
            if attained[i] > self.lower[person]:
                self.lower[person], self.loss[person], self.cost[person] = attained[i], loss[i], cost[i]
                self.values[person] = values[i]
        return np.asarray(attained)

    def read_incumbents(self) -> None:
        """Work out anew what the incumbents attain, from their rows alone."""
        everyone, values = np.arange(self.n), self.values.copy()
        self.lower[:] = -np.inf
        self.offer(everyone, self.own, self._losses(self.own, self.targets))
        self.offer(everyone, values, self._losses(values, self.targets))

    def offer_starts(self, starts: FloatArray) -> None:
        """Look at given rows, as far as they lie in the person's domain."""
        whole = whole_domain(self.layout, self.own)
        for s in range(starts.shape[1]):
            people = np.flatnonzero(np.isfinite(starts[:, s]).all(axis=1))
            values = self.layout.values(starts[people, s])
            inside = whole.take(people).hold(self.layout, values)
            people, values = people[inside], values[inside]
            self.offer(people, values, self._losses(values, self.targets[people]))

    def domains(self) -> Regions:
        """The whole domain of everybody, or as much of it as moves that cost nothing can reach."""
        regions = whole_domain(self.layout, self.own)
        if np.isinf(self.lam):
            regions = free_regions(self.layout, self.metric, regions, self.own)
        return regions

    def shrink(self, people: IntArray, regions: Regions) -> Regions:
        """Take off whole domains what no move that costs nothing reaches."""
        if not np.isinf(self.lam):
            return regions
        origin = self.origin[people]
        lower, upper = encoded_box(self.layout, regions)
        far = np.maximum(np.abs(lower - origin), np.abs(upper - origin))
        reach = COSTS_NOTHING * self.form.largest * (far**2).sum(axis=1)
        return within_reach(self.layout, self.form, regions, origin, origin, reach)

    def evaluate(
        self,
        people: IntArray,
        regions: Regions,
        state: Any,
        warm: FloatArray,
        parent: FloatArray,
        reach: FloatArray,
    ) -> tuple[IntArray, FloatArray, Evaluated]:
        """Bound regions; those that cannot beat the incumbent, whose and how high they are, are not looked at."""
        targets = self.targets[people]
        bound = self._bound(regions, people, state)
        upper = np.minimum(parent, _highest(self.layout, regions, bound, self.origin[people]))
        tol = self.allowance(regions, bound)
        kept = np.flatnonzero(upper > self.lower[people] + tol)
        dropped = np.setdiff1d(np.arange(len(people)), kept, assume_unique=True)
        who, part, bound, reach = people[kept], regions.take(kept), bound.take(kept), reach[kept]
        reach = self._nearer(who, part, bound, reach, warm[kept])
        least = self._least(part, bound, who, warm[kept])
        above = self._above(part, bound, who, least)
        above = self._priced(part, bound, who, targets[kept], np.minimum(above, upper[kept]), tol[kept])
        losses, gap, split = self.family.look(part, targets[kept], bound, least.values)
        values, returns = least.values, np.ones(len(who), dtype=np.bool_)
        if self.asks:
            # Rows that the model can be asked about through the encoding, so that what is attained is listed too.
            values, returns = rows_that_return(self.layout, part, least.values)
            losses = self._losses(values, targets[kept])
        self.offer(who, values, losses)
        split = self._by_distance(part, who, least, gap, split)
        one_answer, price = self._answers(part, bound, who, least, values, returns)
        found = Evaluated(
            Contender(who, part, values, above, price),
            Open(part, bound.state, least.point.astype(np.float32), split, reach),
            tol[kept],
            one_answer,
        )
        return people[dropped], upper[dropped], found

    def _priced(
        self,
        regions: Regions,
        bound: LossBound,
        people: IntArray,
        targets: Any,
        above: FloatArray,
        tol: FloatArray,
    ) -> FloatArray:
        """Lower the bounds of regions that are still promising by a family that weighs heights against distances."""
        if self._separable is None or not 0 < self.lam < np.inf:
            return above
        at = np.flatnonzero(above > self.lower[people] + tol)
        if not len(at):
            return above
        slack = self.family.slack if self.asks else 0.0
        less = replace(bound.take(at), upper=bound.upper[at] - slack)
        attained = self.lower[people[at]]
        found = self.family.priced(  # type: ignore[attr-defined]
            regions.take(at), self.origin[people[at]], targets[at], less, self._separable, self.lam, attained
        )
        above[at] = np.minimum(above[at], np.maximum(found + slack, attained))
        return above

    def _answers(
        self,
        regions: Regions,
        bound: LossBound,
        people: IntArray,
        least: LeastCost,
        values: FloatArray,
        returns: BoolArray,
    ) -> tuple[BoolArray, FloatArray]:
        """Which regions the model can be asked about at their rows of values, and the least of λ d² there."""
        if not self.asks:
            none = np.zeros(len(people))
            return none.astype(np.bool_), none
        single = ~open_columns(self.layout, regions).any(axis=1)
        same = single if bound.same is None else single | bound.same
        cost = self.costs(people, values)
        if np.isinf(self.lam):
            return same & returns & (cost == 0), np.zeros(len(people))
        # Of a linear bound the least cost is mixed with its slope; a single row needs none.
        below = np.zeros(len(people)) if bound.slope is not None else np.maximum(least.bound, 0.0)
        return same & returns, self.lam * np.where(single, cost, below)

    def _nearer(
        self, people: IntArray, regions: Regions, bound: LossBound, reach: FloatArray, warm: FloatArray
    ) -> FloatArray:
        """Take off regions, in place, what is too far to matter, if they reach less far than when that was last done."""
        if np.isinf(self.lam) or self.lam == 0:
            return reach
        top = _highest(self.layout, regions, bound, self.origin[people])
        now = np.maximum(top - self.lower[people], 0.0) / self.lam
        at = np.flatnonzero(now < _NEARER * reach)
        if not len(at):
            return reach
        who = people[at]
        smaller = within_reach(self.layout, self.form, regions.take(at), self.origin[who], warm[at], now[at])
        regions.put(at, smaller)
        bound.put(at, self._bound(smaller, who, bound.state[at]))
        reach[at] = now[at]
        return reach

    def _least(self, regions: Regions, bound: LossBound, people: IntArray, warm: FloatArray) -> LeastCost:
        flat = bound.slope is None or np.isinf(self.lam)
        price = np.full(len(people), 1.0 if flat else self.lam)
        slope = None if flat else bound.slope
        return LeastCost.over(self.layout, self.form, regions, self.origin[people], warm, price, slope)

    def _above(self, regions: Regions, bound: LossBound, people: IntArray, least: LeastCost) -> FloatArray:
        """Upper bound of loss − λ d² over each region."""
        if np.isinf(self.lam):
            lower, upper = encoded_box(self.layout, regions)
            reach = np.maximum(np.abs(lower - self.origin[people]), np.abs(upper - self.origin[people]))
            costly = least.bound > COSTS_NOTHING * self.form.largest * (reach**2).sum(axis=1)
            top = _highest(self.layout, regions, bound, self.origin[people])
            return np.where(costly, -np.inf, top)
        if bound.slope is None:
            return np.asarray(bound.upper - self.lam * np.maximum(least.bound, 0.0))
        at_origin = (bound.slope * self.origin[people]).sum(axis=1)
        return np.asarray(bound.upper - at_origin - least.bound)

    def _by_distance(
        self, regions: Regions, people: IntArray, least: LeastCost, gap: FloatArray, split: Split
    ) -> Split:
        """Where the model is decided, or the distance leaves more open than it, cut where the point is no row."""
        off = np.abs(self.layout.encode(least.values) - least.point)
        cost = np.asarray(self.metric.squared_norm(self.layout.encode(least.values) - self.origin[people]))
        relaxed = np.asarray(self.metric.squared_norm(least.point - self.origin[people]))
        lam = 1.0 if np.isinf(self.lam) else self.lam
        other = (split.column < 0) | (lam * (cost - relaxed) > gap)
        if not other.any():
            return split
        per_column = np.maximum.reduceat(off, self.layout.start, axis=1)
        per_column[~open_columns(self.layout, regions)] = -1.0
        column = per_column.argmax(axis=1)
        rows = np.arange(len(people))
        useful = other & (per_column[rows, column] > 1e-9)
        result = split.made_of(map(np.copy, split.arrays()))
        result.column[useful] = column[useful]
        result.column[other & ~useful & (split.column < 0)] = -1
        for i in np.flatnonzero(useful):
            self._cut_at_point(regions, least, int(i), int(column[i]), result)
        return result

    def _cut_at_point(self, regions: Regions, least: LeastCost, i: int, column: int, split: Split) -> None:
        layout = self.layout
        if layout.is_category[column]:
            # The row's category on one side, all others on the other.
            split.left[i] = 0
            split.left[i, int(layout.offset[column]) + int(least.values[i, column])] = 1
            return
        at = float(layout.columns[column].number(least.point[i, layout.start[column]]))
        if layout.is_integer[column]:
            at = np.floor(at)
            split.cut[i] = min(max(at, regions.low[i, column]), regions.high[i, column] - 1.0)
        else:
            ends = regions.low[i, column], np.nextafter(regions.high[i, column], -np.inf)
            split.cut[i] = min(max((at + least.values[i, column]) / 2.0, ends[0]), ends[1])


def _highest(layout: TableLayout, regions: Regions, bound: LossBound, origin: FloatArray) -> FloatArray:
    """The largest value of a linear loss bound over each region, distances aside."""
    if bound.slope is None:
        return bound.upper
    lower, upper = encoded_box(layout, regions)
    top = extremes(bound.slope[:, None], lower, upper, layout.blocks)[:, 0]
    return np.asarray(bound.upper + top - (bound.slope * origin).sum(axis=1))
