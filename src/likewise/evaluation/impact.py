"""Selection rates and impact ratios by group, as New York City's rules for automated hiring tools define them.

The definitions are those of 6 RCNY § 5-300 and § 5-301, which carry out Local Law 144 of 2021. The numbers are evidence
for an audit under that law; whether a tool and its audit comply is not for a table to say.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from likewise.core.checks import BoolArray, FloatArray, check_number, check_same_length
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import check_columns
from likewise.core.intervals import Interval, Measure, ratio_limits
from likewise.core.text import text_table
from likewise.evaluation.groups import gap_intervals

# § 5-301 (d): a category with less of the data may be left out of the impact ratios, and is still counted.
SMALL_SHARE = 0.02

_CROSS = " × "


@dataclass(frozen=True)
class CategoryRate:
    """One category of an `ImpactTable`.

    Parameters
    ----------
    category : str
        The group's value, or several joined by " × ".
    people, selected : int
        How many there are, and how many of them are selected (or score above the median).
    rate : float
        selected / people.
    impact_ratio : float or None
        The rate over the highest rate among the categories that count; None if the category does not count, or
        if nobody is selected.
    excluded : bool
        Whether the category is too small to count.
    low, high : float or None
        95% confidence interval of the impact ratio; it includes 1 unless some other category is shown to have a higher
        rate. None without a ratio.

    Examples
    --------
    >>> CategoryRate("F", people=50, selected=10, rate=0.2, impact_ratio=0.5).impact_ratio
    0.5
    """

    category: str
    people: int
    selected: int
    rate: float
    impact_ratio: float | None
    excluded: bool = False
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class ImpactTable:
    """Rates and impact ratios of the categories of one attribute, or of several crossed.

    Parameters
    ----------
    attribute : str
        Such as ``"sex"`` or ``"sex × race"``.
    kind : {"selection", "scoring"}
        Selection rates of decisions, or scoring rates: the share above the sample's median score.
    outcome : str
        What selected means here.
    rows : tuple of CategoryRate
        In the order of the categories.
    unknown : int
        People of no known category, who are in no rate.
    small_share : float
        Categories with less of the known people are excluded from the ratios.

    Examples
    --------
    >>> print(impact_ratios([1, 1, 0, 1, 0, 0], ["m", "m", "m", "f", "f", None], attribute="sex"))
    sex: selection rates (selected)
    category  people  selected   rate  impact ratio    95% interval
    f              2         1  0.500         0.750  [0.018, 1.000]
    m              3         2  0.667         1.000  [0.168, 1.000]
    1 of unknown category in no rate.
    """

    attribute: str
    kind: Literal["selection", "scoring"]
    outcome: str
    rows: tuple[CategoryRate, ...]
    unknown: int
    small_share: float = SMALL_SHARE

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know beside the numbers."""
        said = []
        small = [row.category for row in self.rows if row.excluded]
        if small:
            said.append(
                f"Excluded from the impact ratios, each with less than {self.small_share:.0%} of the people: "
                f"{', '.join(small)}."
            )
        if self.unknown:
            said.append(f"{self.unknown:,} of unknown category in no rate.")
        if self.rows and all(row.impact_ratio is None for row in self.rows):
            said.append("There are no impact ratios: nobody in a category that counts is selected.")
        return tuple(said)

    def __str__(self) -> str:
        rows = [
            [
                row.category,
                f"{row.people:,}",
                f"{row.selected:,}",
                f"{row.rate:.3f}",
                "n/a" if row.impact_ratio is None else f"{row.impact_ratio:.3f}",
                "" if row.low is None else f"[{row.low:.3f}, {row.high:.3f}]",
            ]
            for row in self.rows
        ]
        table = text_table(["category", "people", "selected", "rate", "impact ratio", "95% interval"], rows)
        return "\n".join([f"{self.attribute}: {self.kind} rates ({self.outcome})", table, *self.notes])


def above_median(scores: Any) -> BoolArray:
    """Return who scores above the median of the whole sample (§ 5-300, "scoring rate").

    Examples
    --------
    >>> above_median([1, 2, 3, 10]).tolist(), above_median([1, 2, 2]).tolist()
    ([False, False, True, True], [False, False, False])
    """
    numbers: FloatArray = np.asarray(scores, dtype=float)
    if numbers.ndim != 1 or not numbers.size or not np.isfinite(numbers).all():
        raise bad_parameter("above_median", "scores", "finite numbers, one for each person", "others")
    return np.asarray(numbers > np.median(numbers))


