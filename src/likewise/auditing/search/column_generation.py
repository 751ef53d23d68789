"""Column generation for the dual: gradient searches at chosen λ add rows to the support until V(ε) settles.

At the λ* of the present support the search looks for rows that beat it. Rows found join the support, the dual is
solved again exactly, and so on. V(ε) of the support rises in every round and is attained by listed rows, so it is
a lower bound of the true value, and equals it in the limit where the search is exact: with ℓ^c the present support's
conjugate and T the search, V(ε) can rise by no more than the mean of what T at λ* adds to ℓ^c_λ* (weak duality). So
only a round at λ* can say that nothing more is to be found.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.auditing.problem.coordinates import tabular
from likewise.auditing.search.contract import Found
from likewise.auditing.support.finite_dual import solve_dual
from likewise.auditing.support.frontier import Floats, Frontier, Ints
from likewise.auditing.support.supporting_rows import Support
from likewise.core.arrays import to_numpy
from likewise.texts import Said

if TYPE_CHECKING:
    from likewise.auditing.problem.audit_problem import AuditProblem
    from likewise.auditing.search.contract import Budget
    from likewise.auditing.search.gradient.gradient_search import GradientSearch

__all__ = ["ColumnReport", "generate_columns", "improve_by_columns"]

# Worst cases of so many earlier rounds are kept to start the next one from.
_REMEMBERED = 4
# Starts of the last look at each row, besides those of the search itself.
_RESTARTS = 8


@dataclass(frozen=True)
class ColumnReport:
    """How the rounds went.

    Parameters
    ----------
    rounds : int
        Searches made.
    settled : bool
        Whether the last round searched at the λ* of the support and could raise V(ε) by less than the tolerance.
    non_finite : int
        Audited rows whose search met a value that is not finite, in any round.
    unfinished : int
        Audited rows that ran out of steps in the last round.

    Examples
    --------
    >>> print(ColumnReport(rounds=3, settled=False, non_finite=0, unfinished=2).reason)
    V(ε) still rose after 3 rounds of search: give the search more time (budget_seconds=…, --budget)
    """

    rounds: int
    settled: bool
    non_finite: int
    unfinished: int

    @property
    def reason(self) -> str | None:
        """Why the result is not settled and what to do about it; None where it is."""
        if self.non_finite:
            return Said("reason.not_finite", people=self.non_finite)
        if self.settled:
            return None
        return Said("reason.still_rose", n=self.rounds)


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
        budget_seconds=None if budget.seconds is None else budget.left,
        tell=budget.tell,
    )
    if report.reason is None:
        return Found(support)
    return Found(support, "failed" if report.non_finite else "not_converged", (report.reason,))


def generate_columns(
    support: Support,
    *,
    search: GradientSearch,
    origin: Floats,
    target: Any,
    eps: float,
    refine: Callable[[Floats, Ints, float], Floats] | None = None,
    max_rounds: int = 20,
    tol: float = 1e-3,
    random_state: int = 0,
    budget_seconds: float | None = None,
    tell: Callable[[float], None] | None = None,
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
    max_rounds : int, default=20
        Rounds at most, where no time is given.
    tol : float, default=1e-3
        Settled when a round at λ* can raise V(ε) by no more than this, relative to it.
    random_state : int, default=0
        For probes and restarts of the search.
    budget_seconds : float, optional
        Go on until V(ε) settles or this time is over, however many rounds that takes.
    tell : callable, optional
        Hears which share of the rounds, or of the time, is over.

    Returns
    -------
    support : Support
    report : ColumnReport
    """
    begun, rounds, settled, unfinished = time.monotonic(), 0, False, 0
    non_finite = np.zeros(len(origin), dtype=bool)
    known = _Starts()
    solution = solve_dual(support.frontier, eps)
    pending = _first_lambdas(support, solution.lambda_, solution.base_loss, eps)
    wide = False
    while not settled:
        if rounds and (
            rounds >= max_rounds if budget_seconds is None else time.monotonic() - begun >= budget_seconds
        ):
            break
        if tell is not None:
            spent = (time.monotonic() - begun) / budget_seconds if budget_seconds else 0.0
            tell(rounds / max_rounds if budget_seconds is None else min(spent, 1.0))
        judged = not pending
        lam = pending.pop(0) if pending else solution.lambda_ if eps > 0 else np.inf
        before = support.frontier
        support, failed, unfinished = _one_round(
            support,
            _widened(search) if wide else search,
            origin,
            target,
            lam,
            refine,
            known,
            random_state + rounds,
        )
        non_finite |= failed
        rounds += 1
        solution = solve_dual(support.frontier, eps)
        possible = _conjugate(support.frontier, lam) - _conjugate(before, lam)
        little = judged and possible <= tol * max(abs(solution.value), 1e-12)
        # What a start at each row itself cannot raise any more is tried from elsewhere before it counts.
        settled, wide = little and wide, wide or little
    return support, ColumnReport(rounds, settled, int(non_finite.sum()), unfinished)


