"""Twins that differ in the sensitive columns and in nothing else: what needs no learned metric to be believed.

For any model the worst of these twins is found exactly, by asking about all of them. A learned metric adds more
(directions that give the attribute away are free as well), but that rests on what was learned.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from likewise.auditing.support.frontier import Floats, Ints
from likewise.evaluation.edits import edited_columns

if TYPE_CHECKING:
    from likewise.auditing.problem.audit_problem import AuditProblem

__all__ = ["ChangedGroup", "ChangedPerson", "SensitiveTwins", "sensitive_twins"]

_BATCH = 16_384


@dataclass(frozen=True)
class ChangedPerson:
    """Somebody who is decided differently when only sensitive columns change.

    Parameters
    ----------
    person : int
        Number of the row.
    cells : dict
        The person's columns, in original units.
    twin : dict
        The sensitive columns that were changed, with their new values.
    decision, twin_decision : object
        What is decided, and what would be.
    rank : tuple of float
        The smaller, the more telling: few columns changed, then far in loss.
    """

    person: int
    cells: dict[str, Any]
    twin: dict[str, Any]
    decision: Any
    twin_decision: Any
    rank: tuple[float, ...] = ()


@dataclass(frozen=True)
class ChangedGroup:
    """People with one value of a sensitive column and one decision, and how many of them get another one.

    Parameters
    ----------
    column : str
    value, decision : object
    people, changed : int
        Counts; changed: where any twin that differs in sensitive columns alone is decided differently.
    """

    column: str
    value: Any
    decision: Any
    people: int
    changed: int


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
    groups : tuple of ChangedGroup
        By column, value and decision; empty for a regression.
    examples : dict
        The most telling person by (column, value), of those who change.
    """

    columns: tuple[str, ...]
    harm: Floats
    largest: float
    changed: np.ndarray[Any, np.dtype[np.bool_]]
    groups: tuple[ChangedGroup, ...] = ()
    examples: dict[tuple[str, Any], ChangedPerson] = field(default_factory=dict)


def sensitive_twins(problem: AuditProblem) -> SensitiveTwins | None:
    """Ask the model about every twin of everybody that differs in the columns called sensitive only.

    Parameters
    ----------
    problem : AuditProblem

    Returns
    -------
    SensitiveTwins or None
        None where nothing is said to be sensitive, or nobody has a twin: what is sensitive has one value only.
    """
    from likewise.auditing.search.candidates.candidate_rows import plan_candidates

    edits, place = problem.sensitive_edits, problem.coordinates
    if not edits:
        return None
    plan = plan_candidates(problem.editable(), edits, proxies=None, fixed=place.fixed_names(), owner="audit")
    if len(plan) == problem.n:
        return None
    harm, changed = np.zeros(problem.n), np.zeros(problem.n, dtype=bool)
    flips: list[_Flips] = []
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
            decided = place.model.predict(shown)
            at = possible[(decided != problem.decisions[person])[possible]]
            changed[person[at]] = True
            flips.append(_Flips(number[at], person[at], np.abs(worse[at]), np.asarray(decided)[at]))
    names = tuple(str(name) for name in edited_columns(edits))
    largest = max(problem.largest_loss, float((problem.base_loss + harm).max()))
    groups = _groups(problem, plan, changed) if problem.decides else ()
    return SensitiveTwins(names, harm, largest, changed, groups, _examples(problem, plan, flips))


class _Flips(NamedTuple):
    """Candidates that are decided differently: their numbers, whose they are, how far off in loss, the decision."""

    number: Ints
    person: Ints
    far: Floats
    decision: np.ndarray[Any, Any]


def _groups(problem: AuditProblem, plan: Any, changed: Any) -> tuple[ChangedGroup, ...]:
    decisions, code = np.unique(problem.decisions, return_inverse=True)
    found = []
    for part in plan.fields:
        own = part.codes[: problem.n]
        for value in range(len(part.values)):
            for decision in range(len(decisions)):
                inside = (own == value) & (code == decision)
                if inside.any():
                    counts = int(inside.sum()), int(changed[inside].sum())
                    found.append(
                        ChangedGroup(
                            str(part.name), _cell(part.values[value]), _cell(decisions[decision]), *counts
                        )
                    )
    return tuple(found)


def _examples(problem: AuditProblem, plan: Any, flips: list[_Flips]) -> dict[tuple[str, Any], ChangedPerson]:
    """For each sensitive value the person whose twin says most: few columns changed, that one, far in loss."""
    if not sum(len(part.number) for part in flips):
        return {}
    number, person, far, decision = (np.concatenate(columns) for columns in zip(*flips, strict=True))
    far = np.round(
        far, 9
    )  # so that sums in another order, of other parts of the table, choose the same person
    target = plan.combinations[plan.edit[number] % len(plan.combinations)]
    own = np.stack([part.codes[person] for part in plan.fields], axis=1)
    moved = (target != own) & (target >= 0)
    many = moved.sum(axis=1)
    best: dict[tuple[str, Any], int] = {}
    ranks: dict[tuple[str, Any], tuple[float, ...]] = {}
    for k, part in enumerate(plan.fields):
        for value in range(len(part.values)):
            inside = np.flatnonzero(own[:, k] == value)
            if len(inside):
                keys = (person[inside], -far[inside], ~moved[inside, k], many[inside])
                at = int(inside[np.lexsort(keys)[0]])
                key = str(part.name), _cell(part.values[value])
                best[key] = at
                who = problem.first + int(person[at])
                ranks[key] = (float(many[at]), float(not moved[at, k]), -float(far[at]), float(who))
    chosen = np.asarray(list(best.values()), dtype=np.int64)
    people = problem.coordinates.original(plan.take(person[chosen]))
    return {
        key: ChangedPerson(
            problem.first + int(person[at]),
            {str(name): _cell(people[name].iloc[row]) for name in people.columns},
            {
                str(part.name): _cell(part.values[target[at, k]])
                for k, part in enumerate(plan.fields)
                if moved[at, k]
            },
            _cell(problem.decisions[person[at]]),
            _cell(decision[at]),
            ranks[key],
        )
        for row, (key, at) in enumerate(best.items())
    }


def _cell(value: Any) -> Any:
    """One cell as a plain Python value, so that it can be written to a file."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (bool, int, float, str)) or value is None else str(value)
