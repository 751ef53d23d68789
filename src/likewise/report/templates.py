"""How the pages write numbers and words: the Jinja environment of a language, and its filters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from importlib import resources
from typing import Any

import numpy as np
from markupsafe import Markup

from likewise.auditing.inference.verdict import Bracket
from likewise.auditing.results.effects import ANOTHER, ANY, LESS, MORE, OTHER
from likewise.core.messages import Texts
from likewise.data.missing_values import MISSING_WORD
from likewise.report.first_words import by_attribute


@cache
def asset(name: str, package: str = "likewise.report") -> str:
    """Return the text of a file among a package's assets."""
    return (resources.files(package) / "assets" / name).read_text(encoding="utf-8")


@cache
def templates(language: str) -> Any:
    """Return the Jinja environment of the pages in one language; its templates are compiled once."""
    import jinja2  # takes as long as the rest of the package's import

    texts = Texts(language)

    @jinja2.pass_context
    def said(context: Any, sentence: str) -> str:
        return texts.said(sentence, known=context["known"])

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {**filters(texts), "said": said}
    environment.globals |= {"t": texts, "rich": lambda key, **values: Markup(texts.rich(key, **values))}
    return environment


# How the page writes numbers and words: the filters of its templates, made for one language.

_NUMBERS = ("number", "general", "whole", "percent", "percent0", "times", "seconds")


def _share(value: float | None, most: float) -> str:
    """Length of a bar; visible if there is anything to draw."""
    if value is None or most <= 0 or value <= 0:
        return "0%"
    return f"{max(100 * min(value / most, 1.0), 0.4):.2f}%"


def _widest(rows: Iterable[Mapping[str, Any]]) -> int:
    """The longest bar of some effects."""
    return max((max(row["lose"], row["gain"]) for row in rows), default=0)


# Words that stand among the values of effects, in no language of the page's own.
_OURS = {
    ANY: "effect.any",
    LESS: "effect.less",
    MORE: "effect.more",
    OTHER: "effect.other",
    ANOTHER: "effect.another",
    MISSING_WORD: "effect.missing",
}


def effect_words(texts: Texts, value: Any) -> str | None:
    """Return one of our own words among the values of effects; None for a value of the table."""
    return texts(_OURS[value]) if isinstance(value, str) and value in _OURS else None


def cell_words(texts: Texts, value: Any) -> str:
    """Return a cell as it is recorded: no digit is left out."""
    if value is None:
        return texts("script.missing")
    if (ours := effect_words(texts, value)) is not None:
        return ours
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 1e15
        text = str(int(value)) if whole else repr(value)
        return (text if texts.language == "en" else text.replace(".", ",")).replace("-", "−")
    return texts.number(value, "") if isinstance(value, str) else str(value).replace("-", "−")


def measure_words(texts: Texts, one: Mapping[str, Any] | None, form: str = "number") -> str:
    """Return a measure with the ends of its interval: a dash if it is not known, ∞ for an open end."""
    if one is None or one["value"] is None:
        return "–"
    ends = "–".join("∞" if one[end] is None else texts.number(one[end], form) for end in ("low", "high"))
    return f"{texts.number(one['value'], form)} ({ends})"


def row_words(texts: Texts, document: Mapping[str, Any], row: Any) -> str:
    """Return the number of a person's row as their table is counted."""
    counted = document["counted"] == "position" and isinstance(row, (int, float))
    return cell_words(texts, int(row) + 1 if counted else row)


def where_words(texts: Texts, document: Mapping[str, Any], row: Any) -> str:
    """Say where a person is in the user's table."""
    words = row_words(texts, document, row)
    return texts(f"counted.{document['counted']}", row=words, source=document["source"])


def _curve_points(curve: Mapping[str, Any], eps: float) -> list[tuple[float, float]]:
    """The curve at no tolerance, at the one asked for, and around it."""
    wanted = [0.0] if eps == 0 else [share * eps for share in (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)]
    inside = [at for at in wanted if at <= curve["eps"][-1]]
    return [(at, float(np.interp(at, curve["eps"], curve["gap"]))) for at in inside]


def known_words(texts: Texts, name: str, *groups: str) -> str | None:
    """Return the words for a setting, measure or part in the first of the groups of texts that has some."""
    key = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return next((texts(f"{group}.{key}") for group in groups if texts.has(f"{group}.{key}")), None)


def _words(texts: Texts, name: str) -> str:
    """A setting's name as words."""
    text = re.sub(r"[_-]+", " ", name).strip()
    return known_words(texts, name, "setting") or text[:1].upper() + text[1:]


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
    return known_words(texts, str(value), "setting_value") or str(value)


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


def filters(texts: Texts) -> dict[str, Callable[..., Any]]:
    """Return the filters of the page's templates, but for `said`, which depends on the document."""
    return {
        **{name: partial(texts.number, form=name) for name in _NUMBERS},
        "cell": partial(cell_words, texts),
        "share": _share,
        "widest": _widest,
        "by_attribute": by_attribute,
        "curve_points": _curve_points,
        "words": partial(_words, texts),
        "setting": partial(_setting, texts),
        "measure_name": lambda name: known_words(texts, name, "measure") or name,
        "clock_part": lambda name: known_words(texts, name, "clock", "search") or name,
        "bracket_words": partial(_bracket_words, texts),
        "bracket_name": lambda one: texts(f"page.brackets.name_{one['quantity']}", eps=one["eps"]),
    }
