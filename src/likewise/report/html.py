"""A document as one page that stands on its own: no network, everything that comes from data escaped."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise._version import __version__
from likewise.auditing.inference.verdict import Bracket
from likewise.auditing.results.audit_result import AuditResult
from likewise.core.errors import require
from likewise.core.files import atomic_path
from likewise.core.messages import Texts, check_language
from likewise.evaluation.summary import Evaluation
from likewise.report.document import check_target, document_of
from likewise.report.provenance import Provenance
from likewise.report.unfair_map_values import MAX_PEOPLE

if TYPE_CHECKING:
    from likewise.counterfactuals.study import TwinStudy
    from likewise.report.comparison import Comparison

# How the page writes numbers and words: the filters of its templates, made for one language.


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
    """Return the filters of the page's templates."""
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


# A page above this loads slowly; fewer people are listed then, and the page says how many.
MAX_BYTES = 1_900_000

_SCRIPTS = ("texts.js", "elements.js", "charts.js", "people.js", "page.js")
# Besides, where a reader may edit people and see what the models decide.
_EXPLORE_SCRIPTS = ("evaluate.js", "remote.js", "rows.js", "explore.js")
_TITLES = {"likewise.report.audit": "page.title.audit", "likewise.report.comparison": "page.title.comparison"}
# What ends a script element or a JavaScript line, written so that JSON readers still see the same text.
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def write_html(
    result: AuditResult | Comparison,
    path: str | Path,
    *,
    title: str | None = None,
    evaluation: Evaluation | None = None,
    diagnoses: Sequence[Any] = (),
    max_people: int = MAX_PEOPLE,
    labels: Mapping[Any, str] | None = None,
    explore: Mapping[str, Any] | None = None,
    provenance: Provenance | None = None,
    twins: Sequence[TwinStudy] = (),
    language: str = "en",
    overwrite: bool = False,
) -> None:
    """Write an audit or a comparison as one self-contained page, whole or not at all.

    Parameters
    ----------
    result : AuditResult or Comparison
    path : path-like
        The file; its folder must exist.
    title : str, optional
        Heading of the page.
    evaluation : Evaluation, optional
        Accuracy, correspondence studies and group gaps of the audited model, to be shown beside.
    diagnoses : sequence of Diagnosis, optional
        What `diagnose` found about the fair metric.
    max_people : int, default=200
        How many of the most harmed people to list. Fewer where the page would grow beyond 2 MB.
    labels : mapping, optional
        Names of the labels and decisions, such as ``{0: "refused", 1: "granted"}``.
    explore : dict, optional
        From `likewise.report.explore.explore_document`: the page gets a panel in which its reader edits a person and
        sees what the model decides. Rows of people and the model itself are in the page then.
    provenance : Provenance, optional
        When, of which files, by which command; shown at the foot of the page.
    twins : sequence of TwinStudy, optional
        Studies of three kinds of twins, to be shown beside.
    language : {"en", "de"}, default="en"
        Of the page; columns and values stay as they are.
    overwrite : bool, default=False
        Replace a file that exists.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np, pandas as pd
    >>> import likewise as lw
    >>> from likewise.auditing.auditor import audit
    >>> from likewise.models import as_model
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    >>> result = audit(as_model(score, takes_frame=True), people, [0, 1, 1, 1], metric=metric, delta=0.1)
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "audit.html"
    >>> write_html(result, target, labels={0: "refused", 1: "granted"})
    >>> target.read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    target = check_target(path, owner="write_html", overwrite=overwrite)
    while True:
        document = document_of(
            result,
            evaluation=evaluation,
            diagnoses=diagnoses,
            max_people=max_people,
            labels=labels,
            provenance=provenance,
            twins=twins,
        )
        page = render_html(document, title=title, language=language, explore=explore).encode()
        if len(page) <= MAX_BYTES or max_people <= 10:
            break
        max_people = max(max_people // 2, 10)
    with atomic_path(target) as temporary:
        temporary.write_bytes(page)


def render_html(
    document: Mapping[str, Any],
    *,
    title: str | None = None,
    language: str = "en",
    explore: Mapping[str, Any] | None = None,
    links: Sequence[tuple[str, str]] = (),
) -> str:
    """Return the page of a document that `audit_document` or `comparison_document` made.

    Parameters
    ----------
    document : dict
        Or the same read back from a JSON file.
    title : str, optional
        Heading of the page.
    language : {"en", "de"}, default="en"
        Of the page; columns and values stay as they are.
    explore : dict, optional
        As in `write_html`. With an ``endpoint`` in it the page asks that, and nothing else, about rows.
    links : sequence of (str, str)
        Words and addresses of pages beside it, where a server has some.

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
    jinja2 = require("jinja2", extra="report", why="Writing a page")
    from likewise.report.compiled_templates import compiled_templates

    markup = jinja2.utils.markupsafe.Markup
    texts = Texts(check_language(language, owner="render_html"))
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        bytecode_cache=compiled_templates(language),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters(texts, _known(document))
    environment.globals |= {"t": texts, "rich": lambda key, **values: markup(texts.rich(key, **values))}
    scripts = _SCRIPTS if explore is None else (*_SCRIPTS, *_EXPLORE_SCRIPTS)
    spoken = ("script",) if explore is None else ("script", "explore")
    script = "".join(f"(() => {{\n{_asset(name)}}})();\n" for name in scripts)
    name = document.get("name")
    heading = title or texts(_TITLES[document["kind"]]) + (f": {name}" if name else "")
    page: str = environment.get_template("page.html.j2").render(
        document=document,
        title=heading,
        language=language,
        links=links,
        version=__version__,
        policy=_policy(script, asks=explore is not None and explore.get("endpoint") is not None),
        css=markup(_asset("page.css") + ("" if explore is None else _asset("explore.css"))),
        script=markup(script),
        data=markup(_json(document)),
        texts=markup(_json(texts.for_scripts(*spoken))),
        explore=explore,
        explore_data=None if explore is None else markup(_json(explore)),
    )
    return page


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def _known(document: Mapping[str, Any]) -> dict[str, Any]:
    """What the sentences of a document, and of the audits in it, are made of."""
    found = dict(document["said"])
    for entry in document.get("entries", ()):
        found |= entry["audit"]["said"]
    return found


def _policy(script: str, *, asks: bool = False) -> str:
    """Content security policy: nothing from the network, no script but our own; a page that asks asks its server."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rules = {
        "default-src": "'none'",
        "script-src": f"'sha256-{digest}'",
        "style-src": "'unsafe-inline'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    if asks:
        rules["connect-src"] = "'self'"
    return "; ".join(f"{kind} {allowed}" for kind, allowed in rules.items())


def _asset(name: str) -> str:
    return (resources.files("likewise.report") / "assets" / name).read_text(encoding="utf-8")
