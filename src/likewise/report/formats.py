"""How the page writes numbers: the filters of its templates, pure functions of plain values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from likewise.auditing.claims.bracket import Bracket
from likewise.core.text import join_words, short_number

__all__ = ["FILTERS", "compared_measures"]

_SETTINGS = {"version": "likewise", "tau": "Test's threshold τ", "sensitive": "Twins exchange"}


def _general(value: float) -> str:
    return f"{value:g}"


def _whole(value: int) -> str:
    return f"{value:,}"


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1%}".replace("-", "−")


def _percent0(value: float) -> str:
    return f"{value * 100:g}%"


def _times(value: float) -> str:
    return f"{value:.1f}×"


def _seconds(value: float) -> str:
    return f"{value:.2g} s" if value < 10 else f"{value:,.0f} s"


def _p_value(value: float | None) -> str:
    if value is None:
        return "p unknown"
    return "p < 0.0001" if value < 1e-4 else f"p = {value:.2g}"


def _place(value: float, low: float, high: float) -> str:
    """Where a value lies between two ends, as a CSS length."""
    width = high - low
    part = (value - low) / width if width > 0 else 0.0
    return f"{100 * min(max(part, 0.0), 1.0):.2f}%"


def _rest(value: float, low: float, high: float) -> str:
    """The length from a value to the upper end."""
    return _place(low + high - value, low, high)


def _share(value: float | None, most: float) -> str:
    """Length of a bar; a hair's breadth for what is there but small."""
    if value is None or most <= 0 or value <= 0:
        return "0%"
    return f"{max(100 * min(value / most, 1.0), 0.4):.2f}%"


def _largest(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None]
    return max(known, default=0.0) or 1.0


def _tallest(columns: list[dict[str, Any]]) -> float:
    return _largest(value["mean_harm"] for column in columns for value in column["values"])


def _words(name: str) -> str:
    """A setting's name as words."""
    if name in _SETTINGS:
        return _SETTINGS[name]
    text = re.sub(r"[_-]+", " ", name).strip()
    return text[:1].upper() + text[1:]


def _setting(value: Any) -> str:
    """A setting's value as words."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_setting(item)}" for key, item in value.items()) or "none"
    if isinstance(value, list):
        return join_words([_setting(item) for item in value]) or "none"
    return str(value)


def compared_measures(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the measures of a comparison's document as columns, the best value of each marked.

    Parameters
    ----------
    document : dict
        Of kind ``"likewise.report.comparison"``.

    Returns
    -------
    list of dict
        ``name`` and ``cells``: per model a measure with ``best``, or None where it was not measured.
    """
    rows = []
    for entry in document["entries"]:
        audit = entry["audit"]
        found = {"Gap at ε = 0": audit["numbers"]["pure_gap"]}
        if document["eps"] > 0:
            found[f"Gap at ε = {document['eps']:g}"] = audit["numbers"]["gap"]
        measured = audit["evaluation"]["measures"] if audit["evaluation"] else []
        rows.append(found | {measure["name"]: measure for measure in measured})
    names = dict.fromkeys(name for row in rows for name in row)
    return [
        {
            "name": name.replace(" = ", "\u00a0=\u00a0"),
            "cells": _with_best([row.get(name) for row in rows], small=name.startswith("Gap")),
        }
        for name in names
    ]


def _with_best(cells: list[dict[str, Any] | None], *, small: bool) -> list[dict[str, Any] | None]:
    values = [cell["value"] for cell in cells if cell is not None and cell["value"] is not None]
    best = (min if small else max)(values, default=None)
    worst = (max if small else min)(values, default=None)
    return [
        cell if cell is None else cell | {"best": cell["value"] == best and best != worst} for cell in cells
    ]


def _bracket_words(bracket: dict[str, Any]) -> str:
    return str(Bracket(**bracket))


def _bracket_name(bracket: dict[str, Any]) -> str:
    name = Bracket(**bracket).name
    return name[:1].upper() + name[1:]


FILTERS: dict[str, Callable[..., Any]] = {
    "number": short_number,
    "general": _general,
    "whole": _whole,
    "percent": _percent,
    "percent0": _percent0,
    "times": _times,
    "seconds": _seconds,
    "p_value": _p_value,
    "place": _place,
    "rest": _rest,
    "share": _share,
    "largest": _largest,
    "tallest": _tallest,
    "words": _words,
    "setting": _setting,
    "compared": compared_measures,
    "bracket_words": _bracket_words,
    "bracket_name": _bracket_name,
}
