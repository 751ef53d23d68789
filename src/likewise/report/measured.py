"""Evaluations and diagnoses of metrics as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from likewise.evaluation import Evaluation
from likewise.evaluation.correspondence import CorrespondenceStudy
from likewise.evaluation.group_gaps import GroupGaps
from likewise.evaluation.measures import Measure
from likewise.report.plain import named, plain_number

__all__ = ["diagnosis_document", "evaluation_document"]


def evaluation_document(evaluation: Evaluation, *, labels: Mapping[Any, str] | None = None) -> dict[str, Any]:
    """Return an evaluation as plain values: measures, correspondence studies, group gaps.

    Parameters
    ----------
    evaluation : Evaluation
    labels : mapping, optional
        Names of the labels and decisions.

    Returns
    -------
    dict

    Examples
    --------
    >>> from likewise.evaluation import evaluate
    >>> document = evaluation_document(evaluate([1, 0, 1, 0] * 50, None, [1, 0, 0, 0] * 50))
    >>> document["people"], document["measures"][0]["name"], document["measures"][0]["value"]
    (200, 'accuracy', 0.75)
    """
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
    """Return the diagnosis of a fair metric as plain values; anything unknown as the text it prints.

    Parameters
    ----------
    diagnosis : Diagnosis, or any object that prints

    Returns
    -------
    dict

    Examples
    --------
    >>> diagnosis_document("all is well")
    {'text': 'all is well'}
    """
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
