"""Group gaps: how differently a model recognises the members of a class in one group and in another."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.arrays import FloatArray
from likewise.core.checks import check_labels, check_same_length
from likewise.core.errors import InputError, bad_parameter
from likewise.core.randomness import RandomState
from likewise.core.text import text_table
from likewise.evaluation.bootstrap import bootstrap_counts
from likewise.evaluation.labels import LabelArray, check_pair
from likewise.evaluation.measures import Measure
from likewise.evaluation.table_cells import Table, find_attribute

__all__ = ["GroupGaps", "group_gaps", "group_gaps_by_attribute"]


@dataclass(frozen=True, eq=False)
class GroupGaps:
    """True positive rates by group and class, and the gaps between groups (Appendix D.5 of the paper).

    Parameters
    ----------
    counts : pandas.DataFrame of shape (n_groups, n_classes)
        How many people of the group belong to the class.
    correct : pandas.DataFrame of shape (n_groups, n_classes)
        For how many of them the class is predicted.
    attribute : str, default="group"
        What the groups differ in.

    Notes
    -----
    With two groups, Gap_c = TPR_{0,c} − TPR_{1,c} keeps its sign (first group minus second). With more, each
    pair of groups is a binary attribute as in the paper, and every number reported is the largest over pairs.
    A class without people in a group has no rate there: its TPR, and every number that needs it, is NaN.

    Examples
    --------
    >>> gaps = group_gaps([1, 1, 0, 0], [1, 0, 0, 0], ["f", "m", "f", "m"])
    >>> gaps.max, round(gaps.rms, 3)
    (1.0, 0.707)
    >>> print(gaps)
    group: Gap_RMS 0.707, Gap_max 1.000
            TPR 0  TPR 1
    f       1.000  1.000
    m       1.000  0.000
    gap     0.000  1.000
    people      2      2
    """

    counts: pd.DataFrame
    correct: pd.DataFrame
    attribute: str = "group"

    @property
    def groups(self) -> tuple[Any, ...]:
        """The groups, in the order of subtraction."""
        return tuple(self.counts.index)

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes."""
        return tuple(self.counts.columns)

    @property
    def tpr(self) -> pd.DataFrame:
        """TPR_{a,c} = P(Ŷ = c | A = a, Y = c): (n_groups, n_classes)."""
        return self.correct / self.counts.where(self.counts > 0)

    @property
    def pairs(self) -> pd.DataFrame:
        """Signed gap of every pair of groups: (n_pairs, n_classes), indexed by (first, second)."""
        rates = self.tpr.to_numpy()
        chosen = list(itertools.combinations(range(len(rates)), 2))
        names = pd.MultiIndex.from_tuples([(self.groups[a], self.groups[b]) for a, b in chosen])
        gaps = np.array([rates[a] - rates[b] for a, b in chosen])
        return pd.DataFrame(gaps, index=names, columns=self.counts.columns)

    @property
    def per_class(self) -> pd.Series[float]:
        """``Gap_{A,c}`` of every class: signed for two groups, the largest size over pairs for more."""
        pairs = self.pairs
        gaps = pairs.iloc[0] if len(pairs) == 1 else pairs.abs().max(skipna=False)
        return pd.Series(gaps.to_numpy(), index=self.counts.columns, name="gap")

    @property
    def rms(self) -> float:
        """``Gap_A^RMS = sqrt(mean over classes of Gap_{A,c}²)``; the largest over pairs of groups."""
        return float(_summaries(self.tpr.to_numpy()[None])[0, 0])

    @property
    def max(self) -> float:
        """``Gap_A^max = max over classes of |Gap_{A,c}|``; the largest over pairs of groups."""
        return float(_summaries(self.tpr.to_numpy()[None])[0, 1])

    def measures(
        self,
        *,
        confidence: float = 0.95,
        method: str = "percentile",
        n_resamples: int = 2000,
        random_state: RandomState = 0,
    ) -> tuple[Measure, ...]:
        """Gap_RMS, Gap_max and the gap of every class with bootstrap confidence intervals.

        Parameters
        ----------
        confidence, method, n_resamples, random_state
            As in `bootstrap_interval`.

        Returns
        -------
        tuple of Measure
            Named ``"Gap_RMS sex"``, ``"Gap_max sex"``, ``"Gap sex, class 0"``, ….

        Notes
        -----
        Gap_RMS and Gap_max cannot be negative, so where the true gap is near zero they, and their intervals,
        sit above it; the signed gaps of the classes do not have that bias.
        """
        shape = self.counts.shape
        right = self.correct.to_numpy().ravel()
        cells = np.stack([self.counts.to_numpy().ravel() - right, right], axis=1).ravel()
        value = _all_gaps(cells[None].astype(float), shape)[0]
        intervals = bootstrap_counts(
            lambda counts: _all_gaps(counts, shape),
            cells,
            confidence=confidence,
            method=method,
            n_resamples=n_resamples,
            random_state=random_state,
        )
        names = [f"Gap_RMS {self.attribute}", f"Gap_max {self.attribute}"]
        names += [f"Gap {self.attribute}, class {label}" for label in self.classes]
        return tuple(
            Measure.of(name, float(v), interval)
            for name, v, interval in zip(names, value, intervals, strict=True)
        )

    def __str__(self) -> str:
        rows = [
            [str(group), *(f"{rate:.3f}" for rate in rates)]
            for group, rates in zip(self.groups, self.tpr.to_numpy(), strict=True)
        ]
        rows.append(["gap", *(f"{gap:.3f}" for gap in self.per_class)])
        rows.append(["people", *(f"{n:,}" for n in self.counts.sum())])
        head = f"{self.attribute}: Gap_RMS {self.rms:.3f}, Gap_max {self.max:.3f}"
        return head + "\n" + text_table(["", *(f"TPR {label}" for label in self.classes)], rows)


