"""A result as one plain document: what the page shows, and what the JSON file holds."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.auditing.dual.finite_dual import DualCurve
from likewise.auditing.inference.certificate import Bound, Estimate
from likewise.auditing.inference.verdict import Bracket, by_value, give_verdict
from likewise.auditing.results.audit_result import AuditResult
from likewise.core.checks import check_number
from likewise.core.errors import InputError, bad_parameter
from likewise.core.files import atomic_path
from likewise.core.intervals import Measure
from likewise.core.messages import collect_messages
from likewise.counterfactuals.correspondence import CorrespondenceStudy
from likewise.counterfactuals.study import QUESTIONS
from likewise.evaluation.groups import GroupGaps
from likewise.evaluation.summary import Evaluation
from likewise.report.first_words import findings_document, summary_document
from likewise.report.plain import named, plain, plain_cell, plain_number, rounded
from likewise.report.provenance import Provenance
from likewise.report.unfair_map_values import MAX_PEOPLE, map_document

if TYPE_CHECKING:
    from rich.table import Table

    from likewise.counterfactuals.changes import TwinAnswer
    from likewise.counterfactuals.study import TwinStudy
    from likewise.report.comparison import Comparison

# Evaluations and diagnoses of metrics as plain values.


def evaluation_document(evaluation: Evaluation, *, labels: Mapping[Any, str] | None = None) -> dict[str, Any]:
    """Return an evaluation as plain values: measures, correspondence studies, group gaps."""
    names = labels or {}
    known = {measure.name: measure for measure in evaluation.measures}
    return {
        "people": evaluation.n_people,
        "confidence": evaluation.confidence,
        "measures": [_measure(measure) for measure in evaluation.measures],
        "studies": [
            _study(name, study, known.get(name), names) for name, study in evaluation.studies.items()
        ],
        "gaps": [_gaps(gaps, known, names) for gaps in evaluation.gaps.values()],
    }


def diagnosis_document(diagnosis: Any) -> dict[str, Any]:
    """Return the diagnosis of a fair metric as plain values; anything unknown as the text it prints."""
    from likewise.fair_metrics.diagnosis import Diagnosis

    if not isinstance(diagnosis, Diagnosis):
        return {"text": str(diagnosis)}
    ranked = sorted(diagnosis.variance_removed.items(), key=lambda item: -item[1])
    stability = diagnosis.stability
    return {
        "attribute": str(diagnosis.attribute),
        "score": diagnosis.score,
        "rows": diagnosis.n_rows,
        "folds": diagnosis.n_folds,
        "directions": diagnosis.dim,
        "probes": [
            {"name": probe.name, "before": _measure(probe.before), "after": _measure(probe.after)}
            for probe in diagnosis.probes
        ],
        "variance_removed": [
            {"column": str(name), "share": plain_number(share)} for name, share in ranked[:20]
        ],
        "total_variance_removed": plain_number(diagnosis.total_variance_removed),
        "stability": None
        if stability is None
        else {
            "resamples": stability.n_resamples,
            "failed": stability.n_failed,
            "angles": [_measure(angle) for angle in stability.angles],
        },
        "notes": [str(note) for note in diagnosis.notes],
    }


def _measure(measure: Measure) -> dict[str, Any]:
    return {
        "name": str(measure.name),
        "value": plain_number(measure.value),
        "low": plain_number(measure.low),
        "high": plain_number(measure.high),
        "method": measure.method,
    }


def _study(
    name: str, study: CorrespondenceStudy, known: Measure | None, labels: Mapping[Any, str]
) -> dict[str, Any]:
    measure = known or Measure.of(name, study.consistency, study.interval())
    counts = study.counts
    few = counts.shape[1] <= 12  # more are scores, not decisions
    return {
        "name": str(name),
        "people": study.n_people,
        "changed": study.n_flipped,
        "consistency": plain_number(measure.value),
        "low": plain_number(measure.low),
        "high": plain_number(measure.high),
        "decisions": [named(label, labels) for label in counts.columns] if few else [],
        "variants": [
            {"name": str(variant), "counts": [int(n) for n in row] if few else []}
            for variant, row in zip(counts.index, counts.to_numpy(), strict=True)
        ],
    }


def _gaps(gaps: GroupGaps, known: dict[str, Measure], labels: Mapping[Any, str]) -> dict[str, Any]:
    rates = gaps.tpr.to_numpy()
    return {
        "attribute": str(gaps.attribute),
        "classes": [named(label, labels) for label in gaps.classes],
        "groups": [
            {
                "name": str(group),
                "people": [int(n) for n in gaps.counts.to_numpy()[i]],
                "rates": [plain_number(rate) for rate in rates[i]],
            }
            for i, group in enumerate(gaps.groups)
        ],
        "gaps": [plain_number(gap) for gap in gaps.per_class],
        "rms": _gap_measure(f"Gap_RMS {gaps.attribute}", gaps.rms, known),
        "max": _gap_measure(f"Gap_max {gaps.attribute}", gaps.max, known),
    }


def _gap_measure(name: str, value: float, known: dict[str, Measure]) -> dict[str, Any]:
    return _measure(known.get(name) or Measure(name, value, float("nan"), float("nan")))


# A study of three kinds of twins as plain values, and as a table in the terminal.


_MOST_RULES = 6


def twins_document(study: TwinStudy) -> dict[str, Any]:
    """Return a study as plain values that follow the published JSON Schema."""
    return {
        "attribute": study.attribute,
        "values": [plain(value) for value in study.values],
        "people": study.n_people,
        "confidence": study.confidence,
        "rules": list(study.rules),
        "score": study.score,
        "moved": list(study.moved),
        "answers": [_answer(answer, len(study.only_under[answer.question])) for answer in study.answers],
    }


def _answer(answer: TwinAnswer, only: int) -> dict[str, Any]:
    return {
        "question": answer.question,
        "words": QUESTIONS[answer.question],
        "people": answer.n,
        "changed": _measure(answer.changed),
        "effects": [_measure(effect) for effect in answer.effects],
        "groups": [
            {
                "group": plain(group.group),
                "people": group.n,
                "changed": _measure(group.changed),
                "change": _measure(group.change),
            }
            for group in answer.groups
        ],
        "validity": _measure(answer.validity),
        "level": answer.level,
        "twins": answer.n_twins,
        "implausible": answer.n_implausible,
        "dropped": [{"why": why, "twins": count} for why, count in answer.dropped.items()],
        "interval": answer.interval,
        "only_here": only,
        "notes": list(answer.notes),
    }


def twins_table(study: TwinStudy) -> Table:
    """Return a study as a table for the terminal; what comes from data is text, never markup."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE, title=Text(f"Three kinds of twins by {study.attribute}"), title_justify="left"
    )
    for name in (
        "twins differ in",
        "people",
        "decision changes",
        "change of score",
        "plausible",
        "only here",
    ):
        table.add_column(name, justify="left" if name == "twins differ in" else "right")
    for answer in study.answers:
        table.add_row(
            Text(str(QUESTIONS[answer.question])),
            f"{answer.n:,}",
            _share(answer.changed),
            _change(answer.effects[0]) if len(answer.effects) == 1 else "",
            f"{answer.validity.value:.1%}" if answer.n_twins else "n/a",
            f"{len(study.only_under[answer.question]):,}",
        )
        for effect in answer.effects if len(answer.effects) > 1 else ():
            table.add_row(Text(f"  {effect.name}", style="dim"), "", "", _change(effect), "", "")
        for group in answer.groups:
            table.add_row(
                Text(f"  of {study.attribute} = {group.group}", style="dim"),
                f"{group.n:,}",
                _share(group.changed),
                _change(group.change),
                "",
                "",
            )
    return table


