"""Where a model's answers change along each number: the splits of its trees, or what probing a black box finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from likewise.auditing.bounds.families import family_in
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.bounds.trees import TreeFamily
from likewise.auditing.coordinates import Coordinates
from likewise.auditing.dual.frontier import Floats
from likewise.auditing.problem import AuditProblem
from likewise.core.checks import IntArray
from likewise.core.errors import InputError
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
    """Values that are tried, of all columns one after the other; the first of each column is the person's own."""

    layout: TableLayout
    metric: Any
    column: IntArray
    value: Floats
    length: Floats
    place: Floats

    @cached_property
    def own(self) -> IntArray:
        """The option of each column that leaves a person where they are, (P,)."""
        return np.searchsorted(self.column, np.arange(self.layout.n_columns)).astype(np.int64)

    def values(self, person: IntArray, rows: IntArray) -> Floats:
        """Return rows of options (m, P) as rows of values (m, P)."""
        return np.asarray(self.value[person[:, None], rows])

    def sums(self, person: IntArray, rows: IntArray) -> tuple[Floats, Floats]:
        """Return the squared length (m,) and Qᵀδ (m, k) of rows of options (m, P)."""
        at = person[:, None]
        return self.length[at, rows].sum(axis=1), self.place[at, rows].sum(axis=1)

    def cost(self, length: Floats, place: Floats) -> Floats:
        """Return δᵀΣδ from the two sums, exactly 0 where it is rounding."""
        metric = self.metric
        values = np.asarray(metric.values)
        found = metric.scale * length + (place**2 * values).sum(axis=-1)
        top = max(metric.scale, float((metric.scale + values).max(initial=0.0)))
        return np.where(found <= COSTS_NOTHING * top * length, 0.0, found)


def options_of(
    layout: TableLayout, metric: Any, own: Floats, cuts: Mapping[str, Sequence[float]] | None
) -> Options:
    """Return the options of some people."""
    parts: list[tuple[Floats, Floats, Floats]] = []
    numbers: list[int] = []
    for i, known in enumerate(layout.columns):
        mine = own[:, i]
        known_cuts = None if cuts is None else cuts.get(known.name)
        value = mine[:, None]
        if not known.immutable:
            value = np.concatenate([value, _more(known, mine, known_cuts)], axis=1)
        parts.append((value, *_moved(layout, metric, i, mine, value)))
        numbers += [i] * value.shape[1]
    value, length, place = (np.concatenate([part[k] for part in parts], axis=1) for k in range(3))
    return Options(layout, metric, np.array(numbers, dtype=np.int64), value, length, place)


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


def _moved(
    layout: TableLayout, metric: Any, column: int, own: Floats, value: Floats
) -> tuple[Floats, Floats]:
    """Squared length (n, m) and Qᵀ (n, m, k) of the moves from people's own values to others."""
    known = layout.columns[column]
    # A Euclidean metric may be of any width.
    basis = np.asarray(metric.basis) if metric.n_features else np.zeros((layout.width, 0))
    if known.width == 1:
        if known.curve is None:
            step = (value - own[:, None]) / (1.0 if known.kind == "categorical" else known.scale)
        else:
            step = known.place(value) - known.place(own)[:, None]
        return step**2, step[:, :, None] * basis[known.start]
    codes = np.where(np.isfinite(value), value, 0.0).astype(np.int64)
    mine = own.astype(np.int64)
    place = basis[known.start + codes] - basis[known.start + mine][:, None, :]
    return 2.0 * (codes != mine[:, None]), place


# Which rows to ask about next: moves of one and of two columns, by what single moves did from where the
# person stands.


@dataclass(frozen=True)
class Scale:
    """Where the effects of columns add up: margins for cross-entropy, else the loss itself."""

    margins: bool

    @classmethod
    def of(cls, loss: Loss) -> Scale:
        """Return the scale of a loss."""
        return cls(margins=isinstance(loss, CrossEntropy))

    def effect(self, loss: Floats) -> Floats:
        """From losses to the scale."""
        if not self.margins:
            return np.asarray(loss, dtype=np.float64)
        # m = log(eˡ − 1) = l + log(1 − e⁻ˡ)
        held = np.maximum(loss, 1e-12)
        return np.where(np.isneginf(loss), -np.inf, held + np.log(-np.expm1(-held)))

    def loss(self, effect: Floats) -> Floats:
        """From the scale to losses."""
        return np.logaddexp(0.0, effect) if self.margins else effect


