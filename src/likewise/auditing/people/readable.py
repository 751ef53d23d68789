"""Cells as people read them: numbers to the precision their column is written in, and only what differs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.text import folded

__all__ = ["column_decimals", "differences_in_words", "rounded_like", "shown_cell"]

_MOST_DECIMALS = 6


def column_decimals(column: pd.Series[Any]) -> int:
    """Return how many decimals write every value of a column, or about four digits where none of up to six do.

    Examples
    --------
    >>> column_decimals(pd.Series([1.0, 3.0])), column_decimals(pd.Series([0.25, 3.5])), column_decimals(pd.Series([1 / 3]))
    (0, 2, 4)
    """
    values = column.to_numpy(dtype=float, na_value=np.nan)
    values = values[np.isfinite(values)]
    for decimals in range(_MOST_DECIMALS + 1):
        if np.allclose(np.round(values, decimals), values, rtol=1e-12, atol=0):
            return decimals
    largest = float(np.abs(values).max(initial=0.0))
    return int(np.clip(3 - np.floor(np.log10(largest)), 0, 15)) if largest > 0 else 0


def rounded_like(frame: pd.DataFrame, people: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose broken numbers have the precision of the same column of other people.

    Examples
    --------
    >>> rounded_like(pd.DataFrame({"grade": [2.7182]}), pd.DataFrame({"grade": [1.5, 3.0]}))
       grade
    0    2.7
    """
    floats = [
        name for name in frame.columns if frame[name].dtype.kind == "f" and people[name].dtype.kind == "f"
    ]
    if not floats:
        return frame
    return frame.assign(**{name: frame[name].round(column_decimals(people[name])) for name in floats})


def shown_cell(value: Any) -> str:
    """Return one cell in words: a whole number without decimals, nothing as "missing".

    Examples
    --------
    >>> shown_cell(1.0), shown_cell(0.25), shown_cell(None), shown_cell("clerk")
    ('1', '0.25', 'missing', 'clerk')
    """
    if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return "missing"
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return f"{number:.0f}" if number.is_integer() and abs(number) < 1e15 else f"{number:.10g}"
    return str(value)


def differences_in_words(person: Mapping[str, Any], twin: Mapping[str, Any], most: int = 6) -> str:
    """Return the columns in which a twin differs, from what to what; a long list is folded.

    Parameters
    ----------
    person, twin : mapping of column to cell
        The twin's numbers rounded already.
    most : int, default=6
        How many columns to name.

    Examples
    --------
    >>> differences_in_words({"sex": "F", "age": 30.0, "n": 2}, {"sex": "M", "age": 31.0, "n": 2})
    'sex: F → M, age: 30 → 31'
    """
    pairs = [(name, shown_cell(person[name]), shown_cell(twin[name])) for name in person]
    moved = [f"{name}: {before} → {after}" for name, before, after in pairs if before != after]
    return ", ".join(moved) if len(moved) <= most else folded(moved, most)
