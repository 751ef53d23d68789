"""Best-first branch and bound for sup over x of loss(x, y) − λ d²(x, x₀), person by person, at any time a bracket.

A family of models says how high the loss can be over a region and where to cut it; everything else is here, in
`open_regions` and in `region_evaluation`. People are worked on in batches, each with open regions of their own: what is
found for one does not depend on the others. Whatever ends the work, time or an interrupt, the brackets so far hold.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from likewise.auditing.bounds.family import INTERRUPTED, Brackets, Family, RegionBudget
from likewise.auditing.bounds.region_evaluation import Ask, Contenders, Evaluated, Open, RegionEvaluation
from likewise.auditing.bounds.regions import Pool, divide, joined
from likewise.auditing.dual.finite_dual import Frontier, dual_curve
from likewise.core.checks import FloatArray, IntArray, check_number
from likewise.core.messages import Message

# What a branch and bound has open: a heap of regions per person, and the brackets that follow from it at
# any time.


# Open regions of a person that are cut at once.
_AT_ONCE = 4


class OpenRegions:
    """Open regions of everybody, the most promising first.

    A region in work is noted before it is taken out of its heap and forgotten after its parts are filed, so that an
    interrupt anywhere leaves nothing out of the brackets.
    """

    def __init__(self, work: RegionEvaluation) -> None:
        self.work, self._regions = work, work.domains()
        self.settled = np.full(work.n, -np.inf)  # the highest bound among regions that are done
        self.begun = np.zeros(work.n, dtype=np.bool_)
        self.nodes = np.zeros(work.n, dtype=np.int64)
        # By how far a region exceeds what may stay open, which region, and how high it is.
        self.heaps: list[list[tuple[float, int, int, float]]] = [[] for _ in range(work.n)]
        self.contenders = Contenders()
        self.pool: Pool[Open] = Pool()
        self._in_work: list[tuple[int, float]] = []
        self._counter = 0

    def begin(self, people: IntArray) -> None:
        """Look at the whole domains of people."""
        work = self.work
        endless = np.full(len(people), np.inf)
        self._keep(
            *work.evaluate(
                people,
                work.shrink(people, self._regions.take(people)),
                work.family.state(len(people)),
                work.origin[people],
                endless,
                endless.copy(),
            )
        )
        self.begun[people] = True

    def _keep(self, done: IntArray, done_upper: FloatArray, found: Evaluated) -> None:
        """File evaluated regions: closed ones by their bound, open ones in their person's heap."""
        people, upper = found.answer.people, found.answer.upper
        np.add.at(self.nodes, done, 1)
        np.add.at(self.nodes, people, 1)
        np.maximum.at(self.settled, done, done_upper)
        excess = upper - found.tol
        is_open = (excess > self.work.lower[people]) & (found.open.split.column >= 0)
        asked = found.one_answer & ~is_open
        self.contenders.add(found.answer.take(asked))
        shut = ~is_open & ~asked
        np.maximum.at(self.settled, people[shut], upper[shut])
        at = np.flatnonzero(is_open)
        for i, slot in zip(at, self.pool.add(found.open.take(at)), strict=True):
            self._counter += 1
            heapq.heappush(self.heaps[people[i]], (-float(excess[i]), self._counter, slot, float(upper[i])))

    def advance(self, active: list[int], max_nodes: int, *, last: bool) -> list[int]:
        """Cut the most promising regions of active people; return those with work left."""
        people, slots, uppers, going = [], [], [], []
        for person in active:
            heap, taken, least = self.heaps[person], 0, self.work.lower[person]
            room = _AT_ONCE if self.nodes[person] < max_nodes else 0
            while heap and taken < room and -heap[0][0] > least:
                _, _, slot, bound = heap[0]
                self._in_work.append((person, bound))
                heapq.heappop(heap)
                people.append(person)
                slots.append(slot)
                uppers.append(bound)
                taken += 1
            if taken:
                going.append(person)
            elif last:
                self._finish(person)
        if not people:
            return []
        cut, who, upper = self.pool.take(slots), np.array(people), np.array(uppers)
        both = joined([cut, cut])
        self._keep(
            *self.work.evaluate(
                np.concatenate([who, who]),
                divide(self.work.layout, cut.regions, cut.split),
                both.state,
                both.point.astype(np.float64),
                np.concatenate([upper, upper]),
                both.reach,
            )
        )
        self._in_work.clear()
        return going

    def _finish(self, person: int) -> None:
        """Settle what a person has left, and free it."""
        heap = self.heaps[person]
        if heap:
            self.settled[person] = max(self.settled[person], *(item[3] for item in heap))
            self.pool.free([item[2] for item in heap])
            heap.clear()

    def brackets(self, ask: Ask | None, *, interrupted: bool = False) -> Brackets:
        """What is known now."""
        work = self.work
        for person, bound in self._in_work:
            self.settled[person] = max(self.settled[person], bound)
        for person in range(work.n):
            self._finish(person)
        if not self.begun.all():
            self.settled = np.where(self.begun, self.settled, np.maximum(self.settled, work.ceilings()))
        # Parts of regions were cut off because they could not exceed what a row attains by the reading. The model may not
        # confirm that row, but they still cannot exceed the value.
        self.settled = np.maximum(self.settled, work.lower)
        if interrupted:
            # An incumbent may have been half written: its row says what it attains.
            work.read_incumbents()
        if ask is None:
            slack = work.family.slack
            upper = np.maximum(self.settled, work.lower) + slack
        else:
            slack = 0.0 if work.ends else 2.0 * work.family.slack
            upper, interrupted = self._asked(ask, interrupted)
        rows = work.layout.encode(work.values)
        return Brackets(
            work.lower, upper, rows, work.loss, work.cost, self.nodes, work.tol, slack, interrupted
        )

    def _asked(self, ask: Ask, interrupted: bool) -> tuple[FloatArray, bool]:
        """Ask the model about the rows that attain most, and about regions in which it gives one answer.

        What the reading says of a row counts for nothing from here on: the rows that attained most are asked first, and
        only what the model itself confirms spares a region its own question. A region whose row was shown to the model
        as another one, outside of it, keeps its bound.
        """
        work = self.work
        everyone, values = np.arange(work.n), work.values.copy()
        upper = self.settled
        try:
            losses, seen = ask(values, work.targets)
            work.lower[:] = -np.inf
            work.offer(everyone, seen, losses)
            kept = self.contenders.above(work.lower)
            if kept is not None:
                losses, seen = ask(kept.values, work.targets[kept.people])
                work.offer(kept.people, seen, losses)
                same = kept.regions.hold(work.layout, seen)
                np.maximum.at(upper, kept.people, np.where(same, losses - kept.price, kept.upper))
        except KeyboardInterrupt:
            kept = self.contenders.above(np.full(work.n, -np.inf))
            if kept is not None:
                np.maximum.at(upper, kept.people, kept.upper)
            return np.maximum(upper, work.lower), True
        return np.maximum(upper, work.lower), interrupted


