"""The two rounds of an audit over some people, everybody or a part of a table, and what they found.

*Search* lists rows that treat people worse, and their frontiers; *settle* says what λ* of everybody means for each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from likewise.auditing.bounds.enumeration import free_values
from likewise.auditing.dual.finite_dual import ALL_BITS, BinnedSteps
from likewise.auditing.dual.frontier import Floats, Frontier, steps_of
from likewise.auditing.dual.moments import Moments
from likewise.auditing.dual.supporting_rows import Support
from likewise.auditing.inference.certificate import Bound
from likewise.auditing.inference.intervals import frontier_gains
from likewise.auditing.people import tabular
from likewise.auditing.preparation import Prepared
from likewise.auditing.problem import AuditProblem
from likewise.auditing.results.effects import SensitiveSums
from likewise.auditing.results.sensitive import BATCH, Enumeration, enumerate_sensitive
from likewise.auditing.search.choosing import search_words
from likewise.auditing.search.contract import Budget, Found, Search, Status
from likewise.core.checks import IntArray
from likewise.core.messages import Message
from likewise.core.progress import progress_bar

_WORSE = ("converged", "not_converged", "failed")
_MOST_REASONS = 5
# Per person, to make the unfair maps and the result.
_SECONDS_AFTER = 1e-5


@dataclass(frozen=True, eq=False)
class Worst:
    """The most harmed people, the worst first; of equals the one who comes first in the table."""

    harm: Floats
    person: IntArray
    corner: IntArray

    @classmethod
    def of(cls, harm: Floats, person: IntArray, corner: Any, *, top: int) -> Worst:
        """Keep the `top` worst."""
        order = np.lexsort((person, -harm))[:top]
        return cls(harm[order], person[order], np.asarray(corner)[order])


@dataclass(frozen=True)
class Ending:
    """How the searches of one part, or of several, ended."""

    status: Status = "converged"
    reasons: tuple[str, ...] = ()
    bounds: tuple[Bound, ...] = ()

    def then(self, found: Found) -> Ending:
        """Return how this and a further search of the same people ended."""
        given = (found.bound, found.population_bound, *found.more)
        known = self.with_bounds([bound for bound in given if bound is not None])
        return Ending(*self.ended(found.status, found.reasons), known.bounds)

    def with_bounds(self, bounds: Iterable[Bound]) -> Ending:
        """Return the same with further bounds of all these people; of a kind the tightest stays."""
        tightest = {bound_kind(bound): bound for bound in self.bounds}
        for bound in bounds:
            known = tightest.get(bound_kind(bound))
            tightest[bound_kind(bound)] = bound if known is None or bound.value < known.value else known
        return replace(self, bounds=tuple(tightest.values()))

    def bound(self, *, eps: float, measure: str = "loss", about: str = "sample") -> Bound | None:
        """Return the bound of a kind, None where there is none."""
        return next((bound for bound in self.bounds if bound_kind(bound) == (measure, eps, about)), None)

    def ended(self, status: Status, reasons: tuple[str, ...]) -> tuple[Status, tuple[str, ...]]:
        """Return the worse of two ways to end, and the reasons of both."""
        worse: Status = max(self.status, status, key=_WORSE.index)
        return worse, tuple(dict.fromkeys((*self.reasons, *reasons)))[:_MOST_REASONS]


def bound_kind(bound: Bound) -> tuple[str, float, str]:
    return bound.measure, bound.eps, bound.about


@dataclass(frozen=True, eq=False)
class FoundSums:
    """What the searches found in one part, or in several."""

    losses: Moments
    free: Moments
    changed: int
    sensitive: SensitiveSums | None
    steps: BinnedSteps
    changes: BinnedSteps
    worst: Worst
    ending: Ending = field(default_factory=Ending)
    cpu: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class SettledSums:
    """What λ* means for one part, or for several."""

    gains: dict[float, Moments]
    worst: Worst
    cpu: float


# ---- how far the searches are: on standard error with the time left, or for a function that looks on -------------

# (name of a search, share of it that is done or None where that is not known yet) -> nothing; raising KeyboardInterrupt
# ends the search as Ctrl-C does.
OnProgress: TypeAlias = Callable[[str, float | None], None]
# (name of a search, budget) -> the same budget, which now shows what it is told.
Watched: TypeAlias = Callable[[str, Budget], Budget]


@contextmanager
def search_bar(*, show: bool | OnProgress) -> Iterator[Watched]:
    """Give a function that has a search's progress shown; it changes nothing when `show` is False."""
    if callable(show):
        yield lambda name, budget: _heard(show, name, budget)
        return
    if not show:
        yield lambda name, budget: budget
        return
    with progress_bar() as bar:

        def watched(name: str, budget: Budget) -> Budget:
            bar.start(name)  # until a search reports its share, its bar only moves
            return replace(budget, watch=lambda share: bar.update(share, total=1.0))

        yield watched


