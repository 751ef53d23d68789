"""Which values of each column are tried for a person, and what each adds to the fair distance.

A row of a person is one option per column. With Σ = scale · I + Q diag(v) Qᵀ and the columns' encoded parts apart from
each other, its squared fair distance needs two sums over its options only: of squared lengths, and of Qᵀ(part).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from likewise.auditing.bounds.table_layout import TableLayout
from likewise.auditing.support.frontier import Floats, Ints
from likewise.domains.column import Column
from likewise.domains.decoding import rounding_of_values
from likewise.fair_metrics.metric import COSTS_NOTHING

__all__ = ["Options", "options_of"]

# A continuous number without cuts is tried at steps that begin with this share of its scale.
_FIRST_STEP = 2.0**-7
# Steps grow by this factor, so many times: across any range that is worth it.
_GROWTH, _STEPS = 2.0**0.5, 48
# On a scale that is not linear steps of an open range reach so far, in encoded units.
_WIDEST = 16.0
# Of a number with more cuts than this the nearest of each side are tried, and then ever fewer.
_MANY_CUTS, _NEAREST = 160, 32
# Relative error of a number that was encoded and decoded.
_ROUNDING = 2.0**-48


@dataclass(frozen=True, eq=False)
class Options:
    """Values that are tried, of all columns one after the other; the first of each column is the person's own.

    Parameters
    ----------
    layout : TableLayout
    metric : FairMetric
        Of encoded rows.
    column : int array of shape (M,)
        The column of each option.
    value : float array of shape (n, M)
        In original units, or the position of a category; NaN where a person does not have the option.
    length : float array of shape (n, M)
        ‖part‖², the squared length of the option's encoded move.
    place : float array of shape (n, M, k)
        Qᵀ part.
    """

    layout: TableLayout
    metric: Any
    column: Ints
    value: Floats
    length: Floats
    place: Floats

    @cached_property
    def own(self) -> Ints:
        """The option of each column that leaves a person where they are, (P,)."""
        return np.searchsorted(self.column, np.arange(self.layout.n_columns)).astype(np.int64)

    def values(self, person: Ints, rows: Ints) -> Floats:
        """Return rows of options (m, P) as rows of values (m, P)."""
        return np.asarray(self.value[person[:, None], rows])

    def sums(self, person: Ints, rows: Ints) -> tuple[Floats, Floats]:
        """Return the squared length (m,) and Qᵀδ (m, k) of rows of options (m, P)."""
        at = person[:, None]
        return self.length[at, rows].sum(axis=1), self.place[at, rows].sum(axis=1)

    def cost(self, length: Floats, place: Floats) -> Floats:
        """Return δᵀΣδ from the two sums, exactly 0 where it is rounding."""
        metric = self.metric
        values = np.asarray(metric.values)
        found = metric.scale * length + (place**2 * values).sum(axis=-1)
        top = max(metric.scale, float((metric.scale + values).max(initial=0.0)))
        return np.where(found <= COSTS_NOTHING * top * length, 0.0, found)


def options_of(
    layout: TableLayout, metric: Any, own: Floats, cuts: Mapping[str, Sequence[float]] | None
) -> Options:
    """Return the options of some people.

    Parameters
    ----------
    layout : TableLayout
    metric : FairMetric
        Of encoded rows.
    own : float array of shape (n, P)
        The people, as rows of values.
    cuts : mapping of str to sequence of float, optional
        Where a tree model splits each number, in original units. The nearest value behind each is an option; of a
        number without cuts the person's value plus and minus steps that double.

    Examples
    --------
    >>> from likewise.domains import BoxDomain
    >>> from likewise.fair_metrics import euclidean
    >>> box = TableLayout.of(BoxDomain([0.0], [1.0]))
    >>> options_of(box, euclidean(1), np.array([[0.4]]), {"x0": [0.2, 0.5]}).value.round(3)
    array([[0.4, 0.2, 0.5]])
    """
    parts: list[tuple[Floats, Floats, Floats]] = []
    numbers: list[int] = []
    for i, known in enumerate(layout.columns):
        mine = own[:, i]
        known_cuts = None if cuts is None else cuts.get(known.name)
        value = mine[:, None]
        if not known.immutable:
            value = np.concatenate([value, _more(known, mine, known_cuts)], axis=1)
        parts.append((value, *_moved(layout, metric, i, mine, value)))
        numbers += [i] * value.shape[1]
    value, length, place = (np.concatenate([part[k] for part in parts], axis=1) for k in range(3))
    return Options(layout, metric, np.array(numbers, dtype=np.int64), value, length, place)


def _more(known: Column, own: Floats, cuts: Sequence[float] | None) -> Floats:
    """Values of a column besides a person's own, (n, m)."""
    if known.kind == "categorical":
        codes = np.tile(np.arange(len(known.categories), dtype=np.float64), (len(own), 1))
        return np.where(codes == own[:, None], np.nan, codes)
    whole = known.kind == "integer"
    if cuts is not None:
        at = np.asarray(cuts, dtype=np.float64)
        at = _nearest(at, own) if len(at) > _MANY_CUTS else at[None, :]
        below = np.floor(at) if whole else at
        above = np.floor(at) + 1.0 if whole else at
        if not whole:
            # As far behind the cut as rounding on the way through the encoding reaches.
            away = (
                _ROUNDING * (np.abs(at) + abs(known.mean))
                if known.curve is None
                else rounding_of_values(known, at, 2.0)
            )
            below, above = below - away, above + away
        value = np.where(own[:, None] > at, below, above)
    elif known.curve is None:
        value = own[:, None] + _steps(known)[None, :]
    else:
        value = _curved_steps(known, own)
    inside = (value >= known.lower) & (value <= known.upper) & (value != own[:, None])
    return np.where(inside, value, np.nan)


