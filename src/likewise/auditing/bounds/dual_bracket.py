"""V(ε) between two numbers: every λ gives an upper value, every set of rows a lower one; λ is searched for both.

V(ε) = inf over λ ≥ 0 of λε + mean_i s_i(λ), with s_i(λ) = sup over x of loss(x, y_i) − λ d²(x, x_i). A solver that
brackets s_i at one λ gives λε + mean(upper) ≥ V(ε), whatever λ is; the rows that attain its lower values join a
support, whose own dual (solved exactly) lies below V(ε) and says which λ to ask for next.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from likewise.auditing.bounds.family import INTERRUPTED, Brackets
from likewise.auditing.dual.finite_dual import dual_curve
from likewise.auditing.dual.frontier import Frontier
from likewise.core.checks import FloatArray, IntArray, check_number
from likewise.core.messages import Message

# Where a time is set: at most so many values of λ are tried before one gets all that is left, each with this share of
# it; and λ is near when it changes by less than this share.
_TRIED, _TRIAL_SHARE, _NEAR = 3, 0.3, 0.1
# Where fewer people than this are closed, what is attained says little of the slope; a larger λ closes more of them.
_MOST, _UP = 0.5, 2.0

# (λ, encoded rows (n, s, d) to begin from, seconds left or None) -> brackets of every person.
Solver: TypeAlias = Callable[[float, "FloatArray | None", "float | None"], Brackets]


@dataclass(frozen=True, eq=False)
class DualBracket:
    """Bracket of V(ε)."""

    eps: float
    lower: float
    upper: float
    base_loss: float
    lambda_: float
    rows: FloatArray
    person: IntArray
    loss: FloatArray
    cost: FloatArray
    last: Brackets
    status: str
    reasons: tuple[str, ...]
    interrupted: bool = False
    # All λ that were asked for, in their order.
    lambdas: tuple[float, ...] = ()

    @property
    def gap(self) -> tuple[float, float]:
        """Bracket of V(ε) − mean loss."""
        return self.lower - self.base_loss, self.upper - self.base_loss


def bracket_value(
    solve: Solver,
    base_losses: FloatArray,
    eps: float,
    *,
    start: float = 10.0,
    rounds: int = 12,
    rtol: float = 0.01,
    seconds: float | None = None,
    prices: tuple[float, tuple[float, ...]] | None = None,
) -> DualBracket:
    """Bracket V(ε).

    `prices` are the λ whose upper value counts, and all λ in their order, if others chose them: what is found for a
    person then does not depend on the rest.
    """
    budget = check_number(eps, owner="bracket_value", name="eps", low=0.0)
    clock = time.perf_counter()
    known = _Known(np.asarray(base_losses, dtype=np.float64), budget)
    if prices is not None:
        counts, asked = prices
        for at, lam in enumerate(asked):
            left = None if seconds is None else max(0.0, seconds - (time.perf_counter() - clock))
            found = solve(lam, known.starts(), None if left is None else left / (len(asked) - at))
            known.add(lam, found, counts=lam == counts)
        return known.bracket(rtol, False)
    lam = np.inf if budget == 0 else 0.0 if np.isinf(budget) else float(start)
    near, interrupted = not 0 < lam < np.inf, False
    for number in range(rounds):
        left = None if seconds is None else max(0.0, seconds - (time.perf_counter() - clock))
        # The first values of λ are only tried; the one that they lead to gets the time that is left.
        part = left if left is None or near or number >= _TRIED else _TRIAL_SHARE * left
        try:
            found = solve(lam, known.starts(), part)
        except KeyboardInterrupt:
            if known.best is None:
                raise
            interrupted = True
            break
        known.add(lam, found)
        interrupted = found.interrupted
        if interrupted or known.closed(rtol) or not 0 < lam < np.inf or left == 0.0:
            break
        before, lam = lam, known.next_lambda(lam, found)
        near = abs(lam - before) <= _NEAR * before
        if known.settled:
            break
    return known.bracket(rtol, interrupted)


class _Known:
    """What every λ so far says: the lowest upper value, the rows, and between which λ the least value lies."""

    def __init__(self, base: FloatArray, budget: float) -> None:
        self.base, self.budget = base, budget
        # Whose each row is, the row, its loss and its fair distance, round by round.
        self.found: list[tuple[IntArray, FloatArray, FloatArray, FloatArray]] = []
        self.lower = float(base.mean())
        self.best: tuple[float, float, Brackets] | None = None
        self.asked: list[float] = []
        self._low, self._high = 0.0, np.inf

    def add(self, lam: float, found: Brackets, *, counts: bool = True) -> None:
        """Take what was found at one λ, whose upper value may count."""
        self.asked.append(lam)
        moved = np.flatnonzero((found.loss > self.base) & np.isfinite(found.lower))
        self.found.append((moved, found.rows[moved], found.loss[moved], found.cost[moved]))
        price = lam * self.budget if 0 < lam < np.inf else 0.0
        upper = price + float(found.upper.mean())
        if counts and (self.best is None or upper < self.best[0]):
            self.best = upper, lam, found
        person, _, loss, cost = self._joined()
        frontier = Frontier.from_points(
            base_loss=self.base,
            row=person,
            squared_distance=cost,
            loss=loss,
            candidate=np.arange(len(person)),
        )
        self._curve = dual_curve(frontier)
        self.lower = float(self._curve.value(self.budget))
        if np.isinf(lam):
            # Added up in the same order as the upper values: of equal numbers the means are equal to the last bit.
            self.lower = max(self.lower, float(np.maximum(found.lower, self.base).mean()))

    def closed(self, rtol: float) -> bool:
        """Whether the bracket is as narrow as was asked."""
        assert self.best is not None  # the first λ was added
        return bool(self.best[0] - self.lower <= rtol * abs(self.best[0]))

    def next_lambda(self, lam: float, found: Brackets) -> float:
        """The λ to ask for next: the slope of the dual at λ is ε − mean d²."""
        if float(found.closed.mean()) < _MOST and np.isinf(self._high):
            self._low = lam
            return _UP * lam
        if float(found.cost.mean()) > self.budget:
            self._low = max(self._low, lam)
        else:
            self._high = min(self._high, lam)
        return _next(float(self._curve.lambda_(self.budget)), self._low, self._high, lam)

    @property
    def settled(self) -> bool:
        """Whether λ is known to all digits that count."""
        return bool(np.isfinite(self._high) and self._high - self._low <= 1e-6 * self._high)

    def starts(self) -> FloatArray | None:
        """Return the rows of the last three rounds, person by person; nobody's place is left empty."""
        if not self.found:
            return None
        last = self.found[-3:]
        starts = np.full((len(self.base), len(last), last[0][1].shape[1]), np.nan)
        for s, (person, rows, _, _) in enumerate(last):
            starts[person, s] = rows
        return starts

    def _joined(self) -> tuple[Any, ...]:
        return tuple(np.concatenate(part) for part in zip(*self.found, strict=True))

    def bracket(self, rtol: float, interrupted: bool) -> DualBracket:
        """What is known now."""
        assert self.best is not None  # the first λ was added
        upper, lam, last = self.best
        closed = self.closed(rtol) or upper - self.lower <= 1e-9
        person, rows, loss, cost = self._joined()
        return DualBracket(
            self.budget,
            self.lower,
            max(upper, self.lower),
            float(self.base.mean()),
            lam,
            rows,
            person,
            loss,
            cost,
            last,
            "closed" if closed else "open",
            _reasons(last, lam, closed, interrupted),
            interrupted,
            tuple(self.asked),
        )


def _reasons(last: Brackets, lam: float, closed: bool, interrupted: bool) -> tuple[str, ...]:
    """Why a bracket is wider than was asked."""
    if interrupted:
        return (INTERRUPTED,)
    if closed:
        return ()
    count = int((~last.closed).sum())
    return (Message("reason.open_brackets", count=count, people=len(last.lower), price=float(lam)),)


def _next(asked: float, low: float, high: float, now: float) -> float:
    """The λ of the support's own dual where it lies inside what is left, else the middle of that."""
    if low < asked < high and abs(asked - now) > 1e-3 * now:
        return asked
    if np.isinf(high):
        return 4.0 * max(now, low)
    return float(np.sqrt(low * high)) if low > 0 else high / 4.0