def _heard(on_progress: OnProgress, name: str, budget: Budget) -> Budget:
    on_progress(name, None)
    return replace(budget, watch=lambda share: on_progress(name, share))


# ---- search ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Searched:
    """What the searches of some people left: rows, how they ended, CPU seconds, and twins by sensitive columns only.

    `again` are the searches with the prices that they chose.
    """

    support: Support
    ending: Ending
    cpu: dict[str, float]
    twins: Enumeration | None
    again: tuple[Search, ...] = ()

    def sums(self, *, top: int = 0, bits: int = ALL_BITS) -> FoundSums:
        """Add up what was found for each person; keep the `top` most harmed."""
        frontier = self.support.frontier
        steps = steps_of(frontier)
        free = np.isinf(steps.slope)
        gain: Floats = np.bincount(steps.row[free], steps.gain[free], frontier.n_rows).astype(np.float64)
        moved = np.bincount(steps.row[free], minlength=frontier.n_rows)
        person = self.support.problem.first + np.arange(frontier.n_rows)
        return FoundSums(
            losses=Moments.of(frontier.base_loss),
            free=Moments.of(gain),
            changed=int(self.support.changed.sum()),
            sensitive=None if self.twins is None else SensitiveSums.of(self.twins),
            steps=BinnedSteps.of(steps, bits=bits),
            changes=BinnedSteps.of(steps_of(self.support.change_frontier()), bits=bits),
            worst=Worst.of(gain, person, moved, top=top),
            ending=self.ending,
            cpu=self.cpu,
        )


def search_people(
    prepared: Prepared,
    problem: AuditProblem,
    *,
    progress: bool | OnProgress = False,
    breakable: bool = False,
) -> Searched:
    """Run the searches on some people, one after the other.

    If `breakable`, Ctrl-C ends the search with what was found and proved so far, if there is anything yet.
    """
    support, ending = Support.start(problem), Ending()
    cpu: dict[str, float] = {}
    again = list(prepared.searches)
    begin = time.process_time()
    twins = enumerate_sensitive(problem, losses=True)
    if twins is not None and prepared.exchanges:
        # The candidates give a number only a few values, and should not know of less than these twins do.
        support = _with_counterparts(support, twins)
    if not prepared.searches:
        ending = ending.with_bounds(_enumeration_bounds(problem, twins, support))
    spent = time.process_time() - begin
    budget, last = prepared.budget, len(prepared.searches) - 1
    if budget.seconds is not None:
        # After the search decisions about the worst cases are asked for, and people are put together.
        after = 0.1 * min(budget.seconds, 1.0) + 2.0 * problem.seconds_to_ask + _SECONDS_AFTER * problem.n
        budget = replace(budget, seconds=max(budget.seconds - after, 1e-9))
    with search_bar(show=progress) as watched:
        for number, search in enumerate(prepared.searches):
            start = time.process_time()
            if budget.spent:
                reason = Message("reason.no_time", name=search_words(search.name))
                ending = ending.then(Found(support, "not_converged", (reason,)))
                continue
            # Half of the time is left to the searches that come after, which is where bounds are proved.
            halved = number < last and budget.seconds is not None
            share = Budget(max(0.5 * budget.left, 1e-3)) if halved else budget
            try:
                found = search.extend(problem, support, prepared.eps, watched(search.name, share))
            except KeyboardInterrupt:
                if not cpu or not breakable:
                    raise
                reason = Message("reason.broken_off", name=search_words(search.name))
                ending = ending.then(Found(support, "not_converged", (reason,)))
                break
            support = found.support
            again[number] = found.again or search
            ending = ending.then(found)
            cpu[search.name] = cpu.get(search.name, 0.0) + time.process_time() - start
    return Searched(support, ending, cpu | {"sensitive twins": spent}, twins, tuple(again))


