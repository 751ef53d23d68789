"""The one reduction of an audit: rounds over the parts of a table, and how their answers become its numbers.

People in memory are one part. For larger tables the rounds are:

1. *search*: everybody's frontier, which stays where it was made; its steps listed, or added up in bins of λ;
2. *narrow*: the bin in which λ* lies, more finely, until λ* is exact (not needed where steps are listed);
3. *settle*: what λ* means for everybody: spread, histogram, the most harmed, the unfair map as files.

What comes back to this process is small and independent of the number of people.
"""

from __future__ import annotations

import platform
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from likewise._version import __version__
from likewise.auditing.dual.finite_dual import ALL_BITS, BinnedSteps
from likewise.auditing.inference.certificate import Bound
from likewise.auditing.inference.conclusion import Answer, Clock, Evidence, Questions
from likewise.auditing.inference.intervals import gap_interval, prices_around, share_interval
from likewise.auditing.inference.sanity import check_before_verdict
from likewise.auditing.inference.significance import gap_test_of_moments
from likewise.auditing.inference.verdict import most_affected
from likewise.auditing.partitions.engine import Engine
from likewise.auditing.partitions.part import (
    Job,
    clipped_corners,
    narrow_part,
    pick_part,
    search_part,
    settle_part,
    support_of,
)
from likewise.auditing.partitions.sums import HARM_EDGES, FoundSums, SensitiveSums, SettledSums, Worst
from likewise.auditing.partitions.tables import (
    PART_ROWS,
    MapFolder,
    MemoryTable,
    ParquetTable,
    Part,
    parts_of,
    survey,
)
from likewise.auditing.problem import AuditProblem, rows_of
from likewise.auditing.results.audit_result import SensitiveAnswer
from likewise.auditing.results.sensitive import sensitive_values
from likewise.auditing.results.unfair_map import UnfairMap
from likewise.auditing.search.candidate_rows import plan_candidates
from likewise.auditing.search.candidates import CandidateSearch
from likewise.auditing.search.choosing import choose_searches, searches_words
from likewise.auditing.search.contract import Budget, Search
from likewise.core.checks import IntArray
from likewise.core.errors import InputError
from likewise.core.messages import Message, Texts
from likewise.core.progress import progress_bar
from likewise.core.randomness import numpy_generator
from likewise.counterfactuals.edits import edited_columns
from likewise.fair_metrics.neighbours import reach

# From what the user passed to a job: the problem, the searches that can serve, the pool, all that is
# learned.


# Leading bits of λ that the bins of a large table agree in: 256 bins for every doubling of λ.
_BITS = 8


@dataclass(frozen=True)
class Sizes:
    """How much of a table is held at once."""

    sample: int = 20_000
    part: int = PART_ROWS
    chunk: int = 32_768
    top: int = 1_000
    exact: int = 250_000


@dataclass(frozen=True, eq=False)
class AuditRequest:
    """What the user passed to `audit`, as it came; `searches` as `read_searches` has them."""

    model: Any
    metric: Any
    searches: tuple[Search, ...]
    domain: Any = None
    loss: Any = None
    edits: Any = None
    encoded: bool | None = None
    eps: float = 0.1
    required: bool = False
    budget: Budget = field(default_factory=Budget)
    random_state: int = 0
    tolerance: float | None = None

    def problem(self, X: Any, y: Any, domain: Any) -> AuditProblem:
        """Sort it out for some people."""
        made = AuditProblem.build(
            self.model,
            X,
            y,
            metric=self.metric,
            domain=domain,
            loss=self.loss,
            edits=self.edits,
            encoded=self.encoded,
            random_state=self.random_state,
            tolerance=self.tolerance,
        )
        return _that_fits(made)


def _that_fits(problem: AuditProblem) -> AuditProblem:
    """Leave columns that are free, but that nobody named, to other searches where they have too many combinations."""
    if not problem.unnamed:
        return problem
    try:
        fixed = problem.coordinates.fixed_names()
        plan_candidates(problem.editable(), problem.edits, proxies=None, fixed=fixed, owner="audit")
    except InputError:
        said = Message("assumption.free_too_many", columns=list(problem.unnamed))
        return replace(
            problem,
            edits=problem.sensitive_edits,
            unnamed=(),
            assumptions=(*problem.assumptions, said),
        )
    return problem


