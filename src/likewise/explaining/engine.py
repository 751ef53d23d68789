"""The contract of engines for least changes, and the engine that searches for any model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np

from likewise.core.checks import BoolArray, FloatArray
from likewise.explaining.moves import Moves

Status: TypeAlias = Literal["proved", "bracket", "none", "estimate", "not found"]
# Whether the model itself gives rows of values the favourable decision.
Ask: TypeAlias = Callable[[FloatArray], BoolArray]


@dataclass(frozen=True, eq=False)
class Least:
    """The cheapest change that was found for one person.

    Status "proved": nothing cheaper gives the favourable decision. "bracket": nothing cheaper than `lower` does. "none":
    it is proved that no change does. "estimate" and "not found": what a search of other rows found, or that it found
    nothing; that proves nothing, and `lower` is 0.
    """

    status: Status
    cost: float
    lower: float
    values: FloatArray | None
    looked: int = 0


@dataclass(frozen=True)
class Effort:
    """How long an engine may try for one person: in parts of the domain, and in CPU seconds."""

    regions: int = 200_000
    seconds: float = 2.0


class Engine(Protocol):
    """One family of models.

    `ask` is for rows so near the line that rounding decides. What an engine returns is asked of the model by its caller, who
    believes none of it if the model decides otherwise.
    """

    moves: Moves

    def least(
        self, own: FloatArray, fixed: BoolArray, ask: Ask, effort: Effort, *, fewest: bool = False
    ) -> Least:
        """The cheapest change of one row of values (P,) that leaves `fixed` columns alone.

        With `fewest` as few columns as possible change, and among those changes the cheapest counts; `cost` and `lower`
        then include `surcharge` for every column changed.
        """


# A cheap change for any model: from favoured people of the table and from single moves, brought back towards the person. It
# finds changes; it proves nothing.

_STARTS, _NUMBERS, _PAIRS, _ROUNDS = 12, 16, 4_000, 24


class SearchEngine:
    """Cheap changes by asking; `favoured` are rows of values of people with the favourable decision."""

    def __init__(self, moves: Moves, favoured: FloatArray, random_state: int = 0) -> None:
        self.moves, self.layout = moves, moves.layout
        # A thousand of them show the ways there are.
        if len(favoured) > 2_000:
            rng = np.random.default_rng(random_state)
            favoured = favoured[np.sort(rng.choice(len(favoured), 2_000, replace=False))]
        self.favoured = favoured

    def least(
        self, own: FloatArray, fixed: BoolArray, ask: Ask, effort: Effort, *, fewest: bool = False
    ) -> Least:
        """A cheap change of one person; see `Engine`."""
        starts = self._starts(own, fixed, fewest)
        best: FloatArray | None = None
        price, looked = np.inf, 0
        if len(starts):
            good = np.flatnonzero(ask(starts))
            looked += len(starts)
            for i in good[:_STARTS]:
                row, asked = self._back(own, starts[i], fixed, ask, fewest)
                looked += asked
                cost = float(self._costs(own, row[None, :], fewest)[0])
                if cost < price:
                    best, price = row, cost
        if best is None:
            return Least("not found", np.inf, 0.0, None, looked)
        return Least("estimate", price, 0.0, best, looked)

    def _costs(self, own: FloatArray, rows: FloatArray, fewest: bool) -> FloatArray:
        costs = self.moves.costs(own, rows)
        return np.asarray(costs + self.moves.surcharge * (rows != own).sum(axis=1)) if fewest else costs

    def _starts(self, own: FloatArray, fixed: BoolArray, fewest: bool) -> FloatArray:
        """Possible rows, the cheapest first: single and paired moves, and favoured people as near as the person may come."""
        singles = self._singles(own, fixed)
        found = [
            np.array([_with(own, [one]) for one in singles]).reshape(-1, len(own)),
            self._as_favoured(own, fixed),
        ]
        pairs = [(a, b) for i, a in enumerate(singles) for b in singles[i + 1 :] if a[0] != b[0]]
        if len(pairs) > _PAIRS:
            pairs = [pairs[i] for i in np.random.default_rng(0).choice(len(pairs), _PAIRS, replace=False)]
        if pairs:
            found.append(np.array([_with(own, pair) for pair in pairs]))
        rows = np.unique(np.concatenate(found), axis=0)
        rows = rows[self.moves.possible(own, rows, fixed) & (rows != own).any(axis=1)]
        return np.asarray(rows[np.argsort(self._costs(own, rows, fewest), kind="stable")])

    def _singles(self, own: FloatArray, fixed: BoolArray) -> list[tuple[int, float]]:
        found: list[tuple[int, float]] = []
        for p, column in enumerate(self.layout.columns):
            if fixed[p] or not self.moves.actions[p].actionable:
                continue
            if column.categories:
                found += [(p, float(code)) for code in range(len(column.categories)) if code != own[p]]
                continue
            down, up = self.moves.reach(p, own[p])
            first = max(1.0, float(self.moves.outside(p, own[p : p + 1])[0]))
            for sign, most in ((1.0, up), (-1.0, down)):
                if most >= first:
                    sizes = sign * np.unique(np.floor(np.geomspace(first, most, _NUMBERS)))
                    found += [(p, float(v)) for v in self.moves.moved(p, own[p], sizes)]
        return found

    def _as_favoured(self, own: FloatArray, fixed: BoolArray) -> FloatArray:
        rows = self.favoured.copy()
        for p, column in enumerate(self.layout.columns):
            if fixed[p] or not self.moves.actions[p].actionable:
                rows[:, p] = own[p]
            elif not column.categories:
                # Whole steps towards the other's number, as far as the person may go.
                down, up = self.moves.reach(p, own[p])
                steps = np.clip(np.rint((rows[:, p] - own[p]) / self.moves.steps[p]), -down, up)
                rows[:, p] = self.moves.moved(p, own[p], steps)
        return rows

    def _back(
        self, own: FloatArray, row: FloatArray, fixed: BoolArray, ask: Ask, fewest: bool
    ) -> tuple[FloatArray, int]:
        """Bring a favourable row back towards the person, the dearest piece first, while it stays favourable."""
        looked = 0
        for _ in range(_ROUNDS):
            tried = []
            for p in np.flatnonzero(row != own).tolist():
                one = row.copy()
                one[p] = own[p]
                tried.append(one)
                if self.layout.is_category[p]:
                    continue
                steps = np.rint((row[p] - own[p]) / self.moves.steps[p])
                sizes = {np.trunc(steps * part) for part in (0.125, 0.25, 0.5, 0.75, 0.875)} | {
                    steps - np.sign(steps)
                }
                for size in sorted(sizes - {0.0, steps}):
                    one = row.copy()
                    one[p] = self.moves.moved(p, own[p], np.array([size]))[0]
                    tried.append(one)
            if not tried:
                break
            rows = np.array(tried)
            rows = rows[self.moves.possible(own, rows, fixed)]
            looked += len(rows)
            good = rows[ask(rows)] if len(rows) else rows
            if not len(good):
                break
            costs = self._costs(own, good, fewest)
            if costs.min() >= self._costs(own, row[None, :], fewest)[0]:
                break
            row = good[int(costs.argmin())]
        return row, looked


def _with(own: FloatArray, moved: list[tuple[int, float]] | tuple[tuple[int, float], ...]) -> FloatArray:
    row = own.copy()
    for p, value in moved:
        row[p] = value
    return row
