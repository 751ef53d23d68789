"""From the sums of an audit to its result: what was asked, what was found, and what that rests on."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from likewise.auditing.dual.finite_dual import DualCurve
from likewise.auditing.first_answer import Clock, first_answer
from likewise.auditing.inference.certificate import ROUNDING, Bound, Certificate, Estimate
from likewise.auditing.inference.intervals import gap_interval
from likewise.auditing.inference.significance import gap_test_of_moments
from likewise.auditing.inference.verdict import brackets_of
from likewise.auditing.preparation import Prepared
from likewise.auditing.request import AuditRequest
from likewise.auditing.results.audit_result import AuditResult, WorstCase
from likewise.auditing.results.unfair_map import UnfairMap
from likewise.auditing.rounds import Ending, FoundSums, SettledSums
from likewise.core.messages import Message


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
    settled: SettledSums,
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
            settled.gains,
            lambda_=lam if eps > 0 else float("inf"),
            eps=eps,
            ceiling=ceiling,
            confidence=confidence,
        ),
        test=gap_test_of_moments(
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
