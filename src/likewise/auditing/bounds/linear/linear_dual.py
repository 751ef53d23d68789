"""The auditor's problem of a linear model: V(ε) from above and from below, by its dual in one dimension."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from likewise.auditing.bounds.linear.linear_problem import IntArray, Problem
from likewise.auditing.bounds.linear.linear_supremum import ExactResult, Solver
from likewise.core.arrays import FloatArray
from likewise.core.checks import check_number

__all__ = ["AttainedRows", "ExactDual", "attaining_rows", "exact_dual"]

_MAX_STEPS = 120
# Tolerance of the inner problems while λ is still far away.
_COARSE = 1e-3
# Along paths (two classes in a closed box) more digits cost almost nothing.
_FINE = 1e-9


class AttainedRows(NamedTuple):
    """Rows of the domain that one unfair map moves people to, with what they attain.

    Examples
    --------
    >>> AttainedRows(np.array([0]), np.zeros((1, 2)), np.ones(1), np.zeros(1)).loss
    array([1.])
    """

    row: IntArray
    """The audited rows they belong to, (k,)."""
    x: FloatArray
    """Where these go, (k, d)."""
    loss: FloatArray
    """Loss there under the label of the audited row, (k,)."""
    squared_distance: FloatArray
    """Squared fair distance from the audited row, (k,)."""


@dataclass(frozen=True, eq=False)
class ExactDual:
    """V(ε) of a linear model.

    Parameters
    ----------
    value : float
        λε + mean of ℓ^c_λ at the best λ found: an upper bound of V(ε), and V(ε) itself where `exact`.
    lower : float
        Mean loss of a mixture of two unfair maps that spends at most ε: attained, so a lower bound of V(ε).
    lam : float
        The minimiser λ*.
    eps : float
        ε.
    base_loss : float
        Mean loss of the rows as they are.
    exact : bool
        Whether upper and lower bound agree to the tolerance and nothing was relaxed.
    status : str
        "solved", "over-estimated" or "unbounded".
    result : ExactResult
        The inner suprema at λ*.
    mixture : tuple of AttainedRows
        The unfair maps whose mixture attains `lower`: one, or the two on either side of λ*.

    Examples
    --------
    >>> from likewise.auditing.bounds.linear import LinearModel, exact_dual
    >>> from likewise.fair_metrics import euclidean
    >>> model = LinearModel([1.0, 0.0], 0.0, loss="zero_one")
    >>> found = exact_dual(model, [[1.0, 0.0], [3.0, 0.0]], [1, 1], metric=euclidean(), eps=0.5)
    >>> round(found.value, 6), round(found.gap, 6)  # the first row flips for 1, half of the budget of both
    (0.5, 0.5)
    """

    value: float
    lower: float
    lam: float
    eps: float
    base_loss: float
    exact: bool
    status: str
    result: ExactResult
    mixture: tuple[AttainedRows, ...] = ()

    @property
    def gap(self) -> float:
        """V(ε) minus the mean loss: what moving people a little can add."""
        return self.value - self.base_loss


@dataclass(frozen=True)
class _Line:
    """One λ tried: the dual value there, and the line below the dual that its unfair map gives."""

    lam: float
    value: float
    loss: float
    slope: float
    inside: np.ndarray[Any, np.dtype[np.bool_]]
    result: ExactResult

    @property
    def feasible(self) -> bool:
        """Whether the whole map stays in the domain itself, not merely in the box around it."""
        return bool(self.inside.all())

    def attained(self) -> AttainedRows:
        """The rows of the map that lie in the domain."""
        row, found = np.flatnonzero(self.inside), self.result
        return AttainedRows(row, found.x[row], found.loss[row], found.squared_distance[row])


def exact_dual(
    model: Any,
    X: Any,
    y: Any,
    *,
    metric: Any,
    eps: float,
    domain: Any = None,
    tol: float = 1e-9,
    max_nodes: int = 500,
) -> ExactDual:
    """Solve the auditor's problem V(ε) = min over λ ≥ 0 of λε + mean ℓ^c_λ (equation 4 of the paper).

    Parameters
    ----------
    model, X, y, metric, domain, max_nodes
        As in `exact_supremum`.
    eps : float
        ε ≥ 0, in squared fair distance per row on average.
    tol : float, default=1e-9
        Stop when upper and lower bound agree to this, relative to 1 + value.

    Returns
    -------
    ExactDual

    Notes
    -----
    The dual is convex in λ. The unfair map found at any λ is feasible for every other, so it gives a line below
    the dual; the crossing of the two lines around the minimum is attained by a mixture of the two maps and is a
    lower bound of V(ε). The bracket shrinks until it meets the upper bound. λ = 0 is tried where the loss is
    bounded there, and ε = 0 means moves that cost nothing (λ → ∞).

    Examples
    --------
    >>> from likewise.auditing.bounds.linear import LinearModel
    >>> from likewise.fair_metrics import euclidean
    >>> model = LinearModel([2.0], 0.0)
    >>> found = exact_dual(model, [[1.0], [-1.0]], [1, 0], metric=euclidean(), eps=0.25)
    >>> bool(np.isclose(found.value, np.log1p(np.exp(-2 * (1 - 0.5)))))  # both rows move by √ε = 0.5
    True
    """
    owner = "exact_dual"
    eps = check_number(eps, owner=owner, name="eps", low=0.0)
    tol = check_number(tol, owner=owner, name="tol", low=0.0, open_low=True)
    max_nodes = int(check_number(max_nodes, owner=owner, name="max_nodes", low=1))
    problem = Problem.build(model, X, y, metric=metric, domain=domain, owner=owner)
    solve = Solver(problem, tol=tol, max_nodes=max_nodes)
    tol = min(tol, _FINE) if solve.has_paths else tol
    if _unbounded(problem):
        return ExactDual(
            np.inf, np.inf, np.inf, eps, float(problem.base_losses.mean()), True, "unbounded", solve(1.0)
        )
    if eps == 0:
        return _alone(problem, _try(solve, np.inf, eps, tol), eps, tol)
    return _minimise(problem, solve, eps, tol)


def _unbounded(problem: Problem) -> bool:
    """Whether some row's loss grows without end at no cost, so that V(ε) is infinite for every ε."""
    return problem.model.loss != "zero_one" and bool(problem.escapes(1.0)[problem.index].any())


