"""A bound for a table of any size in the time there is, from differences (DESIGN: no ceiling of the world is needed).

For every λ, V(ε) ≤ λε + mean of s_i(λ) (equation 4 of the paper). A first look at everybody's whole domain gives each
person an upper value u_i ≥ s_i and a row that attains l_i ≤ s_i. People drawn at random, each with probability
proportional to w_i = u_i − l_i, are then cut into regions until the time is up: r_i, with s_i ≤ r_i ≤ u_i. Since
(u_i − r_i) / w_i lies between 0 and 1 for everybody, a confidence limit of its mean over the draws gives

    mean of s_i  ≤  mean(u) − mean(w) · (lower limit of the mean of (u − r) / w).
"""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.auditing.bounds.branch_and_bound import maximise
from likewise.auditing.bounds.dual_bracket import bracket_value
from likewise.auditing.bounds.families import family_in
from likewise.auditing.bounds.family import Brackets, RegionBudget
from likewise.auditing.bounds.reading_check import Asker
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.dual.finite_dual import solve_dual
from likewise.auditing.inference.certificate import Bound
from likewise.auditing.inference.limits import betting_upper_limit
from likewise.core.checks import FloatArray, IntArray
from likewise.core.messages import Message
from likewise.core.randomness import numpy_generator

if TYPE_CHECKING:
    from likewise.auditing.dual.supporting_rows import Support
    from likewise.auditing.problem import AuditProblem
    from likewise.auditing.search.contract import Budget

# Draws that settle the stake and how long a person takes.
_PILOT = 24
# λ is tried at these multiples of the one that searches lead to, the quickest first.
_FACTORS = (3.0, 2.0, 1.4, 1.0)
# People on whom they are tried, and the share of the time that each may take.
_TRIED, _TRIAL = 12, 0.12
# What counts as closed, of a person's upper value.
_CLOSED = 1e-3
# Draws at most, per person of the table, and the share of the time that is not worth another round.
_DRAWS, _REST = 4, 0.1


@dataclass(frozen=True, eq=False)
class SampledProof:
    """What a sample proves."""

    bound: Bound
    population_bound: Bound
    rows: FloatArray
    person: IntArray
    people: int
    interrupted: bool = False


def prove_by_sample(
    problem: AuditProblem,
    support: Support,
    eps: float,
    budget: Budget,
    *,
    nodes: int,
    confidence: float = 0.95,
    table: int | None = None,
) -> SampledProof | None:
    """Bound V(ε) of a table from a random sample of its people."""
    people = _People(problem, support, nodes, budget)
    rng = numpy_generator(problem.random_state)
    lam = people.price(eps, 0.15 * budget.left, rng)
    if 0 < lam < np.inf:
        lam = people.worthwhile(lam, eps, _TRIAL * budget.left, rng)
    first = people.solve(np.arange(problem.n), lam, 0, 0.35 * budget.left)
    upper, lower = first.upper, np.maximum(first.lower, problem.base_loss)
    upper = np.maximum(upper, lower)
    width = np.where(upper - lower > _CLOSED * (1.0 + np.abs(upper)), upper - lower, 0.0)
    everyone: list[tuple[IntArray, Brackets]] = [(np.arange(problem.n), first)]
    if not width.any():
        # The first look was enough.
        return _claims(
            people, eps, lam, float(upper.mean()), everyone, 0, confidence, table, first.interrupted
        )
    drawn = rng.choice(problem.n, size=_PILOT + _DRAWS * problem.n, p=width / width.sum())
    tighter, seen, interrupted = upper.copy(), np.zeros(problem.n, dtype=bool), first.interrupted

    def look_closely(at: IntArray, seconds: float) -> float:
        """Cut some people into regions; return the seconds that one of them took."""
        nonlocal interrupted
        clock = time.perf_counter()
        found = people.solve(at, lam, nodes, seconds)
        tighter[at] = np.clip(np.minimum(tighter[at], found.upper), lower[at], None)
        seen[at], interrupted = True, interrupted or found.interrupted
        everyone.append((at, found))
        return max((time.perf_counter() - clock) / len(at), 1e-6)

    each = look_closely(np.unique(drawn[:_PILOT]), 0.25 * budget.left)
    if table is None and each * int((width > 0).sum()) <= 0.7 * budget.left:
        return None
    planned = count = 0
    idle = _REST * budget.left
    while not interrupted and count < len(drawn) - _PILOT and (not count or budget.left > idle):
        # How many are drawn follows from the time that others took.
        more = int(np.clip(0.85 * budget.left / each, _PILOT, len(drawn) - _PILOT - count))
        planned, count = planned or more, count + more
        fresh = np.unique(drawn[_PILOT : _PILOT + count])
        fresh = fresh[~seen[fresh]]
        if len(fresh):
            each = look_closely(fresh, 0.95 * max(budget.left, 0.0))
    planned, count = max(planned, _PILOT), max(count, _PILOT)
    draws = drawn[_PILOT : _PILOT + count]
    kept = np.zeros(problem.n)
    np.divide(tighter - lower, width, out=kept, where=width > 0)
    kept = np.clip(kept, 0.0, 1.0)
    # Of the width that the first look left, so much remains on average, at most.
    level = confidence if table is None else (1.0 + confidence) / 2.0
    rest = betting_upper_limit(kept[draws], 1.0, pilot=kept[drawn[:_PILOT]], level=level, planned=planned)
    remains = float((upper - (1.0 - rest) * width).mean())
    mean = min(remains, float(tighter.mean()))
    return _claims(people, eps, lam, mean, everyone, int(seen.sum()), confidence, table, interrupted)


