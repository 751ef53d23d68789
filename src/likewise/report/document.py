"""A result as one plain document: what the page shows, and what the JSON file holds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.auditing.dual.finite_dual import DualCurve
from likewise.auditing.inference.certificate import Bound, Estimate
from likewise.auditing.inference.verdict import gap_words
from likewise.auditing.results.audit_result import AuditResult, WorstCase
from likewise.auditing.results.files import KIND, SCHEMA_VERSION, result_values
from likewise.core.checks import check_number
from likewise.core.errors import bad_parameter
from likewise.core.files import sealed
from likewise.core.intervals import Measure
from likewise.core.messages import collect_messages
from likewise.core.plain import named, plain, plain_fields, plain_number, rounded
from likewise.core.text import interval_ends, join_words, short_number
from likewise.report.first_words import MAX_LISTED, changed_document, findings_document, summary_document
from likewise.report.provenance import Provenance
from likewise.report.templates import asset
from likewise.report.unfair_map_values import MAX_PEOPLE, map_document

if TYPE_CHECKING:
    from likewise.counterfactuals.changes import TwinAnswer
    from likewise.counterfactuals.correspondence import CorrespondenceStudy
    from likewise.counterfactuals.study import TwinStudy
    from likewise.evaluation.groups import GroupGaps
    from likewise.evaluation.summary import Evaluation

KINDS = ("audit", "comparison")


def evaluation_document(evaluation: Evaluation, *, labels: Mapping[Any, str] | None = None) -> dict[str, Any]:
    """Return an evaluation as plain values: measures, correspondence studies, group gaps."""
    names = labels or {}
    known = {measure.name: measure for measure in evaluation.measures}
    return {
        "people": evaluation.n_people,
        "confidence": evaluation.confidence,
        "measures": [plain_fields(measure) for measure in evaluation.measures],
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
    stability, names = diagnosis.stability, dict.fromkeys(("kind", "variance_removed", "stability", "notes"))
    return plain_fields(diagnosis, n_rows="rows", n_folds="folds", dim="directions", **names) | {
        "variance_removed": [
            {"column": str(name), "share": plain_number(share)} for name, share in ranked[:20]
        ],
        "stability": None
        if stability is None
        else plain_fields(stability, n_resamples="resamples", n_failed="failed", dims=None),
        "notes": [str(note) for note in diagnosis.notes],
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
    def with_interval(kind: str, value: float) -> dict[str, Any]:
        name = f"{kind} {gaps.attribute}"
        return plain_fields(known.get(name) or Measure(name, value, np.nan, np.nan))

    people, rates = gaps.counts.to_numpy().tolist(), gaps.tpr.to_numpy()
    return {
        "attribute": str(gaps.attribute),
        "classes": [named(label, labels) for label in gaps.classes],
        "groups": [
            {"name": str(group), "people": people[i], "rates": [plain_number(rate) for rate in rates[i]]}
            for i, group in enumerate(gaps.groups)
        ],
        "gaps": [plain_number(gap) for gap in gaps.per_class],
        "rms": with_interval("Gap_RMS", gaps.rms),
        "max": with_interval("Gap_max", gaps.max),
    }


def twins_document(study: TwinStudy) -> dict[str, Any]:
    """Return a study of three kinds of counterfactuals as plain values that follow the published JSON Schema."""
    return {
        "attribute": study.attribute,
        "values": plain(study.values),
        "people": study.n_people,
        "confidence": study.confidence,
        "rules": list(study.rules),
        "score": study.score,
        "moved": list(study.moved),
        "answers": [_answer(answer, len(study.only_under[answer.question])) for answer in study.answers],
    }


def _answer(answer: TwinAnswer, only: int) -> dict[str, Any]:
    names = dict.fromkeys(("groups", "dropped", "flips", "asked", "notes", "e_values"))
    counts: dict[str, Any] = {"n": "people", "n_twins": "twins", "n_implausible": "implausible"}
    return plain_fields(answer, **counts, **names) | {
        "words": answer.words,
        "groups": [plain_fields(group, n="people") for group in answer.groups],
        "dropped": [{"why": why, "twins": count} for why, count in answer.dropped.items()],
        "only_here": only,
        "notes": list(answer.notes),
    }


def audit_document(
    result: AuditResult,
    *,
    name: str | None = None,
    evaluation: Evaluation | None = None,
    diagnoses: Sequence[Any] = (),
    max_people: int = MAX_LISTED,
    labels: Mapping[Any, str] | None = None,
    provenance: Provenance | None = None,
    twins: Sequence[TwinStudy] = (),
    complete: bool = False,
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
    max_people : int, default=500
        How many of the people whose decision would change to list; of those with the most added loss at most 200.
    labels : mapping, optional
        Names of the labels and decisions, such as ``{0: "refused", 1: "granted"}``.
    provenance : Provenance, optional
        When, of which files, by which command.
    twins : sequence of TwinStudy, optional
        Studies of three kinds of counterfactuals of the same people.
    complete : bool, default=False
        Add the whole result, with the rows of everybody audited, so that `AuditResult.load` can read it back.

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
    ('depends', 0.243)
    """
    if not isinstance(result, AuditResult):
        raise bad_parameter("audit_document", "result", "an AuditResult", f"a {type(result).__name__}")
    max_people = int(check_number(max_people, owner="audit_document", name="max_people", low=1))
    verdict, summary = result.headline, summary_document(result, labels)
    worst = result.worst_case
    maps = [] if worst is None else [("free", 0.0, worst.pure_map)]
    if worst is not None and worst.eps > 0:
        maps.append(("budget", worst.eps, worst.unfair_map))
    document: dict[str, Any] = {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "summary": {**summary, "people": summary["people"][:max_people]},
        "asked": {
            "metric": worst is not None,
            "delta": result.delta is not None,
            "limit": result.limit is not None,
        },
        "name": None if name is None else str(name),
        "provenance": None if provenance is None else provenance.document(),
        "verdict": {
            "kind": verdict.badge,
            "title": verdict.title,
            "sentence": verdict.sentence,
            "delta": plain_number(result.delta),
            "words": None if result.delta is None else result.verdict(),
            "gap_sentence": gap_words(result),
        },
        "findings": findings_document(result.findings),
        "numbers": numbers_document(result),
        "test": None if worst is None else _test(worst),
        "certificate": None if worst is None else _certificate(worst),
        "assumptions": list(result.assumptions),
        "maps": [
            map_document(found, id=id, eps=eps, max_people=min(max_people, MAX_PEOPLE), labels=labels)
            for id, eps, found in maps
        ],
        "curve": None if worst is None else _curve(worst.curve, worst.eps, worst.delta),
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
    document["said"] = collect_messages(document)
    return sealed(document | {"result": result_values(result)}) if complete else document


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
        raise bad_parameter("json_schema", "kind", "'audit' or 'comparison'", repr(kind))
    schema: dict[str, Any] = json.loads(asset(f"{kind}.schema.json"))
    return schema | ({"$defs": {"audit": json_schema()}} if kind == "comparison" else {})


def numbers_document(result: AuditResult) -> dict[str, Any]:
    """Return the numbers of an audit as plain values; those of the worst case if it was asked for."""
    found: dict[str, Any] = {
        "people": result.n,
        "sensitive_only": _sensitive_only(result),
        "changed": changed_document(result),
    }
    worst = result.worst_case
    if worst is None:
        return found
    low, high = worst.test.interval
    ends = worst.interval
    return found | {
        "eps": plain_number(worst.eps),
        "base_loss": plain_number(worst.base_loss),
        "worst_loss": plain_number(worst.value),
        "pure_gap": _estimate(worst.pure_gap, low, high, worst.test.confidence),
        "gap": _estimate(result.gap, ends.low, ends.high, ends.confidence),
        "changed_decisions": plain_number(worst.flipped),
        "lambda": plain_number(worst.lambda_),
        "transport": plain_number(worst.transport),
    }


def number_rows(numbers: Mapping[str, Any]) -> list[list[str]]:
    """Return the numbers of an audit as rows of a table: what, value, interval."""
    rows = []
    only = numbers["sensitive_only"]
    if only is not None:
        start, share = f"only {join_words(only['columns'])} changed", only["changed_decisions"]
        if share is not None:
            apart = only["tolerance"]
            what = "decided differently" if apart is None else f"predicted more than {apart:g} apart"
            value = f"{'' if only['exact'] else 'at least '}{share['value']:.1%}"
            rows.append([f"{start}: {what}", value, f"{share['low']:.1%} to {share['high']:.1%}"])
        if only["gap"] is not None:
            rows.append(_row(f"{start}: added to the mean loss", only["gap"]))
    if "gap" not in numbers:
        return rows
    rows.append(_row("zero-distance gap (ε = 0)", numbers["pure_gap"]))
    if numbers["eps"]:
        rows.append(_row(f"gap at ε = {numbers['eps']:g}", numbers["gap"]))
    free = numbers["changed_decisions"]
    rows.append(["free under the metric: decided differently", "n/a" if free is None else f"{free:.1%}", ""])
    return [*rows, ["mean loss of the people as they are", short_number(numbers["base_loss"]), ""]]


def _row(name: str, found: Mapping[str, Any]) -> list[str]:
    return [name, short_number(found["value"]), interval_ends(found["low"], found["high"])]


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
        "gap": None
        if found.gap is None or found.gap_interval is None
        else _estimate(found.gap, *found.gap_interval, confidence),
        "groups": _groups(result),
    }


