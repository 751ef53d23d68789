"""The auditor's problem of the paper, from the request to the result.

*Prepare* brings the people and the searches together; *search* lists rows that treat people worse, and their frontiers;
*settle* says what λ* of everybody means for each; *conclude* puts the numbers into a result. The people are everybody in
memory (`audit_people`) or a part of a table (`partitions.runner`).
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from likewise.auditing.bounds.enumeration import EnumerationSearch, free_alone
from likewise.auditing.dual.finite_dual import (
    ALL_BITS,
    BinnedSteps,
    DualCurve,
    Frontier,
    solve_dual,
    steps_of,
)
from likewise.auditing.dual.supporting_rows import Support
from likewise.auditing.editable_rows import plan_candidates
from likewise.auditing.first_answer import AuditRequest, Clock, first_answer, settings_of
from likewise.auditing.inference.certificate import ROUNDING, Bound, Certificate, Estimate
from likewise.auditing.inference.intervals import gap_interval, gap_test, prices_around
from likewise.auditing.inference.verdict import brackets_of
from likewise.auditing.problem import AuditProblem
from likewise.auditing.results.audit_result import AuditResult, WorstCase
from likewise.auditing.results.effects import SensitiveSums
from likewise.auditing.results.sensitive import BATCH, Enumeration, enumerate_sensitive, sensitive_values
from likewise.auditing.results.unfair_map import UnfairMap
from likewise.auditing.search.candidates import CandidateSearch
from likewise.auditing.search.contract import (
    Budget,
    Ending,
    Found,
    Search,
    bound_kind,
    choose_searches,
    search_words,
    searches_words,
    unfinished,
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
    found, support = FoundSums.of(searched), searched.found.support
    gains = {price: Moments.of(support.frontier.gains(price)) for price in prices_around(found.curve, eps)}
    clock.lap("settle")
    maps = [support.unfair_map(solve_dual(support.frontier, at).corner) for at in dict.fromkeys((0.0, eps))]
    return conclude(prepared, found, gains, (maps[0], maps[-1]), asked, clock)


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
    if made.unnamed:
        # Free columns that nobody named are left to other searches if they have too many combinations.
        try:
            plan_candidates(made.editable(), made.edits, fixed=made.coordinates.fixed_names())
        except InputError:
            said = (*made.assumptions, Message("assumption.free_too_many", columns=list(made.unnamed)))
            made = replace(made, edits=made.sensitive_edits, unnamed=(), assumptions=said)
    made = made.with_known(labelled=asked.labelled, **known)
    return made.with_known(values=sensitive_values(made)) if made.edits else made


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
    place, loss = problem.coordinates, problem.coordinates.model.loss.name
    said, metric = f"setting_value.{loss}", getattr(asked.metric, "metric_", asked.metric)
    settings = settings_of(asked, problem) | {"metric": repr(metric), "tau": asked.tau}
    if place.encoding is not None and place.metric.feature_map is None:
        settings["reach"] = reach(place.metric, asked.tolerated, place.encoding.columns)
    if problem.pool is not None:
        settings["pool_rows"] = len(problem.pool)
    return Prepared(
        problem=problem,
        searches=ready,
        eps=asked.tolerated,
        budget=asked.budget,
        exchanges=exchanges,
        search=searches_words([search.name for search in ready] or ["enumeration"]),
        assumptions=(
            *problem.assumptions,
            Message("assumption.loss", loss=Message(said) if Texts().has(said) else loss.replace("_", " ")),
            *dict.fromkeys([*exchanged, *(line for search in ready for line in search.assumes(problem))]),
            Message("assumption.settled" if settled else "assumption.estimate"),
        ),
        settings=settings,
        left_out=left_out,
    )


# ---- how far the searches are: on standard error with the time left, or for a function that looks on -------------

# (name of a search, share of it that is done or None if that is not known yet) -> nothing; raising KeyboardInterrupt
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


# Per person, to make the unfair maps and the result.
_SECONDS_AFTER = 1e-5


@dataclass(frozen=True, eq=False)
class Searched:
    """What the searches of some people left, CPU seconds, and twins by sensitive columns only.

    `again` are the searches with the prices that they chose.
    """

    found: Found
    cpu: dict[str, float]
    twins: Enumeration | None
    again: tuple[Search, ...] = ()


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
    found = Found(Support.start(problem))
    cpu: dict[str, float] = {}
    again = list(prepared.searches)
    begin = time.process_time()
    twins = enumerate_sensitive(problem, losses=True)
    if twins is not None and prepared.exchanges:
        # The candidates give a number only a few values, and should not know of less than these twins do.
        found = Found(_with_counterparts(found.support, twins))
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
                found = found.then(unfinished(found.support, reason))
                continue
            # Half of the time is left to the searches that come after, which is where bounds are proved.
            share = budget.part(0.5) if number < last else budget
            try:
                more = search.extend(problem, found.support, prepared.eps, watched(search.name, share))
            except KeyboardInterrupt:
                if not cpu or not breakable:
                    raise
                reason = Message("reason.broken_off", name=search_words(search.name))
                found = found.then(unfinished(found.support, reason))
                break
            again[number] = more.again or search
            found = found.then(more)
            cpu[search.name] = cpu.get(search.name, 0.0) + time.process_time() - start
    return Searched(found, cpu | {"sensitive twins": spent}, twins, tuple(again))


@dataclass(frozen=True, eq=False, kw_only=True)
class FoundSums(Ending):
    """What was found of some people, added up: the same numbers however they are cut into parts.

    Losses, what moves at no cost add, whose decision changes, and the steps of their frontiers: of losses and of decisions.
    """

    losses: Moments
    free: Moments
    changed: int
    sensitive: SensitiveSums | None
    steps: BinnedSteps
    changes: BinnedSteps
    cpu: dict[str, float]

    @classmethod
    def of(cls, searched: Searched, *, bits: int = ALL_BITS) -> FoundSums:
        """Add up what was found for each person."""
        found = searched.found
        support, frontier = found.support, found.support.frontier
        return cls(
            status=found.status,
            reasons=found.reasons,
            bounds=found.bounds,
            losses=Moments.of(frontier.base_loss),
            free=Moments.of(frontier.gains(math.inf)),
            changed=int(support.changed.sum()),
            sensitive=None if searched.twins is None else SensitiveSums.of(searched.twins),
            steps=BinnedSteps.of(steps_of(frontier), bits=bits),
            changes=BinnedSteps.of(steps_of(support.change_frontier()), bits=bits),
            cpu=searched.cpu,
        )

    def merge(self, other: FoundSums) -> FoundSums:
        """Return the sums of both."""
        one, two = self.sensitive, other.sensitive
        # Bounds at one price λ add up, and those at ε = 0: there what one may lose does not depend on the others.
        theirs, bounds = {bound_kind(bound): bound for bound in other.bounds}, []
        for a in self.bounds:
            b = theirs.get(bound_kind(a))
            if b is not None and a.confidence == 1 and (a.eps == 0 or a.lambda_ == b.lambda_):
                n = a.n + b.n
                gap = None if a.gap is None or b.gap is None else (a.n * a.gap + b.n * b.gap) / n
                bounds.append(replace(a, n=n, value=(a.n * a.value + b.n * b.value) / n, gap=gap))
        return FoundSums(
            **self.ended(other),
            bounds=tuple(bounds),
            losses=self.losses.merge(other.losses),
            free=self.free.merge(other.free),
            changed=self.changed + other.changed,
            sensitive=None if one is None or two is None else one.merge(two),
            steps=self.steps.merge(other.steps),
            changes=self.changes.merge(other.changes),
            cpu={
                name: self.cpu.get(name, 0.0) + other.cpu.get(name, 0.0) for name in {**self.cpu, **other.cpu}
            },
        )

    @cached_property
    def curve(self) -> DualCurve:
        """ε ↦ V(ε)."""
        return self.steps.curve(n=self.losses.n, base=self.losses.mean, free=self.free.mean)


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
    bounds: tuple[Bound, ...], attained: Mapping[tuple[str, float], float]
) -> tuple[tuple[Bound, ...], tuple[str, ...]]:
    """Withdraw every bound of an audit one of whose bounds lies below what the model was seen to attain.

    That cannot be: the reading of the model, or this package, is wrong somewhere, and nothing it proved is believed.
    """
    for bound in bounds:
        low = attained.get((bound.measure, bound.eps))
        certain = bound.about == "sample" and bound.confidence == 1
        if certain and low is not None and low > bound.value + ROUNDING * (1.0 + abs(bound.value)):
            said = Message("reason.contradiction", low=low, high=bound.value, eps=bound.eps)
            warnings.warn(str(said), RuntimeWarning, stacklevel=2)
            return (), (said,)
    return bounds, ()


def conclude(
    prepared: Prepared,
    found: FoundSums,
    gains: Mapping[float, Moments],
    maps: tuple[UnfairMap, UnfairMap],
    asked: AuditRequest,
    clock: Clock,
) -> AuditResult:
    """Put the sums, what they rest on and what was asked into one result; `maps` are those of the budgets 0 and ε."""
    eps, confidence, problem = asked.tolerated, asked.confidence, prepared.problem
    n, curve = found.losses.n, found.curve
    base = curve.base_loss
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
    bounds, contradiction = _without_contradictions(found.bounds, attained)
    # What is proved of a model and a table that do not belong together is proved of nobody.
    found = replace(found, bounds=bounds if first.answered else ())
    bound = found.bound(eps=eps)
    if bound is not None and value > bound.value:
        # One that holds with a probability may fall short of what was found.
        gap = None if bound.gap is None else max(bound.gap, value - base)
        bound = replace(bound, value=value, gap=gap)
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
        certificate=Certificate(estimate, bound),
        brackets=brackets_of(
            eps=eps, base_loss=base, values=(pure, value), changed=changed, bounds=found.bounds
        ),
        population_bound=found.bound(eps=eps, about="population"),
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
        status=found.status,
        reasons=(*found.reasons, *contradiction),
        left_out=prepared.left_out,
        search=prepared.search,
    )
    clock.lap("report")
    return replace(first, worst_case=worst)
