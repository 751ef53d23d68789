"""From a relaxed worst case to a person who can exist: nearest valid row, then moves while the objective rises.

A gradient search ends between categories and between whole numbers. The nearest valid row is where the refinement
starts; then every single change of one column is tried (another category, some units more or less, back to the
person's own value), and pairs of changes where they are few, and the best is made until none raises ℓ − λ d².
Where the whole domain is small enough to be listed, all of it is tried, and the result is the true worst case.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.problem.zero_cost import priced_distance
from likewise.auditing.support.frontier import Floats, Ints

__all__ = ["refine"]

Losses = Callable[[Floats, Any], Floats]

# Steps of a whole number in its unit, and of another number in standard deviations.
_UNITS = (1, 2, 5, 10, 25, 100, 1000)
_DEVIATIONS = (0.03, 0.1, 0.3, 1.0)
_MAX_PAIRS = 400
# A domain with at most so many rows is searched whole.
_MAX_LISTED = 1000
_BLOCK_CELLS = 4_000_000
_TOL = 1e-9


def refine(
    x: Floats,
    origin: Floats,
    y: Any,
    *,
    losses: Losses,
    metric: Any,
    domain: Any,
    lam: float,
    max_rounds: int = 20,
) -> Floats:
    """Turn relaxed worst cases into valid rows that are as bad as single changes can make them.

    Parameters
    ----------
    x : float array of shape (n, d)
        Relaxed worst cases, encoded.
    origin : float array of shape (n, d)
        The people they belong to, encoded and valid.
    y : array of shape (n,)
        Their labels.
    losses : callable
        ``losses(rows, labels)`` → (k,): the model's loss of encoded rows.
    metric : FairMetric
        Of encoded rows.
    domain : TabularDomain
    lam : float
        λ ≥ 0; inf allows only moves that cost nothing.
    max_rounds : int, default=20
        Changes per row at most.

    Returns
    -------
    float array of shape (n, d)
        Valid rows whose ℓ − λ d² is at least that of the person's own row.
    """
    goal = _Goal(losses, metric, lam)
    labels = np.asarray(y)
    best = origin.copy()
    value = goal(best, origin, labels)
    start = np.asarray(domain.nearest_valid(x, origin), dtype=np.float64)
    moved = goal(start, origin, labels)
    better = moved > value
    best[better], value[better] = start[better], moved[better]
    moves = _Moves.of(domain)
    active = np.arange(len(best))
    for _ in range(max_rounds):
        if not len(active):
            break
        rows, gain = _improved(
            moves, goal, domain, best[active], origin[active], labels[active], value[active]
        )
        up = gain > value[active] + _TOL * (1 + np.abs(value[active]))
        best[active[up]], value[active[up]] = rows[up], gain[up]
        active = active[up]
    return best


@dataclass(frozen=True)
class _Goal:
    """The objective ℓ − λ d²; for λ = ∞ the loss where the move costs nothing."""

    losses: Losses
    metric: Any
    lam: float

    def __call__(self, rows: Floats, origin: Floats, labels: Any) -> Floats:
        loss = np.asarray(self.losses(rows, labels), dtype=np.float64)
        distance = priced_distance(self.metric, origin, rows, alone=False)
        if np.isinf(self.lam):
            return np.where(distance == 0, loss, -np.inf)
        return np.asarray(loss - self.lam * distance)

    def above(self, rows: Floats, origin: Floats, labels: Any, floor: Floats) -> Floats:
        """Objective of several moves of n people, one below the other; −inf where it cannot exceed the floor.

        A distance is only measured where the loss alone exceeds the floor, which few moves do.
        """
        person = np.tile(np.arange(len(origin)), len(rows) // len(origin))
        loss = np.asarray(self.losses(rows, labels[person]), dtype=np.float64)
        worth = np.flatnonzero(loss > floor[person])
        value = np.full(len(rows), -np.inf)
        distance = priced_distance(self.metric, origin[person[worth]], rows[worth], alone=False)
        if np.isinf(self.lam):
            value[worth] = np.where(distance == 0, loss[worth], -np.inf)
        else:
            value[worth] = loss[worth] - self.lam * distance
        return value


@dataclass(frozen=True)
class _Change:
    """One change of one column: set its encoded part, move it, or put it back to the person's own."""

    start: int
    stop: int
    put: Floats | None = None
    step: float = 0.0
    # Of a whole number on a scale that is not linear: it moves from one whole number to another.
    whole: Any = None
    units: float = 0.0

    def apply(self, rows: Floats, origin: Floats, lower: Floats, upper: Floats) -> None:
        part = slice(self.start, self.stop)
        if self.put is not None:
            rows[:, part] = self.put
        elif self.whole is not None:
            place = np.clip(rows[:, self.start] + self.step, lower[self.start], upper[self.start])
            value = self.whole.whole_number(place) + self.units
            rows[:, self.start] = self.whole.place(np.clip(value, self.whole.lower, self.whole.upper))
        elif self.step:
            low, high = lower[self.start], upper[self.start]
            rows[:, self.start] = np.clip(rows[:, self.start] + self.step, low, high)
        else:
            rows[:, part] = origin[:, part]


