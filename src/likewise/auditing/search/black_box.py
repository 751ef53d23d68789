"""A black box is asked: where its answers change along each number, and which moves of a person are worth a question.

Rows of the domain show, once for everybody, where answers change. Around a person single moves are asked about, and what they
do is added up to guess which moves together are worth asking about next.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.auditing.bounds.families import family_in
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.bounds.trees import TreeFamily
from likewise.auditing.problem import AuditProblem, Coordinates
from likewise.auditing.search.person_moves import NOTHING, ROOM, beats, next_row
from likewise.core.checks import FloatArray, IntArray
from likewise.core.errors import InputError
from likewise.data.column import Column
from likewise.models.losses import CrossEntropy

if TYPE_CHECKING:
    from likewise.auditing.search.domain import MoveSearch, Options

# Where the answers of a black box change along each number, found by asking about rows of the domain.


Answers = Callable[[FloatArray], FloatArray]

# Of a grid over a wide range so much is spread evenly, the rest spreads out from the lower end and from the mean.
_EVEN = 2 / 3
# A change of the answer below this is rounding.
_LEAST = 1e-5
# Rows that are asked about along each number, and cuts of one, at most.
_DRAWN, _MOST_CUTS = 16, 64
# Rows that a gap is bisected for: those whose answers change most.
_WITNESSES = 2
# A continuous number is followed down to this share of its scale.
_FINEST = 2.0**-12
# Places along a scale that is not linear where a length of the encoding is looked up.
_PLACES = 65
# Of a model made of steps nearly all of a change stands at one place, of a smooth one next to nothing does.
_STEPPED = 0.5


def draw_rows(layout: TableLayout, count: int) -> FloatArray:
    """Draw rows of values from a domain, (count, P): numbers around their mean, at their lower end, or anywhere."""
    rng = np.random.default_rng(0)
    rows = np.empty((count, layout.n_columns))
    for i, known in enumerate(layout.columns):
        if known.kind == "categorical":
            rows[:, i] = rng.integers(len(known.categories), size=count)
            continue
        low, high = _range(known)
        around = known.number(rng.standard_normal(count))
        anywhere = rng.uniform(low, high, size=count)
        way = rng.integers(3, size=count)
        value = np.clip(np.choose(way, [around, anywhere, np.full(count, low)]), low, high)
        rows[:, i] = np.rint(value) if known.kind == "integer" else value
    return rows


def probe_cuts(
    answers: Answers,
    layout: TableLayout,
    *,
    calls: int = 50_000,
    until: float = math.inf,
) -> dict[str, list[float]]:
    """Find where answers change along each number; those that are not reached in time count as smooth."""
    drawn = draw_rows(layout, _DRAWN)
    numbers = [
        i for i, known in enumerate(layout.columns) if known.kind != "categorical" and not known.immutable
    ]
    size = _grid_size([layout.columns[i] for i in numbers], calls // _DRAWN)
    found: dict[str, list[float]] = {}
    for i in numbers:
        if time.time() >= until:
            break
        known = layout.columns[i]
        cuts = _cuts_of(answers, drawn, i, known, size)
        if cuts is not None:
            found[known.name] = cuts
    return found


def _cuts_of(
    answers: Answers, drawn: FloatArray, column: int, known: Column, size: int
) -> list[float] | None:
    """Cuts of one number; None if answers change smoothly along it."""
    grid, at = _looked_at(answers, drawn, column, known, size)
    change = np.abs(np.diff(at, axis=1)).max(axis=2)
    largest = change.max(axis=0)
    gaps = np.argsort(-largest, kind="stable")[:_MOST_CUTS]
    gaps = gaps[largest[gaps] > _LEAST]
    if not len(gaps):
        return []
    witness = np.argsort(-change[:, gaps], axis=0, kind="stable")[:_WITNESSES].T
    gap = np.repeat(gaps, witness.shape[1])
    who = witness.ravel()
    keep = change[who, gap] > _LEAST
    who, gap = who[keep], gap[keep]
    ends = grid[gap], grid[gap + 1], at[who, gap], at[who, gap + 1]
    low, left = _halved(answers, drawn[who], column, known, *ends)
    wide = np.abs(grid[gap + 1] - grid[gap]) > _finest(known)
    if wide.any() and np.median((left / change[who, gap])[wide]) < _STEPPED:
        return None
    return [float(cut) for cut in np.unique(low)]


def _looked_at(
    answers: Answers, drawn: FloatArray, column: int, known: Column, size: int
) -> tuple[FloatArray, FloatArray]:
    """A grid and the answers there (m, g, C); the second half of the values goes where the first saw changes.

    Between neighbours that are answered alike a narrow band may hide, and splits are rarely alone.
    """
    grid = _grid(known, size)
    at = _answered(answers, drawn, column, np.tile(grid, (len(drawn), 1)))
    busy = np.abs(np.diff(at, axis=1)).max(axis=(0, 2)) > _LEAST
    busy = busy | np.append(busy[1:], False) | np.append(False, busy[:-1])
    wide = np.flatnonzero(busy & (np.diff(grid) > _finest(known) * (1 + 1e-9)))
    if not len(wide):
        return grid, at
    pieces = max(size // 2 // len(wide), 2)
    share = np.arange(1, pieces) / pieces
    more = (grid[wide, None] + np.diff(grid)[wide, None] * share).ravel()
    more = np.setdiff1d(np.rint(more) if known.kind == "integer" else more, grid)
    there = _answered(answers, drawn, column, np.tile(more, (len(drawn), 1)))
    order = np.argsort(np.concatenate([grid, more]), kind="stable")
    return np.concatenate([grid, more])[order], np.concatenate([at, there], axis=1)[:, order]


def _halved(
    answers: Answers,
    rows: FloatArray,
    column: int,
    known: Column,
    low: FloatArray,
    high: FloatArray,
    at_low: FloatArray,
    at_high: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Halve gaps towards the larger change; return their lower ends and the change that is left between the ends."""
    low, high, at_low, at_high = low.copy(), high.copy(), at_low.copy(), at_high.copy()
    while True:
        wide = np.flatnonzero(high - low > _finest(known) * (1 + 1e-9))
        if not len(wide):
            return low, np.abs(at_high - at_low).max(axis=1)
        middle = (low[wide] + high[wide]) / 2.0
        middle = np.floor(middle) if known.kind == "integer" else middle
        there = _answered(answers, rows[wide], column, middle[:, None])[:, 0]
        below = np.abs(there - at_low[wide]).max(axis=1) >= np.abs(at_high[wide] - there).max(axis=1)
        down, up = wide[below], wide[~below]
        high[down], at_high[down] = middle[below], there[below]
        low[up], at_low[up] = middle[~below], there[~below]


