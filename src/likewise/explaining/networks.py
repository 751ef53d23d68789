"""The cheapest change for linear models and for ReLU networks.

Linear models: columns one after the other, below a bound for every price of a point of score. Every option of a column has a
cost and a gain in score, and gains add up. For a price λ of a point of score the columns that are left cost at least
λ · (what is still needed) + Σ min (cost − λ · gain); the highest of these over many λ bounds them.

Networks: a mixed-integer program, solved by HiGHS. The solver works to a tolerance, so what it proves is a bound with that
tolerance taken off; what it finds is asked of the model. If it finds a row only just beyond the line, the line is moved by a
little and the program solved once more.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from likewise.auditing.bounds.regions import encoded_box, everything
from likewise.core.checks import BoolArray, FloatArray
from likewise.explaining.engine import Ask, Effort, Least, SearchEngine
from likewise.explaining.moves import Clause, holds

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
        self._sizes = np.maximum(*np.abs(encoded_box(self.layout, everything(self.layout))))

    def least(
        self, own: FloatArray, fixed: BoolArray, ask: Ask, effort: Effort, *, fewest: bool = False
    ) -> Least:
        """The cheapest change of one person; see `Engine`."""
        extra = self.moves.surcharge if fewest else 0.0
        x = self.layout.encode(own[None, :])
        need = -float(x[0] @ self._weights + self._bias)
        rounding = 4.0 * float(self._net.rounding(np.maximum(np.abs(x), self._sizes))[0]) + 1e-12 * (
            1.0 + abs(need)
        )
        clauses = self.moves.active(own)
        in_rules = {atom.column for clause in clauses for atom in clause}
        free = [p for p in range(len(own)) if self.moves.actions[p].actionable and not fixed[p]]
        found = [self._options(p, float(own[p]), extra, p in in_rules) for p in free]
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

    def _options(self, p: int, own: float, extra: float, in_rules: bool) -> _Options:
        """What a column offers; options that gain no more than a cheaper one are left out unless a rule names them."""
        column, action = self.layout.columns[p], self.moves.actions[p]
        weights = self._weights[column.slice]
        if not weights.any() and not in_rules:
            values = np.array([own])
        elif column.categories:
            values = np.arange(len(column.categories), dtype=np.float64)
        else:
            # Numbers within reach: on the side that gains, or on both.
            (low,), (high,) = self.moves.ends(p, np.array([own]))
            down, up = self.moves.reach(p, own)
            if not in_rules:
                down, up = down * (weights[0] <= 0), up * (weights[0] >= 0)
            thin = max(1.0, np.ceil((down + up) / _MOST))
            values = self.moves.moved(p, own, np.arange(-(down // thin), up // thin + 1) * thin)
            values = values[(values == own) | (values >= low) & (values <= high)]
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
        if not in_rules:
            keep = np.append(True, gains[1:] > np.maximum.accumulate(gains)[:-1])
            values, costs, gains = values[keep], costs[keep], gains[keep]
        straight = not column.categories and self.moves.straight(p) and not in_rules
        at = np.unique([0, min(1, len(values) - 1), len(values) - 1]) if straight else np.arange(len(values))
        return _Options(p, values, costs, gains, at, not in_rules)


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
        if any(holds(clause, self.row[None])[0] for clause in self.clauses):
            return
        if need < -self.unsure or self.ask(self.row[None, :])[0]:
            self.best, self.found = cost, self.row.copy()


# HiGHS works to 1e-6 in every row and variable; costs are of the order of 1.
_TOLERANCE = 1e-5
_MARGINS = (0.0, 1e-6, 1e-4, 1e-3)
# Values of a number that become options if rules name it, or if its costs are not straight.
MOST_LISTED = 400


class NetworkEngine:
    """Least changes of a ReLU network that was read and checked."""

    def __init__(self, family: NetworkFamily, moves: Moves, favourable: int, search: SearchEngine) -> None:
        self.moves, self.layout, self.net = moves, family.layout, family.net
        self._search = search
        head = self.net.n_outputs
        if head == 1:
            self._rows = np.array([[1.0 if favourable == 1 else -1.0]])
        else:
            others = [k for k in range(head) if k != favourable]
            self._rows = np.zeros((len(others), head))
            self._rows[np.arange(len(others)), others] = -1.0
            self._rows[:, favourable] = 1.0

    def _surely(self, rows: FloatArray) -> BoolArray:
        """Whether rows are favourable, and no rounding could make them otherwise."""
        X = self.layout.encode(rows)
        return np.asarray((self.net.outputs(X) @ self._rows.T).min(axis=1) > 4.0 * self.net.rounding(X))

    def least(
        self, own: FloatArray, fixed: BoolArray, ask: Ask, effort: Effort, *, fewest: bool = False
    ) -> Least:
        """The cheapest change of one person; see `Engine`."""
        found = self._search.least(own, fixed, self._surely, effort, fewest=fewest)
        clock, lower = time.process_time(), 0.0
        program = _Program(self, own, fixed, fewest, found.cost)
        if program.n == 0:  # the person as they are is the only row there is
            if found.values is None:
                return Least("none", np.inf, np.inf, None)
            return Least("proved", found.cost, found.cost, found.values)
        looked = 0
        for margin in _MARGINS:
            left = effort.seconds - (time.process_time() - clock)
            if left <= 0.0:
                break
            row, bound, status, nodes = program.solve(margin, left)
            looked += nodes
            if status == "none" and margin == 0.0 and found.values is None:
                return Least("none", np.inf, np.inf, None, looked)
            if margin == 0.0:
                # If what was found is denied, the numbers are beyond the solver.
                lower = 0.0 if status == "none" else bound
            if row is None:
                break
            cost = float(self.moves.costs(own, row[None, :])[0])
            if fewest:
                cost += self.moves.surcharge * int((row != own).sum())
            if self.moves.possible(own, row[None, :], fixed)[0] and ask(row[None, :])[0]:
                if cost < found.cost:
                    found = Least("estimate", cost, 0.0, row)
                break
        if found.values is None:
            return Least("bracket" if lower > 0 else "not found", np.inf, lower, None, looked)
        lower = min(max(lower - _TOLERANCE * (1.0 + abs(lower)), 0.0), found.cost)
        if lower >= found.cost - 2.0 * _TOLERANCE * (1.0 + found.cost):
            return Least("proved", found.cost, lower, found.values, looked)
        return Least("bracket", found.cost, lower, found.values, looked)


# Variables with weights.
_Sum: TypeAlias = list[tuple[int, float]]


class _Program:
    """One person's mixed-integer program: steps up and down of numbers, one option of each category, one switch per unit."""

    def __init__(
        self, engine: NetworkEngine, own: FloatArray, fixed: BoolArray, fewest: bool, known: float
    ) -> None:
        moves, layout = engine.moves, engine.layout
        self.engine, self.own, self.extra = engine, own, moves.surcharge if fewest else 0.0
        # A change that costs more than a known one is not needed; single precision rounds costs a little.
        self.known = known + _TOLERANCE * (1.0 + known)
        self.cost: list[float] = []
        self.high: list[float] = []
        self.whole: list[int] = []
        # Of every variable of a column: the column, the option it stands for or None, steps up (1) or down (−1) or 0.
        self.where: list[tuple[int, float | None, float]] = []
        # Encoded inputs as an affine function of the variables.
        self.inputs: list[FloatArray] = []
        self.start = layout.encode(own[None, :])[0]
        # Sums of variables that stay below a limit.
        self.limits: list[tuple[_Sum, float]] = []
        # By column: the values that are options of their own, and the numbers of their variables.
        choice: dict[int, tuple[FloatArray, list[int]]] = {}
        in_rules = {atom.column for clause in moves.active(own) for atom in clause}
        for p in range(layout.n_columns):
            if fixed[p] or not moves.actions[p].actionable:
                continue
            values = self._listed(p, p in in_rules)
            if values is None:
                self._add_steps(p)
            else:
                costs = [self._price(p, value) for value in values]
                kept = [k for k, cost in enumerate(costs) if cost <= self.known]
                choice[p] = values[kept], [self._add_option(p, float(values[k]), costs[k]) for k in kept]
                self.limits.append(([(number, 1.0) for number in choice[p][1]], 1.0))
        self._clauses(choice)
        self.n = len(self.cost)
        if np.isfinite(known):
            self.limits.append((list(enumerate(self.cost)), self.known))

    def _variable(self, cost: float = 0.0, high: float = 1.0, whole: int = 1) -> int:
        """A further variable, from 0 on; return its number."""
        self.cost.append(cost)
        self.high.append(high)
        self.whole.append(whole)
        return len(self.cost) - 1

    def _moving(
        self,
        p: int,
        cost: float,
        most: float,
        move: FloatArray,
        option: float | None = None,
        sign: float = 0.0,
    ) -> int:
        """A variable of a column, each unit of which moves the encoded inputs."""
        self.inputs.append(move)
        self.where.append((p, option, sign))
        return self._variable(cost, most)

    def _price(self, p: int, value: float) -> float:
        one = self.own.copy()
        one[p] = value
        return float(self.engine.moves.costs(self.own, one[None, :])[0]) + self.extra

    def _add_option(self, p: int, value: float, cost: float) -> int:
        """A value of a column that is an option of its own."""
        one = self.own.copy()
        one[p] = value
        move = self.engine.layout.encode(one[None, :])[0] - self.start
        return self._moving(p, cost, 1.0, move, value)

    def _add_steps(self, p: int) -> None:
        """Steps of a number up and down.

        If few columns are to change, a switch is paid once; it also brings who is outside of the range into it at once.
        """
        moves, column = self.engine.moves, self.engine.layout.columns[p]
        step = moves.steps[p]
        unit = float(moves.number_costs(p, np.zeros(1), np.array([step]))[0])
        down, up = moves.reach(p, float(self.own[p]))
        (least,) = moves.outside(p, self.own[p : p + 1]).tolist()
        counted = []
        for sign, most in ((1.0, up), (-1.0, down)):
            if np.isfinite(self.known) and unit > 0:
                most = min(most, float(np.floor(self.known / unit)))
            if most > 0 and most >= least:
                move = np.zeros(self.engine.layout.width)
                move[column.start] = sign * step / column.scale
                counted.append((self._moving(p, unit, most, move, sign=sign), most))
        for number, most in counted if self.extra or least else ():
            switch = self._moving(p, self.extra, 1.0, np.zeros(self.engine.layout.width))
            self.limits.append(([(number, 1.0), (switch, -most)], 0.0))
            if least:
                self.limits.append(([(switch, least), (number, -1.0)], 0.0))

    def _listed(self, p: int, in_rules: bool) -> FloatArray | None:
        """Values of a column that become options, each with a variable; None for a number that moves in steps."""
        moves, own = self.engine.moves, self.own[p]
        column = moves.layout.columns[p]
        if column.categories:
            found: FloatArray = np.arange(len(column.categories), dtype=np.float64)
        elif in_rules or not moves.straight(p):
            down, up = moves.reach(p, own)
            if down + up > MOST_LISTED:
                return None
            found = moves.moved(p, own, np.arange(-down, up + 1))
            (low,), (high,) = moves.ends(p, np.array([own]))
            found = found[(found >= low) & (found <= high)]
        else:
            return None
        return np.asarray(found[found != own])

    def _clauses(self, choice: dict[int, tuple[FloatArray, list[int]]]) -> None:
        """Rules about columns whose values are options; others are checked afterwards."""
        for clause in self.engine.moves.active(self.own):
            moving = {atom.column for atom in clause} & {p for p, _, _ in self.where}
            if not moving <= set(choice):
                continue
            terms, constant = [], 0.0
            for atom in clause:
                mine = bool(atom.holds(self.own[atom.column : atom.column + 1])[0])
                constant += float(mine)
                values, numbers = choice.get(atom.column, (np.zeros(0), []))
                for there, number in zip(atom.holds(values), numbers, strict=True):
                    if bool(there) != mine:
                        terms.append((number, float(there) - float(mine)))
            self.limits.append((terms, len(clause) - 1.0 - constant))

    def solve(self, margin: float, seconds: float) -> tuple[FloatArray | None, float, str, int]:
        """A row, a lower bound of the cost, "none" if there is no row, and how many nodes were looked at."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import coo_array

        rows, outputs, into, constant = self._network
        for direction in self.engine._rows:
            final = direction @ into
            terms = [(outputs[j], float(final[j])) for j in np.flatnonzero(final)]
            rows = [*rows, (terms, margin - float(direction @ constant), np.inf)]
        rows = [*rows, *((terms, -np.inf, limit) for terms, limit in self.limits)]
        data = np.array([(i, j, w) for i, (terms, _, _) in enumerate(rows) for j, w in terms]).reshape(-1, 3)
        places = data[:, :2].astype(np.int64).T
        table = coo_array((data[:, 2], (places[0], places[1])), shape=(len(rows), len(self.cost))).tocsr()
        found = milp(
            np.array(self.cost),
            integrality=np.array(self.whole),
            bounds=Bounds(np.zeros(len(self.cost)), np.array(self.high)),
            constraints=LinearConstraint(
                table, np.array([r[1] for r in rows]), np.array([r[2] for r in rows])
            ),
            options={"time_limit": max(seconds, 0.05), "mip_rel_gap": 0.0},
        )
        nodes = int(getattr(found, "mip_node_count", 0) or 0)
        if found.status == 2:
            return None, np.inf, "none", nodes
        bound = getattr(found, "mip_dual_bound", None)
        bound = 0.0 if bound is None or not np.isfinite(bound) else float(bound)
        return (None if found.x is None else self._row(found.x)), bound, "", nodes

    @cached_property
    def _network(self) -> tuple[list[tuple[_Sum, float, float]], list[int], FloatArray, FloatArray]:
        """Rows (terms, low, high) of all hidden units; the variables that enter the last layer, its weights and biases."""
        net = self.engine.net
        rows: list[tuple[_Sum, float, float]] = []
        weight, bias = net.weights[0], net.biases[0]
        # What enters a layer: variables with weights, and constants.
        into: FloatArray = weight @ np.array(self.inputs).T
        constant: FloatArray = weight @ self.start + bias
        names, below, above = list(range(self.n)), np.zeros(0), np.zeros(0)
        for layer in range(len(net.weights) - 1):
            if layer == 0:
                least, most = constant - self._reach(-into), constant + self._reach(into)
            else:
                positive, negative = np.maximum(weight, 0.0), np.minimum(weight, 0.0)
                least = positive @ below + negative @ above + bias
                most = positive @ above + negative @ below + bias
            outputs = []
            for u in range(len(bias)):
                at, low, high = float(constant[u]), float(least[u]), float(most[u])
                number = self._variable(high=max(high, 0.0), whole=0)
                outputs.append(number)
                unit = [(number, 1.0), *((names[j], -float(into[u, j])) for j in np.flatnonzero(into[u]))]
                if high <= 0:
                    continue
                if low >= 0:
                    rows.append((unit, at, at))
                    continue
                switch = self._variable()
                rows.append((unit, at, np.inf))
                # a ≤ z − least · (1 − switch), a ≤ most · switch
                rows.append(([*unit, (switch, -low)], -np.inf, at - low))
                rows.append(([(number, 1.0), (switch, -high)], -np.inf, 0.0))
            names = outputs
            below, above = np.maximum(least, 0.0), np.maximum(most, 0.0)
            weight, bias = net.weights[layer + 1], net.biases[layer + 1]
            into, constant = weight, bias
        return rows, names, into, constant

    def _reach(self, gains: FloatArray) -> FloatArray:
        """How much each unit gains at most, (U,), from variables that gain so much (U, n) and cost no more than is known.

        Every column gains no more than its best variable, and no more for its cost than the best rate. The columns with
        the best rates are paid first.
        """
        cost, high = np.array(self.cost[: self.n]), np.array(self.high[: self.n])
        columns = np.array([p for p, _, _ in self.where])
        most, rate = np.maximum(gains * high, 0.0), np.maximum(gains, 0.0) / np.maximum(cost, 1e-12)
        groups = [np.flatnonzero(columns == p) for p in np.unique(columns)]
        most, rate = (np.stack([some[:, at].max(axis=1) for at in groups], axis=1) for some in (most, rate))
        if not np.isfinite(self.known):
            return np.asarray(most.sum(axis=1))
        order = np.argsort(-rate, axis=1, kind="stable")
        most, rate = np.take_along_axis(most, order, 1), np.take_along_axis(rate, order, 1)
        price = np.divide(most, rate, out=np.zeros_like(most), where=rate > 0)
        left = np.maximum(self.known - np.cumsum(price, axis=1) + price, 0.0)
        return np.asarray(np.minimum(most, rate * left).sum(axis=1))

    def _row(self, x: FloatArray) -> FloatArray:
        row = self.own.copy()
        steps: dict[int, float] = {}
        for (p, option, sign), value in zip(self.where, x[: self.n], strict=True):
            if option is not None and value > 0.5:
                row[p] = option
            elif sign:
                steps[p] = steps.get(p, 0.0) + float(np.rint(value)) * sign
        for p, number in steps.items():
            row[p] = self.engine.moves.moved(p, self.own[p], np.array([number]))[0]
        return row
