"""0/1 columns that stand for one attribute: exchanged one by one they would make people who cannot exist."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from likewise.core.errors import InputError

__all__ = ["as_zeros_and_ones", "one_hot_groups", "patterns_of"]

_SEPARATOR = re.compile(r"[_=:.\- ]")
Binary = np.ndarray[Any, np.dtype[np.bool_]]


def one_hot_groups(
    named: Sequence[Any], columns: Mapping[Any, Binary], *, owner: str
) -> list[tuple[Any, ...]]:
    """Find the named columns that belong together.

    Parameters
    ----------
    named : sequence
        Columns whose values are to be exchanged.
    columns : mapping of name to bool array of shape (n,)
        The 0/1 columns of the table, the named ones and others.
    owner : str
        For the error message.

    Returns
    -------
    list of tuple
        Named columns of which every row has exactly one 1; or at most one, where the names begin alike, as in
        ``race_B``, ``race_C`` without ``race_A``.

    Raises
    ------
    InputError
        Where only some of the columns of an attribute are named.

    Examples
    --------
    >>> columns = {"sex_F": np.array([True, False]), "sex_M": np.array([False, True]), "rich": np.array([True, True])}
    >>> one_hot_groups(["sex_F", "rich", "sex_M"], columns, owner="audit")
    [('sex_F', 'sex_M')]
    """
    left = [name for name in named if name in columns]
    groups: list[tuple[Any, ...]] = []
    for prefix in sorted({prefix for name in left for prefix in _prefixes(name)}, key=len):
        everyone = [name for name in columns if str(name).startswith(prefix)]
        mine = [name for name in left if str(name).startswith(prefix)]
        if mine and len(everyone) > len(mine) and _ones(columns, everyone) == (1, 1):
            missing = [str(name) for name in everyone if name not in named]
            if missing:
                raise InputError(
                    f"{owner}: the columns {', '.join(map(str, everyone[:12]))} are one attribute (one 1 in each row), and "
                    f"{', '.join(missing[:12])} is not among those whose values are exchanged, so twins would have two "
                    "values or none. Name all of them as sensitive, or keep the attribute in one column."
                )
        if len(mine) > 1 and _ones(columns, mine)[1] <= 1:
            groups.append(tuple(mine))
            left = [name for name in left if name not in mine]
    if len(left) > 1 and _ones(columns, left) == (1, 1):
        return [*groups, tuple(left)]
    while left:
        first = left.pop(0)
        other = next((name for name in left if _ones(columns, [first, name]) == (1, 1)), None)
        if other is not None:
            left.remove(other)
            groups.append((first, other))
    return groups


def patterns_of(group: Sequence[Any], columns: Mapping[Any, Binary]) -> list[tuple[bool, ...]]:
    """Return the combinations of values that occur in the columns of a group, each once.

    Examples
    --------
    >>> patterns_of(["b", "c"], {"b": np.array([False, True, False]), "c": np.array([False, False, True])})
    [(False, False), (False, True), (True, False)]
    """
    found = np.unique(np.stack([columns[name] for name in group], axis=1), axis=0)
    return [tuple(bool(cell) for cell in row) for row in found]


def as_zeros_and_ones(values: Sequence[Any], codes: Any) -> Binary | None:
    """Return a column of two values as bools, if they are 0 and 1; None for another column.

    Parameters
    ----------
    values : sequence
        The column's different values.
    codes : int array of shape (n,)
        Positions among them.
    """
    if len(values) != 2 or any(isinstance(value, str) or value not in (0, 1) for value in values):
        return None
    return np.asarray(np.asarray(codes) == list(values).index(1))


def _prefixes(name: Any) -> list[str]:
    text = str(name)
    return [text[: found.end()] for found in _SEPARATOR.finditer(text) if 0 < found.start() < len(text) - 1]


def _ones(columns: Mapping[Any, Binary], names: Sequence[Any]) -> tuple[int, int]:
    """The least and the greatest number of ones in a row of these columns."""
    count = np.sum([columns[name] for name in names], axis=0)
    return int(count.min()), int(count.max())
