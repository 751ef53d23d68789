"""What is said first of an audit, as plain data and in sentences: badge, sentence, direction, who, how sure, in which scope.

Every number comes from the counts of the result; the terminal, the notebook, the page and the JSON document show the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from likewise.auditing.inference.sanity import Finding
from likewise.auditing.results.audit_result import AuditResult
from likewise.auditing.results.effects import LESS, MORE, ChangedPerson
from likewise.core.messages import Message, contained
from likewise.core.plain import named, plain, plain_cell, plain_fields, plain_number, rounded
from likewise.core.text import value_words

# So many columns of a person are named besides the sensitive ones, and so many units of ε.
_CELLS, _REACHES = 4, 3
_LONGEST = 40
_BARE = ("yes", "no", "true", "false")
# Who would have a higher number has a lower one now.
_OPPOSITE = {LESS: MORE, MORE: LESS}
# Effects and people that a document lists, those that matter most first.
MAX_EFFECTS, MAX_LISTED = 200, 500


def summary_document(result: AuditResult, labels: Mapping[Any, str] | None = None) -> dict[str, Any]:
    """Return the headline of a result as plain values.

    ``badge`` (kind, title), ``sentence``, ``sure``, ``limit`` (limit, passed, sentence), ``scope`` (people, supplied,
    sampled, favourable, guessed, sentences), ``changed`` (count, people, share, low, high), ``effects`` (attribute,
    recorded, instead, people, lose, gain, single), ``outcomes`` (everybody recorded alike), ``group_rates``, ``people``
    (where, direction, decision, instead, cells, change), ``directions`` (lose, gain, other) and ``example``, about the
    first of the people.
    """
    names, found, only = labels or {}, result.headline, result.sensitive
    listed = result.listed
    reach, moves = reach_words(result)
    sentences = first_words(result, labels)
    return {
        "badge": {"kind": found.badge, "title": found.title},
        "disadvantage": disadvantage(result),
        "sentence": found.sentence,
        "sure": found.sure,
        "limit": None if found.limit is None else plain_fields(found.limit),
        "scope": scope_document(result, names),
        "columns": [] if only is None else list(only.columns),
        "attributes": [] if only is None else list(only.attributes),
        "changed": changed_document(result),
        "shift": None
        if only is None or only.shift is None
        else {"mean": plain_number(only.shift[0]), "largest": plain_number(only.shift[1])},
        "effects": _effects(result),
        "outcomes": _outcomes(result),
        "group_rates": _records(result.group_rates),
        "people": [_person(result, one, names) for one in listed[:MAX_LISTED]],
        "listed": len(listed),
        "directions": _directions(result),
        "example": example_words(result, listed[0], names) if listed else None,
        "text": " ".join(sentences),
        "sentences": sentences,
        "reach": None if reach is None else {"text": reach, "moves": moves},
    }


def scope_document(result: AuditResult, labels: Mapping[Any, str] | None = None) -> dict[str, Any]:
    """Return who was audited and which outcome is the favourable one."""
    scope = result.scope
    return plain_fields(scope) | {
        "favourable": named(result.favourable, labels or {}),
        "favourable_name": favourable_name(result, labels or {}),
        "guessed": result.guessed,
        "words": scope.words(),
        "counted_words": Message(f"counted.how_{scope.counted}"),
        "favourable_words": favourable_words(result, labels or {}),
    }


def favourable_name(result: AuditResult, labels: Mapping[Any, str]) -> str | None:
    """Name the favourable decision."""
    if result.favourable is None:
        return None
    return value_name(named(result.favourable, labels), result.settings.get("target"))


def value_name(value: Any, column: Any) -> str:
    """Name a value; a number, yes or no says little without the column that it is a value of."""
    bare = not isinstance(value, str) or value.isdigit() or value.lower() in _BARE
    return f"{column} = {value_words(value)}" if bare and column else value_words(value)


def favourable_words(result: AuditResult, labels: Mapping[Any, str]) -> Message:
    """Say which decision is the favourable one, and whether that was guessed."""
    only = result.sensitive
    numbers = result.flipped is None if only is None else only.shift is not None
    if numbers:
        return Message("scope.numbers")
    if result.favourable is None:
        seen = {str(named(g.decision, labels)): None for g in (() if only is None else only.groups)}
        return Message("scope.unknown", classes=list(seen))
    key = "scope.guessed" if result.guessed else "scope.favourable"
    return Message(key, favourable=favourable_name(result, labels))


def changed_document(result: AuditResult) -> dict[str, Any] | None:
    """Return how many decisions change."""
    found = result.changed
    if found is None:
        return None
    low, high = map(plain_number, found.interval)
    values = plain_fields(found, n="people")
    del values["interval"]
    return values | {"low": low, "high": high}


def _effects(result: AuditResult) -> list[dict[str, Any]] | None:
    table = result.effects
    if table is None or result.sensitive is None:
        return None
    alone = {one.attribute for one in result.sensitive.exchanges if one.single}
    return [row | {"single": row["attribute"] in alone} for row in _records(table.head(MAX_EFFECTS)) or ()]


def disadvantage(result: AuditResult) -> Message | None:
    """Name the recorded value of each attribute that is at a disadvantage."""
    effects = (_effects(result) if result.answered else None) or ()
    listed = by_attribute(row for row in effects if row["single"] and row.get("lose") is not None)
    found, whole = [], True
    for attribute, rows in listed:
        value = disadvantaged(rows)
        if value is not None:
            own = [row for row in rows if recorded_as(row, value)]
            other = [row for row in rows if row["instead"] == value]
            whole &= not sum(row["lose"] for row in own) + sum(row["gain"] for row in other)
            words = value_name(value, attribute)
            if value in _OPPOSITE:
                words = Message("first.low" if value == LESS else "first.high", attribute=attribute)
            elif len(listed) > 1 and words == value_words(value):
                words = Message("first.disadvantage_of", value=words, attribute=attribute)
            found.append(words)
    key = "first.disadvantage" if whole else "first.disadvantage_mostly"
    return Message(key, listed=found) if found else None


def by_attribute(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, list[Any]]]:
    """Return rows by their attribute, in the order of the first of each."""
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row["attribute"], []).append(row)
    return list(found.items())


def recorded_as(row: Mapping[str, Any], value: Any) -> bool:
    """Whether an effect is about the people recorded with a value; who would have a higher number has a lower one."""
    return value is not None and _OPPOSITE.get(row["instead"], row["recorded"]) == value


def disadvantaged(rows: Sequence[Mapping[str, Any]]) -> Any:
    """The recorded value of one attribute that most decisions are against, if there is one.

    Of a number with many values: a lower or a higher one than others.
    """
    balance: dict[Any, int] = {}
    for row in rows:
        # Who would lose by another entry has the better one.
        net = row["lose"] - row["gain"]
        recorded = _OPPOSITE.get(row["instead"], row["recorded"])
        balance[recorded] = balance.get(recorded, 0) - net
        balance[row["instead"]] = balance.get(row["instead"], 0) + net
    value = max(balance, key=lambda one: balance[one], default=None)
    return value if value is not None and balance[value] > 0 else None


def _outcomes(result: AuditResult) -> list[dict[str, Any]] | None:
    """What everybody would get, by the values that everybody would be recorded with."""
    only = result.sensitive
    if only is None:
        return None
    listed = []
    for one in only.outcomes:
        got = (
            None
            if result.favourable is None or one.total is not None
            else dict(one.decisions).get(result.favourable, 0)
        )
        listed.append(
            {
                "values": dict(zip(only.attributes, map(plain_cell, one.values), strict=True)),
                "people": one.people,
                "favourable": got,
                "share": None if got is None or not one.people else got / one.people,
                "mean": None if one.total is None else plain_number(one.total / one.people),
                "decisions": [{"decision": plain_cell(name), "people": n} for name, n in one.decisions],
            }
        )
    return listed


def _records(table: Any) -> list[dict[str, Any]] | None:
    return None if table is None else list(plain(table.to_dict("records")))


def _person(result: AuditResult, one: ChangedPerson, labels: Mapping[Any, str]) -> dict[str, Any]:
    return {
        "person": one.person,
        "row": plain_cell(one.row),
        "where": result.scope.place(one.row),
        "direction": result.direction(one),
        "decision": named(one.decision, labels),
        "instead": named(one.twin_decision, labels),
        "cells": plain(one.cells),
        "change": plain(one.twin),
        "changes": one.changes,
    }


def _directions(result: AuditResult) -> dict[str, int | None] | None:
    """How many people would lose and gain the favourable decision; None if it is not known, or numbers are predicted.

    With more than two decisions people who would gain are told from others by the list; None if that is not complete.
    """
    only, changed = result.sensitive, result.changed
    if only is None or changed is None or only.shift is not None or result.favourable is None:
        return None
    first = [group for group in only.groups if group.column == only.attributes[0]]
    lose = sum(group.changed for group in first if group.decision == result.favourable)
    rest = changed.count - lose
    decisions = {group.decision for group in only.groups} | {one.twin_decision for one in result.listed}
    if len(decisions) <= 2:
        return {"gain": rest, "lose": lose, "other": 0}
    kinds = [result.direction(one) for one in result.listed]
    if len(kinds) - kinds.count("lose") < rest:
        return {"gain": None, "lose": lose, "other": None}
    return {"gain": kinds.count("gain"), "lose": lose, "other": kinds.count("other")}


def findings_document(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Return what has to be known before any number as plain values."""
    return [plain_fields(finding) | {"blocks": finding.blocks} for finding in findings]


