"""One column that follows from its causes: its conditional distributions, and its counterfactual values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from likewise.core.checks import FloatArray, IntArray
from likewise.counterfactuals.causal.conditionals import (
    Boosting,
    ClassModel,
    NumberModel,
    fit_classes,
    fit_numbers,
)

# Couplings of two conditional distributions: how a person of one world becomes themselves in the other.


def couple_categories(p: FloatArray, q: FloatArray, code: IntArray, position: FloatArray) -> IntArray:
    """Move categories from distribution p to q with the least change.

    With x ~ p and an independent uniform position the result is distributed as q, and differs from x with
    probability TV(p, q). Who moves goes through the excess masses (p − q)₊ and (q − p)₊ in order, so that
    the way back is the same way.
    """
    row = np.arange(len(code))
    shared = np.minimum(p[row, code], q[row, code])
    height = position * p[row, code]
    moved = height >= shared
    out = code.copy()
    if not moved.any():
        return out
    some = np.flatnonzero(moved)
    excess, gap = np.maximum(p[some] - q[some], 0.0), np.maximum(q[some] - p[some], 0.0)
    before = np.cumsum(excess, axis=1) - excess
    at = np.arange(len(some))
    place = before[at, code[some]] + height[some] - shared[some]
    ends = np.cumsum(gap, axis=1)
    total = ends[:, -1]
    # Rounding, or p that gives the own category no room, may put a place at the very end.
    place = np.minimum(place / np.maximum(excess.sum(axis=1), 1e-300), 1.0 - 1e-12) * total
    target = (ends <= place[:, None]).sum(axis=1)
    out[some] = np.where(total > 0, np.minimum(target, p.shape[1] - 1), code[some])
    return out


def couple_ordered(
    p: FloatArray, q: FloatArray, code: IntArray, position: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Move ordered classes from p to q keeping the rank; `position` is the rank inside the own class."""
    row = np.arange(len(code))
    ends_p, ends_q = np.cumsum(p, axis=1), np.cumsum(q, axis=1)
    rank = (ends_p[row, code] - p[row, code] * (1.0 - position)) / ends_p[:, -1]
    rank = np.clip(rank, 0.0, 1.0 - 1e-12) * ends_q[:, -1]
    new = np.minimum((ends_q <= rank[:, None]).sum(axis=1), q.shape[1] - 1)
    inside = (rank - ends_q[row, new] + q[row, new]) / np.maximum(q[row, new], 1e-300)
    return new.astype(np.int64), np.clip(inside, 0.0, 1.0 - 1e-12)


# How a column is moved: as categories, as numbers with heaps (40 hours a week), or as smooth numbers.


Kind = Literal["category", "heaped", "smooth"]

_HEAP = 0.05  # share of people at one number that makes it a heap
_FEW = 20  # numbers that are classes of their own
_CLASSES = 12  # of a column with heaps and more numbers than that


def column_kind(column: pd.Series[Any]) -> Kind:
    """Say how a column is moved."""
    if getattr(column.dtype, "kind", "O") not in "iuf":
        return "category"
    counts = column.value_counts()
    if len(counts) <= _FEW or counts.iloc[0] >= _HEAP * counts.sum():
        return "heaped"
    return "smooth"


@dataclass(frozen=True, eq=False)
class Heaps:
    """Ordered classes of a column of numbers, and the numbers of each group in each class."""

    edges: FloatArray
    values: tuple[tuple[FloatArray, ...], ...]

    @property
    def n_classes(self) -> int:
        """How many classes."""
        return len(self.edges) + 1

    def codes(self, numbers: FloatArray) -> IntArray:
        """Return the class of each number."""
        return np.searchsorted(self.edges, numbers, side="right").astype(np.int64)

    def ranks(
        self, numbers: FloatArray, codes: IntArray, group: IntArray, position: FloatArray
    ) -> FloatArray:
        """Return the rank in [0, 1) of numbers among those of their group and class; ties by `position`."""
        rank = position.copy()
        for g, classes in enumerate(self.values):
            for k, seen in enumerate(classes):
                some = np.flatnonzero((group == g) & (codes == k))
                if len(some) and len(seen):
                    low = np.searchsorted(seen, numbers[some], side="left")
                    high = np.searchsorted(seen, numbers[some], side="right")
                    rank[some] = (low + position[some] * (high - low)) / len(seen)
        return np.clip(rank, 0.0, 1.0 - 1e-12)

    def numbers(self, codes: IntArray, group: IntArray, rank: FloatArray) -> FloatArray:
        """Return the number at a rank among those of a group and class."""
        found = np.full(len(codes), np.nan)
        for g, classes in enumerate(self.values):
            for k, seen in enumerate(classes):
                some = np.flatnonzero((group == g) & (codes == k))
                if len(some):
                    # A class that nobody of the group is in borrows the numbers of everybody in it.
                    known = seen if len(seen) else np.sort(np.concatenate([v[k] for v in self.values]))
                    at = np.minimum((rank[some] * len(known)).astype(np.int64), len(known) - 1)
                    found[some] = known[at]
        return found


