"""Impact ratios of an audited model on the people in memory, or why there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.cli.case import MAX_GROUPS, Case

if TYPE_CHECKING:
    import pandas as pd

    from likewise.evaluation import ImpactTable

__all__ = ["impact_of_case"]


def impact_of_case(case: Case, people: pd.DataFrame) -> tuple[tuple[ImpactTable, ...], tuple[str, ...]]:
    """Return rates and impact ratios by each sensitive column and each two of them, and what a reader must know.

    Parameters
    ----------
    case : Case
    people : DataFrame
        Those in memory, as the model takes them.

    Returns
    -------
    tables : tuple of ImpactTable
    notes : tuple of str
    """
    from likewise.evaluation import above_median, impact_tables

    told = people if case.told is None else case.told
    groups = [name for name in case.sensitive if 2 <= told[name].nunique() <= MAX_GROUPS]
    notes = [
        f"There are no impact ratios by {name}: it has {told[name].nunique():,} values."
        for name in case.sensitive
        if name not in groups
    ]
    if not groups:
        return (), tuple(notes)
    answers: Any = case.matched.decide(people)
    classes = case.matched.model.classes_
    if classes is None:
        kind, outcome, selected = "scoring", "predicted above the median", above_median(answers)
    elif len(classes) == 2:
        favoured = classes[1]
        kind, outcome, selected = "selection", f"predicted {favoured}", np.asarray(answers) == favoured
    else:
        notes.append(
            f"There are no impact ratios: the model chooses among {len(classes)} classes, so that nobody is plainly "
            "selected (--positive names the value that counts)."
        )
        return (), tuple(notes)
    if not isinstance(case.frame, type(people)):
        notes.append(f"The rates are those of a random sample of {len(people):,} people of the files.")
    return impact_tables(selected, told, groups, kind=kind, outcome=outcome), tuple(notes)  # type: ignore[arg-type]
