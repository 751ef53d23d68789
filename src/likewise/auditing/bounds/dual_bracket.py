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

from likewise.auditing.bounds.brackets import Brackets
from likewise.auditing.support.dual_curve import DualCurve
from likewise.auditing.support.finite_dual import dual_curve
from likewise.auditing.support.frontier import Frontier
from likewise.core.arrays import FloatArray
from likewise.core.checks import check_number

__all__ = ["DualBracket", "Solver", "bracket_value"]

# Where a time is set: at most so many values of λ are tried before one gets all that is left, each with this share of
# it; and λ is near when it changes by less than this share.
_TRIED, _TRIAL_SHARE, _NEAR = 3, 0.15, 0.1

# (λ, encoded rows (n, s, d) to begin from, seconds left or None) -> brackets of every person.
Solver: TypeAlias = Callable[[float, "FloatArray | None", "float | None"], Brackets]


@dataclass(frozen=True, eq=False)
class DualBracket:
    """Bracket of V(ε).

    Parameters
    ----------
    eps : float
    lower, upper : float
        lower ≤ V(ε) ≤ upper.
    base_loss : float
        Mean loss of the people as they are.
    lambda_ : float
        Where the upper value was found.
    rows : float array of shape (m, d)
        The support, encoded; the people themselves are not listed.
    person : int array of shape (m,)
        Whose row it is.
    loss, cost : float arrays of shape (m,)
    last : Brackets
        Every person's bracket at `lambda_`.
    status : {"closed", "open"}
        Closed where the bracket is as narrow as was asked.
    reasons : tuple of str
        Why it is open.
    interrupted : bool
        Whether the work was broken off (Ctrl-C).
    """

    eps: float
    lower: float
    upper: float
    base_loss: float
    lambda_: float
    rows: FloatArray
    person: np.ndarray[Any, np.dtype[np.int64]]
    loss: FloatArray
    cost: FloatArray
    last: Brackets
    status: str
    reasons: tuple[str, ...]
    interrupted: bool = False

    @property
    def gap(self) -> tuple[float, float]:
        """Bracket of V(ε) − mean loss."""
        return self.lower - self.base_loss, self.upper - self.base_loss


class _Support:
    """Rows found so far, and their exact dual."""

    def __init__(self, base: FloatArray) -> None:
        self.base = base
        self.person: list[np.ndarray[Any, Any]] = []
        self.rows: list[FloatArray] = []
        self.loss: list[FloatArray] = []
        self.cost: list[FloatArray] = []

    def add(self, found: Brackets) -> None:
        moved = np.flatnonzero((found.loss > self.base) & np.isfinite(found.lower))
        self.person.append(moved)
        self.rows.append(found.rows[moved])
        self.loss.append(found.loss[moved])
        self.cost.append(found.cost[moved])

    def curve(self) -> DualCurve:
        person = np.concatenate(self.person)
        frontier = Frontier.from_points(
            base_loss=self.base,
            row=person,
            squared_distance=np.concatenate(self.cost),
            loss=np.concatenate(self.loss),
            candidate=np.arange(len(person)),
        )
        return dual_curve(frontier)


