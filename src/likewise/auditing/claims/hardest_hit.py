"""Which people are decided differently most often when only the sensitive columns change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from likewise.auditing.people.sensitive_twins import ChangedGroup
from likewise.evaluation.proportions import proportion_interval

__all__ = ["HardestHit", "hardest_hit"]

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class HardestHit:
    """The value of a sensitive column whose people change decision most often.

    Parameters
    ----------
    column : str
    value : object
    people, changed : int
        With that value, and those of them who get another decision.
    others, others_changed : int
        People with other values of the column, and those of them who change.
    decision : object
        What most of those who change get as they are.
    of_decision : int
        How many of them do.
    """

    column: str
    value: Any
    people: int
    changed: int
    others: int
    others_changed: int
    decision: Any
    of_decision: int

    @property
    def share(self) -> float:
        """Share of the group's people who change."""
        return self.changed / self.people

    @property
    def others_share(self) -> float:
        """Share of the others who change."""
        return self.others_changed / self.others


def hardest_hit(groups: Iterable[ChangedGroup]) -> HardestHit | None:
    """Find the value of which it can be said with most reason that its people change decision more often.

    Ranked by the lower end of the exact 95% interval of the share, so that three of four people do not outweigh a
    thousand of two thousand.

    Parameters
    ----------
    groups : iterable of ChangedGroup

    Returns
    -------
    HardestHit or None
        None where nobody changes, or no group does more often than the others of its column.

    Examples
    --------
    >>> found = hardest_hit([
    ...     ChangedGroup("sex", "F", 0, 100, 20), ChangedGroup("sex", "F", 1, 50, 1), ChangedGroup("sex", "M", 0, 90, 3),
    ... ])
    >>> found.value, found.changed, found.people, found.decision, found.of_decision, found.others_changed
    ('F', 21, 150, 0, 20, 3)
    """
    listed = list(groups)
    found = []
    for column in dict.fromkeys(group.column for group in listed):
        mine = [group for group in listed if group.column == column]
        people, changed = sum(g.people for g in mine), sum(g.changed for g in mine)
        for value in dict.fromkeys(group.value for group in mine):
            inside = [group for group in mine if group.value == value]
            n, k = sum(g.people for g in inside), sum(g.changed for g in inside)
            # More often than the others of this column, not only often.
            if k and people > n and k * (people - n) > (changed - k) * n:
                most = max(inside, key=lambda g: g.changed)
                found.append(
                    HardestHit(column, value, n, k, people - n, changed - k, most.decision, most.changed)
                )
    return max(found, key=_surely, default=None)


def _surely(hit: HardestHit) -> float:
    return proportion_interval(hit.changed, hit.people, confidence=_CONFIDENCE).low
