"""The people of a table: features apart from the target, rows chosen, labels as words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.cli.table_files import read_table
from likewise.core.errors import InputError
from likewise.core.frames import check_columns, check_no_missing

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["People", "as_column_values", "binary_labels", "chosen_by_class", "find_value", "read_people"]


@dataclass(frozen=True, eq=False)
class People:
    """Rows of a table.

    Parameters
    ----------
    frame : DataFrame
        The features, with rows numbered from 0.
    labels : ndarray or None
        Values of the target, where one was named.
    dropped : int
        How many rows were left out because of missing values.
    """

    frame: pd.DataFrame
    labels: np.ndarray[Any, Any] | None
    dropped: int

    def take(self, rows: Any) -> People:
        """Return some of the people."""
        labels = None if self.labels is None else self.labels[rows]
        return People(self.frame.iloc[rows].reset_index(drop=True), labels, self.dropped)


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


def read_people(
    path: Path,
    *,
    target: str | None,
    ignore: Sequence[str] = (),
    needed: Sequence[str] = (),
    drop_missing: bool = False,
    sample: int | None = None,
    seed: int = 0,
) -> People:
    """Read a table of people.

    Parameters
    ----------
    path : Path
    target : str or None
        The column to predict.
    ignore : sequence of str
        Columns to leave out.
    needed : sequence of str
        Columns that must be there: sensitive, immutable, edited ones.
    drop_missing : bool
        Leave out rows with missing values; else they are an error.
    sample : int, optional
        Take so many rows at random.
    seed : int

    Returns
    -------
    People
    """
    frame = read_table(path)
    owner = path.name
    check_columns(frame, [name for name in (target, *ignore, *needed) if name], owner=owner, name="table")
    frame = frame.drop(columns=list(ignore))
    for name in needed:
        if name == target or name in ignore:
            what = "the target" if name == target else "left out (--ignore)"
            raise InputError(
                f"Column {name!r} is {what}, so it cannot be a sensitive, immutable or edited one too."
            )
    before = len(frame)
    if drop_missing:
        frame = frame.dropna()
        if not len(frame):
            raise InputError(f"{owner}: every row has a missing value, so --drop-missing leaves nobody.")
    dropped = before - len(frame)
    if sample is not None and sample < len(frame):
        rows = np.sort(np.random.default_rng(seed).choice(len(frame), size=sample, replace=False))
        frame = frame.iloc[rows]
    _check_missing(frame, owner)
    labels = None if target is None else frame.pop(target).to_numpy()
    if frame.shape[1] == 0:
        raise InputError(f"{owner} has no columns besides the target.")
    return People(frame.reset_index(drop=True), labels, dropped)


def _check_missing(frame: pd.DataFrame, owner: str) -> None:
    try:
        check_no_missing(frame, owner=owner, name="table")
    except InputError as error:
        said = str(error).replace(
            "Drop those rows or impute them first.", "Pass --drop-missing, or impute them."
        )
        raise InputError(said) from error


def find_value(values: Any, text: str, *, what: str) -> Any:
    """Return the value that is written as `text`: 1 for "1" and "1.0", True for "True".

    Parameters
    ----------
    values : iterable
        The values there are.
    text : str
        As on the command line.
    what : str
        For the error message: whose values these are.

    Examples
    --------
    >>> find_value([0, 1], "1", what="the target")
    1
    """
    found = list(values)
    for value in found:
        if _written(value) == text or str(value) == text:
            return value
    for value in found:
        if isinstance(value, (bool, np.bool_)) and text.lower() == str(value).lower():
            return value
    shown = ", ".join(repr(_written(value)) for value in found[:12]) + (", …" if len(found) > 12 else "")
    raise InputError(f"{what} has no value {text!r}. Its values: {shown}.")


def as_column_values(frame: pd.DataFrame, edits: dict[str, list[str]]) -> dict[str, list[Any]]:
    """Return edits with the values that the table's columns hold for the words of the command line."""
    found: dict[str, list[Any]] = {}
    for column, words in edits.items():
        kept = frame[column].drop_duplicates().tolist()
        values = sorted(kept, key=lambda value: (str(type(value)), value))
        found[column] = [find_value(values, word, what=f"--edit: column {column!r}") for word in words]
    return found


def binary_labels(labels: np.ndarray[Any, Any], positive: str | None) -> np.ndarray[Any, Any]:
    """Return labels as they are, or, where there are more than two and one is positive, that one and the rest.

    Examples
    --------
    >>> binary_labels(np.array(["a", "b", "c"]), "b").tolist()
    ['not b', 'b', 'not b']
    """
    values = unique_values(labels)
    if positive is None:
        return labels
    chosen = find_value(values, positive, what="--positive: the target")
    if len(values) <= 2:
        return labels
    return np.where(labels == chosen, str(positive), f"not {positive}")


def unique_values(labels: Any) -> list[Any]:
    """Return the different labels in order, as plain Python values."""
    import pandas as pd

    values = pd.unique(pd.Series(labels))
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    return sorted(plain, key=lambda value: (str(type(value)), value))


def _written(value: Any) -> str:
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)
