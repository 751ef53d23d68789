"""An unfair map as plain values: whose loss grows, which columns moved, and people beside their counterfactuals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from likewise.auditing.results.unfair_map import UnfairMap, rounded_like
from likewise.core.plain import named, plain_cell, plain_fields, rounded

MAX_PEOPLE = 200
MAX_COLUMNS = 40


def map_document(
    unfair: UnfairMap,
    *,
    id: str,
    eps: float,
    max_people: int = MAX_PEOPLE,
    labels: Mapping[Any, str] | None = None,
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
        "moved": [
            {"column": str(row.pop("column")), **row}
            for row in unfair.changes[["column", "people", "share", "mean_harm"]].to_dict("records")
            if row["people"]
        ],
        "people": _people(unfair, max_people, labels or {}),
    }


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
    return shown.assign(**{name: np.where(stayed[name], people[name], shown[name]) for name in floats})


def _columns(unfair: UnfairMap) -> list[Any]:
    """All columns, or the ones that moved most if there are too many to read."""
    names = list(unfair.people.columns)
    if len(names) <= MAX_COLUMNS:
        return names
    moved = set(unfair.changes["column"].head(MAX_COLUMNS))
    return [name for name in names if name in moved]
