"""The page of an audit or a comparison, and of every other document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from likewise._version import __version__
from likewise.auditing.inference.verdict import Bracket
from likewise.core.errors import bad_parameter, require
from likewise.core.messages import Texts, check_language
from likewise.report.document import KINDS
from likewise.report.page import asset, render_page
from likewise.report.score_report import render_scores

_SCRIPTS = ("texts.js", "elements.js", "charts.js", "people.js", "page.js")
# Besides, if a reader may edit people and see what the models decide.
_EXPLORE_SCRIPTS = ("evaluate.js", "remote.js", "rows.js", "explore.js")


def render_html(
    document: Mapping[str, Any],
    *,
    title: str | None = None,
    language: str = "en",
    explore: Mapping[str, Any] | None = None,
    links: Sequence[tuple[str, str]] = (),
) -> str:
    """Return the page of a document.

    Parameters
    ----------
    document : dict
        Of `audit_document`, `comparison_document` or `score_document`, or the same read back from a JSON file.
    title : str, optional
        Heading of the page.
    language : {"en", "de"}, default="en"
        Of the page; columns and values stay as they are.
    explore : dict, optional
        As in `write_html`. With an ``endpoint`` in it the page asks that, and nothing else, about rows.
    links : sequence of (str, str)
        Words and addresses of other pages of a server.

    Returns
    -------
    str
        The same document gives the same page, byte for byte.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import likewise as lw
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    >>> result = lw.audit(score, people, [0, 1, 1, 1], metric=metric, eps=0.0)
    >>> from likewise.report import audit_document
    >>> "<h1>Hiring</h1>" in render_html(audit_document(result), title="Hiring")
    True
    """
    texts = Texts(check_language(language, owner="render_html"))
    kind = document["kind"].rpartition(".")[2]
    if kind == "scores":
        return render_scores(document, title=title, texts=texts)
    if kind not in KINDS:
        allowed = "of kind audit, comparison or scores"
        raise bad_parameter("render_html", "document", allowed=allowed, got=document["kind"])
    # The rows of everybody audited are for AuditResult.load; the page lists a few people.
    document = {name: part for name, part in document.items() if name != "result"}
    name = document.get("name")
    known = dict(document["said"])
    for entry in document.get("entries", ()):
        known |= entry["audit"]["said"]
    given = {"document": document, "explore": explore, "known": known}
    parts = templates(language).get_template("parts.html.j2").make_module(given)
    if kind == "audit":
        contents = parts.contents(parts.audit_sections(document), "a0-", "audit")
        body = parts.audit(document, "a0", 2)
    else:
        contents = parts.contents(parts.comparison_sections(document), "", "comparison")
        body = parts.comparison(document)
    shown = () if explore is None else ("explore",)
    data = {"data": document, **({} if explore is None else {"explore-data": explore})}
    save = f'<p class="needs-js"><button type="button" class="button" id="save-data">{texts("page.save")}</button></p>'
    return render_page(
        title or texts(f"page.title.{kind}") + (f": {name}" if name else ""),
        [body, '<svg id="svg-space" width="0" height="0" aria-hidden="true"></svg>'],
        texts=texts,
        contents=contents,
        links=links,
        provenance=document["provenance"],
        foot=[f"<p>{texts('page.written', version=__version__)}</p>", save],
        css="" if explore is None else asset("explore.css"),
        scripts=[asset(name) for name in (*_SCRIPTS, *(_EXPLORE_SCRIPTS if shown else ()))],
        data={**data, "texts": texts.for_scripts("script", *shown)},
        asks_server=explore is not None and explore.get("endpoint") is not None,
    )


def templates(language: str) -> Any:
    """Return the Jinja environment of the pages in one language: texts as ``t``, and the filters."""
    return _environment(require("jinja2", extra="report", why="Writing a page"), language)


@cache
def _environment(jinja2: Any, language: str) -> Any:
    """The templates in one language, compiled once: that takes longer than writing a page with them."""
    texts, markup = Texts(language), jinja2.utils.markupsafe.Markup

    @jinja2.pass_context  # type: ignore[untyped-decorator]
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
    environment.globals |= {"t": texts, "rich": lambda key, **values: markup(texts.rich(key, **values))}
    return environment


# How the page writes numbers and words: the filters of its templates, made for one language.

_NUMBERS = ("number", "general", "whole", "percent", "percent0", "times", "seconds")


def _place(value: float, low: float, high: float) -> str:
    """Where a value lies between two ends, as a CSS length."""
    width = high - low
    part = (value - low) / width if width > 0 else 0.0
    return f"{100 * min(max(part, 0.0), 1.0):.2f}%"


def _share(value: float | None, most: float) -> str:
    """Length of a bar; a hair's breadth for what is there but small."""
    if value is None or most <= 0 or value <= 0:
        return "0%"
    return f"{max(100 * min(value / most, 1.0), 0.4):.2f}%"


def _largest(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None]
    return max(known, default=0.0) or 1.0


def _known(texts: Texts, name: str, *groups: str) -> str | None:
    """The words for a setting, measure or part in the first of the groups of texts that has some."""
    key = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return next((texts(f"{group}.{key}") for group in groups if texts.has(f"{group}.{key}")), None)


def _words(texts: Texts, name: str) -> str:
    """A setting's name as words."""
    text = re.sub(r"[_-]+", " ", name).strip()
    return _known(texts, name, "setting") or text[:1].upper() + text[1:]


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
    return _known(texts, str(value), "setting_value") or str(value)


def compared_measures(texts: Texts, document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the measures of a comparison's document as columns, the best value of each marked."""
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
            "name": (name if name in first else _known(texts, name, "measure") or name).replace(
                " = ", "\u00a0=\u00a0"
            ),
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
        "written": texts.number,
        "cell": lambda value: texts("script.missing") if value is None else texts.number(value, ""),
        "share_changed": lambda group: group["changed"] / group["people"],
        "place": _place,
        "rest": lambda value, low, high: _place(low + high - value, low, high),
        "share": _share,
        "largest": _largest,
        "tallest": lambda columns: _largest(v["mean_harm"] for column in columns for v in column["values"]),
        "words": partial(_words, texts),
        "setting": partial(_setting, texts),
        "measure_name": lambda name: _known(texts, name, "measure") or name,
        "clock_part": lambda name: _known(texts, name, "clock", "search") or name,
        "compared": partial(compared_measures, texts),
        "bracket_words": partial(_bracket_words, texts),
        "bracket_name": lambda one: texts(f"page.brackets.name_{one['quantity']}", eps=one["eps"]),
    }
