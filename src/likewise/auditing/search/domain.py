"""The worst valid rows for any model at all: moves of one and of two columns, from each person, over the whole domain.

Nothing is asked of the model but its loss; a tree model also says where it splits. Every row that is tried serves every
λ. What is found for a person depends on that person, the model, the metric and the domain alone, never on who else is
audited.

From a row every single move is known (`person_moves`, for models that were read) or estimated from what the move did to
the person's own row (for a black box). For every λ the best row so far is moved on from, once: what is seen there serves
all λ. A person is done when no move from any of their best rows promises more.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from likewise.auditing.bounds.exact_search import about_decisions
from likewise.auditing.bounds.families import family_in, is_read, seconds_to_read
from likewise.auditing.bounds.family import MoveArrays
from likewise.auditing.bounds.regions import MetricArrays, TableLayout
from likewise.auditing.dual.finite_dual import Frontier, solve_dual
from likewise.auditing.problem import AuditProblem
from likewise.auditing.search.black_box import BlackBoxMoves, loss_unit, split_points
from likewise.auditing.search.candidates import CandidateSearch
from likewise.auditing.search.contract import Budget, Found, Search, unfinished
from likewise.auditing.search.person_moves import (
    COUNT,
    FIRST_CUT,
    FIRST_OPTION,
    LENGTH,
    PLACE,
    ROOM,
    SHIFT,
    SMOOTH,
    USABLE,
    VALUE,
    search_people,
)
from likewise.core.checks import FloatArray, IntArray, check_number
from likewise.core.compiled import is_compiled
from likewise.core.errors import InputError
from likewise.core.messages import Message
from likewise.core.randomness import numpy_generator
from likewise.data.column import Column
from likewise.data.encoding import rounding_of_values
from likewise.fair_metrics.metric import COSTS_NOTHING
from likewise.models.losses import Loss

if TYPE_CHECKING:
    from likewise.auditing.dual.supporting_rows import Support

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
    known: FloatArray

    @property
    def value(self) -> FloatArray:
        """The values, (n, M)."""
        return self.known[:, :, VALUE]

    @property
    def place(self) -> FloatArray:
        """Their places, (n, M)."""
        return self.known[:, :, PLACE]

    @property
    def usable(self) -> Any:
        """Which can be used, (n, M)."""
        return self.known[:, :, USABLE] > 0

    @property
    def length(self) -> FloatArray:
        """What they add to the squared length, (n, M)."""
        return self.known[:, :, LENGTH]

    @property
    def shift(self) -> FloatArray:
        """What they add to Qᵀδ, (n, M, k)."""
        return self.known[:, :, SHIFT:]


def options_of(
    layout: TableLayout, metric: Any, own: FloatArray, cuts: Mapping[str, Sequence[float]] | None
) -> Options:
    """Return the options of some people, given as rows of values."""
    parts: list[FloatArray] = []
    count: list[int] = []
    basis = MetricArrays.of(metric, layout.width).basis
    for i, known in enumerate(layout.columns):
        mine = own[:, i]
        value: FloatArray = mine[:, None]
        if not known.immutable:
            known_cuts = None if cuts is None else cuts.get(known.name)
            value = np.concatenate([value, _more(known, mine, known_cuts)], axis=1)
        usable = np.isfinite(value)
        value = np.where(usable, value, mine[:, None])
        place = value if known.kind == "categorical" else np.asarray(known.place(value), dtype=np.float64)
        # Squared length (n, m) and Qᵀ (n, m, k) of the moves from people's own places, the first ones, to others.
        if known.width == 1:
            step = place - place[:, :1]
            length, shift = step**2, step[:, :, None] * basis[known.start]
        else:
            codes = known.start + place.astype(np.int64)
            length, shift = 2.0 * (codes != codes[:, :1]), basis[codes] - basis[codes[:, :1]]
        parts.append(np.concatenate([np.stack([value, place, usable, length], axis=2), shift], axis=2))
        count.append(value.shape[1])
    column = np.repeat(np.arange(layout.n_columns), count).astype(np.int64)
    return Options(column, np.append(0, np.cumsum(count)).astype(np.int64), np.concatenate(parts, axis=1))


def _more(known: Column, own: FloatArray, cuts: Sequence[float] | None) -> FloatArray:
    """Values of a column besides a person's own, (n, m)."""
    if known.kind == "categorical":
        codes = np.tile(np.arange(len(known.categories), dtype=np.float64), (len(own), 1))
        return np.where(codes == own[:, None], np.nan, codes)
    whole = known.kind == "integer"
    if cuts is not None:
        every = np.asarray(cuts, dtype=np.float64)
        at: FloatArray = _nearest(every, own) if len(every) > _MANY_CUTS else every[None, :]
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
        # Growing steps to both sides, up to the width of the range.
        steps = (1.0 if whole else _FIRST_STEP * known.scale) * _GROWTH ** np.arange(_STEPS)
        steps = np.unique(np.rint(steps)) if whole else steps
        width = known.upper - known.lower
        steps = steps[steps <= width] if np.isfinite(width) else steps
        value = own[:, None] + np.concatenate([-steps, steps])[None, :]
    else:
        # Growing steps in the encoding to both sides, and of whole numbers the next ones.
        width = float(np.diff(known.place([known.lower, known.upper]))[0])
        steps = _FIRST_STEP * _GROWTH ** np.arange(_STEPS)
        steps = steps[steps <= (width if np.isfinite(width) else _WIDEST)]
        value = known.number(known.place(own)[:, None] + np.concatenate([-steps, steps])).astype(np.float64)
        if whole:
            value = np.concatenate([own[:, None] + np.array([-1.0, 1.0]), np.rint(value)], axis=1)
    inside = (value >= known.lower) & (value <= known.upper) & (value != own[:, None])
    return np.where(inside, value, np.nan)


