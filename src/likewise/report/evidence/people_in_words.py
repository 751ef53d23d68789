"""A person and their worst twin in one sentence, for places where no table fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from likewise.core.text import join_words

__all__ = ["person_in_words"]

# Columns of the person that are named; the twin's changes are all named.
_MOST_COLUMNS = 6


def person_in_words(row: Mapping[str, Any], columns: Sequence[str]) -> str:
    """Say what happens to a person and to their twin.

    Parameters
    ----------
    row : mapping
        Of the list of people in a document's map.
    columns : sequence of str
        What its cells are.

    Examples
    --------
    >>> row = {"person": 4, "decision": "no", "twin_decision": "yes", "cells": [38, "F"], "twin": {"sex": "M"}}
    >>> person_in_words(row, ["age", "sex"])
    'Person 4 (age 38, sex F) is decided no; the same person with sex M is decided yes.'
    """
    changed = [name for name in columns if name in row["twin"]]
    kept = [name for name in columns if name not in row["twin"]]
    cells = dict(zip(columns, row["cells"], strict=True))
    # What the twin changes is named first where not all fits.
    shown = {*changed, *kept[: max(0, _MOST_COLUMNS - len(changed))]}
    who = ", ".join(f"{name} {cells[name]}" for name in columns if name in shown)
    start = f"Person {row['person']} ({who}{', …' if len(shown) < len(columns) else ''})"
    if not changed:
        return f"{start} is decided {row['decision']}."
    with_ = join_words([f"{name} {row['twin'][name]}" for name in changed])
    too = " too" if row["decision"] == row["twin_decision"] else ""
    return f"{start} is decided {row['decision']}; the same person with {with_} is decided {row['twin_decision']}{too}."