def _widened(search: GradientSearch) -> GradientSearch:
    """Return the search with more starts, for a last look."""
    return replace(search, restarts=max(search.restarts, _RESTARTS))


def _first_lambdas(support: Support, lam: float, base_loss: float, eps: float) -> list[float]:
    """λ of the rounds before the first at λ*: moves that cost nothing, and a scale where nothing is known yet."""
    metric = support.problem.coordinates.metric
    free = metric.n_features is not None and metric.null_space.basis.shape[1] > 0
    if eps == 0:
        return [np.inf]
    return [np.inf] * free + ([] if lam > 0 else [max(base_loss, 1e-3) / eps])


def _conjugate(frontier: Frontier, lam: float) -> float:
    """Mean of ℓ^c_λ on a support; for λ = ∞ of the worst loss at no cost."""
    if np.isinf(lam):
        return solve_dual(frontier, 0.0).value
    return float(frontier.conjugate(lam).mean())


@dataclass
class _Starts:
    """Worst cases of earlier rounds: a new round starts each row from the one that is best at its λ."""

    rounds: list[tuple[Floats, Floats, Floats]] = field(default_factory=list)

    def add(self, x: Floats, loss: Floats, squared_distance: Floats) -> None:
        self.rounds = [*self.rounds[-_REMEMBERED + 1 :], (x, loss, squared_distance)]

    def best(self, lam: float) -> Floats | None:
        """Return the rows to start from, (n, d); None before the first round."""
        if not self.rounds:
            return None
        values = np.stack([np.where(d2 > 0, loss - min(lam, 1e30) * d2, loss) for _, loss, d2 in self.rounds])
        which = np.nan_to_num(values, nan=-np.inf).argmax(axis=0)
        start = self.rounds[0][0].copy()
        for k, (x, _, _) in enumerate(self.rounds):
            start[which == k] = x[which == k]
        return start


def _one_round(
    support: Support,
    search: GradientSearch,
    origin: Floats,
    target: Any,
    lam: float,
    refine: Callable[[Floats, Ints, float], Floats] | None,
    known: _Starts,
    random_state: int,
) -> tuple[Support, Any, int]:
    import torch

    from likewise.auditing.search.gradient.row_status import RowStatus
    from likewise.core.randomness import torch_generator

    place = support.problem.coordinates
    oracle = place.gradient_oracle()
    x, start = torch.tensor(origin, dtype=oracle.dtype), known.best(lam)
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
    failed = status == RowStatus.NON_FINITE.value
    relaxed = to_numpy(found.x).astype(np.float64)
    known.add(relaxed, to_numpy(found.loss), to_numpy(found.squared_distance))
    rows = np.flatnonzero(~failed & np.isfinite(relaxed).all(axis=1))
    if not len(rows):
        return support, failed, 0
    # Single precision leaves a crumb outside the domain.
    inside = to_numpy(place.domain.project(relaxed[rows], origin[rows]))
    candidates = inside if refine is None else refine(inside, rows, lam)
    moved = np.flatnonzero((candidates != origin[rows]).any(axis=1))
    # Relaxed rows carry the rounding of the oracle, valid rows that of the encoding.
    support = support.with_rows(
        candidates[moved],
        rows[moved],
        resolution=float(torch.finfo(oracle.dtype).eps) if refine is None else None,
    )
    return support, failed, int((status == RowStatus.MAX_STEPS.value).sum())
