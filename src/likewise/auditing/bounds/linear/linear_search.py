"""The exact audit of a linear model as a search: it finds the rows that attain the worst case, and proves it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from likewise.auditing.bounds.linear.linear_claims import exact_bound, loss_ceiling
from likewise.auditing.bounds.linear.linear_dual import attaining_rows, exact_dual
from likewise.auditing.bounds.linear.linear_model import LOSSES, LinearModel
from likewise.auditing.claims.certificate import Bound
from likewise.auditing.search.contract import Budget, Found, Search
from likewise.core.arrays import to_numpy
from likewise.texts import Said

if TYPE_CHECKING:
    from likewise.auditing.problem.audit_problem import AuditProblem
    from likewise.auditing.support.supporting_rows import Support

__all__ = ["LinearSearch"]


@dataclass(frozen=True)
class LinearSearch(Search):
    """Logistic and softmax regression, and linear models under hinge and 0–1 loss: solved, not searched.

    Parameters
    ----------
    tol : float, default=1e-6
        How close the bound and what is attained must be, relative to 1 + V(ε).
    confidence : float, default=0.95
        Of the bound for the population.
    """

    name: ClassVar[str] = "exact"

    tol: float = 1e-6
    confidence: float = 0.95

    def why_not(self, problem: AuditProblem) -> str | None:
        """Say why the model cannot be solved exactly, where it cannot."""
        place = problem.coordinates
        if place.linear_form() is None:
            return Said("why_not.not_linear")
        if place.model.loss.name not in LOSSES:
            return Said("why_not.loss", loss=repr(place.model.loss.name))
        return None

    def improve(self, problem: AuditProblem, support: Support, eps: float, budget: Budget) -> Found:
        """Solve the dual, add the rows that attain it, and give the value as a `Bound`."""
        place = problem.coordinates
        form = place.linear_form()
        assert form is not None  # why_not says so
        model = LinearModel(*form, classes=place.model.classes_, loss=place.model.loss.name)
        given = (model, problem.X, problem.labels)
        where: dict[str, Any] = {
            "metric": place.metric,
            "domain": place.domain,
            "eps": eps,
            "tol": self.tol,
        }
        solved = exact_dual(*given, **where)
        if not np.isfinite(solved.value):
            reason = Said("reason.endless_loss")
            return Found(support, "not_converged", (reason,))
        support = _with_attained(problem, support, solved)
        bound = Bound(
            value=solved.value,
            gap=solved.gap,
            eps=eps,
            n=problem.n,
            method=Said("method.linear"),
            lambda_=solved.lam,
            assumptions=(Said("assumption.box"),),
        )
        population = None
        if eps > 0 and problem.n >= 4 and np.isfinite(loss_ceiling(model, place.domain)):
            population = exact_bound(
                *given, **where, confidence=self.confidence, random_state=problem.random_state
            )
        return Found(support, bound=bound, population_bound=population)


def _with_attained(problem: AuditProblem, support: Support, solved: Any) -> Support:
    """Add the rows of the mixture that attains V(ε), and of a table the people next to where the box is worst."""
    domain = problem.coordinates.domain
    finite = np.flatnonzero(np.isfinite(solved.result.x).all(axis=1))
    found = [(part.row, part.x) for part in attaining_rows(solved)]
    for rows, x in (*found, (finite, solved.result.x[finite])):
        if not len(rows):
            continue
        origin = problem.X[rows]
        valid = np.asarray(to_numpy(domain.nearest_valid(x, origin)), dtype=np.float64)
        moved = np.flatnonzero((valid != origin).any(axis=1))
        support = support.with_rows(valid[moved], rows[moved])
    return support
