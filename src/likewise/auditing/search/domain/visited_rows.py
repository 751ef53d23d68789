"""The rows that were asked about for some people, as options, with loss and fair distance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from likewise.auditing.search.domain.column_options import Options
from likewise.auditing.support.frontier import Floats, Ints

__all__ = ["VisitedRows"]

# Losses are told apart to so many decimals: a model may round a row by where it stands among the others.
_DECIMALS = 10


@dataclass(eq=False)
class VisitedRows:
    """For each of n people, rows of options with what they attain; places without a row have a loss of −∞.

    Parameters
    ----------
    ask : callable (rows of values (m, P), people (m,)) -> losses (m,)
    options : Options
    rows : int array of shape (n, C, P)
    loss, cost : float arrays of shape (n, C)
    count : int array of shape (n,)
        Rows of each person.
    calls : int
        Rows that the model was asked about.
    """

    ask: Callable[[Floats, Ints], Floats]
    options: Options
    rows: Ints = field(init=False)
    loss: Floats = field(init=False)
    cost: Floats = field(init=False)
    count: Ints = field(init=False)
    calls: int = 0

    def __post_init__(self) -> None:
        n, width = len(self.options.value), self.options.layout.n_columns
        # Rows are known by a hash of their options; the numbers are fixed, so that nothing depends on a seed.
        draw = np.random.default_rng(0).integers(2**62, size=width + 1, dtype=np.int64)
        self._mix = (2 * draw + 1).astype(np.uint64)
        self._keys, self._places = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
        self.count = np.zeros(n, dtype=np.int64)
        self.rows = np.zeros((n, 0, width), dtype=np.int64)
        self.loss, self.cost = np.zeros((n, 0)), np.zeros((n, 0))
        self.offer(np.tile(self.options.own, (n, 1, 1)))

    @property
    def n(self) -> int:
        """Number of people."""
        return len(self.rows)

    def offer(self, rows: Ints, wanted: Any = True) -> Ints:
        """Ask about rows that were not asked about before, and keep them; return the places of all, (n, W).

        Parameters
        ----------
        rows : int array of shape (n, W, P)
        wanted : bool array of shape (n, W), optional
            Which of them are rows at all; the place of one that is not is −1.
        """
        n, width = rows.shape[:2]
        wanted = np.broadcast_to(np.asarray(wanted, dtype=bool), (n, width)).ravel()
        person, flat = np.repeat(np.arange(n), width), rows.reshape(n * width, -1)
        at = np.flatnonzero(wanted)
        key = self._key(person[at], flat[at])
        known = np.searchsorted(self._keys, key)
        old = self._keys[np.minimum(known, len(self._keys) - 1)] == key if len(self._keys) else known < 0
        fresh, first, which = np.unique(key[~old], return_index=True, return_inverse=True)
        # The new rows, each once, in the order of people.
        new = at[~old][np.sort(first)]
        order = np.argsort(np.argsort(first))
        place = np.full(n * width, -1, dtype=np.int64)
        place[at[old]] = self._places[known[old]]
        places = self._append(n, person[new], flat[new])
        place[at[~old]] = places[order[which]]
        merged = np.concatenate([self._keys, fresh])
        sort = np.argsort(merged, kind="stable")
        self._keys = merged[sort]
        self._places = np.concatenate([self._places, places[order]])[sort]
        return place.reshape(n, width)

    def _key(self, person: Ints, rows: Ints) -> Any:
        key = (rows.astype(np.uint64) * self._mix[:-1]).sum(axis=1, dtype=np.uint64)
        return key ^ ((person.astype(np.uint64) + np.uint64(1)) * self._mix[-1])

    def _append(self, n: int, person: Ints, rows: Ints) -> Ints:
        """Ask about rows of people in rising order; put each behind the person's others; return the places."""
        count = np.bincount(person, minlength=n)
        rank = np.arange(len(person)) - np.repeat(np.cumsum(count) - count, count)
        place = self.count[person] + rank
        self.count = self.count + count
        grow = int(self.count.max()) - self.loss.shape[1]
        if grow > 0:
            self.rows = np.concatenate(
                [self.rows, np.zeros((n, grow, rows.shape[1]), dtype=np.int64)], axis=1
            )
            self.loss = np.concatenate([self.loss, np.full((n, grow), -np.inf)], axis=1)
            self.cost = np.concatenate([self.cost, np.zeros((n, grow))], axis=1)
        if len(person):
            self.rows[person, place] = rows
            self.loss[person, place] = self.losses(self.options.values(person, rows), person)
            self.cost[person, place] = self.options.cost(*self.options.sums(person, rows))
        return place

    def losses(self, values: Floats, person: Ints) -> Floats:
        """Ask the model about rows of values, and count that."""
        self.calls += len(values)
        found = np.round(np.asarray(self.ask(values, person), dtype=np.float64), _DECIMALS)
        return np.asarray(found, dtype=np.float64)

    def score(self, lam: float) -> Floats:
        """Return loss − λ d² of every row, (n, C); for λ = ∞ the loss of rows at no distance."""
        if np.isinf(lam):
            return np.where(self.cost == 0, self.loss, -np.inf)
        return self.loss - lam * self.cost
