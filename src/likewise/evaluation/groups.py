"""Group gaps: how differently a model recognises the members of a class in one group and in another."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.checks import FloatArray, check_labels, check_same_length, check_share
from likewise.core.decisions import check_pair
from likewise.core.errors import InputError, bad_parameter
from likewise.core.intervals import Interval, Measure, share_limits
from likewise.core.text import text_table
from likewise.counterfactuals.cells import Table, find_attribute


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
    A group without people of a class has no rate there. Its TPR is NaN, the gaps are those of the other groups and
    classes, and `left_out` names what is missing; a number that nothing is left of is NaN. Intervals allow for any rate
    if nobody was seen.

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
        gaps = pairs.iloc[0] if len(pairs) == 1 else pairs.abs().max()
        return pd.Series(gaps.to_numpy(), index=self.counts.columns, name="gap")

    @property
    def rms(self) -> float:
        """``Gap_A^RMS = sqrt(mean over classes of Gap_{A,c}²)``; the largest over pairs of groups."""
        return float(gap_summaries(self.tpr.to_numpy()[None])[0, 0])

    @property
    def max(self) -> float:
        """``Gap_A^max = max over classes of |Gap_{A,c}|``; the largest over pairs of groups."""
        return float(gap_summaries(self.tpr.to_numpy()[None])[0, 1])

    @property
    def left_out(self) -> tuple[tuple[Any, Any], ...]:
        """Groups and the classes of which they have nobody: no gap knows anything of them."""
        return tuple(
            (self.groups[a], self.classes[c]) for a, c in np.argwhere(self.counts.to_numpy() == 0).tolist()
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know beside the numbers."""
        return tuple(
            f"{self.attribute}: nobody of class {label} in group {group}, so the gaps leave them out; their intervals "
            "allow for any rate there."
            for group, label in self.left_out
        )

    def measures(self, *, confidence: float = 0.95) -> tuple[Measure, ...]:
        """Gap_RMS, Gap_max and the gap of every class with confidence intervals (see `gap_intervals`).

        Parameters
        ----------
        confidence : float in (0, 1), default=0.95
            Of each interval by itself.

        Returns
        -------
        tuple of Measure
            Named ``"Gap_RMS sex"``, ``"Gap_max sex"``, ``"Gap sex, class 0"``, ….
        """
        right, people = self.correct.to_numpy(), self.counts.to_numpy()
        value = [self.rms, self.max, *self.per_class]
        intervals = gap_intervals(right, people, confidence=confidence)
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
        table = text_table(["", *(f"TPR {label}" for label in self.classes)], rows)
        return "\n".join([head, table, *self.notes])


