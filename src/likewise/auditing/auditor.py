"""The verb `audit`: is this model unfair to individuals, to whom, by how much, and how sure is that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from likewise.auditing.audit_result import AuditResult, Status
from likewise.auditing.claims.certificate import Bound
from likewise.auditing.claims.conclusion import (
    Clock,
    Evidence,
    Questions,
    assumptions_of,
    conclude,
    settings_of,
)
from likewise.auditing.parts.audit_in_parts import Asked, audit_parquet
from likewise.auditing.parts.engine import Engine, LocalEngine
from likewise.auditing.parts.parquet_table import ParquetTable
from likewise.auditing.people.unfair_map import UnfairMap
from likewise.auditing.problem.audit_problem import AuditProblem, free_columns
from likewise.auditing.problem.editable_rows import tabular
from likewise.auditing.search.candidates.candidate_search import CandidateSearch
from likewise.auditing.support.finite_dual import DualSolution
from likewise.auditing.support.supporting_rows import Support
from likewise.core.errors import InputError, bad_parameter

__all__ = ["audit"]

Search = Literal["auto", "candidates", "gradient", "exact"]
# Branch and bound takes some ten milliseconds a person, so "auto" leaves larger tables to search="exact".
_EXACT_AUTO = 300
_SEARCHES = ("auto", "candidates", "gradient", "exact")


def audit(
    model: Any,
    X: Any,
    y: Any,
    *,
    metric: Any,
    domain: Any = None,
    eps: float = 0.1,
    delta: float | None = None,
    search: Search = "auto",
    loss: Any = "cross_entropy",
    sensitive: Sequence[Any] | None = None,
    edits: Mapping[Any, Sequence[Any]] | None = None,
    candidates: CandidateSearch | None = None,
    gradient: Any = None,
    tau: float = 0.01,
    confidence: float = 0.95,
    random_state: int = 0,
    engine: Engine | None = None,
    map_folder: str | Path | None = None,
    progress: bool = False,
) -> AuditResult:
    """Solve the auditor's problem (paper, equations 2–6) for any model.

    Parameters
    ----------
    model : anything `likewise.models.as_model` takes
        A torch module, a scikit-learn estimator or pipeline, XGBoost, LightGBM, CatBoost, ONNX, or a function
        that returns probabilities. It leaves as it came.
    X : table or array of shape (n, p)
        The people: a raw table (with a model that takes one, or a domain that encodes it), or encoded rows. Or a
        path, folder or glob pattern of Parquet files, which are read part by part and may be larger than memory.
    y : array of shape (n,)
        Their labels. For Parquet files the name of the target column, or (name, value that counts as 1).
    metric : FairMetric or learner
        Who is comparable with whom. A learner that is not fitted yet is fitted on `X`.
    domain : Domain, optional
        Which rows can exist. Default: a `TabularDomain` of the table, or the box of the data for plain numbers.
        Pass ``Unbounded()`` to allow anything; then a worst case may be without end.
    eps : float, default=0.1
        Budget ε: mean squared fair distance. ``metric.budget(age=2)`` gives one in the table's own units.
    delta : float, optional
        The gap V(ε) − mean loss that is still called fair.
    search : {"auto", "candidates", "gradient", "exact"}, default="auto"
        Candidates: the people, and their twins with sensitive columns edited, for any model. Gradient: adds rows
        found by following the model's gradient. Exact: adds an upper bound for linear models. Auto: candidates,
        gradient where the model allows it, and exact for linear models of up to 300 people.
    loss : str or Loss, default="cross_entropy"
        What a prediction costs.
    sensitive : sequence of column names, optional
        Columns whose values twins exchange. Default: the categorical columns that the metric ignores.
    edits : mapping, optional
        Values to try by column, such as ``{"relationship": ["Husband", "Wife"]}``.
    candidates : CandidateSearch, optional
        All choices of the candidate search; `sensitive` and `edits` are then taken from it.
    gradient : GradientSearch, optional
        All choices of the gradient search.
    tau : float, default=0.01
        The test's null hypothesis: pure unfairness adds at most this to the mean loss.
    confidence : float, default=0.95
        Of intervals, the test and bounds.
    random_state : int, default=0
        For the gradient search and for samples. The same seed gives the same bytes.
    engine : Engine, optional
        Where the parts of Parquet files are worked on; default in this process. `likewise.scale.DaskEngine` has
        workers on this machine or on a cluster. The numbers are the same.
    map_folder : path, optional
        Of Parquet files: write the unfair map of everybody here, as a folder of Parquet files. The result itself
        holds the thousand most harmed people.
    progress : bool, default=False
        Show a bar with the time left while Parquet files stream.

    Returns
    -------
    AuditResult

    Examples
    --------
    A score that adds one for sex, audited with a metric that ignores sex:

    >>> import numpy as np, pandas as pd
    >>> import likewise as lw
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    >>> result = audit(score, people, [0, 1, 1, 1], metric=metric, eps=0.0)
    >>> round(result.pure_gap, 3), result.pure_map.top(1)["changed"].item()
    (0.243, 'sex')
    """
    questions = Questions(eps, delta, tau, confidence)
    if search not in _SEARCHES:
        raise bad_parameter("audit", "search", allowed=f"one of {', '.join(_SEARCHES)}", got=search)
    if isinstance(X, (str, Path)):
        if search not in ("auto", "candidates"):
            raise InputError(
                "audit: Parquet files are audited with search='candidates'; load them for others."
            )
        asked = Asked(model, metric, domain, loss, candidates, sensitive, edits, random_state)
        table = ParquetTable.find(X, y)
        return audit_parquet(asked, table, questions, engine=engine, map_folder=map_folder, progress=progress)
    if map_folder is not None or not (engine is None or isinstance(engine, LocalEngine)):
        raise InputError(
            "audit: 'engine' and 'map_folder' are for Parquet files. Pass their path as 'X' and the target's name "
            "as 'y'."
        )
    clock = Clock()
    problem = AuditProblem.build(model, X, y, metric=metric, domain=domain, loss=loss)
    clock.lap("prepare")
    chosen = candidates or CandidateSearch(
        sensitive=free_columns(problem.views) if sensitive is None else tuple(sensitive),
        edits=edits,
        use_rows=search != "gradient",
    )
    support = _candidates(problem, chosen)
    clock.lap("candidates")
    found = _Found(support, "candidates", ())
    if search == "gradient" or (search == "auto" and problem.searchable()):
        found = _gradient(problem, support, gradient, eps, random_state)
        clock.lap("gradient")
    bounds: tuple[Bound | None, Bound | None] = (None, None)
    if search == "exact" or (search == "auto" and problem.n <= _EXACT_AUTO and problem.searchable()):
        bounds, found = _exact(problem, found, questions, random_state, required=search == "exact")
        clock.lap("exact")
    evidence = Evidence(
        search=found.search,
        status=found.status,
        reasons=found.reasons,
        bound=bounds[0],
        population_bound=bounds[1],
        assumptions=(*problem.assumptions, *assumptions_of(problem.views, chosen)),
        settings=settings_of(problem.views, chosen) | {"seed": random_state},
    )

    def make_map(solution: DualSolution) -> UnfairMap:
        return found.support.unfair_map(solution.corner, problem.y)

    return conclude(found.support.frontier, evidence, questions, make_map, clock)


@dataclass(frozen=True, eq=False)
class _Found:
    support: Support
    search: str
    reasons: tuple[str, ...]
    status: Status = "converged"


def _candidates(problem: AuditProblem, search: CandidateSearch) -> Support:
    views = problem.views
    found = search.run(views.model, problem.rows, problem.y, metric=views.metric, domain=views.domain)
    return Support(views, problem.rows, found.candidates, np.zeros((0, 0)), found.frontier)


def _gradient(problem: AuditProblem, support: Support, search: Any, eps: float, random_state: int) -> _Found:
    if not problem.searchable():
        raise InputError(
            "audit: search='gradient' needs a differentiable model (a torch module, or a linear or MLP model of "
            "scikit-learn) on encoded numbers. Pass encoded rows and a domain, or search='candidates'."
        )
    from likewise.auditing.search.column_generation import generate_columns
    from likewise.auditing.search.gradient.gradient_search import GradientSearch

    views, origin = problem.views, problem.encoded()
    assert origin is not None  # searchable() says so
    target = views.model.targets(problem.y)
    labels = views.model.classes_[target] if views.model.classes_ is not None else target
    encoded_views = replace(views, raw=False)

    def valid(x: Any, rows: Any, lam: float) -> Any:
        from likewise.auditing.search.valid_rows import refine

        return refine(
            x,
            origin[rows],
            labels[rows],
            losses=lambda z, label: views.model.losses(encoded_views.for_model(z), label),
            metric=views.metric.without_feature_map(),
            domain=views.domain,
            lam=lam,
        )

    support, report = generate_columns(
        support,
        search=search or GradientSearch(),
        origin=origin,
        target=target,
        eps=eps,
        refine=valid if tabular(views.domain) is not None else None,
        random_state=random_state,
    )
    if report.non_finite:
        reason = f"the search met values that are not finite for {report.non_finite} people"
        return _Found(support, "candidates and gradient", (reason,), "failed")
    if not report.settled:
        reason = f"V(ε) still rose after {report.rounds} rounds of search; raise the steps of GradientSearch"
        return _Found(support, "candidates and gradient", (reason,), "not_converged")
    return _Found(support, "candidates and gradient", ())


def _exact(
    problem: AuditProblem, found: _Found, questions: Questions, random_state: int, *, required: bool
) -> tuple[tuple[Bound | None, Bound | None], _Found]:
    from likewise.auditing.bounds.linear import exact_bound, exact_dual, loss_ceiling
    from likewise.auditing.bounds.linear.linear_model import LOSSES

    views, origin, eps = problem.views, problem.encoded(), questions.eps
    form = views.model.linear_form() if origin is not None else None
    if form is None or not problem.searchable() or views.model.loss.name not in LOSSES:
        if required:
            raise InputError(
                "audit: search='exact' needs a linear classifier (logistic or softmax regression) on encoded "
                "numbers. Use search='auto', which takes what the model allows."
            )
        return (None, None), found
    given = (views.model, origin, problem.y)
    where = {"metric": views.metric.without_feature_map(), "domain": views.domain, "eps": eps, "tol": 1e-6}
    solved = exact_dual(*given, **where)
    if not np.isfinite(solved.value):
        reason = (
            "the loss grows without end along directions that cost nothing: give the audit a bounded domain"
        )
        return (None, None), replace(found, reasons=(*found.reasons, reason), status="not_converged")
    bound = Bound(
        value=solved.value,
        gap=solved.gap,
        eps=eps,
        n=problem.n,
        method="dual with the exact inner supremum of a linear model",
        lam=solved.lam,
        assumptions=("the worst case may be any point of the box around the domain",),
    )
    population = None
    if eps > 0 and problem.n >= 4 and np.isfinite(loss_ceiling(views.model, views.domain)):
        population = exact_bound(*given, **where, confidence=questions.confidence, random_state=random_state)
    return (bound, population), replace(found, search=f"{found.search}, exact bound")