def group_gaps(
    y_true: Any,
    y_pred: Any,
    group: Any,
    *,
    groups: Sequence[Any] | None = None,
    empty: str = "raise",
    attribute: str = "group",
) -> GroupGaps:
    """Gaps between groups in the true positive rate of each class (Appendix D.5 of the paper).

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        True and predicted labels; two or more classes in `y_true`.
    group : array-like of shape (n,)
        The group of each person; two or more.
    groups : sequence, optional
        The groups in the order of subtraction; sorted by default. Each must have members.
    empty : {"raise", "nan"}, default="raise"
        What to do where a group has nobody of a class: refuse, or give NaN for that rate and for every gap
        that needs it. Leaving it out would make the model look fairer than anyone knows.
    attribute : str, default="group"
        What the groups differ in, for printing.

    Returns
    -------
    GroupGaps

    Examples
    --------
    >>> group_gaps([1, 1, 0, 0], [1, 0, 0, 0], ["f", "m", "f", "m"]).tpr
         0    1
    f  1.0  1.0
    m  1.0  0.0
    """
    owner = "group_gaps"
    truth, decided = check_pair(y_true, y_pred, owner=owner, min_classes=2)
    members = check_labels(group, owner=owner, name="group", min_classes=1)
    check_same_length(owner, y_true=truth, group=members)
    if empty not in ("raise", "nan"):
        raise bad_parameter(owner, "empty", allowed="'raise' or 'nan'", got=empty)
    names, code = _group_codes(members, groups, owner)
    classes, label = np.unique(truth, return_inverse=True)
    shape = (len(names), len(classes))
    cell = code * shape[1] + label
    counts = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
    correct = np.bincount(cell[truth == decided], minlength=shape[0] * shape[1]).reshape(shape)
    if empty == "raise" and (counts == 0).any():
        missing = [f"{names[a]!r} × {classes.tolist()[c]!r}" for a, c in np.argwhere(counts == 0)]
        raise InputError(
            f"{owner}: nobody is of group × class {', '.join(missing[:5])}, so the rate there is unknown. "
            "Pass more data, merge groups, or pass empty='nan' for gaps that are NaN."
        )
    index = pd.Index(names)
    return GroupGaps(
        pd.DataFrame(counts, index=index, columns=classes),
        pd.DataFrame(correct, index=index, columns=classes),
        attribute,
    )


