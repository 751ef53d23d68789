"""The people of a table: features apart from the target, columns chosen, missing cells dealt with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.cli.table_columns import Asked, choose_columns
from likewise.cli.table_options import TableChoices
from likewise.core.errors import InputError
from likewise.core.frames import check_columns
from likewise.core.text import folded

if TYPE_CHECKING:
    import pandas as pd

    from likewise.domains import TabularDomain
    from likewise.domains.column_plan import ColumnPlan
    from likewise.tables import MemoryFile, MissingCells

__all__ = ["People", "as_column_values", "check_finite", "chosen_by_class", "read_people"]


@dataclass(frozen=True, eq=False)
class People:
    """Rows of a table.

    Parameters
    ----------
    frame : DataFrame
        The features, with rows numbered from 0.
    labels : ndarray or None
        Values of the target, where one was named.
    plans : mapping of str to ColumnPlan
        What each column of the frame is.
    missing : MissingCells or None
        Gaps that are left in the frame, and what may stand in for them.
    notes : tuple of str
        What was done on the way, a line each.
    """

    frame: pd.DataFrame
    labels: np.ndarray[Any, Any] | None
    plans: Mapping[str, ColumnPlan] = field(default_factory=dict)
    missing: MissingCells | None = None
    notes: tuple[str, ...] = ()

    def take(self, rows: Any) -> People:
        """Return some of the people."""
        labels = None if self.labels is None else self.labels[rows]
        return replace(self, frame=self.frame.iloc[rows].reset_index(drop=True), labels=labels)

    def domain(self, columns: Sequence[str] | None = None, immutable: Sequence[str] = ()) -> TabularDomain:
        """Return the domain of some columns, by default of all."""
        return planned_domain(self.frame, self.plans, columns, immutable)


def planned_domain(
    frame: pd.DataFrame,
    plans: Mapping[str, ColumnPlan],
    columns: Sequence[str] | None = None,
    immutable: Sequence[str] = (),
) -> TabularDomain:
    """Return the domain of some columns of a table whose columns are known."""
    from likewise.domains import TabularDomain

    names = list(frame.columns) if columns is None else list(columns)
    known = {name: plans[name] for name in names if name in plans}
    check_finite(frame[names])
    return TabularDomain.from_frame(frame[names], immutable=tuple(immutable), columns=known)


def check_finite(frame: pd.DataFrame) -> None:
    """Refuse infinite numbers, with what to do on the command line."""
    for name in frame.columns:
        column = frame[name]
        if isinstance(column.dtype, np.dtype) and column.dtype.kind == "f" and np.isinf(column).any():
            count, row = int(np.isinf(column).sum()), int(np.argmax(np.isinf(column)))
            raise InputError(
                f"Column {name!r} has {count:,} infinite values, the first in row {row}. Leave the column out (--ignore "
                f"{name}), or empty these cells, so that --missing applies to them."
            )


def chosen_by_class(labels: Any, share: float, seed: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which people a share of every class is, drawn with a seed; at least one of each.

    Examples
    --------
    >>> chosen_by_class(np.array(["no"] * 8 + ["yes"] * 2), 0.25, 0).nonzero()[0].size
    3
    """
    rng = np.random.default_rng(seed)
    chosen = np.zeros(len(labels), dtype=bool)
    for label in dict.fromkeys(np.asarray(labels).tolist()):
        own = np.flatnonzero(labels == label)
        chosen[rng.permutation(own)[: max(1, round(share * len(own)))]] = True
    return chosen


def read_people(path: Path | MemoryFile, asked: Asked, *, keeps_missing: bool = False) -> People:
    """Read a table of people.

    Parameters
    ----------
    path : Path or MemoryFile
    asked : Asked
        What is asked of the table.
    keeps_missing : bool, default=False
        Whether gaps may stay in the frame, where the user does not say otherwise.

    Returns
    -------
    People
    """
    from likewise.tables import read_table

    choices, target = asked.choices, asked.target
    found = read_table(path, choices.reading, ignore=choices.ignore)
    frame, notes = found.frame, list(found.notes)
    _check_names(frame, path.name, target, choices, asked.needed)
    if target is not None and frame[target].isna().any():
        gaps = int(frame[target].isna().sum())
        frame = frame[frame[target].notna()]
        notes.append(f"left out {gaps:,} people whose target {target!r} is missing.")
        if not len(frame):
            raise InputError(
                f"{path.name}: the target {target!r} is missing for everybody. Name another --target."
            )
    features = frame if target is None else frame.drop(columns=[target])
    features, kinds = choose_columns(features, asked, path.name, notes)
    features, missing = _without_gaps(features, choices.policy, keeps_missing, path.name, notes)
    if asked.sample is not None and asked.sample < len(features):
        rng = np.random.default_rng(asked.seed)
        features = features.iloc[np.sort(rng.choice(len(features), size=asked.sample, replace=False))]
    labels = None if target is None else frame.loc[features.index, target].to_numpy()
    return People(features.reset_index(drop=True), labels, kinds, missing, tuple(notes))


def _check_names(
    frame: pd.DataFrame, owner: str, target: str | None, choices: TableChoices, needed: Sequence[str]
) -> None:
    ignored = set(choices.ignore)
    for name in needed:
        if name == target or name in ignored:
            what = "the target" if name == target else "left out (--ignore)"
            raise InputError(
                f"Column {name!r} is {what}, so it cannot be a sensitive, immutable or edited one too."
            )
    if target in ignored:
        raise InputError(f"Column {target!r} is the target, so it cannot be left out (--ignore) too.")
    if target is not None:
        check_columns(frame, [target], owner=owner, name="table")
    check_columns(frame, needed, owner=owner, name="table")
    for option, names in choices.named.items():
        if option != "--ignore":
            check_columns(frame, names, owner=option, name="table")


def _without_gaps(
    frame: pd.DataFrame, policy: str, keeps: bool, owner: str, notes: list[str]
) -> tuple[pd.DataFrame, MissingCells | None]:
    """Deal with missing cells as the user chose."""
    from likewise.tables.missing_cells import drop_missing, find_missing, own_category

    gaps = [str(name) for name, some in frame.isna().any().items() if some]
    if not gaps:
        return frame, None
    named = folded([repr(name) for name in gaps], most=5)
    if policy == "drop":
        whole = drop_missing(frame, owner=owner)
        notes.append(f"left out {len(frame) - len(whole):,} people with missing values in {named}.")
        return whole, None
    if policy == "category":
        notes.append(f"missing values in {named} became '(missing)', or the median of a number.")
        return own_category(frame), None
    if keeps and policy in ("auto", "keep"):
        return frame, find_missing(frame)
    if policy == "keep":
        raise InputError(
            f"{owner} has missing values in {named}, and what is learned here cannot keep them. Choose what stands in "
            "for them: --missing impute, --missing category or --missing drop."
        )
    notes.append(
        f"missing values in {named} were filled with the median or the most frequent value (--missing chooses)."
    )
    return find_missing(frame).filled(frame), None


def as_column_values(frame: pd.DataFrame, edits: dict[str, list[str]]) -> dict[str, list[Any]]:
    """Return edits with the values that the table's columns hold for the words of the command line."""
    from likewise.cli.target_values import find_value

    found: dict[str, list[Any]] = {}
    for column, words in edits.items():
        kept = frame[column].dropna().drop_duplicates().tolist()
        values = sorted(kept, key=lambda value: (str(type(value)), value))
        found[column] = [find_value(values, word, what=f"--edit: column {column!r}") for word in words]
    return found
