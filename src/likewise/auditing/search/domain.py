"""The worst valid rows for any model at all: moves of one and of two columns, from each person, over the whole domain.

Nothing is asked of the model but its loss; a tree model also says where it splits. Every row that is tried serves every
λ. What is found for a person depends on that person, the model, the metric and the domain alone, never on who else is
audited.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from likewise.auditing.bounds.families import family_in, seconds_to_read
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.dual.finite_dual import solve_dual
from likewise.auditing.dual.frontier import Floats, Frontier
from likewise.auditing.search.contract import Budget, Found, Search
from likewise.auditing.search.domain_moves import (
    Options,
    Proposals,
    Scale,
    furthest,
    loss_unit,
    options_of,
    prices_of,
    split_points,
)
from likewise.core.checks import IntArray, check_number
from likewise.core.errors import InputError
from likewise.core.messages import Message
from likewise.core.randomness import numpy_generator

if TYPE_CHECKING:
    from likewise.auditing.dual.supporting_rows import Support
    from likewise.auditing.problem import AuditProblem

# The rows that were asked about for some people, as options, with loss and fair distance.


# Losses are told apart to so many decimals: a model may round a row by where it stands among the others.
_DECIMALS = 10


@dataclass(eq=False)
class VisitedRows:
    """For each of n people, rows of options with what they attain; places without a row have a loss of −∞."""

    ask: Callable[[Floats, IntArray], Floats]
    options: Options
    rows: IntArray = field(init=False)
    loss: Floats = field(init=False)
    cost: Floats = field(init=False)
    count: IntArray = field(init=False)
    calls: int = 0

    def __post_init__(self) -> None:
        n, width = len(self.options.value), self.options.layout.n_columns
        # Rows are known by a hash of their options; the numbers are fixed, so that nothing depends on a seed.
        draw = np.random.default_rng(0).integers(2**62, size=width + 1, dtype=np.int64)
        self._mix = (2 * draw + 1).astype(np.uint64)
        self._keys, self._places = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
        self.count = np.zeros(n, dtype=np.int64)
        self.rows = np.zeros((n, 0, width), dtype=np.int64)
        self.loss, self.cost = np.zeros((n, 0)), np.zeros((n, 0))
        self.offer(np.tile(self.options.own, (n, 1, 1)))

    @property
    def n(self) -> int:
        """Number of people."""
        return len(self.rows)

    def offer(self, rows: IntArray, wanted: Any = True) -> IntArray:
        """Ask about rows that were not asked about before, and keep them; return the places of all, (n, W)."""
        n, width = rows.shape[:2]
        wanted = np.broadcast_to(np.asarray(wanted, dtype=bool), (n, width)).ravel()
        person, flat = np.repeat(np.arange(n), width), rows.reshape(n * width, -1)
        at = np.flatnonzero(wanted)
        key = self._key(person[at], flat[at])
        known = np.searchsorted(self._keys, key)
        old = self._keys[np.minimum(known, len(self._keys) - 1)] == key if len(self._keys) else known < 0
        fresh, first, which = np.unique(key[~old], return_index=True, return_inverse=True)
        # The new rows, each once, in the order of people.
        new = at[~old][np.sort(first)]
        order = np.argsort(np.argsort(first))
        place = np.full(n * width, -1, dtype=np.int64)
        place[at[old]] = self._places[known[old]]
        places = self._append(n, person[new], flat[new])
        place[at[~old]] = places[order[which]]
        merged = np.concatenate([self._keys, fresh])
        sort = np.argsort(merged, kind="stable")
        self._keys = merged[sort]
        self._places = np.concatenate([self._places, places[order]])[sort]
        return place.reshape(n, width)

    def _key(self, person: IntArray, rows: IntArray) -> Any:
        key = (rows.astype(np.uint64) * self._mix[:-1]).sum(axis=1, dtype=np.uint64)
        return key ^ ((person.astype(np.uint64) + np.uint64(1)) * self._mix[-1])

    def _append(self, n: int, person: IntArray, rows: IntArray) -> IntArray:
        """Ask about rows of people in rising order; put each behind the person's others; return the places."""
        count = np.bincount(person, minlength=n)
        rank = np.arange(len(person)) - np.repeat(np.cumsum(count) - count, count)
        place = self.count[person] + rank
        self.count = self.count + count
        grow = int(self.count.max()) - self.loss.shape[1]
        if grow > 0:
            self.rows = np.concatenate(
                [self.rows, np.zeros((n, grow, rows.shape[1]), dtype=np.int64)], axis=1
            )
            self.loss = np.concatenate([self.loss, np.full((n, grow), -np.inf)], axis=1)
            self.cost = np.concatenate([self.cost, np.zeros((n, grow))], axis=1)
        if len(person):
            self.rows[person, place] = rows
            self.loss[person, place] = self.losses(self.options.values(person, rows), person)
            self.cost[person, place] = self.options.cost(*self.options.sums(person, rows))
        return place

    def losses(self, values: Floats, person: IntArray) -> Floats:
        """Ask the model about rows of values, and count that."""
        self.calls += len(values)
        found = np.round(np.asarray(self.ask(values, person), dtype=np.float64), _DECIMALS)
        return np.asarray(found, dtype=np.float64)

    def score(self, lam: float) -> Floats:
        """Return loss − λ d² of every row, (n, C); for λ = ∞ the loss of rows at no distance."""
        if np.isinf(lam):
            return np.where(self.cost == 0, self.loss, -np.inf)
        return self.loss - lam * self.cost


