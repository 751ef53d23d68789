"""Is a twin a person who could exist? Two looks at it, both set by real people.

How far is the nearest real person, compared with how far real people are from their nearest other? And does the twin
combine values that real people never combine? A woman called husband is near many husbands, and no person all the same:
distances alone do not see it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.arrays import FloatArray
from likewise.core.checks import check_number
from likewise.core.errors import InputError
from likewise.core.frames import to_pandas
from likewise.domains import TabularDomain
from likewise.evaluation.twin_makers import MadeTwins
from likewise.fair_metrics.neighbours import NearestPlaces
from likewise.texts import Said
from likewise.twins.learned_rules import learn_rules
from likewise.twins.rules import Rules

__all__ = ["IMPLAUSIBLE", "Plausibility", "learn_plausibility", "without_implausible"]

Mask = np.ndarray[Any, np.dtype[np.bool_]]

IMPLAUSIBLE = Said("twins.unusable.implausible")


@dataclass(frozen=True, eq=False)
class Plausibility:
    """What real people look like.

    Parameters
    ----------
    level : float
        Share of real people who are plausible by their distance.
    limit : float
        The squared distance to the nearest other person that so many real people stay within.
    rules : Rules
        Combinations with the attribute that the people lack, as `learn_rules` finds them.
    domain : TabularDomain
        How rows become places.
    neighbours : NearestPlaces
        The real people.

    Examples
    --------
    >>> roles, ages = ["Wife"] * 45 + ["Husband"] * 45, [*range(30, 75)] * 2
    >>> people = pd.DataFrame({"sex": ["F"] * 45 + ["M"] * 45, "role": roles, "age": ages})
    >>> known = learn_plausibility(people, "sex")
    >>> women = people.iloc[45:48].assign(sex="F")  # called husband all the same
    >>> known.plausible(women).tolist(), known.plausible(women.assign(role="Wife")).tolist()
    ([False, False, False], [True, True, True])
    """

    level: float
    limit: float
    rules: Rules
    domain: TabularDomain
    neighbours: NearestPlaces

    def plausible(self, rows: pd.DataFrame, person: Any = None) -> Mask:
        """Whether each row could be a person, (n,).

        Parameters
        ----------
        rows : DataFrame of n rows
        person : int array of shape (n,), optional
            Positions, among the real people, of those whose twins the rows are. A twin is not plausible because the
            person is near: they are left out.
        """
        broken = self.rules.broken(rows)
        far = self.squared_distance(rows, person) > self.limit
        return np.asarray(~broken & ~far)

    def of_twins(self, made: MadeTwins, person: Any = None) -> Mask:
        """Whether each twin that is compared could be a person, (variants, n); True for all others.

        `person` is as in `plausible`, (n,), or (variants, n) where it differs by variant.
        """
        left_out = None if person is None else np.broadcast_to(person, made.usable.shape)
        valid = np.ones_like(made.usable)
        for number, table in enumerate(made.tables):
            some = np.flatnonzero(made.compared[number])
            if len(some):
                valid[number, some] = self.plausible(
                    table.iloc[some], None if left_out is None else left_out[number, some]
                )
        return valid

    def squared_distance(self, rows: pd.DataFrame, person: Any = None) -> FloatArray:
        """Squared distance of each row from the nearest real person, (n,); the person they are a twin of left out."""
        k = 1 if person is None else 2
        index, squared = self.neighbours.query(self.domain.encode_array(rows), k)
        if person is None:
            return squared[:, 0]
        itself = index[:, 0] == np.asarray(person)
        return np.where(itself, squared[:, 1], squared[:, 0])


def learn_plausibility(people: Any, attribute: str, *, level: float = 0.95) -> Plausibility:
    """Learn what real people look like.

    Parameters
    ----------
    people : table of n people
    attribute : str
        The column that twins change.
    level : float in (0, 1), default=0.95
        Share of the real people whose distance to the nearest other one is called plausible.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"sex": ["F", "M"] * 100, "age": rng.normal(40, 5, 200)})
    >>> model = learn_plausibility(people, "sex")
    >>> bool(abs(model.plausible(people, np.arange(200)).mean() - 0.95) < 0.01)
    True
    >>> model.plausible(pd.DataFrame({"sex": ["F"], "age": [99.0]})).tolist()
    [False]
    """
    owner = "learn_plausibility"
    frame = to_pandas(people, owner=owner, name="people")
    check_number(level, owner=owner, name="level", low=0, high=1, open_low=True, open_high=True)
    if len(frame) < 2:
        raise InputError(
            f"{owner}: what real people look like cannot be learned from {len(frame)} of them. Pass more people; in a "
            "study of few, those to learn from as reference=."
        )
    domain = TabularDomain.from_frame(frame)
    places = domain.encode_array(frame)
    neighbours = NearestPlaces(places)
    # The same search for real people as for twins: beyond some thousand people it looks at most cells, not all.
    index, squared = neighbours.query(places, 2)
    nearest = np.where(index[:, 0] == np.arange(len(frame)), squared[:, 1], squared[:, 0])
    limit = float(np.quantile(nearest, level, method="higher"))
    return Plausibility(level, limit, learn_rules(frame, attribute).rules, domain, neighbours)


def without_implausible(made: MadeTwins, valid: Mask) -> MadeTwins:
    """Return the same twins with the implausible ones unusable, and that said."""
    dropped = made.compared & ~valid
    why = dict(made.why_not) | ({IMPLAUSIBLE: dropped} if dropped.any() else {})
    return MadeTwins(made.tables, made.variants, made.own, made.usable & ~dropped, why)
