"""The worst case of each row of a differentiable model, by the two-phase search of the paper's Appendix C."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from likewise.auditing.dual.finite_dual import solve_dual
from likewise.auditing.people import tabular
from likewise.auditing.problem import priced_distance
from likewise.auditing.search.contract import Budget, Found, Search
from likewise.core.checks import FloatArray, IntArray, check_number, to_numpy
from likewise.core.errors import bad_parameter, is_installed
from likewise.core.messages import Message

if TYPE_CHECKING:
    import torch

    from likewise.auditing.dual.supporting_rows import Support
    from likewise.auditing.problem import AuditProblem
    from likewise.auditing.search.gradient.ascent import SearchResult
    from likewise.data.domain import Domain
    from likewise.fair_metrics.metric import FairMetric
    from likewise.models.oracle import Oracle

# Loaded when rows are searched: an audit asks first whether the model has gradients, and most have none.


@dataclass(frozen=True)
class GradientSearch(Search):
    """Choices of the gradient search for T_λ(x_i) = argmax ℓ(x, y_i) − λ d²(x, x_i) over the domain.

    Phase 1 moves inside the directions that cost nothing, with K coefficients per row folded into the model's
    first layer. Phase 2 moves all coordinates, with the penalty. Every row has its own steps: its result depends
    neither on the rows beside it nor on their order. The best point of a row is kept, so its objective is
    never below that of the row itself, and more `full_steps` or `restarts` never lower it.

    Parameters
    ----------
    subspace_steps : int, default=10
        Steps of phase 1. It is skipped if the metric has no free direction.
    subspace_step_size : float, default=1.0
        Length of the first step along free directions, in encoded units (it adapts from there);
        with ``method="adam"`` the learning rate of phase 1.
    full_steps : int, default=5
        Steps of phase 2; rows that have converged stop before. An audit searches again from where they stopped.
    full_step_size : float, default=0.01
        Learning rate of phase 2 with ``method="adam"``. The fixed point needs none.
    method : {"fixed_point", "adam"}, default="fixed_point"
        The damped fixed point x ← x_i + (1 − η)(x − x_i) + η Σ⁺∇ℓ(x)/(2λ), whose η each row adapts; or per-row
        Adam as in the paper.
    damping : float, default=0.5
        η of the first step.
    probes : int, default=2
        Displacements found once per label at one fixed row (the middle of the domain) and tried on every row,
        which finds far better maxima of a network than starting at the row alone. 0 for none. They need a scalar
        λ that is positive and finite, and class labels.
    restarts : int, default=0
        Further complete ascents of phase 2 from random displacements, the same for every row.
    tol : float, default=1e-3
        A row has converged when its steps raise the objective by no more than ``tol · max(1, |objective|)``.
    batch_size : int, default=16384
        Rows that are moved together; it changes memory and speed only.
    prices : Prices, optional
        λ of the rounds of an audit, as chosen on other people; by default the dual of the people at hand leads to them.

    Examples
    --------
    >>> import torch
    >>> from likewise.data import Unbounded
    >>> from likewise.fair_metrics import euclidean
    >>> from likewise.models import make_oracle
    >>> net = torch.nn.Linear(2, 2)
    >>> _ = torch.nn.init.constant_(net.bias, 0.0)
    >>> _ = net.weight.data.copy_(torch.tensor([[0.0, 0.0], [2.0, 0.0]]))
    >>> x, y = torch.zeros(1, 2), torch.tensor([1])
    >>> found = GradientSearch().run(
    ...     make_oracle(net), x, y, metric=euclidean(2), domain=Unbounded(), lam=1.0
    ... )
    >>> round(float(found.x[0, 0]), 2), found.counts()
    (-0.84, {'CONVERGED': 1, 'MAX_STEPS': 0, 'NON_FINITE': 0})
    """

    name: ClassVar[str] = "gradient"
    chooses_prices: ClassVar[bool] = True

    subspace_steps: int = 10
    subspace_step_size: float = 1.0
    full_steps: int = 5
    full_step_size: float = 0.01
    method: Literal["fixed_point", "adam"] = "fixed_point"
    damping: float = 0.5
    probes: int = 2
    restarts: int = 0
    tol: float = 1e-3
    batch_size: int = 16384
    prices: Prices | None = None

    def __post_init__(self) -> None:
        for name in ("subspace_steps", "full_steps", "probes", "restarts", "batch_size"):
            value, low = getattr(self, name), int(name == "batch_size")
            if isinstance(value, bool) or not isinstance(value, int) or value < low:
                raise bad_parameter("GradientSearch", name, allowed=f"an int >= {low}", got=value)
        for name in ("subspace_step_size", "full_step_size", "damping"):
            check_number(getattr(self, name), owner="GradientSearch", name=name, low=0, open_low=True)
        check_number(self.tol, owner="GradientSearch", name="tol", low=0)
        if self.method not in ("fixed_point", "adam"):
            raise bad_parameter(
                "GradientSearch", "method", allowed="'fixed_point' or 'adam'", got=self.method
            )

    def why_not(self, problem: AuditProblem) -> str | None:
        """Say why gradients cannot be followed, where they cannot."""
        place = problem.coordinates
        if not place.model.loss.differentiable:
            return Message("why_not.no_slope", loss=repr(place.model.loss.name))
        found: str | None = place.why_no_gradient()
        if found is None and not is_installed("torch"):
            return Message("why_not.no_torch")
        return found

    def extend(self, problem: AuditProblem, support: Support, eps: float, budget: Budget) -> Found:
        """Add rows found by following the model's gradient at chosen λ, until V(ε) settles, or at given ones."""
        given, asked, settled, wide = self.prices, list[tuple[float, bool]](), False, False
        non_finite, known = np.zeros(problem.n, dtype=bool), _Starts()
        solution = solve_dual(support.frontier, eps)
        # λ of the rounds before the first at λ*: moves that cost nothing, and a scale where nothing is known yet.
        pending, metric = [np.inf], problem.coordinates.metric
        if eps > 0:
            free = metric.n_features is not None and metric.null_space.basis.shape[1] > 0
            scale = [] if solution.lambda_ > 0 else [max(solution.base_loss, 1e-3) / eps]
            pending = [np.inf] * free + scale
        most = _MOST_ROUNDS if given is None else len(given.rounds)
        while not settled:
            rounds = len(asked)
            if rounds == most and (given is not None or budget.seconds is None):
                settled = given is not None and given.settled
                break
            if rounds and budget.spent:
                break
            if given is None and budget.seconds is not None:
                budget.tell_time()
            else:
                budget.tell(rounds / most)
            judged, before = not pending, support.frontier
            if given is not None:
                lam, wide = given.rounds[rounds]
            else:
                lam = pending.pop(0) if pending else solution.lambda_ if eps > 0 else np.inf
            support, failed = _one_round(self, problem, support, lam, known, wide=wide, number=rounds)
            non_finite |= failed
            asked.append((lam, wide))
            if given is not None:
                continue
            solution = solve_dual(support.frontier, eps)
            possible = float(support.frontier.gains(lam).mean() - before.gains(lam).mean())
            little = judged and possible <= _SETTLED * max(abs(solution.value), 1e-12)
            # What a start at each row itself cannot raise any more is tried from elsewhere before it counts.
            settled, wide = little and wide, wide or little
        prices = Prices(tuple(asked), settled) if given is None else replace(given, settled=settled)
        found = Found(support, again=replace(self, prices=prices))
        if non_finite.any():
            reason = Message("reason.not_finite", people=int(non_finite.sum()))
            return replace(found, status="failed", reasons=(reason,))
        if not settled:
            reason = Message("reason.still_rose", n=len(prices.rounds))
            return replace(found, status="not_converged", reasons=(reason,))
        return found

    def run(
        self,
        oracle: Oracle,
        x: torch.Tensor,
        y: torch.Tensor,
        *,
        metric: FairMetric,
        domain: Domain,
        lam: Any,
        start: torch.Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> SearchResult:
        """Search the worst case of every row.

        Parameters
        ----------
        oracle : Oracle
            Loss and input gradient of the model.
        x : Tensor of shape (n, d)
            Encoded rows, float32 or float64 as the oracle wants.
        y : Tensor of shape (n,)
            Class indices, or numbers for regression.
        metric : FairMetric
            Of encoded rows.
        domain : Domain
            Which rows can exist.
        lam : float
            λ ≥ 0. With 0 nothing is paid for a move; with inf only moves that cost nothing are made.
        start : Tensor of shape (n, d), optional
            Rows to start from as well, for instance the worst cases at a neighbouring λ.
        generator : torch.Generator, optional
            For probes and restarts. Without it a fixed seed is used, so that equal calls give equal results.

        Returns
        -------
        SearchResult
            Of the dtype and device of `x`; nothing in it belongs to a graph.
        """
        import torch

        from likewise.auditing.search.gradient.phases import checked_rows, joined, prepare, search_block

        x, y, start = checked_rows(x, y, start)
        free_only = np.ndim(lam) == 0 and float(lam) == np.inf
        price = np.inf if free_only else check_number(lam, owner="GradientSearch.run", name="lam", low=0)
        task = prepare(self, oracle, x, y, metric=metric, domain=domain, lam=price, generator=generator)
        blocks = [slice(at, at + self.batch_size) for at in range(0, len(x), self.batch_size)]
        with torch.no_grad():
            return joined(
                [
                    search_block(task, x[at], y[at], price, None if start is None else start[at])
                    for at in blocks
                ]
            )


# The search of an audit: rows found by gradients join the support round by round, made valid for a table.


# From a relaxed worst case to a person who can exist: nearest valid row, then moves while the objective
# rises.


Losses = Callable[[FloatArray, Any], FloatArray]

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
    x: FloatArray,
    origin: FloatArray,
    y: Any,
    *,
    losses: Losses,
    metric: Any,
    domain: Any,
    lam: float,
) -> FloatArray:
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

    def __call__(self, rows: FloatArray, origin: FloatArray, labels: Any) -> FloatArray:
        return self._value(np.asarray(self.losses(rows, labels), dtype=np.float64), rows, origin)

    def _value(self, loss: FloatArray, rows: FloatArray, origin: FloatArray) -> FloatArray:
        distance = priced_distance(self.metric, origin, rows, alone=False)
        return np.where(distance == 0, loss, -np.inf) if np.isinf(self.lam) else loss - self.lam * distance

    def above(self, rows: FloatArray, origin: FloatArray, labels: Any, floor: FloatArray) -> FloatArray:
        """Objective of several moves of n people, one below the other; −inf if it cannot exceed the floor.

        A distance is only measured where the loss alone exceeds the floor, which few moves do.
        """
        person = np.tile(np.arange(len(origin)), len(rows) // len(origin))
        loss = np.asarray(self.losses(rows, labels[person]), dtype=np.float64)
        worth = np.flatnonzero(loss > floor[person])
        value = np.full(len(rows), -np.inf)
        value[worth] = self._value(loss[worth], rows[worth], origin[person[worth]])
        return value


# Columns of the encoding, and their new cells, given the present ones and the person's own.
_Change = tuple[Any, Callable[[FloatArray, FloatArray], Any]]


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


def _put(value: FloatArray, now: FloatArray, own: FloatArray) -> FloatArray:
    return value


def _all_rows(domain: Any) -> FloatArray | None:
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


def _values(column: Any) -> list[FloatArray] | None:
    """All encoded values of one column, or None if they cannot be listed."""
    if column.immutable:
        return [np.zeros(column.width)]
    if column.kind == "integer":
        count = int(column.upper - column.lower) + 1
        if count > _MAX_LISTED:
            return None
        return [column.place([column.lower + k]) for k in range(count)]
    return None if column.kind == "continuous" else _categories(column) or [np.array([1.0])]


def _categories(column: Any) -> list[FloatArray]:
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

    def moved(now: FloatArray, own: FloatArray, *, step: float = 0.0, units: float = 0.0) -> FloatArray:
        place: FloatArray = np.clip(now + step, low, high)
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
    rows: FloatArray,
    origin: FloatArray,
    labels: Any,
    value: FloatArray,
) -> tuple[FloatArray, FloatArray]:
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
# Rounds without a set time, at most.
_MOST_ROUNDS = 20


@dataclass(frozen=True)
class Prices:
    """λ of each round, whether its ascents begin at more places, and whether the last of them settled V(ε)."""

    rounds: tuple[tuple[float, bool], ...]
    settled: bool


@dataclass
class _Starts:
    """Worst cases of earlier rounds: a new round starts each row from the one that is best at its λ."""

    rounds: list[tuple[FloatArray, FloatArray, FloatArray]] = field(default_factory=list)

    def add(self, x: FloatArray, loss: FloatArray, squared_distance: FloatArray) -> None:
        self.rounds = [*self.rounds[-_REMEMBERED + 1 :], (x, loss, squared_distance)]

    def best(self, lam: float) -> FloatArray | None:
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
