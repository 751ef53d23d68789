"""How the page writes numbers and words: the filters of its templates, made for one language."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from likewise.auditing.claims.bracket import Bracket
from likewise.texts import Texts

__all__ = ["compared_measures", "filters"]

_NUMBERS = ("number", "general", "whole", "percent", "percent0", "times", "seconds")


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


def _share_changed(group: Mapping[str, Any]) -> float:
    return float(group["changed"] / group["people"])


def _cell(texts: Texts, value: Any) -> str:
    return texts("script.missing") if value is None else texts.number(value, "")


def _largest(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None]
    return max(known, default=0.0) or 1.0


def _tallest(columns: list[dict[str, Any]]) -> float:
    return _largest(value["mean_harm"] for column in columns for value in column["values"])


def _from_list(texts: Texts, group: str, name: str) -> str | None:
    """A machine's word as people say it, where the texts know it."""
    key = f"{group}.{re.sub(r'[^a-z0-9]+', '_', name.lower()).strip('_')}"
    return texts(key) if texts.has(key) else None


def _words(texts: Texts, name: str) -> str:
    """A setting's name as words."""
    found = _from_list(texts, "setting", name)
    if found is not None:
        return found
    text = re.sub(r"[_-]+", " ", name).strip()
    return text[:1].upper() + text[1:]


def _setting(texts: Texts, value: Any) -> str:
    """A setting's value as words."""
    if value is None or value in ({}, []):
        return texts("setting_value.none")
    if isinstance(value, bool):
        return texts("setting_value.yes") if value else texts("setting_value.no")
    if isinstance(value, float):
        return texts.number(value, "general")
    if isinstance(value, dict):
        return ", ".join(f"{key} {_setting(texts, item)}" for key, item in value.items())
    if isinstance(value, list):
        return texts.number([_setting(texts, item) for item in value], "list")
    return _from_list(texts, "setting_value", str(value)) or str(value)


def compared_measures(texts: Texts, document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the measures of a comparison's document as columns, the best value of each marked.

    Parameters
    ----------
    texts : Texts
        For their names.
    document : dict
        Of kind ``"likewise.report.comparison"``.

    Returns
    -------
    list of dict
        ``name``, ``form`` of its numbers and ``cells``: per model a measure with ``best``, or None where it was not
        measured. Decisions first, which people feel; then the gaps.
    """
    changed = texts("page.compared.changed")
    rows, first = [], {changed}
    for entry in document["entries"]:
        audit = entry["audit"]
        only = audit["numbers"]["sensitive_only"]
        found = {changed: only["changed_decisions"]} if only and only["changed_decisions"] else {}
        found[texts("page.gap_at", eps=0)] = audit["numbers"]["pure_gap"]
        if document["eps"] > 0:
            found[texts("page.gap_at", eps=document["eps"])] = audit["numbers"]["gap"]
        first |= set(found)
        measured = audit["evaluation"]["measures"] if audit["evaluation"] else []
        rows.append(found | {measure["name"]: measure for measure in measured})
    names = dict.fromkeys(name for row in rows for name in row)
    return [
        {
            "name": (name if name in first else _measure(texts, name)).replace(" = ", "\u00a0=\u00a0"),
            "form": "percent" if name == changed else "number",
            "cells": _with_best(
                [row.get(name) for row in rows], small=name in first or name.startswith(("Gap", "gap"))
            ),
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


def _measure(texts: Texts, name: str) -> str:
    return _from_list(texts, "measure", name) or name


def _clock_part(texts: Texts, name: str) -> str:
    return _from_list(texts, "clock", name) or _from_list(texts, "search", name) or name


def _bracket_words(texts: Texts, document: dict[str, Any]) -> str:
    bracket = Bracket(**document)
    form = "percent" if bracket.quantity == "changed" else "number"
    low = texts.number(bracket.lower, form)
    if bracket.upper is None:
        return texts("page.brackets.at_least", low=low)
    sure = "" if bracket.confidence == 1 else texts("page.brackets.sure", level=bracket.confidence)
    if bracket.closed:
        return texts("page.brackets.exactly", low=low, sure=sure)
    return texts("page.brackets.between", low=low, high=texts.number(bracket.upper, form), sure=sure)


def _bracket_name(texts: Texts, document: dict[str, Any]) -> str:
    return texts(f"page.brackets.name_{document['quantity']}", eps=document["eps"])


def filters(texts: Texts, known: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    """Return the filters of the page's templates.

    Parameters
    ----------
    texts : Texts
        Of the page's language.
    known : mapping
        English sentences of the document to their keys and values.
    """
    return {
        **{name: partial(texts.number, form=name) for name in _NUMBERS},
        "written": texts.number,
        "cell": partial(_cell, texts),
        "share_changed": _share_changed,
        "place": _place,
        "rest": _rest,
        "share": _share,
        "largest": _largest,
        "tallest": _tallest,
        "said": partial(texts.said, known=known),
        "words": partial(_words, texts),
        "setting": partial(_setting, texts),
        "measure_name": partial(_measure, texts),
        "clock_part": partial(_clock_part, texts),
        "compared": partial(compared_measures, texts),
        "bracket_words": partial(_bracket_words, texts),
        "bracket_name": partial(_bracket_name, texts),
    }
