"""Shares that rest on asking the model: of the people of a table, and of random rows of the whole domain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from likewise.auditing.bounds.regions import Regions
from likewise.auditing.bounds.table_layout import IntArray, TableLayout
from likewise.auditing.bounds.verifying.flip_examples import Decide
from likewise.auditing.bounds.verifying.sensitive_values import SensitiveValues
from likewise.auditing.people.sensitive_twins import sensitive_twins
from likewise.auditing.problem.audit_problem import AuditProblem
from likewise.core.arrays import FloatArray
from likewise.evaluation.proportions import share_limits

__all__ = ["Sampled", "changed_people", "proved_same", "sample_rows", "settled", "uniform_rows"]

BoolArray = np.ndarray[Any, np.dtype[np.bool_]]

# Rows that a model is asked about for a sampled share; rows of the sample, at least; rows asked about at once.
_ASKED, _LEAST, _BATCH = 60_000, 300, 16_384
# Rows whose regions are decided at once.
_AT_ONCE = 512


class Sampled(NamedTuple):
    """Share of all rows of a domain whose decision depends on the sensitive columns, from a random sample.

    Parameters
    ----------
    share : float
        Of the sampled rows.
    low, high : float
        Clopper and Pearson's exact 95% interval. If not every sensitive value could be asked about, the upper limit
        counts rows whose decision is not proved to be the same as rows that flip.
    rows : int
        Sampled rows.
    """

    share: float
    low: float
    high: float
    rows: int


def uniform_rows(layout: TableLayout, rng: np.random.Generator, count: int) -> FloatArray:
    """Rows of a domain drawn uniformly, (count, P): every value of a column as likely as every other.

    Examples
    --------
    >>> from likewise.domains import BoxDomain
    >>> layout = TableLayout.of(BoxDomain([0.0], [1.0]))
    >>> uniform_rows(layout, np.random.default_rng(0), 2).round(2).ravel().tolist()
    [0.64, 0.27]
    """
    rows = np.empty((count, layout.n_columns))
    for i, column in enumerate(layout.columns):
        if column.categories:
            rows[:, i] = rng.integers(len(column.categories), size=count)
        elif column.kind == "integer":
            low, high = np.ceil(column.lower), np.floor(column.upper)
            rows[:, i] = low + np.minimum(np.floor(rng.random(count) * (high - low + 1.0)), high - low)
        else:
            rows[:, i] = rng.uniform(column.lower, column.upper, size=count)
    return rows


def sample_rows(
    layout: TableLayout,
    values: SensitiveValues,
    decide: Decide,
    *,
    same: Callable[[FloatArray], BoolArray] | None = None,
    random_state: int = 0,
    hear: Callable[[FloatArray, IntArray], None] | None = None,
) -> Sampled | None:
    """Ask a model about random rows of a domain under every sensitive value.

    Parameters
    ----------
    layout : TableLayout
    values : SensitiveValues
    decide : callable
        Decisions of rows of values; −1 is unknown.
    same : callable, optional
        Which rows of values are proved to keep their decision, if not every sensitive value can be asked about.
    random_state : int, default=0
    hear : callable, optional
        Gets the rows that flip and their decisions (m, A).

    Returns
    -------
    Sampled or None
        None if some column has no bounded range, so that no row is drawn uniformly.
    """
    ends = [(column.lower, column.upper) for column in layout.columns if not column.categories]
    if not np.isfinite(np.array(ends, dtype=np.float64)).all():
        return None
    size = len(values.asked)
    count, rng = max(_LEAST, _ASKED // size), np.random.default_rng(random_state)
    at_once = max(1, _BATCH // size)
    flips = unknown = 0
    for first in range(0, count, at_once):
        rows = uniform_rows(layout, rng, min(at_once, count - first))
        labels = np.asarray(decide(values.rows(rows)), dtype=np.int64).reshape(len(rows), size)
        _, flip = settled(labels, np.ones(size, dtype=bool))
        flips += int(flip.sum())
        rest = np.flatnonzero(~flip & ((labels < 0).any(axis=1) | (not values.complete)))
        unknown += int((~same(rows[rest])).sum()) if same is not None and len(rest) else len(rest)
        if hear is not None and flip.any():
            hear(rows[flip], labels[flip])
    low, _ = share_limits(flips, count, confidence=0.95)
    _, high = share_limits(flips + unknown, count, confidence=0.95)
    return Sampled(flips / count, float(low), float(high), count)


def changed_people(
    problem: AuditProblem, same: Callable[[FloatArray], BoolArray] | None, values: FloatArray
) -> tuple[BoolArray, BoolArray]:
    """Whose decision is the same for all sensitive values, and whose is not, (n,) each; as an audit counts them.

    Parameters
    ----------
    problem : AuditProblem
    same : callable, optional
        Which rows of values are proved to keep their decision, if not every sensitive value can be asked about.
    values : float array of shape (n, P)
        The people.
    """
    found = sensitive_twins(problem)
    if found is None:
        return np.ones(problem.n, dtype=bool), np.zeros(problem.n, dtype=bool)
    kept = ~found.changed
    if not found.exact:
        kept[kept] = same(values[kept]) if same is not None and kept.any() else False
    return kept, found.changed


def proved_same(family: Any, values: SensitiveValues, rows: FloatArray) -> BoolArray:
    """Which rows of values keep their decision over all sensitive values, by what was read off the model, (n,)."""
    layout, size = family.layout, len(values.low)
    found = np.zeros(len(rows), dtype=bool)
    for first in range(0, len(rows), _AT_ONCE):
        own = rows[first : first + _AT_ONCE]
        allowed = np.zeros((len(own), layout.n_categories), dtype=np.uint8)
        for i in np.flatnonzero(layout.is_category):
            allowed[np.arange(len(own)), layout.offset[i] + own[:, i].astype(np.int64)] = 1
        each = np.repeat(np.arange(len(own)), size)
        there = values.put(layout, Regions(own, own, allowed).take(each), np.tile(np.arange(size), len(own)))
        label, _, _ = family.decide(there, family.state(len(each)))
        labels = np.asarray(label, dtype=np.int64).reshape(len(own), size)
        found[first : first + _AT_ONCE] = settled(labels, values.covers)[0]
    return found


def settled(labels: IntArray, covers: Any) -> tuple[Any, Any]:
    """Which rows of labels (n, S) keep their decision over all values, and which have two that differ.

    Examples
    --------
    >>> settled(np.array([[1, 1], [0, 1], [1, -1]]), np.array([True, True]))
    (array([ True, False, False]), array([False,  True, False]))
    """
    cover = labels[:, covers]
    same = (cover >= 0).all(axis=1) & (cover == cover[:, :1]).all(axis=1)
    lowest = np.where(labels >= 0, labels, np.iinfo(np.int64).max).min(axis=1)
    return same, (labels.max(axis=1) > lowest) & (labels.max(axis=1) >= 0)