def _answered(answers: Answers, rows: FloatArray, column: int, values: FloatArray) -> FloatArray:
    """Answers (m, g, C) about rows in which one number takes g values each."""
    made = np.repeat(rows[:, None, :], values.shape[1], axis=1)
    made[:, :, column] = values
    found: Any = np.asarray(answers(made.reshape(-1, rows.shape[1])), dtype=np.float64)
    return np.asarray(found.reshape(*values.shape, -1))


def _grid_size(numbers: list[Column], values: int) -> int:
    """How many values each wide range gets where all numbers together get so many; short ranges need few."""
    widths = sorted(
        _range(known)[1] - _range(known)[0] + 1 if known.kind == "integer" else np.inf for known in numbers
    )
    for k, width in enumerate(widths):
        size = values // (len(widths) - k)
        if width > size:
            return max(int(size), 16)
        values -= int(width)
    return values


def _grid(known: Column, size: int) -> FloatArray:
    """Values over the range of a number: all whole ones of a short range, else even and spreading ones."""
    low, high = _range(known)
    whole = known.kind == "integer"
    if whole and high - low < size:
        return np.arange(np.ceil(low), high + 0.5)
    size = size // 2
    first = _finest(known)
    spread = np.geomspace(first, max(high - low, 2 * first), int(size * (1 - _EVEN) / 2))
    middle = min(max(float(known.number(0.0)), low), high)
    around = np.concatenate([middle - spread[::2], middle + spread[::2]])
    grid = np.concatenate([np.linspace(low, high, int(size * _EVEN)), low + spread, around])
    if known.curve is not None:
        grid = np.concatenate([grid, known.number(_places(known, size))])
    grid = grid[(grid >= low) & (grid <= high)]
    return np.unique(np.rint(grid) if whole else grid)


