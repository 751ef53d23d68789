"""A raw table as the numbers that boosted trees split on: numbers, codes of categories, missing values kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.checks import FloatArray, IntArray, attribute_columns, by_type, python_scalar
from likewise.core.errors import InputError, bad_parameter
from likewise.counterfactuals.cells import Table, find_attribute
from likewise.counterfactuals.edited_rows import TwinFactor, TwinMaker, canonical_rows, orbit_representatives
from likewise.data.encoding import category_codes
from likewise.data.tabular import TabularDomain
from likewise.fair_metrics import AttributeSubspace, FairMetric
from likewise.fair_metrics.learner import ready_metric
from likewise.fair_metrics.neighbours import same_places

# More categories than this do not help a tree; the rarest count as missing.
MAX_CATEGORIES = 254


@dataclass(frozen=True, eq=False)
class TreeColumns:
    """What a table becomes: twins made one, sensitive columns left out, the others as numbers."""

    names: tuple[str, ...]
    categories: tuple[tuple[Any, ...] | None, ...]
    factors: tuple[TwinFactor, ...]
    maker: TwinMaker | None = None

    @classmethod
    def of(
        cls,
        frame: pd.DataFrame,
        left_out: Sequence[str],
        factors: Sequence[TwinFactor],
        *,
        owner: str,
        maker: TwinMaker | None = None,
    ) -> TreeColumns:
        """Learn the columns of a table."""
        names = tuple(str(name) for name in frame.columns if name not in set(left_out))
        if not names:
            raise InputError(f"{owner}: no column is left to decide by: all of them are sensitive.")
        merged = _merged(frame, factors, maker, owner)
        return cls(names, tuple(_categories(merged[name], owner) for name in names), tuple(factors), maker)

    @property
    def categorical(self) -> tuple[bool, ...]:
        """Which columns are codes of categories."""
        return tuple(values is not None for values in self.categories)

    def matrix(self, frame: pd.DataFrame, *, owner: str) -> FloatArray:
        """Return the numbers of a table with the same columns, (n, d); categories never seen count as missing."""
        merged = _merged(frame, self.factors, self.maker, owner)
        matrix = np.empty((len(frame), len(self.names)))
        for i, (name, values) in enumerate(zip(self.names, self.categories, strict=True)):
            matrix[:, i] = _numbers(merged[name], owner) if values is None else _codes(merged[name], values)
        return matrix


def _merged(
    frame: pd.DataFrame, factors: Sequence[TwinFactor], maker: TwinMaker | None, owner: str
) -> pd.DataFrame:
    """Everybody as the row that stands for all their twins."""
    if maker is None:
        return canonical_rows(frame, factors, owner=owner)
    return orbit_representatives(maker, frame)


def sensitive_columns(sensitive: Any, frame: pd.DataFrame, *, owner: str) -> dict[str, tuple[str, ...]]:
    """Return the columns that hold each sensitive attribute: itself, or its 0/1 columns ``name_value``."""
    if sensitive is None:
        return {}
    if isinstance(sensitive, (str, int, np.integer)):
        sensitive = [sensitive]
    if isinstance(sensitive, Mapping) or not isinstance(sensitive, (Sequence, np.ndarray, pd.Index)):
        raise bad_parameter(owner, "sensitive_features", "names of columns", type(sensitive).__name__)
    found: dict[str, tuple[str, ...]] = {}
    for name in map(str, sensitive):
        if name in frame.columns:
            found[name] = (name,)
            continue
        parts = tuple(column for column in frame.columns if column.startswith(f"{name}_"))
        if not parts:
            from likewise.core.frames import check_columns

            check_columns(frame, [name], owner=owner, name="X")
        found[name] = parts
    return found


def monotone_directions(
    constraints: Any, columns: TreeColumns, all_names: Sequence[str], *, owner: str
) -> tuple[int, ...]:
    """Return -1, 0 or 1 for each column of the trees."""
    if constraints is None:
        return (0,) * len(columns.names)
    if not isinstance(constraints, Mapping):
        given = list(constraints)
        if len(given) != len(all_names):
            raise bad_parameter(
                owner,
                "monotone_constraints",
                f"one direction for each of the {len(all_names)} columns, or a dict of some",
                f"{len(given)}",
            )
        constraints = dict(zip(all_names, given, strict=True))
    known = {str(name): direction for name, direction in constraints.items()}
    unknown = [name for name in known if name not in all_names]
    wrong = [d for d in known.values() if d not in (-1, 0, 1)]
    codes = [n for n, c in zip(columns.names, columns.categorical, strict=True) if c and known.get(n)]
    if unknown or wrong or codes:
        got = (
            f"the column {unknown[0]!r}, which X does not have"
            if unknown
            else repr(wrong[0] if wrong else codes)
        )
        raise bad_parameter(owner, "monotone_constraints", "-1, 0 or 1 for columns of numbers", got)
    return tuple(int(known.get(name, 0)) for name in columns.names)


def _is_number(column: pd.Series[Any]) -> bool:
    return getattr(column.dtype, "kind", "O") in "biuf" and not isinstance(column.dtype, pd.CategoricalDtype)


def _categories(column: pd.Series[Any], owner: str) -> tuple[Any, ...] | None:
    if _is_number(column):
        return None
    if getattr(column.dtype, "kind", "O") in "mM":
        raise InputError(
            f"{owner}: column {column.name!r} holds dates. Turn it into a number first, such as days since a date."
        )
    counts = column.value_counts()
    common = counts[counts > 0].index[:MAX_CATEGORIES]
    return tuple(sorted(map(python_scalar, common), key=by_type))


def _numbers(column: pd.Series[Any], owner: str) -> FloatArray:
    try:
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise InputError(f"{owner}: column {column.name!r} was numbers when fitted: {error}.") from error
    if np.isinf(numbers).any():
        raise InputError(
            f"{owner}: column {column.name!r} has infinity at row {int(np.isinf(numbers).argmax())}. Mark it as missing."
        )
    return numbers


def _codes(column: pd.Series[Any], values: tuple[Any, ...]) -> FloatArray:
    codes = category_codes(column, values)
    return np.where(codes < 0, np.nan, codes)


# The people of a boosting run: nodes, groups and neighbours, from what `fit` was given.


_MANY_GROUPS = 20


def group_codes(
    sensitive: dict[str, tuple[str, ...]], frame: pd.DataFrame, beside: Any, *, owner: str
) -> list[IntArray]:
    """Return the group of each person, one array per attribute; -1 if it is not known."""
    named: dict[str, Any] = {}
    for name, columns in sensitive.items():
        if columns == (name,):
            named[name] = frame[name]
        else:
            named[name] = find_attribute(Table(frame), name, owner=owner).codes
    if beside is not None:
        table = attribute_columns(beside, owner=owner)
        named |= {str(name): table[name] for name in table.columns}
    found: list[IntArray] = []
    for name, values in named.items():
        codes, distinct = pd.factorize(np.asarray(values, dtype=object), sort=False)
        if len(codes) != len(frame):
            raise InputError(
                f"{owner}: 'sensitive_features' has {len(codes)} values of {name!r} for {len(frame)} rows of X."
            )
        if len(distinct) > _MANY_GROUPS:
            raise InputError(
                f"{owner}: {name!r} has {len(distinct)} values, too many groups for group_penalty (at most "
                f"{_MANY_GROUPS}). Pass wider groups as fit(X, y, sensitive_features=...)."
            )
        found.append(codes.astype(np.int64))
    return found


def fitted_metric(metric: Any, sensitive: Any, given: Any, beside: Any, *, owner: str) -> FairMetric:
    """Return the metric that was given, or learn it; raw tables are encoded by a domain of their own."""
    if metric is None and sensitive:
        metric = AttributeSubspace(list(sensitive))
    encoder = TabularDomain.from_frame(given) if isinstance(given, pd.DataFrame) else None
    return ready_metric(metric, given, owner=owner, sensitive_features=beside, encoder=encoder)


def nodes_of(matrix: FloatArray, places: FloatArray | None) -> tuple[IntArray, IntArray]:
    """Find people that neither the trees nor the metric tell apart; as `same_places`."""
    # Ranks: what the trees see must stay apart however close it is, and a hole is a value of its own.
    ranks = np.stack([np.unique(column, return_inverse=True)[1] for column in matrix.T], axis=1)
    first, place = same_places(ranks.astype(np.float64))
    if places is None:
        return first, place
    _, other = same_places(places)
    return same_places(np.column_stack([place, other]).astype(np.float64))
