"""The audit of Parquet files: rounds over the parts of a table, and how their answers become its numbers.

1. *search*: everybody's frontier, which stays where it was made; its steps listed, or added up in bins of λ;
2. *narrow*: the bin in which λ* lies, more finely, until λ* is exact (not needed if steps are listed);
3. *settle*: what λ* means for everybody: spread, the most harmed, the unfair map as files.

What comes back to this process is small and independent of the number of people. A part's frontier is kept in a file
for the rounds that follow. A round that does not find it, as on another machine after a worker died, makes it again, so
that losing files costs time and changes nothing.
"""

from __future__ import annotations

import math
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from likewise.auditing.dual.finite_dual import ALL_BITS, BinnedSteps, Frontier, steps_of
from likewise.auditing.first_answer import AuditRequest, Clock, first_answer, ready_people
from likewise.auditing.inference.certificate import Bound
from likewise.auditing.inference.intervals import prices_around
from likewise.auditing.partitions.engine import Engine, LocalEngine
from likewise.auditing.partitions.tables import (
    PART_ROWS,
    MapFolder,
    ParquetTable,
    Part,
    Sample,
    parts_of,
    pick_part,
    survey,
)
from likewise.auditing.people import AuditedPeople, rows_of
from likewise.auditing.problem import AuditProblem
from likewise.auditing.results.audit_result import AuditResult
from likewise.auditing.results.effects import SensitiveSums
from likewise.auditing.results.sensitive import enumerate_sensitive
from likewise.auditing.results.unfair_map import UnfairMap
from likewise.auditing.search.contract import Budget, Found, choose_searches, tightest
from likewise.auditing.worst_case import (
    FoundSums,
    OnProgress,
    Prepared,
    conclude,
    prepare,
    problem_of,
    search_people,
)
from likewise.core.checks import FloatArray, IntArray
from likewise.core.errors import InputError
from likewise.core.exact_sum import Moments
from likewise.core.files import atomic_path
from likewise.core.messages import Message
from likewise.core.progress import progress_bar, write_error

# Leading bits of λ that the bins of a large table agree in: 256 bins for every doubling of λ.
_BITS = 8
# So many steps of one bin come as they are; more of them in bins that are finer by so many bits.
_FEW_STEPS = 250_000
_FINER = 16
# Of the time, for the sample that chooses prices.
_SHARE_OF_SAMPLE = 0.2


PeopleT = TypeVar("PeopleT", bound=AuditedPeople)

# The work on one part of a table: pure functions of what all parts share and of one part, and sums of their answers.


