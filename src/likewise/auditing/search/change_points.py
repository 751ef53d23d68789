"""Where a model's answers change along each number, the splits of its trees or what probing a black box finds; and the λ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from likewise.auditing.bounds.families import family_in
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.bounds.trees import TreeFamily
from likewise.auditing.coordinates import Coordinates
from likewise.auditing.dual.frontier import Floats
from likewise.auditing.problem import AuditProblem
from likewise.auditing.search.moves import margin_of
from likewise.core.errors import InputError
from likewise.data.column import Column
from likewise.models.losses import CrossEntropy

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
_SHARES = (2.0, 1.0, 0.5, 0.3, 0.2, 0.1)
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
    unit = loss_unit(place, layout) ** 0.5

    def answers(values: Floats) -> Floats:
        rows: Any = place.encoded_for_model(np.asarray(layout.encode(values), dtype=np.float64))
        if place.model.loss.regression:
            return np.asarray(place.model.outputs(rows) / unit, dtype=np.float64)
        losses = np.asarray(place.model.loss_table(rows), dtype=np.float64)
        return margin_of(losses) if isinstance(place.model.loss, CrossEntropy) else losses

    return probe_cuts(answers, layout, calls=probes)
