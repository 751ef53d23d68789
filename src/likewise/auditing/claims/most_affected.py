"""Whose decisions depend most on the sensitive columns: which of their values, and what these people get now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from likewise.auditing.people.sensitive_twins import ChangedGroup
from likewise.evaluation.proportions import proportion_interval

__all__ = ["AffectedGroup", "by_value", "most_affected"]

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class AffectedGroup:
    """People with one value of a sensitive column, of whom some get another decision when sensitive columns change.

    Whether that is to their good or harm depends on what the decisions mean, so the decision that most of them get now
    is said, and nothing else.

    Parameters
    ----------
    column : str
    value : object
    people, changed : int
        With that value, and those of them who get another decision.
    decision : object
        What most of those who change get as they are, or most of the group where nobody does.
    of_decision : int
        How many of them do.
    """

    column: str
    value: Any
    people: int
    changed: int
    decision: Any
    of_decision: int

    @property
    def share(self) -> float:
        """Share of the group's people who change."""
        return self.changed / self.people


def most_affected(groups: Iterable[ChangedGroup], *, most: int = 2) -> tuple[AffectedGroup, ...]:
    """Find the values of one sensitive column whose people change decision most often.

    Ranked by the lower end of the exact 95% interval of the share, so that three of four people do not outweigh a
    thousand of two thousand.

    Parameters
    ----------
    groups : iterable of ChangedGroup
    most : int, default=2
        How many values, all of the column of the first.

    Returns
    -------
    tuple of AffectedGroup
        Empty where nobody changes.

    Examples
    --------
    >>> found = most_affected([
    ...     ChangedGroup("sex", "F", 0, 100, 20), ChangedGroup("sex", "F", 1, 50, 1), ChangedGroup("sex", "M", 0, 90, 3),
    ... ])
    >>> [(one.value, one.changed, one.people, one.decision, one.of_decision) for one in found]
    [('F', 21, 150, 0, 20), ('M', 3, 90, 0, 3)]
    """
    found = sorted((one for one in by_value(groups) if one.changed), key=_surely, reverse=True)
    return tuple(one for one in found if one.column == found[0].column)[:most]


def by_value(groups: Iterable[ChangedGroup]) -> tuple[AffectedGroup, ...]:
    """Count every value of each sensitive column, whatever is decided: those of one column together.

    Parameters
    ----------
    groups : iterable of ChangedGroup

    Returns
    -------
    tuple of AffectedGroup
        Of each column the value with the largest share of people who change first.

    Examples
    --------
    >>> found = by_value([
    ...     ChangedGroup("sex", "M", 0, 90, 0), ChangedGroup("sex", "F", 0, 100, 20), ChangedGroup("sex", "F", 1, 50, 1),
    ... ])
    >>> [(one.value, one.changed, one.people) for one in found]
    [('F', 21, 150), ('M', 0, 90)]
    """
    inside: dict[str, dict[Any, list[ChangedGroup]]] = {}
    for group in groups:
        inside.setdefault(group.column, {}).setdefault(group.value, []).append(group)
    found: list[AffectedGroup] = []
    for column, values in inside.items():
        counted = []
        for value, parts in values.items():
            people, changed = sum(part.people for part in parts), sum(part.changed for part in parts)
            main = max(parts, key=lambda part: (part.changed, part.people))
            counted.append(AffectedGroup(column, value, people, changed, main.decision, main.changed))
        found += sorted(counted, key=lambda one: -one.share)
    return tuple(found)


def _surely(group: AffectedGroup) -> float:
    return proportion_interval(group.changed, group.people, confidence=_CONFIDENCE).low
