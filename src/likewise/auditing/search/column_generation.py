"""Column generation for the dual: gradient searches at chosen λ add rows to the support until V(ε) settles.

At the λ* of the present support the search looks for rows that beat it. Rows found join the support, the dual is
solved again exactly, and so on. V(ε) of the support rises in every round and is attained by listed rows, so it is
a lower bound of the true value, and equals it in the limit where the search is exact: with ℓ^c the present support's
conjugate and T the search, V(ε) can rise by no more than the mean of what T at λ* adds to ℓ^c_λ* (weak duality). So
only a round at λ* can say that nothing more is to be found.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.auditing.coordinates import priced_distance
from likewise.auditing.dual.finite_dual import solve_dual
from likewise.auditing.dual.frontier import Floats, Frontier
from likewise.auditing.dual.supporting_rows import Support
from likewise.auditing.people import tabular
from likewise.auditing.search.contract import Found, Status
from likewise.core.checks import IntArray, to_numpy
from likewise.core.messages import Message

if TYPE_CHECKING:
    from likewise.auditing.problem import AuditProblem
    from likewise.auditing.search.contract import Budget
    from likewise.auditing.search.gradient.search import GradientSearch

# From a relaxed worst case to a person who can exist: nearest valid row, then moves while the objective
# rises.


Losses = Callable[[Floats, Any], Floats]

# Steps of a whole number in its unit, and of another number in standard deviations.
_UNITS = (1, 2, 5, 10, 25, 100, 1000)
_DEVIATIONS = (0.03, 0.1, 0.3, 1.0)
_MAX_PAIRS = 400
# A domain with at most so many rows is searched whole.
_MAX_LISTED = 1000
_BLOCK_CELLS = 4_000_000
_TOL = 1e-9
_MAX_STEPS = 20


def refine(
    x: Floats,
    origin: Floats,
    y: Any,
    *,
    losses: Losses,
    metric: Any,
    domain: Any,
    lam: float,
) -> Floats:
    """Turn relaxed worst cases into valid rows that are as bad as single changes can make them."""
    goal = _Goal(losses, metric, lam)
    labels = np.asarray(y)
    best = origin.copy()
    value = goal(best, origin, labels)
    start = np.asarray(domain.nearest_valid(x, origin), dtype=np.float64)
    moved = goal(start, origin, labels)
    better = moved > value
    best[better], value[better] = start[better], moved[better]
    moves = _moves(domain)
    active = np.arange(len(best))
    for _ in range(_MAX_STEPS):
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
        return self._value(np.asarray(self.losses(rows, labels), dtype=np.float64), rows, origin)

    def _value(self, loss: Floats, rows: Floats, origin: Floats) -> Floats:
        distance = priced_distance(self.metric, origin, rows, alone=False)
        return np.where(distance == 0, loss, -np.inf) if np.isinf(self.lam) else loss - self.lam * distance

    def above(self, rows: Floats, origin: Floats, labels: Any, floor: Floats) -> Floats:
        """Objective of several moves of n people, one below the other; −inf where it cannot exceed the floor.

        A distance is only measured where the loss alone exceeds the floor, which few moves do.
        """
        person = np.tile(np.arange(len(origin)), len(rows) // len(origin))
        loss = np.asarray(self.losses(rows, labels[person]), dtype=np.float64)
        worth = np.flatnonzero(loss > floor[person])
        value = np.full(len(rows), -np.inf)
        value[worth] = self._value(loss[worth], rows[worth], origin[person[worth]])
        return value


# Columns of the encoding, and their new cells, given the present ones and the person's own.
_Change = tuple[Any, Callable[[Floats, Floats], Any]]


def _moves(domain: Any) -> list[tuple[_Change, ...]]:
    """All moves that are tried: single changes, and pairs of them where they are few."""
    listed = _all_rows(domain)
    if listed is not None:
        free = np.concatenate([np.arange(c.start, c.stop) for c in domain.columns_ if not c.immutable])
        return [((free, partial(_put, row[free])),) for row in listed]
    bounds = np.stack(domain.bounds(), axis=1)
    by_column = [
        _changes(column, *bounds[column.start]) for column in domain.columns_ if not column.immutable
    ]
    pairs = [
        pair for one, two in itertools.combinations(by_column, 2) for pair in itertools.product(one, two)
    ]
    alone = [(change,) for changes in by_column for change in changes]
    return [*alone, *(pairs if len(pairs) <= _MAX_PAIRS else ())]


def _put(value: Floats, now: Floats, own: Floats) -> Floats:
    return value


def _all_rows(domain: Any) -> Floats | None:
    """Every row that can exist, encoded, where there are few; 0 in columns that may not change."""
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
    return None if column.kind == "continuous" else _categories(column) or [np.array([1.0])]


def _categories(column: Any) -> list[Floats]:
    """The encoded categories of a column that has several."""
    if column.width > 1:
        return list(np.eye(column.width))
    return [np.array([0.0]), np.array([1.0])] if column.is_binary else []


def _changes(column: Any, low: float, high: float) -> list[_Change]:
    """Set a column's encoded part, put it back to the person's own, or move it."""
    part = slice(column.start, column.stop)
    if column.kind == "categorical":
        return [(part, partial(_put, value)) for value in _categories(column)]
    # A whole number on a scale that is not linear moves from one whole number to another.
    curved = column.kind == "integer" and column.curve is not None

    def moved(now: Floats, own: Floats, *, step: float = 0.0, units: float = 0.0) -> Floats:
        place = np.clip(now + step, low, high)
        if curved:
            place = column.place(np.clip(column.whole_number(place) + units, column.lower, column.upper))
        return place

    sizes = [n * column.unit for n in _UNITS] if column.kind == "integer" and not curved else _DEVIATIONS
    room = float(np.diff(column.place([column.lower, column.upper]))[0])
    units = [n for n in _UNITS if n <= column.upper - column.lower] if curved else []
    return [
        (part, lambda now, own: own),
        *((part, partial(moved, step=sign * size)) for size in sizes if size <= room for sign in (1.0, -1.0)),
        *((part, partial(moved, units=sign * n)) for n in units for sign in (1.0, -1.0)),
    ]


def _improved(
    moves: Sequence[tuple[_Change, ...]],
    goal: _Goal,
    domain: Any,
    rows: Floats,
    origin: Floats,
    labels: Any,
    value: Floats,
) -> tuple[Floats, Floats]:
    """Best move of every row: the moved rows and their objective (the old one where no move helps)."""
    n, best, top = len(rows), rows.copy(), value.copy()
    per_call = max(1, _BLOCK_CELLS // max(rows.size, 1))
    for first in range(0, len(moves), per_call):
        part = moves[first : first + per_call]
        tried = np.repeat(rows[None], len(part), axis=0)
        for variant, move in zip(tried, part, strict=True):
            for columns, change in move:
                variant[:, columns] = change(variant[:, columns], origin[:, columns])
        flat = tried.reshape(-1, rows.shape[1])
        found = goal.above(flat, origin, labels, top).reshape(len(part), n)
        which: IntArray = found.argmax(axis=0)
        gained = found[which, np.arange(n)]
        up = np.flatnonzero(gained > top)
        best[up], top[up] = tried[which[up], up], gained[up]
    # Steps of a whole number leave rounding behind; the valid row next to it is the same person.
    return np.asarray(domain.nearest_valid(best, origin), dtype=np.float64), top


# V(ε) has settled if a round raises it by no more than this share.
_SETTLED = 1e-3
# Worst cases of so many earlier rounds are kept to start the next one from.
_REMEMBERED = 4
# Starts of the last look at each row, besides those of the search itself.
_RESTARTS = 8


@dataclass(frozen=True)
class Prices:
    """λ of each round, whether its ascents begin at more places, and whether the last of them settled V(ε)."""

    rounds: tuple[tuple[float, bool], ...]
    settled: bool


@dataclass(frozen=True)
class ColumnReport:
    """How the rounds went."""

    prices: Prices
    non_finite: int

    @property
    def reason(self) -> str | None:
        """Why the result is not settled and what to do about it; None where it is."""
        if self.non_finite:
            return Message("reason.not_finite", people=self.non_finite)
        if self.prices.settled:
            return None
        return Message("reason.still_rose", n=len(self.prices.rounds))


def improve_by_columns(
    search: GradientSearch, problem: AuditProblem, support: Support, eps: float, budget: Budget
) -> Found:
    """Run the gradient search as a `Search`: rows of a table are made valid before they join the support."""
    support, report = generate_columns(search, problem, support, eps, budget)
    again = replace(search, prices=report.prices)
    if report.reason is None:
        return Found(support, again=again)
    status: Status = "failed" if report.non_finite else "not_converged"
    return Found(support, status, (report.reason,), again=again)


def generate_columns(
    search: GradientSearch,
    problem: AuditProblem,
    support: Support,
    eps: float,
    budget: Budget,
    *,
    max_rounds: int = 20,
) -> tuple[Support, ColumnReport]:
    """Add rows found by gradient searches until the dual at ε settles, or at the prices that other people led to."""
    if search.prices is not None:
        return _columns_at(search, search.prices, problem, support, budget)
    asked, settled, wide = list[tuple[float, bool]](), False, False
    non_finite, known = np.zeros(problem.n, dtype=bool), _Starts()
    solution = solve_dual(support.frontier, eps)
    pending = _first_lambdas(support, solution.lambda_, solution.base_loss, eps)
    while not settled:
        rounds = len(asked)
        if rounds and (rounds >= max_rounds if budget.seconds is None else budget.spent):
            break
        if budget.seconds is None:
            budget.tell(rounds / max_rounds)
        else:
            budget.tell_time()
        judged = not pending
        lam = pending.pop(0) if pending else solution.lambda_ if eps > 0 else np.inf
        before = support.frontier
        support, failed = _one_round(search, problem, support, lam, known, wide=wide, number=rounds)
        non_finite |= failed
        asked.append((lam, wide))
        solution = solve_dual(support.frontier, eps)
        possible = _conjugate(support.frontier, lam) - _conjugate(before, lam)
        little = judged and possible <= _SETTLED * max(abs(solution.value), 1e-12)
        # What a start at each row itself cannot raise any more is tried from elsewhere before it counts.
        settled, wide = little and wide, wide or little
    return support, ColumnReport(Prices(tuple(asked), settled), int(non_finite.sum()))


def _columns_at(
    search: GradientSearch, prices: Prices, problem: AuditProblem, support: Support, budget: Budget
) -> tuple[Support, ColumnReport]:
    """Add rows found at given prices; what is found for a person does not depend on the others."""
    non_finite, known, settled = np.zeros(problem.n, dtype=bool), _Starts(), prices.settled
    for number, (lam, wide) in enumerate(prices.rounds):
        if number and budget.spent:
            settled = False
            break
        budget.tell(number / len(prices.rounds))
        support, failed = _one_round(search, problem, support, lam, known, wide=wide, number=number)
        non_finite |= failed
    return support, ColumnReport(replace(prices, settled=settled), int(non_finite.sum()))


def _first_lambdas(support: Support, lam: float, base_loss: float, eps: float) -> list[float]:
    """λ of the rounds before the first at λ*: moves that cost nothing, and a scale where nothing is known yet."""
    metric = support.problem.coordinates.metric
    free = metric.n_features is not None and metric.null_space.basis.shape[1] > 0
    if eps == 0:
        return [np.inf]
    return [np.inf] * free + ([] if lam > 0 else [max(base_loss, 1e-3) / eps])


def _conjugate(frontier: Frontier, lam: float) -> float:
    """Mean of ℓ^c_λ on a support; for λ = ∞ of the worst loss at no cost."""
    if np.isinf(lam):
        return solve_dual(frontier, 0.0).value
    return float(frontier.conjugate(lam).mean())


@dataclass
class _Starts:
    """Worst cases of earlier rounds: a new round starts each row from the one that is best at its λ."""

    rounds: list[tuple[Floats, Floats, Floats]] = field(default_factory=list)

    def add(self, x: Floats, loss: Floats, squared_distance: Floats) -> None:
        self.rounds = [*self.rounds[-_REMEMBERED + 1 :], (x, loss, squared_distance)]

    def best(self, lam: float) -> Floats | None:
        """Return the rows to start from, (n, d); None before the first round."""
        if not self.rounds:
            return None
        values = np.stack([np.where(d2 > 0, loss - min(lam, 1e30) * d2, loss) for _, loss, d2 in self.rounds])
        which = np.nan_to_num(values, nan=-np.inf).argmax(axis=0)
        start = self.rounds[0][0].copy()
        for k, (x, _, _) in enumerate(self.rounds):
            start[which == k] = x[which == k]
        return start


def _one_round(
    search: GradientSearch,
    problem: AuditProblem,
    support: Support,
    lam: float,
    known: _Starts,
    *,
    wide: bool,
    number: int,
) -> tuple[Support, Any]:
    import torch

    from likewise.auditing.search.gradient.ascent import RowStatus
    from likewise.core.randomness import torch_generator

    place, start = problem.coordinates, known.best(lam)
    if wide:
        search = replace(search, restarts=max(search.restarts, _RESTARTS))
    oracle = place.gradient_oracle()
    found = search.run(
        oracle,
        torch.tensor(problem.X, dtype=oracle.dtype),
        torch.as_tensor(problem.target),
        metric=place.metric,
        domain=place.domain,
        lam=lam,
        start=None if start is None else torch.as_tensor(start, dtype=oracle.dtype),
        generator=torch_generator(problem.random_state + number),
    )
    failed = to_numpy(found.status) == RowStatus.NON_FINITE.value
    relaxed = to_numpy(found.x).astype(np.float64)
    known.add(relaxed, to_numpy(found.loss), to_numpy(found.squared_distance))
    rows = np.flatnonzero(~failed & np.isfinite(relaxed).all(axis=1))
    if not len(rows):
        return support, failed
    origin, resolution = problem.X[rows], None
    # Single precision leaves a crumb outside the domain.
    x = to_numpy(place.domain.project(relaxed[rows], origin))
    if tabular(place.domain) is None:
        # Relaxed rows carry the rounding of the oracle, valid rows that of the encoding.
        resolution = float(torch.finfo(oracle.dtype).eps)
    else:
        x = refine(
            x,
            origin,
            problem.labels[rows],
            losses=place.losses_encoded,
            metric=place.metric,
            domain=place.domain,
            lam=lam,
        )
    moved = np.flatnonzero((x != origin).any(axis=1))
    return support.with_rows(x[moved], rows[moved], resolution=resolution), failed
