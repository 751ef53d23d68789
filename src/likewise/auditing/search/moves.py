"""The worst valid rows around people by moves of one and of two columns, for many λ at once.

From a row every single move is known (`bounds.moves`, for models that were read) or estimated from what the move did to
the person's own row (for a black box). For every λ the best row so far is moved on from, once: what is seen there serves
all λ. A person is done when no move from any of their best rows promises more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from likewise.auditing.bounds.moves import (
    FIRST_OPTION,
    LENGTH,
    PLACE,
    SHIFT,
    SMOOTH,
    USABLE,
    VALUE,
    MoveArrays,
)
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.dual.frontier import Floats, Frontier
from likewise.auditing.search.person_moves import BEAM, NOTHING, beats, next_row, search_person
from likewise.core.checks import IntArray
from likewise.data.column import Column
from likewise.data.encoding import rounding_of_values
from likewise.fair_metrics.metric import COSTS_NOTHING
from likewise.models.losses import CrossEntropy, Loss

# Which values of each column are tried for a person, and what each adds to the fair distance.


# A continuous number without cuts is tried at steps that begin with this share of its scale.
_FIRST_STEP = 2.0**-7
# Steps grow by this factor, so many times: across any range that is worth it.
_GROWTH, _STEPS = 2.0**0.5, 48
# On a scale that is not linear steps of an open range reach so far, in encoded units.
_WIDEST = 16.0
# Of a number with more cuts than this the nearest of each side are tried, and then ever fewer.
_MANY_CUTS, _NEAREST = 160, 32
# Relative error of a number that was encoded and decoded.
_ROUNDING = 2.0**-48


@dataclass(frozen=True, eq=False)
class Options:
    """Values that are tried for n people, of all columns one after the other; the first of each is the person's own.

    `known` (n, M, 4 + k) has the value, its place (a number's encoded value or the position of a category), whether it
    can be used, and what the move adds to the squared length and to the shift along the metric's basis.
    """

    column: IntArray
    first: IntArray
    known: Floats

    @property
    def value(self) -> Floats:
        """The values, (n, M)."""
        return self.known[:, :, VALUE]

    @property
    def place(self) -> Floats:
        """Their places, (n, M)."""
        return self.known[:, :, PLACE]

    @property
    def usable(self) -> Any:
        """Which can be used, (n, M)."""
        return self.known[:, :, USABLE] > 0

    @property
    def length(self) -> Floats:
        """What they add to the squared length, (n, M)."""
        return self.known[:, :, LENGTH]

    @property
    def shift(self) -> Floats:
        """What they add to Qᵀδ, (n, M, k)."""
        return self.known[:, :, SHIFT:]


def options_of(
    layout: TableLayout, metric: Any, own: Floats, cuts: Mapping[str, Sequence[float]] | None
) -> Options:
    """Return the options of some people, given as rows of values."""
    parts: list[Floats] = []
    count: list[int] = []
    for i, known in enumerate(layout.columns):
        mine = own[:, i]
        value = mine[:, None]
        if not known.immutable:
            known_cuts = None if cuts is None else cuts.get(known.name)
            value = np.concatenate([value, _more(known, mine, known_cuts)], axis=1)
        usable = np.isfinite(value)
        value = np.where(usable, value, mine[:, None])
        place = value if known.kind == "categorical" else np.asarray(known.place(value), dtype=np.float64)
        length, shift = _moved(layout, metric, i, place)
        parts.append(np.concatenate([np.stack([value, place, usable, length], axis=2), shift], axis=2))
        count.append(value.shape[1])
    column = np.repeat(np.arange(layout.n_columns), count).astype(np.int64)
    return Options(column, np.append(0, np.cumsum(count)).astype(np.int64), np.concatenate(parts, axis=1))


def _more(known: Column, own: Floats, cuts: Sequence[float] | None) -> Floats:
    """Values of a column besides a person's own, (n, m)."""
    if known.kind == "categorical":
        codes = np.tile(np.arange(len(known.categories), dtype=np.float64), (len(own), 1))
        return np.where(codes == own[:, None], np.nan, codes)
    whole = known.kind == "integer"
    if cuts is not None:
        at = np.asarray(cuts, dtype=np.float64)
        at = _nearest(at, own) if len(at) > _MANY_CUTS else at[None, :]
        below = np.floor(at) if whole else at
        above = np.floor(at) + 1.0 if whole else at
        if not whole:
            # As far behind the cut as rounding on the way through the encoding reaches.
            away = (
                _ROUNDING * (np.abs(at) + abs(known.mean))
                if known.curve is None
                else rounding_of_values(known, at, 2.0)
            )
            below, above = below - away, above + away
        value = np.where(own[:, None] > at, below, above)
    elif known.curve is None:
        value = own[:, None] + _steps(known)[None, :]
    else:
        value = _curved_steps(known, own)
    inside = (value >= known.lower) & (value <= known.upper) & (value != own[:, None])
    return np.where(inside, value, np.nan)


def _nearest(cuts: Floats, own: Floats) -> Floats:
    """The cuts next to each person's value, and others by their rank from there, ever further apart; (n, m)."""
    further = np.geomspace(_NEAREST, len(cuts), 16).astype(np.int64)
    rank = np.unique(np.concatenate([np.arange(_NEAREST), further]))
    place = np.searchsorted(cuts, own)[:, None] + np.concatenate([rank, -1 - rank])[None, :]
    inside = (place >= 0) & (place < len(cuts))
    return np.where(inside, cuts[np.clip(place, 0, len(cuts) - 1)], np.nan)


def _steps(known: Column) -> Floats:
    """Growing steps to both sides, up to the width of the range."""
    whole = known.kind == "integer"
    steps = (1.0 if whole else _FIRST_STEP * known.scale) * _GROWTH ** np.arange(_STEPS)
    steps = np.unique(np.rint(steps)) if whole else steps
    width = known.upper - known.lower
    if np.isfinite(width):
        steps = steps[steps <= width]
    return np.concatenate([-steps, steps])


def _curved_steps(known: Column, own: Floats) -> Floats:
    """Values at growing steps in the encoding to both sides, and of whole numbers the next ones; (n, m)."""
    width = float(np.diff(known.place([known.lower, known.upper]))[0])
    steps = _FIRST_STEP * _GROWTH ** np.arange(_STEPS)
    steps = steps[steps <= (width if np.isfinite(width) else _WIDEST)]
    value = known.number(known.place(own)[:, None] + np.concatenate([-steps, steps])).astype(np.float64)
    if known.kind != "integer":
        return value
    return np.concatenate([own[:, None] + np.array([-1.0, 1.0]), np.rint(value)], axis=1)


def _moved(layout: TableLayout, metric: Any, column: int, place: Floats) -> tuple[Floats, Floats]:
    """Squared length (n, m) and Qᵀ (n, m, k) of the moves from people's own places, the first ones, to others."""
    known, basis = layout.columns[column], _basis(layout, metric)
    if known.width == 1:
        step = place - place[:, :1]
        return step**2, step[:, :, None] * basis[known.start]
    codes = place.astype(np.int64)
    shift = basis[known.start + codes] - basis[known.start + codes[:, :1]]
    return 2.0 * (codes != codes[:, :1]), shift


def _basis(layout: TableLayout, metric: Any) -> Floats:
    # A Euclidean metric may be of any width.
    return np.asarray(metric.basis, dtype=np.float64) if metric.n_features else np.zeros((layout.width, 0))


# ---- a black box: what to ask about next ---------------------------------------------------------------------


# Of the most promising moves of a black box so many are tried two by two.
_PAIRED = 12


def _cost(metric: Any, length: Floats, shift: Floats) -> Floats:
    """δᵀΣδ from squared lengths and Qᵀδ (…, k), exactly 0 where it is rounding."""
    scale, least, basis = metric
    found = scale * length + (shift**2 * basis[-1]).sum(axis=-1)
    return np.where(found <= least * length, 0.0, found)


def _scores(loss: Floats, cost: Floats, price: float, sign: float) -> Floats:
    """As `score`, of many."""
    return np.where(cost == 0.0, sign * loss, -np.inf) if np.isinf(price) else loss - price * cost


@dataclass(frozen=True)
class Effort:
    """How hard to search: rounds from a person's best rows; for a black box rows to ask about, in all and at once.

    A row that is better by less than a share `tol` is not.
    """

    rounds: int = 24
    calls: int = 1_000
    width: int = 32
    tol: float = 1e-4


@dataclass(frozen=True, eq=False)
class FoundForPeople:
    """Rows that are worth keeping, person by person, the person's own first."""

    rows: Floats
    person: IntArray
    loss: Floats
    cost: Floats

    def best(self, lam: float) -> IntArray:
        """Return the place of the row with the largest loss − λ d² of each person, (n,); λ = ∞ for rows at no distance."""
        price = np.where(self.cost > 0, np.inf, 0.0) if np.isinf(lam) else lam * self.cost
        score = self.loss - price
        order = np.lexsort((-score, self.person))
        first = np.searchsorted(self.person[order], np.arange(int(self.person[-1]) + 1))
        return np.asarray(order[first], dtype=np.int64)


# Options of all people at once: bounds the memory.
_CELLS = 100_000
# Rows that are remembered of a person.
_ROOM = 160


@dataclass(frozen=True, eq=False)
class MoveSearch:
    """Everything about a search but the people; `model` where the model was read, else `ask` answers."""

    layout: TableLayout
    metric: Any
    prices: Sequence[float]
    loss: Loss
    model: MoveArrays | None = None
    ask: Callable[[Floats, Any], Floats] | None = None
    cuts: Mapping[str, Sequence[float]] | None = None
    furthest: float = np.inf
    effort: Effort = field(default_factory=Effort)

    @property
    def size(self) -> int:
        """How many people are searched at once."""
        known = self.cuts or {}
        count = sum(
            len(c.categories) + len(known.get(c.name, range(_STEPS))) + 1 for c in self.layout.columns
        )
        return int(np.clip(_CELLS // count, 1, 256))

    def run(self, X: Floats, targets: Any, starts: Floats | None = None) -> FoundForPeople:
        """Search around people, given as encoded rows; `starts` (n, S, d) are rows to begin from as well."""
        own = np.asarray(self.layout.values(X), dtype=np.float64)
        options = options_of(self.layout, self.metric, own, self.cuts)
        if self.model is None:
            return self._worth_keeping(*_Asking(self, options, np.asarray(targets)).run())
        rows, found, count = self._by_reading(self.model, options, targets, starts)
        return self._worth_keeping(rows[:, :, 0], found[:, :, 0], found[:, :, 1], count)

    @property
    def goal(self) -> Floats:
        """The λ to search at, what the loss counts there, and by which share a better row is better, (m, 3).

        At no distance the smallest loss is looked for as well: it may be decided differently from a person whose own
        decision is the wrong one.
        """
        prices = np.asarray(self.prices, dtype=np.float64)
        least = np.flatnonzero(np.isinf(prices))[:1]
        signs = np.append(np.ones(len(prices)), -np.ones(len(least)))
        return np.column_stack(
            [np.append(prices, prices[least]), signs, np.full(len(signs), self.effort.tol)]
        )

    @property
    def measure(self) -> tuple[Any, ...]:
        """The metric for compiled loops: Σ = scale·I + Q diag(values) Qᵀ, the values as the last row of Q."""
        metric, layout = self.metric, self.layout
        basis = _basis(layout, metric)
        values = np.asarray(metric.values, dtype=np.float64) if basis.shape[1] else np.zeros(0)
        top = max(metric.scale, float((metric.scale + values).max(initial=0.0)))
        return float(metric.scale), COSTS_NOTHING * top, np.ascontiguousarray(np.vstack([basis, values]))

    def _by_reading(self, model: MoveArrays, options: Options, targets: Any, starts: Floats | None) -> Any:
        layout, n = self.layout, len(options.known)
        given = np.zeros((n, 0, 2, layout.n_columns))
        if starts is not None:
            flat = starts.reshape(-1, starts.shape[2])
            known = np.isfinite(flat).all(axis=1)
            values = np.full((len(flat), 2, layout.n_columns), np.nan)
            values[known, 0] = layout.values(flat[known])
            values[known, 1] = _places(layout, values[known, 0])
            given = values.reshape(n, starts.shape[1], 2, layout.n_columns)
        columns = model.columns.copy()
        columns[:, FIRST_OPTION] = options.first
        straight = ~layout.is_category & ~layout.curved
        columns[:-1, SMOOTH] = 0 if model.is_tree else np.where(straight, 1 + layout.is_integer, 0)
        ends = np.array([[column.lower, column.upper] for column in layout.columns], dtype=np.float64)
        regression = self.loss.regression
        target = np.asarray(targets, dtype=np.float64 if regression else np.int64)
        label = np.zeros(n, dtype=np.int64) if regression else target
        told = (model.is_tree, model.trees, model.layers, model.cuts, columns)
        numbers = np.ascontiguousarray(np.column_stack([layout.mean, layout.scale, ends]))
        about = told, numbers, self.measure, model.loss
        cells, goal = model.cells(options.value, options.column), self.goal
        rows, found = np.empty((n, _ROOM, 2, layout.n_columns)), np.empty((n, _ROOM, 2))
        count = np.array(
            [
                search_person(
                    *about,
                    options.known[i],
                    options.column,
                    cells[i],
                    label[i],
                    float(target[i]),
                    given[i],
                    goal,
                    self.effort.rounds,
                    model.n_components,
                    rows[i],
                    found[i],
                )
                for i in range(n)
            ]
        )
        return rows, found, count

    def _worth_keeping(self, rows: Floats, loss: Floats, cost: Floats, count: IntArray) -> FoundForPeople:
        """The corners of everybody's frontier, and of the rows at no distance the one with the smallest loss."""
        kept = np.arange(loss.shape[1])[None, :] < count[:, None]
        person, place = np.nonzero(kept)
        frontier = Frontier.from_points(
            base_loss=loss[:, 0],
            row=person,
            squared_distance=cost[person, place],
            loss=loss[person, place],
            candidate=place,
        )
        free = np.where(kept & (np.where(kept, cost, 1.0) == 0), loss, np.inf)
        best = free.argmin(axis=1)
        better = np.flatnonzero(best > 0)
        who = np.concatenate([frontier.row, better])
        at = np.concatenate([np.maximum(frontier.candidate, 0), best[better]])
        order = np.argsort(who, kind="stable")
        who, at = who[order], at[order]
        found = np.asarray(self.layout.encode(rows[who, at]), dtype=np.float64)
        return FoundForPeople(found, who, loss[who, at], cost[who, at])


def _places(layout: TableLayout, values: Floats) -> Floats:
    """Rows of values with encoded numbers, (n, P)."""
    found = values.copy()
    for i in np.flatnonzero(~layout.is_category):
        found[:, i] = layout.columns[i].place(values[:, i])
    return found


def margin_of(loss: Floats) -> Floats:
    """Margins of cross-entropies: m = log(eˡ − 1) = l + log(1 − e⁻ˡ)."""
    held = np.maximum(loss, 1e-12)
    return np.asarray(held + np.log(-np.expm1(-held)))


# Losses are told apart to so many decimals: a model may round a row by where it stands among the others.
_DECIMALS = 10


class _Asking:
    """The search around some people by asking the model: what single moves do is estimated from the first questions."""

    def __init__(self, search: MoveSearch, options: Options, targets: Any) -> None:
        self.search, self.options, self.targets = search, options, targets
        self.goal, self.metric = search.goal, search.measure
        n, room = len(options.known), _ROOM
        columns = search.layout.n_columns
        self.own = options.place[:, options.first[:-1]]
        # Rows as values, as places, and what each of their columns adds by itself.
        self.rows = np.zeros((3, n, room, columns))
        self.rows[0, :, 0], self.rows[1, :, 0] = options.value[:, options.first[:-1]], self.own
        self.loss, self.cost = np.zeros((n, room)), np.zeros((n, room))
        self.count, self.asked = np.ones(n, dtype=np.int64), np.ones(n, dtype=np.int64)
        self.expanded = np.zeros((n, room), dtype=bool)
        self.best = np.full((n, len(self.goal), BEAM), -1, dtype=np.int64)
        self.reached = np.full(self.best.shape, NOTHING)
        self.seen: list[set[bytes]] = [set() for _ in range(n)]

    def run(self) -> tuple[Any, ...]:
        """Ask about everybody, about single moves, and then in rounds about what these promise together."""
        everyone = np.arange(len(self.loss))
        self.loss[:, 0] = self._losses(self.rows[0, :, 0], everyone)
        for i in everyone:
            beats(self.loss[i, 0], 0.0, self.goal, self.reached[i], self.best[i], 0)
        effect = self._single_moves()
        for _ in range(self.search.effort.rounds):
            if not self._round(effect):
                break
        return self.rows[0], self.loss, self.cost, self.count

    def _losses(self, values: Floats, person: IntArray) -> Floats:
        assert self.search.ask is not None
        found = np.asarray(self.search.ask(values, self.targets[person]), dtype=np.float64)
        return np.asarray(np.round(found, _DECIMALS), dtype=np.float64)

    def _effect(self, loss: Floats) -> Floats:
        """From losses to where the effects of columns add up: margins for cross-entropy."""
        return margin_of(loss) if isinstance(self.search.loss, CrossEntropy) else np.asarray(loss)

    def _single_moves(self) -> Floats:
        """Ask about options alone, the nearest first; return what each adds, (n, M), NaN where it was not asked about."""
        options, most = self.options, max(self.search.effort.calls // 2, 1)
        cost = _cost(self.metric, options.length, options.shift)
        wanted = options.usable & (cost <= self.search.furthest)
        wanted[:, options.first[:-1]] = False
        if wanted.shape[1] > most:
            order = np.argsort(np.where(wanted, cost, np.inf), axis=1, kind="stable")
            np.put_along_axis(wanted, order[:, most:], False, axis=1)
        person, option = np.nonzero(wanted)
        values = self.rows[0, person, 0]
        values[np.arange(len(person)), options.column[option]] = options.value[person, option]
        loss = self._losses(values, person) if len(person) else np.zeros(0)
        self.asked += wanted.sum(axis=1)
        effect = np.full(wanted.shape, np.nan)
        effect[:, options.first[:-1]] = 0.0
        effect[person, option] = self._effect(loss) - self._effect(self.loss[person, 0])
        found = np.full(wanted.shape, np.nan)
        found[person, option] = loss
        for price, sign, _ in self.goal:
            score = np.where(wanted, _scores(found, cost, price, sign), -np.inf)
            top = score.argmax(axis=1)
            for i in np.flatnonzero(np.isfinite(score[np.arange(len(top)), top])):
                self._offer(int(i), self._row(int(i), 0, top[[i]], effect[i]), found[i, top[i]])
        return effect

    def _row(self, i: int, base: int, made: IntArray, effect: Floats) -> Floats:
        """A row (3, P) in which options are put into another."""
        row = self.rows[:, i, base].copy()
        for option in made[made >= 0]:
            at = self.options.column[option]
            row[:, at] = self.options.value[i, option], self.options.place[i, option], effect[option]
        return row

    def _offer(self, i: int, row: Floats, loss: float) -> None:
        """Keep a row that was asked about, if it is better for some λ."""
        at = int(self.count[i])
        length, shift = self._sums(i, row[1])
        cost = float(_cost(self.metric, length.sum(), shift.sum(axis=0)))
        if at < self.loss.shape[1] and beats(loss, cost, self.goal, self.reached[i], self.best[i], at):
            self.rows[:, i, at], self.loss[i, at], self.cost[i, at] = row, loss, cost
            self.count[i] += 1

    def _sums(self, i: int, place: Floats) -> tuple[Floats, Floats]:
        """By column, the squared length (P,) and Qᵀ (P, k) of a row's moves."""
        layout, basis, own = self.search.layout, self.metric[2], self.own[i]
        start, hot = layout.start, np.array([column.width > 1 for column in layout.columns])
        before, after = (start + np.where(hot, part, 0.0).astype(np.int64) for part in (own, place))
        step = place - own
        sizes = np.where(hot, 1.0, own), np.where(hot, 1.0, place)
        shift = basis[after] * sizes[1][:, None] - basis[before] * sizes[0][:, None]
        return np.where(hot, 2.0 * (before != after), step * step), shift

    def _promising(self, i: int, base: int, effect: Floats) -> list[tuple[int, int]]:
        """Options to try from a row, −1 for none: for each λ what promises most of single moves and pairs of these."""
        options, scale = self.options, isinstance(self.search.loss, CrossEntropy)
        metric, column = self.metric, options.column
        by_column, shift_by_column = self._sums(i, self.rows[1, i, base])
        length = by_column.sum() + options.length[i] - by_column[column]
        whole = shift_by_column.sum(axis=0)
        shift = whole + options.shift[i] - shift_by_column[column]
        cost = _cost(metric, length, shift)
        here = self._effect(self.loss[i, base])
        moves = options.usable[i] & (options.place[i] != self.rows[1, i, base][column]) & np.isfinite(effect)
        there = np.where(moves, here + effect - self.rows[2, i, base][column], 0.0)
        losses = np.logaddexp(0.0, there) if scale else there
        found: dict[tuple[int, int], None] = {}
        if moves.sum() <= self.search.effort.width:
            # Few moves are all asked about: what they do from here may be another thing than from the person's own row.
            found.update({(int(o), -1): None for o in np.flatnonzero(moves)})
        for price, sign, _ in self.goal:
            one = np.where(moves, _scores(losses, cost, price, sign), -np.inf)
            best = np.argsort(-one, kind="stable")[:_PAIRED]
            one_of, other = np.triu_indices(len(best), 1)
            a, b = best[one_of], best[other]
            both = there[a] + there[b] - here
            away = _cost(metric, length[a] + length[b] - by_column.sum(), shift[a] + shift[b] - whole)
            two = _scores(np.logaddexp(0.0, both) if scale else both, away, price, sign)
            two = np.where(moves[a] & moves[b] & (column[a] != column[b]), two, -np.inf)
            promise = np.concatenate([one[best], two])
            order = np.argsort(-promise, kind="stable")[: self.search.effort.width]
            pairs = np.concatenate([np.column_stack([best, np.full(len(best), -1)]), np.column_stack([a, b])])
            found.update(
                {(int(pairs[o, 0]), int(pairs[o, 1])): None for o in order if np.isfinite(promise[o])}
            )
        return list(found)

    def _round(self, effect: Floats) -> bool:
        """Move on from one of the best rows of everybody who has one left; return whether anybody had."""
        todo: list[tuple[int, Floats]] = []
        moved = False
        for i in np.flatnonzero(self.asked < self.search.effort.calls).tolist():
            base = int(next_row(self.best[i], self.expanded[i]))
            if base < 0:
                continue
            moved = self.expanded[i, base] = True
            for pair in self._promising(i, base, effect[i]):
                row = self._row(i, base, np.array(pair), effect[i])
                known = row[0].tobytes()
                if known not in self.seen[i]:
                    self.seen[i].add(known)
                    todo.append((int(i), row))
        if todo:
            people = np.array([i for i, _ in todo])
            np.add.at(self.asked, people, 1)
            losses = self._losses(np.stack([row[0] for _, row in todo]), people)
            for (i, row), loss in zip(todo, losses, strict=True):
                self._offer(i, row, float(loss))
        return moved
