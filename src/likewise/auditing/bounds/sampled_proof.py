"""A bound for a table of any size in the time there is: some people at random are bracketed, the rest follow by chance.

For every λ, V(ε) ≤ λε + mean of s_i(λ) (equation 4 of the paper). A few people settle λ; of others, drawn at random from
the rest of the table, s_i(λ) is bounded from above by branch and bound, and `betting_upper_limit` bounds the mean of all
from theirs. What follows holds with the stated confidence, for the table and for the people it was drawn from.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.auditing.bounds.brackets import Brackets, RegionBudget
from likewise.auditing.bounds.branch_and_bound import maximise
from likewise.auditing.bounds.dual_bracket import bracket_value
from likewise.auditing.bounds.families import family_in
from likewise.auditing.bounds.table_layout import IntArray, TableLayout
from likewise.auditing.claims.betting_limit import betting_upper_limit
from likewise.auditing.claims.certificate import Bound
from likewise.core.arrays import FloatArray
from likewise.core.randomness import numpy_generator
from likewise.texts import Said

if TYPE_CHECKING:
    from likewise.auditing.problem.audit_problem import AuditProblem
    from likewise.auditing.search.contract import Budget

__all__ = ["SampledProof", "prove_by_sample"]

# People who settle λ, the stake and how long one takes.
_PILOT = 64
_CEILING_NODES = 2_000


@dataclass(frozen=True, eq=False)
class SampledProof:
    """What a sample proves.

    Parameters
    ----------
    bound : Bound
        Of the table, at the stated confidence.
    population_bound : Bound
        Of the people it was drawn from.
    rows : float array of shape (m, d)
        Encoded rows that come near, found on the way.
    person : int array of shape (m,)
        Whose they are.
    people : int
        How many people were bracketed.
    interrupted : bool
        Whether the work was broken off (Ctrl-C): the bounds hold all the same, and are wider.
    """

    bound: Bound
    population_bound: Bound
    rows: FloatArray
    person: IntArray
    people: int
    interrupted: bool = False


def prove_by_sample(
    problem: AuditProblem,
    eps: float,
    budget: Budget,
    *,
    nodes: int,
    confidence: float = 0.95,
    table: int | None = None,
) -> SampledProof | None:
    """Bound V(ε) of a table from a random sample of its people.

    Parameters
    ----------
    problem : AuditProblem
        Of a tree ensemble or a ReLU network that classifies.
    eps : float
    budget : Budget
        Decides how many people are bracketed.
    nodes : int
        Regions per person, at most.
    confidence : float, default=0.95
    table : int, optional
        How many people the table has of which the problem's are a sample, drawn at random. Default: they are all.

    Returns
    -------
    SampledProof or None
        None where the time is enough for everybody.
    """
    order = numpy_generator(problem.random_state).permutation(problem.n)
    pilot = _Sample(problem, order[:_PILOT], nodes, budget.tell_time)
    clock = time.perf_counter()
    settled = bracket_value(pilot.solve, pilot.base, eps, seconds=0.2 * budget.left)
    if settled.interrupted:
        # Nothing is known of the table yet.
        raise KeyboardInterrupt
    enough = (time.perf_counter() - clock) / _PILOT * problem.n <= 0.7 * budget.left
    if enough and table is None:
        return None
    clock = time.perf_counter()
    lam = settled.lambda_
    known = pilot.solve(lam, None, 0.1 * budget.left)
    each = max((time.perf_counter() - clock) / _PILOT, 1e-6)
    ceiling = _ceiling(problem, min(2.0, 0.05 * budget.left))
    # The number of people follows from the time that others took: who is drawn does not say when to stop.
    count = int(np.clip(0.7 * budget.left / each, _PILOT, problem.n - _PILOT))
    drawn = _Sample(problem, order[_PILOT : _PILOT + count], nodes, budget.tell_time)
    found = drawn.solve(lam, None, 0.9 * max(budget.left, 0.0))
    everybody = problem.n if table is None else table
    claims = _claims(problem, everybody, eps, lam, ceiling, (pilot, known), (drawn, found), confidence)
    moved = [part.moved(brackets) for part, brackets in ((pilot, known), (drawn, found))]
    rows, person = (np.concatenate(part) for part in zip(*moved, strict=True))
    return SampledProof(*claims, rows, person, _PILOT + count, known.interrupted or found.interrupted)


class _Sample:
    """Some of the people, and how to bracket them."""

    def __init__(self, problem: AuditProblem, at: Any, nodes: int, tell: Callable[[], None]) -> None:
        self.problem, self.at, self.nodes, self.tell = problem, np.asarray(at, dtype=np.int64), nodes, tell
        self.base, self.X, self.target = problem.base_loss[at], problem.X[at], problem.target[at]
        self.family = family_in(problem.coordinates)

    def _ask(self, rows: FloatArray, targets: Any) -> FloatArray:
        place = self.problem.coordinates
        labels = targets if place.model.classes_ is None else place.model.classes_[targets]
        return place.losses_encoded(np.asarray(rows, dtype=np.float64), labels)

    def solve(self, lam: float, starts: FloatArray | None, seconds: float | None) -> Brackets:
        limit = RegionBudget(nodes=self.nodes, seconds=seconds, tell=self.tell)
        metric = self.problem.coordinates.metric
        people = self.X, self.target
        return maximise(self.family, metric, *people, lam, starts=starts, budget=limit, ask=self._ask)

    def moved(self, found: Brackets) -> tuple[FloatArray, IntArray]:
        away = np.flatnonzero((found.rows != self.X).any(axis=1))
        return np.asarray(found.rows[away], dtype=np.float64), self.at[away]


def _claims(
    problem: AuditProblem,
    n: int,
    eps: float,
    lam: float,
    ceiling: float,
    pilot: tuple[_Sample, Brackets],
    drawn: tuple[_Sample, Brackets],
    confidence: float,
) -> tuple[Bound, Bound]:
    price = lam * eps if 0 < lam < np.inf else 0.0
    uppers = [np.minimum(found.upper, ceiling) for _, found in (pilot, drawn)]
    gains = [np.maximum(up - part.base, 0.0) for up, (part, _) in zip(uppers, (pilot, drawn), strict=True)]
    rest = betting_upper_limit(gains[1], ceiling, pilot=gains[0], level=confidence)
    first = len(gains[0])
    gap = min(price + (first * float(gains[0].mean()) + (n - first) * rest) / n, ceiling)
    shared: dict[str, Any] = {"eps": eps, "lambda_": lam, "confidence": confidence}
    here = Bound(
        value=float(problem.base_loss.mean()) + gap,
        gap=gap,
        n=n,
        method=Said("method.sampled", drawn=first + len(gains[1]), people=n),
        assumptions=(Said("assumption.ceiling", loss=float(f"{ceiling:.4g}")),),
        **shared,
    )
    value = price + betting_upper_limit(uppers[1], ceiling, pilot=uppers[0], level=confidence)
    everywhere = Bound(
        value=min(value, ceiling),
        gap=min(price + rest, ceiling),
        n=len(gains[1]),
        method=here.method,
        about="population",
        assumptions=(Said("assumption.draws"), *here.assumptions),
        **shared,
    )
    return here, everywhere


def _ceiling(problem: AuditProblem, seconds: float) -> float:
    """The largest loss that anybody who can exist may have, under any label."""
    place = problem.coordinates
    limit = place.model.loss.upper_bound
    if limit <= 1.0:
        return float(limit)
    layout = TableLayout.of(place.domain)
    # Somebody else may have what this person may not change.
    anybody = TableLayout(tuple(replace(column, immutable=False) for column in layout.columns))
    labels = np.arange(len(place.model.classes_)) if place.model.classes_ is not None else np.zeros(0)
    rows = np.repeat(problem.X[:1], len(labels), axis=0)
    budget = RegionBudget(nodes=_CEILING_NODES, seconds=seconds)
    found = maximise(family_in(place, anybody), place.metric, rows, labels, 0.0, budget=budget)
    return float(min(limit, found.upper.max()))