def _nearest(cuts: FloatArray, own: FloatArray) -> FloatArray:
    """The cuts next to each person's value, and others by their rank from there, ever further apart; (n, m)."""
    further = np.geomspace(_NEAREST, len(cuts), 16).astype(np.int64)
    rank = np.unique(np.concatenate([np.arange(_NEAREST), further]))
    place = np.searchsorted(cuts, own)[:, None] + np.concatenate([rank, -1 - rank])[None, :]
    inside = (place >= 0) & (place < len(cuts))
    return np.where(inside, cuts[np.clip(place, 0, len(cuts) - 1)], np.nan)


@dataclass(frozen=True, eq=False)
class FoundForPeople:
    """Rows that are worth keeping, person by person, the person's own first."""

    rows: FloatArray
    person: IntArray
    loss: FloatArray
    cost: FloatArray


# Options of all people at once: bounds the memory.
_CELLS = 100_000


@dataclass(frozen=True, eq=False)
class MoveSearch:
    """Everything about a search but the people; `model` where the model was read, else `ask` answers."""

    layout: TableLayout
    metric: Any
    prices: Sequence[float]
    loss: Loss
    model: MoveArrays | None = None
    ask: Callable[[FloatArray, Any], FloatArray] | None = None
    cuts: Mapping[str, Sequence[float]] | None = None
    # Rounds from a person's best rows; of a black box, rows to ask about, in all and at once.
    rounds: int = 24
    calls: int = 1_000
    width: int = 32
    # A row that is better by less than this share is not.
    tol: float = 1e-4
    # When asking about further moves ends.
    until: float = math.inf
    # Lower λ, at which only what a person's own moves promise is tried.
    far: Sequence[float] = ()

    @property
    def size(self) -> int:
        """How many people are searched at once."""
        known = self.cuts or {}
        count = sum(
            len(c.categories) + len(known.get(c.name, range(_STEPS))) + 1 for c in self.layout.columns
        )
        return int(np.clip(_CELLS // count, 1, 256))

    def run(self, X: FloatArray, targets: Any) -> FoundForPeople:
        """Search around people, given as encoded rows."""
        own = np.asarray(self.layout.values(X), dtype=np.float64)
        options = options_of(self.layout, self.metric, own, self.cuts)
        if self.model is None:
            return self._worth_keeping(*BlackBoxMoves(self, options, np.asarray(targets)).run())
        rows, found, count = self._by_reading(self.model, options, targets)
        return self._worth_keeping(rows[:, :, 0], found[:, :, 0], found[:, :, 1], count)

    @property
    def goal(self) -> FloatArray:
        """The λ to search at, what the loss counts there, and by which share a better row is better, (m, 3).

        At no distance the smallest loss is looked for as well: it may be decided differently from a person whose own
        decision is the wrong one. What lies far away comes last.
        """
        least = [price for price in self.prices if np.isinf(price)][:1]
        prices = np.array([*self.prices, *least, *self.far], dtype=np.float64)
        signs = np.ones(len(prices))
        signs[len(self.prices) : self.near] = -1.0
        return np.column_stack([prices, signs, np.full(len(signs), self.tol)])

    @property
    def near(self) -> int:
        """At how many of these λ the best rows are moved on from."""
        return len(self.prices) + bool(np.isinf(self.prices).any())

    @property
    def measure(self) -> tuple[Any, ...]:
        """The metric for compiled loops: Σ = scale·I + Q diag(values) Qᵀ, the values as the last row of Q."""
        form = MetricArrays.of(self.metric, self.layout.width)
        basis = np.ascontiguousarray(np.vstack([form.basis, form.values]))
        return form.scale, COSTS_NOTHING * form.largest, basis

    def _by_reading(self, model: MoveArrays, options: Options, targets: Any) -> Any:
        layout, n = self.layout, len(options.known)
        columns = model.columns.copy()
        columns[:, FIRST_OPTION] = options.first
        straight = ~layout.is_category & ~layout.curved
        columns[:-1, SMOOTH] = 0 if model.is_tree else np.where(straight, 1 + layout.is_integer, 0)
        ends = np.array([[column.lower, column.upper] for column in layout.columns], dtype=np.float64)
        regression = self.loss.regression
        target = np.asarray(targets, dtype=np.float64 if regression else np.int64)
        label = np.zeros(n, dtype=np.int64) if regression else target
        told = (model.is_tree, model.trees, model.layers, model.cuts, columns, model.n_components)
        numbers = np.ascontiguousarray(np.column_stack([layout.mean, layout.scale, ends]))
        # Between which cuts values lie, or which category they are; at a cut itself a value goes left.
        cells = np.zeros(options.value.shape, dtype=np.int32)
        for p in range(layout.n_columns) if model.is_tree else ():
            at, cuts = options.column == p, model.cuts[columns[p, FIRST_CUT] : columns[p + 1, FIRST_CUT]]
            value = options.value[:, at]
            cells[:, at] = value if columns[p, COUNT] else np.searchsorted(cuts, value, side="left")
        rows, found = np.empty((n, ROOM, 2, layout.n_columns)), np.empty((n, ROOM, 2))
        count = np.empty(n, dtype=np.int64)
        search_people(
            told,
            numbers,
            self.measure,
            model.loss,
            options.known,
            options.column,
            cells,
            label,
            target.astype(np.float64),
            self.goal,
            self.near,
            self.rounds,
            rows,
            found,
            count,
        )
        return rows, found, count

    def _worth_keeping(
        self, rows: FloatArray, loss: FloatArray, cost: FloatArray, count: IntArray
    ) -> FoundForPeople:
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


# The λ at which the domain is searched: fixed by ε and the loss, so that nobody else's rows have a say in
# them.


# Times the unit of the loss over ε, in the order in which rows are moved on from: around the usual λ* first, and the lowest,
# which lead far away.
_SHARES = (0.3, 0.1, 1.0, 0.5, 0.2, 0.03, 2.0)
# The lowest λ that is looked at, in units of the loss, and how far apart λ are on the way there.
_LOWEST, _APART = 0.03, 10.0 / 3.0


def prices_of(eps: float, unit: float) -> tuple[float, ...]:
    """Return the λ to search at for a budget ε; ∞, moves that cost nothing, always comes along."""
    if eps == 0:
        return (np.inf,)
    if np.isinf(eps):
        return (np.inf, 0.0)
    return (np.inf, *(float(share * unit / eps) for share in _SHARES))


def far_prices(eps: float, unit: float) -> tuple[float, ...]:
    """Return lower λ, down to what any large budget is searched at.

    If few moves are worth anything, or people are few, one person's far row may be worth all of a small budget.
    """
    lowest = min(_SHARES) / eps if eps > 0 else 0.0
    if lowest <= _LOWEST:
        return ()
    count = max(int(math.log(lowest / _LOWEST) / math.log(_APART)), 1)
    return tuple(unit * float(price) for price in np.geomspace(lowest, _LOWEST, count + 1)[1:])


# With fewer calls not even every single move of a small table is tried.
_FEWEST_CALLS = 64
# Where a time is set: rows of the domain that say how long all of them take, and the share of the time that these may take.
_TIMED, _FOR_ALL = 256, 0.3
# Where a time is set: people who are searched first, and the share of the time left that the next ones may take.
_FIRST, _SHARE = 24, 0.1


@dataclass(frozen=True)
class DomainSearch(Search):
    """Search the whole domain around each person, for any model.

    Parameters
    ----------
    calls : int, default=1000
        Rows that a black box is asked about for one person, about so many at most. What was read of a model (trees,
        networks, linear models) says what all moves do, and only the rows that are kept are asked about.
    rounds : int, default=24
        Rows that are moved on from for one person, at most; a person whom no move improves is done, mostly after eight to
        twelve.
    probes : int, default=50000
        Rows of the domain that are asked about once for everybody. If the domain has no more rows than that, everybody is
        compared with all of them, whatever the model; else they show where the answers of a black box change.
    total_calls : int, default=40_000_000
        For everybody together: beyond so many people everyone gets fewer calls, and the result says so.
    cuts : mapping of str to sequence of float, optional
        Where answers change along each number, in original units; by default the splits of a tree model, or what the
        probes find.

    Examples
    --------
    >>> import pandas as pd, likewise as lw
    >>> people = pd.DataFrame({"age": [30, 44, 61], "sex": ["f", "m", "f"]})
    >>> grants = lambda frame: np.where((frame["age"] > 40) & (frame["sex"] == "m"), 0.9, 0.2)
    >>> metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    >>> found = lw.audit(grants, people, [0, 1, 1], metric=metric, eps=1.0, search=DomainSearch())
    >>> found.unfair_map.twins["age"].tolist()
    [41, 44, 61]
    """

    name: ClassVar[str] = "domain"
    in_parts: ClassVar[bool] = True

    calls: int = 1_000
    rounds: int = 24
    probes: int = 50_000
    total_calls: int = 40_000_000
    cuts: Mapping[str, Sequence[float]] | None = None

    def __post_init__(self) -> None:
        for name in ("calls", "rounds", "probes", "total_calls"):
            check_number(getattr(self, name), owner="DomainSearch", name=name, low=1)

    def why_not(self, problem: AuditProblem) -> str | None:
        """Say why the domain cannot be searched; None if it can."""
        place = problem.coordinates
        if place.metric.feature_map is not None:
            return Message("why_not.feature_map")
        try:
            TableLayout.of(place.domain)
        except InputError:
            return Message("why_not.no_columns")
        return place.why_no_made_up_rows()

    def knows_moves(self, problem: AuditProblem) -> bool:
        """Whether the domain is listed, or all moves were read off a network, which makes its gradients superfluous."""
        if self.listed(problem):
            return True
        found = _read(problem)
        return found is not None and not found.is_tree and len(found.layers[2]) > 0

    def prepare(self, problem: AuditProblem) -> DomainSearch:
        """Return these choices with as many calls as there are people for, and in parts with the cuts of the model."""
        learns = self.cuts is None and problem.total is not None and not self.listed(problem)
        cuts = split_points(problem, self.probes) if learns else self.cuts
        return replace(self, cuts=cuts, calls=self.calls_for(problem))

    def calls_for(self, problem: AuditProblem) -> int:
        """How many calls each person of the whole table gets."""
        people = problem.n if problem.total is None else problem.total
        return min(self.calls, max(self.total_calls // max(people, 1), _FEWEST_CALLS))

    def listed(self, problem: AuditProblem) -> int:
        """How many rows the domain has if everybody is compared with all of them; 0 if they are too many."""
        count = math.prod(_sizes(TableLayout.of(problem.coordinates.domain)))
        return int(count) if count <= self.probes else 0

    def assumes(self, problem: AuditProblem) -> tuple[str, ...]:
        """Say who may be a twin."""
        listed = self.listed(problem)
        if listed:
            return (Message("assumption.domain_listed", rows=listed),)
        return (Message("assumption.domain", calls=self.calls),)

    def extend(self, problem: AuditProblem, support: Support, eps: float, budget: Budget) -> Found:
        """Add the rows of everybody's frontier over all rows of the domain, or over all that was tried."""
        listed = self.listed(problem)
        if not listed:
            return self._search(problem, support, eps, budget)
        place = problem.coordinates
        layout = TableLayout.of(place.domain)
        values = np.indices([int(size) for size in _sizes(layout)]).reshape(layout.n_columns, -1).T
        lowest = [0.0 if column.categories else np.ceil(column.lower) for column in layout.columns]
        rows = np.asarray(layout.encode(values + np.array(lowest)), dtype=np.float64)
        begin, some = time.time(), rows[:_TIMED]
        if budget.seconds is not None:
            place.model.outputs(place.encoded_for_model(some))
            if (time.time() - begin) * listed / len(some) > _FOR_ALL * budget.left:
                found = self._search(problem, support, eps, budget)
                return found.then(unfinished(found.support, Message("reason.domain_listed", rows=listed)))
        everyone, compared = CandidateSearch(edits=(), use_rows="pool"), place.given(rows)
        among = everyone.search(problem, compared, budget)
        support = support.with_source(among.candidates, among.frontier, among.changed)
        if problem.decides and not budget.spent:
            # A row whose loss is not the highest may be the nearest that is decided differently.
            other = everyone.search(about_decisions(problem), compared, budget).frontier
            support = support.with_changes(
                other.row, np.where(other.candidate < 0, np.inf, other.squared_distance)
            )
        if budget.spent:
            return unfinished(support, Message("reason.candidates_time"))
        return Found(support)

    def _search(self, problem: AuditProblem, support: Support, eps: float, budget: Budget) -> Found:
        """Add the rows of everybody's frontier over all that was tried."""
        place, timed = problem.coordinates, budget.seconds is not None
        layout = TableLayout.of(place.domain)
        until = time.time() + max(budget.left, 0.0)
        # A model is read, or probed, only if that leaves time to use what is learned.
        hasty = timed and not is_read(problem) and budget.left < 2.0 * seconds_to_read(problem)
        cuts = self.cuts
        if cuts is None:
            half = time.time() + 0.5 * (until - time.time()) if timed else math.inf
            cuts = {} if hasty else split_points(problem, self.probes, until=half)
        read = None if hasty else _read(problem)
        unit = loss_unit(place, layout)
        search = MoveSearch(
            layout,
            place.metric,
            prices_of(float(eps), unit),
            place.model.loss,
            read,
            _asking(problem, layout),
            cuts,
            self.rounds,
            self.calls_for(problem),
            until=until if timed else math.inf,
            far=far_prices(float(eps), unit),
        )
        # The same person twice is searched once.
        whole = np.column_stack([problem.X, np.asarray(problem.target, dtype=np.float64)])
        _, one, same = np.unique(whole, axis=0, return_index=True, return_inverse=True)
        same = same.ravel()
        if timed:
            # In an order of chance, so that whoever is reached stands for the others.
            order = numpy_generator(problem.random_state).permutation(len(one))
            one, same = one[order], np.argsort(order)[same]
        found: list[FoundForPeople] = []
        done, size = 0, _FIRST if timed else search.size
        while done < len(one):
            clock = time.time()
            if clock >= until:
                break
            budget.tell(done / len(one))
            at = one[done : done + size]
            found.append(search.run(problem.X[at], problem.target[at]))
            done += len(at)
            if timed:
                each = max(time.time() - clock, 1e-6) / len(at)
                size = int(np.clip(_SHARE * max(until - time.time(), 0.0) / each, 1, search.size))
            if timed and len(found) == 1 and 0 < eps < np.inf:
                # Others are searched around the λ that the first people lead to, with half the effort.
                near = _narrowed(found[0], float(eps)) or search.prices
                search = replace(search, prices=near, calls=max(search.calls // 2, 1))
        if found:
            support = support.with_rows(*_for_everybody(found, same))
        if done < len(one):
            missed = int((same >= done).sum())
            return unfinished(support, Message("reason.domain_time", missed=missed, people=problem.n))
        return Found(support)


def _sizes(layout: TableLayout) -> list[float]:
    """How many values each column can take."""
    return [
        len(column.categories)
        or (np.floor(column.upper) - np.ceil(column.lower) + 1.0 if column.kind == "integer" else np.inf)
        for column in layout.columns
    ]


def _narrowed(found: FoundForPeople, eps: float) -> tuple[float, ...]:
    """The prices on both sides of the λ at which some people spend ε; none if they never do."""
    own = np.append(True, found.person[1:] != found.person[:-1])
    frontier = Frontier.from_points(
        base_loss=found.loss[own],
        row=found.person[~own],
        squared_distance=found.cost[~own],
        loss=found.loss[~own],
        candidate=np.arange(int((~own).sum())),
    )
    lam = float(solve_dual(frontier, eps).lambda_)
    return (1.5 * lam, 0.7 * lam) if 0 < lam < np.inf else ()


def _read(problem: AuditProblem) -> MoveArrays | None:
    """What was read of the model, if it gave the model's own answers; only compiled loops are faster than asking."""
    if not is_compiled():
        return None
    try:
        return family_in(problem).moves
    except InputError:
        return None


def _asking(problem: AuditProblem, layout: TableLayout) -> Callable[[FloatArray, Any], FloatArray]:
    """The model's own losses of rows of values."""
    place, classes = problem.coordinates, problem.coordinates.model.classes_

    def ask(values: FloatArray, targets: Any) -> FloatArray:
        labels = targets if classes is None else np.asarray(classes)[targets]
        return place.losses_encoded(np.asarray(layout.encode(values), dtype=np.float64), labels)

    return ask


def _for_everybody(found: Sequence[FoundForPeople], same: IntArray) -> tuple[FloatArray, IntArray]:
    """Rows that distinct people were moved to, for everybody who is the same."""
    rows = np.concatenate([part.rows for part in found])
    before = np.cumsum([0, *(int(part.person[-1]) + 1 for part in found)])
    person = np.concatenate([part.person + k for part, k in zip(found, before, strict=False)])
    # Everybody's own row, the first of theirs, is known.
    moved = np.append(False, person[1:] == person[:-1])
    rows, person = rows[moved], person[moved]
    count = np.bincount(person, minlength=int(same.max()) + 1)
    start, length = np.cumsum(count) - count, count[same]
    who = np.repeat(np.arange(len(same)), length)
    place = np.repeat(start[same] - (np.cumsum(length) - length), length) + np.arange(len(who))
    return rows[place], who
