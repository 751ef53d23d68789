"""An audit as the section of a model card: Markdown that goes into a README beside the model."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

from likewise.auditing.inference.verdict import exchange_words
from likewise.core.text import interval_ends, join_words, short_number
from likewise.evaluation.impact import CategoryRate, ImpactTable
from likewise.report.document import number_rows

# A person and their worst counterpart in one sentence, for places that have no room for a table.


# Columns of the person that are named; the counterpart's changes are all named.
_MOST_COLUMNS = 6


def person_in_words(row: Mapping[str, Any]) -> str:
    """Say what is decided for a person of the summary, and what would be with another entry."""
    cells, changed = row["cells"], list(row["change"])
    kept = [name for name in cells if name not in changed]
    # What would change is named first if not all fits.
    shown = {*changed, *kept[: max(0, _MOST_COLUMNS - len(changed))]}
    who = ", ".join(f"{name} {cells[name]}" for name in cells if name in shown)
    where = row["where"] if row["row"] is not None else f"person {row['person']}"
    start = f"{where[:1].upper()}{where[1:]} ({who}{', …' if len(shown) < len(cells) else ''})"
    instead = join_words([f"{name} {row['change'][name]}" for name in changed])
    return f"{start} gets “{row['decision']}”; the same person with {instead} would get “{row['instead']}”."


# Markdown that shows what a table holds as text, whatever it holds.


# Signs that Markdown would take for its own; those of the HTML inside it are written as entities.
_SIGNS = re.compile(r"([\\`*_{}\[\]#|~!])")


def escaped(text: Any) -> str:
    r"""Return text as Markdown shows it unchanged, in one line."""
    return html.escape(_SIGNS.sub(r"\\\1", " ".join(str(text).split())), quote=False)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table: the first column left, the others right; the cells are escaped."""
    lines = ["| " + " | ".join(escaped(name) for name in header) + " |"]
    lines.append("|---|" + "---:|" * (len(header) - 1))
    lines += ["| " + " | ".join(escaped(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


# Selection rates and impact ratios as a Markdown page, in the form New York City's Local Law 144 asks for.


TITLE = "Selection rates and impact ratios: evidence for an audit under New York City's Local Law 144"
_SCOPE = (
    "These numbers follow the definitions of 6 RCNY § 5-300 and § 5-301. They are evidence for a bias audit under Local "
    "Law 144 of 2021; they are not such an audit, which an independent auditor makes of data that the rules allow, and they "
    "do not say that a tool or its use complies with the law."
)
_RATIO = "The impact ratio is a category's rate over that of the highest category; a category with too few people has none."
_DEFINED = {
    "selection": "The selection rate is the share of a category's people who are selected.",
    "scoring": "The scoring rate is the share of a category's people who score above the median score of the sample.",
}


def impact_page(impact: Sequence[ImpactTable], *, about: str = "", notes: Sequence[str] = ()) -> str:
    """Return impact tables as a Markdown page.

    Parameters
    ----------
    impact : sequence of ImpactTable
        One or more.
    about : str, default=""
        What was measured, in words.
    notes : sequence of str, optional
        What else a reader must know.

    Returns
    -------
    str

    Examples
    --------
    >>> from likewise.evaluation import impact_ratios
    >>> page = impact_page([impact_ratios([1, 0, 1], ["f", "f", "m"], attribute="sex")])
    >>> "| f | 2 | 1 | 50.0% | 0.500 |" in page, "complies" in page.split("do not say")[0]
    (True, False)
    """
    lines = [f"# {TITLE}", "", _SCOPE, ""]
    if about:
        lines += [escaped(about), ""]
    lines += [impact_sections(impact, level=2)]
    lines += [f"- {escaped(note)}" for note in notes]
    return "\n".join(lines).rstrip() + "\n"


def impact_sections(impact: Sequence[ImpactTable], *, level: int) -> str:
    """Return a section for each table, with the definition of its numbers and its notes."""
    kinds = dict.fromkeys(table.kind for table in impact)
    parts = [f"{_DEFINED[kind]} {_RATIO}" for kind in kinds]
    for table in impact:
        rate = f"{table.kind} rate"
        rows = [
            [row.category, f"{row.people:,}", f"{row.selected:,}", f"{row.rate:.1%}", _ratio(row)]
            for row in table.rows
        ]
        head = [table.attribute, "people", table.outcome, rate, "impact ratio"]
        parts.append(f"{'#' * level} By {escaped(table.attribute)}")
        parts.append(markdown_table(head, rows))
        if table.notes:
            parts.append("\n".join(f"- {escaped(note)}" for note in table.notes))
    return "\n\n".join(parts) + "\n"


def _ratio(row: CategoryRate) -> str:
    if row.excluded:
        return "excluded"
    return "n/a" if row.impact_ratio is None else f"{row.impact_ratio:.3f}"


# People told of in words, and rules about who is affected.
_EXAMPLES, _RULES = 3, 3
# Choices of an audit that a card names.
_SETTINGS = ("version", "versions", "model", "metric", "loss", "sensitive", "seed", "confidence", "tau")


def model_card(document: Mapping[str, Any], impact: Sequence[ImpactTable] = ()) -> str:
    """Return an audit as a section of a model card.

    Parameters
    ----------
    document : mapping
        Of `audit_document`.
    impact : sequence of ImpactTable, optional

    Returns
    -------
    str
        From a heading of level 2, so that it fits into a card.
    """
    summary = document["summary"]
    scope = f"{summary['scope']['words']} {summary['scope']['favourable_words']}"
    parts = ["## Individual fairness", escaped(scope)]
    parts.append(f"**{escaped(document['verdict']['title'])}.** {escaped(summary['text'])}")
    numbers = document["numbers"]
    level = float(document["computed"]["settings"]["confidence"])
    head = [f"{numbers['people']:,} people", "value", f"{level:.0%} interval"]
    parts.append(markdown_table(head, number_rows(numbers)))
    affected = _affected(document)
    if affected:
        parts += ["### Who would lose and who would gain", affected]
    if document["evaluation"] is not None:
        rows = [
            [one["name"], short_number(one["value"]), interval_ends(one["low"], one["high"])]
            for one in document["evaluation"]["measures"]
        ]
        parts += ["### Measured beside it", markdown_table(["", "value", "interval"], rows)]
    if impact:
        parts += [
            "### Selection rates and impact ratios",
            "Evidence for an audit under New York City's Local Law 144 (definitions of 6 RCNY § 5-301); no statement about "
            "whether a tool complies with it.",
            impact_sections(impact, level=4).rstrip(),
        ]
    parts += ["### What the numbers rest on", _items(document["assumptions"]) or "Nothing was assumed."]
    parts += ["### How they were made", _items(_computed(document))]
    return "\n\n".join(parts) + "\n"


def _affected(document: Mapping[str, Any]) -> str:
    """Say who would lose and who would gain, and name the first people."""
    summary = document["summary"]
    rows = [
        row for row in summary["effects"] or () if row.get("lose") is not None and row["lose"] + row["gain"]
    ]
    lines = [str(exchange_words([row])) for row in rows[:_RULES]]
    return _items([*lines, *(person_in_words(row) for row in summary["people"][:_EXAMPLES])])


def _computed(document: Mapping[str, Any]) -> list[str]:
    computed, provenance = document["computed"], document["provenance"]
    lines = [f"searched by {computed['search']}, status: {computed['status']}"]
    lines += [*computed["reasons"], *computed["left_out"]]
    settings = {key: value for key, value in computed["settings"].items() if key in _SETTINGS}
    known = {**settings, **(provenance or {})}
    lines += [f"{name}: {_shown(value)}" for name, value in known.items() if value not in (None, [], {}, "")]
    return lines


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_shown(part)}" for key, part in value.items() if part is not None)
    return ", ".join(map(_shown, value)) if isinstance(value, (list, tuple)) else str(value)


def _items(lines: Sequence[str]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in lines)
