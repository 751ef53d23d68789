"""MLflow: an audit beside the other metrics of a run, with its page and its evidence as artifacts."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from likewise.auditing import AuditResult
from likewise.core.errors import InputError, require
from likewise.evaluation.impact import ImpactTable, impact_tables
from likewise.evaluation.summary import Evaluation
from likewise.report import audit_document, write_json
from likewise.report.evidence import write_evidence
from likewise.report.provenance import Provenance

_WHY = "Logging an audit to MLflow"
# What MLflow takes in the name of a metric.
_NOT_IN_NAMES = re.compile(r"[^\w\-. :/]+")


def log_audit(
    result: AuditResult,
    *,
    run_id: str | None = None,
    prefix: str = "fairness",
    name: str | None = None,
    evaluation: Evaluation | None = None,
    impact: Sequence[ImpactTable] = (),
    provenance: Provenance | None = None,
    page: bool = True,
) -> str:
    """Log an audit to an MLflow run: numbers as metrics, the verdict as a tag, page and evidence as artifacts.

    Parameters
    ----------
    result : AuditResult
    run_id : str, optional
        The run; default the active one.
    prefix : str, default="fairness"
        Before the names of metrics and tags, and the folder of the artifacts.
    name, evaluation, impact, provenance
        As in `likewise.report.write_evidence`.
    page : bool, default=True
        Whether to log ``audit.html`` too, which needs the extra "report".

    Returns
    -------
    str
        The run's id.

    Examples
    --------
    >>> from likewise.core.errors import InputError
    >>> try:
    ...     log_audit(None)
    ... except InputError as error:
    ...     print(error)
    log_audit: no MLflow run is active. Call it within mlflow.start_run(), or pass run_id=…
    """
    mlflow = require("mlflow", extra="mlflow", why=_WHY)
    if run_id is None:
        active = mlflow.active_run()
        if active is None:
            raise InputError(
                "log_audit: no MLflow run is active. Call it within mlflow.start_run(), or pass run_id=…"
            )
        run_id = str(active.info.run_id)
    with tempfile.TemporaryDirectory(prefix="likewise-") as temporary:
        # Everything is made before anything is logged.
        folder = Path(temporary) / prefix
        write_evidence(result, folder, name=name, evaluation=evaluation, impact=impact, provenance=provenance)
        write_json(result, folder / "audit.json", evaluation=evaluation, provenance=provenance)
        if page:
            from likewise.report import write_html

            write_html(result, folder / "audit.html", evaluation=evaluation, provenance=provenance)
        document = audit_document(result, name=name, evaluation=evaluation)
        mlflow.log_metrics(_metrics(document, prefix, impact), run_id=run_id)
        client = mlflow.MlflowClient()
        client.set_tag(run_id, f"{prefix}.verdict", document["verdict"]["kind"])
        client.set_tag(run_id, f"{prefix}.summary", document["summary"]["text"])
        client.log_artifacts(run_id, str(folder), artifact_path=prefix)
    return run_id


def impact_ratio_metric(
    people: pd.DataFrame, sensitive_features: Sequence[str], *, favourable: Any = 1
) -> Any:
    """Make an extra metric for ``mlflow.models.evaluate``: the lowest impact ratio of each sensitive column.

    MLflow hands predictions to a metric and nothing else, so an audit, which must ask the model about counterparts, goes by
    `log_audit`; what predictions alone can tell is this.

    Parameters
    ----------
    people : DataFrame
        The evaluated people, in the order of the predictions.
    sensitive_features : sequence of str
        Their columns.
    favourable : object, default=1
        The prediction that counts as selected.

    Returns
    -------
    mlflow.models.EvaluationMetric

    Examples
    --------
    >>> people = pd.DataFrame({"sex": ["F", "F", "M", "M"]})
    >>> metric = impact_ratio_metric(people, ["sex"])
    >>> metric.eval_fn([1, 0, 1, 1]).aggregate_results
    {'sex': 0.5}
    """
    models = require("mlflow.models", extra="mlflow", why="A metric for MLflow's evaluate")
    metrics = require("mlflow.metrics", extra="mlflow", why="A metric for MLflow's evaluate")

    def lowest_impact_ratio(predictions: Any, targets: Any = None) -> Any:
        tables = impact_tables(
            pd.Series(predictions).to_numpy() == favourable, people, list(sensitive_features)
        )
        return metrics.MetricValue(aggregate_results=_lowest(tables))

    return models.make_metric(eval_fn=lowest_impact_ratio, greater_is_better=True, name="impact_ratio")


def _metrics(document: dict[str, Any], prefix: str, impact: Sequence[ImpactTable]) -> dict[str, float]:
    numbers, only = document["numbers"], document["numbers"]["sensitive_only"]
    found = {"changed_decisions": (numbers["changed"] or {}).get("share", numbers.get("changed_decisions"))}
    if "gap" in numbers:
        found |= {
            "gap": numbers["gap"]["value"],
            "pure_gap": numbers["pure_gap"]["value"],
            "base_loss": numbers["base_loss"],
            "worst_loss": numbers["worst_loss"],
            "p_value": document["test"]["p_value"],
        }
    if only is not None:
        found["sensitive_only.gap"] = None if only["gap"] is None else only["gap"]["value"]
        found["sensitive_only.changed_decisions"] = (only["changed_decisions"] or {}).get("value")
    if document["evaluation"] is not None:
        found |= {one["name"]: one["value"] for one in document["evaluation"]["measures"]}
    found |= {f"impact_ratio.{name}": value for name, value in _lowest(impact).items()}
    return {
        f"{prefix}.{_NOT_IN_NAMES.sub('_', name)}": float(value)
        for name, value in found.items()
        if value is not None
    }


def _lowest(tables: Sequence[ImpactTable]) -> dict[str, float]:
    found = {}
    for table in tables:
        ratios = [row.impact_ratio for row in table.rows if row.impact_ratio is not None]
        if ratios:
            found[_NOT_IN_NAMES.sub("_", table.attribute)] = min(ratios)
    return found
