"""One person's decision as a letter: the plain document, the page and the terminal."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING, Any

from likewise.core.messages import Texts
from likewise.core.plain import plain_cell, rounded
from likewise.report.first_words import question_document
from likewise.report.page import Answer, cells_table, render_page, section
from likewise.report.templates import cell_words

if TYPE_CHECKING:
    from likewise.explaining.person import Counterpart, Explanation, Suggestion
    from likewise.explaining.reasons import Reason
    from likewise.report.provenance import Provenance

_WIDTH = 80


def person_document(
    found: Explanation, *, name: str = "", source: str = "X", provenance: Provenance | None = None
) -> dict[str, Any]:
    """Everything about one person as plain values; nothing of it is about anybody else."""
    return {
        **question_document("person", found, name, source, provenance),
        "row": found.row,
        "counted": found.counted,
        "recorded": dict(found.recorded),
        "decision": plain_cell(found.decision),
        "favourable": plain_cell(found.favourable),
        "refused": found.refused,
        "score": rounded(found.score),
        "line": found.line,
        "not_read": list(found.not_read),
        "least": _suggestion(found.least),
        "fewest": _suggestion(found.fewest),
        "alternatives": [_suggestion(one) for one in found.alternatives],
        "reasons": [_reason(one) for one in found.reasons],
        "principal_reasons": [one.column for one in found.principal_reasons],
        "reference": found.reference,
        "exact_reasons": found.exact_reasons,
        "counterparts": [_counterpart(one) for one in found.counterparts],
        "settings": dict(found.settings),
    }


def finite_number(value: float | None) -> float | None:
    """A cost; None if it is infinite or not known."""
    return None if value is None or not math.isfinite(value) else rounded(value)


def _suggestion(one: Suggestion | None) -> dict[str, Any] | None:
    if one is None:
        return None
    changes = [asdict(change) | {"cost": finite_number(change.cost)} for change in one.changes]
    return {
        "status": one.status,
        "cost": finite_number(one.cost),
        "lower": finite_number(one.lower),
        "changes": changes,
    }


def _reason(one: Reason) -> dict[str, Any]:
    return asdict(one) | {"contribution": rounded(one.contribution), "error": rounded(one.error)}


def _counterpart(one: Counterpart) -> dict[str, Any]:
    return {
        "values": dict(one.values),
        "plausible": one.plausible,
        "decision": plain_cell(one.decision),
        "favourable": one.favourable,
        "least": _suggestion(one.least),
        "difference": finite_number(one.difference),
        "endless": one.difference is not None and math.isinf(one.difference),
        "known": one.difference is not None,
        "exact": one.exact,
        "reasons": [_reason(part) for part in one.reasons],
        "same_reasons": one.same_reasons,
    }


# Words of one person.


def _values(values: Mapping[str, Any], texts: Texts) -> str:
    return ", ".join(f"{name} = {cell_words(texts, value)}" for name, value in values.items())


def _changes(one: Mapping[str, Any], texts: Texts) -> str:
    said = [
        texts(
            "person.change",
            column=change["column"],
            recorded=cell_words(texts, change["recorded"]),
            instead=cell_words(texts, change["instead"]),
        )
        for change in one["changes"]
    ]
    return texts.number(said, "list")


def _way(one: Mapping[str, Any], favourable: Any, texts: Texts) -> str:
    """The sentence about a least change."""
    status = one["status"]
    if status == "bracket" and not one["changes"]:
        status = "not_found"
    return texts(
        f"person.way_status.{status.replace(' ', '_')}",
        favourable=cell_words(texts, favourable),
        changes=_changes(one, texts),
        cost=one["cost"] or 0.0,
        lower=one["lower"] or 0.0,
    )


def _score(document: Mapping[str, Any], texts: Texts) -> str:
    favourable = cell_words(texts, document["favourable"])
    if not document["refused"]:
        return texts("person.granted", decision=cell_words(texts, document["decision"]))
    if document["line"] is None:
        return ""
    key = "person.score" if document["line"] == 0.5 else "person.score_number"
    return texts(key, favourable=favourable, score=document["score"], line=document["line"])


def _twins_sentence(document: Mapping[str, Any], texts: Texts) -> str:
    """What other sensitive values would change: the decision, else the cost, else nothing."""
    columns = [name for name in document["sensitive"] if name not in document["not_read"]]
    listed = [one for one in document["counterparts"] if one["plausible"]]
    if not columns or not listed:
        return texts("person.not_read", columns=document["sensitive"]) if document["sensitive"] else ""
    words: dict[str, Any] = {"columns": columns, "favourable": cell_words(texts, document["favourable"])}
    for one in listed:
        if one["favourable"] == document["refused"]:
            told = {"values": _values(one["values"], texts), "decision": cell_words(texts, one["decision"])}
            return texts("person.twins_sentence.decision", **words, **told)
    if not document["refused"]:
        return texts("person.twins_sentence.same", **words)
    own = document["least"]["cost"]
    for one in listed:
        if one["endless"]:
            key = "impossible" if own is not None else "possible"
            return texts(f"person.twins_sentence.{key}", values=_values(one["values"], texts), **words)
    if not all(one["known"] and one["exact"] for one in listed):
        return texts("person.twins_sentence.unknown", **words)
    most = max(listed, key=lambda one: abs(one["difference"] or 0.0))
    if not most["difference"]:
        return texts("person.twins_sentence.same", **words)
    key = "dearer" if most["difference"] > 0 else "cheaper"
    share = abs(most["difference"]) / own
    return texts(f"person.twins_sentence.{key}", values=_values(most["values"], texts), share=share, **words)


def cost_words(value: float | None, texts: Texts) -> str:
    return "∞" if value is None else texts.number(value, "number")


def _reasons_words(document: Mapping[str, Any], texts: Texts) -> list[str]:
    by_column = {one["column"]: one for one in document["reasons"]}
    said = []
    for column in document["principal_reasons"]:
        one = by_column[column]
        key = "person.reason_sensitive" if column in document["sensitive"] else "person.reason"
        said.append(one["text"] or texts(key, column=column, value=cell_words(texts, one["value"])))
    return said


def settings_words(settings: Mapping[str, Any], texts: Texts) -> list[str]:
    said = [texts(f"person.unit_{settings['cost']}")]
    if settings["fixed"]:
        said.append(texts("person.fixed", columns=settings["fixed"]))
    for way in ("up", "down"):
        names = [name for name, direction in settings["directions"].items() if direction == way]
        if names:
            said.append(texts(f"person.direction_{way}", columns=names))
    return [*said, *(texts("person.rule", rule=rule) for rule in settings["rules"])]


# The letter.


def render_person(document: Mapping[str, Any], *, title: str | None = None, texts: Texts) -> str:
    """Return the page of a document of `person_document`: one sheet of paper."""
    favourable = document["favourable"]
    where = texts(f"counted.{document['counted']}", row=_shown_row(document), source=document["source"])
    sentences = [_score(document, texts)]
    if document["least"] is not None:
        sentences.append(_way(document["least"], favourable, texts))
    sentences.append(_twins_sentence(document, texts))
    sections = [*_ways(document, texts), _reasons_section(document, texts), *_twins(document, texts)]
    fixed = document["settings"]["fixed"]
    reach = texts("person.caveat_range", columns=fixed) if fixed else texts("person.caveat_range_all")
    sure = [texts("person.sure_asked", favourable=cell_words(texts, favourable))] if document["least"] else []
    if document["settings"]["engine"] == "search":
        sure.append(texts("person.engine", why=document["settings"]["why_not_proved"]))
    sure.append(texts("person.reasons_exact" if document["exact_reasons"] else "person.reasons_sampled"))
    answer = Answer(
        texts("person.badge", decision=cell_words(texts, document["decision"])),
        "plain",
        [one for one in sentences if one],
        large=2,
        warnings=[texts.said(one["sentence"]) for one in document["findings"]],
        sure=sure,
        not_shown=[texts("person.caveat_world"), reach],
        next_steps=[texts("person.next_correct"), texts("person.next_review")],
    )
    recorded = [(str(name), cell_words(texts, value)) for name, value in document["recorded"].items()]
    name, heads = texts("person.recorded_title"), [texts("person.name"), texts("person.value")]
    listed = "".join(f"<li>{escape(line)}</li>" for line in settings_words(document["settings"], texts))
    annex = [
        section(name, cells_table(name, heads, recorded), id="recorded", level=3),
        section(texts("person.settings_title"), f"<ul>{listed}</ul>", id="rules", level=3),
    ]
    return render_page(
        title or texts("person.title", where=where),
        sections,
        texts=texts,
        answer=answer,
        scope=[(texts("page.scope.sensitive"), texts.number(document["sensitive"], "list"))]
        if document["sensitive"]
        else [],
        annex=annex,
        provenance=document["provenance"],
        sheet=True,
        personal=True,
    )


def _shown_row(document: Mapping[str, Any]) -> str:
    row = document["row"]
    return str(row + 1 if document["counted"] == "position" and isinstance(row, int) else row)


def _ways(document: Mapping[str, Any], texts: Texts) -> list[str]:
    least = document["least"]
    if least is None or not least["changes"]:
        return []
    listed = [("person.least", least)]
    if document["fewest"] and document["fewest"]["changes"] != least["changes"]:
        listed.append(("person.fewest", document["fewest"]))
    known = [one["changes"] for _, one in listed]
    listed += [("person.other", one) for one in document["alternatives"] if one["changes"] not in known]
    rows = [(texts(key), _changes(one, texts), cost_words(one["cost"], texts)) for key, one in listed]
    title, heads = texts("person.ways_title"), ["", texts("person.way"), texts("person.cost")]
    return [section(title, cells_table(title, heads, rows, right=(2,)), id="ways")]


def _reasons_section(document: Mapping[str, Any], texts: Texts) -> str:
    title = texts("person.reasons_title")
    if not document["reference"]:
        return section(title, f"<p>{escape(texts('person.nobody'))}</p>", id="reasons")
    said = _reasons_words(document, texts)
    items = "".join(f"<li>{escape(one)}</li>" for one in said)
    body = f"<ol>{items}</ol>" if said else f"<p>{escape(texts('person.no_reasons'))}</p>"
    return section(title, body, id="reasons", lede=texts("person.reasons_lede", n=document["reference"]))


def _twin_cells(document: Mapping[str, Any], one: Mapping[str, Any], texts: Texts) -> list[str]:
    """What a counterpart has beside their values: decision, least change, cost, difference."""
    if not one["plausible"]:
        return [texts("person.not_plausible"), "", "", ""]
    least = one["least"]
    if least is None:
        change, cost = texts("person.needs_nothing"), cost_words(0.0, texts)
    elif least["changes"]:
        change, cost = _changes(least, texts), cost_words(least["cost"], texts)
    else:
        change, cost = texts("person.no_way" if least["status"] == "none" else "person.no_way_found"), "∞"
    if one["endless"]:
        differs = texts("person.endless")
    elif not one["known"]:
        differs = texts("person.differ")
    elif not one["difference"]:
        differs = texts("person.equal")
    else:
        key = "person.dearer" if one["difference"] > 0 else "person.cheaper"
        differs = texts(key, cost=cost_words(abs(one["difference"]), texts))
    if one["same_reasons"] is not None and document["refused"] and not one["favourable"]:
        differs += "; " + texts("person.reasons_same" if one["same_reasons"] else "person.reasons_differ")
    return [cell_words(texts, one["decision"]), change, cost, differs]


def _twins(document: Mapping[str, Any], texts: Texts) -> list[str]:
    if not document["counterparts"]:
        return []
    names = [name for name in document["sensitive"] if name not in document["not_read"]]
    title = texts("person.twins_title", columns=names)
    rows = [
        (_values(one["values"], texts), *_twin_cells(document, one, texts))
        for one in document["counterparts"]
    ]
    keys = ("person.twin", "person.decision", "person.way", "person.cost", "person.difference")
    heads = [texts(key) for key in keys]
    return [
        section(title, cells_table(title, heads, rows), id="counterparts", lede=texts("person.twins_lede"))
    ]


# The terminal.


def wrapped(lines: Sequence[str], indent: str = "") -> list[str]:
    return [
        part
        for line in lines
        for part in textwrap.wrap(line, _WIDTH, break_on_hyphens=False, subsequent_indent=indent) or [""]
    ]


def person_lines(document: Mapping[str, Any], texts: Texts) -> tuple[list[str], list[str]]:
    """One person in a few lines: decision, least change, other ways, reasons, counterparts."""
    favourable = document["favourable"]
    said = [texts("person.badge", decision=cell_words(texts, document["decision"])), _score(document, texts)]
    said += [texts.said(one["sentence"]) for one in document["findings"]]
    lines = wrapped([one for one in said if one])
    if document["least"] is not None:
        lines += ["", *wrapped([_way(document["least"], favourable, texts)])]
        others = [one for one in document["alternatives"] if one["changes"]]
        lines += wrapped([f"  {texts('person.other')}: {_changes(one, texts)}" for one in others], "    ")
    reasons = _reasons_words(document, texts)
    if reasons:
        lines += ["", f"{texts('person.reasons_title')}:", *wrapped([f"  {one}" for one in reasons], "    ")]
    for one in document["counterparts"][:6]:
        cells = [cell for cell in _twin_cells(document, one, texts) if cell]
        lines += ["", *wrapped([f"{_values(one['values'], texts)}: {'; '.join(cells)}"], "  ")]
    return [*lines, "", *wrapped([_twins_sentence(document, texts)])], []
