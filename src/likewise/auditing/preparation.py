"""From what the user passed to an audit that can run: the problem, the searches that can serve, and what they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from likewise.auditing.problem import AuditProblem
from likewise.auditing.request import AuditRequest, settings_of
from likewise.auditing.results.sensitive import sensitive_values
from likewise.auditing.search.candidate_rows import plan_candidates
from likewise.auditing.search.candidates import CandidateSearch
from likewise.auditing.search.choosing import choose_searches, searches_words
from likewise.auditing.search.contract import Budget, Search
from likewise.core.errors import InputError
from likewise.core.frames import is_frame
from likewise.core.messages import Message, Texts
from likewise.counterfactuals.edits import edited_columns
from likewise.fair_metrics.neighbours import reach


def problem_of(asked: AuditRequest, X: Any, y: Any, domain: Any) -> AuditProblem:
    """Build the problem of some people."""
    made = AuditProblem.build(
        asked.model,
        X,
        y,
        metric=asked.metric,
        domain=domain,
        loss=asked.loss,
        edits=asked.edits,
        encoded=asked.encoded,
        random_state=asked.random_state,
        tolerance=asked.tolerance,
    )
    return _that_fits(made)


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
    problem = problem_of(asked, X, y, asked.domain).with_known(absent=asked.absent, labelled=asked.labelled)
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
    """Settle the values of edited columns and what the searches learn from people; say what all of it rests on."""
    if problem.edits:
        problem = problem.with_known(values=sensitive_values(problem))
        fixed = problem.coordinates.fixed_names()
        plan = plan_candidates(problem.editable(), problem.edits, proxies=None, fixed=fixed)
        problem = problem.with_known(edits=plan.settled_edits(problem.edits))
    ready = tuple(search.prepare(problem) for search in searches)
    settled = any(search.settles(asked.tolerated) for search in ready)
    listed: tuple[str, ...] = ()
    if not ready and problem.values is not None and problem.values.exact:
        # Question 1 alone: every combination of sensitive values is asked about.
        settled, names = True, edited_columns(problem.sensitive_edits)
        listed = (Message("assumption.enumeration", columns=[str(name) for name in names]),)
    return Prepared(
        problem=problem,
        searches=ready,
        eps=asked.tolerated,
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
    """The same of an audit with a metric."""
    place = problem.coordinates
    metric = repr(getattr(asked.metric, "metric_", asked.metric))
    found = settings_of(asked, problem) | {"metric": metric, "tau": asked.tau}
    if place.encoding is not None and place.metric.feature_map is None:
        found["reach"] = reach(place.metric, asked.tolerated, place.encoding.columns)
    return found | ({} if problem.pool is None else {"pool_rows": len(problem.pool)})
