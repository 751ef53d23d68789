"""Everybody at no fair distance, listed: the exact answer at ε = 0 for any model at all, a bare function too.

A move δ costs nothing where Σδ = 0. Columns that no null direction of Σ touches stay as they are, so where those it does
touch are categories and whole numbers, the rows at no distance are among finitely many combinations of their values. All
of them are made and measured, and the model itself is asked about each: what it answers worst is attained and cannot be
exceeded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.dual.finite_dual import Frontier
from likewise.auditing.editable_rows import EditableRows, Field
from likewise.auditing.inference.certificate import Bound
from likewise.auditing.people import tabular
from likewise.auditing.results.sensitive import Enumeration
from likewise.auditing.search.contract import Budget, Found, Search, unfinished
from likewise.core.checks import FloatArray, IntArray, to_numpy
from likewise.core.messages import Message
from likewise.counterfactuals.edits import edited_columns

if TYPE_CHECKING:
    from likewise.auditing.dual.supporting_rows import Support
    from likewise.auditing.problem import AuditProblem
    from likewise.data.column import Column
    from likewise.fair_metrics import FairMetric

# A basis stored in float32 is true to so much: what moves less is rounding.
_TOUCHED = 1e-7
_ROWS_AT_ONCE = 65_536


def free_values(columns: tuple[Column, ...], metric: FairMetric) -> dict[int, FloatArray | None]:
    """Return the values that moves at no cost can give each column: those columns alone that can change."""
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


def free_alone(problem: AuditProblem) -> bool:
    """Whether the metric makes the sensitive columns free, all their values, and nothing else."""
    known, metric = _columns(problem), problem.coordinates.metric
    if problem.values is None or known is None or metric.feature_map is not None:
        return False
    free = free_values(known, metric)
    whole = all(
        values is None or not known[i].categories or len(values) == len(known[i].categories)
        for i, values in free.items()
    )
    return whole and {known[i].name for i in free} == set(map(str, edited_columns(problem.values.edits)))


def _counterparts_are_all(problem: AuditProblem) -> bool:
    """Whether everybody at no distance is a counterpart by the sensitive columns, and all their values are tried."""
    return problem.values is not None and problem.values.exact and free_alone(problem)


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
            return Message("why_not.feature_map")
        if _counterparts_are_all(problem):
            return None
        unknown = place.why_no_made_up_rows()
        if unknown is not None:
            return unknown
        columns = _columns(problem)
        if columns is None:
            if place.metric.n_features is None or not place.metric.null_space.dim:
                return None if problem.repeats else Message("why_not.not_repeated")
            return Message("why_not.no_table")
        values = free_values(columns, place.metric)
        endless = [columns[i].name for i, found in values.items() if found is None]
        if endless:
            key = "why_not.endless_and_others" if len(endless) > 3 else "why_not.endless"
            return Message(key, columns=endless[:3])
        count = prod(len(found) for found in values.values() if found is not None)
        if count > self.most:
            return Message("why_not.too_many", count=count, most=self.most)
        return None if problem.repeats else Message("why_not.not_repeated")

    def settles(self, eps: float) -> bool:
        """Whether nothing is left to find: at ε = 0."""
        return eps == 0

    def assumes(self, problem: AuditProblem) -> tuple[str, ...]:
        """Say which columns were enumerated."""
        names = self._names(problem)
        if not names:
            return ()
        return (Message("assumption.enumeration", columns=list(names)),)

    def extend(self, problem: AuditProblem, support: Support, eps: float, budget: Budget) -> Found:
        """Add every row at no distance, and say that these are all; no counterpart is asked about twice."""
        if _counterparts_are_all(problem) and any(isinstance(one, Enumeration) for one in support.sources):
            return self._found(problem, support)
        twins = FreeTwins.of(problem, _columns(problem))
        parts: list[_Asked] = []
        for first in range(0, len(twins), _ROWS_AT_ONCE):
            if budget.spent:
                return unfinished(support, Message("reason.enumeration_time"))
            budget.tell(first / len(twins))
            number = np.arange(first, min(first + _ROWS_AT_ONCE, len(twins)))
            parts.append(_ask(problem, twins, twins.at_no_distance(problem, number)))
        if parts:
            person, number, loss, changed = (np.concatenate(part) for part in zip(*parts, strict=True))
            frontier = Frontier.from_points(
                base_loss=problem.base_loss,
                row=person,
                squared_distance=np.zeros(len(person)),
                loss=loss,
                candidate=number,
            )
            decided = np.zeros(problem.n, dtype=bool)
            decided[person[changed]] = True
            support = support.with_source(twins, frontier, decided)
        return self._found(problem, support)

    def _found(self, problem: AuditProblem, support: Support) -> Found:
        # V(0) is the mean over people of the worst loss at no distance, and nobody else is at no distance.
        value, base = float(support.frontier.worst_at_no_distance().mean()), float(problem.base_loss.mean())
        names = self._names(problem)
        method = (
            Message("method.enumeration", columns=list(names)) if names else Message("method.nobody_else")
        )
        shared: dict[str, Any] = {"eps": 0.0, "n": problem.n, "method": method}
        bound = Bound(value=value, gap=value - base, lambda_=float("inf"), **shared)
        if not problem.decides:
            return Found(support, bounds=(bound,))
        share = float(support.changed.mean())
        return Found(support, bounds=(bound, Bound(value=share, gap=share, measure="decisions", **shared)))

    def _names(self, problem: AuditProblem) -> tuple[str, ...]:
        columns = _columns(problem)
        if columns is None:
            return ()
        return tuple(columns[i].name for i in free_values(columns, problem.coordinates.metric))


def _columns(problem: AuditProblem) -> tuple[Column, ...] | None:
    known = tabular(problem.coordinates.domain)
    return None if known is None else tuple(known.columns_)


@dataclass(frozen=True, eq=False)
class FreeTwins:
    """Everybody with every combination of free values, by number: all of the first person come first."""

    rows: EditableRows
    fields: tuple[Field, ...]
    combinations: IntArray
    cells: tuple[tuple[slice, FloatArray], ...]
    partial: tuple[bool, ...]

    @classmethod
    def of(cls, problem: AuditProblem, columns: tuple[Column, ...] | None) -> FreeTwins:
        """Say who there is; nothing is asked of the model."""
        rows, fields, cells, partial = problem.editable(), [], [], []
        values = {} if columns is None else free_values(columns, problem.coordinates.metric)
        for i, free in values.items():
            assert columns is not None and free is not None  # noqa: PT018 (why_not says so)
            column = columns[i]
            known = [column.categories[int(v)] for v in free] if column.categories else [int(v) for v in free]
            fields.append(rows.field(column.name, known))
            partial.append(len(known) < len(column.categories))
            # A column by itself begins at 0.
            alone = replace(column, start=0, stop=column.width)
            cells.append((column.slice, TableLayout((alone,)).encode(free[:, None])))
        counts = [range(len(field.values)) for field in fields]
        # Where nothing is free nobody has a twin, not even one that is the same.
        listed = list(product(*counts)) if fields else []
        combinations = np.array(listed, dtype=np.int64).reshape(len(listed), len(fields))
        return cls(rows, tuple(fields), combinations, tuple(cells), tuple(partial))

    def __len__(self) -> int:
        return self.rows.n_rows * len(self.combinations)

    def take(self, index: Any) -> Any:
        """Make some of them, as the kind of table that people come in."""
        person, chosen = self._chosen(np.asarray(index, dtype=np.int64))
        return self.rows.rewrite(person, list(zip(self.fields, chosen.T, strict=True)))

    def at_no_distance(self, problem: AuditProblem, number: IntArray) -> IntArray:
        """Return those numbers whose row is another one, at no fair distance from the person."""
        person, chosen = self._chosen(number)
        own = np.stack([field.codes[person] for field in self.fields], axis=1)
        other = np.flatnonzero((chosen != own).any(axis=1))
        x = problem.X[person[other]].copy()
        for f, (where, cells) in enumerate(self.cells):
            moved = np.flatnonzero(chosen[other, f] >= 0)
            x[moved, where] = cells[chosen[other[moved], f]]
        return np.asarray(number[other[problem.squared_distance(x, person[other]) == 0]])

    def _chosen(self, number: IntArray) -> tuple[IntArray, IntArray]:
        """Whose each row is, and the positions of its values; −1 leaves the person's own."""
        person, which = np.divmod(number, len(self.combinations))
        chosen = self.combinations[which]
        for f, field in enumerate(self.fields):
            # A category that does not come does not go either, whatever else changes.
            if self.partial[f]:
                chosen[field.codes[person] < 0, f] = -1
        return person, chosen


_Asked: TypeAlias = tuple[IntArray, IntArray, FloatArray, "np.ndarray[Any, np.dtype[np.bool_]]"]


def _ask(problem: AuditProblem, twins: FreeTwins, number: IntArray) -> _Asked:
    """Whose each row is, its number and loss, and whether it is decided differently."""
    person = number // len(twins.combinations)
    if not len(number):
        return person, number, np.zeros(0), np.zeros(0, dtype=bool)
    model, shown = problem.coordinates.model, problem.coordinates.for_model(twins.take(number))
    loss = np.asarray(model.losses(shown, problem.labels[person]), dtype=np.float64)
    if not problem.decides:
        return person, number, loss, np.zeros(len(number), dtype=bool)
    otherwise = problem.decided_otherwise(
        model.predict(shown), person, lambda at: problem.coordinates.for_model(twins.take(number[at])), loss
    )
    if model.loss.wants == "decisions":
        loss = np.where(otherwise, loss, problem.base_loss[person])
    return person, number, loss, otherwise
