"""Values of the target: words as values, one class against the rest, columns that give the target away."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.core.checks import IntArray, python_scalar
from likewise.core.errors import InputError
from likewise.core.text import option, truncated

if TYPE_CHECKING:
    import pandas as pd

# A target of more whole numbers than this, or of any fractions, needs a limit before its values are classes.
MOST_CLASSES = 10
_LIMIT = re.compile(r"\s*(>=|<=|>|<)\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*")
_COMPARE = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}
# Balanced accuracy of one column from which it is reported: columns known beforehand hardly ever reach it.
_TELLING = 0.95
# With fewer people or more values a column may predict the target by chance.
_LEAST_PEOPLE, _MOST_VALUES = 100, 20


def find_value(values: Any, text: Any, *, what: str) -> Any:
    """Return the value that is written as `text`: 1 for "1", "1.0" and True, True for "true" and 1."""
    found = list(values)
    wanted = _written(text)
    if isinstance(text, (bool, np.bool_)):
        found = [value for value in found if not isinstance(value, str)] or found
        for value in found:
            if value == text:
                return value
    for value in found:
        if wanted in (_written(value), str(value)):
            return value
    for value in found:
        if isinstance(value, (bool, np.bool_)) and wanted.lower() in (str(value).lower(), str(int(value))):
            return value
    shown = truncated([repr(v) if isinstance(v, str) else _written(v) for v in found], most=12)
    raise InputError(f"{what} has no value {text!r}. Its values: {shown}.")


def unique_values(labels: Any) -> list[Any]:
    """Return the different labels in order, as plain Python values."""
    import pandas as pd

    values = pd.unique(pd.Series(labels))
    return sorted(map(python_scalar, values), key=lambda value: (str(type(value)), value))


def binary_labels(
    labels: np.ndarray[Any, Any], favourable: Any, among: Sequence[Any] | None = None
) -> np.ndarray[Any, Any]:
    """Return the labels; of more than two classes, or of numbers with a limit, the favourable ones and the rest.

    `among` are all labels that occur, if these are some of a table's.
    """
    if favourable is None:
        return labels
    limit = _LIMIT.fullmatch(str(favourable))
    if limit is not None and np.asarray(labels).dtype.kind in "biuf":
        inside = _COMPARE[limit.group(1)](np.asarray(labels, dtype=float), float(limit.group(2)))
        return np.where(inside, favourable, f"not {favourable}")
    values = unique_values(labels if among is None else among)
    chosen = find_value(values, favourable, what=f"{option('favourable')}: the target")
    return labels if len(values) <= 2 else np.where(labels == chosen, str(favourable), f"not {favourable}")


def check_classes(labels: np.ndarray[Any, Any], target: str, *, accepted: bool = False) -> None:
    """Raise unless the target's values are classes that a classifier can learn."""
    values = unique_values(labels)
    if len(values) < 2:
        raise InputError(
            f"The target {target!r} has one value only ({values[0]!r}), so there is nothing to learn. Name another ({option('target')})."
        )
    numbers = [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
    if len(numbers) == len(values):
        broken = any(value != int(value) for value in numbers if np.isfinite(value)) and len(values) > 2
        if broken or (len(values) > MOST_CLASSES and not accepted):
            middle = numbers[len(numbers) // 2]
            more = "" if broken else f"; pass {option('classes')} if each of them is a class"
            raise InputError(
                f"The target {target!r} holds numbers ({truncated([repr(v) for v in numbers], most=3)}), and a classifier "
                f"learns classes. Cut it in two with a limit, such as {option('favourable', f'>={middle:g}')}{more}, or name another "
                f"({option('target')})."
            )
        return
    if len(values) > max(MOST_CLASSES * 10, 100) or (
        len(values) > MOST_CLASSES and len(values) > 0.5 * len(labels)
    ):
        raise InputError(
            f"The target {target!r} has {len(values):,} different values for {len(labels):,} people, so they are not "
            f"classes. Name another ({option('target')}), or one of its values ({option('favourable')})."
        )


def chosen_by_class(labels: Any, share: float, seed: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a mask of a random share of every class; at least one person of each."""
    rng = np.random.default_rng(seed)
    chosen = np.zeros(len(labels), dtype=bool)
    for label in dict.fromkeys(np.asarray(labels).tolist()):
        own = np.flatnonzero(labels == label)
        chosen[rng.permutation(own)[: max(1, round(share * len(own)))]] = True
    return chosen


def stratified_split(
    labels: np.ndarray[Any, Any], share: float, random: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Row numbers of a training and a held-out part, class by class; every class keeps a row in training."""
    out = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        count = min(max(1, round(share * len(own))), len(own) - 1)
        out[random.permutation(own)[:count]] = True
    return np.flatnonzero(~out), np.flatnonzero(out)


def leaking_columns(frame: pd.DataFrame, y: Any) -> dict[str, float]:
    """Return the columns that alone predict y for nearly everybody, with the balanced accuracy of each.

    A column predicts the class that is most frequent among people of its value; numbers are cut at twenty quantiles.
    """
    import pandas as pd

    codes, classes = pd.factorize(np.asarray(y))
    if len(codes) < _LEAST_PEOPLE or len(classes) < 2:
        return {}
    found = {str(name): _predicted(frame[name], codes, len(classes)) for name in frame.columns}
    return {name: told for name, told in found.items() if told >= _TELLING}


def _predicted(column: pd.Series[Any], codes: np.ndarray[Any, Any], n_classes: int) -> float:
    """Balanced accuracy of the best decision by one column; 0 if it has too many values."""
    import pandas as pd

    values = column
    if column.nunique() > _MOST_VALUES:
        if not pd.api.types.is_numeric_dtype(column):
            return 0.0
        values = pd.qcut(column.rank(method="average"), _MOST_VALUES, labels=False, duplicates="drop")
    places, kinds = pd.factorize(values, use_na_sentinel=False)
    counts = np.bincount(places * n_classes + codes, minlength=len(kinds) * n_classes)
    rates = counts.reshape(-1, n_classes) / np.bincount(codes, minlength=n_classes)
    return float(rates.max(axis=1).sum() / n_classes)


def leakage_notes(frame: Any, labels: np.ndarray[Any, Any], target: str) -> tuple[str, ...]:
    """Return a note if a column alone predicts the target: a model that uses it looks better than it is."""
    told = leaking_columns(frame, labels)
    if not told:
        return ()
    names = sorted(told, key=lambda name: -told[name])
    shown = truncated([repr(name) for name in names])
    alone = f"{shown} alone tells" if len(names) == 1 else f"each of {shown} alone tells"
    ignored = " ".join(option("ignore", name) for name in names)
    return (
        f"{alone} {target!r} of nearly everybody (balanced accuracy {told[names[0]]:.2f}). If it is known only "
        f"afterwards, leave it out: {ignored}",
    )


def _written(value: Any) -> str:
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)
