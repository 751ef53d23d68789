"""An improvement as plain values: the search for a less discriminatory alternative, documented."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from likewise._version import __version__
from likewise.evaluation.measures import Measure
from likewise.improving.figures import ACCURACY
from likewise.improving.improvement import Improvement, Unseen
from likewise.improving.rule import UNFAIRNESS

__all__ = ["KIND", "improvement_document"]

KIND = "likewise.improvement"
SCHEMA_VERSION = 1


def improvement_document(improvement: Improvement) -> dict[str, Any]:
    """Return an improvement as JSON values, every alternative included.

    Parameters
    ----------
    improvement : Improvement

    Returns
    -------
    dict
        Of kind ``"likewise.improvement"``. What is not a number is None.
    """
    fronts = {name: improvement.frontier(name) for name in UNFAIRNESS}
    rule = improvement.rule
    return {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "sentence": improvement.sentence(),
        "rule": {
            "text": str(rule),
            "within": rule.within,
            "of": ACCURACY,
            "least": list(rule.least),
            "alike": rule.alike,
        },
        "chosen": improvement.chosen,
        "eps": improvement.eps,
        "confidence": improvement.confidence,
        "people": {"train": improvement.n_train, "test": improvement.n_test, "folds": improvement.folds},
        "alternatives": [
            {
                "name": one.name,
                "note": one.note,
                "chosen": one.name == improvement.chosen,
                "accurate_enough": one.accurate_enough,
                "on_frontier": {name: one.name in names for name, names in fronts.items()},
                "figures": _figures(one.figures),
                "cpu_seconds": round(one.cpu_seconds, 2),
                "warnings": list(one.warnings),
            }
            for one in improvement.alternatives
        ],
        "failed": dict(improvement.failed),
        "unseen": {
            "chosen": _unseen(improvement.unseen),
            "reference": _unseen(improvement.reference),
        },
        "notes": list(improvement.notes),
        "command": improvement.command,
        "version": __version__,
    }


def _unseen(unseen: Unseen) -> dict[str, Any]:
    return {
        "name": unseen.name,
        "figures": _figures(unseen.figures),
        "announced": _figures(unseen.announced),
        "surprises": list(unseen.surprises),
    }


def _figures(measures: Sequence[Measure]) -> dict[str, Any]:
    return {
        m.name: {
            "value": _number(m.value),
            "low": _number(m.low),
            "high": _number(m.high),
            "interval": m.method,
        }
        for m in measures
    }


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