# ---- settle ----------------------------------------------------------------------------------------------


def steps_taken(frontier: Frontier, lam: float) -> IntArray:
    """How many steps of their frontier people take at a price λ."""
    return np.asarray(steps_of(frontier).taken(lam, frontier.n_rows))


def corners(frontier: Frontier, taken: IntArray) -> IntArray:
    """Return the corner of each row after so many steps; its last one if rounding took a step away."""
    return np.asarray(np.minimum(frontier.indptr[:-1] + taken, frontier.indptr[1:] - 1))


def settle(
    frontier: Frontier, lam: float, prices: Sequence[float], *, first: int = 0, top: int = 0
) -> SettledSums:
    """Say what λ* means for some people: their gains at a few prices, and the most harmed."""
    start = time.process_time()
    taken = steps_taken(frontier, lam)
    harm = frontier.loss[frontier.indptr[:-1] + taken] - frontier.base_loss
    return SettledSums(
        gains={price: Moments.of(frontier_gains(frontier, price)) for price in prices},
        worst=Worst.of(harm, first + np.arange(frontier.n_rows), taken, top=top),
        cpu=time.process_time() - start,
    )


# ---- counterparts that differ in the sensitive columns alone, as rows of a worst case -------------------------


def _with_counterparts(support: Support, found: Enumeration) -> Support:
    """Return a support with the counterparts that were asked about, each at its fair distance."""
    problem, count = support.problem, len(found.combinations)
    assert found.worst is not None
    assert found.worst_at is not None
    # The metric and the domain have missing cells stay missing.
    whole = ~np.any([one.lacking & (one.own < 0) for one in found.attributes], axis=0)
    flips = found.flips if problem.decides else np.zeros((problem.n, count), dtype=bool)
    kept = flips.copy()
    worse = np.flatnonzero(found.worst > problem.base_loss)
    kept[worse, found.worst_at[worse]] = True
    person, which = np.nonzero(kept & whole[:, None])
    if not len(person):
        return support
    number, distance = person * count + which, np.zeros(len(person))
    loss = np.empty(len(person))
    for start in range(0, 0 if _free_alone(problem, found) else len(person), BATCH):
        at = slice(start, start + BATCH)
        table = found.take(number[at])
        distance[at] = problem.squared_distance(problem.coordinates.encoded(table), person[at])
    top = which == found.worst_at[person]
    loss[top] = found.worst[person[top]]
    # Another counterpart than the worst is kept for its decision alone.
    loss[~top] = problem.base_loss[person[~top]]
    frontier = Frontier.from_points(
        base_loss=problem.base_loss, row=person, squared_distance=distance, loss=loss, candidate=number
    )
    free = np.zeros(problem.n, dtype=bool)
    free[person[flips[person, which] & (distance == 0)]] = True
    return support.with_source(found, frontier, free)


def _enumeration_bounds(
    problem: AuditProblem, found: Enumeration | None, support: Support
) -> tuple[Bound, ...]:
    """Return what nothing at no distance exceeds if the sensitive columns alone are free and all their values were tried."""
    if found is None or not found.exact or not _free_alone(problem, found):
        return ()
    value, base = float(support.frontier.worst_at_no_distance().mean()), float(problem.base_loss.mean())
    method = Message("method.enumeration", columns=list(found.columns))
    shared: dict[str, Any] = {"eps": 0.0, "n": problem.n, "method": method}
    bound = Bound(value=value, gap=value - base, lambda_=float("inf"), **shared)
    if not problem.decides:
        return (bound,)
    share = float(support.changed.mean())
    return bound, Bound(value=share, gap=share, measure="decisions", **shared)


def _free_alone(problem: AuditProblem, found: Enumeration) -> bool:
    """Whether the metric makes the sensitive columns free, all their values, and nothing else."""
    place = problem.coordinates
    known = tabular(place.domain)
    if known is None or place.metric.feature_map is not None:
        return False
    free = free_values(tuple(known.columns_), place.metric)
    names = {known.columns_[i].name for i in free}
    whole = all(
        values is None or not known.columns_[i].categories or len(values) == len(known.columns_[i].categories)
        for i, values in free.items()
    )
    return whole and names == set(found.columns)
