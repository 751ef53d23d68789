"""The burden of everybody refused: the plain document, the page and the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from likewise.core.intervals import Measure
from likewise.core.messages import Texts
from likewise.core.plain import plain_cell
from likewise.report.first_words import question_document
from likewise.report.page import Answer, Tone, cells_table, render_page, section
from likewise.report.person import cost_words, finite_number, settings_words, wrapped
from likewise.report.templates import cell_words

if TYPE_CHECKING:
    from likewise.explaining.burden import Recourse
    from likewise.report.provenance import Provenance

# People of a table that are listed on the page and in the terminal.
_LISTED, _PRINTED = 50, 5
_BURDEN = ("group", "refused", "median", "without", "pays_more", "pays_less")
_PEOPLE = ("who", "own_cost", "counterpart", "twin_cost", "changes")


def recourse_document(
    found: Recourse, *, name: str = "", source: str = "X", provenance: Provenance | None = None
) -> dict[str, Any]:
    """Everything about the burden of those refused as plain values."""
    people = [
        {
            key: finite_number(cell) if isinstance(cell, float) else plain_cell(cell)
            for key, cell in row.items()
        }
        for row in found.people.to_dict("records")
    ]
    return {
        **question_document("recourse", found, name, source, provenance),
        "favourable": plain_cell(found.favourable),
        "not_read": list(found.not_read),
        "decided": found.decided,
        "refused": found.refused,
        "looked": found.looked,
        "proved": found.proved,
        "unequal": _measure(found.unequal),
        "dearer": _measure(found.dearer),
        "cheaper": _measure(found.cheaper),
        "burden": [
            {"attribute": one.attribute, "group": plain_cell(one.group), "refused": one.refused}
            | {key: _measure(getattr(one, key)) for key in ("cost", "without", "dearer", "cheaper")}
            for one in found.burden
        ],
        "people": people,
        "settings": dict(found.settings),
        "stopped": found.stopped,
    }


def _measure(one: Measure) -> dict[str, float | None]:
    return {"value": finite_number(one.value), "low": finite_number(one.low), "high": finite_number(one.high)}


def _share(one: Mapping[str, Any], texts: Texts) -> str:
    if one["value"] is None:
        return "–"
    low, high = (texts.number(one[end], "percent") for end in ("low", "high"))
    return f"{texts.number(one['value'], 'percent')} ({low}–{high})"


def _median(one: Mapping[str, Any], texts: Texts) -> str:
    ends = (
        ""
        if one["low"] is None and one["high"] is None
        else f" ({cost_words(one['low'], texts)}–{cost_words(one['high'], texts)})"
    )
    return f"{cost_words(one['value'], texts)}{ends}"


def _recourse_answer(document: Mapping[str, Any], texts: Texts) -> tuple[str, Tone, list[str]]:
    words: dict[str, Any] = {
        "n": document["looked"],
        "favourable": cell_words(texts, document["favourable"]),
        "columns": document["sensitive"],
    }
    if not document["looked"]:
        return texts("recourse.badge_nothing"), "plain", [texts("recourse.sentence_none", **words)]
    unequal = bool(document["unequal"]["value"])
    shares = {key: texts.number(document[key]["value"], "percent") for key in ("dearer", "cheaper")}
    share = texts.number(document["unequal"]["value"], "percent")
    told = []
    if document["sensitive"]:
        key = "recourse.sentence" if unequal else "recourse.sentence_equal"
        told.append(texts(key, share=share, **shares, **words))
    told.append(texts("recourse.proved", share=document["proved"]))
    if document["looked"] < document["refused"]:
        told.append(texts("recourse.looked", looked=document["looked"], refused=document["refused"]))
    badge = texts("recourse.badge_unequal" if unequal else "recourse.badge_equal")
    return badge, "bad" if unequal else "plain", told


def render_recourse(document: Mapping[str, Any], *, title: str | None = None, texts: Texts) -> str:
    """Return the page of a document of `recourse_document`."""
    badge, tone, sentences = _recourse_answer(document, texts)
    sections = []
    if document["burden"]:
        name = texts("recourse.burden_title")
        heads = [texts(f"recourse.{key}") for key in _BURDEN]
        rows = [
            (
                f"{one['attribute']} = {cell_words(texts, one['group'])}",
                texts.number(one["refused"], "whole"),
                _median(one["cost"], texts),
                *(_share(one[key], texts) for key in ("without", "dearer", "cheaper")),
            )
            for one in document["burden"]
        ]
        sections.append(section(name, cells_table(name, heads, rows, right=range(1, 6)), id="burden"))
    listed = [one for one in document["people"] if one["unequal"]][:_LISTED]
    if listed:
        name = texts("recourse.people_title")
        heads = [texts(f"recourse.{key}") for key in _PEOPLE]
        people = [
            (
                cell_words(texts, one["row"]),
                cost_words(one["cost"], texts),
                str(one["counterpart"] or ""),
                cost_words(one["counterpart_cost"], texts),
                str(one["changes"]),
            )
            for one in listed
        ]
        sections.append(section(name, cells_table(name, heads, people), id="people"))
    lines = "".join(f"<li>{escape(line)}</li>" for line in settings_words(document["settings"], texts))
    stopped = [texts("recourse.stopped")] if document["stopped"] else []
    answer = Answer(
        badge,
        tone,
        sentences,
        warnings=[*(texts.said(one["sentence"]) for one in document["findings"]), *stopped],
        sure=[texts("recourse.interval")],
        not_shown=[texts("recourse.not_shown"), texts("person.caveat_world")],
        next_steps=[texts("recourse.next", columns=document["sensitive"])] if document["sensitive"] else [],
    )
    return render_page(
        title or texts("recourse.title", favourable=cell_words(texts, document["favourable"])),
        sections,
        texts=texts,
        answer=answer,
        scope=[(texts("page.scope.sensitive"), texts.number(document["sensitive"], "list"))]
        if document["sensitive"]
        else [],
        annex=[section(texts("person.settings_title"), f"<ul>{lines}</ul>", id="rules", level=3)],
        provenance=document["provenance"],
        personal=bool(document["people"]),
    )


def recourse_lines(document: Mapping[str, Any], texts: Texts) -> tuple[list[str], list[str]]:
    """The burden in a few lines: by group, the largest differences, the sentence last."""
    badge, _, sentences = _recourse_answer(document, texts)
    lines = wrapped([texts.said(one["sentence"]) for one in document["findings"]])
    for one in document["burden"]:
        lines.append(
            f"{one['attribute']} = {cell_words(texts, one['group'])}: {texts('recourse.refused').lower()} "
            f"{texts.number(one['refused'], 'whole')}, {texts('recourse.median').lower()} {_median(one['cost'], texts)}"
        )
        for key, name in zip(("without", "dearer", "cheaper"), _BURDEN[3:], strict=True):
            lines.append(f"    {texts(f'recourse.{name}')}: {_share(one[key], texts)}")
    listed = [one for one in document["people"] if one["unequal"]][:_PRINTED]
    if listed:
        lines += ["", f"{texts('recourse.people_title')}:"]
        for one in listed:
            lines += wrapped(
                [
                    f"  {texts('recourse.who')} {cell_words(texts, one['row'])}: {cost_words(one['cost'], texts)}, "
                    f"{one['counterpart']}: {cost_words(one['counterpart_cost'], texts)}"
                ],
                "    ",
            )
    return [*lines, "", *wrapped([f"{badge}: {' '.join(sentences)}"])], []