def _finest(known: Column) -> float:
    if known.kind == "integer":
        return 1.0
    if known.curve is None:
        return _FINEST * known.scale
    # On such a scale where it is finest, but never finer than its numbers are.
    places = _places(known, _PLACES)
    lengths = known.number(places + _FINEST) - known.number(places)
    return float(max(lengths.min(), 1e-12 * np.ptp(_range(known))))


def _places(known: Column, count: int) -> FloatArray:
    """Places over the range of a number, evenly."""
    low, high = known.place(_range(known))
    return np.linspace(float(low), float(high), count)


def _range(known: Column) -> tuple[float, float]:
    low = known.lower if np.isfinite(known.lower) else known.number(-8.0)
    high = known.upper if np.isfinite(known.upper) else known.number(8.0)
    return float(low), float(high)


def loss_unit(place: Coordinates, layout: TableLayout) -> float:
    """Return what a large difference of the loss is: 1 for decisions, for a regression how answers vary in the domain."""
    if not place.model.loss.regression:
        return 1.0
    encoded = np.asarray(layout.encode(draw_rows(layout, 256)), dtype=np.float64)
    rows = place.encoded_for_model(encoded)
    answers: Any = np.asarray(place.model.outputs(rows), dtype=np.float64)[:, 0]
    varies = float(np.var(answers))
    return varies if np.isfinite(varies) and varies > 0 else 1.0


def split_points(problem: AuditProblem, probes: int, until: float = math.inf) -> dict[str, list[float]]:
    """Return the cuts of every number by name, in original units; a number along which answers are smooth has none."""
    place = problem.coordinates
    layout = TableLayout.of(place.domain)
    try:
        family = family_in(problem)
    except InputError:
        family = None
    if family is not None:
        # A network that was read has no steps.
        return family.trees.thresholds(layout) if isinstance(family, TreeFamily) else {}
    unit = loss_unit(place, layout) ** 0.5

    def answers(values: FloatArray) -> FloatArray:
        rows: Any = place.encoded_for_model(np.asarray(layout.encode(values), dtype=np.float64))
        if place.model.loss.regression:
            return np.asarray(place.model.outputs(rows) / unit, dtype=np.float64)
        losses = np.asarray(place.model.loss_table(rows), dtype=np.float64)
        return margin_of(losses) if isinstance(place.model.loss, CrossEntropy) else losses

    return probe_cuts(answers, layout, calls=probes, until=until)


def margin_of(loss: FloatArray) -> FloatArray:
    """Margins of cross-entropies: m = log(eˡ − 1) = l + log(1 − e⁻ˡ)."""
    held = np.maximum(loss, 1e-12)
    return np.asarray(held + np.log(-np.expm1(-held)))


# What to ask about next around a person.


# Of the most promising moves of a black box so many are tried two by two.
_PAIRED = 12
# Rows that are moved on from for each λ: the best, and then the second best.
_BEAM = 2


def _cost(metric: Any, length: FloatArray, shift: FloatArray) -> FloatArray:
    """δᵀΣδ from squared lengths and Qᵀδ (…, k), exactly 0 if it is rounding."""
    scale, least, basis = metric
    found = scale * length + (shift**2 * basis[-1]).sum(axis=-1)
    return np.where(found <= least * length, 0.0, found)


def _scores(loss: FloatArray, cost: FloatArray, price: float, sign: float) -> FloatArray:
    """As `score`, of many."""
    return np.where(cost == 0.0, sign * loss, -np.inf) if np.isinf(price) else loss - price * cost


