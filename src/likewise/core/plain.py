"""Conversion of result values to plain JSON: without NaN, numpy types or texts of unlimited length."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Collection, Mapping
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.messages import Message
from likewise.core.text import printable

LONGEST_TEXT = 200

# Beyond this JavaScript and many JSON readers no longer tell neighbouring whole numbers apart.
_LARGEST_WHOLE = 2**53


def plain_number(value: Any) -> float | None:
    """Return a float, or None if it is absent or not finite (JSON has no NaN and no infinity)."""
    if value is None:
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def rounded(value: Any, digits: int = 8) -> float | None:
    """Return a float with so many significant digits, for long lists of numbers."""
    number = plain_number(value)
    return None if number is None else float(f"{number:.{digits}g}")


def plain_cell(value: Any) -> Any:
    """Return one cell of a table as a JSON value: text, number, truth value or None for a missing one."""
    if type(value) is str:
        return value if len(value) <= LONGEST_TEXT else value[: LONGEST_TEXT - 1] + "…"
    if type(value) is int:
        return value if abs(value) <= _LARGEST_WHOLE else str(value)
    if isinstance(value, Message):  # a sentence of ours, which the page may say in another language
        return value
    if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return None
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value) if abs(int(value)) <= _LARGEST_WHOLE else str(value)
    if isinstance(value, (float, np.floating)):
        number = float(value)
        if not math.isfinite(number):
            return str(value)
        # Codes and ids with gaps are floats: a whole number is not shortened.
        return number if number.is_integer() and abs(number) <= _LARGEST_WHOLE else rounded(number, 10)
    text = str(value)
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def beside(name: str, taken: Collection[str]) -> str:
    """Return the name of a user's column in a table that has columns of ours."""
    return f"{name} (cell)" if name in taken else name


def plain(value: Any) -> Any:
    """Return settings and the like as JSON values, mappings, sequences and dataclasses included."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain_fields(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value, key=str) if isinstance(value, (set, frozenset)) else value
        return [plain(item) for item in items]
    return plain_cell(value)


def plain_fields(found: Any, *, digits: int | None = None, **names: str | None) -> dict[str, Any]:
    """Return the fields of a dataclass as JSON values, some under other names or, with None, left out.

    Floats keep all their digits, or so many.
    """
    values = {}
    for field in dataclasses.fields(found):
        name = names.get(field.name, field.name)
        if name is None:
            continue
        value = getattr(found, field.name)
        if isinstance(value, (float, np.floating)):
            value = plain_number(value) if digits is None else rounded(value, digits)
        elif not isinstance(value, str):
            value = plain(value)
        values[name] = value
    return values


# What changes how a training runs or where, but not what it learns; the seed, which is said beside; λ of an audit's rounds.
_NO_SETTINGS = frozenset({"checkpoint", "resume", "progress", "device", "threads", "random_state", "prices"})


def plain_settings(value: Any) -> Any:
    """Return an estimator, a choice or a collection of them as JSON values that say what it was made with."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain_settings(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_settings(item) for item in value]
    if hasattr(value, "get_params"):
        inner = value.get_params(deep=False)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        inner = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
    elif hasattr(value, "dtype") and hasattr(value, "tolist"):
        return value.tolist()
    else:
        return getattr(value, "__qualname__", type(value).__name__) if callable(value) else repr(value)
    kept = {name: plain_settings(item) for name, item in inner.items() if name not in _NO_SETTINGS}
    return {"class": type(value).__name__, **kept}


def named(label: Any, labels: Mapping[Any, str]) -> Any:
    """Return the name of a label or decision if it has one, else the label as a plain cell."""
    cell = plain_cell(label)
    return str(labels[cell]) if cell in labels else cell


def to_json(document: Any) -> str:
    """Return the text of a JSON file, printable."""
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    return printable(text, keep="\n") + "\n"


class Written:
    """An answer that is printed, and saved as a page or as everything that is known of it."""

    def __str__(self) -> str:
        text: str = import_module("likewise.report.writing").text_of(self)
        return text

    def save(self, path: Any, *, language: str = "en", overwrite: bool = False) -> Any:
        """Write the page (.html) or everything that is known (.json); returns the path."""
        return import_module("likewise.report.writing").save(
            self, path, language=language, overwrite=overwrite
        )
