"""An attribute that is not in the table: columns that stand in for it, what separates its groups, how it was known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from likewise.core.intervals import Measure
from likewise.core.messages import Texts, contained
from likewise.core.plain import Written, plain_fields, rounded
from likewise.core.text import text_table
from likewise.report.page import Answer, Tone, cells_section, listed, section, wrapped
from likewise.report.templates import measure_words, templates

if TYPE_CHECKING:
    from likewise.proxies import Disparity, GroupProbabilities, ProxyTest

_COLUMNS = ("column", "carries", "moves", "needed", "used", "verdict")
_FIGURES = ("figure", "group", "weighted", "corrected", "bounds", "outer", "known")
# Columns told in words before all are in the table.
_TOLD = 3
# Columns in the terminal, and letters of their names there.
_LISTED, _WIDEST = 8, 30


@dataclass(frozen=True)
class ProxyFindings(Written):
    """What is known about an attribute that is not in the table, as one page; any part may be absent.

    Parameters
    ----------
    test : ProxyTest, optional
    disparity : Disparity, optional
    probabilities : GroupProbabilities, optional
        Only how many names and places were found is kept.

    Examples
    --------
    >>> import pandas as pd
    >>> import likewise as lw
    >>> from likewise.report import document_of
    >>> people = pd.DataFrame({"first": ["Mary", "John"] * 30})
    >>> given = lw.group_probabilities(people, "sex:first")
    >>> document = document_of(ProxyFindings(None, lw.disparity_bounds([1, 0] * 30, given), given))
    >>> document["probabilities"]["how"], "Mary" in str(document)
    ('sex:first', False)
    """

    test: ProxyTest | None = None
    disparity: Disparity | None = None
    probabilities: GroupProbabilities | None = None


def proxies_document(findings: ProxyFindings) -> dict[str, Any]:
    """Everything about an attribute that is not in the table as plain values; no name and no place is among them."""
    found, disparity, probabilities = findings.test, findings.disparity, findings.probabilities
    groups: dict[str, Any] | None = None
    if probabilities is not None:
        groups = {
            "how": probabilities.how,
            "shares": {str(key): float(share) for key, share in probabilities.table.mean().items()},
            "matched": {
                str(column): {key: int(n) for key, n in row.items()}
                for column, row in probabilities.matched.to_dict("index").items()
            },
            "not_found": int((~probabilities.informed).sum()),
        }
    return {
        "attribute": None if found is None else found.attribute,
        "people": found.people if found is not None else disparity.people if disparity is not None else 0,
        "direct": None if found is None else finite_number(found.direct),
        "legitimate": [] if found is None else list(found.legitimate),
        "by_probability": found is not None and found.by_probability,
        "columns": [] if found is None else [_column(one) for one in found.columns],
        "probabilities": groups,
        "disparity": None if disparity is None else _disparity(disparity),
        "findings": [] if disparity is None else [{"sentence": one.document()} for one in disparity.findings],
    }


def finite_number(value: float | None) -> float | None:
    """A number; None if it is infinite or not known."""
    return None if value is None or not math.isfinite(value) else rounded(value)


def _column(one: Any) -> dict[str, Any]:
    numbers = {key: _measure(getattr(one, key)) for key in ("carries", "moves", "needed")}
    shares = {key: finite_number(getattr(one, key)) for key in ("placebo", "used")}
    return {
        "columns": list(one.columns),
        "name": " + ".join(map(contained, one.columns)),
        **numbers,
        **shares,
        "verdict": one.verdict,
    }


def _measure(one: Measure | None) -> dict[str, Any] | None:
    if one is None:
        return None
    return {key: finite_number(getattr(one, key)) for key in ("value", "low", "high")}


def _disparity(found: Disparity) -> dict[str, Any]:
    figures = [
        {key: getattr(one, key) for key in ("measure", "kind", "group", "verdict")}
        | {key: _measure(getattr(one, key)) for key in ("weighted", "corrected", "known")}
        | {key: finite_number(getattr(one, key)) for key in ("low", "high", "outer_low", "outer_high")}
        for one in found.figures
    ]
    kept = plain_fields(found)
    names = ("reference", "people", "known", "by_area", "confidence")
    return {key: kept[key] for key in names} | {"figures": figures}


def _range(one: Mapping[str, Any], texts: Texts, low: str, high: str) -> str:
    return texts(
        "proxies.range",
        low="−∞" if one[low] is None else texts.number(one[low], "number"),
        high="∞" if one[high] is None else texts.number(one[high], "number"),
    )


def _column_rows(document: Mapping[str, Any], texts: Texts) -> list[tuple[str, ...]]:
    return [
        (
            one["name"],
            measure_words(texts, one["carries"]),
            measure_words(texts, one["moves"], "percent"),
            measure_words(texts, one["needed"]),
            texts.number(one["used"], "percent"),
            texts(f"proxies.verdict_{one['verdict']}"),
        )
        for one in document["columns"]
    ]


def _brief_rows(document: Mapping[str, Any], texts: Texts) -> list[tuple[str, ...]]:
    """The first columns without intervals, as many as a screen of 80 columns holds."""
    forms = {"carries": "number", "moves": "percent", "needed": "number"}
    return [
        (
            one["name"] if len(one["name"]) <= _WIDEST else f"{one['name'][: _WIDEST - 1]}…",
            *(
                "–" if one[key] is None else texts.number(one[key]["value"], form)
                for key, form in forms.items()
            ),
            texts(f"proxies.verdict_{one['verdict']}"),
        )
        for one in document["columns"][:_LISTED]
    ]


def _figure_rows(document: Mapping[str, Any], texts: Texts) -> list[tuple[str, ...]]:
    return [
        (
            f"{texts('proxies.' + one['measure'].replace(' ', '_'))}, {texts('proxies.' + one['kind'])}",
            one["group"],
            *(measure_words(texts, one[key]) for key in ("weighted", "corrected")),
            _range(one, texts, "low", "high"),
            _range(one, texts, "outer_low", "outer_high"),
            measure_words(texts, one["known"]),
        )
        for one in document["disparity"]["figures"]
    ]


def _proxies_answer(document: Mapping[str, Any], texts: Texts) -> tuple[str, Tone, list[str], list[str]]:
    """Badge, tone, sentences and warnings."""
    told: list[str] = []
    warned: list[str] = []
    badge = texts("proxies.badge_groups")
    tone: Tone = "plain"
    if document["columns"]:
        attribute = document["attribute"]
        alone = [one for one in document["columns"] if len(one["columns"]) == 1]
        stand_in = [one for one in alone if one["verdict"] == "proxy"]
        badge = texts(f"proxies.badge_{'found' if stand_in else 'none'}", attribute=attribute)
        tone = "bad" if stand_in else "plain"
        if document["direct"] is not None:
            key = "proxies.direct" if document["direct"] else "proxies.not_read"
            told.append(texts(key, attribute=attribute, share=document["direct"], n=document["people"]))
        for one in stand_in[:_TOLD]:
            words = {"column": one["name"], "attribute": attribute, "moves": one["moves"]["value"]}
            told.append(texts("proxies.stands_in", auc=one["carries"]["value"], **words))
            if one["needed"] is not None:
                key = "proxies.needed_for" if one["needed"]["low"] > 0 else "proxies.not_needed"
                told[-1] += " " + texts(key, fall=one["needed"]["value"])
        if not stand_in:
            told.append(texts("proxies.none", attribute=attribute, n=len(alone)))
        if document["by_probability"]:
            warned.append(texts("proxies.understated"))
    if document["disparity"] is not None:
        for one in document["disparity"]["figures"]:
            if (one["measure"], one["kind"]) == ("selection", "ratio") and one["weighted"][
                "value"
            ] is not None:
                words = {"group": one["group"], "reference": document["disparity"]["reference"]}
                words["range"] = _range(one, texts, "outer_low", "outer_high")
                told.append(texts(f"proxies.ratio_{one['verdict'].replace(' ', '_')}", **words))
    return badge, tone, told, warned


def _assumptions(document: Mapping[str, Any], texts: Texts) -> list[str]:
    if document["disparity"] is None:
        return [texts("proxies.interval")]
    corrected = "proxies.assumes_area" if document["disparity"]["by_area"] else "proxies.assumes_names"
    keys = ["proxies.assumes_nothing", "proxies.assumes_weighted", corrected]
    if document["disparity"]["known"]:
        keys.append("proxies.assumes_known")
    return [texts(key, known=document["disparity"]["known"]) for key in keys]


def _sources(document: Mapping[str, Any], texts: Texts) -> list[str]:
    found = document["probabilities"]
    if found is None:
        return []
    told = [texts("proxies.how", how=found["how"])]
    for column, row in found["matched"].items():
        told.append(
            texts(
                "proxies.matched",
                column=column,
                part=row["in part"],
                **{key: row[key] for key in ("found", "unknown", "empty", "contradicts")},
            )
        )
    if found["not_found"]:
        told.append(texts("proxies.not_found", n=found["not_found"]))
    return [*told, texts("proxies.privacy")]


def _bars(document: Mapping[str, Any], texts: Texts) -> str:
    """Three bars for each column, each as a share of the longest of its kind."""
    alone = [one for one in document["columns"] if len(one["columns"]) == 1][:20]
    lengths = [
        (
            max(2.0 * one["carries"]["value"] - 1.0, 0.0),
            one["moves"]["value"],
            max(one["needed"]["value"], 0.0) if one["needed"] else 0.0,
        )
        for one in alone
    ]
    longest = [max([row[k] for row in lengths] + [1e-9]) for k in range(3)]
    shares = [[value / most for value, most in zip(row, longest, strict=True)] for row in lengths]
    rows = [*zip((one["name"][:28] for one in alone), shares, strict=True)]
    heads = [texts(f"proxies.{key}") for key in _COLUMNS[1:4]]
    return str(
        templates(texts.language)
        .get_template("shell.html.j2")
        .module.bars(texts("proxies.picture"), heads, rows)
    )


def proxies_page(document: Mapping[str, Any], texts: Texts) -> dict[str, Any]:
    """The parts of a page."""
    badge, tone, sentences, warned = _proxies_answer(document, texts)
    sections = []
    if document["columns"]:
        heads = [texts(f"proxies.{key}") for key in _COLUMNS]
        name, rows = texts("proxies.columns_title"), _column_rows(document, texts)
        sections.append(section(texts("proxies.picture_title"), _bars(document, texts), id="picture"))
        lede = texts("proxies.columns_lede")
        sections.append(cells_section(name, heads, rows, right=range(1, 5), id="columns", lede=lede))
    if document["disparity"] is not None:
        heads = [texts(f"proxies.{key}") for key in _FIGURES]
        name = texts("proxies.groups_title", reference=document["disparity"]["reference"])
        rows, lede = _figure_rows(document, texts), texts("proxies.groups_lede")
        sections.append(cells_section(name, heads, rows, right=range(2, 7), id="groups", lede=lede))
    sources = _sources(document, texts)
    if sources:
        sections.append(section(texts("proxies.sources_title"), listed(sources), id="sources"))
    return {
        "title": texts("proxies.title", attribute=document["attribute"] or texts("proxies.groups")),
        "answer": Answer(
            badge,
            tone,
            sentences or [texts("proxies.groups_only")],
            warnings=warned,
            sure=_assumptions(document, texts),
            not_shown=[texts("proxies.not_shown")],
            next_steps=[texts("proxies.next")],
        ),
        "sections": sections,
        "scope": [(texts("page.scope.people"), texts.number(document["people"], "whole"))],
    }


def proxies_lines(document: Mapping[str, Any], texts: Texts) -> tuple[list[str], list[str]]:
    """The columns, the groups, how they were known, and the answer last."""
    badge, _, sentences, warned = _proxies_answer(document, texts)
    lines = wrapped(*_sources(document, texts))
    if document["disparity"] is not None:
        heads = [texts(f"proxies.{key}") for key in _FIGURES]
        lines += [
            "",
            *text_table(heads, _figure_rows(document, texts)).split("\n"),
            *wrapped(*_assumptions(document, texts)),
        ]
    if document["columns"]:
        heads = [texts(f"proxies.{key}") for key in (*_COLUMNS[:4], _COLUMNS[-1])]
        lines += ["", *text_table(heads, _brief_rows(document, texts)).split("\n")]
        more = len(document["columns"]) - _LISTED
        lines += [texts("proxies.more", n=more)] if more > 0 else []
        lines += wrapped(texts("proxies.columns_lede"))
    said = f"{badge}: {' '.join(sentences)}" if sentences else badge
    return [*lines, "", *wrapped(*warned), *wrapped(said)], []