# The search for some people: every single move, change points of a black box, then rounds from the best
# rows.


def single_moves(visited: VisitedRows, scale: Scale, *, furthest: float, most: int) -> Floats:
    """Ask about every option alone; return what each adds, (n, M), −∞ where it was not asked about."""
    options = visited.options
    cost = options.cost(options.length, options.place)
    with np.errstate(invalid="ignore"):
        wanted = np.isfinite(options.value) & (cost <= furthest)
    wanted[:, options.own] = True
    if wanted.shape[1] > most:
        order = np.argsort(np.where(wanted, cost, np.inf), axis=1, kind="stable")
        np.put_along_axis(wanted, order[:, most:], False, axis=1)
        wanted[:, options.own] = True
    number = np.arange(len(options.column))
    made = np.tile(options.own, (visited.n, len(number), 1))
    made[:, number, options.column] = number
    place = visited.offer(made, wanted)
    loss = np.where(place >= 0, np.take_along_axis(visited.loss, np.maximum(place, 0), axis=1), -np.inf)
    return np.asarray(scale.effect(loss) - scale.effect(visited.loss[:, :1]))


def move_on(visited: VisitedRows, propose: Proposals, lambdas: Sequence[float], effort: Effort) -> None:
    """Add rows to those visited, in place: in rounds, the best rows of each person and λ are moved on from."""
    n, prices = visited.n, np.asarray(lambdas, dtype=np.float64)
    left = np.zeros((n, 0, len(prices)), dtype=bool)
    for _ in range(effort.rounds):
        more = visited.loss.shape[1] - left.shape[1]
        left = np.concatenate([left, np.ones((n, more, len(prices)), dtype=bool)], axis=1)
        base = np.stack(
            [_next(visited.score(lam), left[:, :, k], effort.beam) for k, lam in enumerate(prices)], axis=1
        )
        base[visited.count >= effort.calls] = -1
        who, which = np.nonzero(base >= 0)
        if not len(who):
            break
        at = base[who, which]
        left[who, at, which] = False
        rows, promise = propose(who, visited.rows[who, at], visited.loss[who, at], prices[which])
        width = rows.shape[1]
        offered = np.zeros((n, len(prices), width, rows.shape[2]), dtype=np.int64)
        wanted = np.zeros((n, len(prices), width), dtype=bool)
        offered[who, which], wanted[who, which] = rows, np.isfinite(promise)
        visited.offer(offered.reshape(n, -1, rows.shape[2]), wanted.reshape(n, -1))


def _next(score: Floats, left: IntArray, beam: int) -> IntArray:
    """The best row of each person that was not moved on from yet, if it is among the best; else −1."""
    beam = min(beam, score.shape[1])
    best = np.argpartition(-score, beam - 1, axis=1)[:, :beam]
    value = np.take_along_axis(score, best, axis=1)
    usable = np.take_along_axis(left, best, axis=1) & np.isfinite(value)
    value = np.where(usable, value, -np.inf)
    chosen = value.argmax(axis=1)
    who = np.arange(len(score))
    return np.where(usable[who, chosen], best[who, chosen], -1).astype(np.int64)