@dataclass(frozen=True, eq=False)
class Prepared:
    """A job, the parts it is cut into, and what its answer will rest on."""

    job: Job
    parts: tuple[Part, ...]
    evidence: Evidence
    sample: AuditProblem | None = None
    provers: tuple[Search, ...] = ()

    def proved(self) -> tuple[Bound, ...]:
        """Return what a random sample of a table in parts proves about it, in less than half of the time left."""
        budget, n = self.job.budget, sum(part.rows for part in self.parts)
        if self.sample is None or budget.seconds is None or budget.spent:
            return ()
        time = Budget(0.4 * budget.left)
        found = [prover.prove_table(self.sample, n, self.job.eps, time) for prover in self.provers]
        return tuple(bound for bounds in found for bound in bounds)


def prepare_memory(asked: AuditRequest, X: Any, y: Any, sizes: Sizes | None = None) -> Prepared:
    """Prepare the audit of people in memory: one part, which holds everybody."""
    problem = asked.problem(X, y, asked.domain)
    searches, left_out = choose_searches(
        asked.searches, problem, required=asked.required, in_parts=False, eps=asked.eps
    )
    table = MemoryTable(problem.rows, problem.y)
    pool = _drawn(asked, searches, problem.n)
    if len(pool):
        problem = replace(problem, pool=table.take(pool))
    return _prepared(asked, table, table.parts(), problem, searches, left_out, sizes or Sizes(), "")


def prepare_parquet(
    asked: AuditRequest, table: ParquetTable, engine: Engine, sizes: Sizes | None = None
) -> Prepared:
    """Prepare the audit of Parquet files: a sample tells what is learned from people, a pool who is compared."""
    sizes = sizes or Sizes()
    parts = table.parts(sizes.part)
    n = sum(part.rows for part in parts)
    if not n:
        raise InputError("audit: the Parquet files have no rows.")
    searches = [search.for_parts() or search for search in asked.searches]
    pool = _drawn(asked, searches, n)
    sample = _draw(asked, sizes.sample, n)
    draws = [sample, pool] if len(pool) else [sample]
    drawn, extent = survey(engine, table, parts, draws, extent=asked.domain is None)
    people, y = drawn[0]
    problem = asked.problem(people, y, extent.domain(people) if asked.domain is None else asked.domain)
    problem = replace(problem, total=n)
    provers = tuple(
        search
        for search in asked.searches
        if search.from_sample and asked.budget.seconds is not None and search.why_not(problem) is None
    )
    rest = [search for search in asked.searches if search not in provers]
    chosen, left_out = choose_searches(rest, problem, required=asked.required, in_parts=True, eps=asked.eps)
    some = problem
    if len(pool):
        problem = replace(problem, pool=rows_of(drawn[1][0], problem.coordinates))
    scratch = str(Path(tempfile.gettempdir()) / f"likewise-{uuid.uuid4().hex}")
    made = _prepared(asked, table, parts, problem, chosen, left_out, sizes, scratch)
    if not provers:
        return made
    said = Message("assumption.sample", people=some.n)
    evidence = replace(made.evidence, assumptions=(*made.evidence.assumptions, said))
    return replace(made, evidence=evidence, sample=some, provers=provers)


def _prepared(
    asked: AuditRequest,
    table: Any,
    parts: tuple[Part, ...],
    problem: AuditProblem,
    searches: Sequence[Search],
    left_out: tuple[str, ...],
    sizes: Sizes,
    scratch: str,
) -> Prepared:
    n, here = sum(part.rows for part in parts), isinstance(table, MemoryTable)
    if problem.edits:
        problem = replace(problem, values=sensitive_values(problem))
        fixed = problem.coordinates.fixed_names()
        plan = plan_candidates(problem.editable(), problem.edits, proxies=None, fixed=fixed)
        problem = replace(problem, edits=plan.settled_edits(problem.edits))
    ready = tuple(search.prepare(problem) for search in searches)
    said: list[str] = [Message("assumption.loss", loss=_loss_words(problem.coordinates.model.loss.name))]
    said += [line for search in ready for line in search.assumes(problem)]
    said.append(
        Message("assumption.settled")
        if any(search.settles(asked.eps) for search in ready)
        else Message("assumption.estimate")
    )
    names = searches_words([search.name for search in ready])
    evidence = Evidence(
        search=names if here else Message("search.in_parts", search=names),
        assumptions=(*problem.assumptions, *said),
        settings=_settings(asked, problem),
        left_out=left_out,
        findings=check_before_verdict(problem),
    )
    job = Job(
        table,
        problem if here else replace(problem, rows=None, y=np.zeros(0)),
        ready,
        float(asked.eps),
        asked.budget,
        chunk_rows=sizes.chunk,
        top=n if here else sizes.top,
        bits=ALL_BITS if n <= sizes.exact else _BITS,
        scratch=scratch,
        exchanges=any(isinstance(search, CandidateSearch) and search.edits is None for search in searches),
    )
    return Prepared(job, parts, evidence)


