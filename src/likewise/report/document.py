"""A result as one plain document: what the page shows, and what the JSON file holds."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.auditing.audit_result import AuditResult
from likewise.auditing.claims.bracket import Bracket
from likewise.auditing.claims.certificate import Bound, Estimate
from likewise.auditing.claims.most_affected import by_value
from likewise.auditing.claims.verdict import give_verdict
from likewise.auditing.support.dual_curve import DualCurve
from likewise.core.checks import check_number
from likewise.core.errors import InputError, bad_parameter
from likewise.core.files import atomic_path
from likewise.evaluation import Evaluation
from likewise.report.first_words import findings_document, summary_document
from likewise.report.measured import diagnosis_document, evaluation_document
from likewise.report.plain import plain, plain_cell, plain_number, rounded
from likewise.report.provenance import Provenance
from likewise.report.twin_documents import twins_document
from likewise.report.unfair_map_values import MAX_PEOPLE, map_document
from likewise.texts import collect_said

if TYPE_CHECKING:
    from likewise.report.comparison import Comparison
    from likewise.twins.twin_study import TwinStudy

__all__ = ["SCHEMA_VERSION", "audit_document", "check_target", "document_of", "json_schema", "write_json"]

SCHEMA_VERSION = 5
KINDS = ("audit", "comparison")


def audit_document(
    result: AuditResult,
    *,
    name: str | None = None,
    evaluation: Evaluation | None = None,
    diagnoses: Sequence[Any] = (),
    max_people: int = MAX_PEOPLE,
    labels: Mapping[Any, str] | None = None,
    provenance: Provenance | None = None,
    twins: Sequence[TwinStudy] = (),
) -> dict[str, Any]:
    """Return an audit as plain values that follow the published JSON Schema.

    Parameters
    ----------
    result : AuditResult
    name : str, optional
        What was audited.
    evaluation : Evaluation, optional
        Accuracy, correspondence studies and group gaps of the same model.
    diagnoses : sequence of Diagnosis, optional
        What `diagnose` found about the fair metric.
    max_people : int, default=200
        How many of the most harmed people to list for each of the two maps.
    labels : mapping, optional
        Names of the labels and decisions, such as ``{0: "refused", 1: "granted"}``.
    provenance : Provenance, optional
        When, of which files, by which command.
    twins : sequence of TwinStudy, optional
        Studies of three kinds of twins of the same people.

    Returns
    -------
    dict
        Of kind ``"likewise.report.audit"``; see `json_schema`. Sentences are English; ``said`` holds what they are
        made of, so that a page can say them in another language.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import likewise as lw
    >>> from likewise.auditing.auditor import audit
    >>> from likewise.models import as_model
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    >>> result = audit(as_model(score, takes_frame=True), people, [0, 1, 1, 1], metric=metric, delta=0.1)
    >>> document = audit_document(result)
    >>> document["verdict"]["kind"], round(document["numbers"]["pure_gap"]["value"], 3)
    ('unfair', 0.243)
    """
    if not isinstance(result, AuditResult):
        raise bad_parameter(
            "audit_document", "result", allowed="an AuditResult", got=f"a {type(result).__name__}"
        )
    max_people = int(check_number(max_people, owner="audit_document", name="max_people", low=1))
    verdict = give_verdict(result)
    maps = [("free", 0.0, result.pure_map)]
    if result.eps > 0:
        maps.append(("budget", result.eps, result.unfair_map))
    bound = result.certificate.bound
    document: dict[str, Any] = {
        "kind": "likewise.report.audit",
        "schema_version": SCHEMA_VERSION,
        "summary": summary_document(result, labels),
        "name": None if name is None else str(name),
        "provenance": None if provenance is None else provenance.document(),
        "verdict": {
            "kind": verdict.kind,
            "title": verdict.title,
            "sentence": verdict.sentence,
            "delta": plain_number(result.delta),
            "words": None if verdict.kind == "no limit" else result.verdict(),
        },
        "findings": findings_document(result.findings),
        "numbers": _numbers(result),
        "test": _test(result),
        "certificate": {
            "estimate": _claim(result.certificate.estimate),
            "bound": None if bound is None else _claim(bound),
            "population_bound": None if result.population_bound is None else _claim(result.population_bound),
            "brackets": [_bracket(bracket) for bracket in result.brackets],
        },
        "assumptions": list(result.assumptions),
        "maps": [
            map_document(
                found, id=id, eps=eps, max_people=max_people, labels=labels, first=_sensitive_columns(result)
            )
            for id, eps, found in maps
        ],
        "curve": _curve(result.curve, result.eps, result.delta),
        "evaluation": None if evaluation is None else evaluation_document(evaluation, labels=labels),
        "diagnoses": [diagnosis_document(diagnosis) for diagnosis in diagnoses],
        "computed": {
            "status": result.status,
            "reasons": list(result.reasons),
            "left_out": list(result.left_out),
            "search": result.search,
            "settings": plain(result.settings),
            "cpu_seconds": {str(part): float(seconds) for part, seconds in result.timing.items()},
        },
    }
    if twins:
        document["twins"] = [twins_document(study) for study in twins]
    return document | {"said": collect_said(document)}


def document_of(
    result: AuditResult | Comparison,
    *,
    evaluation: Evaluation | None = None,
    diagnoses: Sequence[Any] = (),
    max_people: int = MAX_PEOPLE,
    labels: Mapping[Any, str] | None = None,
    provenance: Provenance | None = None,
    twins: Sequence[TwinStudy] = (),
) -> dict[str, Any]:
    """Return the document of an audit or of a comparison.

    Parameters
    ----------
    result : AuditResult or Comparison
    evaluation, diagnoses, max_people, labels, provenance, twins
        As in `audit_document`; a comparison brings its own evaluations.
    """
    from likewise.report.comparison import Comparison, comparison_document

    if isinstance(result, Comparison):
        if evaluation is not None:
            raise InputError(
                "report: 'evaluation' goes with one audit. A Comparison has one in each of its entries."
            )
        return comparison_document(
            result, diagnoses=diagnoses, max_people=max_people, labels=labels, provenance=provenance
        )
    if not isinstance(result, AuditResult):
        raise bad_parameter(
            "report", "result", allowed="an AuditResult or a Comparison", got=f"a {type(result).__name__}"
        )
    return audit_document(
        result,
        evaluation=evaluation,
        diagnoses=diagnoses,
        max_people=max_people,
        labels=labels,
        provenance=provenance,
        twins=twins,
    )


def write_json(
    result: AuditResult | Comparison,
    path: str | Path,
    *,
    evaluation: Evaluation | None = None,
    diagnoses: Sequence[Any] = (),
    max_people: int = MAX_PEOPLE,
    labels: Mapping[Any, str] | None = None,
    provenance: Provenance | None = None,
    twins: Sequence[TwinStudy] = (),
    overwrite: bool = False,
) -> None:
    """Write an audit or a comparison as a JSON file, whole or not at all.

    Parameters
    ----------
    result : AuditResult or Comparison
    path : path-like
        The file; its folder must exist.
    evaluation, diagnoses, max_people, labels, provenance, twins
        As in `audit_document`.
    overwrite : bool, default=False
        Replace a file that exists.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import likewise as lw
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    >>> result = lw.audit(score, people, [0, 1, 1, 1], metric=metric, eps=0.0)
    >>> import json, pathlib, tempfile
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "audit.json"
    >>> write_json(result, target)
    >>> json.loads(target.read_text(encoding="utf-8"))["kind"]
    'likewise.report.audit'
    """
    target = check_target(path, owner="write_json", overwrite=overwrite)
    document = document_of(
        result,
        evaluation=evaluation,
        diagnoses=diagnoses,
        max_people=max_people,
        labels=labels,
        provenance=provenance,
        twins=twins,
    )
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    with atomic_path(target) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def json_schema(kind: str = "audit") -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the documents.

    Parameters
    ----------
    kind : {"audit", "comparison"}, default="audit"

    Returns
    -------
    dict

    Examples
    --------
    >>> json_schema("audit")["title"]
    'An audit by likewise'
    """
    if kind not in KINDS:
        raise bad_parameter("json_schema", "kind", allowed="'audit' or 'comparison'", got=repr(kind))
    file = resources.files("likewise.report") / "assets" / f"{kind}.schema.json"
    schema: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return schema


