"""The search for some people: every single move, change points of a black box, then rounds from the best rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.search.domain.proposals import Proposals, Scale
from likewise.auditing.search.domain.visited_rows import VisitedRows
from likewise.auditing.support.frontier import Floats, Ints

__all__ = ["Rounds", "moves_from", "single_moves"]


def single_moves(visited: VisitedRows, scale: Scale, *, furthest: float, most: int) -> Floats:
    """Ask about every option alone; return what each adds, (n, M), −∞ where it was not asked about.

    Parameters
    ----------
    visited : VisitedRows
        With the people's own rows.
    scale : Scale
    furthest : float
        Options at a larger squared fair distance are not asked about.
    most : int
        So many at most are asked about for a person, the nearest.
    """
    options = visited.options
    cost = options.cost(options.length, options.place)
    with np.errstate(invalid="ignore"):
        wanted = np.isfinite(options.value) & (cost <= furthest)
    wanted[:, options.own] = True
    if wanted.shape[1] > most:
        order = np.argsort(np.where(wanted, cost, np.inf), axis=1, kind="stable")
        np.put_along_axis(wanted, order[:, most:], False, axis=1)
        wanted[:, options.own] = True
    loss = moves_from(visited, np.tile(options.own, (visited.n, 1)), wanted)
    return np.asarray(scale.effect(loss) - scale.effect(visited.loss[:, :1]))


def moves_from(visited: VisitedRows, rows: Ints, wanted: Any) -> Floats:
    """Ask about options of everybody, each put alone into a row of theirs; return the losses, (n, M).

    Parameters
    ----------
    visited : VisitedRows
    rows : int array of shape (n, P)
    wanted : bool array of shape (n, M)
        Which options; the loss of others is −∞.
    """
    options = visited.options
    number = np.arange(len(options.column))
    made = np.repeat(rows[:, None, :], len(number), axis=1)
    made[:, number, options.column] = number
    place = visited.offer(made, wanted)
    loss = np.take_along_axis(visited.loss, np.maximum(place, 0), axis=1)
    return np.where(place >= 0, loss, -np.inf)


@dataclass(frozen=True)
class Rounds:
    """Rounds in which the best rows of each person and λ are moved on from.

    Parameters
    ----------
    lambdas : sequence of float
    beam : int
        Of the best rows so many are moved on from.
    rounds : int
        At most so many; a person whom no move improves is done.
    calls : int
        A person about whose rows the model was asked so often is done, too.
    """

    lambdas: Sequence[float]
    beam: int
    rounds: int
    calls: int

    def run(self, visited: VisitedRows, propose: Proposals) -> None:
        """Add rows to those visited, in place."""
        n, lambdas = visited.n, np.asarray(self.lambdas, dtype=np.float64)
        left = np.zeros((n, 0, len(lambdas)), dtype=bool)
        for _ in range(self.rounds):
            more = visited.loss.shape[1] - left.shape[1]
            left = np.concatenate([left, np.ones((n, more, len(lambdas)), dtype=bool)], axis=1)
            base = np.stack(
                [self._next(visited, lam, left[:, :, k]) for k, lam in enumerate(lambdas)], axis=1
            )
            base[visited.count >= self.calls] = -1
            who, which = np.nonzero(base >= 0)
            if not len(who):
                break
            at = base[who, which]
            left[who, at, which] = False
            rows, promise = propose(who, visited.rows[who, at], visited.loss[who, at], lambdas[which])
            width = rows.shape[1]
            offered = np.zeros((n, len(lambdas), width, rows.shape[2]), dtype=np.int64)
            wanted = np.zeros((n, len(lambdas), width), dtype=bool)
            offered[who, which], wanted[who, which] = rows, np.isfinite(promise)
            visited.offer(offered.reshape(n, -1, rows.shape[2]), wanted.reshape(n, -1))

    def _next(self, visited: VisitedRows, lam: float, left: Ints) -> Ints:
        """The best row of each person that was not moved on from yet, if it is among the best; else −1."""
        score = visited.score(lam)
        beam = min(self.beam, score.shape[1])
        best = np.argpartition(-score, beam - 1, axis=1)[:, :beam]
        value = np.take_along_axis(score, best, axis=1)
        usable = np.take_along_axis(left, best, axis=1) & np.isfinite(value)
        value = np.where(usable, value, -np.inf)
        chosen = value.argmax(axis=1)
        who = np.arange(len(score))
        return np.where(usable[who, chosen], best[who, chosen], -1).astype(np.int64)
