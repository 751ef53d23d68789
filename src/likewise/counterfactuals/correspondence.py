"""Correspondence studies: decisions about copies of a person that differ only in sensitive columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.checks import BoolArray, IntArray, check_integer, check_number
from likewise.core.decisions import check_model, decide, decisions_differ
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import to_same_library
from likewise.core.intervals import Interval, Measure, proportion_interval
from likewise.core.text import text_table
from likewise.counterfactuals.cells import AttributeColumn, Table
from likewise.counterfactuals.edited_rows import TwinMaker, ready_maker
from likewise.counterfactuals.edits import Edit, Edits, cells_of, resolve_edits


@dataclass(frozen=True, eq=False)
class CorrespondenceStudy:
    """What a model decided about every person and their counterparts.

    Parameters
    ----------
    decisions : pandas.DataFrame of shape (n_people, n_variants)
        One row per person, one column per counterpart, named by what was edited: ``"sex=Male, race=White"``. The
        index is that of a pandas frame, else the row's position.
    flipped : ndarray of bool, shape (n_people,)
        Whether the counterparts of a person do not all get the same decision.
    positions : ndarray of int, shape (n_people,)
        Where each person stands in the frame that was studied (all rows, unless `only` chose some).
    variants : tuple of dict
        What was edited in each counterpart: column to value.
    frame : data frame
        The people who flipped, in the library they came in, with the decisions about all their counterparts side
        by side in columns ``"decision: sex=Male"``, ….

    Examples
    --------
    >>> people = pd.DataFrame({"sex": ["F", "M"], "age": [30, 50]})
    >>> study = correspondence_study(lambda t: (t["age"] > 40) & (t["sex"] == "M"), people, {"sex": None})
    >>> study.consistency, study.flipped.tolist()
    (0.5, [False, True])
    >>> print(study)
    1 of 2 people get the same decision whatever the edit: consistency 0.500 [0.013, 0.987]
           False  True
    sex=F      2     0
    sex=M      1     1
    """

    decisions: pd.DataFrame
    flipped: BoolArray
    positions: IntArray
    variants: tuple[dict[str, Any], ...]
    frame: Any

    @property
    def n_people(self) -> int:
        """How many people were studied."""
        return len(self.flipped)

    @property
    def n_flipped(self) -> int:
        """How many of them flipped."""
        return int(self.flipped.sum())

    @property
    def consistency(self) -> float:
        """Share of people with the same decision for all their twins."""
        return (self.n_people - self.n_flipped) / self.n_people

    @property
    def counts(self) -> pd.DataFrame:
        """How many people get which decision, variant by variant: (n_variants, n_decisions)."""
        columns = {name: self.decisions[name].value_counts() for name in self.decisions.columns}
        return pd.DataFrame(columns).fillna(0).astype(int).sort_index().T

    def interval(self, *, confidence: float = 0.95) -> Interval:
        """Exact confidence interval of `consistency` (see `proportion_interval`)."""
        return proportion_interval(self.n_people - self.n_flipped, self.n_people, confidence=confidence)

    def __str__(self) -> str:
        counts = self.counts
        header = ["", *(str(label) for label in counts.columns)]
        rows = [
            [str(name), *(str(n) for n in row)]
            for name, row in zip(counts.index, counts.to_numpy(), strict=True)
        ]
        same = self.n_people - self.n_flipped
        measure = Measure.of("consistency", self.consistency, self.interval())
        head = f"{same:,} of {self.n_people:,} people get the same decision whatever the edit: {measure}"
        return head + ("\n" + text_table(header, rows) if len(header) <= 12 else "")


def correspondence_study(
    model: Any,
    frame: Any,
    edits: Edits | TwinMaker,
    *,
    encode: Callable[[Any], Any] | None = None,
    only: bool = False,
    allow_new: bool = False,
    tolerance: float | None = None,
    chunk_size: int = 100_000,
) -> CorrespondenceStudy:
    """Make every counterpart of every person by editing columns, and compare the decisions.

    Parameters
    ----------
    model : object with `predict`, or callable
        Gets a table of counterparts and gives one decision per row.
    frame : pandas, polars or arrow table of n people
        Columns that are edited may not have missing values; the others are the model's business. An encoded
        table works too: an attribute that is not a column of its own is looked for as 0/1 columns
        (``"relationship"`` in ``relationship_Husband``, ``relationship_Wife``, …; ``"sex"`` in ``sex_Male``).
    edits : mapping, Edit, or sequence
        - ``{"sex": ["Female", "Male"], "race": "all"}``: all combinations of the values listed for each
          column; ``"all"`` or None stands for every value seen.
        - ``[{"relationship": "Wife", "sex": "Female"}, {"relationship": "Husband", "sex": "Male"}]``: columns
          that change together, one dict per counterpart; ``{}`` is the person as they are.
        - a list of `Edit` and of such lists: all combinations of the parts.
        - an `Edit` with consequences, or another `TwinMaker` of `likewise.counterfactuals`: everybody's counterparts
          as it makes them, learned from these people unless it is fitted. A counterpart that it calls unusable counts
          as decided like the person.
    encode : callable, optional
        Applied to every table of counterparts before the model sees it, such as ``domain.encode``.
    only : bool, default=False
        Study only people who already have one of the edited combinations of values (husbands and wives),
        rather than make counterparts of everyone as the paper does.
    allow_new : bool, default=False
        Whether to edit to values that never occur in their column.
    tolerance : float >= 0, optional
        For models that give numbers rather than labels: counterparts within this range of each other count as
        treated the same. By default decisions must be labels, and equal.
    chunk_size : int, default=100_000
        How many rows of one variant the model gets at once: what bounds the memory.

    Returns
    -------
    CorrespondenceStudy

    Examples
    --------
    >>> people = pd.DataFrame({"sex": ["F", "M", "F"], "pay": [1, 2, 3]})
    >>> biased = lambda table: (table["pay"] + (table["sex"] == "M") > 2).astype(int)
    >>> study = correspondence_study(biased, people, {"sex": ["F", "M"]})
    >>> study.frame
      sex  pay  decision: sex=F  decision: sex=M
    1   M    2                0                1
    """
    owner = "correspondence_study"
    check_model(model, owner=owner)
    check_integer(chunk_size, owner=owner, name="chunk_size", low=1)
    if tolerance is not None:
        check_number(tolerance, owner=owner, name="tolerance", low=0)
    if encode is not None and not callable(encode):
        raise bad_parameter(owner, "encode", "a function of a table", encode, "Pass domain.encode.")
    table = Table.of(frame, owner=owner)
    maker = ready_maker(edits, frame, owner=owner)
    positions: IntArray = np.arange(table.n_rows)
    if maker is not None:
        made = maker.make(frame)
        variants, chosen = [dict(variant) for variant in made.variants], table
        # The model gets counterparts in the library that the people came in.
        twins = [(Table(to_same_library(rows, frame)), dict[str, Any]()) for rows in made.tables]
    else:
        variants, attributes = resolve_edits(edits, table, owner=owner, allow_new=allow_new)  # type: ignore[arg-type]
        positions = _people(variants, attributes, table.n_rows, only, owner)
        chosen = table if len(positions) == table.n_rows else table.take(positions)
        # Entries are cut from the whole table: a value may occur outside the rows chosen.
        cells = [cells_of(variant, attributes) for variant in variants]
        entry = {pair: table.entry(*pair, owner=owner) for cell in cells for pair in cell.items()}
        twins = [(chosen, {column: entry[column, value] for column, value in cell.items()}) for cell in cells]

    def decide_all(rows: Table, entries: dict[str, Any]) -> np.ndarray[Any, Any]:
        parts = []
        for start in range(0, rows.n_rows, int(chunk_size)):
            some = rows.rows(start, start + int(chunk_size))
            made = some.replace(entries) if encode is None else encode(some.replace(entries))
            parts.append(decide(model, made, some.n_rows, owner=owner, scores=tolerance is not None))
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    decided = [decide_all(*twin) for twin in twins]
    names = [_label(variant) for variant in variants]
    decisions = pd.DataFrame(dict(zip(names, decided, strict=True)), index=chosen.index)
    flipped = decisions_differ(decided, tolerance)
    beside = decisions.loc[flipped].rename(columns=lambda name: f"decision: {name}")
    return CorrespondenceStudy(
        decisions=decisions,
        flipped=flipped,
        positions=positions,
        variants=tuple(variants),
        frame=chosen.take(np.flatnonzero(flipped)).beside(beside),
    )


def spouse_consistency(
    model: Any,
    frame: Any,
    *,
    relationship: str = "relationship",
    spouses: tuple[Any, Any] = ("Husband", "Wife"),
    **options: Any,
) -> CorrespondenceStudy:
    """Spouse consistency, the paper's S-Con: everyone once as a husband, once as a wife, nothing else changed.

    Parameters
    ----------
    model, frame, **options
        As in `correspondence_study`.
    relationship : str, default="relationship"
        The column.
    spouses : tuple of two values, default=("Husband", "Wife")
        What the two copies get.

    Returns
    -------
    CorrespondenceStudy
        Its `consistency` is S-Con.

    Examples
    --------
    >>> people = pd.DataFrame({"relationship": ["Husband", "Wife", "Unmarried", "Husband"], "pay": [1, 2, 3, 4]})
    >>> biased = lambda table: table["pay"] + (table["relationship"] == "Husband") > 3
    >>> spouse_consistency(biased, people).consistency
    0.75
    """
    return correspondence_study(model, frame, Edit(relationship, tuple(spouses)), **options)


def gender_race_consistency(
    model: Any, frame: Any, *, gender: str = "sex", race: str = "race", **options: Any
) -> CorrespondenceStudy:
    """Gender and race consistency, the paper's GR-Con: everyone with every combination of gender and race.

    Parameters
    ----------
    model, frame, **options
        As in `correspondence_study`.
    gender, race : str
        The columns. All values seen are tried: four copies if both are binary, as in the paper.

    Returns
    -------
    CorrespondenceStudy
        Its `consistency` is GR-Con.

    Examples
    --------
    >>> people = pd.DataFrame({"sex": ["F", "M"], "race": ["A", "B"], "pay": [1, 4]})
    >>> biased = lambda table: table["pay"] + (table["sex"] == "M") + (table["race"] == "B") > 2
    >>> study = gender_race_consistency(biased, people)
    >>> study.consistency, study.decisions.shape
    (0.5, (2, 4))
    """
    return correspondence_study(model, frame, {gender: None, race: None}, **options)


def _people(
    variants: list[dict[str, Any]], attributes: dict[str, AttributeColumn], n: int, only: bool, owner: str
) -> IntArray:
    """Positions of the people to study: all, or those who have the values of some variant already."""
    if not only:
        return np.arange(n)
    found = np.zeros(n, dtype=bool)
    for variant in filter(None, variants):
        same = np.ones(n, dtype=bool)
        for name, value in variant.items():
            values = attributes[name].values
            same &= attributes[name].codes == (values.index(value) if value in values else -1)
        found |= same
    if not found.any():
        raise InputError(
            f"{owner}: only=True, but nobody has one of the edited combinations of values. "
            "Pass only=False to make twins of everyone."
        )
    return np.flatnonzero(found)


def _label(variant: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in variant.items()) or "as is"