# Losses are told apart to so many decimals: a model may round a row by where it stands among the others.
_DECIMALS = 10


class BlackBoxMoves:
    """The search around some people by asking the model: what single moves do is estimated from the first questions."""

    def __init__(self, search: MoveSearch, options: Options, targets: Any) -> None:
        self.search, self.options, self.targets = search, options, targets
        self.goal, self.metric = search.goal, search.measure
        n, room = len(options.known), ROOM
        columns = search.layout.n_columns
        self.own = options.place[:, options.first[:-1]]
        # Rows as values, as places, and what each of their columns adds by itself.
        self.rows = np.zeros((3, n, room, columns))
        self.rows[0, :, 0], self.rows[1, :, 0] = options.value[:, options.first[:-1]], self.own
        self.loss, self.cost = np.zeros((n, room)), np.zeros((n, room))
        self.count, self.asked = np.ones(n, dtype=np.int64), np.ones(n, dtype=np.int64)
        self.expanded = np.zeros((n, room), dtype=bool)
        self.best = np.full((n, len(self.goal), _BEAM), -1, dtype=np.int64)
        self.reached = np.full(self.best.shape, NOTHING)
        self.seen: list[set[bytes]] = [set() for _ in range(n)]

    def run(self) -> tuple[Any, ...]:
        """Ask about everybody, about single moves, and then in rounds about what these promise together."""
        everyone = np.arange(len(self.loss))
        self.loss[:, 0] = self._losses(self.rows[0, :, 0], everyone)
        for i in everyone:
            beats(self.loss[i, 0], 0.0, self.goal, self.reached[i], self.best[i], 0)
        effect = self._single_moves()
        for _ in range(self.search.rounds):
            if time.time() >= self.search.until or not self._round(effect):
                break
        return self.rows[0], self.loss, self.cost, self.count

    def _losses(self, values: FloatArray, person: IntArray) -> FloatArray:
        assert self.search.ask is not None
        found = np.asarray(self.search.ask(values, self.targets[person]), dtype=np.float64)
        return np.asarray(np.round(found, _DECIMALS), dtype=np.float64)

    def _effect(self, loss: FloatArray) -> FloatArray:
        """From losses to where the effects of columns add up: margins for cross-entropy."""
        return margin_of(loss) if isinstance(self.search.loss, CrossEntropy) else np.asarray(loss)

    def _single_moves(self) -> FloatArray:
        """Ask about options alone, the nearest first; return what each adds, (n, M), NaN where it was not asked about."""
        options, most = self.options, max(self.search.calls // 2, 1)
        cost = _cost(self.metric, options.length, options.shift)
        wanted = np.array(options.usable)
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
            some = np.flatnonzero(np.isfinite(score[np.arange(len(top)), top]))
            none = np.full(len(some), -1)
            rows = self._rows(some, 0 * none, np.column_stack([top[some], none]), effect)
            self._offer(some, rows, found[some, top[some]])
        return effect

    def _rows(self, person: IntArray, base: IntArray, pairs: IntArray, effect: FloatArray) -> FloatArray:
        """Rows (3, m, P) in which up to two options are put into others."""
        rows = self.rows[:, person, base]
        for made in pairs.T:
            some = np.flatnonzero(made >= 0)
            i, option = person[some], made[some]
            given = self.options.value[i, option], self.options.place[i, option], effect[i, option]
            rows[:, some, self.options.column[option]] = given
        return rows

    def _offer(self, person: IntArray, rows: FloatArray, losses: FloatArray) -> None:
        """Keep rows that were asked about, if they are better for some λ."""
        length, shift = self._sums(person, rows[1])
        costs = _cost(self.metric, length.sum(axis=1), shift.sum(axis=1))
        for k, i in enumerate(person.tolist()):
            at = int(self.count[i])
            loss, cost = float(losses[k]), float(costs[k])
            if at < self.loss.shape[1] and beats(loss, cost, self.goal, self.reached[i], self.best[i], at):
                self.rows[:, i, at], self.loss[i, at], self.cost[i, at] = rows[:, k], loss, cost
                self.count[i] += 1

    def _sums(self, person: IntArray, place: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By column, the squared length (m, P) and Qᵀ (m, P, k) of the moves of rows (m, P)."""
        layout, basis, own = self.search.layout, self.metric[2], self.own[person]
        start, hot = layout.start, np.array([column.width > 1 for column in layout.columns])
        before, after = (start + np.where(hot, part, 0.0).astype(np.int64) for part in (own, place))
        step = place - own
        sizes = np.where(hot, 1.0, own), np.where(hot, 1.0, place)
        shift = basis[after] * sizes[1][..., None] - basis[before] * sizes[0][..., None]
        return np.where(hot, 2.0 * (before != after), step * step), shift

    def _promising(self, i: int, base: int, effect: FloatArray) -> list[tuple[int, int]]:
        """Options to try from a row, −1 for none: for each λ what promises most of single moves and pairs of these."""
        options, scale = self.options, isinstance(self.search.loss, CrossEntropy)
        metric, column = self.metric, options.column
        by_column, shift_by_column = (
            part[0] for part in self._sums(np.array([i]), self.rows[1, i, base][None])
        )
        length = by_column.sum() + options.length[i] - by_column[column]
        whole = shift_by_column.sum(axis=0)
        shift = whole + options.shift[i] - shift_by_column[column]
        cost = _cost(metric, length, shift)
        here = self._effect(self.loss[i, base])
        moves = options.usable[i] & (options.place[i] != self.rows[1, i, base][column]) & np.isfinite(effect)
        there = np.where(moves, here + effect - self.rows[2, i, base][column], 0.0)
        losses = np.logaddexp(0.0, there) if scale else there
        found: dict[tuple[int, int], None] = {}
        if moves.sum() <= self.search.width:
            # Few moves are all asked about: what they do from here may be another thing than from the person's own row.
            found.update({(int(o), -1): None for o in np.flatnonzero(moves)})
        for price, sign, _ in self.goal if base == 0 else self.goal[: self.search.near]:
            one = np.where(moves, _scores(losses, cost, price, sign), -np.inf)
            best = np.argsort(-one, kind="stable")[:_PAIRED]
            one_of, other = np.triu_indices(len(best), 1)
            a, b = best[one_of], best[other]
            both = there[a] + there[b] - here
            away = _cost(metric, length[a] + length[b] - by_column.sum(), shift[a] + shift[b] - whole)
            two = _scores(np.logaddexp(0.0, both) if scale else both, away, price, sign)
            two = np.where(moves[a] & moves[b] & (column[a] != column[b]), two, -np.inf)
            promise = np.concatenate([one[best], two])
            order = np.argsort(-promise, kind="stable")[: self.search.width]
            pairs = np.concatenate([np.column_stack([best, np.full(len(best), -1)]), np.column_stack([a, b])])
            found.update(
                {(int(pairs[o, 0]), int(pairs[o, 1])): None for o in order if np.isfinite(promise[o])}
            )
        return list(found)

    def _round(self, effect: FloatArray) -> bool:
        """Move on from one of the best rows of everybody who has one left; return whether anybody had."""
        moved = False
        person: list[int] = []
        base: list[int] = []
        pairs: list[tuple[int, int]] = []
        for i in np.flatnonzero(self.asked < self.search.calls).tolist():
            at = int(next_row(self.best[i, : self.search.near], self.expanded[i]))
            if at >= 0:
                moved = self.expanded[i, at] = True
                found = self._promising(i, at, effect[i])
                person += [i] * len(found)
                base += [at] * len(found)
                pairs += found
        if not pairs:
            return moved
        people = np.array(person)
        rows = self._rows(people, np.array(base), np.array(pairs), effect)
        new = []
        for k, i in enumerate(person):
            known = rows[0, k].tobytes()
            if known not in self.seen[i]:
                self.seen[i].add(known)
                new.append(k)
        if new:
            np.add.at(self.asked, people[new], 1)
            self._offer(people[new], rows[:, new], self._losses(rows[0, new], people[new]))
        return moved
