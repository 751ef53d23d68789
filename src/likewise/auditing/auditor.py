"""The verb `audit`: does a model decide differently when only the sensitive columns change, for whom, and how sure is that.

A model and a table are brought together (`sources`, `case`), and the first question is answered by asking about
everybody's counterparts (`first_answer`). If a metric, ε or a search is asked for, the auditor's problem of the paper
follows (`worst_case`): the problem and the searches, what they find, λ* and what follows from it. Tables in Parquet files go
through the same steps part by part (`partitions`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.auditing.case import Case, with_encoding
from likewise.auditing.first_answer import AuditRequest, answer_first_question, guess_favourable
from likewise.auditing.partitions.engine import Engine, LocalEngine, read_engine
from likewise.auditing.partitions.tables import ParquetTable
from likewise.auditing.results.audit_result import AuditResult, Scope
from likewise.auditing.sources import table_case
from likewise.core.checks import check_parameters, python_scalar
from likewise.core.errors import InputError, bad_parameter
from likewise.core.plain import plain_cell
from likewise.core.text import option
from likewise.counterfactuals.edits import edited_columns
from likewise.data.case import check_varied
from likewise.data.target import find_value
from likewise.models.matching import with_own_names

if TYPE_CHECKING:
    from likewise.auditing.partitions.runner import Sizes
    from likewise.auditing.worst_case import OnProgress


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
    search: Any = None,
    loss: Any = None,
    edits: Any = None,
    encoded: bool | None = None,
    missing: str = "auto",
    budget_seconds: float | None = None,
    tau: float | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
    tolerance: float | None = None,
    engine: Engine | str | None = None,
    map_folder: str | Path | None = None,
    progress: bool | OnProgress = False,
) -> AuditResult:
    """Ask whether decisions change when only the sensitive columns change, and among people a little apart.

    With `sensitive_features` alone the first question is answered exactly, for any model and any table: missing cells,
    words, codes, ids and dates are prepared as on the command line. A `metric`, an `eps`, a `delta`, a `tau`, `edits` or a
    `search` adds the auditor's problem of the paper (equations 2–6): ``result.worst_case``.

    Parameters
    ----------
    model : anything `likewise.models.as_model` takes
        A torch module, a scikit-learn estimator or pipeline, XGBoost, LightGBM, CatBoost, ONNX, or a function
        that returns probabilities. It leaves as it came. One without an encoder of its own gets what you pass.
    X : table or array of shape (n, p)
        The people: a table in original units, or encoded rows (see `encoded`). Or a path, folder or glob pattern of
        Parquet files, which are read part by part and may be larger than memory.
    y : array of shape (n,), optional
        Their labels. For files the name of the target column (without `sensitive_features` also (name, value that
        counts as 1)), which is then not handed to the model. With `sensitive_features` they may be left out: which
        decisions change does not depend on them, and losses are then those against the model's own decisions. People
        whose label is missing are left out, and the result says how many.
    sensitive_features : sequence of str, optional
        Columns of `X` that decisions should not depend on.
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
    search : {"auto", "candidates", "gradient", "domain", "exact"}, Search, or list of them, optional
        Candidates: the people, and their twins with sensitive columns edited, for any model. Gradient: adds rows
        found by following the model's gradient. Domain: adds rows found by moving a person's columns over the whole
        domain, for any model; what is found for a person does not depend on the others. Exact: adds the worst case of
        linear models and proves it, and brackets that of tree ensembles and ReLU networks by branch and bound. At ε = 0
        everybody at no distance is asked about where they can be listed, for any model. Auto, the default:
        domain with everybody's own twins, gradient for models with gradients that are not read, and what can be proved, branch
        and bound where `budget_seconds` gives it time; ``result.left_out`` says what was left out. A search object
        carries its own choices: ``[CandidateSearch(), GradientSearch(restarts=4)]``.
    loss : str or Loss, optional
        What a prediction costs; by default that of a `Model`; else cross-entropy, the 0–1 loss of a classifier without
        probabilities, and the squared error of a model that predicts numbers.
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
        How long to search for worst cases and bounds. Where it is too short to bracket everybody, a random sample is, and
        bounds have a confidence. The first answer, with only the sensitive columns changed, is never cut short.
    tau : float, optional
        The test's null hypothesis: pure unfairness adds at most this to the mean loss. By default 0.01.
    confidence : float, default=0.95
        Of intervals, the test and bounds that rest on a sample.
    random_state : int, default=0
        For the gradient search and for samples. The same seed gives the same numbers on one installation. With numba (extra
        ``fast``) the search over the domain reads trees and networks instead of asking them, and may attain another V(ε),
        by other rows; the counts of the first question do not depend on it.
    tolerance : float, optional
        For a model that predicts numbers: count the people whose prediction changes by more than this, up or down, when
        only the sensitive columns change.
    engine : Engine or str, optional
        Where the parts of Parquet files are worked on; default in this process. `likewise.auditing.partitions.DaskEngine` has
        workers on this machine or on a cluster, and so have "dask", "dask:WORKERS" and "dask:ADDRESS". The numbers are the
        same.
    map_folder : path, optional
        Of Parquet files: write the unfair map of everybody here, as a folder of Parquet files. The result itself
        holds the thousand most harmed people.
    progress : bool or callable, default=False
        Show bars with the time left, on standard error: of each search, or of the parts of a table in files. Or a
        function ``on_progress(name, share)``: it is told the name of each search, or of the round over the parts, when it
        begins (with None) and the share that is done, and raises KeyboardInterrupt to break it off.

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
    check_parameters(audit, locals())
    engine = None if engine is None else read_engine(engine)
    more = (metric, eps, delta, tau, search, edits, map_folder)
    columns = metric is None or (isinstance(metric, str) and metric == "columns")
    if eps is None:
        eps = 0.0 if columns and sensitive_features is not None else 0.1
    if columns and eps == 0 and edits is None and search is None:
        search = ()  # only people at no distance are asked about
    asked = AuditRequest.of(
        model=with_own_names(model, X),
        metric="columns" if metric is None else metric,
        domain=domain,
        eps=eps,
        delta=delta,
        limit=limit,
        search=search,
        loss=loss,
        edits=edits,
        encoded=encoded,
        budget_seconds=budget_seconds,
        tau=0.01 if tau is None else tau,
        confidence=confidence,
        random_state=random_state,
        tolerance=tolerance,
        worst_case=any(one is not None for one in more),
    )
    runs: dict[str, Any] = {"engine": engine, "map_folder": map_folder, "progress": progress}
    if sensitive_features is None:
        if isinstance(metric, str):
            allowed = "a FairMetric or a learner, or with 'sensitive_features' also 'columns' or 'learned'"
            remedy = "Name the columns that decisions should not depend on: sensitive_features=['sex']."
            raise bad_parameter("audit", "metric", allowed, repr(metric), remedy)
        if metric is None or y is None:
            absent = "metric" if metric is None else "y"
            raise InputError(
                f"audit: pass {absent!r}, or name the columns that decisions should not depend on: sensitive_features=['sex']."
            )
        return audit_asked(asked, X, y, **runs)
    # Workers that read the table for its preparation stay for the audit.
    with engine if engine is not None and isinstance(X, (str, Path)) else nullcontext():
        case = table_case(
            asked, X, y, sensitive_features, favourable=favourable, missing=missing, engine=engine
        )
        target = y if isinstance(X, (str, Path)) else getattr(y, "name", None)
        if target in getattr(X, "columns", ()):
            target = None  # labels made of a column keep its name
        result = audit_case(case, target=target, **runs)
    # The class of the model, with that of a pipeline's last step, or the name of a function.
    steps = getattr(model, "steps", None)
    last = f" ({type(steps[-1][1]).__name__})" if isinstance(steps, list) and steps else ""
    kind = str(getattr(model, "__name__", type(model).__name__ + last)).strip("<>")
    settings: dict[str, Any] = {"model_type": kind}
    if favourable is not None:
        settings["favourable"] = python_scalar(favourable)
    return replace(
        result, assumptions=(*result.assumptions, *case.notes), settings=result.settings | settings
    )


