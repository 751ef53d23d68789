"""The columns of a domain as the page shows them: which control fits, and which values are possible."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from likewise.domains import TabularDomain
from likewise.report.explore.cells import exact_cell
from likewise.tables import MissingCells

__all__ = ["column_documents"]

_KINDS = {"continuous": "number", "integer": "integer", "categorical": "category"}


def column_documents(
    domain: TabularDomain, sensitive: Collection[str] = (), gaps: MissingCells | None = None
) -> list[dict[str, Any]]:
    """Return what the page knows of each column, in the order of the table.

    These are the rules of `TabularDomain.validate`: a range, whole numbers, one of the categories, what may not change
    and what may be missing.

    Parameters
    ----------
    domain : TabularDomain
    sensitive : collection of str
        Columns that should not decide.
    gaps : MissingCells, optional
        Columns that may be missing, where the domain has marks for them. A mark is no column that is shown: it follows
        from the cell that it marks.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [20, 40], "sex": ["F", "M"]})
    >>> age, sex = column_documents(TabularDomain.from_frame(people), ["sex"])
    >>> age["kind"], age["low"], age["high"], sex["categories"], sex["sensitive"]
    ('integer', 20, 40, ['F', 'M'], True)
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
    """An end of a range: whole where it is, None where it is open."""
    if not np.isfinite(value):
        return None
    return int(value) if value == int(value) and abs(value) < 2**53 else float(value)