def group_gaps(
    y_true: Any, y_pred: Any, group: Any, *, groups: Sequence[Any] | None = None, attribute: str = "group"
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
    attribute : str, default="group"
        What the groups differ in, for printing.

    Returns
    -------
    GroupGaps
        Its `left_out` names the groups that have nobody of a class.

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
        code = np.array([asked.index(name) for name in names])[code]
        names = asked
    if len(names) < 2:
        raise InputError(
            f"{owner}: 'group' has one group only ({names[0]!r}); a gap needs two. Pass data with people of both."
        )
    classes, label = np.unique(truth, return_inverse=True)
    shape = (len(names), len(classes))
    cell = code * shape[1] + label
    counts = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
    correct = np.bincount(cell[truth == decided], minlength=shape[0] * shape[1]).reshape(shape)
    index = pd.Index(names)
    return GroupGaps(
        pd.DataFrame(counts, index=index, columns=classes),
        pd.DataFrame(correct, index=index, columns=classes),
        attribute,
    )


def group_gaps_by_attribute(
    y_true: Any, y_pred: Any, frame: Any, attributes: Sequence[str | Sequence[str]]
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
    return {
        name: group_gaps(y_true, y_pred, group, attribute=name)
        for name, group in groups_by_attribute(frame, attributes, owner=owner).items()
    }


def groups_by_attribute(
    frame: Any, attributes: Sequence[str | Sequence[str]], *, owner: str
) -> dict[str, np.ndarray[Any, Any]]:
    """Return the group of each person by attribute; crossed ones are named ``"sex × race"``."""
    if isinstance(attributes, str):
        allowed, remedy = "a list of column names", f"Pass [{attributes!r}]."
        raise bad_parameter(owner, "attributes", allowed, attributes, remedy)
    found: dict[str, np.ndarray[Any, Any]] = {}
    table = Table.of(frame, owner=owner) if attributes else None
    for wanted in attributes:
        crossed = (wanted,) if isinstance(wanted, str) else tuple(wanted)
        parts = [find_attribute(table, name, owner=owner).column for name in crossed]  # type: ignore[arg-type]
        group = parts[0]
        if len(parts) > 1:
            group = np.array([" × ".join(map(str, values)) for values in zip(*parts, strict=True)])
        found[" × ".join(crossed)] = group
    return found


def gap_summaries(rates: FloatArray) -> FloatArray:
    """Gap_RMS and Gap_max of rates of shape (r, groups, classes), NaN if unknown: (r, 2)."""
    first, second = np.triu_indices(rates.shape[1], k=1)
    size = np.abs(rates[:, first] - rates[:, second])
    return np.stack([_largest(_rms(size)), _largest(size.reshape(len(size), -1))], axis=1)


def gap_intervals(correct: Any, counts: Any, *, confidence: float = 0.95) -> tuple[Interval, ...]:
    """Intervals of Gap_RMS, Gap_max and the gap of each class.

    The difference of two rates has the exact intervals of both, combined (`likewise.core.intervals`). A largest
    gap is at least every gap and at most one of them: its lower end is the largest of lower limits that hold for all
    pairs and classes together (Bonferroni), and its upper end the largest of upper limits that hold one by one. So 0 is
    inside unless some gap is shown not to be 0, which percentiles of a bootstrap of the largest never allow. Gap_RMS of
    a pair is the length of a vector, and lengths differ by no more than the length of the error: the interval is the
    estimate plus and minus a quantile of that.

    The rate of a group that has nobody of a class may be anything from 0 to 1, and the intervals allow for all of it.
    If nothing is known of a number, its ends are NaN.
    """
    check_share(confidence, owner="gap_intervals", name="confidence")
    right, people = np.asarray(correct, dtype=float), np.asarray(counts, dtype=float)
    unknown = Interval(np.nan, np.nan, confidence, "simultaneous")
    first, second = np.triu_indices(len(people), k=1)
    known = (people[first] > 0) & (people[second] > 0)
    missing, (n_pairs, n_classes) = 1.0 - confidence, known.shape

    def largest(columns: Any) -> Interval:
        several = int(known[:, columns].sum())
        if not several:
            return unknown
        gap, below, above = (part[:, columns] for part in _differences(right, people, missing / several))
        low = np.maximum(np.maximum(gap - below, -gap - above), 0.0).max()
        gap, below, above = (part[:, columns] for part in _differences(right, people, missing))
        high = np.maximum(gap + above, below - gap).max()
        return Interval(float(low), min(float(high), 1.0), confidence, "simultaneous")

    def largest_rms() -> Interval:
        several = int(known.any(axis=1).sum())
        if not several:
            return unknown
        gap = np.where(known, _differences(right, people, missing)[0], np.nan)
        found, share = np.nan_to_num(_rms(np.abs(gap))), known.mean(axis=1)
        error, error_of_all = (_error_length(right, people, known, m) for m in (missing, missing / several))
        low = np.sqrt(share) * (found - error_of_all)
        high = np.sqrt(share * (found + error) ** 2 + (1.0 - share))
        return Interval(max(float(low.max()), 0.0), min(float(high.max()), 1.0), confidence, "simultaneous")

    if n_pairs > 1:
        classes = [largest([c]) for c in range(n_classes)]
    else:
        gap, below, above = (
            np.where(known, part, np.nan)[0] for part in _differences(right, people, missing)
        )
        ends = zip(np.maximum(gap - below, -1.0), np.minimum(gap + above, 1.0), strict=True)
        classes = [Interval(float(low), float(high), confidence, "combined") for low, high in ends]
    return (largest_rms(), largest(slice(None)), *classes)


def _error_length(right: FloatArray, people: FloatArray, known: Any, missing: float) -> FloatArray:
    """Root mean square over the known classes of a pair's errors that is exceeded with probability `missing`: (pairs,).

    Errors are taken as normal with the reach of the exact limits at that level, so that for one class this is the reach
    itself. The weighted sum of their squares is matched to a chi-square distribution by mean and variance.
    """
    from scipy.special import chdtri, ndtri

    _, below, above = _differences(right, people, missing)
    reach = np.where(known, np.maximum(below, above), 0.0)
    squares = (reach / -ndtri(missing / 2)) ** 2
    total, fourth = squares.sum(axis=1), (squares**2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        quantile = fourth / total * chdtri(total**2 / fourth, missing)
        # The far tail is that of the largest part alone, which a matched distribution may fall short of.
        quantile = np.maximum(quantile, reach.max(axis=1) ** 2)
        return np.asarray(np.nan_to_num(np.sqrt(quantile / known.sum(axis=1))))


def _differences(
    right: FloatArray, people: FloatArray, missing: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Gap of each pair and class, and how far its limits are below and above, at level 1 − missing: (pairs, classes).

    A rate that nobody was seen of is taken as 1/2, within [0, 1]. That is a range without a probability, so its reach is
    added to the other's; independent errors add in squares.
    """
    rate = np.where(people > 0, right / np.maximum(people, 1), 0.5)
    low, high = share_limits(right, people, confidence=1.0 - missing)
    first, second = np.triu_indices(len(rate), k=1)
    seen = (people[first] > 0) & (people[second] > 0)

    def reach(one: FloatArray, other: FloatArray) -> FloatArray:
        return np.where(seen, np.hypot(one, other), one + other)

    down, up = rate - low, high - rate
    return rate[first] - rate[second], reach(down[first], up[second]), reach(up[first], down[second])


def _rms(size: FloatArray) -> FloatArray:
    """Root mean square over the last axis, of what is known."""
    known = np.isfinite(size)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt((np.where(known, size, 0.0) ** 2).sum(axis=-1) / known.sum(axis=-1)))


def _largest(size: FloatArray) -> FloatArray:
    """The largest over the last axis, of what is known."""
    found = np.where(np.isfinite(size), size, -np.inf).max(axis=-1)
    return np.where(np.isfinite(found), found, np.nan)
