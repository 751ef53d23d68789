"""An unfair map as plain values: whose loss grows, which columns moved, and people beside their counterfactuals."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from likewise.auditing.results.unfair_map import UnfairMap, rounded_like
from likewise.core.frames import with_columns
from likewise.core.messages import Message
from likewise.core.plain import named, plain_cell, plain_fields, rounded

MAX_PEOPLE = 200
MAX_COLUMNS = 40
_MAX_VALUES = 40

_BIN = re.compile(r"^[(\[](\S+), (\S+)[)\]]$")


def map_document(
    unfair: UnfairMap,
    *,
    id: str,
    eps: float,
    max_people: int = MAX_PEOPLE,
    labels: Mapping[Any, str] | None = None,
    first: Sequence[str] = (),
) -> dict[str, Any]:
    """Return an unfair map as plain values."""
    return {
        "id": id,
        "eps": float(eps),
        "total": int(unfair.total),
        "kept": len(unfair.people),
        "harmed": int((unfair.harm > 0).sum()),
        "changed_decisions": int(unfair.flipped.sum()),
        "rules": [plain_fields(rule, support="people") for rule in unfair.rules],
        "by_value": _by_value(unfair, first),
        "moved": [
            {"column": str(row.pop("column")), **row}
            for row in unfair.changes[["column", "people", "share", "mean_harm"]].to_dict("records")
            if row["people"]
        ],
        "people": _people(unfair, max_people, labels or {}),
    }


def _by_value(unfair: UnfairMap, first: Sequence[str]) -> list[dict[str, Any]]:
    """Added loss by value: the sensitive columns, then those that tell most about it."""
    overall = float(unfair.harm.mean())
    columns = []
    wanted = {"value": "value", "people": "people", "mean_harm": "mean_harm", "flipped": "changed_decisions"}
    for name, table in unfair.by_value.groupby("column", sort=False):
        if len(table) < 2:
            continue
        rows = table[list(wanted)].rename(columns=wanted).astype({"value": str}).to_dict("records")
        values: list[dict[str, Any]] = [{str(key): value for key, value in row.items()} for row in rows]
        squares = table["people"] * (table["mean_harm"] - overall) ** 2
        spread = np.sqrt(squares.sum() / unfair.harm.size)
        is_number = pd.api.types.is_numeric_dtype(unfair.people[name])
        shown = _in_order(values) if is_number else sorted(values, key=lambda v: -v["mean_harm"])
        if len(shown) > _MAX_VALUES:
            most = sorted(values, key=lambda v: -v["people"])[:_MAX_VALUES]
            shown = [v for v in shown if v in most]
        columns.append(
            {
                "column": str(name),
                "spread": float(spread),
                "left_out": len(values) - len(shown),
                "values": shown,
            }
        )
    rank = {name: place for place, name in enumerate(first)}
    return sorted(columns, key=lambda column: (rank.get(column["column"], len(rank)), -column["spread"]))


def _in_order(values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Numbers and bins of numbers from small to large, bins in words."""
    bins = [_BIN.match(v["value"]) for v in values]
    if not all(bins):
        return sorted(values, key=lambda v: _as_float(v["value"]))
    ends = [(_as_float(m.group(1)), _as_float(m.group(2))) for m in bins if m]
    order = sorted(range(len(values)), key=lambda i: ends[i])
    # The outermost ends are those of the data, so they say nothing.
    words = [Message("rule.over_to", low=ends[i][0], high=ends[i][1]) for i in order]
    words[0] = Message("rule.up_to", high=ends[order[0]][1])
    words[-1] = Message("rule.over", low=ends[order[-1]][0])
    return [values[i] | {"value": word} for i, word in zip(order, words, strict=True)]


def _as_float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("inf")


def _people(unfair: UnfairMap, max_people: int, labels: Mapping[Any, str]) -> dict[str, Any]:
    order = np.argsort(-unfair.harm, kind="stable")
    order = order[unfair.harm[order] > 0]
    chosen = order
    if len(order) > max_people:
        changed = order[unfair.flipped[order]][: max_people // 2]
        others = order[~np.isin(order, changed)][: max_people - len(changed)]
        chosen = order[np.isin(order, np.concatenate([changed, others]))]
    columns = _columns(unfair)
    people = unfair.people[columns]
    twins = _only_moved(rounded_like(unfair.twins[columns], people), unfair.twins[columns], people)
    outcomes = unfair.outcomes
    rows = []
    for i in chosen:
        outcome = outcomes.iloc[i]
        person = [plain_cell(value) for value in people.iloc[i]]
        twin = [plain_cell(value) for value in twins.iloc[i]]
        rows.append(
            {
                "person": int(outcome["person"]),
                "label": named(outcome["label"], labels),
                "decision": named(outcome["decision"], labels),
                "twin_decision": named(outcome["twin_decision"], labels),
                "loss": rounded(outcome["loss"]),
                "twin_loss": rounded(outcome["twin_loss"]),
                "harm": rounded(outcome["harm"]),
                "squared_distance": rounded(outcome["squared_distance"]),
                "cells": person,
                "twin": {
                    str(name): after
                    for name, before, after in zip(columns, person, twin, strict=True)
                    if before != after
                },
            }
        )
    return {
        "columns": [str(name) for name in columns],
        "left_out_columns": unfair.people.shape[1] - len(columns),
        "rows": rows,
    }


def _only_moved(shown: pd.DataFrame, twins: pd.DataFrame, people: pd.DataFrame) -> pd.DataFrame:
    """Rounded counterfactuals with the person's own number if it did not move: rounding alone is not a difference."""
    floats = [
        name for name in shown.columns if shown[name].dtype.kind == "f" and people[name].dtype.kind == "f"
    ]
    stayed = {
        name: np.isclose(twins[name], people[name], rtol=1e-9, atol=1e-9, equal_nan=True) for name in floats
    }
    return with_columns(shown, {name: np.where(stayed[name], people[name], shown[name]) for name in floats})


def _columns(unfair: UnfairMap) -> list[Any]:
    """All columns, or the ones that moved most if there are too many to read."""
    names = list(unfair.people.columns)
    if len(names) <= MAX_COLUMNS:
        return names
    moved = set(unfair.changes["column"].head(MAX_COLUMNS))
    return [name for name in names if name in moved]