@dataclass(frozen=True, eq=False)
class Proposals:
    """What is known of single moves."""

    options: Options
    scale: Scale
    effect: Floats
    singles: int
    width: int

    def __call__(
        self, person: IntArray, rows: IntArray, loss: Floats, lam: Floats
    ) -> tuple[IntArray, Floats]:
        """Propose rows that promise the largest loss − λ d²."""
        options, column = self.options, self.options.column
        now = rows[:, column]
        at = person[:, None]
        stays = now == np.arange(len(column))
        gain = self.effect[person] - self.effect[at, now]
        gain = np.where(stays, -np.inf, gain)
        here = self.scale.effect(loss)[:, None]
        length, place = options.sums(person, rows)
        longer = options.length[person] - options.length[at, now]
        shift = options.place[person] - options.place[at, now]
        one = self._promise(here + gain, length[:, None] + longer, place[:, None] + shift, lam)
        best = _top(one, self.singles)
        first, second = np.triu_indices(best.shape[1], 1)
        a, b = best[:, first], best[:, second]
        who = np.arange(len(rows))[:, None]
        apart = column[a] != column[b]
        two = self._promise(
            np.where(apart, here + gain[who, a] + gain[who, b], -np.inf),
            length[:, None] + longer[who, a] + longer[who, b],
            place[:, None] + shift[who, a] + shift[who, b],
            lam,
        )
        promise = np.concatenate([one, two], axis=1)
        chosen = _top(promise, self.width)
        made = np.repeat(rows[:, None, :], chosen.shape[1], axis=1)
        single = chosen < len(column)
        pair = np.where(single, 0, chosen - len(column))
        for move in (
            np.where(single, chosen, a[who, pair] if a.shape[1] else chosen),
            np.where(single, chosen, b[who, pair] if b.shape[1] else chosen),
        ):
            np.put_along_axis(made, column[move][:, :, None], move[:, :, None], axis=2)
        return made, np.take_along_axis(promise, chosen, axis=1)

    def _promise(self, effect: Floats, length: Floats, place: Floats, lam: Floats) -> Floats:
        cost = self.options.cost(length, place)
        free = np.isinf(lam)[:, None]
        price = np.where(free, np.where(cost > 0, np.inf, 0.0), np.where(free, 0.0, lam[:, None]) * cost)
        with np.errstate(invalid="ignore"):
            found = self.scale.loss(effect) - price
        return np.where(np.isfinite(effect) & np.isfinite(price), found, -np.inf)


def _top(values: Floats, count: int) -> IntArray:
    """Places of the largest values of each row, largest first; of equals the first."""
    count = min(count, values.shape[1])
    return np.argsort(-values, axis=1, kind="stable")[:, :count].astype(np.int64)


# Where the answers of a black box change along each number, found by asking about rows of the domain.


Answers = Callable[[Floats], Floats]

# Of a grid over a wide range so much is spread evenly, the rest spreads out from the lower end and from the mean.
_EVEN = 2 / 3
# A change of the answer below this is rounding.
_LEAST = 1e-5
# Rows that a gap is bisected for: those whose answers change most.
_WITNESSES = 2
# A continuous number is followed down to this share of its scale.
_FINEST = 2.0**-12
# Places along a scale that is not linear where a length of the encoding is looked up.
_PLACES = 65
# Of a model made of steps nearly all of a change stands at one place, of a smooth one next to nothing does.
_STEPPED = 0.5


