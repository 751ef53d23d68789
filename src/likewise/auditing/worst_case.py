"""The auditor's problem of the paper, from the request to the result.

*Prepare* brings the people and the searches together; *search* lists rows that treat people worse, and their frontiers;
*settle* says what λ* of everybody means for each; *conclude* puts the numbers into a result. The people are everybody in
memory (`audit_people`) or a part of a table (`partitions.runner`).
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from likewise.auditing.bounds.enumeration import EnumerationSearch, free_alone
from likewise.auditing.dual.finite_dual import (
    ALL_BITS,
    BinnedSteps,
    DualCurve,
    Frontier,
    dual_curve,
    solve_dual,
    steps_of,
)
from likewise.auditing.dual.supporting_rows import Support
from likewise.auditing.first_answer import AuditRequest, Clock, first_answer, settings_of
from likewise.auditing.inference.certificate import ROUNDING, Bound, Certificate, Estimate
from likewise.auditing.inference.intervals import gap_interval, gap_test, prices_around
from likewise.auditing.inference.verdict import brackets_of
from likewise.auditing.problem import AuditProblem
from likewise.auditing.results.audit_result import AuditResult, WorstCase
from likewise.auditing.results.effects import SensitiveSums
from likewise.auditing.results.sensitive import BATCH, Enumeration, enumerate_sensitive, sensitive_values
from likewise.auditing.results.unfair_map import UnfairMap
from likewise.auditing.search.candidate_rows import plan_candidates
from likewise.auditing.search.candidates import CandidateSearch
from likewise.auditing.search.contract import (
    Budget,
    Found,
    Search,
    Status,
    choose_searches,
    search_words,
    searches_words,
)
from likewise.core.errors import InputError
from likewise.core.exact_sum import Moments
from likewise.core.frames import is_frame
from likewise.core.messages import Message, Texts
from likewise.core.progress import progress_bar
from likewise.counterfactuals.edits import edited_columns
from likewise.fair_metrics.neighbours import reach


def audit_people(asked: AuditRequest, X: Any, y: Any, progress: bool | OnProgress) -> AuditResult:
    """Audit people in memory."""
    clock, eps = Clock(), asked.tolerated
    prepared = prepare_people(asked, X, y)
    clock.lap("prepare")
    searched = search_people(prepared, prepared.problem, progress=progress, breakable=True)
    for name, seconds in searched.cpu.items():
        clock.book(name, seconds)
    support, found = searched.support, searched.sums()
    curve = dual_curve(support.frontier)
    gains = {price: Moments.of(support.frontier.gains(price)) for price in prices_around(curve, eps)}
    clock.lap("settle")
    maps = [support.unfair_map(solve_dual(support.frontier, at).corner) for at in dict.fromkeys((0.0, eps))]
    return conclude(prepared, found, gains, curve, (maps[0], maps[-1]), asked, clock)


# ---- prepare ---------------------------------------------------------------------------------------------


def problem_of(asked: AuditRequest, X: Any, y: Any, **known: Any) -> AuditProblem:
    """Build the problem of some people, with the values that counterparts get of the columns that are edited."""
    made = AuditProblem.build(
        asked.model,
        X,
        y,
        metric=asked.metric,
        domain=asked.domain,
        loss=asked.loss,
        edits=asked.edits,
        encoded=asked.encoded,
        random_state=asked.random_state,
        tolerance=asked.tolerance,
    )
    made = _that_fits(made).with_known(labelled=asked.labelled, **known)
    return made.with_known(values=sensitive_values(made)) if made.edits else made


def _that_fits(problem: AuditProblem) -> AuditProblem:
    """Leave free columns that nobody named to other searches if they have too many combinations."""
    if not problem.unnamed:
        return problem
    try:
        fixed = problem.coordinates.fixed_names()
        plan_candidates(problem.editable(), problem.edits, fixed=fixed)
    except InputError:
        said = Message("assumption.free_too_many", columns=list(problem.unnamed))
        return replace(
            problem, edits=problem.sensitive_edits, unnamed=(), assumptions=(*problem.assumptions, said)
        )
    return problem


@dataclass(frozen=True, eq=False)
class Prepared:
    """An audit that can run, and what its result will rest on."""

    problem: AuditProblem
    searches: tuple[Search, ...]
    eps: float
    budget: Budget
    exchanges: bool
    search: str
    assumptions: tuple[str, ...]
    settings: dict[str, Any]
    left_out: tuple[str, ...]


def prepare_people(asked: AuditRequest, X: Any, y: Any) -> Prepared:
    """Prepare the audit of people in memory."""
    problem = problem_of(asked, X, y, absent=asked.absent)
    searches, left_out = choose_searches(
        asked.searches,
        problem,
        required=asked.required,
        in_parts=False,
        eps=asked.tolerated,
        budget=asked.budget,
    )
    pool = asked.pool(searches, problem.n)
    if len(pool):
        rows = problem.rows
        problem = replace(
            problem, pool=rows.iloc[pool].reset_index(drop=True) if is_frame(rows) else rows[pool]
        )
    return prepare(asked, problem, searches, left_out)


def prepare(
    asked: AuditRequest, problem: AuditProblem, searches: Sequence[Search], left_out: tuple[str, ...]
) -> Prepared:
    """Let the searches learn from people what they need, and say what the audit rests on."""
    ready = tuple(search.prepare(problem) for search in searches)
    settled = any(search.settles(asked.tolerated) for search in ready)
    exchanges = not (ready and asked.required) or any(
        isinstance(one, EnumerationSearch) or (isinstance(one, CandidateSearch) and one.edits is None)
        for one in searches
    )
    names = ", ".join(map(str, edited_columns(problem.edits))) if exchanges else ""
    exchanged = [Message("assumption.exchange", columns=names)] if names else []
    return Prepared(
        problem=problem,
        searches=ready,
        eps=asked.tolerated,
        budget=asked.budget,
        exchanges=exchanges,
        search=searches_words([search.name for search in ready] or ["enumeration"]),
        assumptions=(
            *problem.assumptions,
            Message("assumption.loss", loss=_loss_words(problem.coordinates.model.loss.name)),
            *dict.fromkeys([*exchanged, *(line for search in ready for line in search.assumes(problem))]),
            Message("assumption.settled" if settled else "assumption.estimate"),
        ),
        settings=_settings(asked, problem),
        left_out=left_out,
    )


def _loss_words(name: str) -> str:
    key = f"setting_value.{name}"
    return Message(key) if Texts().has(key) else name.replace("_", " ")


def _settings(asked: AuditRequest, problem: AuditProblem) -> dict[str, Any]:
    """The same of an audit with a metric."""
    place = problem.coordinates
    metric = repr(getattr(asked.metric, "metric_", asked.metric))
    found = settings_of(asked, problem) | {"metric": metric, "tau": asked.tau}
    if place.encoding is not None and place.metric.feature_map is None:
        found["reach"] = reach(place.metric, asked.tolerated, place.encoding.columns)
    return found | ({} if problem.pool is None else {"pool_rows": len(problem.pool)})


# ---- what is found, of some people or of several parts -----------------------------------------------------

_WORSE = ("converged", "not_converged", "failed")
_MOST_REASONS = 5
# Per person, to make the unfair maps and the result.
_SECONDS_AFTER = 1e-5


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
    """What the searches found, added up: the losses, what moves at no cost add, and whose decision changes."""

    losses: Moments
    free: Moments
    changed: int
    sensitive: SensitiveSums | None
    changes: BinnedSteps
    ending: Ending


# ---- how far the searches are: on standard error with the time left, or for a function that looks on -------------

# (name of a search, share of it that is done or None where that is not known yet) -> nothing; raising KeyboardInterrupt
# ends the search as Ctrl-C does.
OnProgress: TypeAlias = Callable[[str, float | None], None]
# (name of a search, budget) -> the same budget, which now shows what it is told.
Watched: TypeAlias = Callable[[str, Budget], Budget]


@contextmanager
def search_bar(*, show: bool | OnProgress) -> Iterator[Watched]:
    """Give a function that has a search's progress shown; it changes nothing when `show` is False."""
    with progress_bar(show=show is True) as bar:

        def watched(name: str, budget: Budget) -> Budget:
            if not callable(show):
                bar.start(name)  # until a search reports its share, its bar only moves
                return replace(budget, watch=lambda share: bar.update(share, total=1.0)) if show else budget
            show(name, None)
            return replace(budget, watch=lambda share: show(name, share))

        yield watched


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

    def sums(self, *, bits: int = ALL_BITS) -> FoundSums:
        """Add up what was found for each person."""
        frontier = self.support.frontier
        return FoundSums(
            losses=Moments.of(frontier.base_loss),
            free=Moments.of(frontier.gains(math.inf)),
            changed=int(self.support.changed.sum()),
            sensitive=None if self.twins is None else SensitiveSums.of(self.twins),
            changes=BinnedSteps.of(steps_of(self.support.change_frontier()), bits=bits),
            ending=self.ending,
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
    number, distance = person * count + which, np.zeros(len(person))
    loss = np.empty(len(person))
    for start in range(0, 0 if free_alone(problem) else len(person), BATCH):
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


# ---- conclude --------------------------------------------------------------------------------------------


def _without_contradictions(
    ending: Ending, attained: Mapping[tuple[str, float], float]
) -> tuple[Ending, tuple[str, ...]]:
    """Withdraw every bound of an audit one of whose bounds lies below what the model was seen to attain.

    That cannot be: the reading of the model, or this package, is wrong somewhere, and nothing it proved is believed.
    """
    for bound in ending.bounds:
        low = attained.get((bound.measure, bound.eps))
        certain = bound.about == "sample" and bound.confidence == 1
        if certain and low is not None and low > bound.value + ROUNDING * (1.0 + abs(bound.value)):
            said = Message("reason.contradiction", low=low, high=bound.value, eps=bound.eps)
            warnings.warn(str(said), RuntimeWarning, stacklevel=2)
            return replace(ending, bounds=()), (said,)
    return ending, ()


def _above(bound: Bound | None, estimate: Estimate) -> Bound | None:
    """Return the bound, raised to what was found: one that holds with a probability may fall short of it."""
    if bound is None or estimate.value <= bound.value:
        return bound
    gap = None if bound.gap is None or estimate.gap is None else max(bound.gap, estimate.gap)
    return replace(bound, value=estimate.value, gap=gap)


def conclude(
    prepared: Prepared,
    found: FoundSums,
    gains: Mapping[float, Moments],
    curve: DualCurve,
    maps: tuple[UnfairMap, UnfairMap],
    asked: AuditRequest,
    clock: Clock,
) -> AuditResult:
    """Put the sums, what they rest on and what was asked into one result; `maps` are those of the budgets 0 and ε."""
    eps, confidence, problem = asked.tolerated, asked.confidence, prepared.problem
    n, base = found.losses.n, curve.base_loss
    rests: dict[str, Any] = {"assumptions": prepared.assumptions, "settings": prepared.settings}
    first = first_answer(problem, found.sensitive, asked, n=n, clock=clock, **rests)
    value, lam = float(curve.value(eps)), float(curve.lambda_(eps))
    # Nothing that was seen bounds the losses of people who were not: only the loss itself may.
    ceiling = problem.coordinates.model.loss.upper_bound
    estimate = Estimate(
        value=value,
        gap=value - base,
        eps=eps,
        n=n,
        method=prepared.search,
        lambda_=lam,
        assumptions=prepared.assumptions,
    )
    pure = base + found.free.mean
    attained = {("loss", 0.0): pure, ("loss", eps): value}
    changed = None
    if problem.decides:
        changes = found.changes.curve(n=n, base=0.0, free=found.changed / n)
        changed = (found.changed / n, min(1.0, float(changes.value(eps))))
        attained |= {("decisions", 0.0): changed[0], ("decisions", eps): changed[1]}
    ending, contradiction = _without_contradictions(found.ending, attained)
    if not first.answered:
        # What is proved of a model and a table that do not belong together is proved of nobody.
        ending = replace(ending, bounds=())
    worst = WorstCase(
        eps=eps,
        delta=asked.delta,
        value=value,
        base_loss=base,
        pure_gap=found.free.mean,
        flipped=None if changed is None else changed[0],
        lambda_=lam,
        transport=min(eps, float(curve.eps[-1])),
        curve=curve,
        unfair_map=maps[1],
        pure_map=maps[0],
        certificate=Certificate(estimate, _above(ending.bound(eps=eps), estimate)),
        brackets=brackets_of(
            eps=eps, base_loss=base, values=(pure, value), changed=changed, bounds=ending.bounds
        ),
        population_bound=ending.bound(eps=eps, about="population"),
        interval=gap_interval(
            gains,
            lambda_=lam if eps > 0 else float("inf"),
            eps=eps,
            ceiling=ceiling,
            confidence=confidence,
        ),
        test=gap_test(
            found.losses,
            found.free,
            threshold=asked.tau,
            ceiling=ceiling,
            confidence=confidence,
            about="given candidates",
        ),
        status=ending.status,
        reasons=(*ending.reasons, *contradiction),
        left_out=prepared.left_out,
        search=prepared.search,
    )
    clock.lap("report")
    return replace(first, worst_case=worst)