def audit_case(
    case: Case,
    *,
    target: Any = None,
    progress: bool | OnProgress = False,
    engine: Engine | None = None,
    map_folder: str | Path | None = None,
) -> AuditResult:
    """Audit a model and people that were brought together; the result names rows and classes as the user does."""
    matched, asked, table = case.matched, case.request, case.table
    columns, edits = matched.domain.columns_, asked.edits or ()
    single = {column.name for column in columns if len(column.categories) <= 1}
    check_varied(case.people, [name for name in case.sensitive if name in single], case.found.people)
    favourable = _favourable_class(case)  # an unknown one is said before the audit is run
    free, edited = {column.name for column in columns if not column.immutable}, edited_columns(edits)
    sensitive = [name for name in case.sensitive if name in free and name not in edited]
    metric, labelled = case.metric if asked.worst_case else None, case.found.people.labels is not None
    ready = replace(
        asked,
        model=matched.model,
        metric=metric,
        domain=matched.domain,
        loss=None,
        eps=metric.budget(asked.eps) if metric is not None and isinstance(asked.eps, Mapping) else asked.eps,
        edits=[*sensitive, *edits],
        absent=case.told.isna() if table is None else None,
        labelled=labelled,
    )
    rows = case.people[list(matched.columns)] if table is None else table
    result = audit_asked(ready, rows, case.labels, engine=engine, map_folder=map_folder, progress=progress)
    if favourable is not None:
        result = replace(result, favourable=favourable, guessed=False)
    elif result.guessed:
        result = replace(result, favourable=guess_favourable(matched.model.known_classes, target))
    settings = {"labelled": labelled} | ({} if target is None else {"target": str(target)})
    findings = with_encoding(matched, result.findings)
    return _as_in_table(replace(result, findings=findings, settings=result.settings | settings), case)


