"""One person's decision as a letter: the plain document, the page and the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from likewise.core.messages import Texts
from likewise.core.plain import plain_fields
from likewise.core.text import option
from likewise.report.page import Answer, cells_section, listed, section, wrapped
from likewise.report.templates import cell_words, where_words

if TYPE_CHECKING:
    from likewise.explaining.person import Explanation


def person_document(found: Explanation) -> dict[str, Any]:
    """Everything about one person as plain values; nothing of it is about anybody else."""
    values = plain_fields(found, sensitive_features="sensitive", comparable=None, changes_with=None)
    for one, twin in zip(values["counterparts"], found.counterparts, strict=True):
        one["known"] = twin.difference is not None
        one["endless"] = twin.difference is not None and math.isinf(twin.difference)
    return values | {"principal_reasons": [one.column for one in found.principal_reasons]}


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
    # Another decision that is no better is one too, and is told if there is no other.
    for one in sorted(listed, key=lambda one: bool(one["favourable"] != document["refused"])):
        if one["decision"] != document["decision"]:
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


def settings_section(settings: Mapping[str, Any], texts: Texts) -> str:
    """What could be changed, and by which rules."""
    said = [texts("person.fixed", columns=settings["fixed"])] if settings["fixed"] else []
    for way in ("up", "down"):
        names = [name for name, direction in settings["directions"].items() if direction == way]
        if names:
            said.append(texts(f"person.direction_{way}", columns=names))
    said += [texts("person.rule", rule=rule) for rule in settings["rules"]]
    return section(texts("person.settings_title"), listed(said), id="rules", level=3) if said else ""


def change_words(settings: Mapping[str, Any], texts: Texts) -> str:
    """What a change is, and what it costs."""
    cost = settings["cost"]
    return f"{texts('person.not_advice')} {texts(f'person.unit_{cost}')}"


# The letter.


def person_page(document: Mapping[str, Any], texts: Texts) -> dict[str, Any]:
    """The parts of a letter of one sheet."""
    favourable, settings = document["favourable"], document["settings"]
    where = where_words(texts, document, document["row"])
    least = [] if document["least"] is None else [_way(document["least"], favourable, texts)]
    sentences = [_score(document, texts), *least, _twins_sentence(document, texts)]
    fixed = settings["fixed"]
    reach = texts("person.caveat_range", columns=fixed) if fixed else texts("person.caveat_range_all")
    sure = [texts("person.sure_asked", favourable=cell_words(texts, favourable))] if least else []
    if settings["engine"] == "search":
        sure.append(texts("person.engine", why=settings["why_not_proved"]))
    sure.append(texts("person.reasons_exact" if document["exact_reasons"] else "person.reasons_sampled"))
    recorded = [(str(name), cell_words(texts, value)) for name, value in document["recorded"].items()]
    heads = [texts("person.name"), texts("person.value")]
    return {
        "title": texts("person.title", where=where),
        "answer": Answer(
            texts("person.badge", decision=cell_words(texts, document["decision"])),
            "plain",
            [one for one in sentences if one],
            large=3,
            sure=sure,
            not_shown=[texts("person.caveat_world"), reach],
            next_steps=[texts("person.next_correct"), texts("person.next_review")],
        ),
        "sections": [_ways(document, texts), _reasons_section(document, texts), _twins(document, texts)],
        "annex": [
            cells_section(texts("person.recorded_title"), heads, recorded, id="recorded", level=3),
            settings_section(settings, texts),
        ],
        "sheet": True,
        "personal": True,
    }


def _ways(document: Mapping[str, Any], texts: Texts) -> str:
    known: dict[str, tuple[str, str, str]] = {}
    least = document["least"]
    if least is not None and least["changes"]:
        ways = [("person.least", least), ("person.fewest", document["fewest"])]
        ways += [("person.other", one) for one in document["alternatives"]]
        for key, one in ways:
            if one:
                row = (texts(key), _changes(one, texts), cost_words(one["cost"], texts))
                known.setdefault(row[1], row)
    heads = ["", texts("person.way"), texts("person.cost")]
    title, lede = texts("person.ways_title"), change_words(document["settings"], texts)
    return cells_section(title, heads, [*known.values()], right=(2,), id="ways", lede=lede)


def _reasons_section(document: Mapping[str, Any], texts: Texts) -> str:
    title = texts("person.reasons_title")
    if not document["reference"]:
        return section(title, listed([texts("person.nobody")]), id="reasons")
    body = listed(_reasons_words(document, texts) or [texts("person.no_reasons")])
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


def _twins(document: Mapping[str, Any], texts: Texts) -> str:
    names = [name for name in document["sensitive"] if name not in document["not_read"]]
    rows = [
        (_values(one["values"], texts), *_twin_cells(document, one, texts))
        for one in document["counterparts"]
    ]
    keys = ("person.twin", "person.decision", "person.way", "person.cost", "person.difference")
    heads = [texts(key) for key in keys]
    title, lede = texts("person.twins_title", columns=names), texts("person.twins_lede")
    return cells_section(title, heads, rows, id="counterparts", lede=lede)


# The terminal.


def person_lines(document: Mapping[str, Any], texts: Texts) -> tuple[list[str], list[str]]:
    """One person in a few lines: decision, least change, other ways, reasons, counterparts; the sentence apart."""
    lines = [texts("person.badge", decision=cell_words(texts, document["decision"]))]
    lines += wrapped(_score(document, texts))
    if document["least"] is not None:
        lines += ["", *wrapped(_way(document["least"], document["favourable"], texts))]
        for one in document["alternatives"]:
            if one["changes"]:
                lines += wrapped(f"  {texts('person.other')}: {_changes(one, texts)}", indent="    ")
    reasons = _reasons_words(document, texts)
    lines += ["", f"{texts('person.reasons_title')}:"] if reasons else []
    for reason in reasons:
        lines += wrapped(f"  {reason}", indent="    ")
    listed = document["counterparts"][:6]
    lines += ["", f"{texts('person.twin')}:"] if listed else []
    for one in listed:
        decision, change, _, differs = _twin_cells(document, one, texts)
        said = [texts("person.badge", decision=decision), f"{texts('person.way')}: {change}", differs]
        said = said if one["plausible"] else [decision]
        lines += wrapped(f"  {_values(one['values'], texts)}. {'; '.join(said)}", indent="    ")
    if document["least"] is not None:
        hold = texts("person.hold", how=option("held"))
        lines += ["", *wrapped(change_words(document["settings"], texts), hold)]
    return lines, wrapped(_twins_sentence(document, texts))