def _nearest(cuts: Floats, own: Floats) -> Floats:
    """The cuts next to each person's value, and others by their rank from there, ever further apart; (n, m)."""
    further = np.geomspace(_NEAREST, len(cuts), 16).astype(np.int64)
    rank = np.unique(np.concatenate([np.arange(_NEAREST), further]))
    place = np.searchsorted(cuts, own)[:, None] + np.concatenate([rank, -1 - rank])[None, :]
    inside = (place >= 0) & (place < len(cuts))
    return np.where(inside, cuts[np.clip(place, 0, len(cuts) - 1)], np.nan)


def _steps(known: Column) -> Floats:
    """Growing steps to both sides, up to the width of the range."""
    whole = known.kind == "integer"
    steps = (1.0 if whole else _FIRST_STEP * known.scale) * _GROWTH ** np.arange(_STEPS)
    steps = np.unique(np.rint(steps)) if whole else steps
    width = known.upper - known.lower
    if np.isfinite(width):
        steps = steps[steps <= width]
    return np.concatenate([-steps, steps])


def _curved_steps(known: Column, own: Floats) -> Floats:
    """Values at growing steps in the encoding to both sides, and of whole numbers the next ones; (n, m)."""
    width = float(np.diff(known.place([known.lower, known.upper]))[0])
    steps = _FIRST_STEP * _GROWTH ** np.arange(_STEPS)
    steps = steps[steps <= (width if np.isfinite(width) else _WIDEST)]
    value = known.number(known.place(own)[:, None] + np.concatenate([-steps, steps])).astype(np.float64)
    if known.kind != "integer":
        return value
    return np.concatenate([own[:, None] + np.array([-1.0, 1.0]), np.rint(value)], axis=1)


def _moved(
    layout: TableLayout, metric: Any, column: int, own: Floats, value: Floats
) -> tuple[Floats, Floats]:
    """Squared length (n, m) and Qᵀ (n, m, k) of the moves from people's own values to others."""
    known = layout.columns[column]
    # A Euclidean metric may be of any width.
    basis = np.asarray(metric.basis) if metric.n_features else np.zeros((layout.width, 0))
    if known.width == 1:
        if known.curve is None:
            step = (value - own[:, None]) / (1.0 if known.kind == "categorical" else known.scale)
        else:
            step = known.place(value) - known.place(own)[:, None]
        return step**2, step[:, :, None] * basis[known.start]
    codes = np.where(np.isfinite(value), value, 0.0).astype(np.int64)
    mine = own.astype(np.int64)
    place = basis[known.start + codes] - basis[known.start + mine][:, None, :]
    return 2.0 * (codes != mine[:, None]), place