def audit_asked(
    asked: AuditRequest,
    X: Any,
    y: Any,
    *,
    engine: Engine | None = None,
    map_folder: str | Path | None = None,
    progress: bool | OnProgress = False,
    sizes: Sizes | None = None,
) -> AuditResult:
    """Run an audit of people in memory, or of Parquet files in parts of chosen sizes."""
    if isinstance(X, (str, Path, ParquetTable)):
        from likewise.auditing.partitions.runner import audit_parquet

        table = X if isinstance(X, ParquetTable) else ParquetTable.find(X, y)
        return audit_parquet(
            asked, table, engine=engine, map_folder=map_folder, progress=progress, sizes=sizes
        )
    if map_folder is not None or not (engine is None or isinstance(engine, LocalEngine)):
        raise InputError(
            "audit: 'engine' and 'map_folder' are for Parquet files. Pass their path as 'X' and the target's "
            "name as 'y'."
        )
    if not asked.worst_case:
        return answer_first_question(asked, X, y)
    from likewise.auditing.worst_case import audit_people

    return audit_people(asked, X, y, progress)


def _as_in_table(result: AuditResult, case: Case) -> AuditResult:
    """Return a result whose people are where they are in the user's table, with their missing cells.

    Predictions that differ by no more than the tolerance are one decision there.
    """
    people, gaps, only, worst = case.found.people, case.found.gaps, result.sensitive, result.worst_case
    positions, tolerance = None, case.request.tolerance or 0.0
    if only is not None:
        n, positions = people.total or len(people.frame), people.positions
        scope = Scope(
            n, n if people.supplied is None else people.supplied, people.sampled, people.counted, case.source
        )
        rows = [one.person + 1 if people.places is None else people.places[one.person] for one in only.people]
        listed = tuple(replace(one, row=plain_cell(row)) for one, row in zip(only.people, rows, strict=True))
        result = replace(result, scope=scope, sensitive=replace(only, people=listed))
    restored = gaps is not None and bool(gaps.fills or gaps.held or gaps.words)
    if worst is None or (positions is None and not restored and not tolerance):
        return result
    from likewise.auditing.results.unfair_map import UnfairMap, make_unfair_map

    def changed(unfair: UnfairMap) -> UnfairMap:
        outcomes, tables = unfair.outcomes, [unfair.people, unfair.twins]
        if positions is not None:
            outcomes = outcomes.assign(person=positions[outcomes["person"].to_numpy()])
        if not restored and not tolerance:
            return replace(unfair, outcomes=outcomes)
        if gaps is not None:
            tables = [gaps.restored(table) for table in tables]
        known: dict[str, Any] = {name: outcomes[name].to_numpy() for name in _KEPT}
        return make_unfair_map(*tables, **known, total=unfair.total, tolerance=tolerance)

    unfair = changed(worst.unfair_map)
    pure = unfair if worst.pure_map is worst.unfair_map else changed(worst.pure_map)
    return replace(result, worst_case=replace(worst, unfair_map=unfair, pure_map=pure))


# What the maps say of people and twins besides their cells.
_KEPT = ("label", "loss", "twin_loss", "decision", "twin_decision", "squared_distance", "person")


def _favourable_class(case: Case) -> Any:
    """Return the class that the user calls favourable; None if nobody said, or the model predicts numbers."""
    model = case.matched.model
    if case.favourable is None or model.loss.regression:
        return None
    if model.known_classes is None:
        # A function says how many classes it has when it is first asked.
        case.matched.decide(case.people.head(1))
    classes = [] if model.classes_ is None else model.classes_.tolist()
    return plain_cell(find_value(classes, case.favourable, what=f"{option('favourable')}: the model"))


def unbroken(result: AuditResult) -> AuditResult:
    """Return a result; raise KeyboardInterrupt if Ctrl-C ended its search, since half an audit looks fairer than it is."""
    if any(getattr(reason, "key", None) == "reason.broken_off" for reason in result.reasons):
        raise KeyboardInterrupt
    return result