def check_target(path: str | Path, *, owner: str, overwrite: bool) -> Path:
    """Return the path of a file to be written, or raise an error that says why it cannot be."""
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(f"{owner}: the folder {target.parent} does not exist. Make it first.")
    if target.is_dir():
        raise InputError(f"{owner}: {target} is a folder. Name a file in it.")
    if target.exists() and not overwrite:
        raise InputError(f"{owner}: {target} exists. Choose another path, or pass overwrite=True.")
    return target


def _numbers(result: AuditResult) -> dict[str, Any]:
    low, high = result.test.interval
    return {
        "people": result.n,
        "eps": plain_number(result.eps),
        "base_loss": plain_number(result.base_loss),
        "worst_loss": plain_number(result.value),
        "pure_gap": _estimate(result.pure_gap, low, high, result.test.confidence),
        "gap": _estimate(result.gap, result.interval.low, result.interval.high, result.interval.confidence),
        "sensitive_only": _sensitive_only(result),
        "changed_decisions": plain_number(result.flipped),
        "lambda": plain_number(result.lambda_),
        "transport": plain_number(result.transport),
    }


def _sensitive_columns(result: AuditResult) -> list[str]:
    return [] if result.sensitive is None else list(result.sensitive.columns)


def _sensitive_only(result: AuditResult) -> dict[str, Any] | None:
    found, confidence = result.sensitive, float(result.settings.get("confidence", 0.95))
    if found is None:
        return None
    changed = None
    if found.changed is not None and found.changed_interval is not None:
        changed = _estimate(found.changed, *found.changed_interval, confidence)
    return {
        "columns": list(found.columns),
        "changed_decisions": changed,
        "exact": found.exact,
        "tolerance": plain_number(found.tolerance),
        "gap": _estimate(found.gap, *found.gap_interval, confidence),
        "groups": [
            {
                "column": group.column,
                "value": plain_cell(group.value),
                "people": group.people,
                "changed": group.changed,
            }
            for group in by_value(found.groups)
        ],
    }


