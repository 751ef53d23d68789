"""One column that follows from its causes: its conditional distributions, and the move from world to world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.arrays import FloatArray
from likewise.twins.boosted_conditionals import Boosting, ClassModel, NumberModel, fit_classes, fit_numbers
from likewise.twins.column_kinds import Heaps, Kind, column_kind, find_heaps
from likewise.twins.coupling import couple_categories, couple_ordered

__all__ = ["CauseCodes", "MovedColumn", "fit_column"]

Ints = np.ndarray[Any, np.dtype[np.int64]]

# HistGradientBoosting takes no more categories than this.
_MOST_CATEGORIES = 200


@dataclass(frozen=True, eq=False)
class CauseCodes:
    """How columns become numbers for trees: numbers as they are, categories as codes.

    Parameters
    ----------
    attribute : str
    values : tuple
        Of the attribute, in the order of the groups.
    categories : mapping of str to mapping
        For each categorical column its values with their codes, commonest first.
    """

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
        """Return a column as numbers; NaN where it is missing or never seen."""
        if name in self.categories:
            return np.asarray(frame[name].astype(object).map(self.categories[name]), dtype=float)
        return np.asarray(frame[name].to_numpy(dtype=float, na_value=np.nan))

    def causes(self, frame: pd.DataFrame, names: Sequence[str], group: Ints) -> FloatArray:
        """Return the causes of a column, the group first (0 for all where it is no cause)."""
        first = group if self.attribute in names else np.zeros(len(frame))
        rest = [self.column(frame, name) for name in names if name != self.attribute]
        return np.column_stack([np.asarray(first, dtype=float), *rest])

    def categorical(self, names: Sequence[str]) -> list[bool]:
        """Whether each of the causes is a category; the group counts as a number, which trees cut as well."""
        return [False, *(name in self.categories for name in names if name != self.attribute)]


@dataclass(frozen=True, eq=False)
class MovedColumn:
    """A column and the distributions that its moves keep the rank in.

    Parameters
    ----------
    name : str
    kind : {"category", "heaped", "smooth"}
    parents : tuple of str
        Its causes.
    model : ClassModel or NumberModel
    labels : tuple
        Of a category, by code.
    heaps : Heaps or None
    low, high : float
        The range of numbers seen.
    whole : bool
        Whether the numbers are whole.
    folds : int
    direct : bool
        Whether the attribute is itself a cause.
    """

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
        group: Ints,
        target: Ints,
        fold: Ints | None,
        position: FloatArray,
        codes: CauseCodes,
    ) -> Any:
        """Return the column of the twins.

        Parameters
        ----------
        own, twins : DataFrame of n rows
            The people, and their twins as far as they are made: all causes of this column are.
        group, target : int arrays of shape (n,)
            Groups of the people and of the twins.
        fold : int array of shape (n,) or None
            None takes the mean over the folds.
        position : float array of shape (n,)
            Breaks ties.
        codes : CauseCodes
        """
        here, there = codes.causes(own, self.parents, group), codes.causes(twins, self.parents, target)
        value = codes.column(own, self.name)
        same = ((here == there) | (np.isnan(here) & np.isnan(there))).all(axis=1)
        # Whose causes stay, or whose value is not known, stays.
        some = np.flatnonzero(~same & ~np.isnan(value) & (group >= 0))
        column = own[self.name].array.copy()
        if len(some):
            g, t = (group[some], target[some]) if self.direct else (0 * group[some], 0 * target[some])
            at = None if fold is None else fold[some]
            moved = self._moved(value[some], here[some], there[some], g, t, at, position[some])
            column[some] = moved if self.kind == "category" else _as_dtype(moved, column.dtype, self.whole)
        return pd.Series(column, index=own.index, name=self.name)

    def _moved(
        self,
        value: FloatArray,
        here: FloatArray,
        there: FloatArray,
        group: Ints,
        target: Ints,
        fold: Ints | None,
        position: FloatArray,
    ) -> Any:
        if isinstance(self.model, NumberModel):
            mu, sigma = self._place(here, fold)
            new_mu, new_sigma = self._place(there, fold)
            z = self.model.across((value - mu) / sigma, group, target)
            found = new_mu + new_sigma * z
            return np.clip(np.rint(found) if self.whole else found, self.low, self.high)
        p, q = self._probabilities(here, group, fold), self._probabilities(there, target, fold)
        if self.heaps is None:
            labels = np.empty(len(self.labels), dtype=object)
            labels[:] = self.labels
            return labels[couple_categories(p, q, value.astype(np.int64), position)]
        codes = self.heaps.codes(value)
        rank = self.heaps.ranks(value, codes, group, position)
        new, inside = couple_ordered(p, q, codes, rank)
        # Where both worlds are alike, so is the number.
        return self.heaps.numbers(new, target, inside)

    def _place(self, causes: FloatArray, fold: Ints | None) -> tuple[FloatArray, FloatArray]:
        assert isinstance(self.model, NumberModel)
        if fold is not None:
            return self.model.place(causes, fold)
        parts = [self.model.place(causes, np.full(len(causes), k, dtype=np.int64)) for k in range(self.folds)]
        mu = np.mean([part[0] for part in parts], axis=0)
        return mu, np.exp(np.mean([np.log(part[1]) for part in parts], axis=0))

    def _probabilities(self, causes: FloatArray, group: Ints, fold: Ints | None) -> FloatArray:
        assert isinstance(self.model, ClassModel)
        if fold is not None:
            return self.model.probabilities(causes, group, fold)
        parts = [
            self.model.probabilities(causes, group, np.full(len(causes), k, dtype=np.int64))
            for k in range(self.folds)
        ]
        return np.asarray(np.mean(parts, axis=0))


def fit_column(
    name: str,
    frame: pd.DataFrame,
    codes: CauseCodes,
    parents: Sequence[str],
    group: Ints,
    fold: Ints,
    *,
    boosting: Boosting,
    seed: int,
) -> MovedColumn:
    """Learn how one column follows from its causes.

    Parameters
    ----------
    name : str
    frame : DataFrame of n people
    codes : CauseCodes
    parents : sequence of str
        The causes of the column.
    group, fold : int arrays of shape (n,)
    boosting : Boosting
    seed : int
    """
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


def _as_dtype(numbers: FloatArray, dtype: Any, whole: bool) -> Any:
    """Numbers as a column holds them: whole in a column of whole numbers, single precision in one of that."""
    values = np.rint(numbers) if whole or dtype.kind in "iu" else numbers
    return pd.array(values).astype(dtype)