def first_words(result: AuditResult, labels: Mapping[Any, str] | None = None) -> list[str]:
    """Return one to three sentences, after the findings: how many decisions change and in which direction, one person."""
    first = result.headline.sentence
    said: list[str] = [finding.sentence for finding in result.findings if finding.sentence != first]
    if not result.answered:
        return [finding.sentence for finding in result.findings]
    said.append(first)
    said += [example_words(result, one, labels or {}) for one in result.listed[:1]]
    return said


def example_words(result: AuditResult, one: ChangedPerson, labels: Mapping[Any, str]) -> Message:
    """Say where a person is, who they are, and what would change the decision about them."""
    columns = () if result.sensitive is None else result.sensitive.columns
    rest = [name for name, value in one.cells.items() if name not in columns and value is not None]
    rest.sort(key=lambda name: one.cells[name] == 0)  # a zero says little of a person
    shown = [*rest[:_CELLS], *(name for name in one.cells if name in columns)]
    number = result.sensitive is not None and result.sensitive.shift is not None
    found = [named(value, labels) for value in (one.decision, one.twin_decision)]
    decision, instead = (
        _short(value if number else value_name(value, result.settings.get("target"))) for value in found
    )
    return Message(
        "first.example_number" if number else "first.example",
        where=result.scope.place(one.row),
        cells=", ".join(f"{_short(name)} {_short(one.cells[name])}" for name in shown),
        twin=[f"{_short(name)} {_short(value)}" for name, value in one.twin.items()],
        decision=decision,
        twin_decision=instead,
    )


def reach_words(result: AuditResult) -> tuple[Message | None, list[dict[str, Any]]]:
    """Say what ε means in the table's own units, for the numbers that counterparts move most."""
    found: Mapping[str, float | None] = result.settings.get("reach") or {}
    if not found or result.worst_case is None or result.eps <= 0:
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
    text = contained(str(value))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
