"""From what the user passed to an audit that can run: the problem, the searches that can serve, and what they rest on."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from likewise._version import __version__
from likewise.auditing.problem import AuditProblem
from likewise.auditing.results.sensitive import sensitive_values
from likewise.auditing.search.candidate_rows import plan_candidates
from likewise.auditing.search.candidates import CandidateSearch
from likewise.auditing.search.choosing import choose_searches, searches_words
from likewise.auditing.search.contract import Budget, Search
from likewise.core.checks import IntArray, check_number
from likewise.core.errors import InputError, installed_versions
from likewise.core.frames import is_frame
from likewise.core.messages import Message, Texts
from likewise.core.randomness import numpy_generator
from likewise.counterfactuals.edits import edited_columns
from likewise.fair_metrics.neighbours import reach


@dataclass(frozen=True)
class Questions:
    """What the user wants to know: ε, δ, the test's τ and the confidence, checked."""

    eps: float
    delta: float | None
    tau: float
    confidence: float
    limit: float | None = None

    def __post_init__(self) -> None:
        for name in ("eps", "tau") if self.delta is None else ("eps", "delta", "tau"):
            check_number(getattr(self, name), owner="audit", name=name, low=0.0)
        if self.limit is not None:
            check_number(self.limit, owner="audit", name="limit", low=0.0, high=1.0)
        ends: dict[str, Any] = {"low": 0.0, "high": 1.0, "open_low": True, "open_high": True}
        check_number(self.confidence, owner="audit", name="confidence", **ends)


@dataclass(frozen=True, eq=False)
class AuditRequest:
    """What the user passed to `audit`, as it came; `searches` as `read_searches` returns them."""

    model: Any
    metric: Any
    searches: tuple[Search, ...]
    domain: Any = None
    loss: Any = None
    edits: Any = None
    encoded: bool | None = None
    eps: float = 0.1
    required: bool = False
    budget: Budget = field(default_factory=Budget)
    random_state: int = 0
    tolerance: float | None = None
    absent: Any = None
    labelled: bool = True

    def problem(self, X: Any, y: Any, domain: Any) -> AuditProblem:
        """Build the problem of some people."""
        made = AuditProblem.build(
            self.model,
            X,
            y,
            metric=self.metric,
            domain=domain,
            loss=self.loss,
            edits=self.edits,
            encoded=self.encoded,
            random_state=self.random_state,
            tolerance=self.tolerance,
        )
        return _that_fits(made)

    def draw(self, size: int, n: int) -> IntArray:
        """Draw `size` of n people without replacement; their numbers, rising."""
        chosen = numpy_generator(self.random_state).choice(n, size=min(size, n), replace=False)
        return np.sort(chosen).astype(np.int64)

    def pool(self, searches: Sequence[Search], n: int) -> IntArray:
        """Numbers of the people who are everybody's candidates, rising; none if no search wants some."""
        size = max((search.pool_size for search in searches), default=0)
        return self.draw(size, n) if size else np.zeros(0, dtype=np.int64)


def _that_fits(problem: AuditProblem) -> AuditProblem:
    """Leave free columns that nobody named to other searches if they have too many combinations."""
    if not problem.unnamed:
        return problem
    try:
        fixed = problem.coordinates.fixed_names()
        plan_candidates(problem.editable(), problem.edits, proxies=None, fixed=fixed, owner="audit")
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
    problem = asked.problem(X, y, asked.domain).with_known(absent=asked.absent, labelled=asked.labelled)
    searches, left_out = choose_searches(
        asked.searches,
        problem,
        required=asked.required,
        in_parts=False,
        eps=asked.eps,
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
    """Settle the values of edited columns and what the searches learn from people; say what all of it rests on."""
    if problem.edits:
        problem = problem.with_known(values=sensitive_values(problem))
        fixed = problem.coordinates.fixed_names()
        plan = plan_candidates(problem.editable(), problem.edits, proxies=None, fixed=fixed)
        problem = problem.with_known(edits=plan.settled_edits(problem.edits))
    ready = tuple(search.prepare(problem) for search in searches)
    settled = any(search.settles(asked.eps) for search in ready)
    listed: tuple[str, ...] = ()
    if not ready and problem.values is not None and problem.values.exact:
        # Question 1 alone: every combination of sensitive values is asked about.
        settled, names = True, edited_columns(problem.sensitive_edits)
        listed = (Message("assumption.enumeration", columns=[str(name) for name in names]),)
    return Prepared(
        problem=problem,
        searches=ready,
        eps=float(asked.eps),
        budget=asked.budget,
        exchanges=not ready
        or any(isinstance(search, CandidateSearch) and search.edits is None for search in searches),
        search=searches_words([search.name for search in ready] or ["enumeration"]),
        assumptions=(
            *problem.assumptions,
            Message("assumption.loss", loss=_loss_words(problem.coordinates.model.loss.name)),
            *listed,
            *(line for search in ready for line in search.assumes(problem)),
            Message("assumption.settled" if settled else "assumption.estimate"),
        ),
        settings=_settings(asked, problem),
        left_out=left_out,
    )


def _loss_words(name: str) -> str:
    key = f"setting_value.{name}"
    return Message(key) if Texts().has(key) else name.replace("_", " ")


def _settings(asked: AuditRequest, problem: AuditProblem) -> dict[str, Any]:
    """Plain values that say how an audit was made."""
    libraries = ("numpy", "scikit-learn", "torch", "pandas")
    place = problem.coordinates
    found: dict[str, Any] = {
        "version": __version__,
        "versions": {"python": platform.python_version()} | installed_versions(libraries),
        "metric": repr(getattr(asked.metric, "metric_", asked.metric)),
        "loss": place.model.loss.name,
        "model": place.model.adapter,
        "sensitive": [str(name) for name in edited_columns(problem.sensitive_edits)],
        "seed": asked.random_state,
    }
    if place.encoding is not None and place.metric.feature_map is None:
        found["reach"] = reach(place.metric, float(asked.eps), place.encoding.columns)
    return found | ({} if problem.pool is None else {"pool_rows": len(problem.pool)})
