"""The people that a page carries: those whom the audit names or found harmed most, and a sample of the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from likewise.auditing.audit_result import AuditResult
from likewise.report.explore.cells import exact_cell
from likewise.report.plain import named

__all__ = ["choose_people", "people_documents"]


def choose_people(
    n: int, results: Sequence[AuditResult], *, max_people: int, seed: int = 0
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return numbers of the people a page carries, in order.

    Parameters
    ----------
    n : int
        How many there are.
    results : sequence of AuditResult
        Audits of them; of each the one whom its first sentences name and the most harmed come first, those whose
        decision changes before the others.
    max_people : int
        Half of the places, at least, are for a sample of everybody.
    seed : int, default=0
        Of the sample.

    Examples
    --------
    >>> choose_people(4, [], max_people=10).tolist()
    [0, 1, 2, 3]
    """
    spoken = [
        one.example.person for result in results if (one := result.sensitive) is not None and one.example
    ]
    harmed = [number for number in spoken if number < n]
    maps = [unfair for result in results for unfair in (result.pure_map, result.unfair_map)]
    for unfair in maps:
        order = np.lexsort((-unfair.harm, ~unfair.flipped))
        order = order[unfair.harm[order] > 0][: max(max_people // (2 * len(maps)), 1)]
        numbers = unfair.outcomes["person"].to_numpy(dtype=np.int64)[order]
        harmed += [int(number) for number in numbers if number < n]
    chosen = list(dict.fromkeys(harmed))[: max_people // 2]
    others = np.setdiff1d(np.arange(n), chosen)
    size = min(len(others), max_people - len(chosen))
    sample = np.random.default_rng(seed).choice(others, size=size, replace=False) if size else others[:0]
    return np.sort(np.asarray([*chosen, *sample], dtype=np.int64))


def people_documents(
    people: pd.DataFrame,
    y: Any,
    numbers: np.ndarray[Any, Any],
    *,
    columns: Sequence[str],
    labels: Mapping[Any, str],
    found: Sequence[Collection[int]] = (),
) -> list[dict[str, Any]]:
    """Return people as plain data: number, cells in the order of the columns, label, and what was found about them.

    Parameters
    ----------
    people : DataFrame
        Everybody, in original units.
    y : array-like or None
        Their labels.
    numbers : int array
        Whom to take.
    columns : sequence of str
        In the order of a row; one that the table lacks has no cells.
    labels : mapping
        Names of the labels.
    found : sequence of collection of int
        For each model the people of whom a free twin of another decision was found.

    Examples
    --------
    >>> people_documents(pd.DataFrame({"age": [20, 40]}), [0, 1], np.array([1]), columns=["age"], labels={1: "yes"})
    [{'person': 1, 'cells': [40], 'label': 'yes', 'found': []}]
    """
    part = people.iloc[numbers]
    cells = [[exact_cell(v) for v in part[c]] if c in part else [None] * len(part) for c in columns]
    told = [None] * len(part) if y is None else [named(label, labels) for label in np.asarray(y)[numbers]]
    return [
        {
            "person": int(number),
            "cells": [column[i] for column in cells],
            "label": told[i],
            "found": [int(number) in one for one in found],
        }
        for i, number in enumerate(numbers)
    ]
