"""What can be proved about a model, as a search: linear models solved, trees and ReLU networks by branch and bound."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from likewise.auditing.bounds.branch_and_bound import bracket_value, maximise
from likewise.auditing.bounds.enumeration import EnumerationSearch
from likewise.auditing.bounds.families import Asker, family_in, seconds_to_read
from likewise.auditing.bounds.family import INTERRUPTED, Brackets, RegionBudget
from likewise.auditing.bounds.linear.search import LinearSearch
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.dual.finite_dual import solve_dual
from likewise.auditing.dual.supporting_rows import Support
from likewise.auditing.inference.certificate import Bound
from likewise.auditing.inference.intervals import betting_upper_limit
from likewise.auditing.search.contract import Budget, Found, Search, search_words, unfinished
from likewise.core.checks import FloatArray, IntArray
from likewise.core.errors import InputError
from likewise.core.messages import Message
from likewise.core.randomness import numpy_generator
from likewise.models.losses import ZeroOne

if TYPE_CHECKING:
    from likewise.auditing.problem import AuditProblem


@dataclass(frozen=True)
class BranchAndBoundSearch(Search):
    """Tree ensembles and ReLU networks over the regions of a table: a bound of V(ε), and the rows that come nearest."""

    name: ClassVar[str] = "branch and bound"

    nodes: int = 2_000
    rtol: float = 0.01
    # The λ whose bound counts, and all λ in their order, as chosen on other people.
    prices: tuple[float, tuple[float, ...]] | None = None

    def why_not(self, problem: AuditProblem) -> str | None:
        """Say why no bound is known for the model; None if one is."""
        place = problem.coordinates
        if place.metric.feature_map is not None:
            return Message("why_not.feature_map")
        try:
            family_in(problem)
        except InputError as error:
            return str(error)
        return None

    def extend(self, problem: AuditProblem, support: Support, eps: float, budget: Budget) -> Found:
        """Bracket V(ε): rows from below, a `Bound` from above, as narrow as nodes and time allow."""
        family, place = family_in(problem), problem.coordinates
        ask = Asker(place, family.layout).losses

        def solve(lam: float, starts: FloatArray | None, seconds: float | None) -> Brackets:
            limit = RegionBudget(nodes=self.nodes, seconds=seconds, tell=budget.tell_time)
            people = problem.X, problem.target
            return maximise(family, place.metric, *people, lam, starts=starts, budget=limit, ask=ask)

        # The λ of what is known already is the first guess; 10 where nothing is.
        known = solve_dual(support.frontier, eps).lambda_ if 0 < eps < np.inf else 0.0
        start = known if 0 < known < np.inf else 10.0
        seconds = None if budget.seconds is None else max(budget.left, 0.0)
        found = bracket_value(
            solve, problem.base_loss, eps, start=start, rtol=self.rtol, seconds=seconds, prices=self.prices
        )
        moved = np.flatnonzero((found.rows != problem.X[found.person]).any(axis=1))
        rows = np.asarray(found.rows[moved], dtype=np.float64)
        support = support.with_rows(rows, found.person[moved])
        # Branch and bound stops at a price above 0, and no loss exceeds its ceiling at any.
        upper = min(found.upper, place.model.loss.upper_bound)
        bound = Bound(
            value=upper,
            gap=upper - found.base_loss,
            eps=eps,
            n=problem.n,
            method=Message("method.branch_and_bound"),
            lambda_=found.lambda_,
            assumptions=(Message("assumption.any_person"),),
        )
        return Found(
            support,
            status="not_converged" if INTERRUPTED in found.reasons else "converged",
            reasons=found.reasons,
            bounds=(bound,),
            again=replace(self, prices=(found.lambda_, found.lambdas)),
        )


# All that can be proved of an audit, question after question: V and changed decisions, at ε and at no
# distance.


# Fewer people are never sampled: the sampling error would be larger than what is saved.
_FEW = 256


@dataclass(frozen=True)
class _Question:
    """One of the questions, and the share of the time left that it may take."""

    problem: AuditProblem
    eps: float
    decisions: bool
    share: float


@dataclass(frozen=True)
class ProofSearch(Search):
    """Bounds of V(ε) and of the share of changed decisions, at ε and at 0, by what fits the model.

    The solution of a linear model takes shares of categories and fractions of whole numbers for people. If that leaves
    the bracket open, the same model goes through the branch and bound, as a network of one layer, in which categories
    and whole numbers are whole; the lower of the two bounds counts.

    Whether a decision changes is a loss of 0 or 1, so both are the same question. Where the time is not enough for
    everybody, people drawn at random are bracketed and the bound has a confidence.
    """

    name: ClassVar[str] = "exact"
    from_sample: ClassVar[bool] = True
    chooses_prices: ClassVar[bool] = True

    choices: tuple[Search, ...] = (LinearSearch(), BranchAndBoundSearch())
    confidence: float = 0.95
    rtol: float = 0.01
    # Of each question, (decisions, ε): how its bound was found on other people.
    settled: Mapping[tuple[bool, float], ProofSearch] | None = None
    # All choices are gone through, and the bound of this one counts, as chosen on other people.
    counts: int | None = None

    @classmethod
    def within(cls, *, timed: bool, confidence: float) -> ProofSearch:
        """Return what is worth its time: all families if the user gave time, else linear models alone."""
        solved = LinearSearch(confidence=confidence)
        return cls((solved, BranchAndBoundSearch()) if timed else (solved,), confidence)

    def why_not(self, problem: AuditProblem) -> str | None:
        """Say why no bound is known for the model; None if one is."""
        reasons = [search.why_not(problem) for search in self.choices]
        if None in reasons or len(reasons) == 1:
            return None if None in reasons else reasons[0]
        return "; ".join(str(reason) for reason in reasons)

    def solve(self, problem: AuditProblem, support: Support, eps: float, budget: Budget) -> Found:
        """Bracket V(ε) of everybody by one choice after the other, until the bracket is closed or time is up."""
        ended, ways, values = Found(support), list[Search](), list[float]()
        for at, search in enumerate(self.choices):
            if search.why_not(problem) is not None:
                continue
            known = ended.bound(eps=eps)
            if self.counts is None and known is not None:
                attained = solve_dual(ended.support.frontier, eps).value
                if budget.spent or known.value - attained <= self.rtol * abs(known.value):
                    break
            found = search.extend(problem, ended.support, eps, budget)
            bound = found.bound(eps=eps)
            ways.append(found.again or search)
            values.append(np.inf if bound is None else bound.value)
            if self.counts not in (None, at):
                found = Found(found.support)
            ended = ended.then(found) if ended.bounds else found
        counts = int(np.argmin(values)) if values else 0
        return replace(ended, again=replace(self, choices=tuple(ways), counts=counts))

    def extend(self, problem: AuditProblem, support: Support, eps: float, budget: Budget) -> Found:
        """Answer the questions one after the other; the rows found for any of them serve all."""
        ended, ways = Found(support), dict[tuple[bool, float], ProofSearch]()
        questions = list(self._questions(problem, eps, budget))
        for done, question in enumerate(questions):
            budget.tell(done / len(questions))
            if budget.spent:
                break
            time = _part(budget, question.share, done, len(questions))
            known = ended.support
            if question.decisions:
                known = _added(Support.start(question.problem), known, question.problem)
            key = question.decisions, question.eps
            given = question.problem, known, question.eps, time
            way = None if self.settled is None else self.settled.get(key)
            try:
                found = self._answer(*given) if way is None else way.solve(*given)
            except KeyboardInterrupt:
                # What was answered before stays.
                return ended.then(unfinished(ended.support, INTERRUPTED))
            if isinstance(found.again, ProofSearch):
                ways[key] = found.again
            if question.decisions:
                rows = _added(ended.support, found.support, problem)
                found = replace(found, support=rows, bounds=tuple(map(_share, found.bounds)))
            ended = ended.then(replace(found, again=None))
            if INTERRUPTED in found.reasons:
                break
        return replace(ended, again=replace(self, settled=ways))

    def prove_table(self, sample: AuditProblem, n: int, eps: float, budget: Budget) -> tuple[Bound, ...]:
        """Say what a sample, drawn at random, proves about a table of n people that is read in parts.

        Bounds of the loss are right in their `gap`; the table's mean loss is not known here.
        """
        if sample.n <= _FEW or not sample.decides or budget.seconds is None:
            return ()
        bounds: list[Bound] = []
        for question in self._questions(sample, eps, budget):
            time = budget.part(question.share)
            given = question.problem, Support.start(question.problem), question.eps, time
            if LinearSearch().why_not(question.problem) is None:
                found = [bound for bound in self.solve(*given).bounds if bound.about == "population"]
            else:
                proof = prove_by_sample(*given, confidence=self.confidence, table=n)
                found = [] if proof is None else list(proof.bounds)
            bounds += [_share(bound) for bound in found] if question.decisions else found
        return tuple(bounds)

    def _questions(self, problem: AuditProblem, eps: float, budget: Budget) -> Iterator[_Question]:
        # Where everybody at no distance can be listed, that is exact already.
        listed = EnumerationSearch().why_not(problem) is None
        if eps > 0 and not listed:
            yield _Question(problem, 0.0, False, 0.15)
        # Decisions are another reading, whose check takes as long as that of the losses and cannot be stopped.
        in_time = budget.left > 3 * seconds_to_read(problem)
        decided = about_decisions(problem) if problem.decides and in_time else None
        if eps > 0 or not listed:
            yield _Question(problem, eps, False, 1.0 if decided is None else 0.7)
        if decided is None or self.why_not(decided) is not None:
            return
        if eps > 0 and not listed:
            yield _Question(decided, 0.0, True, 0.3)
        if eps > 0 or not listed:
            yield _Question(decided, eps, True, 1.0)

    def _answer(self, problem: AuditProblem, support: Support, eps: float, budget: Budget) -> Found:
        timed = budget.seconds is not None and problem.n > _FEW and problem.decides
        if timed and LinearSearch().why_not(problem) is not None:
            # A first look at everybody cannot be stopped; it takes up to four times as long as the check of the reading.
            if budget.left < 4 * seconds_to_read(problem):
                return unfinished(support, Message("reason.no_time", name=search_words(self.name)))
            proof = prove_by_sample(problem, support, eps, budget, confidence=self.confidence)
            if proof is not None:
                return proof
        return self.solve(problem, support, eps, budget)


def _part(budget: Budget, share: float, done: int, questions: int) -> Budget:
    """A share of the time that is left; whoever looks on hears how much of all questions is answered."""
    return replace(budget.part(share), watch=lambda part: budget.tell((done + part) / questions))


def about_decisions(problem: AuditProblem) -> AuditProblem:
    """Return the same people with another question: the loss is 1 if the decision is not the person's own."""
    place = problem.coordinates
    # A model that is asked for decisions already was read for them: its reading need not be checked again.
    if not isinstance(place.model.loss, ZeroOne):
        place = replace(place, model=place.model.with_loss("zero_one"))
    return replace(problem, coordinates=place, y=problem.decisions)


