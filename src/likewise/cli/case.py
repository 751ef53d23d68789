"""One audit of the command line: a matched model, people, a metric; solved, evaluated, and ready to be shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.cli.options import parse_budget
from likewise.core.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from likewise.auditing import AuditResult
    from likewise.auditing.parts.engine import Engine
    from likewise.domains import TabularDomain
    from likewise.evaluation import Evaluation
    from likewise.fair_metrics import AttributeSubspace, FairMetric
    from likewise.models.matching import Matched

__all__ = [
    "Case",
    "call_classes",
    "diagnose_metric",
    "evaluate_case",
    "fit_metric",
    "metric_columns",
    "nobody_there",
    "read_metric",
    "solve_case",
    "studies_of",
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
    from likewise.cli.people_of_table import find_value, unique_values
    from likewise.models.matching import name_classes

    different = unique_values(values)
    chosen = None if positive is None else find_value(different, positive, what="--positive: the target")
    return replace(matched, model=name_classes(matched.model, different, chosen))


def read_metric(path: Path) -> FairMetric:
    """Load a fair metric, or say that the file is none."""
    from likewise.fair_metrics import FairMetric

    if not path.is_file():
        raise InputError(f"--metric: there is no file {str(path)!r}. `likewise learn-metric` writes one.")
    metric = FairMetric.load(path)
    if metric.feature_map is None:
        raise InputError(
            f"--metric: {path.name} does not say how a table is encoded. Learn it on the table: likewise learn-metric."
        )
    return metric


def metric_columns(metric: FairMetric) -> tuple[str, ...]:
    """Columns of the table that a metric reads."""
    return tuple(column.name for column in getattr(metric.feature_map, "columns_", ()))


def fit_metric(frame: pd.DataFrame, sensitive: Sequence[str], domain: TabularDomain) -> AttributeSubspace:
    """Learn the sensitive subspace of some columns; those that the domain lacks only through their proxies.

    Parameters
    ----------
    frame : DataFrame
        With the domain's columns and the sensitive ones.
    sensitive : sequence of str
    domain : TabularDomain
        Encodes the rows.

    Returns
    -------
    AttributeSubspace
        Fitted; the metric is its ``metric_``.
    """
    from likewise.fair_metrics import AttributeSubspace

    known = [column.name for column in domain.columns_]
    outside = [name for name in sensitive if name not in known]
    learner = AttributeSubspace(list(sensitive), domain=domain)
    return learner.fit(frame[known], sensitive_features=frame[outside] if outside else None)


def solve_case(
    case: Case, *, progress: bool = False, engine: Engine | None = None, map_folder: Path | None = None
) -> AuditResult:
    """Run the audit of a case."""
    from likewise.auditing import audit
    from likewise.evaluation import Edit

    matched, metric = case.matched, case.metric
    known = {column.name for column in matched.domain.columns_ if not column.immutable}
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
        engine=engine,
        map_folder=map_folder,
        progress=progress,
    )


def evaluate_case(
    matched: Matched,
    frame: pd.DataFrame,
    y: Any,
    *,
    sensitive: Sequence[str],
    edits: Mapping[str, Sequence[Any]],
    confidence: float,
    seed: int,
) -> Evaluation:
    """Accuracy, consistency and group gaps of a model on people."""
    from likewise.evaluation import evaluate

    groups = [name for name in sensitive if 2 <= frame[name].nunique() <= MAX_GROUPS]
    unknown = nobody_there(frame, y, groups)
    return evaluate(
        matched.decide,
        frame,
        np.asarray(y),
        attributes=[name for name in groups if name not in unknown],
        studies=studies_of(groups, edits, matched.columns),
        confidence=confidence,
        random_state=seed,
    )


def nobody_there(frame: pd.DataFrame, y: Any, groups: Sequence[str]) -> dict[str, str]:
    """Columns whose group gaps are not known because a group has nobody of a class, and which group and class."""
    found = {}
    labels = np.asarray(y)
    for name in groups:
        for value in frame[name].unique():
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
    metric: FairMetric | AttributeSubspace, frame: pd.DataFrame, sensitive: Sequence[str], seed: int
) -> list[Any]:
    """What the metric still tells of each sensitive column; how stable it is, where its learner is given."""
    from likewise.fair_metrics import diagnose

    return [diagnose(metric, frame, name, random_state=seed) for name in sensitive]
