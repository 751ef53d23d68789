"""What can be proved about a model, as a search: linear models solved, trees and ReLU networks by branch and bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from likewise.auditing.bounds.enumeration import EnumerationSearch
from likewise.auditing.bounds.families import family_in, seconds_to_read
from likewise.auditing.bounds.family import INTERRUPTED
from likewise.auditing.bounds.linear.search import LinearSearch
from likewise.auditing.dual.finite_dual import solve_dual
from likewise.auditing.dual.supporting_rows import Support
from likewise.auditing.inference.certificate import Bound
from likewise.auditing.search.contract import Budget, Found, Search, Status
from likewise.core.errors import InputError
from likewise.core.messages import Message

if TYPE_CHECKING:
    from likewise.auditing.problem import AuditProblem
    from likewise.core.checks import FloatArray


@dataclass(frozen=True)
class BranchAndBoundSearch(Search):
    """Tree ensembles and ReLU networks over the regions of a table: a bound of V(ε), and the rows that come nearest."""

    name: ClassVar[str] = "branch and bound"

    nodes: int = 2_000
    rtol: float = 0.01
    # The λ whose bound counts, and all λ in their order, as chosen on other people.
    prices: tuple[float, tuple[float, ...]] | None = None

    def why_not(self, problem: AuditProblem) -> str | None:
        """Say why no bound is known for the model, where none is."""
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
        from likewise.auditing.bounds.branch_and_bound import maximise
        from likewise.auditing.bounds.dual_bracket import bracket_value
        from likewise.auditing.bounds.family import Brackets, RegionBudget
        from likewise.auditing.bounds.reading_check import Asker

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
        bound = Bound(
            value=found.upper,
            gap=found.upper - found.base_loss,
            eps=eps,
            n=problem.n,
            method=Message("method.branch_and_bound"),
            lambda_=found.lambda_,
            assumptions=(Message("assumption.any_person"),),
        )
        status: Status = "not_converged" if found.interrupted else "converged"
        again = replace(self, prices=(found.lambda_, found.lambdas))
        return Found(support, status, found.reasons, bound, again=again)


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


@dataclass(frozen=True)
class _Repeated(Search):
    """One question answered as it was for other people: in these ways, of which one gives the bound."""

    name: ClassVar[str] = "exact"

    ways: tuple[Search, ...]
    counts: int

    def extend(self, problem: AuditProblem, support: Support, eps: float, budget: Budget) -> Found:
        """Go every way; nothing is proved if the model cannot be read here."""
        ended = Found(support)
        for at, way in enumerate(self.ways):
            if way.why_not(problem) is None:
                found = way.extend(problem, ended.support, eps, budget)
                ended = found if at == self.counts else replace(ended, support=found.support)
        return ended


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
    settled: Mapping[tuple[bool, float], Search] | None = None

    @classmethod
    def within(cls, *, timed: bool, confidence: float) -> ProofSearch:
        """Return what is worth its time: all families where the user gave time, else linear models alone."""
        solved = LinearSearch(confidence=confidence)
        return cls((solved, BranchAndBoundSearch()) if timed else (solved,), confidence)

    def why_not(self, problem: AuditProblem) -> str | None:
        """Say why no bound is known for the model, where none is."""
        reasons = [search.why_not(problem) for search in self.choices]
        if None in reasons or len(reasons) == 1:
            return None if None in reasons else reasons[0]
        return "; ".join(str(reason) for reason in reasons)

    def solve(self, problem: AuditProblem, support: Support, eps: float, budget: Budget) -> Found:
        """Bracket V(ε) of everybody by one choice after the other, until the bracket is closed or time is up."""
        ended, ways = Found(support), list[tuple[float, Search]]()
        for search in self.choices:
            if search.why_not(problem) is not None:
                continue
            if ended.bound is not None:
                attained = solve_dual(ended.support.frontier, eps).value
                if budget.spent or ended.bound.value - attained <= self.rtol * abs(ended.bound.value):
                    break
            found = search.extend(problem, ended.support, eps, budget)
            ended = _joined(ended, found)
            ways.append((np.inf if found.bound is None else found.bound.value, found.again or search))
        values = [value for value, _ in ways]
        counts = int(np.argmin(values)) if values else 0
        return replace(ended, again=_Repeated(tuple(way for _, way in ways), counts))

    def extend(self, problem: AuditProblem, support: Support, eps: float, budget: Budget) -> Found:
        """Answer the questions one after the other; the rows found for any of them serve all."""
        ended, ways = Found(support), dict[tuple[bool, float], Search]()
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
                found = self._answer(*given) if way is None else way.extend(*given)
            except KeyboardInterrupt:
                # What was answered before stays.
                return replace(ended, status="not_converged", reasons=(*ended.reasons, INTERRUPTED))
            ended = _with_answer(ended, found, question, problem)
            if found.again is not None:
                ways[key] = found.again
            if INTERRUPTED in found.reasons:
                break
        return replace(ended, again=replace(self, settled=ways))

    def prove_table(self, sample: AuditProblem, n: int, eps: float, budget: Budget) -> tuple[Bound, ...]:
        """Say what a sample, drawn at random, proves about a table of n people that is read in parts.

        Bounds of the loss are right in their `gap`; the table's mean loss is not known here.
        """
        if sample.n <= _FEW or not sample.decides or budget.seconds is None:
            return ()
        from likewise.auditing.bounds.sampled_proof import prove_by_sample

        bounds: list[Bound] = []
        for question in self._questions(sample, eps, budget):
            time = Budget(max(question.share * budget.left, 1e-3))
            if LinearSearch().why_not(question.problem) is None:
                solved = self.solve(question.problem, Support.start(question.problem), question.eps, time)
                found = [] if solved.population_bound is None else [solved.population_bound]
            else:
                nodes = BranchAndBoundSearch().nodes
                proof = prove_by_sample(
                    question.problem,
                    Support.start(question.problem),
                    question.eps,
                    time,
                    nodes=nodes,
                    confidence=self.confidence,
                    table=n,
                )
                found = [] if proof is None else [proof.bound, proof.population_bound]
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
            from likewise.auditing.bounds.sampled_proof import prove_by_sample
            from likewise.auditing.search.choosing import search_words

            # A first look at everybody cannot be stopped; it takes about as long as the check of the reading.
            if budget.left < seconds_to_read(problem):
                return Found(
                    support, "not_converged", (Message("reason.no_time", name=search_words(self.name)),)
                )
            nodes = BranchAndBoundSearch().nodes
            proof = prove_by_sample(problem, support, eps, budget, nodes=nodes, confidence=self.confidence)
            if proof is not None:
                support = support.with_rows(np.asarray(proof.rows, dtype=np.float64), proof.person)
                reasons = (INTERRUPTED,) if proof.interrupted else ()
                status: Status = "not_converged" if proof.interrupted else "converged"
                return Found(support, status, reasons, proof.bound, proof.population_bound)
        return self.solve(problem, support, eps, budget)


def _part(budget: Budget, share: float, done: int, questions: int) -> Budget:
    """A share of the time that is left; whoever looks on hears how much of all questions is answered."""
    seconds = None if budget.seconds is None else max(share * budget.left, 1e-3)
    return Budget(seconds, watch=lambda part: budget.tell((done + part) / questions))


def about_decisions(problem: AuditProblem) -> AuditProblem:
    """Return the same people with another question: the loss is 1 where the decision is not the person's own."""
    place = replace(problem.coordinates, model=problem.coordinates.model.with_loss("zero_one"))
    return replace(problem, coordinates=place, y=problem.decisions)


def _added(support: Support, known: Support, problem: AuditProblem) -> Support:
    """Add rows that were found for one question to those of another about the same people."""
    frontier = known.frontier
    corner = np.flatnonzero(frontier.candidate >= 0)
    if not len(corner):
        return support
    x = np.asarray(problem.coordinates.encoded(known.twins(corner)), dtype=np.float64)
    return support.with_rows(x, frontier.row[corner])


def _with_answer(ended: Found, found: Found, question: _Question, problem: AuditProblem) -> Found:
    """Put the answer to one question to the others."""
    support = found.support
    if question.decisions:
        support = _added(ended.support, support, problem)
    bounds = [bound for bound in (found.bound, found.population_bound, *found.more) if bound is not None]
    if question.decisions:
        bounds = [_share(bound) for bound in bounds]
    status = found.status if ended.status == "converged" else ended.status
    reasons = tuple(dict.fromkeys((*ended.reasons, *found.reasons)))
    return Found(support, status, reasons, more=(*ended.more, *bounds))


def _share(bound: Bound) -> Bound:
    value = min(1.0, bound.value)
    return replace(bound, measure="decisions", value=value, gap=value)