def _added(support: Support, known: Support, problem: AuditProblem) -> Support:
    """Add rows that were found for one question to those of another about the same people."""
    frontier = known.frontier
    corner = np.flatnonzero(frontier.candidate >= 0)
    if not len(corner):
        return support
    x = np.asarray(problem.coordinates.encoded(known.twins(corner)), dtype=np.float64)
    return support.with_rows(x, frontier.row[corner])


def _share(bound: Bound) -> Bound:
    value = min(1.0, bound.value)
    return replace(bound, measure="decisions", value=value, gap=value)


# A bound for a table of any size in the time there is, from differences.
#
# For every λ, V(ε) ≤ λε + mean of s_i(λ) (equation 4 of the paper). A first look at everybody's whole domain gives each
# person an upper value u_i ≥ s_i and a row that attains l_i ≤ s_i. People drawn at random, each with probability
# proportional to w_i = u_i − l_i, are then cut into regions until the time is up: r_i, with s_i ≤ r_i ≤ u_i. Since
# (u_i − r_i) / w_i lies between 0 and 1 for everybody, a confidence limit of its mean over the draws gives
#
#     mean of s_i  ≤  mean(u) − mean(w) · (lower limit of the mean of (u − r) / w).


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


def prove_by_sample(
    problem: AuditProblem,
    support: Support,
    eps: float,
    budget: Budget,
    *,
    nodes: int = BranchAndBoundSearch.nodes,
    confidence: float = 0.95,
    table: int | None = None,
) -> Found | None:
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
) -> Found:
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
    support = people.support.with_rows(np.concatenate(rows), np.concatenate(person))
    ended = unfinished(support, INTERRUPTED) if interrupted else Found(support)
    return replace(ended, bounds=(here, everywhere))


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