def _alone(problem: Problem, line: _Line, eps: float, tol: float) -> ExactDual:
    """End with a line whose map keeps to the budget: it attains its own mean loss."""
    return _finish(problem, line, line.loss if line.feasible else -np.inf, (line,), eps, tol)


def _try(solve: Solver, lam: float, eps: float, tol: float) -> _Line:
    result = solve(lam, tol=tol / 4.0)
    slope = eps - float(result.squared_distance.mean())
    spent = lam * eps if eps > 0 else 0.0
    inside = solve.problem.inside(result.x)
    value, loss = spent + float(result.value.mean()), float(result.loss.mean())
    return _Line(lam, value, loss, slope, inside, result)


def _minimise(problem: Problem, solve: Solver, eps: float, tol: float) -> ExactDual:
    """Shrink a bracket of λ around the minimum; lines from below, values from above."""
    bounded = problem.model.loss == "zero_one" or not problem.escapes(0.0)[problem.index].any()
    low = _try(solve, 0.0, eps, tol) if bounded else None
    if low is not None and low.slope >= 0:
        return _alone(problem, low, eps, tol)
    coarse = max(tol, _COARSE)
    high = _try(solve, _scale(problem, eps), eps, coarse)
    tried = [line for line in (low, high) if line is not None]
    while high.slope < 0 and high.lam < 1e15:
        low, high = high, _try(solve, 4.0 * high.lam, eps, coarse)
        tried.append(high)
    while low is None or low.slope >= 0:
        # Below every λ tried the budget is still not spent.
        high = high if low is None else low
        low = _try(solve, high.lam / 4.0, eps, coarse)
        tried.append(low)
    best, lower, pair = _shrink(solve, low, high, min(tried, key=lambda line: line.value), eps, tol)
    return _finish(problem, best, lower, pair, eps, tol)


def _shrink(
    solve: Solver, low: _Line, high: _Line, best: _Line, eps: float, tol: float
) -> tuple[_Line, float, tuple[_Line, _Line]]:
    """Bring the best value and the crossing of the two lines together."""
    lower = -np.inf
    for step in range(_MAX_STEPS):
        crossing = (low.loss - high.loss) / (high.slope - low.slope)
        crossing = min(max(crossing, low.lam), high.lam)
        attained = low.loss + low.slope * crossing
        # Only maps into the domain itself, not merely into the box around it, attain anything.
        lower = max(lower, attained) if low.feasible and high.feasible else lower
        left = (best.value - attained) / (1.0 + abs(best.value))
        if left <= tol or high.lam - low.lam <= 1e-15 * high.lam:
            break
        lam = crossing if step % 4 != 3 else (low.lam + high.lam) / 2.0
        lam = lam if low.lam < lam < high.lam else (low.lam + high.lam) / 2.0
        # While the bracket is wide, the inner problems need not be solved to the end.
        line = _try(solve, lam, eps, max(tol, min(_COARSE, left / 8.0)))
        best = min(best, line, key=lambda each: each.value)
        low, high = (line, high) if line.slope < 0 else (low, line)
    return best, lower, (low, high)


def _scale(problem: Problem, eps: float) -> float:
    """A λ of the right size: L / √ε with L the Lipschitz constant of the loss (Lemma A.1 of the paper)."""
    coef = problem.model.coef
    differences = (coef - coef.mean(0)) * 2.0
    lipschitz = float((differences * problem.metric.solve(differences)).sum(1).max())
    return float(np.sqrt(lipschitz / eps)) if lipschitz > 0 else 1.0


def _finish(
    problem: Problem, best: _Line, lower: float, maps: tuple[_Line, ...], eps: float, tol: float
) -> ExactDual:
    lower = min(max(lower, float(problem.base_losses.mean())), best.value)
    exact = best.value - lower <= 2.0 * tol * (1.0 + abs(best.value))
    return ExactDual(
        best.value,
        lower,
        best.lam,
        eps,
        float(problem.base_losses.mean()),
        exact,
        "solved" if exact else "over-estimated",
        best.result,
        tuple(line.attained() for line in maps),
    )


def attaining_rows(dual: ExactDual) -> tuple[AttainedRows, ...]:
    """Rows whose mixture attains `ExactDual.lower`: on them as a support, V(ε) is the exact value where `dual.exact`.

    Parameters
    ----------
    dual : ExactDual
        Of `exact_dual`.

    Returns
    -------
    tuple of AttainedRows
        Of one unfair map, or of the two around λ*; people whose worst case lies in the box around the domain but not
        in the domain itself are left out. Empty where V(ε) is infinite.

    Examples
    --------
    >>> from likewise.auditing.bounds.linear import LinearModel
    >>> from likewise.domains import BoxDomain
    >>> from likewise.fair_metrics import euclidean
    >>> model, box = LinearModel([2.0], 0.0), BoxDomain([-3.0], [3.0])
    >>> dual = exact_dual(model, [[1.0], [-1.0]], [1, 0], metric=euclidean(), domain=box, eps=0.25)
    >>> [len(part.x) for part in attaining_rows(dual)]
    [2, 2]
    """
    return dual.mixture