def _loss_words(name: str) -> str:
    key = f"setting_value.{name}"
    return Message(key) if Texts().has(key) else name.replace("_", " ")


def _drawn(asked: AuditRequest, searches: Sequence[Search], n: int) -> IntArray:
    """Numbers of the people in the pool, rising; none where no search wants one."""
    size = max((search.pool_size for search in searches), default=0)
    return _draw(asked, size, n) if size else np.zeros(0, dtype=np.int64)


def _draw(asked: AuditRequest, size: int, n: int) -> IntArray:
    chosen = numpy_generator(asked.random_state).choice(n, size=min(size, n), replace=False)
    return np.sort(chosen).astype(np.int64)


def _settings(asked: AuditRequest, problem: AuditProblem) -> dict[str, Any]:
    """Plain values that say how an audit was made."""
    libraries = ("numpy", "scikit-learn", "torch", "pandas")
    place = problem.coordinates
    found: dict[str, Any] = {
        "version": __version__,
        "versions": {"python": platform.python_version()} | {name: version(name) for name in libraries},
        "metric": repr(asked.metric if not hasattr(asked.metric, "metric_") else asked.metric.metric_),
        "loss": place.model.loss.name,
        "model": place.model.adapter,
        "sensitive": [str(name) for name in edited_columns(problem.sensitive_edits)],
        "seed": asked.random_state,
    }
    if place.encoding is not None and place.metric.feature_map is None:
        found["reach"] = reach(place.metric, float(asked.eps), place.encoding.columns)
    return found | ({} if problem.pool is None else {"pool_rows": len(problem.pool)})


# So many steps of one bin come as they are; more of them in bins that are finer by so many bits.
_FEW_STEPS = 250_000
_FINER = 16


