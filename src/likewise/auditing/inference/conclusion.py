"""From the numbers of an audit to its result: what was asked, what was found, and what that rests on."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from likewise.auditing.dual.finite_dual import DualCurve
from likewise.auditing.inference.certificate import ROUNDING, Bound, Certificate, ConfidenceInterval, Estimate
from likewise.auditing.inference.sanity import Finding
from likewise.auditing.inference.significance import TestResult
from likewise.auditing.inference.verdict import brackets_of
from likewise.auditing.results.audit_result import AuditResult, SensitiveAnswer
from likewise.auditing.results.unfair_map import UnfairMap
from likewise.core.checks import check_number
from likewise.core.messages import Message

if TYPE_CHECKING:
    from likewise.auditing.partitions.sums import Ending


@dataclass(frozen=True)
class Questions:
    """What the user wants to know: ε, δ, the test's τ and the confidence, checked."""

    eps: float
    delta: float | None
    tau: float
    confidence: float

    def __post_init__(self) -> None:
        check_number(self.eps, owner="audit", name="eps", low=0.0)
        if self.delta is not None:
            check_number(self.delta, owner="audit", name="delta", low=0.0)
        check_number(self.tau, owner="audit", name="tau", low=0.0)
        check_number(
            self.confidence,
            owner="audit",
            name="confidence",
            low=0.0,
            high=1.0,
            open_low=True,
            open_high=True,
        )


@dataclass(frozen=True, eq=False)
class Evidence:
    """What an answer will rest on.

    Parameters
    ----------
    search : str
        How the worst case is looked for.
    assumptions : tuple of str
        In sentences.
    settings : dict
        Plain values.
    left_out : tuple of str
        Searches that could not serve, and why.
    findings : tuple of Finding
        What has to be known before any number.
    """

    search: str
    assumptions: tuple[str, ...]
    settings: dict[str, Any]
    left_out: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, eq=False)
class Answer:
    """The numbers of an audit: those of its result that the people's losses decide."""

    n: int
    curve: DualCurve
    value: float
    lambda_: float
    transport: float
    pure_gap: float
    flipped: float | None
    changed_at_eps: float | None
    sensitive: SensitiveAnswer | None
    interval: ConfidenceInterval
    test: TestResult
    unfair_map: UnfairMap
    pure_map: UnfairMap
    ending: Ending
    histogram: dict[str, Any]

    def with_bounds(self, bounds: Sequence[Bound]) -> Answer:
        """Return the same with bounds of the gap or of changed decisions that were found elsewhere."""
        base = self.curve.base_loss
        here = [
            replace(bound, value=base + bound.gap)
            if bound.about == "sample" and bound.measure == "loss" and bound.gap is not None
            else bound
            for bound in bounds
        ]
        return replace(self, ending=self.ending.with_bounds(here))


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


def write_up(answer: Answer, evidence: Evidence, questions: Questions, clock: Clock) -> AuditResult:
    """Put the numbers, what they rest on and what was asked into one result."""
    estimate = Estimate(
        value=answer.value,
        gap=answer.value - answer.curve.base_loss,
        eps=float(questions.eps),
        n=answer.n,
        method=evidence.search,
        lambda_=answer.lambda_,
        assumptions=evidence.assumptions,
    )
    eps = float(questions.eps)
    pure = answer.curve.base_loss + answer.pure_gap
    attained = {("loss", 0.0): pure, ("loss", eps): answer.value}
    changed = None
    if answer.flipped is not None and answer.changed_at_eps is not None:
        changed = (answer.flipped, answer.changed_at_eps)
        attained |= {("decisions", 0.0): changed[0], ("decisions", eps): changed[1]}
    ending, contradiction = _without_contradictions(answer.ending, attained)
    if any(finding.blocks for finding in evidence.findings):
        # What is proved of a model and a table that do not belong together is proved of nobody.
        ending = replace(ending, bounds=())
    brackets = brackets_of(
        eps=eps,
        base_loss=answer.curve.base_loss,
        values=(pure, answer.value),
        changed=changed,
        bounds=ending.bounds,
    )
    asked = {"confidence": questions.confidence, "tau": questions.tau, "harm_histogram": answer.histogram}
    clock.lap("report")
    return AuditResult(
        eps=float(questions.eps),
        delta=questions.delta,
        n=answer.n,
        value=answer.value,
        base_loss=answer.curve.base_loss,
        pure_gap=answer.pure_gap,
        flipped=answer.flipped,
        sensitive=answer.sensitive,
        lambda_=answer.lambda_,
        transport=answer.transport,
        curve=answer.curve,
        unfair_map=answer.unfair_map,
        pure_map=answer.pure_map,
        certificate=Certificate(estimate, _above(ending.bound(eps=eps), estimate)),
        brackets=brackets,
        population_bound=ending.bound(eps=eps, about="population"),
        interval=answer.interval,
        test=answer.test,
        status=answer.ending.status,
        reasons=(*answer.ending.reasons, *contradiction),
        left_out=evidence.left_out,
        findings=evidence.findings,
        search=evidence.search,
        assumptions=evidence.assumptions,
        settings=evidence.settings | asked,
        timing=clock.timing,
    )
