"""What is said first of an audit: what has to be known before any number, how many decisions change, whose, one person by name; no statistics needed.

Decisions that change when nothing but the sensitive columns does need no metric to be believed. Where nothing is said
to be sensitive, those of twins at no fair distance stand in their place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from likewise.auditing.inference.sanity import Finding
from likewise.auditing.inference.verdict import AffectedGroup, most_affected
from likewise.auditing.results.audit_result import AuditResult, SensitiveAnswer
from likewise.auditing.results.sensitive import ChangedPerson
from likewise.core.messages import Message
from likewise.core.plain import named, plain, plain_cell, plain_fields, plain_number, rounded

# So many columns of a person are named besides the sensitive ones, and so many units of ε.
_CELLS, _REACHES = 4, 3
_LONGEST = 40


def summary_document(result: AuditResult, labels: Mapping[Any, str] | None = None) -> dict[str, Any]:
    """Return what is said first as plain values, and in sentences."""
    names = labels or {}
    only = result.sensitive
    affected = () if only is None else most_affected(only.groups)
    sentences = first_words(result, labels)
    reach, moves = reach_words(result)
    example = None if only is None else only.example
    share = result.flipped if only is None else only.changed
    return {
        "text": " ".join(sentences),
        "sentences": sentences,
        "people": result.n,
        "changed_decisions": None if share is None else round(share * result.n),
        "columns": [] if only is None else list(only.columns),
        "most_affected": [
            plain_fields(group) | {"value": plain_cell(group.value), "decision": named(group.decision, names)}
            for group in affected
        ],
        "example": None
        if example is None
        else {
            "person": example.person,
            "cells": plain(example.cells),
            "twin": plain(example.twin),
            "decision": named(example.decision, names),
            "twin_decision": named(example.twin_decision, names),
        },
        "reach": None if reach is None else {"text": reach, "moves": moves},
    }


def findings_document(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Return what has to be known before any number as plain values."""
    return [plain_fields(finding) | {"blocks": finding.blocks} for finding in findings]


def first_words(result: AuditResult, labels: Mapping[Any, str] | None = None) -> list[str]:
    r"""Return one to three sentences, after the findings: how many decisions change, whose most, one person in words."""
    names = labels or {}
    only = result.sensitive
    said: list[str] = [finding.sentence for finding in result.findings]
    if only is None:
        return [*said, _free_words(result)]
    said.append(_count_words(result, only))
    affected = [_group_words(group, names) for group in most_affected(only.groups)]
    if affected:
        said.append(
            Message("first.affected", group=affected[0])
            if len(affected) == 1
            else Message("first.affected_both", one=affected[0], two=affected[1])
        )
    if only.example is not None:
        said.append(_example_words(only.example, only.columns, names))
    return said


def _count_words(result: AuditResult, only: SensitiveAnswer) -> Message:
    columns = list(only.columns)
    if only.changed is None:
        return Message("first.regression", columns=columns, gap=only.gap, people=result.n)
    changed, about = round(only.changed * result.n), {"people": result.n, "columns": columns}
    if only.tolerance is not None:
        key = "first.apart" if only.exact else "first.apart_at_least"
        return Message(key, n=changed, tolerance=only.tolerance, **about)
    if not changed:
        return Message("first.nobody" if only.exact else "first.nobody_found", **about)
    return Message("first.changed" if only.exact else "first.changed_at_least", n=changed, **about)


def _free_words(result: AuditResult) -> Message:
    if result.flipped is None:
        return Message("first.free_regression", gap=result.pure_gap, people=result.n)
    return Message("first.free", n=round(result.flipped * result.n), people=result.n)


def _group_words(group: AffectedGroup, labels: Mapping[Any, str]) -> Message:
    return Message(
        "first.group_all" if group.of_decision == group.changed else "first.group",
        column=group.column,
        value=_short(group.value),
        changed=group.changed,
        people=group.people,
        share=group.share,
        decision=_short(named(group.decision, labels)),
        of_decision=group.of_decision,
    )


def _example_words(example: ChangedPerson, columns: Sequence[str], labels: Mapping[Any, str]) -> Message:
    rest = [name for name, value in example.cells.items() if name not in columns and value is not None]
    rest.sort(key=lambda name: example.cells[name] == 0)  # a zero says little of a person
    shown = [*rest[:_CELLS], *(name for name in example.cells if name in columns)]
    return Message(
        "first.example",
        row=str(example.person),
        cells=", ".join(f"{_short(name)} {_short(example.cells[name])}" for name in shown),
        twin=[f"{_short(name)} {_short(value)}" for name, value in example.twin.items()],
        decision=_short(named(example.decision, labels)),
        twin_decision=_short(named(example.twin_decision, labels)),
    )


def reach_words(result: AuditResult) -> tuple[Message | None, list[dict[str, Any]]]:
    """Say what ε means in the table's own units, for the numbers that counterparts move most."""
    found: Mapping[str, float | None] = result.settings.get("reach") or {}
    if not found or result.eps <= 0:
        return None, []
    moved = [str(name) for name in result.unfair_map.changes["column"]]
    people = result.unfair_map.people
    order = sorted(found, key=lambda name: moved.index(name) if name in moved else len(moved))
    costly = [name for name in order if found[name] is not None and _reachable(people, name, found[name])]
    free = [name for name in order if found[name] is None]
    chosen = costly[:_REACHES]
    moves = [{"column": name, "change": plain_number(found[name])} for name in (*chosen, *free)]
    if not chosen:
        return (Message("first.reach_free", columns=free) if free else None), moves
    listed = [Message("first.move", column=name, change=rounded(found[name], 2)) for name in chosen]
    said = Message("first.reach", eps=result.eps, moves=listed)
    return (Message("first.reach_and_free", reach=said, columns=free) if free else said), moves


def _reachable(people: Any, name: str, change: float | None) -> bool:
    """Whether a change says something: no larger than what separates people in this column."""
    if change is None or name not in people:
        return False
    values = np.asarray(people[name], dtype=float)
    return bool(change < np.nanmax(values) - np.nanmin(values))


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}".replace("-", "−")
    text = str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