class _People:
    """The people of a problem, and how to bracket some of them."""

    def __init__(self, problem: AuditProblem, support: Support, nodes: int, budget: Budget) -> None:
        self.problem, self.support, self.nodes, self.budget = problem, support, nodes, budget
        self.family = family_in(problem)
        self._ask = Asker(problem.coordinates, self.family.layout).losses

    def price(self, eps: float, seconds: float, rng: np.random.Generator) -> float:
        """λ: that of what is known already, or of a few people where nothing is."""
        if eps == 0:
            return np.inf
        known = solve_dual(self.support.frontier, eps).lambda_
        if 0 < known < np.inf:
            return float(known)
        some = rng.permutation(self.problem.n)[:_PILOT]

        def solve(lam: float, starts: FloatArray | None, left: float | None) -> Brackets:
            return self.solve(some, lam, self.nodes, left)

        found = bracket_value(solve, self.problem.base_loss[some], eps, seconds=seconds)
        return float(found.lambda_) if 0 < found.lambda_ < np.inf else 10.0

    def worthwhile(self, known: float, eps: float, seconds: float, rng: np.random.Generator) -> float:
        """The λ whose bound will be lowest in the time there is, told from a few people.

        Any λ gives a bound. At a larger one than the best, λε is larger, and people are closed sooner: more of them.
        """
        some = rng.permutation(self.problem.n)[:_TRIED]
        base, best, chosen = self.problem.base_loss[some], np.inf, known
        for factor in _FACTORS:
            lam = factor * known
            clock = time.perf_counter()
            found = self.solve(some, lam, self.nodes, seconds)
            each = max((time.perf_counter() - clock) / len(some), 1e-6)
            drawn = max(min(0.6 * self.budget.left / each, 4.0 * self.problem.n), 1.0)
            # What is not looked at closely costs about 3 in so many draws of what a first look leaves.
            first = self.solve(some, lam, 0, None).upper
            rest = min(3.0 / drawn, 1.0) * float(np.maximum(first - found.upper, 0.0).mean())
            value = lam * eps + float(np.maximum(found.upper, base).mean()) + rest
            if value >= best:
                break
            best, chosen = value, lam
        return chosen

    def solve(self, at: IntArray, lam: float, nodes: int, seconds: float | None) -> Brackets:
        """Bracket some of them, from the rows that searches found."""
        limit = RegionBudget(nodes=nodes, seconds=seconds, tell=self.budget.tell_time)
        starts = self.support.best_rows(lam)[at][:, None]
        metric = self.problem.coordinates.metric
        people = self.problem.X[at], self.problem.target[at]
        return maximise(self.family, metric, *people, lam, starts=starts, budget=limit, ask=self._ask)


def _claims(
    people: _People,
    eps: float,
    lam: float,
    mean: float,
    found: list[tuple[IntArray, Brackets]],
    closely: int,
    confidence: float,
    table: int | None,
    interrupted: bool,
) -> SampledProof:
    problem = people.problem
    base = float(problem.base_loss.mean())
    ceiling = _ceiling(problem)
    price = lam * eps if 0 < lam < np.inf else 0.0
    # The table's mean of what lies between 0 and the ceiling, and that of everybody (Hoeffding).
    away = ceiling * float(np.sqrt(np.log(2.0 / (1.0 - confidence)) / (2.0 * problem.n)))
    shared: dict[str, Any] = {"eps": eps, "lambda_": lam, "confidence": confidence}
    shared["method"] = Message("method.sampled", drawn=closely, people=problem.n if table is None else table)
    value = min(price + mean, ceiling)
    everywhere = Bound(
        value=min(price + mean + away, ceiling),
        gap=min(price + mean - base + away, ceiling),
        n=problem.n,
        about="population",
        assumptions=(
            Message("assumption.draws"),
            Message("assumption.ceiling", loss=float(f"{ceiling:.4g}")),
        ),
        **shared,
    )
    here = Bound(value=max(value, base), gap=max(value - base, 0.0), n=problem.n, **shared)
    if table is not None:
        here = replace(everywhere, n=table, about="sample")
    rows, person = [], []
    for at, brackets in found:
        away_from = np.flatnonzero((brackets.rows != problem.X[at]).any(axis=1))
        rows.append(np.asarray(brackets.rows[away_from], dtype=np.float64))
        person.append(at[away_from])
    return SampledProof(here, everywhere, np.concatenate(rows), np.concatenate(person), closely, interrupted)


def _ceiling(problem: AuditProblem) -> float:
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
    family = copy.copy(family_in(problem))
    family.layout = anybody
    found = maximise(family, place.metric, rows, labels, 0.0, budget=RegionBudget(nodes=0))
    return float(min(limit, found.upper.max()))
