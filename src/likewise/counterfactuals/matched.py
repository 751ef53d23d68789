"""Comparable real people of the other group (situation testing).

Each person is compared with the k nearest people of every other group under the fair metric. What the two differ in
besides is real, and may be much: the distance of matches in all columns is compared with that of neighbours within a
group.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from likewise.core.checks import BoolArray, FloatArray, IntArray, check_integer
from likewise.core.errors import InputError
from likewise.core.frames import check_no_missing, to_pandas
from likewise.core.messages import Message
from likewise.counterfactuals.cells import put_rows
from likewise.counterfactuals.edited_rows import AttributeTwins, MadeTwins
from likewise.counterfactuals.edits import Edit
from likewise.data.encoding import category_codes
from likewise.data.tabular import TabularDomain
from likewise.fair_metrics import AttributeSubspace, FairMetric
from likewise.fair_metrics.learner import ready_metric
from likewise.fair_metrics.neighbours import NearestPlaces

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
        Whether somebody may be the comparator of several. Without, each two groups are assigned to each other in pairs
        so that the sum of squared distances is least (up to 2,000 × 2,000 people) or, beyond, nearest pairs first;
        people who are left over are not compared.
    max_distance : float, optional
        Fair distance beyond which nobody is comparable.

    Attributes
    ----------
    metric_ : FairMetric
    pool_ : DataFrame
        The people that comparators are taken from.
    neighbours_ : int array
        For each person of ``pool_`` the nearest other person of the same group, themselves if there is none.

    Notes
    -----
    `make` also leaves ``matched_``: for each variant the positions of the comparators in ``pool_``, -1 for none;
    ``distance_``, their fair distances; ``own_neighbours_``, for each person the nearest person of their own group in
    ``pool_``; and ``apart_``, the Euclidean distances in all columns but the attribute's of comparators (first rows) and
    of neighbours in the own group (last row). A fair metric may count little of what the groups differ in; these
    distances count all of it.

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
        frame = to_pandas(people, owner=owner, name="people", needed=[self.attribute])
        check_no_missing(frame, owner=owner, name="people")
        plain = AttributeTwins(Edit(self.edit.column, self.edit.values)).fit(frame)
        self.values_ = plain.values_of(self.edit.column)
        asked = AttributeSubspace([self.attribute]) if self.metric is None else self.metric
        encoder = None if isinstance(asked, FairMetric) else TabularDomain.from_frame(frame)
        self.metric_ = ready_metric(asked, frame, owner=owner, encoder=encoder)
        self.pool_ = frame
        codes = self._codes(frame)
        self.groups_ = [np.flatnonzero(codes == h) for h in range(len(self.values_))]
        small = [v for v, rows in zip(self.values_, self.groups_, strict=True) if len(rows) < self.k]
        if small:
            raise InputError(
                f"{owner}: fewer than k = {self.k} people have {self.attribute} = {small[0]!r}. Pass a smaller k, or "
                "leave this value out of the edit."
            )
        self.others_ = [name for name in frame.columns if name != self.attribute]
        self.plain_domain_ = TabularDomain.from_frame(frame[self.others_]) if self.others_ else None
        self.plain_places_ = self._plain(frame)
        self.places_ = np.asarray(self.metric_.embed(frame), dtype=np.float64)
        self.neighbours_ = self._neighbours(self.places_, codes, np.arange(len(frame)))
        return self

    def make(self, people: Any) -> MadeTwins:
        """Return for every group and rank the comparator of each person; people of a group are themselves in it."""
        owner = type(self).__name__
        if not self.fitted:
            raise InputError(f"{owner}: there is nobody to compare with yet. Call fit(people) first.")
        frame = to_pandas(people, owner=owner, name="people", needed=self.pool_.columns)
        places, codes = np.asarray(self.metric_.embed(frame), dtype=np.float64), self._codes(frame)
        self.same_people_ = frame is self.pool_ or frame.equals(self.pool_)
        self.matched_, self.distance_ = self._matches(places, codes)
        self.own_neighbours_ = (
            self.neighbours_ if self.same_people_ else self._neighbours(places, codes, None)
        )
        plain, beside = self._plain(frame), (*self.matched_, self.own_neighbours_)
        self.apart_ = np.stack([self._distances(plain, index) for index in beside])
        own = np.repeat([codes == h for h in range(len(self.values_))], self.k, axis=0)
        tables, variants = [], []
        for number, found in enumerate(self.matched_):
            has = np.flatnonzero(found >= 0)
            tables.append(put_rows(frame, self.pool_.iloc[found[has]], has))
            value, rank = self.values_[number // self.k], number % self.k
            variants.append({self.attribute: value} | ({"comparator": rank + 1} if self.k > 1 else {}))
        absent = (self.matched_ < 0) & ~own
        far = np.zeros_like(absent)
        if self.max_distance is not None:
            far = np.nan_to_num(self.distance_, nan=0.0) > self.max_distance
        why: dict[str, Any] = {
            words: mask for words, mask in ((UNMATCHED, absent), (TOO_FAR, far)) if mask.any()
        }
        return MadeTwins(tuple(tables), tuple(variants), own, ~absent & ~far, why)

    def comparable(self, level: float) -> BoolArray:
        """Whether each match is as near, in all columns, as a neighbour of the comparator's own group, (variants, n).

        The limit is the distance that a share `level` of that group has to the nearest other member. If the groups
        overlap, about that share of matches is within it.
        """
        within = self._distances(self.plain_places_, self.neighbours_)
        limit = [np.quantile(within[rows], level, method="higher") for rows in self.groups_]
        return np.nan_to_num(self.apart_[:-1], nan=0.0) <= np.repeat(limit, self.k)[:, None] + 1e-12

    def _codes(self, frame: Any) -> IntArray:
        """The number of each person's group, -1 if it is none of those compared."""
        return category_codes(frame[self.attribute], self.values_)

    def _matches(self, places: FloatArray, codes: IntArray) -> tuple[IntArray, FloatArray]:
        """Positions of comparators in the pool and their distances, (groups × k, n)."""
        shape = (len(self.values_), self.k, len(places))
        found, away = np.full(shape, -1, dtype=np.int64), np.full(shape, np.nan)
        for h, rows in enumerate(self.groups_):
            asking = np.flatnonzero(codes != h)
            if self.replace and len(asking):
                index, squared = NearestPlaces(self.places_[rows]).query(places[asking], self.k)
                found[h][:, asking], away[h][:, asking] = rows[index].T, np.sqrt(squared).T
            for a in () if self.replace else np.unique(codes[asking]):
                # The pairs of two groups of the same people are found once and hold for both.
                if not (self.same_people_ and 0 <= a < h):
                    self._pair(places, np.flatnonzero(codes == a), rows, found[h], away[h])
                    if self.same_people_ and a > h:
                        for j in range(self.k):
                            has = np.flatnonzero((codes == a) & (found[h, j] >= 0))
                            found[a, j, found[h, j, has]], away[a, j, found[h, j, has]] = has, away[h, j, has]
        return found.reshape(-1, len(places)), away.reshape(-1, len(places))

    def _pair(
        self, places: FloatArray, mine: IntArray, rows: IntArray, found: IntArray, away: FloatArray
    ) -> None:
        left = rows
        for j in range(self.k):
            if len(left):
                pairs, squared = assign(places[mine], self.places_[left])
                has = np.flatnonzero(pairs >= 0)
                found[j, mine[has]], away[j, mine[has]] = left[pairs[has]], np.sqrt(squared[has])
                left = np.setdiff1d(left, left[pairs[has]])

    def _neighbours(self, places: FloatArray, codes: IntArray, person: IntArray | None) -> IntArray:
        """The nearest person of the own group in the pool, other than oneself; oneself or -1 if there is none."""
        nearest = np.full(len(places), -1, dtype=np.int64) if person is None else person.copy()
        for h, rows in enumerate(self.groups_):
            mine = np.flatnonzero(codes == h)
            if not len(mine) or len(rows) < (1 if person is None else 2):
                continue
            index = rows[NearestPlaces(self.places_[rows]).query(places[mine], 1 if person is None else 2)[0]]
            nearest[mine] = (
                index[:, 0]
                if person is None
                else np.where(index[:, 0] == person[mine], index[:, 1], index[:, 0])
            )
        return nearest

    def _plain(self, frame: Any) -> FloatArray:
        """People as numbers by all columns but the attribute."""
        if self.plain_domain_ is None:
            return np.zeros((len(frame), 0))
        return self.plain_domain_.encode_array(frame[self.others_])

    def _distances(self, plain: FloatArray, index: IntArray) -> FloatArray:
        """Distance from people of the pool, NaN for -1."""
        return np.where(index >= 0, np.linalg.norm(plain - self.plain_places_[index], axis=1), np.nan)
