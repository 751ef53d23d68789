"""Comparable real people of the other group (situation testing): nobody is made up.

Each person is compared with the k nearest people of every other group under the fair metric: who is comparable is
what the metric says, and what the two differ in besides is real.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from likewise.core.checks import FloatArray, IntArray, check_integer
from likewise.core.errors import InputError
from likewise.core.frames import check_columns, check_no_missing, to_pandas
from likewise.core.messages import Message
from likewise.counterfactuals.attribute import AttributeTwins
from likewise.counterfactuals.cells import put_rows
from likewise.counterfactuals.edited_rows import MadeTwins
from likewise.counterfactuals.edits import Edit
from likewise.data.tabular import TabularDomain
from likewise.fair_metrics import AttributeSubspace
from likewise.fair_metrics.learner import ready_metric
from likewise.fair_metrics.neighbours import NearestPlaces

# Pairs of people of two groups, nobody in two of them.


_EXACT = 2_000 * 2_000
_NEAREST = 32


def assign(rows: FloatArray, others: FloatArray) -> tuple[IntArray, FloatArray]:
    """Give each row another of its own, as long as there are any.

    Up to 4 million pairs the sum of squared distances is the least there is (Hungarian method); beyond, pairs are
    taken nearest first among everybody's nearest, and again among those left over until one side is used up.
    """
    index, squared = np.full(len(rows), -1, dtype=np.int64), np.full(len(rows), np.nan)
    if len(rows) * len(others) <= _EXACT:
        from scipy.optimize import linear_sum_assignment
        from scipy.spatial.distance import cdist

        cost = cdist(rows, others, "sqeuclidean")
        mine, theirs = linear_sum_assignment(cost)
        index[mine], squared[mine] = theirs, cost[mine, theirs]
        return index, squared
    waiting, free = np.arange(len(rows)), np.arange(len(others))
    while len(waiting) and len(free):
        near, far = NearestPlaces(others[free]).query(rows[waiting], min(_NEAREST, len(free)))
        person, chosen = np.repeat(waiting, near.shape[1]), free[near.ravel()]
        taken = np.zeros(len(others), dtype=bool)
        for at in np.argsort(far.ravel(), kind="stable"):
            if index[person[at]] < 0 and not taken[chosen[at]]:
                index[person[at]], squared[person[at]] = chosen[at], far.flat[at]
                taken[chosen[at]] = True
        waiting, free = waiting[index[waiting] < 0], free[~taken[free]]
    return index, squared


UNMATCHED = Message("twins.unusable.unmatched")
TOO_FAR = Message("twins.unusable.far")


class MatchedTwins:
    """The k nearest real people of the other group.

    Parameters
    ----------
    edit : Edit or str
        The column that makes the groups, and its values.
    metric : FairMetric, learner or list, optional
        Who is near whom; by default `AttributeSubspace` of the column, learned from the people.
    k : int, default=1
        Comparable people for each person and group.
    replace : bool, default=True
        Whether somebody may be the comparator of several. Without, people are assigned so that the sum of squared
        distances is least (up to 2,000 × 2,000 people) or, beyond, nearest pairs first; who is left over has no twin.
    max_distance : float, optional
        Fair distance beyond which nobody is comparable.

    Attributes
    ----------
    metric_ : FairMetric
    pool_ : DataFrame
        The people that comparators are taken from.

    Notes
    -----
    `make` also leaves ``matched_``: for each variant the positions of the comparators in ``pool_``, -1 for none; and
    ``distance_``, their fair distances. Asked about people of the pool itself, nobody is their own comparator: they
    are of another group.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"sex": ["F", "F", "M", "M"], "age": [30, 50, 31, 52]})
    >>> from likewise.fair_metrics import ExpertSubspace
    >>> made = MatchedTwins("sex", metric=ExpertSubspace(["sex"])).fit(people).make(people)
    >>> made.tables[1]["age"].tolist()
    [31, 52, 31, 52]
    """

    def __init__(
        self,
        edit: Edit | str,
        *,
        metric: Any = None,
        k: int = 1,
        replace: bool = True,
        max_distance: float | None = None,
    ) -> None:
        self.edit = edit if isinstance(edit, Edit) else Edit(edit)
        self.metric = metric
        self.k = k
        self.replace = replace
        self.max_distance = max_distance

    @property
    def attribute(self) -> str:
        """The column that makes the groups."""
        return str(self.edit.column)

    @property
    def fitted(self) -> bool:
        """Whether `fit` was called."""
        return hasattr(self, "places_")

    @property
    def n_variants(self) -> int:
        """How many variants everybody has."""
        return self.k * len(self.values_)

    def fit(self, people: Any) -> Self:
        """Take these people as those that others are compared with, and learn the metric if need be."""
        owner = type(self).__name__
        check_integer(self.k, owner=owner, name="k", low=1)
        frame = to_pandas(people, owner=owner, name="people")
        check_columns(frame, [self.attribute], owner=owner, name="people")
        check_no_missing(frame, owner=owner, name="people")
        plain = AttributeTwins(Edit(self.edit.column, self.edit.values)).fit(frame)
        self.values_ = plain.values_of(self.edit.column)
        asked = AttributeSubspace([self.attribute]) if self.metric is None else self.metric
        self.metric_ = ready_metric(asked, frame, owner=owner, encoder=TabularDomain.from_frame(frame))
        self.pool_ = frame
        self.groups_ = [np.flatnonzero(np.asarray(frame[self.attribute] == v)) for v in self.values_]
        small = [v for v, rows in zip(self.values_, self.groups_, strict=True) if len(rows) < self.k]
        if small:
            raise InputError(
                f"{owner}: fewer than k = {self.k} people have {self.attribute} = {small[0]!r}. Pass a smaller k, or "
                "leave this value out of the edit."
            )
        self.places_ = np.asarray(self.metric_.embed(frame), dtype=np.float64)
        return self

    def make(self, people: Any) -> MadeTwins:
        """Return for every group and rank the comparator of each person; people of a group are themselves in it."""
        owner = type(self).__name__
        if not self.fitted:
            raise InputError(f"{owner}: there is nobody to compare with yet. Call fit(people) first.")
        frame = to_pandas(people, owner=owner, name="people")
        check_columns(frame, self.pool_.columns, owner=owner, name="people")
        places = np.asarray(self.metric_.embed(frame), dtype=np.float64)
        tables, variants, own, matched, distances = [], [], [], [], []
        for value, rows in zip(self.values_, self.groups_, strict=True):
            mine = np.asarray(frame[self.attribute] == value)
            found = np.full((len(frame), self.k), -1, dtype=np.int64)
            away = np.full((len(frame), self.k), np.nan)
            asking = np.flatnonzero(~mine)
            if len(asking):
                found[asking], away[asking] = self._match(places[asking], rows)
            for j in range(self.k):
                has = np.flatnonzero(found[:, j] >= 0)
                tables.append(put_rows(frame, self.pool_.iloc[found[has, j]], has))
                variants.append({self.attribute: value} | ({"comparator": j + 1} if self.k > 1 else {}))
                own.append(mine)
                matched.append(found[:, j])
                distances.append(away[:, j])
        self.matched_, self.distance_ = np.stack(matched), np.stack(distances)
        own_all = np.stack(own)
        absent = (self.matched_ < 0) & ~own_all
        far = np.zeros_like(absent)
        if self.max_distance is not None:
            far = np.nan_to_num(self.distance_, nan=0.0) > self.max_distance
        why: dict[str, Any] = {
            words: mask for words, mask in ((UNMATCHED, absent), (TOO_FAR, far)) if mask.any()
        }
        return MadeTwins(tuple(tables), tuple(variants), own_all, ~absent & ~far, why)

    def _match(self, places: FloatArray, rows: IntArray) -> tuple[IntArray, FloatArray]:
        if self.replace:
            index, squared = NearestPlaces(self.places_[rows]).query(places, self.k)
            return rows[index], np.sqrt(squared)
        found = np.full((len(places), self.k), -1, dtype=np.int64)
        away = np.full((len(places), self.k), np.nan)
        left = np.arange(len(rows))
        for j in range(self.k):
            if not len(left):
                break
            pairs, squared = assign(places, self.places_[rows[left]])
            has = np.flatnonzero(pairs >= 0)
            found[has, j], away[has, j] = rows[left[pairs[has]]], np.sqrt(squared[has])
            left = np.setdiff1d(left, left[pairs[has]])
        return found, away
