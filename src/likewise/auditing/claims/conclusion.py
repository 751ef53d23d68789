"""From frontiers to a result: solve the dual, state what is proven, test it, and put it into one object."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np

from likewise._version import __version__
from likewise.auditing.audit_result import AuditResult, Status
from likewise.auditing.claims.certificate import Bound, Certificate, CltInterval, Estimate, clt_interval
from likewise.auditing.claims.significance import TestResult, gap_test
from likewise.auditing.people.unfair_map import UnfairMap
from likewise.auditing.problem.coordinates import Views
from likewise.auditing.search.candidates.candidate_search import CandidateSearch
from likewise.auditing.support.finite_dual import DualCurve, DualSolution, dual_curve, solve_dual
from likewise.auditing.support.frontier import Frontier
from likewise.core.checks import check_number

__all__ = [
    "Answer",
    "Clock",
    "Evidence",
    "Questions",
    "assumptions_of",
    "conclude",
    "settings_of",
    "write_up",
]


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
    """What a search found, and under which assumptions."""

    search: str
    assumptions: tuple[str, ...]
    settings: dict[str, Any]
    status: Status = "converged"
    reasons: tuple[str, ...] = ()
    bound: Bound | None = None
    population_bound: Bound | None = None


@dataclass(frozen=True, eq=False)
class Answer:
    """The numbers of an audit: those of its result that the people's losses decide."""

    n: int
    curve: DualCurve
    value: float
    lambda_: float
    transport: float
    pure_gap: float
    flipped: float
    interval: CltInterval
    test: TestResult
    unfair_map: UnfairMap
    pure_map: UnfairMap


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


def conclude(
    frontier: Frontier,
    evidence: Evidence,
    questions: Questions,
    make_map: Callable[[DualSolution], UnfairMap],
    clock: Clock,
) -> AuditResult:
    """Solve the dual on the frontier of everybody and answer the questions.

    Parameters
    ----------
    frontier : Frontier
    evidence : Evidence
    questions : Questions
    make_map : callable
        Makes the unfair map of a solution.
    clock : Clock
        Its timing goes into the result.

    Returns
    -------
    AuditResult
    """
    eps, confidence = float(questions.eps), questions.confidence
    curve = dual_curve(frontier)
    solution = solve_dual(frontier, eps, curve=curve)
    free = solve_dual(frontier, 0.0, curve=curve)
    losses = frontier.base_loss
    interval = clt_interval(
        frontier.conjugate(solution.lambda_),
        lam=solution.lambda_,
        eps=eps,
        losses=losses,
        confidence=confidence,
    )
    test = gap_test(losses, frontier.loss[free.corner], threshold=questions.tau, confidence=confidence)
    unfair_map = make_map(solution)
    pure_map = unfair_map if eps == 0 else make_map(free)
    answer = Answer(
        n=frontier.n_rows,
        curve=curve,
        value=solution.value,
        lambda_=solution.lambda_,
        transport=solution.transport,
        pure_gap=free.gap,
        flipped=float(np.mean(pure_map.flipped)),
        interval=interval,
        test=test,
        unfair_map=unfair_map,
        pure_map=pure_map,
    )
    return write_up(answer, evidence, questions, clock)


def write_up(answer: Answer, evidence: Evidence, questions: Questions, clock: Clock) -> AuditResult:
    """Put the numbers, what they rest on and what was asked into one result."""
    estimate = Estimate(
        value=answer.value,
        gap=answer.value - answer.curve.base_loss,
        eps=float(questions.eps),
        n=answer.n,
        method=evidence.search,
        lam=answer.lambda_,
        assumptions=evidence.assumptions,
    )
    clock.lap("report")
    return AuditResult(
        eps=float(questions.eps),
        delta=questions.delta,
        n=answer.n,
        value=answer.value,
        base_loss=answer.curve.base_loss,
        pure_gap=answer.pure_gap,
        flipped=answer.flipped,
        lambda_=answer.lambda_,
        transport=answer.transport,
        curve=answer.curve,
        unfair_map=answer.unfair_map,
        pure_map=answer.pure_map,
        certificate=Certificate(estimate, evidence.bound),
        population_bound=evidence.population_bound,
        interval=answer.interval,
        test=answer.test,
        status=evidence.status,
        reasons=evidence.reasons,
        search=evidence.search,
        assumptions=evidence.assumptions,
        settings=evidence.settings | {"confidence": questions.confidence, "tau": questions.tau},
        timing=clock.timing,
    )


def assumptions_of(views: Views, chosen: CandidateSearch) -> tuple[str, ...]:
    """Say in sentences what a candidate search rests on."""
    said = [f"The loss is {views.model.loss.name.replace('_', ' ')}; labels are kept."]
    if chosen.sensitive:
        named = ", ".join(str(name) for name in chosen.sensitive)
        said.append(f"Twins exchange {named}, and columns that give these away may go along.")
    if chosen.use_rows == "pool":
        said.append("A twin may also be any person of a sample of the table, at its fair distance.")
    elif chosen.use_rows:
        said.append("A twin may also be any other person of the table, at its fair distance.")
    said.append("The estimate is attained by listed people; a worse case may exist that was not found.")
    return tuple(said)


def settings_of(views: Views, chosen: CandidateSearch) -> dict[str, Any]:
    """Plain values that say how an audit was made."""
    libraries = ("numpy", "scikit-learn", "torch", "pandas")
    return {
        "version": __version__,
        "versions": {"python": platform.python_version()} | {name: version(name) for name in libraries},
        "metric": repr(views.metric),
        "loss": views.model.loss.name,
        "model": type(views.model).__name__,
        "sensitive": [str(name) for name in chosen.sensitive],
    }
