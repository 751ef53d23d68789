"""Everything that the panel of a page needs, as one plain document."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from likewise.auditing.case import Case
from likewise.auditing.results.audit_result import AuditResult
from likewise.core.checks import IntArray
from likewise.core.errors import InputError, bad_parameter
from likewise.core.plain import named
from likewise.data.missing_values import MissingCells
from likewise.data.tabular import TabularDomain
from likewise.models import Model, as_model
from likewise.models.matching import MissingCellsModel, as_recorded
from likewise.report.explore.models import exact_cell, page_model

# The columns of a domain as the page shows them: which control fits, and which values are possible.


_KINDS = {"continuous": "number", "integer": "integer", "categorical": "category"}


def column_documents(
    domain: TabularDomain, sensitive: Collection[str] = (), gaps: MissingCells | None = None
) -> list[dict[str, Any]]:
    """Return what the page knows of each column, in the order of the table.

    These are the rules of `TabularDomain.validate`: a range, whole numbers, one of the categories, what may not change
    and what may be missing.
    """
    fills = {} if gaps is None else gaps.fills
    marks = {} if gaps is None else dict(zip(gaps.marks, gaps.columns, strict=True))
    found = []
    for name in domain.encoding_.names:
        column = domain.column(name)
        document: dict[str, Any] = {
            "name": name,
            "kind": _KINDS[column.kind],
            "locked": bool(column.immutable),
            "sensitive": name in sensitive,
            "missing": name in fills,
            "start": column.start,
        }
        if column.kind == "categorical":
            document["categories"] = [exact_cell(category) for category in column.categories]
        else:
            document |= {"mean": column.mean, "scale": column.scale}
            document |= {"low": _end(column.lower), "high": _end(column.upper)}
            document["decimals"] = column.decimals
            document |= {} if column.curve is None else {"curve": column.curve.to_dict()}
        if name in fills:
            document["fill"] = exact_cell(fills[name])
        if name in marks:
            document["marks"] = marks[name]
        found.append(document)
    return found


def _end(value: float) -> float | int | None:
    """An end of a range: whole if it is, None if it is open."""
    if not np.isfinite(value):
        return None
    return int(value) if value == int(value) and abs(value) < 2**53 else float(value)


# The people that a page carries: those whose decision would change, and a sample of the others.


def choose_people(n: int, results: Sequence[AuditResult], *, max_people: int, seed: int = 0) -> IntArray:
    """Return numbers of the people a page carries, in order."""
    share = max(max_people // (2 * max(len(results), 1)), 1)
    listed = [one for result in results for one in result.listed[:share]]
    chosen = list(dict.fromkeys(one.person for one in listed if one.person < n))
    others = np.setdiff1d(np.arange(n), chosen)
    size = min(len(others), max(max_people - len(chosen), 0))
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
    places: Any = None,
) -> list[dict[str, Any]]:
    """Return people as plain data: number, cells in the order of the columns, label, and what was found about them."""
    part = people.iloc[numbers]
    if places is None:
        # A plain index counts rows from 0, people from 1.
        plain = people.index.equals(pd.RangeIndex(len(people)))
        places = people.index + 1 if plain else people.index
    cells = [[exact_cell(v) for v in part[c]] if c in part else [None] * len(part) for c in columns]
    told = [None] * len(part) if y is None else [named(label, labels) for label in np.asarray(y)[numbers]]
    return [
        {
            "person": int(number),
            "row": str(places[number]),
            "cells": [column[i] for column in cells],
            "label": told[i],
            "found": [int(number) in one for one in found],
        }
        for i, number in enumerate(numbers)
    ]


MAX_PEOPLE = 300
# Of wide tables fewer people are carried.
_MAX_CELLS = 20_000


def explore_document(
    domain: TabularDomain,
    people: pd.DataFrame,
    y: Any = None,
    *,
    models: Mapping[str, Any],
    sensitive_features: Sequence[str] = (),
    results: Mapping[str, AuditResult] | None = None,
    labels: Mapping[Any, str] | None = None,
    places: Any = None,
    endpoint: Mapping[str, str] | None = None,
    max_people: int = MAX_PEOPLE,
    seed: int = 0,
) -> dict[str, Any]:
    """Return what a page needs so that its reader can edit a person and see what the models decide.

    The document holds rows of people and, without an `endpoint`, the models themselves: whoever gets the page gets
    both.

    Parameters
    ----------
    domain : TabularDomain
        Which rows can exist; every edit is checked against it.
    people : DataFrame
        The audited people in original units, in the order of the audit.
    y : array-like, optional
        Their labels.
    models : mapping of str to Model, or to anything that `as_model` takes
        By name; in a comparison in the order of its entries.
    sensitive_features : sequence of str
        Columns that decisions should not depend on.
    results : mapping of str to AuditResult, optional
        Audits of the models, by the same names: people whose decision would change are carried.
    labels : mapping, optional
        Names of the classes, such as ``{0: "refused", 1: "granted"}``.
    places : sequence, optional
        Where each person is in the user's table; by default the index of `people`.
    endpoint : mapping, optional
        ``{"url": …, "token": …}`` if the page asks a server about rows instead of carrying the models.
    max_people : int, default=300
        How many people the page carries; fewer of a wide table.
    seed : int, default=0
        Of the sample of people.

    Returns
    -------
    dict
        For `likewise.report.write_html`'s ``explore``.

    Raises
    ------
    InputError
        A model cannot travel inside a page; it says what to do.

    Examples
    --------
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> domain = TabularDomain.from_frame(people)
    >>> from sklearn.linear_model import LogisticRegression
    >>> fitted = LogisticRegression().fit(domain.encode_array(people), [0, 0, 1, 1])
    >>> document = explore_document(domain, people, [0, 0, 1, 1], models={"ours": fitted}, sensitive_features=["sex"])
    >>> [column["name"] for column in document["columns"]], document["models"][0]["classes"]
    (['skill', 'sex'], [0, 1])
    """
    unknown = [name for name in sensitive_features if name not in domain.encoding_.names]
    if not models:
        raise bad_parameter("explore_document", "models", "at least one model", "none")
    adapters = {name: as_model(model) for name, model in models.items()}
    first = next(iter(adapters.values()))
    shown = as_recorded(first, people)
    gaps = first.missing if isinstance(first, MissingCellsModel) else None
    found = dict(results or {})
    names = list(domain.encoding_.names)
    most = max(min(max_people, _MAX_CELLS // len(names)), 10)
    numbers = choose_people(len(people), list(found.values()), max_people=most, seed=seed)
    used = people[[name for name in names if name in people]]
    return {
        "kind": "likewise.report.explore",
        "version": 1,
        "columns": column_documents(domain, [n for n in sensitive_features if n not in unknown], gaps),
        "people": people_documents(
            shown,
            y,
            numbers,
            columns=names,
            labels=labels or {},
            found=[{one.person for one in found[n].listed} if n in found else set() for n in adapters],
            places=places,
        ),
        "total": len(people),
        "first": next((one.person for result in found.values() for one in result.listed), None),
        "models": [
            {
                "name": name,
                "classes": _classes(model, labels or {}),
                "model": None if endpoint is not None else page_model(model, domain, used),
            }
            for name, model in adapters.items()
        ],
        "endpoint": None if endpoint is None else dict(endpoint),
    }


def explore_case(
    case: Case, result: AuditResult, *, name: str, endpoint: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the panel of the people and the model of an audit."""
    matched = case.matched
    return explore_document(
        matched.domain,
        case.people[list(matched.columns)],
        case.labels,
        models={name: matched.model},
        sensitive_features=case.sensitive,
        results={name: result},
        places=case.found.people.places,
        endpoint=endpoint,
        seed=case.request.random_state,
    )


def _classes(model: Model, labels: Mapping[Any, str]) -> list[Any]:
    if model.loss.regression:
        raise InputError("explore: a model that predicts numbers has no decisions to explore.")
    known = model.known_classes
    classes = [0, 1] if known is None else [exact_cell(label) for label in known.tolist()]
    return [named(label, labels) for label in classes]
