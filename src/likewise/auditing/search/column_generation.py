"""Column generation for the dual: gradient searches at chosen λ add rows to the support until V(ε) settles.

At the λ* of the present support the search looks for rows that beat it. Rows found join the support, the dual is
solved again exactly, and so on. V(ε) of the support rises in every round and is attained by listed rows, so it is
a lower bound of the true value, and equals it in the limit where the search is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.auditing.problem.coordinates import tabular
from likewise.auditing.search.contract import Found
from likewise.auditing.support.finite_dual import solve_dual
from likewise.auditing.support.frontier import Floats, Ints
from likewise.auditing.support.supporting_rows import Support
from likewise.core.arrays import to_numpy

if TYPE_CHECKING:
    from likewise.auditing.problem.audit_problem import AuditProblem
    from likewise.auditing.search.contract import Budget
    from likewise.auditing.search.gradient.gradient_search import GradientSearch

__all__ = ["ColumnReport", "generate_columns", "improve_by_columns"]

# Spread of the first λ tried, around a scale taken from the data.
_FIRST = (0.1, 1.0, 10.0)


@dataclass(frozen=True)
class ColumnReport:
    """How the rounds went.

    Parameters
    ----------
    rounds : int
        Searches made.
    settled : bool
        Whether the last round raised V(ε) by less than the tolerance.
    non_finite : int
        Audited rows whose search met a value that is not finite, in any round.
    unfinished : int
        Audited rows that ran out of steps in the last round.
    """

    rounds: int
    settled: bool
    non_finite: int
    unfinished: int


def improve_by_columns(
    search: GradientSearch, problem: AuditProblem, support: Support, eps: float, budget: Budget
) -> Found:
    """Run the gradient search as a `Search`: rows of a table are made valid before they join the support.

    Parameters
    ----------
    search : GradientSearch
    problem, support, eps, budget
        As in `Search.improve`.
    """
    place = problem.coordinates

    def valid(x: Floats, rows: Ints, lam: float) -> Floats:
        from likewise.auditing.search.valid_rows import refine

        return refine(
            x,
            problem.X[rows],
            problem.labels[rows],
            losses=place.losses_encoded,
            metric=place.metric,
            domain=place.domain,
            lam=lam,
        )

    support, report = generate_columns(
        support,
        search=search,
        origin=problem.X,
        target=problem.target,
        eps=eps,
        refine=valid if tabular(place.domain) is not None else None,
        random_state=problem.random_state,
    )
    if report.non_finite:
        reason = f"the gradient search met values that are not finite for {report.non_finite} people"
        return Found(support, "failed", (reason,))
    if not report.settled:
        reason = (
            f"V(ε) still rose after {report.rounds} rounds of the gradient search; give it more time "
            "(budget_seconds=…, --budget)"
        )
        return Found(support, "not_converged", (reason,))
    return Found(support)


def generate_columns(
    support: Support,
    *,
    search: GradientSearch,
    origin: Floats,
    target: Any,
    eps: float,
    refine: Callable[[Floats, Ints, float], Floats] | None = None,
    max_rounds: int = 10,
    tol: float = 1e-3,
    random_state: int = 0,
) -> tuple[Support, ColumnReport]:
    """Add rows found by gradient searches until the dual at ε settles.

    Parameters
    ----------
    support : Support
        What is known already; its problem has the model, the metric and the domain.
    search : GradientSearch
        The choices of the search.
    origin : float array of shape (n, d)
        The audited rows, encoded.
    target : array of shape (n,)
        Class indices, or numbers for regression.
    eps : float
        Budget ε.
    refine : callable, optional
        ``refine(x, rows, lam)`` makes valid rows of relaxed worst cases; without it they are used as they are.
    max_rounds : int, default=10
        Rounds after the first spread of λ.
    tol : float, default=1e-3
        Settled when a round raises V(ε) by less than this, relative to it.
    random_state : int, default=0
        For probes and restarts of the search.

    Returns
    -------
    support : Support
    report : ColumnReport
    """
    rounds, non_finite, unfinished, settled = 0, np.zeros(len(origin), dtype=bool), 0, False
    solution = solve_dual(support.frontier, eps)
    scale = solution.lambda_ or max(solution.base_loss, 1e-3) / max(eps, 1e-3)
    pending = [np.inf, *(scale * factor for factor in _FIRST)] if eps > 0 else [np.inf]
    start = None
    for _ in range(max_rounds + len(pending)):
        lam = pending.pop(0) if pending else solution.lambda_
        support, start, failed, unfinished = _one_round(
            support, search, origin, target, lam, refine, start, random_state
        )
        non_finite |= failed
        rounds += 1
        before, solution = solution.value, solve_dual(support.frontier, eps)
        if not pending:
            settled = solution.value - before <= tol * max(abs(solution.value), 1e-12)
            if settled or eps == 0:
                break
    return support, ColumnReport(rounds, settled, int(non_finite.sum()), unfinished)


def _one_round(
    support: Support,
    search: GradientSearch,
    origin: Floats,
    target: Any,
    lam: float,
    refine: Callable[[Floats, Ints, float], Floats] | None,
    start: Floats | None,
    random_state: int,
) -> tuple[Support, Floats, Any, int]:
    import torch

    from likewise.auditing.search.gradient.row_status import Status
    from likewise.core.randomness import torch_generator

    place = support.problem.coordinates
    oracle = place.gradient_oracle()
    x = torch.tensor(origin, dtype=oracle.dtype)
    found = search.run(
        oracle,
        x,
        torch.as_tensor(target),
        metric=place.metric,
        domain=place.domain,
        lam=lam,
        start=None if start is None else torch.as_tensor(start, dtype=oracle.dtype),
        generator=torch_generator(random_state),
    )
    status = to_numpy(found.status)
    failed = status == Status.NON_FINITE.value
    relaxed = to_numpy(found.x).astype(np.float64)
    rows = np.flatnonzero(~failed & np.isfinite(relaxed).all(axis=1))
    # Single precision leaves a crumb outside the domain, and a crumb off the free directions.
    inside = to_numpy(place.domain.project(relaxed[rows], origin[rows]))
    candidates = inside if refine is None else refine(inside, rows, lam)
    moved = np.flatnonzero((candidates != origin[rows]).any(axis=1))
    support = support.with_rows(
        candidates[moved],
        rows[moved],
        resolution=float(torch.finfo(oracle.dtype).eps) if refine is None else None,
    )
    return support, relaxed, failed, int((status == Status.MAX_STEPS.value).sum())