def _groups(result: AuditResult) -> list[dict[str, Any]]:
    """How many people of each sensitive value can get another decision."""
    table = result.group_rates
    if table is None or not len(table):
        return []
    rows = table[["attribute", "value", "people", "changed"]].rename(columns={"attribute": "column"})
    return list(plain(rows.to_dict("records")))


def _estimate(value: float, low: float, high: float, confidence: float) -> dict[str, Any]:
    return {
        "value": plain_number(value),
        "low": plain_number(low),
        "high": plain_number(high),
        "confidence": confidence,
    }


def _test(worst: WorstCase) -> dict[str, Any]:
    values = plain_fields(worst.test, n="people")
    del values["interval"], values["about"]
    low, high = map(plain_number, worst.test.interval)
    return values | {"low": low, "high": high, "rejected": bool(worst.test.rejected)}


def _certificate(worst: WorstCase) -> dict[str, Any]:
    return {
        "estimate": _claim(worst.certificate.estimate),
        "bound": _claim(worst.certificate.bound),
        "population_bound": _claim(worst.population_bound),
        "brackets": [plain_fields(bracket) for bracket in worst.brackets],
    }


def _claim(claim: Estimate | Bound | None) -> dict[str, Any] | None:
    if claim is None:
        return None
    return plain_fields(claim, value="worst_loss", lambda_="lambda", n="people")


def _curve(curve: DualCurve, eps: float, delta: float | None) -> dict[str, Any]:
    """V(ε) − mean loss at the chosen ε, finely around it, and coarsely to the end of the curve."""
    end = float(curve.eps[-1])
    near = min(4 * eps, end)
    # Rounded first, so that every number written is the curve's at the ε written beside it.
    points = [rounded(e) for e in (*curve.thin(160).eps, *np.linspace(0.0, near, 81), min(eps, end))]
    tolerances = np.unique(np.asarray(points, dtype=float))
    return {
        "near": rounded(near),
        "eps": [rounded(e) for e in tolerances],
        "gap": [rounded(g) for g in curve.gap(tolerances)],
        "lambda": [rounded(slope) for slope in curve.lambda_(tolerances)],
        "eps_at_delta": None if delta is None else plain_number(curve.eps_for_gap(delta)),
    }
