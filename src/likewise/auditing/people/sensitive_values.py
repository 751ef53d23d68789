"""Which values the sensitive columns of twins are given: all that can exist if they are few, else a fine choice of them.

Of a category, and of a whole number with few values, everything that the domain allows is tried, so a share of people is
exact. Of other numbers the ends of the range, both sides of every split of a readable tree ensemble, a grid and the
values of the table are tried: then some twin may be missed, and a share is a lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.auditing.bounds.families import family_of
from likewise.auditing.bounds.table_layout import TableLayout
from likewise.auditing.bounds.trees.tree_family import TreeFamily
from likewise.auditing.problem.coordinates import Coordinates, tabular
from likewise.auditing.problem.editable_rows import MAX_VALUES, EditableRows
from likewise.auditing.support.frontier import Floats
from likewise.core.errors import InputError
from likewise.evaluation.edits import Edit, EditParts

if TYPE_CHECKING:
    from likewise.auditing.problem.audit_problem import AuditProblem

__all__ = ["SensitiveValues", "sensitive_values"]

# A whole number with up to so many values is given each of them.
ALL_WHOLE = 128
# Of another number: points of the grid, and quantiles of the table's values.
GRID, QUANTILES = 65, 64
# Twins of one person, and of everybody together where that leaves `ALL_WHOLE` of each person, at most; at least so many
# values of each number.
MAX_TWINS, MAX_ROWS, LEAST = 1000, 3_000_000, 5


@dataclass(frozen=True, eq=False)
class SensitiveValues:
    """The edits of the sensitive columns, with the values that they are given.

    Parameters
    ----------
    edits : tuple
        As `read_edits` returns it, every value listed.
    exact : bool
        Whether no value that can exist was left out.
    wider : bool
        Whether some number is given values that the other searches do not give it.
    bands : dict of str to float array
        Inner edges of the ranges that people are grouped by, of numbers with many values.
    """

    edits: EditParts
    exact: bool = True
    wider: bool = False
    bands: dict[str, Floats] = field(default_factory=dict)


def sensitive_values(problem: AuditProblem) -> SensitiveValues:
    """Choose the values of the sensitive columns; nothing is asked of the model.

    Parameters
    ----------
    problem : AuditProblem
        Before its edits are settled: columns without listed values take what this function chooses.
    """
    edits, rows = problem.sensitive_edits, problem.editable()
    open_parts = [part for part in edits if isinstance(part, Edit) and _takes_all(part)]
    columns = {part.column: rows.numbers(part.column) for part in open_parts}
    numbers = {name: found for name, found in columns.items() if found is not None}
    settled = {
        part.column: tuple(rows.field(part.column, owner="audit").values)
        for part in open_parts
        if part.column not in numbers
    }
    others = prod(_count(part, settled) for part in edits if _column(part) not in numbers)
    n = problem.n if problem.total is None else problem.total
    room = min(MAX_TWINS, max(ALL_WHOLE, MAX_ROWS // max(n, 1))) / max(others, 1)
    most = max(LEAST, int(room ** (1.0 / len(numbers)) + 1e-9)) if numbers else 0
    cuts = _cuts(problem.coordinates) if numbers else {}
    exact, bands = True, dict[str, Floats]()
    for name, own in numbers.items():
        values, every = _numbers(problem.coordinates, rows, name, own, cuts.get(str(name), []))
        kept = _thinned(values, most)
        exact &= every and len(kept) == len(values)
        settled[name] = tuple(kept)
        if len(np.unique(own)) > MAX_VALUES:
            bands[str(name)] = np.unique(np.quantile(own, [0.25, 0.5, 0.75], method="nearest"))
    chosen = tuple(
        replace(part, values=settled[part.column])
        if isinstance(part, Edit) and part.column in settled
        else part
        for part in edits
    )
    return SensitiveValues(chosen, exact, bool(numbers), bands)


def _takes_all(part: Edit) -> bool:
    return part.values is None or (isinstance(part.values, str) and part.values == "all")


def _column(part: Any) -> Any:
    return part.column if isinstance(part, Edit) else None


def _count(part: Any, settled: dict[Any, tuple[Any, ...]]) -> int:
    if not isinstance(part, Edit):
        return len(part)
    return len(settled.get(part.column, part.values or ()))


def _numbers(
    place: Coordinates, rows: EditableRows, name: Any, own: Floats, cuts: list[float]
) -> tuple[list[Any], bool]:
    """Values of one number in its own units, rising, and whether they are all that can exist."""
    lower, upper, whole = _range(place, name, own)
    seen = np.unique(own)
    if len(seen) <= 2 and tabular(place.domain) is None:
        # A plain array does not say so, but a column of two values is a category.
        return rows.writable(name, seen), True
    if whole and upper - lower < ALL_WHOLE:
        return rows.writable(name, np.arange(lower, upper + 1.0)), True
    cut = np.asarray([c for c in cuts if lower <= c <= upper], dtype=np.float64)
    ends = np.concatenate([[lower], cut, [upper]])
    sides = [cut + 1.0 if whole else np.nextafter(cut, np.inf), (ends[1:] + ends[:-1]) / 2.0]
    few = seen if len(seen) <= QUANTILES else np.quantile(own, np.linspace(0, 1, QUANTILES), method="nearest")
    values = np.concatenate([ends, *sides, np.linspace(lower, upper, GRID), few])
    values = np.unique(np.floor(values) if whole else values)
    return rows.writable(name, values[(values >= lower) & (values <= upper)]), False


def _range(place: Coordinates, name: Any, own: Floats) -> tuple[float, float, bool]:
    """Least and greatest value that can exist, and whether only whole numbers can."""
    lower, upper, whole = -np.inf, np.inf, bool((own % 1 == 0).all())
    known = tabular(place.domain)
    if known is not None:
        column = next((one for one in known.columns_ if one.name == str(name)), None)
        if column is not None:
            lower, upper, whole = column.lower, column.upper, column.kind == "integer"
    elif isinstance(name, (int, np.integer)) and hasattr(place.domain, "bounds"):
        width = max(int(name) + 1, place.domain.n_features or 0)
        lower, upper = (float(np.broadcast_to(ends, (width,))[name]) for ends in place.domain.bounds())
    lower = lower if np.isfinite(lower) else float(own.min())
    upper = upper if np.isfinite(upper) else float(own.max())
    return (float(np.ceil(lower)), float(np.floor(upper)), True) if whole else (lower, upper, False)


def _cuts(place: Coordinates) -> dict[str, list[float]]:
    """The last value that each split of a readable tree ensemble sends left, by column."""
    try:
        encoded = place.takes in ("encoded", "own")
        family = family_of(place.model, place.domain, encoded=encoded, own=place.own)
        return family.trees.thresholds(TableLayout.of(place.domain)) if isinstance(family, TreeFamily) else {}
    except InputError:
        return {}


def _thinned(values: list[Any], most: int) -> list[Any]:
    """So many of the values, evenly, with both ends."""
    if len(values) <= most:
        return values
    return [values[i] for i in np.unique(np.linspace(0, len(values) - 1, most).round().astype(int))]