def find_heaps(numbers: FloatArray, group: IntArray, n_groups: int) -> Heaps:
    """Cut numbers into ordered classes: heaps stand alone, the rest by quantiles."""
    values, counts = np.unique(numbers, return_counts=True)
    if len(values) <= _FEW:
        starts = set(values.tolist())
    else:
        heap = counts >= _HEAP * len(numbers)
        after = np.append(values[1:], np.inf)
        starts = {*values[heap].tolist(), *after[heap].tolist()}
        rest = numbers[~np.isin(numbers, values[heap])]
        pieces = max(2, _CLASSES - int(heap.sum()))
        cuts: Any = (
            np.quantile(rest, np.linspace(0, 1, pieces + 1)[1:-1], method="higher") if len(rest) else []
        )
        starts |= set(np.asarray(cuts).tolist())
    least = max(5, round(0.005 * len(numbers)))
    edges: list[float] = []
    below = 0
    ordered = np.sort(numbers)
    for start in sorted(starts):
        at = int(np.searchsorted(ordered, start, side="left"))
        # Merge classes of very few people.
        if at - below >= least and len(ordered) - at >= least:
            edges.append(start)
            below = at
    cut = np.asarray(edges, dtype=float)
    codes = np.searchsorted(cut, numbers, side="right")
    seen = tuple(
        tuple(np.sort(numbers[(group == g) & (codes == k)]) for k in range(len(cut) + 1))
        for g in range(n_groups)
    )
    return Heaps(cut, seen)


# HistGradientBoosting takes no more categories than this.
_MOST_CATEGORIES = 200


@dataclass(frozen=True, eq=False)
class CauseCodes:
    """How columns become numbers for trees: numbers as they are, categories as codes."""

    attribute: str
    values: tuple[Any, ...]
    categories: Mapping[str, Mapping[Any, int]]

    @classmethod
    def of(cls, frame: pd.DataFrame, attribute: str, values: tuple[Any, ...]) -> CauseCodes:
        """Look up the categories of a table."""
        found: dict[str, dict[Any, int]] = {}
        for name in frame.columns:
            if column_kind(frame[name]) == "category":
                common = frame[name].value_counts().index[:_MOST_CATEGORIES]
                found[str(name)] = {value: code for code, value in enumerate(common)}
        return cls(attribute, values, found)

    def column(self, frame: pd.DataFrame, name: str) -> FloatArray:
        """Return a column as numbers; NaN if it is missing or never seen."""
        if name in self.categories:
            return np.asarray(frame[name].astype(object).map(self.categories[name]), dtype=float)
        return np.asarray(frame[name].to_numpy(dtype=float, na_value=np.nan))

    def causes(self, frame: pd.DataFrame, names: Sequence[str], group: IntArray) -> FloatArray:
        """Return the causes of a column, the group first (0 for all if it is not a cause)."""
        first = group if self.attribute in names else np.zeros(len(frame))
        rest = [self.column(frame, name) for name in names if name != self.attribute]
        return np.column_stack([np.asarray(first, dtype=float), *rest])

    def categorical(self, names: Sequence[str]) -> list[bool]:
        """Whether each of the causes is a category; the group counts as a number, which trees cut as well."""
        return [False, *(name in self.categories for name in names if name != self.attribute)]