def _estimate(value: float, low: float, high: float, confidence: float) -> dict[str, Any]:
    return {
        "value": plain_number(value),
        "low": plain_number(low),
        "high": plain_number(high),
        "confidence": confidence,
    }


def _test(result: AuditResult) -> dict[str, Any]:
    test = result.test
    low, high = test.interval
    return {
        "quantity": test.quantity,
        "method": test.method,
        "estimate": plain_number(test.estimate),
        "low": plain_number(low),
        "high": plain_number(high),
        "confidence": test.confidence,
        "threshold": plain_number(test.threshold),
        "statistic": plain_number(test.statistic),
        "p_value": plain_number(test.p_value),
        "rejected": bool(test.rejected),
        "people": test.n,
    }


def _claim(claim: Estimate | Bound) -> dict[str, Any]:
    plain_claim = {
        field.name: plain(getattr(claim, field.name))
        for field in dataclasses.fields(claim)
        if field.name not in ("value", "gap", "lambda_", "n")
    }
    return plain_claim | {
        "worst_loss": plain_number(claim.value),
        "gap": plain_number(claim.gap),
        "lambda": plain_number(claim.lambda_),
        "people": claim.n,
    }


def _bracket(bracket: Bracket) -> dict[str, Any]:
    return dataclasses.asdict(bracket) | {
        name: plain_number(getattr(bracket, name)) for name in ("eps", "lower", "upper")
    }


def _curve(curve: DualCurve, eps: float, delta: float | None) -> dict[str, Any]:
    """V(ε) − mean loss at the chosen budget, finely around it, and coarsely to the end of the curve."""
    end = float(curve.eps[-1])
    near = min(4 * eps, end)
    # Rounded first, so that every number written is the curve's at the ε written beside it.
    points = [rounded(e) for e in (*curve.thin(160).eps, *np.linspace(0.0, near, 81), min(eps, end))]
    budgets = np.unique(np.asarray(points, dtype=float))
    return {
        "near": rounded(near),
        "eps": [rounded(e) for e in budgets],
        "gap": [rounded(g) for g in curve.gap(budgets)],
        "lambda": [rounded(slope) for slope in curve.lambda_(budgets)],
        "eps_at_delta": None if delta is None else plain_number(curve.eps_for_gap(delta)),
    }
