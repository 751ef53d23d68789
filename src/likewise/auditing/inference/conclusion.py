"""From the sums of an audit to its result: what was asked, what was found, and what that rests on."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from likewise.auditing.dual.finite_dual import DualCurve
from likewise.auditing.inference.certificate import ROUNDING, Bound, Certificate, Estimate
from likewise.auditing.inference.intervals import gap_interval, share_interval
from likewise.auditing.inference.sanity import check_before_verdict
from likewise.auditing.inference.significance import gap_test_of_moments
from likewise.auditing.inference.verdict import brackets_of
from likewise.auditing.preparation import Prepared, Questions
from likewise.auditing.problem import AuditProblem
from likewise.auditing.results.audit_result import AuditResult, Scope, SensitiveAnswer
from likewise.auditing.results.effects import SensitiveSums
from likewise.auditing.results.unfair_map import UnfairMap
from likewise.auditing.rounds import Ending, FoundSums, SettledSums
from likewise.core.messages import Message
from likewise.core.plain import plain_cell


@dataclass
class Clock:
    """CPU seconds by part."""

    timing: dict[str, float] = field(default_factory=dict)
    _last: float = field(default_factory=time.process_time)

    def lap(self, name: str) -> None:
        """Book the CPU time since the last lap under `name`."""
        now = time.process_time()
        self.timing[name] = self.timing.get(name, 0.0) + now - self._last
        self._last = now

    def book(self, name: str, seconds: float) -> None:
        """Book CPU time that was measured where it was spent, instead of this process's since the last lap."""
        self.timing[name] = self.timing.get(name, 0.0) + seconds
        self._last = time.process_time()


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
    questions: Questions,
    clock: Clock,
) -> AuditResult:
    """Put the sums, what they rest on and what was asked into one result; `maps` are those of the budgets 0 and ε."""
    eps, confidence, problem = float(questions.eps), questions.confidence, prepared.problem
    n, base, sensitive = found.losses.n, curve.base_loss, found.sensitive
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
    findings = check_before_verdict(problem, sensitive)
    if any(finding.blocks for finding in findings):
        # What is proved of a model and a table that do not belong together is proved of nobody.
        ending = replace(ending, bounds=())
    asked = {"confidence": confidence, "tau": questions.tau}
    favourable = guess_favourable(problem.coordinates.model.known_classes if problem.decides else None)
    result = AuditResult(
        eps=eps,
        delta=questions.delta,
        n=n,
        value=value,
        base_loss=base,
        pure_gap=found.free.mean,
        flipped=None if changed is None else changed[0],
        sensitive=_sensitive(sensitive, problem, ceiling, confidence),
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
            threshold=questions.tau,
            ceiling=ceiling,
            confidence=confidence,
            about="given candidates",
        ),
        status=ending.status,
        reasons=(*ending.reasons, *contradiction),
        left_out=prepared.left_out,
        findings=findings,
        search=prepared.search,
        assumptions=prepared.assumptions,
        settings=prepared.settings | asked,
        timing=clock.timing,
        scope=Scope(n, n, counted="position"),
        favourable=favourable,
        guessed=favourable is not None,
        limit=questions.limit,
    )
    clock.lap("report")
    return result


def _sensitive(
    sums: SensitiveSums | None, problem: AuditProblem, ceiling: float, confidence: float
) -> SensitiveAnswer | None:
    if sums is None:
        return None
    n, free = sums.harm.n, float("inf")
    gap = gap_interval({free: sums.harm}, lambda_=free, eps=0.0, ceiling=ceiling, confidence=confidence)
    counted = problem.counts_changes
    share = share_interval(sums.changed, n, confidence=confidence) if counted else None
    high = None if share is None else share.high if sums.exact else 1.0
    # In an order that does not depend on which part was first to hold a value or a decision.
    groups = sorted(
        sums.groups,
        key=lambda g: (sums.attributes.index(g.column), str(g.value), str(g.decision), str(g.label)),
    )
    shift = sums.shift
    return SensitiveAnswer(
        columns=sums.columns,
        attributes=sums.attributes,
        gap=sums.harm.mean,
        gap_interval=(gap.low, gap.high),
        changed=sums.changed / n if counted else None,
        changed_interval=None if share is None or high is None else (share.low, high),
        groups=tuple(map(_rounded, groups)),
        exchanges=tuple(map(_rounded, sums.exchanges)),
        outcomes=tuple(map(_rounded, sums.outcomes)),
        people=sums.people,
        shift=None if shift is None else (shift.mean, shift.largest),
        exact=sums.exact,
        tolerance=problem.tolerance,
    )


def _rounded(one: Any) -> Any:
    """Return a count whose exact sum of predicted numbers is a float."""
    return one if one.total is None else replace(one, total=float(one.total.fraction))


# Pairs of labels of which one is plainly the favourable one, in lower case.
_FAVOURABLE = (
    ("0", "1"),
    ("-1", "1"),
    ("false", "true"),
    ("no", "yes"),
    ("n", "y"),
    ("bad", "good"),
    ("reject", "accept"),
    ("rejected", "accepted"),
    ("denied", "approved"),
    ("refused", "granted"),
    ("fail", "pass"),
)
_BELOW, _ABOVE = re.compile(r"<=?\s*([\d.,]+\s*\w*)\.?"), re.compile(r">=?\s*([\d.,]+\s*\w*)\.?")


def guess_favourable(classes: Any) -> Any:
    """Return the class that is plainly the favourable one of two by its name, such as "yes" or ">50K"; else None."""
    if classes is None or len(classes) != 2:
        return None
    cells = [plain_cell(value) for value in classes]
    words = [
        str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell).strip().lower()
        for cell in cells
    ]
    for pair in _FAVOURABLE:
        if set(words) == set(pair):
            return cells[words.index(pair[1])]
    for low, high in ((0, 1), (1, 0)):
        below, above = _BELOW.fullmatch(words[low]), _ABOVE.fullmatch(words[high])
        if below and above and below[1] == above[1]:
            return cells[high]
    return None
