"""What one question about twins came to: shares, changes of score, by group, with intervals and validity."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from likewise.evaluation.measures import Measure

__all__ = ["GroupAnswer", "TwinAnswer"]

Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class GroupAnswer:
    """What becomes of the people of one group when they are of the other.

    Parameters
    ----------
    group : object
        The value they have.
    n : int
        How many of them were compared.
    changed : Measure
        Share of them whose decision changes.
    change : Measure
        Mean of the twin's score less the person's.

    Examples
    --------
    >>> women = GroupAnswer("F", 50, Measure("changed", 0.4, 0.3, 0.5), Measure("change", 0.2, 0.1, 0.3))
    >>> f"{women.changed.value:.0%} of {women.n} are decided otherwise"
    '40% of 50 are decided otherwise'
    """

    group: Any
    n: int
    changed: Measure
    change: Measure


@dataclass(frozen=True, eq=False)
class TwinAnswer:
    """The answer to one question.

    Parameters
    ----------
    question : {"attribute", "consequences", "matched"}
    n : int
        People who were compared with at least one twin.
    changed : Measure
        Share of them of whom some twin is decided otherwise.
    effects : tuple of Measure
        For each further value of the attribute: mean score of everybody with it less that with the first value.
    groups : tuple of GroupAnswer
    validity : Measure
        Share of all twins that could be people, before any was dropped.
    level : float
        Share of real people who pass the same test of distance.
    n_twins : int
        Twins other than the people themselves.
    n_implausible : int
        Those that could be nobody.
    dropped : mapping of str to int
        Twins that were not compared, by the reason.
    flips : bool array of shape (n_people,)
        Whose decision changes.
    asked : bool array of shape (n_people,)
        Who was compared at all.
    interval : str
        How the intervals were made, and why so.
    notes : tuple of str
        What else to know, such as groups of very few people.

    Examples
    --------
    >>> import pandas as pd
    >>> from likewise.twins import twin_study
    >>> people = pd.DataFrame({"sex": ["F", "M"] * 10, "age": range(20)})
    >>> paid = lambda table: (table["sex"] == "M") & (table["age"] < 10)
    >>> answer = twin_study(paid, people, "sex", questions=["attribute"])["attribute"]
    >>> answer.n, answer.changed.value, [(group.group, group.change.value) for group in answer.groups]
    (20, 0.5, [('F', 0.5), ('M', -0.5)])
    >>> np.flatnonzero(answer.flips).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    question: str
    n: int
    changed: Measure
    effects: tuple[Measure, ...]
    groups: tuple[GroupAnswer, ...]
    validity: Measure
    level: float
    n_twins: int
    n_implausible: int
    dropped: dict[str, int]
    flips: Mask
    asked: Mask
    interval: str
    notes: tuple[str, ...] = field(default_factory=tuple)
