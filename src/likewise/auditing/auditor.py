"""The verb `audit`: is this model unfair to individuals, to whom, by how much, and how sure is that.

An audit of people in memory goes from the request to the problem and the searches (`preparation`), to what they find and
to λ* (`rounds`), and to the result (`inference.conclusion`). Tables in Parquet files go through the same steps part by part
(`partitions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.auditing.inference.conclusion import Clock, conclude
from likewise.auditing.inference.intervals import prices_around
from likewise.auditing.partitions.engine import Engine, LocalEngine
from likewise.auditing.partitions.tables import ParquetTable
from likewise.auditing.preparation import AuditRequest, Questions, prepare_people
from likewise.auditing.progress import OnProgress
from likewise.auditing.results.audit_result import AuditResult
from likewise.auditing.rounds import corners, search_people, settle, steps_taken
from likewise.auditing.search.choosing import read_searches
from likewise.auditing.search.contract import Budget, Search
from likewise.core.errors import InputError

if TYPE_CHECKING:
    from likewise.auditing.partitions.runner import Sizes

# No search: the enumeration of the sensitive columns answers.
QUESTION_ONE = "question one"


def audit(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Sequence[str] | None = None,
    favourable: Any = None,
    metric: Any = None,
    domain: Any = None,
    eps: float | None = None,
    delta: float | None = None,
    limit: float | None = None,
    search: Any = "auto",
    loss: Any = None,
    edits: Any = None,
    encoded: bool | None = None,
    missing: str = "auto",
    budget_seconds: float | None = None,
    tau: float = 0.01,
    confidence: float = 0.95,
    random_state: int = 0,
    tolerance: float | None = None,
    engine: Engine | None = None,
    map_folder: str | Path | None = None,
    progress: bool | OnProgress = False,
) -> AuditResult:
    """Ask whether decisions change when only the sensitive columns change, and among people a little apart.

    With `sensitive_features` alone the first question is answered exactly, for any model and any table: missing cells,
    words, codes, ids and dates are prepared as on the command line. A `metric` or an `eps` adds the auditor's problem of
    the paper (equations 2–6).

    Parameters
    ----------
    model : anything `likewise.models.as_model` takes
        A torch module, a scikit-learn estimator or pipeline, XGBoost, LightGBM, CatBoost, ONNX, or a function
        that returns probabilities. It leaves as it came. One without an encoder of its own gets what you pass.
    X : table or array of shape (n, p)
        The people: a table in original units, or encoded rows (see `encoded`). Or a path, folder or glob pattern of
        Parquet files, which are read part by part and may be larger than memory.
    y : array of shape (n,), optional
        Their labels. For Parquet files the name of the target column, or (name, value that counts as 1). With
        `sensitive_features` they may be left out: which decisions change does not depend on them, and losses are then
        those against the model's own decisions.
    sensitive_features : sequence of str, optional
        Columns of `X` that should not decide.
    favourable : object, optional
        The label of the favourable outcome, which `result.effects` counts; class 1 of a model that only numbers its
        classes. By default the second of two classes.
    metric : FairMetric, learner, "columns" or "learned"
        Who is comparable with whom. A learner that is not fitted yet is fitted on `X`. A metric that was learned in
        another encoding of the same columns is re-expressed exactly. The words are for `sensitive_features`: people who
        differ in these columns alone (the default), or also in what predicts them.
    domain : Domain, optional
        Which rows can exist; a person who cannot is an error. Default: a `TabularDomain` that holds the table, or the
        box of the data for plain numbers. Pass ``Unbounded()`` to allow anything; then a worst case may be without end.
    eps : float, optional
        Budget ε: mean squared fair distance. ``metric.budget(age=2)`` gives one in the table's own units. By default 0.1
        with a metric, and 0 with `sensitive_features` alone.
    delta : float, optional
        The gap V(ε) − mean loss that is still called fair.
    limit : float, optional
        The share of decisions that may change when only the sensitive columns do: ``result.raise_if_unfair()`` raises
        above it.
    search : {"auto", "candidates", "gradient", "domain", "exact"}, Search, or list of them, default="auto"
        Candidates: the people, and their twins with sensitive columns edited, for any model. Gradient: adds rows
        found by following the model's gradient. Domain: adds rows found by moving a person's columns over the whole
        domain, for any model; what is found for a person does not depend on the others. Exact: adds the worst case of
        linear models and proves it, and brackets that of tree ensembles and ReLU networks by branch and bound. At ε = 0
        everybody at no distance is asked about where they can be listed, for any model. Auto:
        gradient where the model has gradients, else domain with everybody's own twins, and what can be proved, branch
        and bound where `budget_seconds` gives it time; ``result.left_out`` says what was left out. A search object
        carries its own choices: ``[CandidateSearch(proxies=None), GradientSearch(restarts=4)]``.
    loss : str or Loss, optional
        What a prediction costs; by default that of a `Model`, and cross-entropy for everything else.
    edits : mapping, Edit, or sequence, optional
        More columns whose values twins exchange, in the language of `correspondence_study`:
        ``["race", Edit("relationship", ("Husband", "Wife"))]``. What the metric was told is sensitive, and whole
        columns that it makes free, are exchanged anyway. An `Edit` with consequences (`likewise.counterfactuals`) adds the twins
        that carry them to the candidates, at their fair distance.
    encoded : bool, optional
        Whether the rows of `X` are encoded. By default arrays are, and frames are not unless they declare it, as what
        ``domain.encode`` returns does; the names of columns say nothing.
    missing : {"auto", "keep", "drop", "category", "impute"}, default="auto"
        Missing cells of a table with `sensitive_features`: kept for a model that takes them and else imputed; or keep
        them, drop these people, make them a category, impute the median or the most frequent value.
    budget_seconds : float, optional
        How long to search. Where it is too short to bracket everybody, a random sample is, and bounds have a confidence.
    tau : float, default=0.01
        The test's null hypothesis: pure unfairness adds at most this to the mean loss.
    confidence : float, default=0.95
        Of intervals, the test and bounds that rest on a sample.
    random_state : int, default=0
        For the gradient search and for samples. The same seed gives the same bytes.
    tolerance : float, optional
        For a model that predicts numbers: count the people whose prediction changes by more than this, up or down, when
        only the sensitive columns change.
    engine : Engine, optional
        Where the parts of Parquet files are worked on; default in this process. `likewise.auditing.partitions.DaskEngine` has
        workers on this machine or on a cluster. The numbers are the same.
    map_folder : path, optional
        Of Parquet files: write the unfair map of everybody here, as a folder of Parquet files. The result itself
        holds the thousand most harmed people.
    progress : bool or callable, default=False
        Show bars with the time left, on standard error: of each search, or of the parts while Parquet files stream.
        For people in memory also a function ``on_progress(name, share)``: it is told the name of each search when it begins
        (with None) and the share that is done, and raises KeyboardInterrupt to break the search off.

    Returns
    -------
    AuditResult

    Examples
    --------
    A score that adds one for sex:

    >>> import numpy as np, pandas as pd
    >>> import likewise as lw
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> audit(score, people, sensitive_features=["sex"]).sensitive.changed
    0.25

    Who would lose and who would gain the favourable decision, class 1:

    >>> audit(score, people, sensitive_features=["sex"]).effects
      attribute recorded instead  people  lose  gain
    0       sex        F       M       2     0     1
    1       sex        M       F       2     0     0

    The paper's audit, with a metric that ignores sex:

    >>> metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    >>> result = audit(score, people, [0, 1, 1, 1], metric=metric, eps=0.0)
    >>> round(result.pure_gap, 3), result.pure_map.top(1)["changed"].item()
    (0.243, 'sex')
    """
    if sensitive_features is not None:
        from likewise.auditing.python_case import audit_table

        return audit_table(
            model,
            X,
            y,
            sensitive_features=sensitive_features,
            favourable=favourable,
            metric=metric,
            domain=domain,
            eps=eps,
            delta=delta,
            limit=limit,
            search=search,
            loss=loss,
            edits=edits,
            encoded=encoded,
            missing=missing,
            budget=budget_seconds,
            tau=tau,
            confidence=confidence,
            seed=random_state,
            tolerance=tolerance,
            engine=engine,
            map_folder=map_folder,
            progress=progress,
        )
    if metric is None or y is None:
        absent = "metric" if metric is None else "y"
        raise InputError(
            f"audit: pass {absent!r}, or say which columns should not decide: sensitive_features=['sex']."
        )
    return audit_prepared(
        model,
        X,
        y,
        metric=metric,
        domain=domain,
        eps=0.1 if eps is None else eps,
        delta=delta,
        limit=limit,
        search=search,
        loss=loss,
        edits=edits,
        encoded=encoded,
        budget_seconds=budget_seconds,
        tau=tau,
        confidence=confidence,
        random_state=random_state,
        tolerance=tolerance,
        engine=engine,
        map_folder=map_folder,
        progress=progress,
    )


def audit_prepared(
    model: Any,
    X: Any,
    y: Any,
    *,
    metric: Any,
    eps: float,
    domain: Any = None,
    delta: float | None = None,
    limit: float | None = None,
    search: Any = "auto",
    loss: Any = None,
    edits: Any = None,
    encoded: bool | None = None,
    budget_seconds: float | None = None,
    tau: float = 0.01,
    confidence: float = 0.95,
    random_state: int = 0,
    tolerance: float | None = None,
    engine: Engine | None = None,
    map_folder: str | Path | None = None,
    progress: bool | OnProgress = False,
    absent: Any = None,
    labelled: bool = True,
) -> AuditResult:
    """Audit people whose table needs no more preparation; parameters as in `audit`.

    `absent` is a table of truth values: which sensitive cells were missing before they were filled for the model.
    """
    questions = Questions(eps, delta, tau, confidence, limit)
    searches: tuple[Search, ...] = ()
    required = False
    if not (isinstance(search, str) and search == QUESTION_ONE):
        searches, required = read_searches(search, timed=budget_seconds is not None, confidence=confidence)
    budget = Budget(budget_seconds)
    if budget_seconds is not None:
        # People and numbers are put together after the search.
        budget = replace(budget, seconds=budget_seconds - min(0.2 * budget_seconds, 0.5))
    asked = AuditRequest(
        model,
        metric,
        searches,
        domain,
        loss,
        edits,
        encoded,
        eps,
        required,
        budget,
        random_state,
        tolerance,
        absent,
        labelled,
    )
    return audit_asked(asked, X, y, questions, engine=engine, map_folder=map_folder, progress=progress)


def audit_asked(
    asked: AuditRequest,
    X: Any,
    y: Any,
    questions: Questions,
    *,
    engine: Engine | None = None,
    map_folder: str | Path | None = None,
    progress: bool | OnProgress = False,
    sizes: Sizes | None = None,
) -> AuditResult:
    """Run an audit whose questions are sorted out; `audit` with the sizes of parts to choose."""
    if isinstance(X, (str, Path, ParquetTable)):
        from likewise.auditing.partitions.runner import audit_parquet

        table = X if isinstance(X, ParquetTable) else ParquetTable.find(X, y)
        return audit_parquet(
            asked,
            table,
            questions,
            engine=engine,
            map_folder=map_folder,
            progress=progress is True,
            sizes=sizes,
        )
    if map_folder is not None or not (engine is None or isinstance(engine, LocalEngine)):
        raise InputError(
            "audit: 'engine' and 'map_folder' are for Parquet files. Pass their path as 'X' and the target's "
            "name as 'y'."
        )
    return _audit_people(asked, X, y, questions, progress)


def _audit_people(
    asked: AuditRequest, X: Any, y: Any, questions: Questions, progress: bool | OnProgress
) -> AuditResult:
    """Audit people in memory: prepare, search, solve the dual, settle what λ* means, conclude."""
    clock, eps = Clock(), float(questions.eps)
    prepared = prepare_people(asked, X, y)
    clock.lap("prepare")
    searched = search_people(prepared, prepared.problem, progress=progress, breakable=True)
    found, frontier = searched.sums(), searched.support.frontier
    for name, seconds in found.cpu.items():
        clock.book(name, seconds)
    curve = found.steps.curve(n=found.losses.n, base=found.losses.mean, free=found.free.mean)
    lam = float(curve.lambda_(eps))
    settled = settle(frontier, lam, prices_around(curve, eps))
    clock.book("settle", settled.cpu)
    prices = [np.inf] if eps == 0 else [np.inf, lam]
    maps = [searched.support.unfair_map(corners(frontier, steps_taken(frontier, price))) for price in prices]
    return conclude(prepared, found, settled, curve, (maps[0], maps[-1]), questions, clock)