# The search of the domain around a few people at once.


# Of the most promising moves of one column so many are tried two by two.
_PAIRED = 12
# Options of all people at once, times columns: bounds the memory.
_CELLS = 2_000_000
# A number without cuts has about so many options.
_STEPS = 64


@dataclass(frozen=True)
class Effort:
    """How hard to search."""

    beam: int = 2
    rounds: int = 8
    width: int = 32
    calls: int = 1_000


@dataclass(frozen=True, eq=False)
class FoundForPeople:
    """Rows that are worth keeping, person by person, the person's own first."""

    rows: Floats
    person: IntArray
    loss: Floats
    cost: Floats
    calls: int

    def best(self, lam: float) -> IntArray:
        """Return the place of the row with the largest loss − λ d² of each person, (n,); λ = ∞ for rows at no distance."""
        price = np.where(self.cost > 0, np.inf, 0.0) if np.isinf(lam) else lam * self.cost
        score = self.loss - price
        order = np.lexsort((-score, self.person))
        first = np.searchsorted(self.person[order], np.arange(int(self.person[-1]) + 1))
        return np.asarray(order[first], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class PeopleAtOnce:
    """Everything about a search but the people."""

    losses: Callable[[Floats, Any], Floats]
    layout: TableLayout
    metric: Any
    lambdas: Sequence[float]
    furthest: float = np.inf
    cuts: Mapping[str, Sequence[float]] | None = None
    scale: Scale = field(default_factory=lambda: Scale(margins=False))
    effort: Effort = field(default_factory=Effort)

    @property
    def size(self) -> int:
        """How many people are searched at once."""
        known = self.cuts or {}
        count = sum(
            len(c.categories) + len(known.get(c.name, range(_STEPS))) + 1 for c in self.layout.columns
        )
        return int(np.clip(_CELLS // (count * self.layout.n_columns), 16, 256))

    def run(self, X: Floats, labels: Any) -> FoundForPeople:
        """Search around people."""
        layout, effort = self.layout, self.effort

        def ask(values: Floats, person: IntArray) -> Floats:
            return self.losses(values, labels[person])

        own = np.asarray(layout.values(X), dtype=np.float64)
        visited = VisitedRows(ask, options_of(layout, self.metric, own, self.cuts))
        effect = single_moves(visited, self.scale, furthest=self.furthest, most=max(effort.calls // 2, 1))
        propose = Proposals(visited.options, self.scale, effect, singles=_PAIRED, width=effort.width)
        move_on(visited, propose, self.lambdas, effort)
        return self._worth_keeping(visited)

    def _worth_keeping(self, visited: VisitedRows) -> FoundForPeople:
        """The corners of everybody's frontier, and of the rows at no distance the one with the smallest loss.

        That one may be decided differently from a person whose own decision is the wrong one.
        """
        person, place = np.nonzero(np.isfinite(visited.loss))
        frontier = Frontier.from_points(
            base_loss=visited.loss[:, 0],
            row=person,
            squared_distance=visited.cost[person, place],
            loss=visited.loss[person, place],
            candidate=place,
        )
        free = np.where((visited.cost == 0) & np.isfinite(visited.loss), visited.loss, np.inf)
        best = free.argmin(axis=1)
        better = np.flatnonzero(best > 0)
        who = np.concatenate([frontier.row, better])
        at = np.concatenate([np.maximum(frontier.candidate, 0), best[better]])
        order = np.argsort(who, kind="stable")
        who, at = who[order], at[order]
        values = visited.options.values(who, visited.rows[who, at])
        rows = np.asarray(self.layout.encode(values), dtype=np.float64)
        return FoundForPeople(rows, who, visited.loss[who, at], visited.cost[who, at], visited.calls)


# With fewer calls not even every single move of a small table is tried.
_FEWEST_CALLS = 64
# Where a time is set: people who are searched first, and the share of the time left that the next ones may take.
_FIRST, _SHARE = 24, 0.1


@dataclass(frozen=True)
class DomainSearch(Search):
    """Search the whole domain around each person, for any model.

    Parameters
    ----------
    calls : int, default=1000
        Rows that the model is asked about for one person, about so many at most.
    beam : int, default=2
        Of the best rows of a person and λ so many are moved on from.
    rounds : int, default=8
        At most so many; a person whom no move improves is done.
    width : int, default=32
        Rows that are tried from each row that is moved on from: the most promising of all moves of one column and of
        the best two by two.
    probes : int, default=50000
        Rows of the domain that a black box is asked about, once for everybody, to find where its answers change.
    total_calls : int, default=40_000_000
        For everybody together: beyond so many people everyone gets fewer calls, and the result says so.
    share : float, default=1.0
        Of the time that is left it takes no more than this.
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
    beam: int = 2
    rounds: int = 8
    width: int = 32
    probes: int = 50_000
    total_calls: int = 40_000_000
    share: float = 1.0
    cuts: Mapping[str, Sequence[float]] | None = None

    def __post_init__(self) -> None:
        for name in ("calls", "beam", "rounds", "width", "probes", "total_calls"):
            check_number(getattr(self, name), owner="DomainSearch", name=name, low=1)
        check_number(self.share, owner="DomainSearch", name="share", low=0.0, high=1.0, open_low=True)

    def why_not(self, problem: AuditProblem) -> str | None:
        """Say why the domain cannot be searched, where it cannot."""
        place = problem.coordinates
        if place.metric.feature_map is not None:
            return Message("why_not.feature_map")
        try:
            TableLayout.of(place.domain)
        except InputError:
            return Message("why_not.no_columns")
        return place.why_no_made_up_rows()

    def prepare(self, problem: AuditProblem) -> DomainSearch:
        """Return these choices with as many calls as there are people for, and in parts with the cuts of the model."""
        learns = self.cuts is None and problem.total is not None
        cuts = split_points(problem, self.probes) if learns else self.cuts
        return replace(self, cuts=cuts, calls=self.calls_for(problem))

    def calls_for(self, problem: AuditProblem) -> int:
        """How many calls each person of the whole table gets."""
        people = problem.n if problem.total is None else problem.total
        return min(self.calls, max(self.total_calls // max(people, 1), _FEWEST_CALLS))

    def assumes(self, problem: AuditProblem) -> tuple[str, ...]:
        """Say who may be a twin."""
        return (Message("assumption.domain", calls=self.calls),)

    def extend(self, problem: AuditProblem, support: Support, eps: float, budget: Budget) -> Found:
        """Add the rows of everybody's frontier over all that was tried."""
        place, timed = problem.coordinates, budget.seconds is not None
        layout = TableLayout.of(place.domain)
        until = time.time() + self.share * max(budget.left, 0.0)
        # A model is read, or probed, only if that leaves time to use what is learned.
        hasty = timed and budget.left < 2.0 * seconds_to_read(problem)
        cuts = self.cuts
        if cuts is None:
            cuts = {} if hasty else split_points(problem, self.probes)
        search = PeopleAtOnce(
            _losses(problem, layout, read=not hasty),
            layout,
            place.metric,
            prices_of(float(eps), loss_unit(place, layout)),
            furthest(float(eps)),
            cuts,
            Scale.of(place.model.loss),
            Effort(self.beam, self.rounds, self.width, self.calls_for(problem)),
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
                near = _narrowed(found[0], float(eps)) or search.lambdas
                effort = Effort(1, self.rounds, self.width, max(search.effort.calls // 2, 1))
                search = replace(search, lambdas=near, effort=effort)
        if found:
            support = support.with_rows(*_for_everybody(found, same))
        if done < len(one):
            missed = int((same >= done).sum())
            reason = Message("reason.domain_time", missed=missed, people=problem.n)
            return Found(support, "not_converged", (reason,))
        return Found(support)


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


def _losses(problem: AuditProblem, layout: TableLayout, *, read: bool) -> Callable[[Floats, Any], Floats]:
    """Losses of rows of values: by what was read off the model, which answers faster, or else by the model itself.

    The model is asked about every row that is kept (`Support.with_rows`), so what is found rests on its own answers.
    """
    place, classes = problem.coordinates, problem.coordinates.model.classes_

    def ask(values: Floats, targets: Any) -> Floats:
        labels = targets if classes is None else np.asarray(classes)[targets]
        return place.losses_encoded(np.asarray(layout.encode(values), dtype=np.float64), labels)

    try:
        known: Any = family_in(problem).losses if read else ask
    except InputError:
        return ask
    return known  # type: ignore[no-any-return]


def _for_everybody(found: Sequence[FoundForPeople], same: IntArray) -> tuple[Floats, IntArray]:
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
