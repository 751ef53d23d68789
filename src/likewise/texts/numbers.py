"""Numbers, shares and lists as a language writes them; the scripts of the page know the same formats by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from likewise.core.text import join_words, short_number
from likewise.texts.directions import contained

__all__ = ["FORMATS", "STYLES", "NumberStyle", "written"]


@dataclass(frozen=True)
class NumberStyle:
    """How a language writes numbers.

    Parameters
    ----------
    decimal, group : str
        Between whole and broken part, and between thousands.
    percent : str
        After a number of hundredths.
    last, either : str
        Before the last of a list, and of a list of which one will do.
    unknown : str
        For what is no number.
    """

    decimal: str
    group: str
    percent: str
    last: str
    either: str
    unknown: str


STYLES = {
    "en": NumberStyle(".", ",", "%", "and", "or", "unknown"),
    "de": NumberStyle(",", ".", "\u00a0%", "und", "oder", "unbekannt"),
}


def _general(value: float) -> str:
    return f"{value:g}"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _percent(value: float | None) -> str:
    if value is None:
        return "unknown"
    # A small share is not none: the end of an interval at 0.04% is not 0.0%.
    small = 0.0 < value < 0.0005
    return f"{max(100 * value, 0.001):.1g}%" if small else f"{100 * value:,.1f}%"


def _percent0(value: float) -> str:
    return f"{value * 100:g}%"


def _seconds(value: float) -> str:
    return f"{value:.2g} s" if value < 10 else f"{value:,.0f} s"


def _p(value: float | None) -> str:
    if value is None:
        return "p unknown"
    return "p < 0.0001" if value < 1e-4 else f"p = {value:.2g}"


def _times(value: float) -> str:
    return f"{value:.1f}×"


# In English; `written` turns that into another language's signs.
FORMATS: dict[str, Callable[[Any], str]] = {
    "number": short_number,
    "general": _general,
    "whole": _whole,
    "percent": _percent,
    "percent0": _percent0,
    "seconds": _seconds,
    "p": _p,
    "times": _times,
}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def written(value: Any, form: str, language: str) -> str:
    r"""Write one value in a format, as a language does.

    Parameters
    ----------
    value : object
    form : str
        One of `FORMATS`, "list" or "either" for a sequence of words, or nothing: text as it is, numbers in short.
    language : str

    Examples
    --------
    >>> written(1234.5, "number", "en"), written(0.1234, "percent", "de"), written(["a", "b"], "list", "de")
    ('1,234', '12,3\xa0%', 'a und b')
    """
    style = STYLES[language]
    if form in ("list", "either"):
        words: Sequence[str] = [written(word, "", language) for word in value]
        return join_words(words, style.last if form == "list" else style.either)
    if isinstance(value, str) or (not form and not _is_number(value)):
        return contained(str(value))
    text = FORMATS[form or "general"](value).replace("-", "−")
    if language == "en":
        return text
    signs = {",": style.group, ".": style.decimal}
    text = "".join(signs.get(sign, sign) for sign in text)
    return text.replace("%", style.percent).replace("unknown", style.unknown)
