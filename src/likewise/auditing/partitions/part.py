"""The work on one part of a table: pure functions of what all parts share and of one part.

A part's frontier is kept for the rounds that follow: in memory where the table is, else in a file where it was made. A
round that does not find it, as on another machine after a worker died, makes it again, so that losing files costs time
and changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.auditing.dual.finite_dual import BinnedSteps
from likewise.auditing.dual.frontier import Floats, Frontier, steps_of
from likewise.auditing.dual.moments import Moments
from likewise.auditing.dual.supporting_rows import Support
from likewise.auditing.inference.intervals import frontier_gains
from likewise.auditing.partitions.sums import HARM_EDGES, Ending, FoundSums, SensitiveSums, SettledSums, Worst
from likewise.auditing.partitions.tables import MemoryTable, ParquetTable, Part
from likewise.auditing.problem import AuditProblem
from likewise.auditing.progress import OnProgress, search_bar
from likewise.auditing.results.sensitive import SensitiveTwins, sensitive_twins
from likewise.auditing.search.choosing import search_words
from likewise.auditing.search.contract import Budget, Found, Search
from likewise.core.checks import IntArray
from likewise.core.files import atomic_path
from likewise.core.messages import Message


@dataclass(frozen=True, eq=False)
class Job:
    """What all parts share."""

    table: ParquetTable | MemoryTable
    problem: AuditProblem
    searches: tuple[Search, ...]
    eps: float
    budget: Budget
    chunk_rows: int
    top: int
    bits: int
    scratch: str
    kept: dict[int, Support] = field(default_factory=dict)
    progress: bool | OnProgress = False
    exchanges: bool = False

    def frontier_path(self, part: Part) -> Path:
        """Where the frontier of a part is kept."""
        return Path(self.scratch) / f"frontier-{part.index:07d}.npz"


def search_people(
    job: Job, problem: AuditProblem
) -> tuple[Support, Ending, dict[str, float], SensitiveTwins | None]:
    """Run the searches on some people, one after the other, and say how they ended and what they cost.

    Twins that differ in the sensitive columns alone come first and are returned last.

    Ctrl-C ends those of people in memory with what was found and proved so far, if there is anything yet.
    """
    support, ending = Support.start(problem), Ending()
    cpu: dict[str, float] = {}
    begin = time.process_time()
    twins = sensitive_twins(problem)
    if twins is not None and job.exchanges:
        # The candidates give a number only a few values, and should not know of less than these twins do.
        support = twins.added_to(support)
    spent = time.process_time() - begin
    with search_bar(show=job.progress) as watched:
        for number, search in enumerate(job.searches):
            start = time.process_time()
            if job.budget.spent:
                reason = Message("reason.no_time", name=search_words(search.name))
                ending = ending.then(Found(support, "not_converged", (reason,)))
                continue
            try:
                time_left = _share(job.budget, last=number + 1 == len(job.searches))
                found = search.extend(problem, support, job.eps, watched(search.name, time_left))
            except KeyboardInterrupt:
                if not cpu or not isinstance(job.table, MemoryTable):
                    raise
                reason = Message("reason.broken_off", name=search_words(search.name))
                ending = ending.then(Found(support, "not_converged", (reason,)))
                break
            support = found.support
            ending = ending.then(found)
            cpu[search.name] = cpu.get(search.name, 0.0) + time.process_time() - start
    return support, ending, cpu | {"sensitive twins": spent}, twins


def _share(budget: Budget, *, last: bool) -> Budget:
    """Leave half of the time to the searches that come after, which is where bounds are proved."""
    return budget if last or budget.seconds is None else Budget(max(0.5 * budget.left, 1e-3))


def search_part(job: Job, part: Part) -> FoundSums:
    """Search the twins of a part's people, keep the frontier, and add up what it says."""
    total: FoundSums | None = None
    frontiers: list[Frontier] = []
    for problem in _problems(job, part):
        support, ending, cpu, twins = search_people(job, problem)
        frontiers.append(support.frontier)
        if isinstance(job.table, MemoryTable):
            job.kept[part.index] = support
        found = _added_up(job, support, ending, cpu, None if twins is None else SensitiveSums.of(twins))
        total = found if total is None else total.merge(found, top=job.top)
    assert total is not None  # a part has people
    if not isinstance(job.table, MemoryTable):
        _keep(job, part, Frontier.stack(frontiers))
    return total


