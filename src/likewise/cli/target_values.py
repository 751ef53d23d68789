"""Values of the target: words of the command line as values, one class against the rest, numbers that are no classes."""

from __future__ import annotations

import re
import shlex
from typing import Any

import numpy as np

from likewise.core.errors import InputError
from likewise.core.text import folded

__all__ = ["binary_labels", "check_classes", "find_value", "told_by_columns", "unique_values"]

# Whole numbers with more values than this, or any broken number, are asked about before they become classes.
MOST_CLASSES = 10
_LIMIT = re.compile(r"\s*(>=|<=|>|<)\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*")


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
    shown = folded([repr(_written(value)) for value in found], most=12)
    raise InputError(f"{what} has no value {text!r}. Its values: {shown}.")


def binary_labels(labels: np.ndarray[Any, Any], positive: str | None) -> np.ndarray[Any, Any]:
    """Return labels as they are, or, where there are more than two and one is positive, that one and the rest.

    Parameters
    ----------
    labels : array of shape (n,)
    positive : str or None
        A value of the target, or a limit for numbers: ``">=10"``.

    Examples
    --------
    >>> binary_labels(np.array(["a", "b", "c"]), "b").tolist()
    ['not b', 'b', 'not b']
    >>> binary_labels(np.array([3, 12, 10]), ">=10").tolist()
    ['not >=10', '>=10', '>=10']
    """
    if positive is None:
        return labels
    limit = _LIMIT.fullmatch(positive)
    if limit is not None and np.asarray(labels).dtype.kind in "biuf":
        sign, number = limit.group(1), float(limit.group(2))
        amounts = np.asarray(labels, dtype=float)
        inside = {
            ">": amounts > number,
            ">=": amounts >= number,
            "<": amounts < number,
            "<=": amounts <= number,
        }
        return np.where(inside[sign], positive, f"not {positive}")
    values = unique_values(labels)
    chosen = find_value(values, positive, what="--positive: the target")
    if len(values) <= 2:
        return labels
    return np.where(labels == chosen, str(positive), f"not {positive}")


def check_classes(labels: np.ndarray[Any, Any], target: str, *, accepted: bool = False) -> None:
    """Raise unless the target's values are classes that somebody may mean to learn.

    Parameters
    ----------
    labels : array of shape (n,)
    target : str
        For the message.
    accepted : bool, default=False
        Whether the user said that every number is a class.

    Examples
    --------
    >>> check_classes(np.array([0.5, 1.25, 3.0]), "income")
    Traceback (most recent call last):
    ...
    likewise.core.errors.InputError: The target 'income' holds numbers (0.5, 1.25 and 3.0), and a classifier learns classes. Cut it in two with a limit, such as --positive '>=1.25', or name another --target.
    """
    values = unique_values(labels)
    if len(values) < 2:
        raise InputError(
            f"The target {target!r} has one value only ({values[0]!r}), so there is nothing to learn. Name another --target."
        )
    numbers = [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
    if len(numbers) == len(values):
        broken = any(value != int(value) for value in numbers if np.isfinite(value)) and len(values) > 2
        if broken or (len(values) > MOST_CLASSES and not accepted):
            middle = numbers[len(numbers) // 2]
            more = "" if broken else "; pass --classes if each of them is a class"
            raise InputError(
                f"The target {target!r} holds numbers ({folded([repr(v) for v in numbers], most=3)}), and a classifier "
                f"learns classes. Cut it in two with a limit, such as --positive '>={middle:g}'{more}, or name another "
                "--target."
            )
        return
    if len(values) > max(MOST_CLASSES * 10, 100) or (
        len(values) > MOST_CLASSES and len(values) > 0.5 * len(labels)
    ):
        raise InputError(
            f"The target {target!r} has {len(values):,} different values for {len(labels):,} people, so it is no class. "
            "Name another --target, or one of its values: --positive VALUE."
        )


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


def told_by_columns(frame: Any, labels: np.ndarray[Any, Any], target: str) -> tuple[str, ...]:
    """Return a note where a column alone tells the target: a model that leans on it looks better than it is.

    Parameters
    ----------
    frame : DataFrame
        Features.
    labels : array of shape (n,)
    target : str
        For the note.

    Examples
    --------
    >>> import pandas as pd
    >>> y = np.arange(200) % 2
    >>> print(*told_by_columns(pd.DataFrame({"closed": y}), y, "paid"))
    'closed' alone tells 'paid' of nearly everybody (balanced accuracy 1.00). If it is known only afterwards, leave it out: --ignore closed
    """
    from likewise.tables.telling_columns import telling_columns

    told = telling_columns(frame, labels)
    if not told:
        return ()
    names = sorted(told, key=lambda name: -told[name])
    shown = folded([repr(name) for name in names])
    alone = f"{shown} alone tells" if len(names) == 1 else f"each of {shown} alone tells"
    ignored = " ".join(f"--ignore {shlex.quote(name)}" for name in names)
    return (
        f"{alone} {target!r} of nearly everybody (balanced accuracy {told[names[0]]:.2f}). If it is known only "
        f"afterwards, leave it out: {ignored}",
    )
