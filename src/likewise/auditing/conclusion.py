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
from likewise.auditing.certificate import Bound, Certificate, Estimate, clt_interval
from likewise.auditing.dual import DualSolution, dual_curve, solve_dual
from likewise.auditing.frontier import Frontier
from likewise.auditing.result import AuditResult, Status
from likewise.auditing.search.candidates import CandidateSearch
from likewise.auditing.significance import gap_test
from likewise.auditing.unfair_map import UnfairMap
from likewise.auditing.views import Views
from likewise.core.checks import check_number

__all__ = ["Clock", "Evidence", "Questions", "assumptions_of", "conclude", "settings_of"]


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

    frontier: Frontier
    search: str
    assumptions: tuple[str, ...]
    settings: dict[str, Any]
    status: Status = "converged"
    reasons: tuple[str, ...] = ()
    bound: Bound | None = None
    population_bound: Bound | None = None
    # Share of people whose free twin gets another decision; None where the map shows everybody.
    flipped: float | None = None


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


def conclude(
    evidence: Evidence, questions: Questions, make_map: Callable[[DualSolution], UnfairMap], clock: Clock
) -> AuditResult:
    """Solve the dual on the evidence and answer the questions.

    Parameters
    ----------
    evidence : Evidence
    questions : Questions
    make_map : callable
        Makes the unfair map of a solution, of everybody or of the most harmed.
    clock : Clock
        Its timing goes into the result.

    Returns
    -------
    AuditResult
    """
    frontier, eps, confidence = evidence.frontier, float(questions.eps), questions.confidence
    curve = dual_curve(frontier)
    solution = solve_dual(frontier, eps, curve=curve)
    free = solve_dual(frontier, 0.0, curve=curve)
    estimate = Estimate(
        value=solution.value,
        gap=solution.gap,
        eps=eps,
        n=frontier.n_rows,
        method=evidence.search,
        lam=solution.lambda_,
        assumptions=evidence.assumptions,
    )
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
    flipped = float(np.mean(pure_map.flipped)) if evidence.flipped is None else evidence.flipped
    clock.lap("report")
    return AuditResult(
        eps=eps,
        delta=questions.delta,
        n=frontier.n_rows,
        value=solution.value,
        base_loss=solution.base_loss,
        pure_gap=free.gap,
        flipped=flipped,
        lambda_=solution.lambda_,
        transport=solution.transport,
        curve=curve,
        unfair_map=unfair_map,
        pure_map=pure_map,
        certificate=Certificate(estimate, evidence.bound),
        population_bound=evidence.population_bound,
        interval=interval,
        test=test,
        status=evidence.status,
        reasons=evidence.reasons,
        search=evidence.search,
        assumptions=evidence.assumptions,
        settings=evidence.settings | {"confidence": confidence, "tau": questions.tau},
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
