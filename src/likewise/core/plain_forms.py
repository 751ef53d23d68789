"""What plain data from a file or another process must look like, said once and checked before anyone uses it."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from likewise.core.errors import FormatError

__all__ = ["Fields", "ListOf", "MapOf", "Maybe", "OneOf", "Whole", "check_form", "is_scalar", "plain_dtype"]

_DTYPE = re.compile(r"[<>|=]?[biufUO](\d{0,6})")

_WORDS = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a mapping",
}


@dataclass(frozen=True)
class Whole:
    """A whole number from `low` to `high`."""

    low: int = 0
    high: int = 2**53


@dataclass(frozen=True)
class OneOf:
    """One of a few values."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Maybe:
    """Something, or null."""

    form: Any


@dataclass(frozen=True)
class ListOf:
    """A list of things of one form, at most `most` of them."""

    form: Any
    most: int = 10_000_000


@dataclass(frozen=True)
class MapOf:
    """Text to things of one form."""

    form: Any


@dataclass(frozen=True)
class Fields:
    """Named things, each of its own form; those in `optional` may be absent, others come only where `more` lets them."""

    required: Mapping[str, Any]
    optional: Mapping[str, Any] = field(default_factory=dict)
    more: bool = False


def check_form(value: Any, form: Any, where: str) -> Any:
    """Return plain data as it is, or say where it is not what it must be.

    Parameters
    ----------
    value : object
        What JSON gave.
    form : str, bool, int, float (the types), object for anything, or one of this module's forms
        What it must be. `float` takes whole numbers too, and nothing that is not finite.
    where : str
        What it is, for the message.

    Raises
    ------
    FormatError
        In words: what, what was expected, what came.

    Examples
    --------
    >>> check_form({"name": "age", "width": 1}, Fields({"name": str, "width": Whole()}), "the column")
    {'name': 'age', 'width': 1}
    >>> check_form({"name": ["age"], "width": 1}, Fields({"name": str, "width": Whole()}), "the column")
    Traceback (most recent call last):
    ...
    likewise.core.errors.FormatError: 'name' of the column must be text, got a list
    """
    if form is object:
        return value
    if isinstance(form, type):
        _check_type(value, form, where)
    elif isinstance(form, Whole):
        _check_type(value, int, where)
        if not form.low <= value <= form.high:
            raise FormatError(f"{where} must be from {form.low} to {form.high}, got {value}")
    elif isinstance(form, OneOf):
        if not is_scalar(value) or value not in form.values:
            shown = ", ".join(map(repr, form.values))
            raise FormatError(f"{where} must be one of {shown}, got {_shown(value)}")
    elif isinstance(form, Maybe):
        if value is not None:
            check_form(value, form.form, where)
    elif isinstance(form, ListOf):
        _check_type(value, list, where)
        if len(value) > form.most:
            raise FormatError(f"{where} must have at most {form.most} parts, got {len(value)}")
        for number, part in enumerate(value):
            check_form(part, form.form, f"part {number} of {where}")
    elif isinstance(form, MapOf):
        _check_type(value, dict, where)
        for name, part in value.items():
            check_form(part, form.form, f"{name!r} of {where}")
    else:
        _check_fields(value, form, where)
    return value


def is_scalar(value: Any) -> bool:
    """Whether a value is text, a number, true, false or null.

    Examples
    --------
    >>> is_scalar("a"), is_scalar(["a"])
    (True, False)
    """
    return value is None or isinstance(value, (str, bool, int, float))


def plain_dtype(text: Any) -> np.dtype[Any]:
    """Return the numpy dtype of numbers, text or objects that a file names; no other, and none of a senseless width.

    Examples
    --------
    >>> plain_dtype("<U3"), plain_dtype("(1000000000,)f8")
    Traceback (most recent call last):
    ...
    likewise.core.errors.FormatError: a type of values must be one of numpy's for numbers or text, got '(1000000000,)f8'
    """
    if not isinstance(text, str) or _DTYPE.fullmatch(text) is None:
        raise FormatError(f"a type of values must be one of numpy's for numbers or text, got {_shown(text)}")
    try:
        return np.dtype(text)
    except TypeError as error:
        raise FormatError(
            f"a type of values must be one of numpy's for numbers or text, got {_shown(text)}"
        ) from error


def _check_fields(value: Any, form: Fields, where: str) -> None:
    _check_type(value, dict, where)
    for name in form.required:
        if name not in value:
            raise FormatError(f"{where} has no {name!r}")
    for name, part in value.items():
        known = form.required.get(name, form.optional.get(name))
        if known is None and form.more:
            continue
        if known is None:
            raise FormatError(f"{where} has {name!r}, which is not known")
        check_form(part, known, f"{name!r} of {where}")


def _check_type(value: Any, kind: type[Any], where: str) -> None:
    fits = isinstance(value, kind)
    if kind is float:
        fits = isinstance(value, numbers.Real) and not isinstance(value, bool)
        # A whole number that numpy has no room for is an object to it, not a number.
        fits = fits and (abs(value) < 2**63 if isinstance(value, int) else math.isfinite(value))
    if kind is int:
        fits = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not fits:
        raise FormatError(f"{where} must be {_WORDS.get(kind, kind.__name__)}, got {_shown(value)}")


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, (list, dict)):
        return _WORDS[type(value)]
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
