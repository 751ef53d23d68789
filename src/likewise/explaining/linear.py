"""The cheapest change for a linear model: columns one after the other, below a bound for every price of a point of score.

Every option of a column has a cost and a gain in score, and gains add up. For a price λ of a point of score the columns that
are left cost at least λ · (what is still needed) + Σ min (cost − λ · gain); the highest of these over many λ bounds them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.core.checks import BoolArray, FloatArray
from likewise.explaining.engine import Ask, Effort, Least
from likewise.explaining.moves import Clause
from likewise.explaining.trees import surcharge

if TYPE_CHECKING:
    from likewise.auditing.bounds.networks import NetworkFamily
    from likewise.explaining.moves import Moves

# Steps of one number that are listed, at most; with more of them nothing is proved.
_MOST = 2_000_000
_PRICES = 64


@dataclass(frozen=True, eq=False)
class _Options:
    """Options of one column, the cheapest first. `corners` are those among which cost − λ · gain is least for some λ."""

    column: int
    values: FloatArray
    costs: FloatArray
    gains: FloatArray
    corners: Any
    # Each costs more and gains more than the one before.
    rising: bool


class LinearEngine:
    """Least changes of a linear model of two classes that was read and checked."""

    def __init__(self, family: NetworkFamily, moves: Moves, favourable: int) -> None:
        self.moves, self.layout = moves, family.layout
        form = family.net.linear_form(regression=False)
        assert form is not None
        assert len(form[0]) == 2
        coef, intercept = form
        self._weights = coef[favourable] - coef[1 - favourable]
        self._bias = float(intercept[favourable] - intercept[1 - favourable])
        self._net = family.net

    def least(
        self, own: FloatArray, fixed: BoolArray, ask: Ask, effort: Effort, *, fewest: bool = False
    ) -> Least:
        """The cheapest change of one person; see `Engine`."""
        extra = surcharge(self.moves) if fewest else 0.0
        x = self.layout.encode(own[None, :])
        need = -float(x[0] @ self._weights + self._bias)
        sizes = np.maximum(
            np.abs(x), [[max(abs(e) for e in self._ends(j)) for j in range(self.layout.width)]]
        )
        rounding = 4.0 * float(self._net.rounding(sizes)[0]) + 1e-12 * (1.0 + abs(need))
        clauses = self.moves.active(own)
        spoken = {atom.column for clause in clauses for atom in clause}
        free = [p for p in range(len(own)) if self.moves.actions[p].actionable and not fixed[p]]
        found = [self._options(p, float(own[p]), extra, p in spoken) for p in free]
        search = _Search(
            own,
            [one for one in found if len(one.values) > 1],
            clauses,
            need - rounding,
            2.0 * rounding,
            ask,
            effort,
        )
        return search.run()

    def _ends(self, j: int) -> tuple[float, float]:
        column = self.layout.columns[int(self.layout.owner[j])]
        if column.categories:
            return 0.0, 1.0
        low, high = column.place(np.array([column.lower, column.upper]))
        return float(low), float(high)

    def _options(self, p: int, own: float, extra: float, spoken: bool) -> _Options:
        """What a column offers; options that gain no more than a cheaper one are left out unless a rule speaks of them."""
        column, action = self.layout.columns[p], self.moves.actions[p]
        weights = self._weights[column.slice]
        if not weights.any() and not spoken:
            values = np.array([own])
        elif column.categories:
            values = np.arange(len(column.categories), dtype=np.float64)
        else:
            values = self._numbers(p, own, 0.0 if spoken else float(np.sign(weights[0])))
        if column.categories:
            costs = np.full(len(values), action.cost)
            per = np.array([0.0, weights[0]]) if column.is_binary else weights
            gains = per[values.astype(np.int64)] - per[int(own)]
        else:
            costs = self.moves.number_costs(p, np.array([own]), values)
            gains = (column.place(values) - column.place(np.array([own]))) * weights[0]
        costs = np.where(values == own, 0.0, costs + extra)
        order = np.lexsort((-gains, costs))
        values, costs, gains = values[order], costs[order], gains[order]
        if not spoken:
            keep = np.append(True, gains[1:] > np.maximum.accumulate(gains)[:-1])
            values, costs, gains = values[keep], costs[keep], gains[keep]
        straight = not column.categories and self.moves.straight(p) and not spoken
        at = np.unique([0, min(1, len(values) - 1), len(values) - 1]) if straight else np.arange(len(values))
        return _Options(p, values, costs, gains, at, not spoken)

    def _numbers(self, p: int, own: float, sign: float) -> FloatArray:
        """Numbers within reach, on the side that gains (`sign`), or on both."""
        low, high = self.moves.ends(p, np.array([own]))
        step = self.moves.steps[p]
        down = np.floor((own - low[0]) / step + 1e-9) if sign <= 0 else 0.0
        up = np.floor((high[0] - own) / step + 1e-9) if sign >= 0 else 0.0
        thin = max(1.0, np.ceil((down + up) / _MOST))
        steps = np.arange(-(down // thin), up // thin + 1) * thin
        values = self.moves.stepped(p, np.full(len(steps), own), steps)
        return np.asarray(values[(values >= low[0]) & (values <= high[0])])


class _Search:
    """Depth first, the column with most options last: there the cheapest option that gains enough is looked up."""

    def __init__(
        self,
        own: FloatArray,
        columns: list[_Options],
        clauses: tuple[Clause, ...],
        need: float,
        unsure: float,
        ask: Ask,
        effort: Effort,
    ) -> None:
        self.unsure = unsure
        self.columns = sorted(columns, key=lambda one: (one.rising, len(one.values), one.column))
        self.row, self.clauses, self.need, self.ask = own.copy(), clauses, need, ask
        self.best: float = np.inf
        self.found: FloatArray | None = None
        self.looked, self.effort, self.clock = 0, effort, time.process_time()
        corners = [(one.costs[one.corners], one.gains[one.corners]) for one in self.columns]
        rates = np.concatenate([c[g > 0] / g[g > 0] for c, g in corners] or [np.zeros(0)])
        self.prices = np.unique(np.quantile(rates, np.linspace(0, 1, _PRICES))) if len(rates) else np.zeros(1)
        # For every price, what the columns from i on cost at least, less the price of their gain.
        self.tail = np.zeros((len(corners) + 1, len(self.prices)))
        self.most = np.zeros(len(corners) + 1)
        for i in range(len(corners) - 1, -1, -1):
            costs, gains = corners[i]
            least = (costs[None, :] - self.prices[:, None] * gains[None, :]).min(axis=1)
            self.tail[i] = self.tail[i + 1] + least
            self.most[i] = self.most[i + 1] + gains.max()

    def run(self) -> Least:
        """The cheapest change, or a bracket if the time was too short."""
        lower = float(self._bounds(0, np.zeros(1), np.array([self.need]))[0])
        done = self._open(0, 0.0, self.need)
        if not done or any(len(one.values) >= _MOST for one in self.columns):
            return Least("bracket", self.best, min(lower, self.best), self.found, self.looked)
        if self.found is None:
            return Least("none", np.inf, np.inf, None, self.looked)
        return Least("proved", self.best, self.best, self.found, self.looked)

    def _bounds(self, i: int, costs: FloatArray, needs: FloatArray) -> FloatArray:
        """Least total cost if so much has been spent on the columns before i and so much is still needed."""
        rest = (self.prices[None, :] * needs[:, None] + self.tail[i][None, :]).max(axis=1)
        return np.where(needs > self.most[i], np.inf, costs + np.maximum(rest, 0.0))

    def _open(self, i: int, cost: float, need: float) -> bool:
        """Look at the options of column i; whether all that could be cheaper were."""
        if i == len(self.columns):
            if need <= 0.0:
                self._take(cost, need)
            return True
        one = self.columns[i]
        if i == len(self.columns) - 1 and one.rising:
            order = np.arange(int(np.searchsorted(one.gains, need)), len(one.values))
            bounds = cost + one.costs
        else:
            bounds = self._bounds(i + 1, cost + one.costs, need - one.gains)
            order = np.argsort(bounds, kind="stable")
        own, done = self.row[one.column], True
        for j in order:
            # Sums of floats in another order differ by rounding; what is equal is not cheaper.
            if bounds[j] >= self.best - 1e-12:
                break
            self.looked += 1
            if (
                self.looked > 20 * self.effort.regions
                or time.process_time() - self.clock > self.effort.seconds
            ):
                done = False
                break
            self.row[one.column] = one.values[j]
            done = self._open(i + 1, cost + float(one.costs[j]), need - float(one.gains[j]))
            if not done:
                break
        self.row[one.column] = own
        return done

    def _take(self, cost: float, need: float) -> None:
        """Keep a row that is cheaper and breaks no rule; near the line the model itself is asked."""
        if cost >= self.best:
            return
        for clause in self.clauses:
            if all(atom.holds(self.row[atom.column : atom.column + 1])[0] for atom in clause):
                return
        if need < -self.unsure or self.ask(self.row[None, :])[0]:
            self.best, self.found = cost, self.row.copy()
