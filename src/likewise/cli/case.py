"""One audit of the command line: a matched model, people, a metric; solved, evaluated, and ready to be shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.cli.options import parse_budget
from likewise.core.errors import InputError, LikewiseError

if TYPE_CHECKING:
    import pandas as pd

    from likewise.auditing import AuditResult
    from likewise.auditing.parts.engine import Engine
    from likewise.auditing.parts.search_bar import Heard
    from likewise.domains import TabularDomain
    from likewise.evaluation import Evaluation
    from likewise.fair_metrics import AttributeSubspace, ExpertSubspace, FairMetric
    from likewise.models.matching import Matched
    from likewise.tables import MissingCells

__all__ = [
    "Case",
    "call_classes",
    "check_varied",
    "diagnose_metric",
    "evaluate_case",
    "fit_metric",
    "is_plain",
    "metric_columns",
    "nobody_there",
    "plans_of",
    "read_metric",
    "solve_case",
    "studies_of",
    "unbroken",
]

# A sensitive column with more values than this has no groups to compare.
MAX_GROUPS = 20
_SPOUSES = {"Husband", "Wife"}


@dataclass(frozen=True, eq=False)
class Case:
    """Everything an audit needs.

    Parameters
    ----------
    matched : Matched
        The model, and how it takes the table.
    frame : DataFrame or Path
        The people in original units, or a Parquet file that is too large to load.
    y : array or str
        Their labels; the target's name for a file.
    metric : FairMetric
    sensitive : sequence of str
        Columns whose values twins exchange.
    edits : mapping
        Further columns with the values their twins exchange.
    eps, delta, confidence, search, seed, budget
        As the options say.
    gaps : MissingCells or None
        How missing cells of the frame were filled and marked, where they were.
    told : DataFrame or None
        The sensitive columns of the people in memory as the table has them, gaps included.
    tolerance : float or None
        Predicted numbers that differ by no more are the same.
    """

    matched: Matched
    frame: Any
    y: Any
    metric: FairMetric
    sensitive: Sequence[str]
    edits: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    eps: str = "0.1"
    delta: float | None = None
    confidence: float = 0.95
    search: str = "auto"
    seed: int = 0
    budget: float | None = None
    gaps: MissingCells | None = None
    told: pd.DataFrame | None = None
    tolerance: float | None = None


def call_classes(matched: Matched, values: Any, positive: str | None) -> Matched:
    """Return the same with the model's classes called as the target's values are; see `name_classes`.

    Parameters
    ----------
    matched : Matched
    values : iterable
        Values of the target.
    positive : str or None
        The one that stands for class 1, as on the command line.
    """
    from likewise.cli.target_values import find_value, unique_values
    from likewise.models.matching import name_classes

    different = unique_values(values)
    chosen = None if positive is None else find_value(different, positive, what="--positive: the target")
    return replace(matched, model=name_classes(matched.model, different, chosen))


def is_plain(metric: Path | None) -> bool:
    """Whether the user asked for the metric in which just the sensitive columns are free, by its word."""
    return metric is not None and str(metric) == "columns" and not metric.exists()


def read_metric(path: Path | None) -> FairMetric | None:
    """Load a fair metric, or say that the file is none; None where none is named, or only by the word "columns"."""
    if path is None or is_plain(path):
        return None
    from likewise.fair_metrics import FairMetric

    if not path.is_file():
        raise InputError(
            f"--metric: there is no file {str(path)!r}. `likewise learn-metric` writes one; --metric columns frees just "
            "the sensitive columns."
        )
    metric = FairMetric.load(path)
    if metric.feature_map is None:
        raise InputError(
            f"--metric: {path.name} does not say how a table is encoded. Learn it on the table: likewise learn-metric."
        )
    return metric


def metric_columns(metric: FairMetric | None) -> tuple[str, ...]:
    """Columns of the table that a metric reads."""
    return tuple(column.name for column in getattr(getattr(metric, "feature_map", None), "columns_", ()))


def plans_of(encoder: Any) -> dict[str, Any]:
    """What a metric or a model that encodes tables takes each column for; nothing where there is no encoder."""
    from likewise.domains.column_plan import ColumnPlan

    found = {}
    for column in getattr(encoder, "columns_", ()):
        values = column.categories or None
        kind = {"categorical": "category", "continuous": "number"}.get(column.kind, column.kind)
        found[column.name] = ColumnPlan(kind, values=values, scale=column.curve)
    return found


def check_varied(frame: pd.DataFrame, sensitive: Sequence[str]) -> None:
    """Refuse a sensitive column with one value: nobody has a twin with another, and "nobody changes" would say nothing."""
    for name in sensitive:
        values = frame[name].dropna().unique()
        if len(values) < 2:
            said = f"one value only ({values[0]})" if len(values) else "no value"
            raise InputError(
                f"The sensitive column {name!r} has {said}, so nobody has a twin with another. Name another --sensitive, "
                "or pass a table with people of other values."
            )


def fit_metric(
    frame: pd.DataFrame,
    sensitive: Sequence[str],
    domain: TabularDomain,
    *,
    plain: bool = False,
    told: pd.DataFrame | None = None,
) -> AttributeSubspace | ExpertSubspace:
    """Learn the sensitive subspace of some columns; those that the domain lacks only through their proxies.

    Parameters
    ----------
    frame : DataFrame
        With the domain's columns and the sensitive ones, without gaps.
    sensitive : sequence of str
    domain : TabularDomain
        Encodes the rows.
    plain : bool, default=False
        Free just the sensitive columns themselves, and learn nothing.
    told : DataFrame, optional
        The same people with gaps: who does not tell a sensitive value teaches nothing about it.

    Returns
    -------
    AttributeSubspace or ExpertSubspace
        Fitted; the metric is its ``metric_``.
    """
    from likewise.fair_metrics import AttributeSubspace, ExpertSubspace

    known = [column.name for column in domain.columns_]
    outside = [name for name in sensitive if name not in known]
    if plain:
        if outside or not sensitive:
            said = f"the model does not use {outside[0]!r}" if outside else "no column is named"
            raise InputError(
                f"--metric columns frees the columns of --sensitive, and {said}. Leave --metric out."
            )
        return ExpertSubspace(list(sensitive), domain=domain).fit(frame[known])
    values = frame if told is None else told
    check_varied(values, sensitive)
    apart = [name for name in sensitive if name in outside or values[name].isna().any()]
    learner = AttributeSubspace(list(sensitive), domain=domain)
    return learner.fit(frame[known], sensitive_features=values[apart] if apart else None)


def solve_case(
    case: Case,
    *,
    progress: bool | Heard = False,
    engine: Engine | None = None,
    map_folder: Path | None = None,
) -> AuditResult:
    """Run the audit of a case."""
    from likewise.auditing import audit
    from likewise.evaluation import Edit

    matched, metric = case.matched, case.metric
    known = {column.name for column in matched.domain.columns_ if not column.immutable}
    single = {column.name for column in matched.domain.columns_ if len(column.categories) <= 1}
    if not isinstance(case.frame, Path):
        check_varied(case.frame, [name for name in case.sensitive if name in single])
    budget = parse_budget(case.eps)
    return audit(
        matched.model,
        case.frame if isinstance(case.frame, Path) else case.frame[list(matched.columns)],
        case.y,
        metric=metric,
        domain=matched.domain,
        eps=budget if isinstance(budget, float) else metric.budget(budget),
        delta=case.delta,
        search=case.search,
        edits=[
            *(name for name in case.sensitive if name in known and name not in case.edits),
            *(Edit(column, tuple(values)) for column, values in case.edits.items()),
        ],
        budget_seconds=case.budget,
        confidence=case.confidence,
        random_state=case.seed,
        tolerance=case.tolerance if matched.model.loss.regression else None,
        engine=engine,
        map_folder=map_folder,
        progress=progress,
    )


def unbroken(result: AuditResult) -> AuditResult:
    """Return a result, or stop where Ctrl-C broke its search off: beside others, half an audit looks fairer than it is.

    Raises
    ------
    KeyboardInterrupt
    """
    if any(getattr(reason, "key", None) == "reason.broken_off" for reason in result.reasons):
        raise KeyboardInterrupt
    return result


def evaluate_case(
    matched: Matched,
    frame: pd.DataFrame,
    y: Any,
    *,
    sensitive: Sequence[str],
    edits: Mapping[str, Sequence[Any]],
    confidence: float,
    seed: int,
) -> tuple[Evaluation | None, tuple[str, ...]]:
    """Accuracy, consistency and group gaps of a model on people, and why some of them are not known.

    These stand beside an audit: what cannot be computed on a table is left out with its reason, and stops nothing.
    """
    from likewise.evaluation import evaluate

    if matched.model.loss.regression:
        return None, ("accuracy and group gaps are n/a: the model predicts numbers.",)
    groups = [name for name in sensitive if 2 <= frame[name].nunique() <= MAX_GROUPS]
    empty = nobody_there(frame, y, groups)
    unknown = [f"the group gaps of {name} are n/a: {why}." for name, why in empty.items()]
    attributes = [name for name in groups if name not in empty]
    studies = studies_of(groups, edits, matched.columns)
    for asked, compared in ((attributes, studies), (attributes, {}), ((), {})):
        try:
            found = evaluate(
                matched.decide,
                frame,
                np.asarray(y),
                attributes=list(asked),
                studies=compared,
                confidence=confidence,
                random_state=seed,
            )
        except LikewiseError as error:
            unknown.append(f"some measures are n/a: {error}")
        else:
            return found, tuple(dict.fromkeys(unknown))
    return None, tuple(dict.fromkeys(unknown))


def nobody_there(frame: pd.DataFrame, y: Any, groups: Sequence[str]) -> dict[str, str]:
    """Columns whose group gaps are not known because a group has nobody of a class, and which group and class."""
    found = {}
    labels = np.asarray(y)
    for name in groups:
        if frame[name].isna().any():
            found[name] = f"{name} is missing for {int(frame[name].isna().sum()):,} people"
        for value in frame[name].dropna().unique():
            missing = set(labels.tolist()) - set(labels[(frame[name] == value).to_numpy()].tolist())
            if missing:
                found[name] = f"nobody is {name} = {value} and {min(missing, key=str)}"
                break
    return found


def studies_of(
    groups: Sequence[str], edits: Mapping[str, Sequence[Any]], columns: Sequence[str]
) -> dict[str, Any]:
    """Correspondence studies: one for each edit, and one for all sensitive columns together.

    Those of the paper get its names.
    """
    from likewise.evaluation import Edit

    studies: dict[str, Any] = {}
    for column, values in edits.items():
        words = " ↔ ".join(str(value) for value in values)
        studies["S-Con" if set(values) == _SPOUSES else f"{column}: {words}"] = Edit(column, tuple(values))
    seen = [name for name in groups if name in columns]
    if seen:
        paper = set(seen) == {"sex", "race"}
        studies["GR-Con" if paper else f"consistency ({' × '.join(seen)})"] = dict.fromkeys(seen)
    return studies


def diagnose_metric(
    metric: FairMetric | AttributeSubspace | ExpertSubspace,
    frame: pd.DataFrame,
    sensitive: Sequence[str],
    seed: int,
) -> tuple[list[Any], tuple[str, ...]]:
    """What the metric still tells of each sensitive column, how stable it is where its learner is given; why not."""
    from likewise.fair_metrics import diagnose

    found, unknown = [], []
    for name in sensitive:
        try:
            found.append(diagnose(metric, frame, name, random_state=seed))
        except LikewiseError as error:
            unknown.append(f"what the metric hides of {name} is n/a: {error}")
    return found, tuple(unknown)