def bracket_value(
    solve: Solver,
    base_losses: FloatArray,
    eps: float,
    *,
    start: float = 10.0,
    rounds: int = 12,
    rtol: float = 0.01,
    seconds: float | None = None,
) -> DualBracket:
    """Bracket V(ε).

    Parameters
    ----------
    solve : callable (λ, starts, seconds) -> Brackets
        Such as `maximise` of a family, with everything else filled in.
    base_losses : float array of shape (n,)
        Losses of the people as they are.
    eps : float
        Budget ε ≥ 0 of mean squared fair distance.
    start : float, default=10
        The first λ.
    rounds : int, default=12
        At most so many λ.
    rtol : float, default=0.01
        Closed when upper − lower ≤ rtol · upper.
    seconds : float, optional
        Wall time in all; each call is told what is left.

    Returns
    -------
    DualBracket

    Examples
    --------
    One person may rise from a loss of 0 to 3 at a squared distance of 1:

    >>> def solve(lam, starts, seconds):
    ...     s = max(0.0, 3.0 - lam)
    ...     moved = float(lam < 3)
    ...     one = np.array([s])
    ...     return Brackets(
    ...         one, one, np.array([[moved]]), np.array([3.0 * moved]), np.array([moved]), np.array([1]), 0.0
    ...     )
    >>> found = bracket_value(solve, np.array([0.0]), 0.5)
    >>> round(found.lower, 6), round(found.upper, 2)
    (1.5, 1.5)
    """
    owner = "bracket_value"
    budget = check_number(eps, owner=owner, name="eps", low=0.0)
    base = np.asarray(base_losses, dtype=np.float64)
    clock = time.perf_counter()
    support = _Support(base)
    lam = np.inf if budget == 0 else 0.0 if np.isinf(budget) else float(start)
    low, high = 0.0, np.inf
    best: tuple[float, float, Brackets] | None = None
    lower, interrupted, near = float(base.mean()), False, not 0 < lam < np.inf
    for number in range(rounds):
        left = None if seconds is None else max(0.0, seconds - (time.perf_counter() - clock))
        # The first values of λ are only tried; the one that they lead to gets the time that is left.
        part = left if left is None or near or number >= _TRIED else _TRIAL_SHARE * left
        try:
            found = solve(lam, _starts(support, len(base)), part)
        except KeyboardInterrupt:
            if best is None:
                raise
            interrupted = True
            break
        support.add(found)
        price = lam * budget if 0 < lam < np.inf else 0.0
        upper = price + float(found.upper.mean())
        if best is None or upper < best[0]:
            best = upper, lam, found
        curve = support.curve()
        lower = float(curve.value(budget))
        if np.isinf(lam):
            # Added up in the same order as the upper values: of equal numbers the means are equal to the last bit.
            lower = max(lower, float(np.maximum(found.lower, base).mean()))
        interrupted = found.interrupted
        if interrupted or best[0] - lower <= rtol * abs(best[0]) or not 0 < lam < np.inf or left == 0.0:
            break
        # The slope of the dual at λ is ε − mean d².
        if float(found.cost.mean()) > budget:
            low = max(low, lam)
        else:
            high = min(high, lam)
        before, lam = lam, _next(float(curve.lambda_(budget)), low, high, lam)
        near = abs(lam - before) <= _NEAR * before
        if np.isfinite(high) and high - low <= 1e-6 * high:
            break
    assert best is not None
    upper, at, last = best
    closed = upper - lower <= rtol * abs(upper) or upper - lower <= 1e-9
    return DualBracket(
        budget,
        lower,
        max(upper, lower),
        float(base.mean()),
        at,
        np.concatenate(support.rows),
        np.concatenate(support.person),
        np.concatenate(support.loss),
        np.concatenate(support.cost),
        last,
        "closed" if closed else "open",
        _reasons(last, at, closed, interrupted),
        interrupted,
    )


def _reasons(last: Brackets, lam: float, closed: bool, interrupted: bool) -> tuple[str, ...]:
    """Why a bracket is wider than was asked."""
    if interrupted:
        return ("the proof was interrupted: the bracket holds, and would be narrower had it gone on",)
    if closed:
        return ()
    count = int((~last.closed).sum())
    people = f"{count} of {len(last.lower)} people have an open bracket at λ = {lam:g}"
    return (f"{people}: a larger budget closes more",)


def _next(asked: float, low: float, high: float, now: float) -> float:
    """The λ of the support's own dual where it lies inside what is left, else the middle of that."""
    if low < asked < high and abs(asked - now) > 1e-3 * now:
        return asked
    if np.isinf(high):
        return 4.0 * max(now, low)
    return float(np.sqrt(low * high)) if low > 0 else high / 4.0


def _starts(support: _Support, n: int) -> FloatArray | None:
    """The rows of the last three rounds, person by person; nobody's place is left empty."""
    if not support.rows:
        return None
    width = support.rows[0].shape[1]
    starts = np.full((n, min(3, len(support.rows)), width), np.nan)
    for s, (person, rows) in enumerate(zip(support.person[-3:], support.rows[-3:], strict=True)):
        starts[person, s] = rows
    return starts
