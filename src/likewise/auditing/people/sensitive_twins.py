"""Twins that differ in the sensitive columns and in nothing else: what needs no learned metric to be believed.

For any model the worst of these twins is found exactly, by asking about all of them. A learned metric adds more
(directions that give the attribute away are free as well), but that rests on what was learned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.auditing.support.frontier import Floats
from likewise.evaluation.edits import edited_columns

if TYPE_CHECKING:
    from likewise.auditing.problem.audit_problem import AuditProblem

__all__ = ["SensitiveTwins", "sensitive_twins"]

_BATCH = 16_384


@dataclass(frozen=True, eq=False)
class SensitiveTwins:
    """What becomes of each person when only the sensitive columns change (the field's *ceteris paribus*).

    Parameters
    ----------
    columns : tuple of str
        The columns that were exchanged.
    harm : float array of shape (n,)
        Increase of the loss at the worst such twin, 0 where none is worse.
    largest : float
        The largest loss of anybody, under any label, or of any such twin.
    changed : bool array of shape (n,)
        Whether any such twin is decided differently; all False for a regression, which decides nothing.
    """

    columns: tuple[str, ...]
    harm: Floats
    largest: float
    changed: np.ndarray[Any, np.dtype[np.bool_]]


def sensitive_twins(problem: AuditProblem) -> SensitiveTwins | None:
    """Ask the model about every twin of everybody that differs in the edited columns only.

    Parameters
    ----------
    problem : AuditProblem

    Returns
    -------
    SensitiveTwins or None
        None where nothing is said to be sensitive.
    """
    from likewise.auditing.search.candidates.candidate_rows import plan_candidates

    if not problem.edits:
        return None
    place = problem.coordinates
    plan = plan_candidates(
        problem.editable(), problem.edits, proxies=None, fixed=place.fixed_names(), owner="audit"
    )
    harm, changed = np.zeros(problem.n), np.zeros(problem.n, dtype=bool)
    for start in range(problem.n, len(plan), _BATCH):
        number = np.arange(start, min(start + _BATCH, len(plan)))
        table = plan.take(number)
        possible = np.flatnonzero(place.possible(place.encoded(table)))
        if not len(possible):
            continue
        person, shown = plan.source[number], place.for_model(table)
        worse = place.model.losses(shown, problem.labels[person]) - problem.base_loss[person]
        np.maximum.at(harm, person[possible], worse[possible])
        if problem.decides:
            differs = place.model.predict(shown) != problem.decisions[person]
            changed[person[possible[differs[possible]]]] = True
    names = tuple(str(name) for name in edited_columns(problem.edits))
    largest = max(problem.largest_loss, float((problem.base_loss + harm).max()))
    return SensitiveTwins(names, harm, largest, changed)
