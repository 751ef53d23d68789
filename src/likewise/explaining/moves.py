"""Which values a person could take instead of their own, and what each change costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from likewise.core.checks import BoolArray, FloatArray
from likewise.core.errors import InputError, bad_parameter
from likewise.counterfactuals.rules import Rules, allowed_values

if TYPE_CHECKING:
    from likewise.auditing.bounds.regions import TableLayout
    from likewise.data.column import Column

Direction: TypeAlias = Literal["any", "up", "down"]
CostUnit: TypeAlias = Literal["range", "percentile"]
_KEYS = ("actionable", "direction", "step", "range", "cost")


@dataclass(frozen=True)
class Action:
    """What can be done about one column; `cost` multiplies what its changes cost."""

    actionable: bool = True
    direction: Direction = "any"
    step: float | None = None
    range: tuple[float, float] | None = None
    cost: float = 1.0


def read_action(said: Any, where: str) -> Action:
    """Read what a user says of one column: "fixed", "up", "down", or a mapping with the fields of `Action`."""
    if isinstance(said, Action):
        return said
    if said == "fixed":
        return Action(actionable=False)
    if said in ("up", "down"):
        return Action(direction=said)
    if not isinstance(said, Mapping):
        raise InputError(
            f"{where} must be 'fixed', 'up', 'down' or a dict of {', '.join(_KEYS)}, got {said!r}."
        )
    for key in said:
        if key not in _KEYS:
            raise InputError(f"{where} has an unknown key {str(key)!r}. Known: {', '.join(_KEYS)}.")
    actionable, direction = said.get("actionable", True), said.get("direction", "any")
    step, pair, cost = said.get("step"), said.get("range"), said.get("cost", 1.0)
    if not isinstance(actionable, bool):
        raise InputError(f"{where}: actionable must be true or false, got {actionable!r}.")
    if direction not in get_args(Direction):
        raise InputError(
            f"{where}: direction must be one of {', '.join(get_args(Direction))}, got {direction!r}."
        )
    if step is not None and not (_is_number(step) and 0 < step < math.inf):
        raise InputError(f"{where}: step must be a number above 0, got {step!r}.")
    if not (_is_number(cost) and 0 < cost < math.inf):
        raise InputError(f"{where}: cost must be a number above 0, got {cost!r}.")
    if pair is not None:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not all(map(_is_number, pair)):
            raise InputError(f"{where}: range must be [lowest, highest], got {pair!r}.")
        if pair[0] > pair[1]:
            raise InputError(f"{where}: range must be [lowest, highest], got {list(pair)!r}.")
        pair = (float(pair[0]), float(pair[1]))
    return Action(actionable, direction, None if step is None else float(step), pair, float(cost))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


class Atom(NamedTuple):
    """Whether a column has one of some values (`inside`), or has none of them."""

    column: int
    values: frozenset[float]
    inside: bool

    def holds(self, values: FloatArray) -> BoolArray:
        """Whether it holds for values of the column."""
        return np.asarray(np.isin(values, list(self.values)) == self.inside)


Clause: TypeAlias = tuple[Atom, ...]


def holds(clause: Clause, rows: FloatArray) -> BoolArray:
    """Whether every condition holds of rows of values (n, P)."""
    return np.asarray(np.all([atom.holds(rows[:, atom.column]) for atom in clause], axis=0))


class Scale(NamedTuple):
    """What distances in a number are measured by: straight pieces through points, straight on outside of them."""

    at: FloatArray
    to: FloatArray

    def __call__(self, values: Any) -> FloatArray:
        """Return the place of values."""
        v = np.asarray(values, dtype=np.float64)
        slope = (self.to[-1] - self.to[0]) / (self.at[-1] - self.at[0])
        inside = np.interp(v, self.at, self.to)
        return np.asarray(
            inside + slope * (np.minimum(v - self.at[0], 0.0) + np.maximum(v - self.at[-1], 0.0))
        )


@dataclass(frozen=True, eq=False)
class Moves:
    """Changes that are possible in a table, column by column, and their costs.

    A change of a number costs its length on the column's scale, a change of a category 1, both times the column's factor;
    the cost of several changes is their sum. A number moves in whole steps from where the person is.
    """

    layout: TableLayout
    actions: tuple[Action, ...]
    scales: tuple[Scale | None, ...]
    steps: tuple[float, ...]
    clauses: tuple[Clause, ...] = ()
    unit: CostUnit = "range"
    # What a counterpart's other columns become: (what it must be, column, old code to new).
    maps: tuple[tuple[Clause, int, Mapping[float, float]], ...] = ()

    @classmethod
    def of(
        cls,
        layout: TableLayout,
        people: FloatArray,
        *,
        actions: Mapping[str, Any] | None = None,
        fixed: Sequence[str] = (),
        rules: Rules | None = None,
        unit: CostUnit = "range",
        owner: str = "explain",
    ) -> Moves:
        """Read what can be changed; `people` are the table's rows of values, `fixed` columns nobody can change."""
        if unit not in get_args(CostUnit):
            raise bad_parameter(owner, "cost", " or ".join(map(repr, get_args(CostUnit))), repr(unit))
        known = {column.name for column in layout.columns}
        for name in actions or {}:
            if name not in known:
                allowed = f"columns that the model uses, such as {sorted(known)[:6]}"
                raise bad_parameter(owner, "actions", allowed, repr(name))
        found, scales, steps = [], [], []
        for p, column in enumerate(layout.columns):
            where = f"{owner}: actions[{column.name!r}]"
            action = read_action((actions or {}).get(column.name, Action()), where)
            if column.name in fixed or column.immutable:
                action = Action(actionable=False, cost=action.cost)
            if column.categories and (action.direction != "any" or action.step or action.range):
                raise InputError(
                    f"{where}: direction, step and range are for numbers, and this column is a category."
                )
            step = _step(column, people[:, p]) if action.step is None else action.step
            if column.kind == "integer" and step != round(step):
                raise InputError(
                    f"{where}: the column has whole numbers, so step must be one too, got {step:g}."
                )
            found.append(action)
            steps.append(0.0 if column.categories else step)
            scales.append(None if column.categories else _scale(people[:, p], unit))
        clauses, maps = _clauses(rules, layout), _maps(rules, layout)
        return cls(layout, tuple(found), tuple(scales), tuple(steps), clauses, unit, maps)

    def ends(self, p: int, own: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Least and greatest number that each person may take instead of their own, which may lie outside."""
        column, action = self.layout.columns[p], self.actions[p]
        if not action.actionable:
            return own, own
        low, high = action.range or (-math.inf, math.inf)
        below, above = np.full(own.shape, max(low, column.lower)), np.full(own.shape, min(high, column.upper))
        if action.direction == "up":
            below = np.maximum(below, own)
        elif action.direction == "down":
            above = np.minimum(above, own)
        return below, above

    def stepped(self, p: int, own: FloatArray, steps: FloatArray) -> FloatArray:
        """Numbers so many steps away from people's own."""
        step = self.steps[p]
        found = own + steps * step
        if self.layout.is_integer[p]:
            return np.asarray(found)
        digits = max(_decimals(step), self.layout.columns[p].decimals or 0)
        rounded = np.round(found, digits) if digits <= 12 else found
        # Rounding takes away what adding steps left behind; people's own numbers may have more digits.
        found = np.where(np.abs(rounded - found) <= 1e-9 * step, rounded, found)
        return self.layout.columns[p].stored(found)

    def number_costs(self, p: int, own: FloatArray, values: FloatArray) -> FloatArray:
        """Costs of numbers instead of people's own."""
        scale = self.scales[p]
        assert scale is not None
        return np.asarray(self.actions[p].cost * np.abs(scale(values) - scale(own)))

    def straight(self, p: int) -> bool:
        """Whether every step of a number costs the same, and moves it as far on the scale of the encoding."""
        return self.unit == "range" and self.layout.columns[p].curve is None

    def positions(self, p: int) -> float:
        """How many steps lie in the range of a number that can be changed; 0 for a category."""
        column = self.layout.columns[p]
        if column.categories or not self.actions[p].actionable:
            return 0.0
        return float((column.upper - column.lower) / self.steps[p])

    def reach(self, p: int, own: float) -> tuple[float, float]:
        """How many whole steps a number can go down, and up; if it is outside of its range, no fewer than `outside`."""
        (low,), (high,) = self.ends(p, np.array([own]))
        down, up = (own - low) / self.steps[p], (high - own) / self.steps[p]
        return float(np.floor(max(down, 0.0) + 1e-9)), float(np.floor(max(up, 0.0) + 1e-9))

    def outside(self, p: int, own: FloatArray) -> FloatArray:
        """How many whole steps people's numbers must go at least to come into the range; 0 inside of it."""
        low, high = self.ends(p, own)
        return np.asarray(np.ceil(np.maximum(np.maximum(low - own, own - high), 0.0) / self.steps[p] - 1e-9))

    def moved(self, p: int, own: float, steps: FloatArray) -> FloatArray:
        """The numbers so many steps away from one person's own."""
        return self.stepped(p, np.full(len(steps), own), steps)

    @cached_property
    def surcharge(self) -> float:
        """More than any change can cost: what a changed column costs on top if few columns are to change."""
        total = 1.0
        for p, column in enumerate(self.layout.columns):
            scale, cost = self.scales[p], self.actions[p].cost
            if scale is None:
                total += cost
            else:
                ends = scale(np.array([column.lower, column.upper]))
                total += cost * 4.0 * float(abs(ends[1] - ends[0]))
        return float(2.0 ** np.ceil(np.log2(total)))

    def costs(self, own: FloatArray, values: FloatArray) -> FloatArray:
        """Cost of each row of values (n, P) for a person, or for a person each."""
        own = np.broadcast_to(own, values.shape)
        total = np.zeros(len(values))
        for p, column in enumerate(self.layout.columns):
            moved = values[:, p] != own[:, p]
            if column.categories:
                total += self.actions[p].cost * moved
            else:
                total += np.where(moved, self.number_costs(p, own[:, p], values[:, p]), 0.0)
        return total

    def active(self, own: FloatArray) -> tuple[Clause, ...]:
        """Rules for a person: one that they themselves break does not bind them."""
        return tuple(clause for clause in self.clauses if not holds(clause, own[None])[0])

    def repaired(self, twin: FloatArray) -> FloatArray:
        """A counterpart (P,) with what follows from its other sensitive values: a husband becomes a wife."""
        found = twin.copy()
        for when, column, values in self.maps:
            if holds(when, twin[None])[0]:
                found[column] = values.get(float(twin[column]), found[column])
        return found

    def breaks_rule(self, row: FloatArray) -> bool:
        """Whether a row (P,) is a combination that the rules exclude."""
        return any(holds(clause, row[None])[0] for clause in self.clauses)

    def possible(self, own: FloatArray, values: FloatArray, fixed: BoolArray | None = None) -> BoolArray:
        """Whether a person (P,), or a person each (n, P), could become rows of values (n, P): every rule, one by one."""
        own = np.broadcast_to(own, values.shape)
        held = np.zeros(values.shape, dtype=bool) if fixed is None else np.broadcast_to(fixed, values.shape)
        good = np.ones(len(values), dtype=bool)
        for p, column in enumerate(self.layout.columns):
            v, x = values[:, p], own[:, p]
            if not self.actions[p].actionable:
                fits = np.zeros(len(v), dtype=bool)
            elif column.categories:
                fits = (v >= 0) & (v < len(column.categories)) & (v == np.floor(v))
            else:
                low, high = self.ends(p, x)
                steps = np.rint((v - x) / self.steps[p])
                fits = (v >= low) & (v <= high) & (v == self.stepped(p, x, steps))
                fits &= (v == np.floor(v)) | (column.kind != "integer")
            good &= (v == x) | (fits & ~held[:, p])
        for clause in self.clauses:
            # A rule that the person breaks as they are does not bind them.
            good &= ~holds(clause, values) | holds(clause, own)
        return good


def _step(column: Column, values: FloatArray) -> float:
    """The resolution of a number: 1 if whole, its decimals if it has few, else about a thousandth of its range."""
    if column.categories or column.kind == "integer":
        return 1.0
    low, high = float(np.min(values, initial=column.lower)), float(np.max(values, initial=column.upper))
    spread = high - low if math.isfinite(high - low) and high > low else 1.0
    if column.decimals is not None and column.decimals <= 6 and spread * 10**column.decimals <= 1e6:
        return float(10.0**-column.decimals)
    wanted = spread / 1000.0
    power = 10.0 ** math.floor(math.log10(wanted))
    return float(next(power * m for m in (10, 5, 2, 1) if power * m <= wanted * 1.000001))


def _decimals(step: float) -> int:
    return next((d for d in range(13) if abs(step * 10**d - round(step * 10**d)) < 1e-9 * 10**d), 13)


def _scale(values: FloatArray, unit: CostUnit) -> Scale:
    """The scale of a number: in spans of the middle 80% of people, or in shares of people passed."""
    if unit == "percentile":
        at, counts = np.unique(values, return_counts=True)
        if len(at) > 1:
            return Scale(at, (np.cumsum(counts) - counts / 2.0) / len(values))
    spread = 1.0
    if len(values):
        at, counts = np.unique(values, return_counts=True)
        # If 80% and more have one value (no capital gain), the spread of the others counts.
        for part in (values, values[values != at[counts.argmax()]]):
            low, high = np.quantile(part, [0.1, 0.9]) if len(part) else (0.0, 0.0)
            if high > low:
                spread = float(high - low)
                break
        else:
            spread = float(at[-1] - at[0]) or 1.0
    return Scale(np.array([0.0, spread]), np.array([0.0, 1.0]))


def _atom(layout: TableLayout, name: str, value: Any, inside: bool) -> Atom | None:
    """One condition of a rule; None if the model does not use the column."""
    place = {column.name: p for p, column in enumerate(layout.columns)}
    if name not in place:
        return None
    listed = allowed_values(value)
    column = layout.columns[place[name]]
    if column.categories:
        codes = [float(i) for i, category in enumerate(column.categories) if category in listed]
    else:
        codes = [float(one) for one in listed]
    return Atom(place[name], frozenset(codes), inside)


def _clause(layout: TableLayout, parts: Sequence[tuple[str, Any, bool]]) -> Clause | None:
    atoms = [_atom(layout, *part) for part in parts]
    known = tuple(one for one in atoms if one is not None)
    return known if len(known) == len(atoms) else None


def _clauses(rules: Rules | None, layout: TableLayout) -> tuple[Clause, ...]:
    """Combinations that may not occur, of columns that the model uses."""
    if rules is None:
        return ()
    wanted = [[(name, value, True) for name, value in rule.what.items()] for rule in rules.forbidden]
    for rule in rules.implications:
        when = [(name, value, True) for name, value in rule.when.items()]
        wanted += [[*when, (name, value, False)] for name, value in rule.then.items()]
    found = [_clause(layout, parts) for parts in wanted]
    return tuple(clause for clause in found if clause)


def _maps(rules: Rules | None, layout: TableLayout) -> tuple[tuple[Clause, int, Mapping[float, float]], ...]:
    found = []
    for rule in () if rules is None else rules.maps:
        when = _clause(layout, [(name, value, True) for name, value in rule.when.items()])
        pairs = [
            (_atom(layout, rule.column, old, True), _atom(layout, rule.column, new, True))
            for old, new in rule.values.items()
        ]
        codes = {
            next(iter(a.values)): next(iter(b.values)) for a, b in pairs if a and b and a.values and b.values
        }
        if when and codes:
            column = next(p for p, one in enumerate(layout.columns) if one.name == rule.column)
            found.append((when, column, codes))
    return tuple(found)