def draw_rows(layout: TableLayout, count: int) -> Floats:
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
    answers: Answers, layout: TableLayout, *, calls: int = 50_000, rows: int = 16, most: int = 64
) -> dict[str, list[float]]:
    """Find where answers change along each number."""
    drawn = draw_rows(layout, rows)
    numbers = [
        i for i, known in enumerate(layout.columns) if known.kind != "categorical" and not known.immutable
    ]
    size = _grid_size([layout.columns[i] for i in numbers], calls // rows)
    found: dict[str, list[float]] = {}
    for i in numbers:
        known = layout.columns[i]
        cuts = _cuts_of(answers, drawn, i, known, size, most)
        if cuts is not None:
            found[known.name] = cuts
    return found


def _cuts_of(
    answers: Answers, drawn: Floats, column: int, known: Column, size: int, most: int
) -> list[float] | None:
    """Cuts of one number; None where answers change smoothly along it."""
    grid, at = _looked_at(answers, drawn, column, known, size)
    change = np.abs(np.diff(at, axis=1)).max(axis=2)
    largest = change.max(axis=0)
    gaps = np.argsort(-largest, kind="stable")[:most]
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
    answers: Answers, drawn: Floats, column: int, known: Column, size: int
) -> tuple[Floats, Floats]:
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
    rows: Floats,
    column: int,
    known: Column,
    low: Floats,
    high: Floats,
    at_low: Floats,
    at_high: Floats,
) -> tuple[Floats, Floats]:
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


def _answered(answers: Answers, rows: Floats, column: int, values: Floats) -> Floats:
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


def _grid(known: Column, size: int) -> Floats:
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


def _places(known: Column, count: int) -> Floats:
    """Places over the range of a number, evenly."""
    low, high = known.place(_range(known))
    return np.linspace(float(low), float(high), count)


def _range(known: Column) -> tuple[float, float]:
    low = known.lower if np.isfinite(known.lower) else known.number(-8.0)
    high = known.upper if np.isfinite(known.upper) else known.number(8.0)
    return float(low), float(high)


# The λ at which the domain is searched: fixed by ε and the loss, so that nobody else's rows have a say in
# them.


# Times the unit of the loss over ε.
_SHARES = (2.0, 0.7, 0.25, 0.08)
# A move that costs more than so many units at the lowest price is not tried alone.
_REACH = 8.0


def prices_of(eps: float, unit: float) -> tuple[float, ...]:
    """Return the λ to search at for a budget ε; ∞, moves that cost nothing, always comes along."""
    if eps == 0:
        return (np.inf,)
    if np.isinf(eps):
        return (np.inf, 0.0)
    return (np.inf, *(float(share * unit / eps) for share in _SHARES))


def furthest(eps: float) -> float:
    """Return the squared fair distance beyond which a single move is not worth a question for a budget ε."""
    return _REACH / _SHARES[-1] * eps


def loss_unit(place: Coordinates, layout: TableLayout) -> float:
    """Return what a large difference of the loss is: 1 for decisions, for a regression how answers vary in the domain."""
    if not place.model.loss.regression:
        return 1.0
    encoded = np.asarray(layout.encode(draw_rows(layout, 256)), dtype=np.float64)
    rows = place.encoded_for_model(encoded)
    answers: Any = np.asarray(place.model.outputs(rows), dtype=np.float64)[:, 0]
    varies = float(np.var(answers))
    return varies if np.isfinite(varies) and varies > 0 else 1.0


def split_points(problem: AuditProblem, probes: int) -> dict[str, list[float]]:
    """Return the cuts of every number by name, in original units; a number along which answers are smooth has none."""
    place = problem.coordinates
    layout = TableLayout.of(place.domain)
    try:
        family = family_in(problem)
    except InputError:
        family = None
    if isinstance(family, TreeFamily):
        return family.trees.thresholds(layout)
    scale, unit = Scale.of(place.model.loss), loss_unit(place, layout) ** 0.5

    def answers(values: Floats) -> Floats:
        rows: Any = place.encoded_for_model(np.asarray(layout.encode(values), dtype=np.float64))
        if place.model.loss.regression:
            return np.asarray(place.model.outputs(rows) / unit, dtype=np.float64)
        return scale.effect(np.asarray(place.model.loss_table(rows), dtype=np.float64))

    return probe_cuts(answers, layout, calls=probes)