@dataclass(frozen=True, eq=False)
class MovedColumn:
    """A column and the distributions that its moves keep the rank in."""

    name: str
    kind: Kind
    parents: tuple[str, ...]
    model: ClassModel | NumberModel
    labels: tuple[Any, ...]
    heaps: Heaps | None
    low: float
    high: float
    whole: bool
    folds: int
    direct: bool

    def move(
        self,
        own: pd.DataFrame,
        twins: pd.DataFrame,
        group: IntArray,
        target: IntArray,
        fold: IntArray | None,
        position: FloatArray,
        codes: CauseCodes,
    ) -> Any:
        """Return the column of the twins."""
        here, there = codes.causes(own, self.parents, group), codes.causes(twins, self.parents, target)
        value = codes.column(own, self.name)
        same = ((here == there) | (np.isnan(here) & np.isnan(there))).all(axis=1)
        # Whose causes stay, or whose value is not known, stays.
        some = np.flatnonzero(~same & ~np.isnan(value) & (group >= 0))
        column = own[self.name].array.copy()
        if len(some):
            g, t = (group[some], target[some]) if self.direct else (0 * group[some], 0 * target[some])
            folds = range(self.folds) if fold is None else [fold[some]]
            p, q = (self._world(part[some], who, folds) for part, who in ((here, g), (there, t)))
            moved = self._moved(value[some], p, q, g, t, position[some])
            if self.kind != "category":
                # Whole numbers in a column of whole numbers, single precision in one of that.
                whole = self.whole or column.dtype.kind in "iu"
                moved = pd.array(np.rint(moved) if whole else moved).astype(column.dtype)
            column[some] = moved
        return pd.Series(column, index=own.index, name=self.name)

    def _world(self, causes: FloatArray, group: IntArray, folds: Iterable[Any]) -> Any:
        """Location and scale of the column given its causes, or its probabilities; the mean of several folds."""
        if isinstance(self.model, ClassModel):
            found = [self.model.probabilities(causes, group, np.full(len(causes), k)) for k in folds]
            return found[0] if len(found) == 1 else np.asarray(np.mean(found, axis=0))
        parts = [self.model.place(causes, np.full(len(causes), k)) for k in folds]
        if len(parts) == 1:
            return parts[0]
        mu = np.mean([part[0] for part in parts], axis=0)
        return mu, np.exp(np.mean([np.log(part[1]) for part in parts], axis=0))

    def _moved(
        self, value: FloatArray, p: Any, q: Any, group: IntArray, target: IntArray, position: FloatArray
    ) -> Any:
        """Values carried from one world to the other, keeping the rank."""
        if isinstance(self.model, NumberModel):
            (mu, sigma), (new_mu, new_sigma) = p, q
            found = new_mu + new_sigma * self.model.across((value - mu) / sigma, group, target)
            return np.clip(np.rint(found) if self.whole else found, self.low, self.high)
        if self.heaps is None:
            labels = np.empty(len(self.labels), dtype=object)
            labels[:] = self.labels
            return labels[couple_categories(p, q, value.astype(np.int64), position)]
        codes = self.heaps.codes(value)
        rank = self.heaps.ranks(value, codes, group, position)
        new, inside = couple_ordered(p, q, codes, rank)
        # If both worlds are alike, so is the number.
        return self.heaps.numbers(new, target, inside)


def fit_column(
    name: str,
    frame: pd.DataFrame,
    codes: CauseCodes,
    parents: Sequence[str],
    group: IntArray,
    fold: IntArray,
    *,
    boosting: Boosting,
    seed: int,
) -> MovedColumn:
    """Learn how one column follows from its causes."""
    value = codes.column(frame, name)
    kind = column_kind(frame[name])
    known = np.flatnonzero(~np.isnan(value))
    causes = codes.causes(frame, parents, group)[known]
    direct = codes.attribute in parents
    own = group[known] if direct else 0 * group[known]
    shared: dict[str, Any] = {
        "n_groups": len(codes.values) if direct else 1,
        "categorical": codes.categorical(parents),
        "boosting": boosting,
        "seed": seed,
    }
    numbers = value[known]
    whole = bool((numbers == np.rint(numbers)).all())
    labels: tuple[Any, ...] = ()
    heaps: Heaps | None = None
    model: ClassModel | NumberModel
    if kind == "smooth":
        model = fit_numbers(causes, numbers, own, fold[known], **shared)
    else:
        classes: IntArray
        if kind == "category":
            labels = tuple(codes.categories[name])
            classes, n_classes = numbers.astype(np.int64), len(labels)
        else:
            heaps = find_heaps(numbers, own, shared["n_groups"])
            classes, n_classes = heaps.codes(numbers), heaps.n_classes
        model = fit_classes(causes, classes, own, fold[known], n_classes=n_classes, **shared)
    low, high = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 0.0)
    return MovedColumn(
        name, kind, tuple(parents), model, labels, heaps, low, high, whole, boosting.folds, direct
    )