@dataclass(frozen=True, eq=False)
class Job:
    """What all parts share."""

    table: ParquetTable
    prepared: Prepared
    chunk_rows: int
    top: int
    bits: int
    scratch: str
    # Parts are worked on so many at once, in so many turns, in the time from here on.
    turns: int = 1
    at_once: int = 1
    begin: float = field(default_factory=time.time)

    def within(self, part: Part, share: float) -> Prepared:
        """Return the audit with a share of the time that a part has left."""
        budget = self.prepared.budget
        if budget.seconds is None:
            return self.prepared
        turn = (part.index // self.at_once + 1) / self.turns
        left = self.begin + turn * (budget.left + time.time() - self.begin) - time.time()
        return replace(self.prepared, budget=Budget(max(share * left, 1e-3)))

    def frontier_path(self, part: Part) -> Path:
        """Where the frontier of a part is kept."""
        return Path(self.scratch) / f"frontier-{part.index:07d}.npz"

    def problems(self, part: Part) -> Iterator[AuditProblem]:
        """Return the people of a part, chunk by chunk, as problems of their own."""
        return people_in(part, self.table, self.prepared.problem, self.chunk_rows)


def people_in(part: Part, table: ParquetTable, people: PeopleT, chunk_rows: int) -> Iterator[PeopleT]:
    """Yield the people of a part, chunk by chunk, with the same questions about them."""
    first = part.first
    for rows in table.chunks(part, chunk_rows):
        yield people.of(rows.frame, rows.y, first=first, absent=rows.absent)
        first += len(rows.frame)


def search_part(job: Job, part: Part) -> tuple[FoundSums, Worst]:
    """Search the twins of a part's people, keep the frontier, and add up what it says."""
    frontiers: list[Frontier] = []
    answers: list[tuple[FoundSums, Worst]] = []
    waiting = part.rows
    for problem in job.problems(part):
        searched = search_people(job.within(part, problem.n / waiting), problem)
        waiting -= problem.n
        frontiers.append(searched.found.support.frontier)
        gain = frontiers[-1].gains(math.inf)
        worst = Worst.of(gain, problem.first + np.arange(problem.n), gain > 0, top=job.top)
        answers.append((FoundSums.of(searched, bits=job.bits), worst))
    frontier = Frontier.stack(frontiers)
    path = job.frontier_path(part)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.savez(
            stream,
            indptr=frontier.indptr,
            squared_distance=frontier.squared_distance,
            loss=frontier.loss,
            candidate=frontier.candidate,
        )
    found: tuple[FoundSums, Worst] = added(answers)
    return found


def _afterwards(job: Job) -> Prepared:
    """Return the audit with a little time for people who are searched again, to be shown."""
    seconds = job.prepared.budget.seconds
    return job.prepared if seconds is None else replace(job.prepared, budget=Budget(0.1 * seconds))


def narrow_part(job: Job, part: Part, *, low: float, high: float, bits: int) -> BinnedSteps:
    """Return the steps with slopes from `low` to `high`, in finer bins."""
    return BinnedSteps.of(steps_of(_kept(job, part)), bits=bits, low=low, high=high)


def tied_part(job: Job, part: Part, *, lam: float, room: float) -> tuple[int, float]:
    """Return the number of the first person whose steps worth just λ* no longer fit, and the transport of all such steps."""
    row, transport = steps_of(_kept(job, part)).until(lam, room)
    return part.first + row, transport


def settle_part(
    job: Job, part: Part, *, cut: Cut, prices: Sequence[float], folder: str | None = None
) -> tuple[dict[float, Moments], Worst, float]:
    """What λ* means for a part's people: gains, the most harmed, CPU seconds; a folder gets their unfair map."""
    start, frontier = time.process_time(), _kept(job, part)
    taken = steps_of(frontier).taken(cut[0], frontier.n_rows, cut[1] - part.first)
    if folder is not None:
        _write_map(job, part, taken, Path(folder))
    harm = frontier.loss[frontier.corners(taken)] - frontier.base_loss
    worst = Worst.of(harm, part.first + np.arange(part.rows), taken, top=job.top)
    gains = {price: Moments.of(frontier.gains(price)) for price in prices}
    return gains, worst, time.process_time() - start


def _kept(job: Job, part: Part) -> Frontier:
    """Return the frontier of a part from its file, or make it again."""
    path = job.frontier_path(part)
    if not path.is_file():
        search_part(job, part)
    with np.load(path, allow_pickle=False) as arrays:
        return Frontier(**{name: arrays[name] for name in arrays.files})


def _write_map(job: Job, part: Part, taken: IntArray, folder: Path) -> None:
    """Write the unfair map of a part's people as one file, whole, over one that an earlier try left."""
    import pyarrow.parquet as pq

    with atomic_path(folder / f"part-{part.index:07d}.parquet") as temporary:
        writer = None
        try:
            for problem in job.problems(part):
                support = search_people(_afterwards(job), problem).found.support
                start = problem.first - part.first
                corner = support.frontier.corners(taken[start : start + problem.n])
                shown = support.unfair_map(corner, person=problem.first + np.arange(problem.n))
                table = pa.Table.from_pandas(shown.frame, preserve_index=False)
                writer = writer or pq.ParquetWriter(temporary, table.schema)
                writer.write_table(table.cast(writer.schema))
        finally:
            if writer is not None:
                writer.close()


# What several parts found together: small, and the same whatever the order or place in which parts were worked on.


@dataclass(frozen=True, eq=False)
class Worst:
    """The `top` most harmed people, the worst first; of equals the one who comes first in the table."""

    harm: FloatArray
    person: IntArray
    corner: IntArray
    top: int

    @classmethod
    def of(cls, harm: FloatArray, person: IntArray, corner: Any, *, top: int) -> Worst:
        """Keep the `top` worst."""
        order = np.lexsort((person, -harm))[:top]
        return cls(harm[order], person[order], np.asarray(corner)[order], top)

    def merge(self, other: Worst) -> Worst:
        """Return the worst of both."""
        harm = np.concatenate([self.harm, other.harm])
        person = np.concatenate([self.person, other.person])
        return Worst.of(harm, person, np.concatenate([self.corner, other.corner]), top=self.top)


# Which steps of the frontiers the worst case takes: λ, of which steps that gain more per squared distance are taken; and
# the number of the person before whom steps that gain just as much are taken as well.
Cut: TypeAlias = tuple[float, int]


def added(answers: Iterable[Any]) -> Any:
    """Put answers about different people together, piece by piece, in their order; None if there are none."""
    return reduce(_merged, (one for one in answers if one is not None), None)


def _merged(one: Any, two: Any) -> Any:
    if one is None:
        return two
    if isinstance(one, tuple):
        return tuple(map(_merged, one, two))
    if isinstance(one, dict):
        return {name: _merged(part, two[name]) for name, part in one.items()}
    return one + two if isinstance(one, float) else one.merge(two)


# The rounds over all parts.


@dataclass(frozen=True)
class Sizes:
    """How much of a table is held at once."""

    sample: int = 20_000
    part: int = PART_ROWS
    chunk: int = 32_768
    top: int = 1_000
    exact: int = 250_000


def audit_parquet(
    asked: AuditRequest,
    table: ParquetTable,
    *,
    engine: Engine | None = None,
    map_folder: str | Path | None = None,
    progress: bool | OnProgress = False,
    sizes: Sizes | None = None,
) -> AuditResult:
    """Audit everybody in some Parquet files."""
    clock = Clock()
    folder = None if map_folder is None else MapFolder(map_folder)
    with engine or LocalEngine() as runner:
        if progress is True and runner.dashboard is not None:
            write_error(f"Dashboard of {runner.describe()}: {runner.dashboard}")
        runner.check(table.paths)
        sizes = sizes or Sizes()
        parts = table.parts(sizes.part)
        n = sum(part.rows for part in parts)
        if not n:
            raise InputError("audit: the Parquet files have no rows.")
        if table.sample is None:
            # People drawn at random, and those who show what else occurs.
            random = asked.draw(sizes.sample, n)
            known, frame, numbers, _ = survey(runner, table, parts, random)
            table = replace(known, sample=Sample(known.people(frame), np.isin(numbers, random)))
        if not asked.worst_case:
            return _first_question(asked, table, runner, parts, sizes.chunk, clock, progress)
        audit = _prepare(asked, table, runner, parts, sizes, progress)
        clock.lap("prepare")
        try:
            return audit.result(asked, folder, clock)
        finally:
            runner.forget(audit.job.scratch)
            if folder is not None:
                folder.discard()


def count_part(job: tuple[ParquetTable, AuditedPeople, int], part: Part) -> SensitiveSums | None:
    """Ask about the counterparts of a part's people, and count what becomes of them."""
    found = map(enumerate_sensitive, people_in(part, *job))
    total: SensitiveSums | None = added(SensitiveSums.of(one) for one in found if one is not None)
    return total


def _first_question(
    asked: AuditRequest,
    table: ParquetTable,
    engine: Engine,
    parts: Sequence[Part],
    chunk_rows: int,
    clock: Clock,
    progress: bool | OnProgress,
) -> AuditResult:
    """Answer the first question about everybody in the files; a sample tells which values there are."""
    assert table.sample is not None
    some, n = table.sample.rows, sum(part.rows for part in parts)
    people = ready_people(asked.people(some.frame, some.y).with_known(total=n, absent=some.absent))
    clock.lap("prepare")
    job = replace(table, sample=None), replace(people, rows=None, y=None, absent=None), chunk_rows
    total = added(_tracked(engine.map(count_part, job, parts), parts, "asking about people", progress))
    found = first_answer(people, total, asked, n=n, clock=clock)
    return replace(found, settings=found.settings | {"engine": engine.describe(), "parts": len(parts)})


def _prepare(
    asked: AuditRequest,
    table: ParquetTable,
    engine: Engine,
    parts: Sequence[Part],
    sizes: Sizes,
    progress: bool | OnProgress,
) -> AuditRunner:
    """Prepare an audit: a sample tells what is learned from people, a pool who is compared."""
    sample, n = table.sample, sum(part.rows for part in parts)
    assert sample is not None
    people, y = sample.rows.frame, sample.rows.y
    some = problem_of(asked, people, y, total=n, absent=sample.rows.absent)
    drawn = some if sample.random.all() else some.of(people[sample.random], y[sample.random])
    provers = tuple(
        search
        for search in asked.searches
        if search.from_sample and asked.budget.seconds is not None and search.why_not(some) is None
    )
    rest = [search for search in asked.searches if search not in provers]
    chosen, left_out = choose_searches(
        rest, some, required=asked.required, in_parts=True, eps=asked.tolerated
    )
    pool = asked.pool(chosen, n)
    problem = some
    if len(pool):
        picked = list(engine.map(pick_part, table, parts_of(pool, parts)))
        problem = replace(some, pool=rows_of(table.joined(picked).frame, some.coordinates))
    prepared = prepare(asked, problem, chosen, left_out)
    prepared, known = _priced(prepared, sample)
    bounds = () if known is None else tuple(one for one in known.bounds if one.about == "population")
    if provers and not prepared.budget.spent:
        # What a random sample proves about the table, in less than half of the time left.
        half = Budget(0.4 * prepared.budget.left)
        bounds += tuple(one for prover in provers for one in prover.prove_table(drawn, n, prepared.eps, half))
    said = (Message("assumption.sample", people=drawn.n),) if provers or known is not None else ()
    prepared = replace(
        prepared,
        search=Message("search.in_parts", search=prepared.search),
        assumptions=(*prepared.assumptions, *said),
        settings=prepared.settings | {"engine": engine.describe(), "parts": len(parts)},
    )
    job = Job(
        replace(table, sample=None),
        replace(prepared, problem=replace(prepared.problem, rows=None, y=np.zeros(0), absent=None)),
        chunk_rows=sizes.chunk,
        top=sizes.top,
        bits=ALL_BITS if n <= sizes.exact else _BITS,
        scratch=str(Path(tempfile.gettempdir()) / f"likewise-{uuid.uuid4().hex}"),
        turns=-(-len(parts) // engine.at_once),
        at_once=engine.at_once,
    )
    return AuditRunner(engine, job, parts, n, prepared, bounds, progress)


def _priced(prepared: Prepared, sample: Sample) -> tuple[Prepared, Found | None]:
    """Let a sample choose the prices λ of searches that otherwise look at everybody; also return how they ended."""
    if not any(search.chooses_prices for search in prepared.searches):
        return prepared, None
    rows, at = sample.rows, sample.random
    y, absent = (None if part is None else part[at] for part in (rows.y, rows.absent))
    drawn = prepared.problem.of(rows.frame[at], y, absent=absent)
    share = prepared.budget.part(_SHARE_OF_SAMPLE)
    searched = search_people(replace(prepared, budget=share), drawn)
    return replace(prepared, searches=searched.again), searched.found


@dataclass(frozen=True, eq=False)
class AuditRunner:
    """One audit, part by part."""

    engine: Engine
    job: Job
    parts: Sequence[Part]
    n: int
    prepared: Prepared
    # What a sample proves of everybody.
    bounds: tuple[Bound, ...]
    progress: bool | OnProgress

    def result(self, asked: AuditRequest, folder: MapFolder | None, clock: Clock) -> AuditResult:
        """Search, find λ*, settle, and put the numbers together."""
        eps = asked.tolerated
        found, worst = self._added(search_part, "auditing people")
        for name, seconds in found.cpu.items():
            clock.book(name, seconds)
        base = found.losses.mean
        proved = [
            replace(bound, value=base + bound.gap)
            if bound.about == "sample" and bound.measure == "loss" and bound.gap is not None
            else bound
            for bound in self.bounds
        ]
        steps = self._narrowed(found.steps, eps)
        found = replace(found, steps=steps, bounds=tightest((*found.bounds, *proved)))
        target = None if folder is None else str(folder.open())
        settling = partial(
            settle_part,
            cut=self._cut(steps, float(found.curve.lambda_(eps)), eps),
            prices=prices_around(found.curve, eps),
            folder=target,
        )
        gains, settled, cpu = self._added(settling, "writing the map" if target else "")
        if folder is not None:
            folder.finish(self.parts)
        clock.book("settle", cpu)
        maps = self._maps([worst] if eps == 0 else [worst, settled])
        return conclude(self.prepared, found, gains, (maps[0], maps[-1]), asked, clock)

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

    def _cut(self, steps: BinnedSteps, lam: float, eps: float) -> Cut:
        """Let the steps that are worth just λ* be taken in the order of the table, until the budget is spent."""
        room, fits = steps.room(eps, self.n)
        if not fits:
            return (lam if eps > 0 else math.inf), 0
        needed = list(self.engine.map(partial(tied_part, lam=lam, room=room), self.job, self.parts))
        for part, (_, transport) in zip(self.parts, needed, strict=True):
            if transport > room:
                ((before, _),) = self.engine.map(partial(tied_part, lam=lam, room=room), self.job, [part])
                return lam, before
            room -= transport
        return lam, self.n

    def _maps(self, several: Sequence[Worst]) -> list[UnfairMap]:
        """Show the most harmed people beside their twins, who are searched again."""
        numbers = np.unique(np.concatenate([worst.person for worst in several]))
        picked = list(self.engine.map(pick_part, self.job.table, parts_of(numbers, self.parts)))
        maps = []
        for worst in several:
            order = np.argsort(worst.person)
            person = worst.person[order]
            rows = self.job.table.joined(picked, np.searchsorted(numbers, person))
            people = self.job.prepared.problem.of(rows.frame, rows.y, absent=rows.absent)
            support = search_people(_afterwards(self.job), people).found.support
            corner = support.frontier.corners(worst.corner[order])
            maps.append(support.unfair_map(corner, person=person, total=self.n))
        return maps

    def _added(self, function: Callable[[Any, Any], Any], title: str = "") -> Any:
        """Apply a function to every part, and put the answers together in the order of the parts."""
        answers = self.engine.map(function, self.job, self.parts)
        return added(_tracked(answers, self.parts, title, self.progress if title else False))


def _tracked(
    answers: Iterator[Any], parts: Sequence[Part], title: str, progress: bool | OnProgress
) -> Iterator[Any]:
    """Yield the answers of parts, and show how many people they are about."""
    total, done = sum(part.rows for part in parts), 0
    heard = progress if callable(progress) else None
    if heard is not None:
        heard(title, None)
    with progress_bar(show=progress is True, counted=True, transient=False) as bar:
        bar.start(title, total=total)
        for part, found in zip(parts, answers, strict=True):
            yield found
            done += part.rows
            bar.update(done)
            if heard is not None:
                heard(title, done / total)
