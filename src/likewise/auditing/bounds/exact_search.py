"""What can be proved about a model, as a search: linear models solved, trees and ReLU networks by branch and bound."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from likewise.auditing.bounds.linear.linear_search import LinearSearch
from likewise.auditing.claims.certificate import Bound
from likewise.auditing.search.contract import Budget, Found, Search, Status
from likewise.auditing.support.finite_dual import solve_dual
from likewise.core.errors import InputError
from likewise.texts import Said

if TYPE_CHECKING:
    from likewise.auditing.problem.audit_problem import AuditProblem
    from likewise.auditing.support.supporting_rows import Support
    from likewise.core.arrays import FloatArray

__all__ = ["BranchAndBoundSearch", "ExactSearch"]


@dataclass(frozen=True)
class BranchAndBoundSearch(Search):
    """Tree ensembles and ReLU networks over the regions of a table: a bound of V(ε), and the rows that come nearest.

    Parameters
    ----------
    nodes : int, default=2000
        Regions that are looked at for each person and λ, at most; more of them make the bracket narrower.
    rtol : float, default=0.01
        The bracket of V(ε) counts as closed when it is narrower than this share of it.
    """

    name: ClassVar[str] = "branch and bound"

    nodes: int = 2_000
    rtol: float = 0.01

    def why_not(self, problem: AuditProblem) -> str | None:
        """Say why no bound is known for the model, where none is."""
        place = problem.coordinates
        if place.metric.feature_map is not None:
            return Said("why_not.feature_map")
        try:
            _family(problem)
        except InputError as error:
            return str(error)
        return None

    def improve(self, problem: AuditProblem, support: Support, eps: float, budget: Budget) -> Found:
        """Bracket V(ε): rows from below, a `Bound` from above, as narrow as nodes and time allow."""
        from likewise.auditing.bounds.asking import Asker
        from likewise.auditing.bounds.brackets import Brackets, RegionBudget
        from likewise.auditing.bounds.branch_and_bound import maximise
        from likewise.auditing.bounds.dual_bracket import bracket_value

        family, place = _family(problem), problem.coordinates
        ask = Asker(place, family.layout).losses

        def solve(lam: float, starts: FloatArray | None, seconds: float | None) -> Brackets:
            limit = RegionBudget(nodes=self.nodes, seconds=seconds, tell=budget.tell_time)
            people = problem.X, problem.target
            return maximise(family, place.metric, *people, lam, starts=starts, budget=limit, ask=ask)

        # The λ of what is known already is the first guess; 10 where nothing is.
        known = solve_dual(support.frontier, eps).lambda_ if 0 < eps < np.inf else 0.0
        start = known if 0 < known < np.inf else 10.0
        seconds = None if budget.seconds is None else max(budget.left, 0.0)
        found = bracket_value(solve, problem.base_loss, eps, start=start, rtol=self.rtol, seconds=seconds)
        moved = np.flatnonzero((found.rows != problem.X[found.person]).any(axis=1))
        rows = np.asarray(found.rows[moved], dtype=np.float64)
        support = support.with_rows(rows, found.person[moved])
        bound = Bound(
            value=found.upper,
            gap=found.upper - found.base_loss,
            eps=eps,
            n=problem.n,
            method=Said("method.branch_and_bound"),
            lambda_=found.lambda_,
            assumptions=(Said("assumption.any_person"),),
        )
        status: Status = "not_converged" if found.interrupted else "converged"
        return Found(support, status, found.reasons, bound)


@dataclass(frozen=True)
class ExactSearch(Search):
    """What proves most: a linear model is solved in the box around the domain, then every family is cut into regions.

    The solution of a linear model takes shares of categories and fractions of whole numbers for people. Where that
    leaves the bracket open, the same model goes through the branch and bound, as a network of one layer, in which
    categories and whole numbers are whole; the lower of the two bounds counts.

    Parameters
    ----------
    choices : tuple of Search
        In the order in which they are asked, as far as they fit the model and until the bracket is closed.
    rtol : float, default=0.01
        The bracket of V(ε) counts as closed when it is narrower than this share of it.

    Examples
    --------
    >>> [search.name for search in ExactSearch().choices]
    ['exact', 'branch and bound']
    """

    name: ClassVar[str] = "exact"

    choices: tuple[Search, ...] = (LinearSearch(), BranchAndBoundSearch())
    rtol: float = 0.01

    def why_not(self, problem: AuditProblem) -> str | None:
        """Say why none of them fits."""
        reasons = [search.why_not(problem) for search in self.choices]
        return None if None in reasons else "; ".join(str(reason) for reason in reasons)

    def improve(self, problem: AuditProblem, support: Support, eps: float, budget: Budget) -> Found:
        """Ask one after the other until the bracket is closed or time is up."""
        ended = Found(support)
        for search in self.choices:
            if search.why_not(problem) is not None:
                continue
            if ended.bound is not None and (budget.spent or self._closed(ended.support, ended.bound, eps)):
                break
            ended = _joined(ended, search.improve(problem, ended.support, eps, budget))
        return ended

    def _closed(self, support: Support, bound: Bound, eps: float) -> bool:
        attained = solve_dual(support.frontier, eps).value
        return bool(bound.value - attained <= self.rtol * abs(bound.value))


def _joined(first: Found, second: Found) -> Found:
    """What two ways of proving know together: the rows of both, and the lower bound."""
    if first.bound is None:
        return second
    bounds = [first.bound] if second.bound is None else [second.bound, first.bound]
    return replace(
        second,
        bound=min(bounds, key=lambda bound: bound.value),
        population_bound=second.population_bound or first.population_bound,
    )


def _family(problem: AuditProblem) -> Any:
    from likewise.auditing.bounds.families import family_in

    return family_in(problem)