def group_gaps_by_attribute(
    y_true: Any, y_pred: Any, frame: Any, attributes: Sequence[str | Sequence[str]], *, empty: str = "raise"
) -> dict[str, GroupGaps]:
    """Group gaps for several attributes of a table.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        True and predicted labels.
    frame : pandas, polars or arrow table of n rows
        Holds the attributes as columns, or as 0/1 columns ``attribute_value``.
    attributes : sequence of str or of tuples of str
        A tuple crosses its attributes: ``("sex", "race")`` compares white women, white men, ….
    empty : {"raise", "nan"}, default="raise"
        As in `group_gaps`.

    Returns
    -------
    dict
        Name of the attribute to `GroupGaps`; crossed ones are named ``"sex × race"``.

    Examples
    --------
    >>> people = pd.DataFrame({"sex": ["f", "m", "f", "m"]})
    >>> group_gaps_by_attribute([1, 1, 0, 0], [1, 0, 0, 0], people, ["sex"])["sex"].max
    1.0
    """
    owner = "group_gaps_by_attribute"
    if isinstance(attributes, str):
        raise bad_parameter(
            owner,
            "attributes",
            allowed="a list of column names",
            got=attributes,
            remedy=f"Pass [{attributes!r}].",
        )
    table = Table.of(frame, owner=owner)
    found: dict[str, GroupGaps] = {}
    for wanted in attributes:
        crossed = (wanted,) if isinstance(wanted, str) else tuple(wanted)
        parts = [find_attribute(table, name, owner=owner).column for name in crossed]
        name = " × ".join(crossed)
        group = parts[0]
        if len(parts) > 1:
            group = np.array([" × ".join(map(str, values)) for values in zip(*parts, strict=True)])
        found[name] = group_gaps(y_true, y_pred, group, empty=empty, attribute=name)
    return found


def _group_codes(
    members: LabelArray, groups: Sequence[Any] | None, owner: str
) -> tuple[list[Any], np.ndarray[Any, Any]]:
    seen, code = np.unique(members, return_inverse=True)
    names = seen.tolist()
    if groups is not None:
        asked = list(dict.fromkeys(groups))
        without = [name for name in asked if name not in names]
        if without:
            raise InputError(
                f"{owner}: group {without[0]!r} has no members. The groups in the data: "
                f"{', '.join(map(repr, names[:12]))}. Leave it out of 'groups', or pass data with such people."
            )
        unlisted = [name for name in names if name not in asked]
        if unlisted:
            raise InputError(
                f"{owner}: 'group' holds {unlisted[0]!r}, which 'groups' does not list. "
                "List every group, or drop those rows."
            )
        place = np.array([asked.index(name) for name in names])
        names, code = asked, place[code]
    if len(names) < 2:
        raise InputError(
            f"{owner}: 'group' has one group only ({names[0]!r}); a gap needs two. Pass data with people of both."
        )
    return names, code


def _summaries(tpr: FloatArray) -> FloatArray:
    """Gap_RMS and Gap_max of rates of shape (r, groups, classes): (r, 2)."""
    first, second = _pair_index(tpr.shape[1])
    gaps = tpr[:, first] - tpr[:, second]
    rms = np.sqrt((gaps**2).mean(axis=2)).max(axis=1)
    largest = np.abs(gaps).max(axis=(1, 2))
    return np.stack([rms, largest], axis=1)


def _all_gaps(cells: FloatArray, shape: tuple[int, int]) -> FloatArray:
    """Gap_RMS, Gap_max and the gap of each class from counts of (group, class, wrong or right)."""
    counts = cells.reshape(len(cells), *shape, 2)
    with np.errstate(invalid="ignore"):
        tpr = counts[..., 1] / counts.sum(axis=3)
    first, second = _pair_index(shape[0])
    gaps = tpr[:, first] - tpr[:, second]
    per_class = gaps[:, 0] if len(first) == 1 else np.abs(gaps).max(axis=1)
    return np.concatenate([_summaries(tpr), per_class], axis=1)


def _pair_index(n_groups: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    return np.triu_indices(n_groups, k=1)