@dataclass(frozen=True, eq=False)
class AuditRunner:
    """One audit, part by part."""

    engine: Engine
    job: Job
    parts: Sequence[Part]
    progress: bool = False

    @property
    def n(self) -> int:
        """Number of people."""
        return sum(part.rows for part in self.parts)

    def answer(self, questions: Questions, folder: MapFolder | None, clock: Clock) -> Answer:
        """Search, find λ*, settle, and put the numbers together."""
        eps, confidence = float(questions.eps), questions.confidence
        found: FoundSums = self._added(search_part, "auditing people", top=self.job.top)
        for name, seconds in found.cpu.items():
            clock.book(name, seconds)
        steps = self._narrowed(found.steps, eps)
        curve = steps.curve(n=self.n, base=found.losses.mean, free=found.free.mean)
        lam = float(curve.lambda_(eps))
        target = None if folder is None else str(folder.open())
        prices = prices_around(curve, eps)
        settle = partial(settle_part, lam=lam, prices=prices, folder=target)
        settled: SettledSums = self._added(settle, "writing the map" if target else "", top=self.job.top)
        if folder is not None:
            folder.finish(self.parts)
        clock.book("settle", settled.cpu)
        maps = self._maps([found.worst] if eps == 0 else [found.worst, settled.worst])
        decides = self.job.problem.decides
        # Nothing that was seen bounds the losses of people who were not: only the loss itself may.
        ceiling = self.job.problem.coordinates.model.loss.upper_bound
        return Answer(
            n=self.n,
            curve=curve,
            value=float(curve.value(eps)),
            lambda_=lam,
            transport=min(eps, float(curve.eps[-1])),
            pure_gap=found.free.mean,
            flipped=found.changed / self.n if decides else None,
            changed_at_eps=self._changed(found, eps) if decides else None,
            sensitive=_sensitive(found.sensitive, self.job.problem, ceiling, confidence),
            interval=gap_interval(
                settled.gains,
                lambda_=lam if eps > 0 else float("inf"),
                eps=eps,
                ceiling=ceiling,
                confidence=confidence,
            ),
            test=gap_test_of_moments(
                found.losses,
                found.free,
                threshold=questions.tau,
                ceiling=ceiling,
                confidence=confidence,
                about="given candidates",
            ),
            unfair_map=maps[-1],
            pure_map=maps[0],
            ending=found.ending,
            histogram={"edges": list(HARM_EDGES[:-1]), "people": settled.histogram.tolist()},
        )

    def _narrowed(self, steps: BinnedSteps, eps: float) -> BinnedSteps:
        """Ask for the bin in which the budget ends until it holds steps of one slope: λ*."""
        bits = steps.bits
        at = None if bits == ALL_BITS else steps.bin_at(eps, self.n)
        while at is not None and steps.low[at] < steps.high[at]:
            bits = ALL_BITS if steps.count[at] <= _FEW_STEPS else min(ALL_BITS, bits + _FINER)
            low, high = float(steps.low[at]), float(steps.high[at])
            steps = steps.refined(at, self._added(partial(narrow_part, low=low, high=high, bits=bits)))
            at = steps.bin_at(eps, self.n)
        return steps

    def _changed(self, found: FoundSums, eps: float) -> float:
        """Share of people whose decision changes within the budget, at rows that were seen."""
        curve = found.changes.curve(n=self.n, base=0.0, free=found.changed / self.n)
        return min(1.0, float(curve.value(eps)))

    def _maps(self, several: Sequence[Worst]) -> list[UnfairMap]:
        """Show the most harmed people beside their twins, of the budget 0 and of ε."""
        numbers = np.unique(np.concatenate([worst.person for worst in several]))
        items = parts_of(numbers, self.parts)
        picked = list(self.engine.map(pick_part, self.job, items))
        maps = []
        for worst in several:
            order = np.argsort(worst.person)
            person = worst.person[order]
            support = support_of(self.job, picked, np.searchsorted(numbers, person), person)
            corner = clipped_corners(support.frontier, worst.corner[order])
            maps.append(support.unfair_map(corner, person=person, total=self.n))
        return maps

    def _added(self, function: Callable[[Any, Any], Any], title: str = "", **choices: Any) -> Any:
        """Apply a function to every part, and put the answers together in the order of the parts."""
        total = None
        for found in self._tracked(self.engine.map(function, self.job, self.parts), title):
            total = found if total is None else total.merge(found, **choices)
        return total

    def _tracked(self, answers: Iterator[Any], title: str) -> Iterator[Any]:
        with progress_bar(show=bool(self.progress and title), counted=True, transient=False) as bar:
            bar.start(title, total=self.n)
            done = 0
            for part, found in zip(self.parts, answers, strict=True):
                yield found
                done += part.rows
                bar.update(done)


def _sensitive(
    sums: SensitiveSums | None, problem: AuditProblem, ceiling: float, confidence: float
) -> SensitiveAnswer | None:
    if sums is None:
        return None
    n, free = sums.harm.n, float("inf")
    gap = gap_interval({free: sums.harm}, lambda_=free, eps=0.0, ceiling=ceiling, confidence=confidence)
    counted = problem.counts_changes
    share = share_interval(sums.changed, n, confidence=confidence) if counted else None
    high = None if share is None else share.high if sums.exact else 1.0
    # In an order that does not depend on which part was first to hold a value or a decision.
    groups = tuple(
        sorted(sums.groups, key=lambda g: (sums.columns.index(g.column), str(g.value), str(g.decision)))
    )
    affected = most_affected(groups, most=1)
    example = sums.examples.get((affected[0].column, affected[0].value)) if affected else None
    return SensitiveAnswer(
        columns=sums.columns,
        gap=sums.harm.mean,
        gap_interval=(gap.low, gap.high),
        changed=sums.changed / n if counted else None,
        changed_interval=None if share is None or high is None else (share.low, high),
        groups=groups,
        example=example,
        exact=sums.exact,
        tolerance=problem.tolerance,
    )
