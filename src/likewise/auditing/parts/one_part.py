"""The work on one part of a table that is audited in parts: pure functions of what all parts share and of one part.

A part's frontier is kept in a file where it was made, for the rounds that follow. A round that does not find it, as
on another machine after a worker died, makes it again, so that losing files costs time and changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.auditing.parts.parquet_table import ParquetTable, Part
from likewise.auditing.parts.part_sums import HARM_EDGES, Outcome, Tally, Worst
from likewise.auditing.problem.coordinates import Views
from likewise.auditing.search.candidates.candidate_search import CandidateSearch
from likewise.auditing.search.candidates.candidate_shards import ShardedCandidates, plan_shards, search_shards
from likewise.auditing.support.binned_steps import Spectrum
from likewise.auditing.support.finite_dual import all_steps
from likewise.auditing.support.frontier import Floats, Frontier, Ints
from likewise.auditing.support.moments import Moments
from likewise.auditing.support.supporting_rows import Support
from likewise.core.files import atomic_path

__all__ = ["Job", "narrow_part", "pick_part", "search_part", "settle_part"]


@dataclass(frozen=True, eq=False)
class Job:
    """What all parts share.

    Parameters
    ----------
    table : ParquetTable
    views : Views
        The model, the metric and the domain.
    search : CandidateSearch
        With everything that is learned from data filled in, so that parts do not differ in it.
    pool : sequence of DataFrame
        The people that everybody is compared with, in shards.
    chunk_rows : int
        People in memory at once.
    top : int
        How many of the most harmed are kept.
    bits : int
        Of the spectrum.
    scratch : str
        Folder for frontiers.
    """

    table: ParquetTable
    views: Views
    search: CandidateSearch
    pool: tuple[Any, ...]
    chunk_rows: int
    top: int
    bits: int
    scratch: str

    def frontier_path(self, part: Part) -> Path:
        """Where the frontier of a part is kept."""
        return Path(self.scratch) / f"frontier-{part.index:07d}.npz"


def search_part(job: Job, part: Part) -> Tally:
    """Search the twins of a part's people, keep the frontier, and add up what it says."""
    start = time.process_time()
    frontier, flips = _search(job, part)
    steps = all_steps(frontier)
    free = np.isinf(steps.slope)
    gain: Floats = np.bincount(steps.row[free], steps.gain[free], frontier.n_rows).astype(np.float64)
    moved = np.bincount(steps.row[free], minlength=frontier.n_rows)
    return Tally(
        losses=Moments.of(frontier.base_loss),
        free=Moments.of(gain),
        flips=flips,
        spectrum=Spectrum.of(frontier, bits=job.bits),
        worst=Worst.of(gain, part.first + np.arange(frontier.n_rows), moved, top=job.top),
        cpu=time.process_time() - start,
    )


def narrow_part(job: Job, part: Part, *, low: float, high: float, bits: int) -> Spectrum:
    """Return the steps with slopes from `low` to `high`, in finer bins."""
    return Spectrum.of(_kept(job, part), bits=bits, low=low, high=high)


def settle_part(job: Job, part: Part, *, lam: float, folder: str | None = None) -> Outcome:
    """Say what λ* means for a part's people, and write their unfair map where a folder is given."""
    start = time.process_time()
    frontier = _kept(job, part)
    taken = all_steps(frontier).taken(lam, frontier.n_rows)
    harm = frontier.loss[frontier.indptr[:-1] + taken] - frontier.base_loss
    written = 0
    if folder is not None:
        written = _write_map(job, part, frontier, taken, Path(folder))
    return Outcome(
        gains=Moments.of(frontier.conjugate(lam) - frontier.base_loss),
        worst=Worst.of(harm, part.first + np.arange(frontier.n_rows), taken, top=job.top),
        histogram=np.histogram(harm, HARM_EDGES)[0].astype(np.int64),
        written=written,
        cpu=time.process_time() - start,
    )


def pick_part(job: Job, item: tuple[Part, Ints]) -> pa.Table:
    """Return some people of a part by number."""
    return job.table.pick(*item)


def _search(job: Job, part: Part) -> tuple[Frontier, int]:
    """Search a part chunk by chunk, and keep the frontier in a file."""
    views, parts, flips = job.views, [], 0
    for rows, y in job.table.chunks(part, job.chunk_rows):
        found = search_shards(job.search, views, rows, y, job.pool)
        parts.append(found.frontier)
        flips += _flips(views, rows, found.frontier, found.candidates)
    frontier = Frontier.stack(parts)
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
    return frontier, flips


def _kept(job: Job, part: Part) -> Frontier:
    """Return the frontier of a part from its file, or make it again."""
    path = job.frontier_path(part)
    if not path.is_file():
        return _search(job, part)[0]
    with np.load(path, allow_pickle=False) as arrays:
        return Frontier(**{name: arrays[name] for name in arrays.files})


def _flips(views: Views, rows: Any, frontier: Frontier, candidates: ShardedCandidates) -> int:
    """How many people's twins at no fair distance get another decision."""
    free = frontier.indptr[:-1] + all_steps(frontier).taken(np.inf, frontier.n_rows)
    moved = np.flatnonzero(frontier.candidate[free] >= 0)
    if not len(moved):
        return 0
    twins = candidates.take(frontier.candidate[free[moved]])
    before = views.model.predict(views.for_model(rows.iloc[moved]))
    return int((before != views.model.predict(views.for_model(twins))).sum())


def _write_map(job: Job, part: Part, frontier: Frontier, taken: Ints, folder: Path) -> int:
    """Write the unfair map of a part's people as one file, whole, over one that an earlier try left."""
    import pyarrow.parquet as pq

    written = 0
    with atomic_path(folder / f"part-{part.index:07d}.parquet") as temporary:
        writer = None
        try:
            for table in _map_chunks(job, part, frontier, taken):
                writer = writer or pq.ParquetWriter(temporary, table.schema)
                writer.write_table(table.cast(writer.schema))
                written += table.num_rows
        finally:
            if writer is not None:
                writer.close()
    return written


def _map_chunks(job: Job, part: Part, frontier: Frontier, taken: Ints) -> Iterator[pa.Table]:
    start = 0
    for rows, y in job.table.chunks(part, job.chunk_rows):
        here = slice(start, start + len(y))
        chunk = frontier.take(here)
        candidates = plan_shards(job.search, job.views, rows, job.pool)
        support = Support(job.views, rows, candidates, np.zeros((0, 0)), chunk)
        person = part.first + np.arange(start, start + len(y))
        shown = support.unfair_map(chunk.indptr[:-1] + taken[here], y, person=person)
        yield pa.Table.from_pandas(shown.frame, preserve_index=False)
        start += len(y)
