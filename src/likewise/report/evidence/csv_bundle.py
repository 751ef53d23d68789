"""An audit as CSV tables, for people who go on in a spreadsheet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from likewise.auditing.results.audit_result import AuditResult
from likewise.auditing.results.unfair_map import UnfairMap
from likewise.evaluation.impact import ImpactTable

# A text cell that begins so is run as a formula by spreadsheets; an apostrophe in front makes it text.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_tables(
    result: AuditResult, document: Mapping[str, Any], impact: Sequence[ImpactTable] = ()
) -> dict[str, str]:
    """Return the tables of an audit as CSV text.

    Parameters
    ----------
    result : AuditResult
    document : mapping
        Of `audit_document`.
    impact : sequence of ImpactTable, optional

    Returns
    -------
    dict of str to str
        File name to content: ``numbers.csv``, ``curve.csv``, ``harm_by_value.csv``, ``twins_free.csv`` and, for ε > 0,
        ``twins_budget.csv``; ``measures.csv`` with an evaluation, ``impact_ratios.csv`` with impact tables.

    Notes
    -----
    Text that a spreadsheet would run as a formula gets an apostrophe in front.
    """
    curve = document["curve"]
    frames = {
        "numbers": numbers_frame(document),
        "curve": pd.DataFrame({name: curve[name] for name in ("eps", "gap", "lambda")}),
        "harm_by_value": result.unfair_map.by_value,
        "twins_free": _people(result.pure_map),
    }
    if result.eps > 0:
        frames["twins_budget"] = _people(result.unfair_map)
    if document["evaluation"] is not None:
        frames["measures"] = pd.DataFrame(document["evaluation"]["measures"])
    if impact:
        frames["impact_ratios"] = impact_frame(impact)
    return {f"{name}.csv": _csv(frame) for name, frame in frames.items()}


def numbers_frame(document: Mapping[str, Any]) -> pd.DataFrame:
    """Return an audit's numbers, one a row, with their intervals where they have one."""
    numbers = document["numbers"]
    flat = {name: value for name, value in numbers.items() if name != "sensitive_only"}
    only = numbers["sensitive_only"]
    if only is not None:
        names = ", ".join(only["columns"])
        flat[f"changed_decisions, only {names}"] = only["changed_decisions"]
        flat[f"gap, only {names}"] = only["gap"]
    rows = [
        {"quantity": name, **(value if isinstance(value, Mapping) else {"value": value})}
        for name, value in flat.items()
    ]
    return pd.DataFrame(rows, columns=["quantity", "value", "low", "high", "confidence"])


def impact_frame(impact: Sequence[ImpactTable]) -> pd.DataFrame:
    """Return impact tables one below the other, the people of unknown category in a row of their own."""
    rows: list[dict[str, Any]] = []
    for table in impact:
        said = {"attribute": table.attribute, "kind": table.kind, "outcome": table.outcome}
        rows += [said | asdict(row) for row in table.rows]
        if table.unknown:
            rows.append(said | {"category": "unknown category", "people": table.unknown, "excluded": True})
    return pd.DataFrame(rows)


def _people(unfair: UnfairMap) -> pd.DataFrame:
    """People beside their twins, the most harmed first."""
    return unfair.top(len(unfair.people))


def _csv(frame: pd.DataFrame) -> str:
    if frame.empty:
        return ",".join(map(str, frame.columns)) + "\n"
    columns = [frame.iloc[:, at] for at in range(frame.shape[1])]
    safe = pd.concat(
        [one if _holds_numbers(one) else one.astype(object).map(_as_text) for one in columns], axis=1
    )
    safe.columns = pd.Index([_as_text(str(name)) for name in frame.columns])
    return str(safe.to_csv(index=False, lineterminator="\n"))


def _holds_numbers(column: pd.Series[Any]) -> bool:
    return pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)


def _as_text(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