def twins_words(study: TwinStudy) -> list[str]:
    """Return what to know of a study's table in the terminal: what was measured, the rules, who was not compared."""
    first, rest = study.values[0], ", ".join(str(value) for value in study.values[1:])
    words = [
        f"change of score: the mean with {rest} less that with {first}; by group, the twins' less the people's own "
        f"(score: {study.score})",
    ]
    if study.moved:
        words.append(f"columns that follow along the graph: {', '.join(study.moved)}")
    if study.rules:
        more = f"; and {len(study.rules) - _MOST_RULES} more" if len(study.rules) > _MOST_RULES else ""
        words.append(f"rules that twins keep to: {'; '.join(study.rules[:_MOST_RULES])}{more}")
    for answer in study.answers:
        about = [f"{count:,} twins not compared: {why}" for why, count in answer.dropped.items()]
        about += [*map(str, answer.notes), f"intervals {answer.interval}"]
        words.append(f"{QUESTIONS[answer.question]}: {'; '.join(about)}")
    return words


def _share(measure: Measure) -> str:
    return _said(measure, ".1%")


def _change(measure: Measure) -> str:
    return _said(measure, "+.3f")


def _said(measure: Measure, form: str) -> str:
    if math.isnan(measure.value):
        return "n/a"
    if math.isnan(measure.low):
        return f"{measure.value:{form}}"
    return f"{measure.value:{form}} [{measure.low:{form}}, {measure.high:{form}}]".replace("[", "\\[")


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
    return document | {"said": collect_messages(document)}


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
    """Return the document of an audit or of a comparison."""
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
