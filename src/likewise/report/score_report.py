"""A paired audit of scores as a plain document, a page and a table in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup
from rich.console import Console
from rich.text import Text

from likewise.core.messages import Texts
from likewise.core.plain import plain_fields
from likewise.core.text import join_words, short_number
from likewise.report.page import Answer, cells_section, listed, section
from likewise.report.terminal import terminal_table
from likewise.text.cluster_inference import clusters_needed
from likewise.text.score_audit import EditEffect, ScoreAudit, ScoreAudits

_HEAD = (
    "family", "value", "from baseline", "above placebos", "size", "floor", "excess", "adjusted p", "verdict",
)  # fmt: skip
_NO_FLOOR = "effects are measured from the baseline alone, and how far noise moves these scores is unknown"


def score_document(result: ScoreAudits) -> dict[str, Any]:
    """Return everything about a paired audit as plain values."""
    return {
        "version": 1,
        "shifted": sum(len(part.shifted) for part in result),
        "notes": notes_of(result),
        "parts": [_part(part) for part in result],
    }


def notes_of(result: ScoreAudits) -> list[str]:
    """Return what a reader must know about the numbers, in sentences."""
    notes = []
    bare = [part.name or "the table" for part in result if not part.placebos]
    if bare:
        notes.append(f"No placebos in {join_words(bare)}: {_NO_FLOOR}.")
    for part in result:
        if part.undecidable:
            needed = clusters_needed(part.n_tests, part.level)
            fewest = min(effect.n_clusters for effect in part.undecidable)
            named = join_words([effect.name for effect in part.undecidable])
            notes.append(
                f"{part.name or 'The table'}: {named} cannot be shown to shift, whatever the effect: {fewest} clusters, "
                f"and {part.n_tests} families tested together at {part.level:g} need {needed} or more."
            )
    dropped = sum(part.dropped for part in result)
    if dropped:
        notes.append(f"{dropped} units without a baseline were left out.")
    return notes


def score_page(document: Mapping[str, Any], texts: Texts) -> dict[str, Any]:
    """The parts of a page."""
    parts = document["parts"]
    families = [effect for part in parts for effect in part["families"]]
    shifted = list(dict.fromkeys(one["name"] for one in families if one["verdict"] == "shifted"))
    level = ", ".join(dict.fromkeys(f"{1 - part['level']:.0%}" for part in parts))
    answer = Answer(
        f"Scores depend on {join_words(shifted)}" if shifted else "No dependence found",
        "bad" if shifted else "plain",
        [_sentence(parts)],
        warnings=document["notes"],
        sure=[
            f"Tests at {level} confidence, adjusted for the number of families (Holm); intervals stand in the tables."
        ],
        not_shown=[
            "Whether edits that were not made would shift the scores.",
            "Whether the texts, or the people who wrote them, are treated fairly otherwise.",
        ],
        next_steps=["Read the values with the largest shift, and the texts that they move most."]
        if shifted
        else ["Add texts or placebos if the floor is too high to show an effect of a size that matters."],
    )
    units, dropped = (sum(part[name] for part in parts) for name in ("units", "dropped"))
    return {
        "title": "Scores of edited texts",
        "answer": answer,
        "scope": [("Units", f"{units:,}"), ("Units left out", f"{dropped:,}")],
        "sections": [_section(number, part) for number, part in enumerate(parts)],
        "annex": [section("How to read the tables", listed([_LEGEND]), id="legend", level=3)],
    }


_LEGEND = (
    "From baseline: mean score of the value that shifts most, minus the baseline's. Above placebos: the same minus "
    "what edits that should change nothing did, with its interval. Size and floor: mean absolute change by the "
    "family's edits and by the placebos. Shifted: differs from the baseline and from the placebos, in one direction, "
    "after Holm's adjustment over all families and models. Equivalent: shown to be smaller than the margin. Undecided: "
    "neither. Each cluster counts once."
)


def print_scores(document: Mapping[str, Any], out: Console) -> None:
    """Print one row per part and family, then what it means."""
    # A narrow terminal has no room for what can be read in the page and the JSON.
    wide, some, few = range(len(_HEAD)), (0, 1, 3, 5, 7, 8), (0, 3, 5, 7, 8)
    shown = wide if out.width >= 130 else some if out.width >= 100 else few
    for part in document["parts"]:
        table = terminal_table(part["name"] or None, [_HEAD[place] for place in shown])
        for effect in part["families"]:
            style = {"shifted": "red", "equivalent": "green"}.get(effect["verdict"], "")
            *cells, verdict = (_cells(effect)[place] for place in shown)
            table.add_row(*map(Text, cells), Text(verdict, style=style))
        out.print(table)
    for note in document["notes"]:
        out.print(Text(f"Note: {note}"))
    out.print(Text(_sentence(document["parts"])))


def _sentence(parts: Sequence[Mapping[str, Any]]) -> str:
    families = [(part["name"], effect) for part in parts for effect in part["families"]]
    shown = [f"{name} {one['name']}".strip() for name, one in families if one["verdict"] == "shifted"]
    if not shown:
        return f"No effect beyond the noise was shown in {len(families)} families of edits; that alone does not make it fair."
    largest = max((one for _, one in families if one["verdict"] == "shifted"), key=lambda one: one["size"])
    value = largest["worst"].partition("_")[2] or largest["worst"]
    return (
        f"Scores shift with {join_words(shown)}, beyond what edits that should change nothing do "
        f"({len(shown)} of {len(families)} families of edits); most with {largest['name']} {value}: "
        f"{_with_ends(largest['shift'])} on average."
    )


def _section(number: int, part: Mapping[str, Any]) -> str:
    marks = {"shifted": "bad", "equivalent": "good"}
    rows = []
    for effect in part["families"]:
        *cells, verdict = _cells(effect)
        mark = marks.get(verdict, "")
        rows.append([*cells, Markup('<span class="{}">{}</span>').format(mark, verdict)])
    told = f"{part['units']} units in {part['clusters']} clusters, {len(part['placebos'])} placebos."
    name, right = part["name"] or "All scores", range(1, len(_HEAD))
    return cells_section(name, _HEAD, rows, right=right, id=f"part-{number}", lede=told)


def _cells(effect: Mapping[str, Any]) -> list[str]:
    return [
        effect["name"],
        effect["worst"].partition("_")[2] or effect["worst"],
        short_number(effect["change"]["value"]),
        _with_ends(effect["shift"]),
        short_number(effect["size"]),
        short_number(effect["floor"]),
        _with_ends(effect["excess"]),
        short_number(effect["adjusted_p_value"]),
        effect["verdict"],
    ]


def _with_ends(measure: Mapping[str, Any]) -> str:
    if measure["value"] is None:
        return "unknown"
    if measure["low"] is None:
        return f"{short_number(measure['value'])} (no interval)"
    return (
        f"{short_number(measure['value'])} [{short_number(measure['low'])}, {short_number(measure['high'])}]"
    )


def _part(part: ScoreAudit) -> dict[str, Any]:
    found = plain_fields(part, n_units="units", n_clusters="clusters", n_tests=None)
    lists = {name: [_effect(effect) for effect in getattr(part, name)] for name in ("families", "edits")}
    return found | lists | {"pairs": [plain_fields(measure, digits=8) for measure in part.pairs]}


def _effect(effect: EditEffect) -> dict[str, Any]:
    names = {"n_units": "units", "n_clusters": None, "adjusted": "adjusted_p_value"}
    found = plain_fields(
        effect, digits=8, changed="changed_decisions", equivalence="equivalence_p_value", **names
    )
    for name in ("change", "shift", "excess", "changed"):
        measure = getattr(effect, name)
        key = "changed_decisions" if name == "changed" else name
        found[key] = None if measure is None else plain_fields(measure, digits=8)
    return found
