"""What makes twins, as JSON holds it: an attribute, its values, and rules. What is learned along a graph is no such thing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from likewise.core.errors import InputError
from likewise.core.plain_forms import Fields, ListOf, MapOf
from likewise.evaluation.edits import Edit
from likewise.models.sidecars import plain_value
from likewise.twins import ConsequenceTwins, Forbidden, Implication, Rules, ValueMap

__all__ = ["TWINS", "described_maker", "read_maker"]

_CONDITION = MapOf(ListOf(object))
TWINS = Fields(
    {
        "column": str,
        "variants": ListOf(Fields({"value": object, "cells": MapOf(object)})),
        "maps": ListOf(Fields({"when": _CONDITION, "column": str, "old": list, "new": list})),
        "implications": ListOf(Fields({"when": _CONDITION, "then": _CONDITION})),
        "forbidden": ListOf(_CONDITION),
    }
)


def described_maker(maker: Any, *, owner: str) -> dict[str, Any]:
    """Return a fitted maker of twins by rules as JSON holds it; an error where its twins follow a graph.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"sex": ["F", "M"], "role": ["Wife", "Husband"]})
    >>> spouse = {"map": [{"when": {"sex": "F"}, "column": "role", "values": {"Husband": "Wife"}}]}
    >>> described_maker(ConsequenceTwins("sex", rules=spouse).fit(people), owner="save")["maps"]
    [{'when': {'sex': ['F']}, 'column': 'role', 'old': ['Husband'], 'new': ['Wife']}]
    """
    if not isinstance(maker, ConsequenceTwins) or maker.moved_:
        why = (
            "what follows along the graph is learned"
            if isinstance(maker, ConsequenceTwins)
            else "of their maker"
        )
        raise InputError(
            f"{owner}: cannot write a model over these twins: {why}, and no file holds it without pickle. Twins by rules "
            "alone can be written; else keep the people and the Consequences, and fit again where it is used."
        )
    rules = maker.rules_
    column = str(maker.edit.column)
    return {
        "column": column,
        "variants": [
            {"value": _plain(variant[maker.edit.column], owner), "cells": _cells(cells, owner)}
            for variant, cells in zip(maker.plain_.variants_, maker.plain_.cells_, strict=True)
        ],
        "maps": [
            {
                "when": _condition(rule.when, owner),
                "column": rule.column,
                "old": [_plain(value, owner) for value in rule.values],
                "new": [_plain(value, owner) for value in rule.values.values()],
            }
            for rule in rules.maps
        ],
        "implications": [
            {"when": _condition(rule.when, owner), "then": _condition(rule.then, owner)}
            for rule in rules.implications
        ],
        "forbidden": [_condition(rule.what, owner) for rule in rules.forbidden],
    }


def read_maker(stored: Mapping[str, Any]) -> ConsequenceTwins:
    """Return the fitted maker that `described_maker` described; the form is checked before."""
    rules = Rules(
        tuple(
            ValueMap(dict(part["when"]), part["column"], dict(zip(part["old"], part["new"], strict=True)))
            for part in stored["maps"]
        ),
        tuple(Implication(dict(part["when"]), dict(part["then"])) for part in stored["implications"]),
        tuple(Forbidden(dict(part)) for part in stored["forbidden"]),
    )
    values = tuple(part["value"] for part in stored["variants"])
    cells = tuple(dict(part["cells"]) for part in stored["variants"])
    return ConsequenceTwins.by_rules(Edit(stored["column"], values), rules, cells)


def _plain(value: Any, owner: str) -> Any:
    return plain_value(value, owner=owner, what="a value of a rule or edit")


def _cells(cells: Mapping[Any, Any], owner: str) -> dict[str, Any]:
    return {str(column): _plain(value, owner) for column, value in cells.items()}


def _condition(condition: Mapping[str, Any], owner: str) -> dict[str, list[Any]]:
    many = (list, tuple, set, frozenset)
    return {
        column: [_plain(one, owner) for one in (value if isinstance(value, many) else [value])]
        for column, value in condition.items()
    }
