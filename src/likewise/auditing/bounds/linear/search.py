"""The exact audit of a linear model as a search: it finds the rows that attain the worst case, and proves it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from scipy.special import logsumexp

from likewise.auditing.bounds.families import Asker, check_reading, check_rows
from likewise.auditing.bounds.family import raised_by_answers
from likewise.auditing.bounds.linear.model import LOSSES, LinearModel, Problem
from likewise.auditing.bounds.linear.supremum import ExactResult, Solver, exact_supremum
from likewise.auditing.bounds.networks import NetworkFamily
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.inference.certificate import Bound, finite_sample_bound
from likewise.auditing.inference.intervals import halves
from likewise.auditing.people import tabular
from likewise.auditing.search.contract import Budget, Found, Search, unfinished
from likewise.core.checks import FloatArray, IntArray, check_number, to_numpy
from likewise.core.errors import InputError
from likewise.core.messages import Message
from likewise.core.randomness import RandomState
from likewise.data.domain import BoxDomain
from likewise.models.layers import Layers

if TYPE_CHECKING:
    from likewise.auditing.dual.supporting_rows import Support
    from likewise.auditing.problem import AuditProblem

# The auditor's problem of a linear model: V(ε) from above and from below, by its dual in one dimension.


_MAX_STEPS = 120
# Tolerance of the inner problems while λ is still far away.
_COARSE = 1e-3
# Along paths (two classes in a closed box) more digits cost almost nothing.
_FINE = 1e-9


class AttainedRows(NamedTuple):
    """Rows of the domain that one unfair map moves people to, with what they attain."""

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
    """V(ε) of a linear model: an upper bound `value`, and V(ε) itself if `exact`; `lower` is attained by the `mixture`.

    `result` has the inner suprema at the best λ; `mixture` are one or two unfair maps, `mixed` their λ.
    """

    value: float
    lower: float
    lam: float
    eps: float
    base_loss: float
    exact: bool
    result: ExactResult
    mixture: tuple[AttainedRows, ...] = ()
    mixed: tuple[float, ...] = ()

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
    model: LinearModel,
    X: Any,
    y: Any,
    *,
    metric: Any,
    eps: float,
    domain: Any = None,
    tol: float = 1e-9,
    max_nodes: int = 500,
    prices: tuple[float, tuple[float, ...]] | None = None,
) -> ExactDual:
    """Solve the auditor's problem V(ε) = min over λ ≥ 0 of λε + mean ℓ^c_λ (equation 4 of the paper).

    The dual is convex in λ. The unfair map found at any λ is feasible for every other, so it gives a line below
    the dual; the crossing of the two lines around the minimum is attained by a mixture of the two maps and is a
    lower bound of V(ε). The bracket shrinks until it meets the upper bound. λ = 0 is tried where the loss is
    bounded there, and ε = 0 means moves that cost nothing (λ → ∞).

    `prices` are λ* and the λ of the maps to mix, if others chose them: what is found for a row then does not depend on
    the rest.
    """
    owner = "exact_dual"
    eps = check_number(eps, owner=owner, name="eps", low=0.0)
    tol = check_number(tol, owner=owner, name="tol", low=0.0, open_low=True)
    max_nodes = int(check_number(max_nodes, owner=owner, name="max_nodes", low=1))
    problem = Problem.build(model, X, y, metric=metric, domain=domain, owner=owner)
    solve = Solver(problem, tol=tol, max_nodes=max_nodes)
    tol = min(tol, _FINE) if solve.has_paths else tol
    # Where some row's loss grows without end at no cost, V(ε) is infinite for every ε.
    if problem.model.loss != "zero_one" and problem.escapes(1.0)[problem.index].any():
        return ExactDual(np.inf, np.inf, np.inf, eps, float(problem.base_losses.mean()), True, solve(1.0))
    if prices is not None:
        best, *maps = (_try(solve, lam, eps, tol) for lam in (prices[0], *prices[1]))
        return _finish(problem, best, -np.inf, tuple(maps) or (best,), eps, tol)
    if eps == 0:
        return _alone(problem, _try(solve, np.inf, eps, tol), eps, tol)
    return _minimise(problem, solve, eps, tol)


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
        best.result,
        tuple(line.attained() for line in maps),
        tuple(line.lam for line in maps),
    )


# From the exact audit of a linear model to what may be claimed about it.


def loss_ceiling(linear: LinearModel, domain: Any) -> float:
    """Largest loss a linear model can have anywhere in a domain: the M of a finite-sample bound."""
    if linear.loss == "zero_one":
        return 1.0
    if domain is None:
        return np.inf
    lower, upper = (np.asarray(to_numpy(side), dtype=float) for side in domain.bounds())
    difference = linear.coef[None, :, :] - linear.coef[:, None, :]
    with np.errstate(invalid="ignore"):
        most = np.where(difference == 0, 0.0, np.maximum(difference * lower, difference * upper)).sum(2)
    most = most + linear.intercept[None, :] - linear.intercept[:, None]
    if linear.loss == "hinge":
        np.fill_diagonal(most, -np.inf)
        return float(max(0.0, 1.0 + most.max()))
    return float(np.max(logsumexp(most, axis=1)))


def exact_bound(
    linear: LinearModel,
    X: Any,
    y: Any,
    *,
    metric: Any,
    domain: Any,
    eps: float,
    confidence: float = 0.95,
    tol: float = 1e-6,
    max_nodes: int = 500,
    random_state: RandomState = 0,
) -> Bound:
    """Bound the V(ε) of the population that the rows were drawn from, for a linear model and any sample size.

    λ* is found on one half of the rows, and the dual evaluated on the other.
    """
    ceiling = loss_ceiling(linear, domain)
    if not np.isfinite(ceiling):
        raise InputError(
            "exact_bound: the loss has no upper bound on this domain, so no sample can bound its mean. "
            "Pass a bounded domain, such as BoxDomain.from_data(X)."
        )
    rows = np.asarray(to_numpy(X), dtype=float)
    labels = to_numpy(y)
    shared = {"metric": metric, "domain": domain, "tol": tol, "max_nodes": max_nodes}

    first, second = halves(len(rows), random_state)
    lam = float(exact_dual(linear, rows[first], labels[first], eps=eps, **shared).lam)
    value = exact_supremum(linear, rows[second], labels[second], lam=lam, **shared).value
    # The bound of a row may exceed the largest loss by the tolerance.
    value = np.where(value <= ceiling + 2.0 * tol * (1.0 + ceiling), np.minimum(value, ceiling), value)
    losses = linear.losses(rows, labels)[second]
    return finite_sample_bound(
        value, lambda_=lam, eps=eps, upper=ceiling, losses=losses, confidence=confidence
    )


@dataclass(frozen=True)
class LinearSearch(Search):
    """Logistic and softmax regression, and linear models under hinge and 0–1 loss: solved, not searched."""

    name: ClassVar[str] = "exact"

    tol: float = 1e-6
    confidence: float = 0.95
    # λ*, and the λ of the maps that attain V(ε), as chosen on other people.
    prices: tuple[float, tuple[float, ...]] | None = None

    def why_not(self, problem: AuditProblem) -> str | None:
        """Say why the model cannot be solved exactly; None if it can."""
        place = problem.coordinates
        if place.linear_form() is None:
            return Message("why_not.not_linear")
        if place.model.loss.name not in LOSSES:
            return Message("why_not.loss", loss=repr(place.model.loss.name))
        if problem not in _CHECKED:
            _CHECKED[problem] = _why_not_read(problem)
        return _CHECKED[problem]

    def extend(self, problem: AuditProblem, support: Support, eps: float, budget: Budget) -> Found:
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
        solved = exact_dual(*given, **where, prices=self.prices)
        if not np.isfinite(solved.value):
            return unfinished(support, Message("reason.endless_loss"))
        support = _with_attained(problem, support, solved)
        slack = _slack(problem, model)
        bounds = [
            Bound(
                value=solved.value + slack,
                gap=solved.gap + slack,
                eps=eps,
                n=problem.n,
                method=Message("method.linear"),
                lambda_=solved.lam,
                assumptions=(Message("assumption.box"),),
            )
        ]
        bounded = np.isfinite(loss_ceiling(model, place.domain))
        if self.prices is None and eps > 0 and problem.n >= 4 and bounded:
            where |= {"confidence": self.confidence, "random_state": problem.random_state}
            bounds.append(exact_bound(*given, **where))
        again = replace(self, prices=(solved.lam, solved.mixed))
        return Found(support, bounds=tuple(bounds), again=again)


# Whether the weights answer as the model does is asked once for some people.
_CHECKED: WeakKeyDictionary[AuditProblem, str | None] = WeakKeyDictionary()


def _net(problem: AuditProblem) -> Layers:
    """The linear scores of encoded rows as a network without hidden layers."""
    place = problem.coordinates
    form = place.linear_form()
    assert form is not None  # why_not says so
    # The map between two encodings rounds once more.
    return Layers((form[0],), (form[1],), 16.0 * place.model.roundoff)


def _why_not_read(problem: AuditProblem) -> str | None:
    """Why the weights of a linear model are not believed; None if they answer as it does."""
    place, model = problem.coordinates, problem.coordinates.model
    if model.roundoff > 2.0**-53 and (model.gives_probabilities or model.loss.name == "zero_one"):
        return Message("why_not.single_precision")
    layout = TableLayout.of(place.domain if tabular(place.domain) else BoxDomain.from_data(problem.X))
    asker, people = Asker(place, layout), layout.values(problem.X)
    try:
        reading = NetworkFamily(_net(problem), layout, model.loss)
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
    # The box around domain and people.
    lower, upper = place.domain.bounds()
    lower, upper = np.minimum(lower, problem.X.min(axis=0)), np.maximum(upper, problem.X.max(axis=0))
    largest = np.maximum(np.abs(to_numpy(lower)), np.abs(to_numpy(upper))).astype(np.float64)
    error = 2.0 * float(_net(problem).rounding(largest)[0]) if np.isfinite(largest).all() else 0.0
    if not place.model.gives_probabilities or not np.isfinite(ceiling):
        return error
    highest = np.array([min(ceiling + error, place.model.loss.upper_bound)])
    return error + float((raised_by_answers(highest, 4.0 * 2.0**-53, place.model.loss) - highest)[0])


def _with_attained(problem: AuditProblem, support: Support, solved: Any) -> Support:
    """Add the rows of the mixture that attains V(ε), and of a table the people next to where the box is worst."""
    domain = problem.coordinates.domain
    finite = np.flatnonzero(np.isfinite(solved.result.x).all(axis=1))
    found = [(part.row, part.x) for part in solved.mixture]
    for rows, x in (*found, (finite, solved.result.x[finite])):
        if not len(rows):
            continue
        origin = problem.X[rows]
        valid = np.asarray(to_numpy(domain.nearest_valid(x, origin)), dtype=np.float64)
        moved = np.flatnonzero((valid != origin).any(axis=1))
        support = support.with_rows(valid[moved], rows[moved])
    return support
