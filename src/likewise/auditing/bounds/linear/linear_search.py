"""The exact audit of a linear model as a search: it finds the rows that attain the worst case, and proves it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from likewise.auditing.bounds.asking import Asker
from likewise.auditing.bounds.linear.linear_claims import exact_bound, loss_ceiling
from likewise.auditing.bounds.linear.linear_dual import attaining_rows, exact_dual
from likewise.auditing.bounds.linear.linear_model import LOSSES, LinearModel
from likewise.auditing.bounds.reading_check import check_reading, check_rows
from likewise.auditing.bounds.score_losses import Components, raised_by_answers, sure_decisions
from likewise.auditing.bounds.table_layout import TableLayout
from likewise.auditing.claims.certificate import Bound
from likewise.auditing.problem.coordinates import tabular
from likewise.auditing.search.contract import Budget, Found, Search
from likewise.core.arrays import FloatArray, to_numpy
from likewise.core.errors import InputError
from likewise.domains import BoxDomain
from likewise.models.losses import ZeroOne
from likewise.models.relu_network import ReluNetwork
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
        if problem not in _CHECKED:
            _CHECKED[problem] = _why_not_read(problem)
        return _CHECKED[problem]

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
        slack = _slack(problem, model)
        bound = Bound(
            value=solved.value + slack,
            gap=solved.gap + slack,
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


# Whether the weights answer as the model does is asked once for some people.
_CHECKED: WeakKeyDictionary[AuditProblem, str | None] = WeakKeyDictionary()


class _LinearReading:
    """Linear scores of encoded rows, to be compared with the model they were read from."""

    kind = "scores"

    def __init__(self, problem: AuditProblem) -> None:
        place = problem.coordinates
        form = place.linear_form()
        assert form is not None  # why_not says so
        domain = place.domain if tabular(place.domain) else BoxDomain.from_data(problem.X)
        self.layout = TableLayout.of(domain)
        # The map between two encodings rounds once more.
        self.net = ReluNetwork((form[0],), (form[1],), 16.0 * place.model.roundoff)

    def outputs(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scores and their rounding."""
        x = self.layout.encode(values)
        return self.net.outputs(x), self.net.rounding(x)

    def decisions(self, values: FloatArray) -> Any:
        """Decisions, −1 where rounding leaves them open."""
        scores, error = self.outputs(values)
        parts = Components.of(ZeroOne(), scores.shape[1], probabilities=False)
        return sure_decisions(scores, parts, 2.0 * error)

    def split_rows(self, base: FloatArray, rng: np.random.Generator, most: int) -> FloatArray:
        """There are no splits."""
        return base[:0]


def _why_not_read(problem: AuditProblem) -> str | None:
    """Why the weights of a linear model are not believed; None where they answer as it does."""
    model = problem.coordinates.model
    if model.roundoff > 2.0**-53 and (model.gives_probabilities or model.loss.name == "zero_one"):
        return Said("why_not.single_precision")
    reading = _LinearReading(problem)
    asker = Asker(problem.coordinates, reading.layout)
    people = reading.layout.values(problem.X)
    try:
        check_reading(reading, asker, people, decides=problem.decides)
        check_rows(reading, asker, people, decides=problem.decides)
    except InputError as error:
        return str(error)
    return None


def _slack(problem: AuditProblem, model: LinearModel) -> float:
    """How far the model's own losses may lie above those of its exact scores."""
    place = problem.coordinates
    if model.loss == "zero_one":
        return 0.0
    ceiling = loss_ceiling(model, place.domain)
    lower, upper = (np.asarray(to_numpy(side), dtype=np.float64) for side in _ends(problem))
    largest = np.maximum(np.abs(lower), np.abs(upper))
    net = ReluNetwork((model.coef,), (model.intercept,), 16.0 * place.model.roundoff)
    error = 2.0 * float(net.rounding(largest)[0]) if np.isfinite(largest).all() else 0.0
    if not place.model.gives_probabilities or not np.isfinite(ceiling):
        return error
    highest = np.array([min(ceiling + error, place.model.loss.upper_bound)])
    return error + float((raised_by_answers(highest, 4.0 * 2.0**-53, place.model.loss) - highest)[0])


def _ends(problem: AuditProblem) -> tuple[Any, Any]:
    """Ends of the box around domain and people."""
    lower, upper = problem.coordinates.domain.bounds()
    return np.minimum(lower, problem.X.min(axis=0)), np.maximum(upper, problem.X.max(axis=0))


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
