"""The search of the domain around a few people at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from likewise.auditing.bounds.table_layout import TableLayout
from likewise.auditing.search.domain.column_options import options_of
from likewise.auditing.search.domain.proposals import Proposals, Scale
from likewise.auditing.search.domain.rounds import Rounds, single_moves
from likewise.auditing.search.domain.visited_rows import VisitedRows
from likewise.auditing.support.frontier import Floats, Frontier, Ints

__all__ = ["Effort", "FoundForPeople", "PeopleAtOnce"]

# Of the most promising moves of one column so many are tried two by two.
_PAIRED = 12
# Options of all people at once, times columns: bounds the memory.
_CELLS = 2_000_000
# A number without cuts has about so many options.
_STEPS = 64


@dataclass(frozen=True)
class Effort:
    """How hard to search.

    Parameters
    ----------
    beam, rounds, width, calls : int
        As in `DomainSearch`.
    """

    beam: int = 2
    rounds: int = 8
    width: int = 32
    calls: int = 1_000


@dataclass(frozen=True, eq=False)
class FoundForPeople:
    """Rows that are worth keeping, person by person, the person's own first.

    Parameters
    ----------
    rows : float array of shape (m, d)
        Encoded, valid.
    person : int array of shape (m,)
        Rising.
    loss, cost : float arrays of shape (m,)
        Loss and squared fair distance.
    calls : int
        Rows that the model was asked about.
    """

    rows: Floats
    person: Ints
    loss: Floats
    cost: Floats
    calls: int

    def best(self, lam: float) -> Ints:
        """Return the place of the row with the largest loss − λ d² of each person, (n,); λ = ∞ for rows at no distance."""
        price = np.where(self.cost > 0, np.inf, 0.0) if np.isinf(lam) else lam * self.cost
        score = self.loss - price
        order = np.lexsort((-score, self.person))
        first = np.searchsorted(self.person[order], np.arange(int(self.person[-1]) + 1))
        return np.asarray(order[first], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class PeopleAtOnce:
    """Everything about a search but the people.

    Parameters
    ----------
    losses : callable (rows of values (m, P), labels (m,)) -> (m,)
        The model itself, or what was read off it.
    layout : TableLayout
    metric : FairMetric
        Of encoded rows.
    lambdas : sequence of float
        The λ to search at; inf stands for moves that cost nothing.
    furthest : float
        Squared fair distance beyond which no column is moved alone.
    cuts : mapping of str to sequence of float, optional
        As in `options_of`.
    scale : Scale
        Where the effects of columns add up.
    effort : Effort

    Examples
    --------
    >>> from likewise.domains import BoxDomain
    >>> from likewise.fair_metrics import euclidean
    >>> search = PeopleAtOnce(
    ...     lambda values, y: (values[:, 0] > 0.5) * 1.0, TableLayout.of(BoxDomain([0.0], [1.0])), euclidean(1), [1.0],
    ...     cuts={"x0": [0.5]},
    ... )
    >>> found = search.run(np.array([[0.4]]), np.array([0]))
    >>> found.rows[found.best(1.0)].round(3).tolist(), found.loss[found.best(1.0)].tolist()
    ([[0.5]], [1.0])
    """

    losses: Callable[[Floats, Any], Floats]
    layout: TableLayout
    metric: Any
    lambdas: Sequence[float]
    furthest: float = np.inf
    cuts: Mapping[str, Sequence[float]] | None = None
    scale: Scale = field(default_factory=lambda: Scale(margins=False))
    effort: Effort = field(default_factory=Effort)

    @property
    def size(self) -> int:
        """How many people are searched at once."""
        known = self.cuts or {}
        count = sum(
            len(c.categories) + len(known.get(c.name, range(_STEPS))) + 1 for c in self.layout.columns
        )
        return int(np.clip(_CELLS // (count * self.layout.n_columns), 16, 256))

    def run(self, X: Floats, labels: Any) -> FoundForPeople:
        """Search around people.

        Parameters
        ----------
        X : float array of shape (n, d)
            Encoded.
        labels : array of shape (n,)
        """
        layout, effort = self.layout, self.effort

        def ask(values: Floats, person: Ints) -> Floats:
            return self.losses(values, labels[person])

        own = np.asarray(layout.values(X), dtype=np.float64)
        visited = VisitedRows(ask, options_of(layout, self.metric, own, self.cuts))
        effect = single_moves(visited, self.scale, furthest=self.furthest, most=max(effort.calls // 2, 1))
        propose = Proposals(visited.options, self.scale, effect, singles=_PAIRED, width=effort.width)
        Rounds(self.lambdas, effort.beam, effort.rounds, effort.calls).run(visited, propose)
        return self._worth_keeping(visited)

    def _worth_keeping(self, visited: VisitedRows) -> FoundForPeople:
        """The corners of everybody's frontier, and of the rows at no distance the one with the smallest loss.

        That one may be decided differently from a person whose own decision is the wrong one.
        """
        person, place = np.nonzero(np.isfinite(visited.loss))
        frontier = Frontier.from_points(
            base_loss=visited.loss[:, 0],
            row=person,
            squared_distance=visited.cost[person, place],
            loss=visited.loss[person, place],
            candidate=place,
        )
        free = np.where((visited.cost == 0) & np.isfinite(visited.loss), visited.loss, np.inf)
        best = free.argmin(axis=1)
        better = np.flatnonzero(best > 0)
        who = np.concatenate([frontier.row, better])
        at = np.concatenate([np.maximum(frontier.candidate, 0), best[better]])
        order = np.argsort(who, kind="stable")
        who, at = who[order], at[order]
        values = visited.options.values(who, visited.rows[who, at])
        rows = np.asarray(self.layout.encode(values), dtype=np.float64)
        return FoundForPeople(rows, who, visited.loss[who, at], visited.cost[who, at], visited.calls)