def impact_ratios(
    selected: Any,
    group: Any,
    *,
    attribute: str = "group",
    kind: Literal["selection", "scoring"] = "selection",
    outcome: str = "selected",
    small_share: float = SMALL_SHARE,
) -> ImpactTable:
    """Rates of the categories of one grouping, and each over the highest (§ 5-301 (b) and (c)).

    Parameters
    ----------
    selected : array of shape (n,) of truth values
        Who is selected, or for scores `above_median`.
    group : array-like of shape (n,)
        The category of each person; missing is unknown.
    attribute, kind, outcome
        As in `ImpactTable`.
    small_share : float, default=0.02
        Categories with less than this share of the people of known category are counted and rated, but have no ratio
        and are never the highest; 0 lets all count.

    Returns
    -------
    ImpactTable

    Examples
    --------
    >>> table = impact_ratios([1, 1, 0, 1, 0, 0], ["m", "m", "m", "f", "f", "f"])
    >>> [(row.category, row.impact_ratio) for row in table.rows]
    [('f', 0.5), ('m', 1.0)]
    """
    owner = "impact_ratios"
    least = check_number(small_share, owner=owner, name="small_share", low=0, high=1)
    chosen = np.asarray(selected)
    if chosen.ndim != 1 or not np.isin(chosen, (0, 1)).all():
        raise bad_parameter(owner, "selected", "True or False for each person", "others")
    groups = pd.Series(np.asarray(group, dtype=object))
    check_same_length(owner, selected=chosen, group=groups.to_numpy())
    known = groups.notna().to_numpy()
    members = groups[known].map(str).to_numpy()
    names, codes = (
        np.unique(members, return_inverse=True) if len(members) else (np.array([]), np.array([], int))
    )
    people = np.bincount(codes, minlength=len(names))
    taken = np.bincount(codes, weights=chosen[known].astype(float), minlength=len(names)).astype(int)
    rates = taken / people
    counts = people >= least * len(members)
    highest = rates[counts].max(initial=0.0)
    ends = iter(zip(*impact_ratio_limits(taken[counts], people[counts]), strict=True))
    rows = tuple(
        CategoryRate(
            str(names[i]),
            int(people[i]),
            int(taken[i]),
            float(rates[i]),
            float(rates[i] / highest) if counts[i] and highest > 0 else None,
            not bool(counts[i]),
            *(map(float, next(ends)) if counts[i] and highest > 0 else ()),
        )
        for i in range(len(names))
    )
    return ImpactTable(attribute, kind, outcome, rows, int((~known).sum()), least)


def impact_ratio_limits(selected: Any, people: Any) -> tuple[FloatArray, FloatArray]:
    """95% confidence limits of each category's rate over the highest rate, (k,) each.

    The ratio is the least of the ratios to all categories: it is at most each of them, so its upper limit is the least
    of limits that hold for all together (Bonferroni), and its lower limit the least of limits that hold one by one.
    """
    others = max(len(people) - 1, 1)
    low = ratio_limits(selected, people, confidence=0.95)[0]
    high = ratio_limits(selected, people, confidence=1.0 - (1.0 - 0.95) / others)[1]
    np.fill_diagonal(low, 1.0)
    np.fill_diagonal(high, 1.0)
    return np.minimum(low, 1.0).min(axis=1, initial=1.0), np.minimum(high, 1.0).min(axis=1, initial=1.0)


def selection_measures(
    selected: Any, group: Any, *, attribute: str, confidence: float = 0.95
) -> tuple[Measure, Measure]:
    """Largest difference and smallest ratio of the groups' selection rates, with intervals that allow for equality."""
    names, codes = np.unique(np.asarray(group, dtype=str), return_inverse=True)
    people = np.bincount(codes)
    taken = np.bincount(codes, weights=np.asarray(selected, dtype=float))
    rates, k = taken / people, len(names)
    difference = gap_intervals(taken[:, None], people[:, None], confidence=confidence)[1]
    every = ~np.eye(k, dtype=bool)
    low = ratio_limits(taken, people, confidence=confidence)[0][every].min()
    high = ratio_limits(taken, people, confidence=1.0 - (1.0 - confidence) / (k * (k - 1)))[1][every].min()
    top = float(rates.max())
    ratio = Interval(min(float(low), 1.0), min(float(high), 1.0), confidence, "simultaneous")
    return (
        Measure.of(f"selection difference {attribute}", float(np.ptp(rates)), difference),
        Measure.of(f"selection ratio {attribute}", float(rates.min()) / top if top else np.nan, ratio),
    )


def impact_tables(
    selected: Any,
    frame: pd.DataFrame,
    attributes: Sequence[str],
    *,
    kind: Literal["selection", "scoring"] = "selection",
    outcome: str = "selected",
    small_share: float = SMALL_SHARE,
) -> tuple[ImpactTable, ...]:
    """Make the tables of several attributes: of each alone, then of each two crossed (sex × race).

    Parameters
    ----------
    selected : array of shape (n,) of truth values
    frame : DataFrame of n rows
        Holds the attributes; who misses one is of unknown category in its tables.
    attributes : sequence of str
    kind, outcome, small_share
        As in `impact_ratios`.

    Returns
    -------
    tuple of ImpactTable

    Examples
    --------
    >>> people = pd.DataFrame({"sex": ["f", "m", "f", "m"], "race": ["a", "a", "b", "b"]})
    >>> [table.attribute for table in impact_tables([1, 0, 1, 1], people, ["sex", "race"])]
    ['sex', 'race', 'sex × race']
    """
    owner = "impact_tables"
    if isinstance(attributes, str) or not attributes:
        raise InputError(f"{owner}: 'attributes' must be a list of columns, such as ['sex', 'race'].")
    check_columns(frame, list(attributes), owner=owner)
    groupings = {name: frame[name].to_numpy(dtype=object) for name in attributes}
    for first, second in itertools.combinations(dict.fromkeys(attributes), 2):
        both = frame[[first, second]]
        words = both[first].map(str) + _CROSS + both[second].map(str)
        groupings[f"{first}{_CROSS}{second}"] = words.where(both.notna().all(axis=1), None).to_numpy(
            dtype=object
        )
    return tuple(
        impact_ratios(selected, group, attribute=name, kind=kind, outcome=outcome, small_share=small_share)
        for name, group in groupings.items()
    )
