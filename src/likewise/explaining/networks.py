"""The cheapest change for a ReLU network: a mixed-integer program, solved by HiGHS.

The solver works to a tolerance, so what it proves is a bound with that tolerance taken off; what it finds is asked of the
model. If it finds a row only just beyond the line, the line is moved by a little and the program solved once more.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from likewise.core.checks import BoolArray, FloatArray
from likewise.explaining.engine import Ask, Effort, Least
from likewise.explaining.search import SearchEngine
from likewise.explaining.trees import surcharge

if TYPE_CHECKING:
    from likewise.auditing.bounds.networks import NetworkFamily
    from likewise.explaining.moves import Moves

# HiGHS works to 1e-6 in every row and variable; costs are of the order of 1.
_TOLERANCE = 1e-5
_MARGINS = (0.0, 1e-6, 1e-4, 1e-3)
# Values of a number that become options if rules speak of it, or its costs are not straight.
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

    def least(
        self, own: FloatArray, fixed: BoolArray, ask: Ask, effort: Effort, *, fewest: bool = False
    ) -> Least:
        """The cheapest change of one person; see `Engine`."""
        found = self._search.least(own, fixed, ask, effort, fewest=fewest)
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
            if margin == 0.0:
                lower = bound
                if status == "none" and found.values is None:
                    return Least("none", np.inf, np.inf, None, looked)
            if row is None:
                break
            cost = float(self.moves.costs(own, row[None, :])[0])
            if fewest:
                cost += surcharge(self.moves) * int((row != own).sum())
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


class _Steps(NamedTuple):
    """A variable that counts steps up (1) or down (−1)."""

    sign: float


class _Program:
    """One person's mixed-integer program: steps up and down of numbers, one option of each category, one switch per unit."""

    def __init__(
        self, engine: NetworkEngine, own: FloatArray, fixed: BoolArray, fewest: bool, known: float
    ) -> None:
        moves, layout = engine.moves, engine.layout
        self.engine, self.own = engine, own
        cost: list[float] = []
        low: list[float] = []
        high: list[float] = []
        # Encoded inputs as an affine function of the variables, by the numbers of their columns.
        entries: list[tuple[int, int, float]] = []
        start = layout.encode(own[None, :])[0].copy()
        self.where: list[tuple[int, Any]] = []
        extra = surcharge(moves) if fewest else 0.0
        self.rules: list[tuple[list[tuple[int, float]], float]] = []
        box_low, box_high = start.copy(), start.copy()
        # By column: the values that are options of their own, and the numbers of their variables.
        choice: dict[int, tuple[FloatArray, list[int]]] = {}
        spoken = {atom.column for clause in moves.active(own) for atom in clause}
        for p, column in enumerate(layout.columns):
            if fixed[p] or not moves.actions[p].actionable:
                continue
            values = self._listed(p, p in spoken)
            if values is not None:
                first = len(cost)
                for value in values:
                    one = own.copy()
                    one[p] = value
                    moved = layout.encode(one[None, :])[0] - start
                    entries += [(int(j), len(cost), float(moved[j])) for j in np.flatnonzero(moved)]
                    box_low, box_high = (
                        np.minimum(box_low, start + moved),
                        np.maximum(box_high, start + moved),
                    )
                    self.where.append((p, float(value)))
                    cost.append(float(moves.costs(own, one[None, :])[0]) + extra)
                    low.append(0.0)
                    high.append(1.0)
                choice[p] = values, list(range(first, len(cost)))
                self.rules.append(([(number, 1.0) for number in choice[p][1]], 1.0))
                continue
            ends = moves.ends(p, own[p : p + 1])
            step, unit = (
                moves.steps[p],
                float(moves.number_costs(p, np.zeros(1), np.array([moves.steps[p]]))[0]),
            )
            switches = []
            for sign, reach in ((1.0, ends[1][0] - own[p]), (-1.0, own[p] - ends[0][0])):
                most = np.floor(reach / step + 1e-9)
                # Whoever has found a change needs none that is dearer in one column alone.
                if np.isfinite(known) and not fewest and unit > 0:
                    most = min(most, np.floor(known / unit + 1e-9))
                if most <= 0:
                    continue
                entries.append((column.start, len(cost), sign * step / column.scale))
                self.where.append((p, _Steps(sign)))
                number = len(cost)
                cost.append(unit)
                low.append(0.0)
                high.append(float(most))
                end = sign * most * step / column.scale
                box_low[column.start] = min(box_low[column.start], start[column.start] + end)
                box_high[column.start] = max(box_high[column.start], start[column.start] + end)
                if fewest:
                    switches.append((number, float(most)))
            for number, most in switches:
                self.rules.append(([(number, 1.0), (len(cost), -most)], 0.0))
                self.where.append((p, None))
                cost.append(extra)
                low.append(0.0)
                high.append(1.0)
        self._clauses(choice)
        self.n = len(cost)
        self.cost, self.low, self.high = np.array(cost), np.array(low), np.array(high)
        self.matrix = np.zeros((layout.width, self.n))
        for i, j, value in entries:
            self.matrix[i, j] += value
        self.start, self.box = start, (box_low, box_high)

    def _listed(self, p: int, spoken: bool) -> FloatArray | None:
        """Values of a column that become options, each with a variable; None for a number that moves in steps."""
        moves, own = self.engine.moves, self.own[p]
        column = moves.layout.columns[p]
        if column.categories:
            found: FloatArray = np.arange(len(column.categories), dtype=np.float64)
        elif spoken or not moves.straight(p):
            low, high = moves.ends(p, self.own[p : p + 1])
            down = np.floor((own - low[0]) / moves.steps[p] + 1e-9)
            up = np.floor((high[0] - own) / moves.steps[p] + 1e-9)
            if down + up > MOST_LISTED:
                return None
            found = np.asarray(moves.stepped(p, np.full(int(down + up) + 1, own), np.arange(-down, up + 1)))
        else:
            return None
        return np.asarray(found[found != own])

    def _clauses(self, choice: dict[int, tuple[FloatArray, list[int]]]) -> None:
        """Rules about columns whose values are options; others are checked afterwards."""
        for clause in self.engine.moves.active(self.own):
            moving = {atom.column for atom in clause} & {p for p, _ in self.where}
            if not moving <= set(choice):
                continue
            terms, constant = [], 0.0
            for atom in clause:
                mine = bool(atom.holds(self.own[atom.column : atom.column + 1])[0])
                constant += float(mine)
                values, numbers = choice.get(atom.column, (np.zeros(0), []))
                for holds, number in zip(atom.holds(values), numbers, strict=True):
                    if bool(holds) != mine:
                        terms.append((number, float(holds) - float(mine)))
            self.rules.append((terms, len(clause) - 1.0 - constant))

    def solve(self, margin: float, seconds: float) -> tuple[FloatArray | None, float, str, int]:
        """A row, a lower bound of the cost, "none" if there is no row, and how many nodes were looked at."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import coo_array

        net = self.engine.net
        rows: list[tuple[list[tuple[int, float]], float, float]] = []
        low, high, whole = list(self.low), list(self.high), [1] * self.n
        cost = list(self.cost)
        # What enters a layer: variables with weights, and constants.
        weight, bias = net.weights[0], net.biases[0]
        into: FloatArray = weight @ self.matrix
        constant: FloatArray = weight @ self.start + bias
        names: list[int] = list(range(self.n))
        below, above = self.box
        for layer in range(len(net.weights) - 1):
            positive, negative = np.maximum(weight, 0.0), np.minimum(weight, 0.0)
            least = positive @ below + negative @ above + bias
            most = positive @ above + negative @ below + bias
            outputs = []
            for u in range(len(bias)):
                number = len(cost)
                terms = [(names[j], float(into[u, j])) for j in np.flatnonzero(into[u])]
                cost.append(0.0)
                low.append(0.0)
                high.append(max(float(most[u]), 0.0))
                whole.append(0)
                outputs.append(number)
                if most[u] <= 0:
                    continue
                if least[u] >= 0:
                    rows.append(
                        (
                            [(number, 1.0), *((j, -w) for j, w in terms)],
                            float(constant[u]),
                            float(constant[u]),
                        )
                    )
                    continue
                switch = len(cost)
                cost.append(0.0)
                low.append(0.0)
                high.append(1.0)
                whole.append(1)
                shifted = [(number, 1.0), *((j, -w) for j, w in terms)]
                rows.append((shifted, float(constant[u]), np.inf))
                # a ≤ z − least · (1 − switch), a ≤ most · switch
                rows.append(([*shifted, (switch, float(-least[u]))], -np.inf, float(constant[u] - least[u])))
                rows.append(([(number, 1.0), (switch, -float(most[u]))], -np.inf, 0.0))
            names = outputs
            below, above = np.maximum(least, 0.0), np.maximum(most, 0.0)
            weight, bias = net.weights[layer + 1], net.biases[layer + 1]
            into, constant = weight, bias
        for direction in self.engine._rows:
            final = direction @ into
            rows.append(
                (
                    [(names[j], float(final[j])) for j in np.flatnonzero(final)],
                    margin - float(direction @ constant),
                    np.inf,
                )
            )
        rows += [(terms, -np.inf, limit) for terms, limit in self.rules]
        data = [(i, j, w) for i, (terms, _, _) in enumerate(rows) for j, w in terms]
        index = np.array([(i, j) for i, j, _ in data], dtype=np.int64).reshape(-1, 2)
        table = coo_array(
            (np.array([w for _, _, w in data]), (index[:, 0], index[:, 1])), shape=(len(rows), len(cost))
        ).tocsr()
        found = milp(
            np.array(cost),
            integrality=np.array(whole),
            bounds=Bounds(np.array(low), np.array(high)),
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

    def _row(self, x: FloatArray) -> FloatArray:
        row = self.own.copy()
        steps: dict[int, float] = {}
        for (p, what), value in zip(self.where, x[: self.n], strict=True):
            if isinstance(what, _Steps):
                steps[p] = steps.get(p, 0.0) + float(np.rint(value)) * what.sign
            elif what is not None and value > 0.5:
                row[p] = what
        for p, number in steps.items():
            row[p] = self.engine.moves.stepped(p, self.own[p : p + 1], np.array([number]))[0]
        return row
