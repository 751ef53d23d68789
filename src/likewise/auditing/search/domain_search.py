"""The worst valid rows for any model at all: moves of one and of two columns, from each person, over the whole domain.

Nothing is asked of the model but its loss. Every row that is tried serves every λ of a grid; what is found for a person
depends on that person and the choices alone, never on who else is audited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.bounds.table_layout import IntArray, TableLayout
from likewise.core.arrays import FloatArray

__all__ = ["DomainMoves", "DomainRows", "search_domain"]

_STEPS = (1.0, 2.0, 5.0, 10.0, 25.0)
_SHARES = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
_PEOPLE_AT_ONCE = 32
# As the exact solvers have it: a move costs nothing when d² is this small a share of its squared length.
_FREE = 1e-9


@dataclass(frozen=True)
class DomainMoves:
    """What a search of the domain tries.

    Parameters
    ----------
    beam : int, default=2
        Rows per person and λ that are moved on from in each round.
    rounds : int, default=12
        At most so many; a person whom no move improves is done.
    pairs : int, default=10
        Of the best moves of one column so many are tried two by two.
    grid : int, default=9
        Values over a number's range that are tried besides steps from where the row stands.
    cuts : mapping of str to sequence of float, optional
        Thresholds of a tree model by column, in original units: the values next to each are tried.

    Examples
    --------
    >>> DomainMoves(beam=1).rounds
    12
    """

    beam: int = 2
    rounds: int = 12
    pairs: int = 10
    grid: int = 9
    cuts: Mapping[str, Sequence[float]] | None = None


@dataclass(frozen=True, eq=False)
class DomainRows:
    """The best row found for each person and λ.

    Parameters
    ----------
    rows : float array of shape (n, L, d)
        Encoded, valid.
    loss, cost : float arrays of shape (n, L)
        Loss and squared fair distance.
    calls : int
        Rows that the model was asked about.
    """

    rows: FloatArray
    loss: FloatArray
    cost: FloatArray
    calls: int


def search_domain(
    losses: Callable[[FloatArray, Any], FloatArray],
    domain: Any,
    metric: Any,
    X: FloatArray,
    targets: Any,
    lambdas: Sequence[float],
    *,
    starts: FloatArray | None = None,
    moves: DomainMoves | None = None,
) -> DomainRows:
    """Search valid rows for the largest loss − λ d², for each person and each λ.

    Parameters
    ----------
    losses : callable (rows (m, d), targets (m,)) -> (m,)
        Of encoded valid rows.
    domain : TabularDomain, BoxDomain or sequence of Column
    metric : FairMetric
        On encoded rows.
    X : float array of shape (n, d)
        The people, encoded.
    targets : array of shape (n,)
        What `losses` takes for them.
    lambdas : sequence of float
        λ ≥ 0; inf stands for moves that cost nothing.
    starts : float array of shape (n, s, d), optional
        More rows to begin from, such as the best candidates.
    moves : DomainMoves, optional

    Returns
    -------
    DomainRows

    Examples
    --------
    >>> from likewise.domains import BoxDomain
    >>> from likewise.fair_metrics import euclidean
    >>> found = search_domain(
    ...     lambda X, y: (X[:, 0] > 0.5) * 1.0, BoxDomain([0.0], [1.0]), euclidean(1),
    ...     np.array([[0.4]]), np.array([0]), [1.0],
    ...     moves=DomainMoves(cuts={"x0": [0.5]}),
    ... )
    >>> found.rows.round(3).tolist(), found.loss.tolist()
    ([[[0.5]]], [[1.0]])
    """
    layout = TableLayout.of(domain)
    X, targets = np.asarray(X, dtype=np.float64), np.asarray(targets)
    choices = moves or DomainMoves()
    price = np.asarray(lambdas, dtype=np.float64)
    parts = []
    for first in range(0, len(X), _PEOPLE_AT_ONCE):
        at = slice(first, first + _PEOPLE_AT_ONCE)
        search = _Search(losses, layout, metric, X[at], targets[at], price, choices)
        parts.append(search.run(None if starts is None else starts[at]))
    rows, loss, cost = (np.concatenate([part[k] for part in parts]) for k in range(3))
    return DomainRows(rows, loss, cost, sum(part[3] for part in parts))


class _Search:
    """A few people: the best rows of each so far, and what is tried next."""

    def __init__(
        self,
        losses: Callable[[FloatArray, Any], FloatArray],
        layout: TableLayout,
        metric: Any,
        X: FloatArray,
        targets: Any,
        price: FloatArray,
        choices: DomainMoves,
    ) -> None:
        self.ask, self.layout, self.metric, self.targets = losses, layout, metric, targets
        self.price, self.choices, self.n = price, choices, len(X)
        self.own = layout.values(X)
        self.origin = layout.encode(self.own)
        self.largest = max(metric.scale, float((metric.scale + metric.values).max(initial=0.0)))
        self.calls = 0
        self.options = [self._options(i) for i in range(layout.n_columns)]

    def run(self, starts: FloatArray | None) -> tuple[FloatArray, FloatArray, FloatArray, int]:
        """Return the best rows (n, L, d), their losses and costs (n, L), and the number of calls."""
        n, width = self.n, len(self.price)
        beam = self.choices.beam
        # Best rows by person, λ and rank.
        self.values = np.repeat(self.own[:, None, None, :], width, axis=1).repeat(beam, axis=2)
        self.score = np.full((n, width, beam), -np.inf)
        self.loss, self.cost = np.zeros((n, width, beam)), np.zeros((n, width, beam))
        everyone = np.arange(n)
        self._offer(everyone, self.own)
        if starts is not None:
            for s in range(starts.shape[1]):
                self._offer(everyone, self._within(everyone, self.layout.values(starts[:, s])))
        going = everyone
        for _ in range(self.choices.rounds):
            before = self.score[going, :, 0].copy()
            going_rows, from_rows = self._beam(going)
            tried = self._moves(going_rows, from_rows)
            scores = self._offer(*tried)
            self._offer(*self._pairs(going_rows, from_rows, tried, scores))
            better = (self.score[going, :, 0] > before + 1e-12).any(axis=1)
            going = going[better]
            if not len(going):
                break
        rows = self.layout.encode(self.values[:, :, 0].reshape(n * width, -1)).reshape(n, width, -1)
        return rows, self.loss[:, :, 0], self.cost[:, :, 0], self.calls

    def _options(self, column: int) -> Any:
        """Values of a column that are tried whatever the row: categories, a grid of numbers, beside thresholds."""
        known = self.layout.columns[column]
        if known.immutable:
            return None
        if known.kind == "categorical":
            return np.arange(len(known.categories), dtype=np.float64)
        fixed = np.zeros(0)
        cuts = (self.choices.cuts or {}).get(known.name)
        if cuts is not None:
            at = np.asarray(cuts, dtype=np.float64)
            beyond = np.floor(at) + 1.0 if known.kind == "integer" else np.nextafter(at, np.inf)
            fixed = np.concatenate([np.floor(at) if known.kind == "integer" else at, beyond])
        elif np.isfinite(known.lower) and np.isfinite(known.upper):
            fixed = np.linspace(known.lower, known.upper, self.choices.grid)
        return np.unique(np.rint(fixed)) if known.kind == "integer" else np.unique(fixed)

    def _beam(self, people: IntArray) -> tuple[IntArray, FloatArray]:
        """Distinct rows to move on from: who, and their values."""
        found = self.values[people].reshape(len(people), -1, self.layout.n_columns)
        real = np.isfinite(self.score[people]).reshape(len(people), -1)
        who, rows = [], []
        for i, person in enumerate(people):
            distinct = np.unique(found[i][real[i]], axis=0)
            who.append(np.full(len(distinct), person))
            rows.append(distinct)
        return np.concatenate(who), np.concatenate(rows)

    def _moves(self, who: IntArray, rows: FloatArray) -> tuple[IntArray, FloatArray]:
        """Every move of one column from every row; rows stay in blocks of equal length, one block per row."""
        per_column = []
        for i, known in enumerate(self.layout.columns):
            fixed = self.options[i]
            if fixed is None:
                continue
            if known.kind == "categorical":
                values = np.tile(fixed, (len(rows), 1))
            else:
                values = self._numbers(i, rows[:, i], self.own[who, i], fixed)
            moved = np.repeat(rows[:, None, :], values.shape[1], axis=1)
            moved[:, :, i] = values
            per_column.append(moved)
        if not per_column:
            return who[:0], rows[:0]
        together = np.concatenate(per_column, axis=1)
        self._block = together.shape[1]
        return np.repeat(who, self._block), together.reshape(-1, rows.shape[1])

    def _numbers(self, column: int, now: FloatArray, own: FloatArray, fixed: FloatArray) -> FloatArray:
        """Values of a number to try from each row: steps, back to the person, and the fixed ones."""
        known = self.layout.columns[column]
        steps = np.array(_STEPS) if known.kind == "integer" else np.array(_SHARES) * known.scale
        around = now[:, None] + np.concatenate([-steps, steps])[None, :]
        values = np.concatenate([own[:, None], around, np.tile(fixed, (len(now), 1))], axis=1)
        low, high = np.minimum(known.lower, own)[:, None], np.maximum(known.upper, own)[:, None]
        return np.asarray(np.clip(values, low, high))

    def _pairs(
        self, who: IntArray, rows: FloatArray, tried: tuple[IntArray, FloatArray], scores: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """The best moves of different columns, two by two, for every λ."""
        if not len(tried[0]) or self.choices.pairs < 2:
            return tried[0][:0], tried[1][:0]
        block = tried[1].reshape(len(rows), self._block, -1)
        score = scores.reshape(len(rows), self._block, -1)
        first, second = np.triu_indices(min(self.choices.pairs, self._block), 1)
        found_who, found_rows = [], []
        for k in range(len(self.price)):
            stays = (block == rows[:, None, :]).all(axis=2)
            worth = np.where(stays, -np.inf, score[:, :, k])
            best = np.argsort(-worth, axis=1, kind="stable")[:, : self.choices.pairs]
            top = np.take_along_axis(block, best[:, :, None], axis=1)
            one, two = top[:, first], top[:, second]
            base = rows[:, None, :]
            joined = np.where(two != base, two, one)
            different = ((one != base) & (two != base)).sum(axis=2) == 0
            keep = different.ravel()
            found_who.append(np.repeat(who, len(first))[keep])
            found_rows.append(joined.reshape(-1, rows.shape[1])[keep])
        return np.concatenate(found_who), np.concatenate(found_rows)

    def _within(self, people: IntArray, values: FloatArray) -> FloatArray:
        """Rows brought into each person's domain: immutable columns are theirs, numbers within range."""
        values = values.copy()
        for i, known in enumerate(self.layout.columns):
            own = self.own[people, i]
            if known.immutable:
                values[:, i] = own
            elif known.kind != "categorical":
                low, high = np.minimum(known.lower, own), np.maximum(known.upper, own)
                values[:, i] = np.clip(values[:, i], low, high)
        return values

    def _offer(self, people: IntArray, values: FloatArray) -> FloatArray:
        """Score rows under every λ and keep the best of each person; return the scores (m, L)."""
        if not len(people):
            return np.zeros((0, len(self.price)))
        rows = self.layout.encode(values)
        self.calls += len(rows)
        loss = np.asarray(self.ask(rows, self.targets[people]), dtype=np.float64)
        delta = rows - self.origin[people]
        cost = np.asarray(self.metric.squared_norm(delta))
        nothing = cost <= _FREE * self.largest * (delta**2).sum(axis=1)
        score = np.empty((len(rows), len(self.price)))
        for k, lam in enumerate(self.price):
            if np.isinf(lam):
                score[:, k] = np.where(nothing, loss, -np.inf)
            else:
                score[:, k] = loss - lam * cost
            self._keep(
                k, people, values, loss, np.where(nothing, 0.0, cost) if np.isinf(lam) else cost, score[:, k]
            )
        return score

    def _keep(
        self,
        k: int,
        people: IntArray,
        values: FloatArray,
        loss: FloatArray,
        cost: FloatArray,
        score: FloatArray,
    ) -> None:
        beam = self.choices.beam
        order = np.lexsort((-score, people))
        who = people[order]
        starts = np.flatnonzero(np.append(True, who[1:] != who[:-1]))
        ends = np.append(starts[1:], len(who))
        for start, end in zip(starts, ends, strict=True):
            person = who[start]
            if score[order[start]] <= self.score[person, k, -1]:
                continue
            for at in order[start:end]:
                if score[at] <= self.score[person, k, -1]:
                    break
                if (
                    (self.values[person, k] == values[at])
                    .all(axis=1)[np.isfinite(self.score[person, k])]
                    .any()
                ):
                    continue
                rank = int(np.searchsorted(-self.score[person, k], -score[at], side="right"))
                if rank >= beam:
                    break
                for held, new in (
                    (self.values, values),
                    (self.score, score),
                    (self.loss, loss),
                    (self.cost, cost),
                ):
                    held[person, k, rank + 1 :] = held[person, k, rank:-1].copy()
                    held[person, k, rank] = new[at]
