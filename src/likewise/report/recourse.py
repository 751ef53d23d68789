"""The burden of everybody refused: the plain document, the page and the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from likewise.core.messages import Texts
from likewise.core.plain import plain, plain_fields
from likewise.core.text import option
from likewise.report.page import Answer, Tone, cells_section, wrapped
from likewise.report.person import change_words, cost_words, settings_section
from likewise.report.templates import cell_words, measure_words, row_words, where_words

if TYPE_CHECKING:
    from likewise.explaining.burden import Recourse

# People of a table that are listed on the page and in the terminal.
_LISTED, _PRINTED = 50, 5
_SHARES = {"without": "without", "dearer": "pays_more", "cheaper": "pays_less"}


def recourse_document(found: Recourse) -> dict[str, Any]:
    """Everything about the burden of those refused as plain values."""
    return plain_fields(found, sensitive_features="sensitive", people=None, confidence=None) | {
        # Infinite costs have no number.
        "people": plain(found.people.replace([math.inf, -math.inf], math.nan).to_dict("records")),
        **{key: plain(getattr(found, key)) for key in ("looked", "proved", "unequal", "dearer", "cheaper")},
    }


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
    badge = texts(
        "recourse.badge_unequal"
        if unequal
        else "recourse.badge_equal"
        if document["sensitive"]
        else "recourse.badge_alone"
    )
    return badge, "bad" if unequal else "plain", told


def recourse_page(document: Mapping[str, Any], texts: Texts) -> dict[str, Any]:
    """The parts of a page."""
    badge, tone, sentences = _recourse_answer(document, texts)
    burden = [
        (
            f"{one['attribute']} = {cell_words(texts, one['group'])}",
            texts.number(one["refused"], "whole"),
            _median(one["cost"], texts),
            *(measure_words(texts, one[key], "percent") for key in _SHARES),
        )
        for one in document["burden"]
    ]
    people = [
        (
            row_words(texts, document, one["row"]),
            cost_words(one["cost"], texts),
            str(one["counterpart"] or ""),
            cost_words(one["counterpart_cost"], texts),
            str(one["changes"]),
        )
        for one in _unequal(document, _LISTED)
    ]
    heads = [texts(f"recourse.{key}") for key in ("group", "refused", "median", *_SHARES.values())]
    columns = ("own_cost", "counterpart", "twin_cost", "changes")
    names = [texts(f"counted.head_{document['counted']}"), *(texts(f"recourse.{key}") for key in columns)]
    return {
        "title": texts("recourse.title", favourable=cell_words(texts, document["favourable"])),
        "answer": Answer(
            badge,
            tone,
            sentences,
            warnings=[texts("recourse.stopped")] if document["stopped"] else [],
            sure=[texts("recourse.interval")],
            not_shown=[texts("recourse.not_shown"), texts("person.caveat_world")],
            next_steps=[texts("recourse.next", columns=document["sensitive"])]
            if document["sensitive"]
            else [],
        ),
        "sections": [
            cells_section(
                texts("recourse.burden_title"),
                heads,
                burden,
                right=range(1, 6),
                id="burden",
                lede=change_words(document["settings"], texts),
            ),
            cells_section(texts("recourse.people_title"), names, people, id="people"),
        ],
        "annex": [settings_section(document["settings"], texts)],
        "personal": bool(people),
    }


def _unequal(document: Mapping[str, Any], most: int) -> list[Mapping[str, Any]]:
    return [one for one in document["people"] if one["unequal"]][:most]


def recourse_lines(document: Mapping[str, Any], texts: Texts) -> tuple[list[str], list[str]]:
    """The burden in a few lines: by group, the largest differences; the sentence apart."""
    badge, _, sentences = _recourse_answer(document, texts)
    lines = []
    for one in document["burden"]:
        shares = [
            f"{texts(f'recourse.{name}')} {measure_words(texts, one[key], 'percent')}"
            for key, name in _SHARES.items()
        ]
        said = f"{texts('recourse.refused')} {texts.number(one['refused'], 'whole')}"
        said += f"; {texts('recourse.median')} {_median(one['cost'], texts)}; {'; '.join(shares)}"
        lines += wrapped(f"{one['attribute']} = {cell_words(texts, one['group'])}: {said}", indent="    ")
    listed = _unequal(document, _PRINTED)
    lines += ["", f"{texts('recourse.people_title')}:"] if listed else []
    for one in listed:
        costs = [cost_words(one[key], texts) for key in ("cost", "counterpart_cost")]
        where = where_words(texts, document, one["row"])
        lines += wrapped(f"  {where}: {costs[0]}, {one['counterpart']}: {costs[1]}", indent="    ")
    hold = texts("person.hold", how=option("held"))
    lines += ["", *wrapped(change_words(document["settings"], texts), hold)] if lines else []
    return lines, wrapped(f"{badge}:", *sentences)