@dataclass(frozen=True)
class _Moves:
    """All moves that are tried: single changes, and pairs of them where they are few."""

    moves: tuple[tuple[_Change, ...], ...]
    fixed: Ints  # encoded positions of immutable columns

    @classmethod
    def of(cls, domain: Any) -> _Moves:
        fixed = [np.arange(c.start, c.stop) for c in domain.columns_ if c.immutable]
        positions = np.concatenate([np.zeros(0, dtype=np.int64), *fixed])
        listed = _all_rows(domain)
        if listed is not None:
            return cls(tuple((_Change(0, listed.shape[1], put=row),) for row in listed), positions)
        by_column = [_changes(column) for column in domain.columns_ if not column.immutable]
        moves: list[tuple[_Change, ...]] = [(change,) for changes in by_column for change in changes]
        pairs = [
            pair for one, two in itertools.combinations(by_column, 2) for pair in itertools.product(one, two)
        ]
        return cls((*moves, *(pairs if len(pairs) <= _MAX_PAIRS else ())), positions)


def _all_rows(domain: Any) -> Floats | None:
    """Every row that can exist, encoded, where there are few; immutable columns are put back by the caller."""
    values = [_values(column) for column in domain.columns_]
    if any(part is None for part in values):
        return None
    known = [part for part in values if part is not None]
    if np.prod([float(len(part)) for part in known]) > _MAX_LISTED:
        return None
    rows = [np.concatenate(parts) for parts in itertools.product(*known)]
    order = np.argsort(np.concatenate([np.arange(c.start, c.stop) for c in domain.columns_]))
    return np.stack(rows)[:, order]


def _values(column: Any) -> list[Floats] | None:
    """All encoded values of one column, or None where they cannot be listed."""
    if column.immutable:
        return [np.zeros(column.width)]
    if column.kind == "integer":
        count = int(column.upper - column.lower) + 1
        if count > _MAX_LISTED:
            return None
        return [column.place([column.lower + k]) for k in range(count)]
    if column.kind == "continuous":
        return None
    if column.width == 1:
        return [np.array([0.0]), np.array([1.0])] if column.is_binary else [np.array([1.0])]
    return list(np.eye(column.width))


def _changes(column: Any) -> list[_Change]:
    start, stop = column.start, column.stop
    if column.kind == "categorical":
        if column.width == 1:
            values = [np.array([0.0]), np.array([1.0])] if column.is_binary else []
        else:
            values = list(np.eye(column.width))
        return [_Change(start, stop, put=value) for value in values]
    linear = column.kind == "integer" and column.curve is None
    sizes = [n * column.unit for n in _UNITS] if linear else list(_DEVIATIONS)
    room = float(np.diff(column.place([column.lower, column.upper]))[0])
    steps = [sign * size for size in sizes if size <= room for sign in (1.0, -1.0)]
    if linear or column.kind != "integer":
        return [_Change(start, stop), *(_Change(start, stop, step=step) for step in steps)]
    units = [sign * n for n in _UNITS if n <= column.upper - column.lower for sign in (1.0, -1.0)]
    return [
        _Change(start, stop),
        *(_Change(start, stop, step=step, whole=column) for step in steps),
        *(_Change(start, stop, units=n, whole=column) for n in units),
    ]


def _improved(
    moves: _Moves, goal: _Goal, domain: Any, rows: Floats, origin: Floats, labels: Any, value: Floats
) -> tuple[Floats, Floats]:
    """Best move of every row: the moved rows and their objective (the old one where no move helps)."""
    lower, upper = domain.bounds()
    n, best, top = len(rows), rows.copy(), value.copy()
    per_call = max(1, _BLOCK_CELLS // max(rows.size, 1))
    for first in range(0, len(moves.moves), per_call):
        part = moves.moves[first : first + per_call]
        tried = np.repeat(rows[None], len(part), axis=0)
        for variant, move in zip(tried, part, strict=True):
            for change in move:
                change.apply(variant, origin, lower, upper)
            variant[:, moves.fixed] = origin[:, moves.fixed]
        flat = tried.reshape(-1, rows.shape[1])
        found = goal.above(flat, origin, labels, top).reshape(len(part), n)
        which: Ints = found.argmax(axis=0)
        gained = found[which, np.arange(n)]
        up = np.flatnonzero(gained > top)
        best[up], top[up] = tried[which[up], up], gained[up]
    # Steps of a whole number leave rounding behind; the valid row next to it is the same person.
    return np.asarray(domain.nearest_valid(best, origin), dtype=np.float64), top
