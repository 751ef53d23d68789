"""Everybody at no fair distance, listed: the exact answer at ε = 0 for any model at all, a bare function too.

A move δ costs nothing where Σδ = 0. Columns that no null direction of Σ touches stay as they are, so where those it does
touch are categories and whole numbers, the rows at no distance are among finitely many combinations of their values. All
of them are made and measured, and the model itself is asked about each: what it answers worst is attained and cannot be
exceeded.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from likewise.auditing.bounds.table_layout import IntArray, TableLayout
from likewise.auditing.claims.certificate import Bound
from likewise.auditing.problem.coordinates import tabular
from likewise.auditing.search.contract import Budget, Found, Search
from likewise.core.arrays import FloatArray, to_numpy
from likewise.core.text import join_words

if TYPE_CHECKING:
    from likewise.auditing.problem.audit_problem import AuditProblem
    from likewise.auditing.support.supporting_rows import Support
    from likewise.domains.column import Column
    from likewise.fair_metrics import FairMetric

__all__ = ["EnumerationSearch", "free_values"]

# A basis stored in float32 is true to so much: what moves less is rounding.
_TOUCHED = 1e-7
_ROWS_AT_ONCE = 65_536


def free_values(columns: tuple[Column, ...], metric: FairMetric) -> dict[int, FloatArray | None]:
    """Return the values that moves at no cost can give each column: those columns alone that can change.

    Parameters
    ----------
    columns : tuple of Column
        Of the encoding that the metric measures.
    metric : FairMetric
        Of encoded rows.

    Returns
    -------
    dict of int to float array or None
        By the column's position: whole numbers, or positions of categories. None where there is no end of them.

    Examples
    --------
    >>> from likewise.core.subspace import Subspace
    >>> from likewise.domains.column import Column
    >>> from likewise.domains.dtypes import Dtype
    >>> from likewise.fair_metrics import FairMetric
    >>> age = Column("age", "integer", Dtype("int64"), lower=17, upper=90)
    >>> sex = Column("sex", "categorical", Dtype("str"), categories=("F", "M"), start=1, stop=2)
    >>> free_values((age, sex), FairMetric.from_subspace(Subspace.from_directions([[0.0, 1.0]])))
    {1: array([0., 1.])}
    """
    if metric.n_features is None:
        return {}
    basis = np.asarray(to_numpy(metric.null_space.basis), dtype=np.float64)
    touched = np.sqrt((basis**2).sum(axis=1)) > _TOUCHED
    found: dict[int, FloatArray | None] = {}
    for i, column in enumerate(columns):
        moves = touched[column.slice]
        if column.immutable or not moves.any():
            continue
        if column.kind == "categorical":
            # An untouched indicator cannot rise or fall, so its category neither comes nor goes.
            codes = np.arange(len(column.categories)) if column.width == 1 else np.flatnonzero(moves)
            found[i] = codes.astype(np.float64)
        elif column.kind == "integer" and np.isfinite([column.lower, column.upper]).all():
            found[i] = np.arange(np.ceil(column.lower), np.floor(column.upper) + 1.0)
        else:
            found[i] = None
    return found


@dataclass(frozen=True)
class EnumerationSearch(Search):
    """Ask the model about everybody at no fair distance; exact at ε = 0, whatever the model is.

    Parameters
    ----------
    most : int, default=200
        Combinations of free values per person, at most; with more of them it is left out.

    Examples
    --------
    >>> EnumerationSearch().name, EnumerationSearch().in_parts
    ('enumeration', True)
    """

    name: ClassVar[str] = "enumeration"
    in_parts: ClassVar[bool] = True
    optional: ClassVar[bool] = True

    most: int = 200

    def why_not(self, problem: AuditProblem) -> str | None:
        """Say why the rows at no distance cannot be listed, where they cannot."""
        place = problem.coordinates
        if place.metric.feature_map is not None:
            return "the metric measures a feature map of its own"
        columns = _columns(problem)
        if columns is None:
            if place.metric.n_features is not None and not place.metric.null_space.dim:
                return None
            return "the rows at no fair distance cannot be listed: the domain is no table"
        values = free_values(columns, place.metric)
        endless = [columns[i].name for i, found in values.items() if found is None]
        if endless:
            return (
                f"the rows at no fair distance cannot be listed: the metric lets {join_words(endless[:3])}"
                f"{' and others' if len(endless) > 3 else ''} vary without end"
            )
        count = prod(len(found) for found in values.values() if found is not None)
        if count > self.most:
            return f"{count:,} combinations of free values per person are more than {self.most:,}"
        return None

    def settles(self, eps: float) -> bool:
        """Whether nothing is left to find: at ε = 0."""
        return eps == 0

    def assumes(self, problem: AuditProblem) -> tuple[str, ...]:
        """Say which columns were enumerated."""
        names = self._names(problem)
        if not names:
            return ()
        return (f"At ε = 0 every possible combination of {join_words(list(names))} was asked about.",)

    def improve(self, problem: AuditProblem, support: Support, eps: float, budget: Budget) -> Found:
        """Add every row at no distance, and say that there are no others."""
        for x, person in _free_rows(problem):
            if budget.spent:
                reason = (
                    "time was up before everybody at no distance was asked about; give the audit more "
                    "(budget_seconds=…, --budget)"
                )
                return Found(support, "not_converged", (reason,))
            support = support.with_rows(x, person)
        # V(0) is the mean over people of the worst loss at no distance, and nobody else is at no distance.
        worst = support.frontier.worst_at_no_distance()
        names = self._names(problem)
        what = f"all combinations of {join_words(list(names))}" if names else "nobody else is at no distance"
        value, base = float(worst.mean()), float(problem.base_loss.mean())
        shared: dict[str, Any] = {"eps": 0.0, "n": problem.n, "method": f"enumeration: {what}"}
        bound = Bound(value=value, gap=value - base, lambda_=float("inf"), **shared)
        more: tuple[Bound, ...] = ()
        if problem.decides:
            share = float(support.changed.mean())
            more = (Bound(value=share, gap=share, measure="decisions", **shared),)
        if eps == 0:
            return Found(support, bound=bound, more=more)
        return Found(support, more=(bound, *more))

    def _names(self, problem: AuditProblem) -> tuple[str, ...]:
        columns = _columns(problem)
        if columns is None:
            return ()
        return tuple(columns[i].name for i in free_values(columns, problem.coordinates.metric))


def _columns(problem: AuditProblem) -> tuple[Column, ...] | None:
    known = tabular(problem.coordinates.domain)
    return None if known is None else tuple(known.columns_)


def _free_rows(problem: AuditProblem) -> Any:
    """Yield encoded rows at no distance, and whose they are, some people at a time."""
    columns = _columns(problem)
    values = {} if columns is None else free_values(columns, problem.coordinates.metric)
    if not values or columns is None:
        return
    at = list(values)
    # None of them is endless: why_not says so.
    finite = [found for found in values.values() if found is not None]
    combinations = np.array(list(product(*finite)), dtype=np.float64)
    layout = TableLayout(columns)
    own = layout.values(problem.X)
    step = max(1, _ROWS_AT_ONCE // len(combinations))
    for first in range(0, problem.n, step):
        people = np.arange(first, min(first + step, problem.n))
        yield _at_no_distance(problem, layout, own, people, at, finite, combinations)


def _at_no_distance(
    problem: AuditProblem,
    layout: TableLayout,
    own: FloatArray,
    people: IntArray,
    at: list[int],
    finite: list[FloatArray],
    combinations: FloatArray,
) -> tuple[FloatArray, IntArray]:
    person = np.repeat(people, len(combinations))
    chosen = np.tile(combinations, (len(people), 1))
    for k, (i, values) in enumerate(zip(at, finite, strict=True)):
        # Somebody whose own category is not among those that come and go keeps it, whatever else changes.
        keeps = ~np.isin(own[person, i], values)
        chosen[keeps, k] = own[person[keeps], i]
    moved = (chosen != own[person][:, at]).any(axis=1)
    person, chosen = person[moved], chosen[moved]
    moved_values = own[person]
    moved_values[:, at] = chosen
    x = problem.X[person].copy()
    encoded = layout.encode(moved_values)
    for i in at:
        part = layout.columns[i].slice
        x[:, part] = encoded[:, part]
    free = problem.squared_distance(x, person) == 0
    return x[free], person[free]