def _added_up(
    job: Job, support: Support, ending: Ending, cpu: dict[str, float], sensitive: SensitiveSums | None
) -> FoundSums:
    frontier = support.frontier
    steps = steps_of(frontier)
    free = np.isinf(steps.slope)
    gain: Floats = np.bincount(steps.row[free], steps.gain[free], frontier.n_rows).astype(np.float64)
    moved = np.bincount(steps.row[free], minlength=frontier.n_rows)
    person = support.problem.first + np.arange(frontier.n_rows)
    return FoundSums(
        losses=Moments.of(frontier.base_loss),
        free=Moments.of(gain),
        changed=int(support.changed.sum()),
        sensitive=sensitive,
        steps=BinnedSteps.of(steps, bits=job.bits),
        changes=BinnedSteps.of(steps_of(support.change_frontier()), bits=job.bits),
        worst=Worst.of(gain, person, moved, top=job.top),
        ending=ending,
        cpu=cpu,
    )


def narrow_part(job: Job, part: Part, *, low: float, high: float, bits: int) -> BinnedSteps:
    """Return the steps with slopes from `low` to `high`, in finer bins."""
    return BinnedSteps.of(steps_of(_kept(job, part)), bits=bits, low=low, high=high)


def settle_part(
    job: Job, part: Part, *, lam: float, prices: Sequence[float], folder: str | None = None
) -> SettledSums:
    """Say what λ* means for a part's people, and write their unfair map where a folder is given."""
    start = time.process_time()
    frontier = _kept(job, part)
    taken = steps_of(frontier).taken(lam, frontier.n_rows)
    harm = frontier.loss[frontier.indptr[:-1] + taken] - frontier.base_loss
    written = 0
    if folder is not None:
        written = _write_map(job, part, taken, Path(folder))
    return SettledSums(
        gains={price: Moments.of(frontier_gains(frontier, price)) for price in prices},
        worst=Worst.of(harm, part.first + np.arange(frontier.n_rows), taken, top=job.top),
        histogram=np.histogram(harm, HARM_EDGES)[0].astype(np.int64),
        written=written,
        cpu=time.process_time() - start,
    )


def pick_part(job: Job, item: tuple[Part, IntArray]) -> Any:
    """Return some people of a part by number."""
    return job.table.pick(*item)


def support_of(job: Job, picked: Sequence[Any], order: IntArray, person: IntArray) -> Support:
    """Return what was found for some people: kept where they are in memory, else found again."""
    if 0 in job.kept and len(person) == job.kept[0].problem.n:
        return job.kept[0]
    rows, y = job.table.joined(picked, order)
    return search_people(job, job.problem.of(rows, y))[0]


def _problems(job: Job, part: Part) -> Iterator[AuditProblem]:
    """Yield the people of a part, chunk by chunk, as problems of their own."""
    first = part.first
    for rows, y in job.table.chunks(part, job.chunk_rows):
        whole = isinstance(job.table, MemoryTable)
        yield job.problem if whole else job.problem.of(rows, y, first=first)
        first += len(y)


def _keep(job: Job, part: Part, frontier: Frontier) -> None:
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


def _kept(job: Job, part: Part) -> Frontier:
    """Return the frontier of a part from where it was kept, or make it again."""
    if part.index in job.kept:
        return job.kept[part.index].frontier
    path = job.frontier_path(part)
    if not path.is_file():
        search_part(job, part)
    with np.load(path, allow_pickle=False) as arrays:
        return Frontier(**{name: arrays[name] for name in arrays.files})


def _write_map(job: Job, part: Part, taken: IntArray, folder: Path) -> int:
    """Write the unfair map of a part's people as one file, whole, over one that an earlier try left."""
    import pyarrow.parquet as pq

    written = 0
    with atomic_path(folder / f"part-{part.index:07d}.parquet") as temporary:
        writer = None
        try:
            for table in _map_chunks(job, part, taken):
                writer = writer or pq.ParquetWriter(temporary, table.schema)
                writer.write_table(table.cast(writer.schema))
                written += table.num_rows
        finally:
            if writer is not None:
                writer.close()
    return written


def _map_chunks(job: Job, part: Part, taken: IntArray) -> Iterator[pa.Table]:
    for problem in _problems(job, part):
        support = search_people(job, problem)[0]
        start = problem.first - part.first
        corner = clipped_corners(support.frontier, taken[start : start + problem.n])
        shown = support.unfair_map(corner, person=problem.first + np.arange(problem.n))
        yield pa.Table.from_pandas(shown.frame, preserve_index=False)


def clipped_corners(frontier: Frontier, taken: IntArray) -> IntArray:
    """Return the corner of each row after so many steps; its last one where rounding took a step away."""
    return np.asarray(np.minimum(frontier.indptr[:-1] + taken, frontier.indptr[1:] - 1))
