"""Table 1 of the paper: its columns and its figures."""

from __future__ import annotations

from likewise.experiments.study import Published, StudyMeasure

__all__ = ["MEASURES", "METHODS", "PUBLISHED"]

MEASURES = (
    StudyMeasure("accuracy", "Accuracy", 3, "higher"),
    StudyMeasure("race gap", "Race gap", 2, "lower"),
    StudyMeasure("gender gap", "Gender gap", 2, "lower"),
    StudyMeasure("cuisine gap", "Cuisine gap", 2, "lower"),
    StudyMeasure("spread", "Spread of names", 2, "lower"),
)

# Table 1 of the paper, in the order of MEASURES without the last, which the paper only draws.
_PAPER: dict[str, tuple[tuple[float, float], ...]] = {
    "Baseline": ((0.95, 0.01), (7.01, 0.44), (5.59, 0.37), (4.10, 0.44)),
    "SenSR": ((0.94, 0.01), (0.30, 0.05), (0.19, 0.03), (0.23, 0.05)),
    "SenSR-E": ((0.93, 0.01), (0.11, 0.04), (0.04, 0.03), (1.11, 0.15)),
    "Project": ((0.94, 0.01), (1.00, 0.56), (1.99, 0.58), (1.70, 0.41)),
    "Sinha+": ((0.94, 0.01), (3.88, 0.26), (1.42, 0.29), (1.33, 0.18)),
    "Bolukbasi+": ((0.94, 0.01), (6.85, 0.53), (4.33, 0.46), (3.44, 0.29)),
}

PUBLISHED = {
    (method, measure.key): Published(*figure)
    for method, figures in _PAPER.items()
    for measure, figure in zip(MEASURES, figures, strict=False)
}

METHODS = tuple(_PAPER)