# People worked on at the same time, where no time is set.
_TOGETHER = 48
# Whole domains that are looked at together, at most.
_WHOLE = 512
# Everybody gets so many regions before anybody gets more, so that a run that is stopped has looked at all; without a set
# time only up to so many people, whose open regions are kept in memory.
_FIRST_PASS, _FEW = 32, 2_000
# Where a time is set, a step takes this share of it.
_STEP_SHARE = 0.04


def maximise(
    family: Family,
    metric: Any,
    X: FloatArray,
    targets: Any,
    lambda_: float,
    *,
    starts: FloatArray | None = None,
    budget: RegionBudget | None = None,
    tol: float = 1e-4,
    ask: Ask | None = None,
) -> Brackets:
    """Bracket sup over rows x that can exist of loss(x, y_i) − λ d²(x, x_i), for each person."""
    work = RegionEvaluation(
        family,
        metric,
        np.asarray(X, dtype=np.float64),
        np.asarray(targets),
        float(lambda_),
        tol,
        asks=ask is not None,
    )
    if starts is not None:
        work.offer_starts(starts)
    opened = OpenRegions(work)
    interrupted = False
    try:
        _run(opened, work.n, budget or RegionBudget())
    except KeyboardInterrupt:
        interrupted = True
    return opened.brackets(ask, interrupted=interrupted)


def _run(opened: OpenRegions, n: int, limit: RegionBudget) -> None:
    """Look at everybody's whole domain, then cut, until all is closed or the budget is spent."""
    pace = _Pace(limit)
    first = 0
    while first < n:
        if pace.over():
            return
        people = np.arange(first, min(first + min(8 * pace.together, _WHOLE), n))
        opened.begin(people)
        first += len(people)
        pace.step()
    whole = limit.seconds is None and n > _FEW
    for nodes in (limit.nodes,) if whole else (min(_FIRST_PASS, limit.nodes), limit.nodes):
        waiting = list(range(n - 1, -1, -1))
        active: list[int] = []
        while waiting or active:
            if pace.over():
                return
            while waiting and len(active) < pace.together:
                active.append(waiting.pop())
            active = opened.advance(active, nodes, last=nodes == limit.nodes)
            pace.step()


