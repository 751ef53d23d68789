"""The contract of makers of twins: who or what stands beside each person, variant by variant.

A plain edit writes the same value into everybody's row. A maker may do more: move the columns that follow from the
edited one, or look for a real person of the other group. Studies, audits and trainings ask for no more than this.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
import pandas as pd

from likewise.core.errors import InputError
from likewise.evaluation.edits import Edit

__all__ = ["MadeTwins", "TwinMaker", "made_twins", "maker_of", "ready_maker"]

Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, eq=False)
class MadeTwins:
    """One table of twins per variant, everybody's in the order of the people.

    Parameters
    ----------
    tables : tuple of DataFrame
        For each variant the twins of all people, with the people's own columns.
    variants : tuple of mapping
        What each variant is: ``{"sex": "Female"}``.
    own : bool array of shape (variants, n)
        Where the variant is the person as they are.
    usable : bool array of shape (variants, n)
        Where there is a twin that may be compared; else the row is the person's own, as a filler.
    why_not : mapping of str to bool array of shape (variants, n)
        What made twins unusable, in words: nothing is dropped without one.

    Examples
    --------
    >>> people = pd.DataFrame({"sex": ["F", "M"]})
    >>> tables = tuple(people.assign(sex=value) for value in "FM")
    >>> own = np.array([[True, False], [False, True]])
    >>> made = MadeTwins(tables, ({"sex": "F"}, {"sex": "M"}), own, np.ones((2, 2), dtype=bool))
    >>> made.compared.sum(axis=0).tolist()
    [1, 1]
    """

    tables: tuple[pd.DataFrame, ...]
    variants: tuple[Mapping[str, Any], ...]
    own: Mask
    usable: Mask
    why_not: Mapping[str, Mask] = field(default_factory=dict)

    @property
    def compared(self) -> Mask:
        """Where there is a twin other than the person, (variants, n)."""
        found: Mask = self.usable & ~self.own
        return found

    @property
    def n_people(self) -> int:
        """How many people there are."""
        return int(self.usable.shape[1])


class TwinMaker(Protocol):
    """What makes twins: `fit` looks at people, `make` gives the twins of the same or of other people.

    Examples
    --------
    >>> class OneYearOlder:
    ...     fitted, n_variants = True, 2
    ...     def fit(self, people):
    ...         return self
    ...     def make(self, people):
    ...         own = np.array([[True] * len(people), [False] * len(people)])
    ...         tables = (people, people.assign(age=people["age"] + 1))
    ...         return MadeTwins(tables, ({}, {"age": "one more"}), own, np.ones_like(own))
    >>> from likewise.evaluation import correspondence_study
    >>> people = pd.DataFrame({"age": [30, 49]})
    >>> correspondence_study(lambda table: table["age"] < 50, people, OneYearOlder()).consistency
    0.5
    """

    @property
    def fitted(self) -> bool:
        """Whether `fit` was called."""
        ...

    @property
    def n_variants(self) -> int:
        """How many variants everybody has, themselves included; known once fitted."""
        ...

    def fit(self, people: Any) -> Self:
        """Learn what twins need from a table of people."""
        ...

    def make(self, people: Any) -> MadeTwins:
        """Return the twins of people, the same for the same rows."""
        ...


def maker_of(edits: Any, *, owner: str) -> TwinMaker | None:
    """Return the maker that edits stand for: itself, or that of an `Edit` with consequences; else None.

    Examples
    --------
    >>> maker_of({"sex": ["F", "M"]}, owner="study") is None
    True
    """
    if hasattr(edits, "fit") and hasattr(edits, "make") and not isinstance(edits, type):
        given: TwinMaker = edits
        return given
    parts = [edits] if isinstance(edits, (Edit, Mapping)) or not isinstance(edits, (list, tuple)) else edits
    carrying = [part for part in parts if isinstance(part, Edit) and part.consequences is not None]
    if not carrying:
        return None
    if len(parts) > 1:
        raise InputError(
            f"{owner}: an Edit with consequences stands alone, got {len(parts)} edits. Study one after the other."
        )
    consequences = carrying[0].consequences
    if not hasattr(consequences, "maker"):
        raise InputError(
            f"{owner}: 'consequences' of Edit({carrying[0].column!r}) must be a Consequences, got "
            f"{type(consequences).__name__}. Pass likewise.twins.Consequences(graph=..., rules=...)."
        )
    made: TwinMaker = consequences.maker(carrying[0])
    return made


def ready_maker(edits: Any, people: Any, *, owner: str) -> TwinMaker | None:
    """Return the fitted maker that edits stand for, or None; what was passed unfitted stays so, a copy is fitted.

    Parameters
    ----------
    edits : object
        As in `maker_of`.
    people : DataFrame
        What an unfitted maker learns from.
    owner : str
        For error messages.
    """
    maker = maker_of(edits, owner=owner)
    if maker is None or maker.fitted:
        return maker
    return copy.deepcopy(maker).fit(people)


def made_twins(maker: TwinMaker, people: Any) -> MadeTwins:
    """Return the twins of people by a maker, which is fitted on them first where it is not yet."""
    return (maker if maker.fitted else copy.deepcopy(maker).fit(people)).make(people)
