"""What stands beside the audit of a case: accuracy, group gaps, studies of edits, what the metric hides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.auditing.case import Case
from likewise.core.errors import LikewiseError
from likewise.counterfactuals.edits import Edit, EditParts
from likewise.data.target import find_value, unique_values

if TYPE_CHECKING:
    import pandas as pd

    from likewise.evaluation.summary import Evaluation

# A sensitive column with more values than this has no groups to compare.
MAX_GROUPS = 20
_SPOUSES = {"Husband", "Wife"}


def as_edits(frame: pd.DataFrame, edits: Mapping[str, Sequence[str]]) -> tuple[Edit, ...]:
    """Return edits with the values that the table's columns hold for words of the command line."""
    found = []
    for column, words in edits.items():
        values = unique_values(frame[column].dropna())
        named = (find_value(values, word, what=f"--edit: column {column!r}") for word in words)
        found.append(Edit(column, tuple(named)))
    return tuple(found)


def evaluate_case(case: Case) -> tuple[Evaluation | None, tuple[str, ...]]:
    """Accuracy, consistency and group gaps of a model on people, and why some of them are not known.

    What cannot be computed on a table is left out with its reason, and stops nothing.
    """
    from likewise.evaluation.summary import evaluate

    matched, frame = case.matched, case.people
    if case.found.people.labels is None:
        return None, ()
    if matched.model.loss.regression:
        return None, ("accuracy and group gaps are n/a: the model predicts numbers.",)
    groups = [name for name in case.sensitive if 2 <= frame[name].nunique() <= MAX_GROUPS]
    holes = {name: int(frame[name].isna().sum()) for name in groups if frame[name].isna().any()}
    unknown = [
        f"the group gaps of {name} are n/a: {name} is missing for {n:,} people." for name, n in holes.items()
    ]
    attributes = [name for name in groups if name not in holes]
    studies = _studies(groups, case.request.edits or (), matched.columns)
    for asked, compared in ((attributes, studies), (attributes, {}), ((), {})):
        try:
            found = evaluate(
                matched.decide,
                frame,
                np.asarray(case.labels),
                sensitive_features=list(asked),
                studies=compared,
                confidence=case.request.confidence,
            )
        except LikewiseError as error:
            unknown.append(f"some measures are n/a: {error}")
        else:
            return found, tuple(dict.fromkeys((*unknown, *found.notes)))
    return None, tuple(dict.fromkeys(unknown))


def _studies(groups: Sequence[str], edits: EditParts, columns: Sequence[str]) -> dict[str, Any]:
    """Correspondence studies of each edit and of all sensitive columns together; those of the paper have its names."""
    studies: dict[str, Any] = {}
    for part in edits:
        if isinstance(part, Edit) and part.values is not None:
            words = " ↔ ".join(str(value) for value in part.values)
            name = "S-Con" if set(part.values) == _SPOUSES else f"{part.column}: {words}"
            studies[name] = part
    seen = [name for name in groups if name in columns]
    if seen:
        paper = set(seen) == {"sex", "race"}
        studies["GR-Con" if paper else f"consistency ({' × '.join(seen)})"] = dict.fromkeys(seen)
    return studies


def diagnose_metric(
    metric: Any, frame: pd.DataFrame, sensitive: Sequence[str], seed: int
) -> tuple[list[Any], tuple[str, ...]]:
    """What the metric still tells of each sensitive column, and why that is not known of some."""
    from likewise.fair_metrics import diagnose

    found, unknown = [], []
    for name in sensitive:
        try:
            found.append(diagnose(metric, frame, name, random_state=seed))
        except LikewiseError as error:
            unknown.append(f"what the metric hides of {name} is n/a: {error}")
    return found, tuple(unknown)