class _Pace:
    """When to stop, and how many people to work on before time is looked at again."""

    def __init__(self, limit: RegionBudget) -> None:
        self._limit = limit
        self._start = self._last = time.perf_counter()
        self.together = _TOGETHER if limit.seconds is None else 4

    def over(self) -> bool:
        """Whether the budget is spent."""
        if self._limit.tell is not None:
            self._limit.tell()
        return self._limit.seconds is not None and self._last - self._start >= self._limit.seconds

    def step(self) -> None:
        """Book a step, and make the next one shorter or longer by what it took."""
        now = time.perf_counter()
        took, self._last = now - self._last, now
        if self._limit.seconds is None:
            return
        if took > _STEP_SHARE * self._limit.seconds:
            self.together = max(1, self.together // 2)
        elif took < _STEP_SHARE * self._limit.seconds / 3:
            self.together = min(_TOGETHER, 2 * self.together)


# V(ε) between two numbers: every λ gives an upper value, every set of rows a lower one; λ is searched for both.
#
# V(ε) = inf over λ ≥ 0 of λε + mean_i s_i(λ), with s_i(λ) = sup over x of loss(x, y_i) − λ d²(x, x_i). A solver that
# brackets s_i at one λ gives λε + mean(upper) ≥ V(ε), whatever λ is; the rows that attain its lower values join a
# support, whose own dual (solved exactly) lies below V(ε) and says which λ to ask for next.


# Where a time is set: at most so many values of λ are tried before one gets all that is left, each with this share of
# it; and λ is near when it changes by less than this share.
_TRIED, _TRIAL_SHARE, _NEAR = 3, 0.3, 0.1
# Where fewer people than this are closed, what is attained says little of the slope; a larger λ closes more of them.
_MOST, _UP = 0.5, 2.0

# (λ, encoded rows (n, s, d) to begin from, seconds left or None) -> brackets of every person.
Solver: TypeAlias = Callable[[float, "FloatArray | None", "float | None"], Brackets]


@dataclass(frozen=True, eq=False)
class DualBracket:
    """Bracket of V(ε)."""

    eps: float
    lower: float
    upper: float
    base_loss: float
    lambda_: float
    rows: FloatArray
    person: IntArray
    # Why it is wider than was asked; none if it is closed.
    reasons: tuple[str, ...]
    # All λ that were asked for, in their order.
    lambdas: tuple[float, ...]


def bracket_value(
    solve: Solver,
    base_losses: FloatArray,
    eps: float,
    *,
    start: float = 10.0,
    rounds: int = 12,
    rtol: float = 0.01,
    seconds: float | None = None,
    prices: tuple[float, tuple[float, ...]] | None = None,
) -> DualBracket:
    """Bracket V(ε).

    `prices` are the λ whose upper value counts, and all λ in their order, if others chose them: what is found for a
    person then does not depend on the rest.
    """
    budget = check_number(eps, owner="bracket_value", name="eps", low=0.0)
    clock = time.perf_counter()
    known = _Known(np.asarray(base_losses, dtype=np.float64), budget)
    if prices is not None:
        counts, asked = prices
        for at, lam in enumerate(asked):
            left = None if seconds is None else max(0.0, seconds - (time.perf_counter() - clock))
            found = solve(lam, known.starts(), None if left is None else left / (len(asked) - at))
            known.add(lam, found, counts=lam == counts)
        return known.bracket(rtol, False)
    lam = np.inf if budget == 0 else 0.0 if np.isinf(budget) else float(start)
    near, interrupted = not 0 < lam < np.inf, False
    for number in range(rounds):
        left = None if seconds is None else max(0.0, seconds - (time.perf_counter() - clock))
        # The first values of λ are only tried; the one that they lead to gets the time that is left.
        part = left if left is None or near or number >= _TRIED else _TRIAL_SHARE * left
        try:
            found = solve(lam, known.starts(), part)
        except KeyboardInterrupt:
            if known.best is None:
                raise
            interrupted = True
            break
        known.add(lam, found)
        interrupted = found.interrupted
        if interrupted or known.closed(rtol) or not 0 < lam < np.inf or left == 0.0:
            break
        before, lam = lam, known.next_lambda(lam, found)
        near = abs(lam - before) <= _NEAR * before
        if known.settled:
            break
    return known.bracket(rtol, interrupted)


class _Known:
    """What every λ so far says: the lowest upper value, the rows, and between which λ the least value lies."""

    def __init__(self, base: FloatArray, budget: float) -> None:
        self.base, self.budget = base, budget
        # Whose each row is, the row, its loss and its fair distance, round by round.
        self.found: list[tuple[IntArray, FloatArray, FloatArray, FloatArray]] = []
        self.lower = float(base.mean())
        self.best: tuple[float, float, Brackets] | None = None
        self.asked: list[float] = []
        self._low, self._high = 0.0, np.inf

    def add(self, lam: float, found: Brackets, *, counts: bool = True) -> None:
        """Take what was found at one λ, whose upper value may count."""
        self.asked.append(lam)
        moved = np.flatnonzero((found.loss > self.base) & np.isfinite(found.lower))
        self.found.append((moved, found.rows[moved], found.loss[moved], found.cost[moved]))
        price = lam * self.budget if 0 < lam < np.inf else 0.0
        upper = price + float(found.upper.mean())
        if counts and (self.best is None or upper < self.best[0]):
            self.best = upper, lam, found
        person, _, loss, cost = self._joined()
        frontier = Frontier.from_points(
            base_loss=self.base,
            row=person,
            squared_distance=cost,
            loss=loss,
            candidate=np.arange(len(person)),
        )
        self._curve = dual_curve(frontier)
        self.lower = float(self._curve.value(self.budget))
        if np.isinf(lam):
            # Added up in the same order as the upper values: of equal numbers the means are equal to the last bit.
            self.lower = max(self.lower, float(np.maximum(found.lower, self.base).mean()))

    def closed(self, rtol: float) -> bool:
        """Whether the bracket is as narrow as was asked."""
        assert self.best is not None  # the first λ was added
        return bool(self.best[0] - self.lower <= rtol * abs(self.best[0]))

    def next_lambda(self, lam: float, found: Brackets) -> float:
        """The λ to ask for next: the slope of the dual at λ is ε − mean d²."""
        if float(found.closed.mean()) < _MOST and np.isinf(self._high):
            self._low = lam
            return _UP * lam
        if float(found.cost.mean()) > self.budget:
            self._low = max(self._low, lam)
        else:
            self._high = min(self._high, lam)
        return _next(float(self._curve.lambda_(self.budget)), self._low, self._high, lam)

    @property
    def settled(self) -> bool:
        """Whether λ is known to all digits that count."""
        return bool(np.isfinite(self._high) and self._high - self._low <= 1e-6 * self._high)

    def starts(self) -> FloatArray | None:
        """Return the rows of the last three rounds, person by person; nobody's place is left empty."""
        if not self.found:
            return None
        last = self.found[-3:]
        starts = np.full((len(self.base), len(last), last[0][1].shape[1]), np.nan)
        for s, (person, rows, _, _) in enumerate(last):
            starts[person, s] = rows
        return starts

    def _joined(self) -> tuple[Any, ...]:
        return tuple(np.concatenate(part) for part in zip(*self.found, strict=True))

    def bracket(self, rtol: float, interrupted: bool) -> DualBracket:
        """What is known now."""
        assert self.best is not None  # the first λ was added
        upper, lam, last = self.best
        closed = self.closed(rtol) or upper - self.lower <= 1e-9
        person, rows, _, _ = self._joined()
        # Why the bracket is wider than was asked.
        why: tuple[str, ...] = (INTERRUPTED,) if interrupted else ()
        if not interrupted and not closed:
            count = int((~last.closed).sum())
            said = Message("reason.open_brackets", count=count, people=len(last.lower), price=float(lam))
            why = (said,)
        return DualBracket(
            self.budget,
            self.lower,
            max(upper, self.lower),
            float(self.base.mean()),
            lam,
            rows,
            person,
            why,
            tuple(self.asked),
        )


def _next(asked: float, low: float, high: float, now: float) -> float:
    """The λ of the support's own dual where it lies inside what is left, else the middle of that."""
    if low < asked < high and abs(asked - now) > 1e-3 * now:
        return asked
    if np.isinf(high):
        return 4.0 * max(now, low)
    return float(np.sqrt(low * high)) if low > 0 else high / 4.0
