"""An audit as the section of a model card: Markdown that goes into a README beside the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from likewise.core.text import interval_ends, short_number
from likewise.evaluation import ImpactTable
from likewise.report.evidence.local_law_144 import impact_sections
from likewise.report.evidence.markdown import escaped, markdown_table
from likewise.report.evidence.people_in_words import person_in_words

__all__ = ["model_card"]

# People told of in words, and rules about who is harmed.
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
    verdict = document["verdict"]
    parts = ["## Individual fairness", escaped(document["summary"]["text"])]
    parts.append(f"**{escaped(verdict['title'])}.** {escaped(verdict['sentence'])}")
    parts.append(markdown_table(["", "value", "interval"], _numbers(document)))
    harmed = _harmed(document)
    if harmed:
        parts += ["### Who is harmed", harmed]
    if document["evaluation"] is not None:
        parts += ["### Measured beside it", markdown_table(["", "value", "interval"], _measures(document))]
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


def _numbers(document: Mapping[str, Any]) -> list[list[str]]:
    numbers = document["numbers"]
    only = numbers["sensitive_only"]
    rows = [["people audited", f"{numbers['people']:,}", ""]]
    if only is not None:
        names = " and ".join(only["columns"])
        if only["changed_decisions"] is not None:
            apart = only["tolerance"]
            what = "decided differently" if apart is None else f"predicted more than {apart:g} apart"
            least = "" if only["exact"] else ", at least"
            rows.append(
                _estimate(f"{what} when only {names} changes{least}", only["changed_decisions"], True)
            )
        rows.append(_estimate(f"added to the mean loss when only {names} changes", only["gap"]))
    if numbers["changed_decisions"] is not None:
        rows.append(["decided differently at no fair distance", f"{numbers['changed_decisions']:.1%}", ""])
    rows.append(_estimate("gap at ε = 0 (pure unfairness)", numbers["pure_gap"]))
    if numbers["eps"]:
        rows.append(_estimate(f"gap at ε = {numbers['eps']:g}", numbers["gap"]))
    rows.append(["mean loss of the people as they are", short_number(numbers["base_loss"]), ""])
    return rows


def _estimate(name: str, found: Mapping[str, Any], share: bool = False) -> list[str]:
    def show(value: float | None) -> str:
        return "unknown" if value is None else f"{value:.1%}" if share else short_number(value)

    ends = (
        f"{show(found['low'])} to {show(found['high'])}"
        if share
        else interval_ends(found["low"], found["high"])
    )
    return [name, show(found["value"]), f"{ends} ({found['confidence']:.0%})"]


def _measures(document: Mapping[str, Any]) -> list[list[str]]:
    return [
        [
            one["name"],
            short_number(one["value"]),
            interval_ends(one["low"], one["high"]),
        ]
        for one in document["evaluation"]["measures"]
    ]


def _harmed(document: Mapping[str, Any]) -> str:
    free = document["maps"][0]
    lines = [
        f"{' and '.join(rule['conditions'])}: {rule['people']:,} people, mean harm {short_number(rule['mean_harm'])}"
        for rule in free["rules"][:_RULES]
    ]
    changed = [row for row in free["people"]["rows"] if row["decision"] != row["twin_decision"]]
    lines += [person_in_words(row, free["people"]["columns"]) for row in changed[:_EXAMPLES]]
    return _items(lines)


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
