"""The work on one part of a table: pure functions of what all parts share and of one part, and sums of their answers.

A part's frontier is kept in a file for the rounds that follow. A round that does not find it, as on another machine
after a worker died, makes it again, so that losing files costs time and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.auditing.dual.finite_dual import BinnedSteps
from likewise.auditing.dual.frontier import Frontier, steps_of
from likewise.auditing.inference.certificate import Bound
from likewise.auditing.partitions.tables import ParquetTable, Part
from likewise.auditing.preparation import Prepared
from likewise.auditing.problem import AuditProblem
from likewise.auditing.rounds import (
    Ending,
    FoundSums,
    SettledSums,
    Worst,
    bound_kind,
    corners,
    search_people,
    settle,
    steps_taken,
)
from likewise.core.checks import IntArray
from likewise.core.files import atomic_path


@dataclass(frozen=True, eq=False)
class Job:
    """What all parts share."""

    table: ParquetTable
    prepared: Prepared
    chunk_rows: int
    top: int
    bits: int
    scratch: str

    def frontier_path(self, part: Part) -> Path:
        """Where the frontier of a part is kept."""
        return Path(self.scratch) / f"frontier-{part.index:07d}.npz"

    def problems(self, part: Part) -> Iterator[AuditProblem]:
        """Yield the people of a part, chunk by chunk, as problems of their own."""
        first = part.first
        for rows, y in self.table.chunks(part, self.chunk_rows):
            yield self.prepared.problem.of(rows, y, first=first)
            first += len(y)


def search_part(job: Job, part: Part) -> FoundSums:
    """Search the twins of a part's people, keep the frontier, and add up what it says."""
    total: FoundSums | None = None
    frontiers: list[Frontier] = []
    for problem in job.problems(part):
        searched = search_people(job.prepared, problem)
        frontiers.append(searched.support.frontier)
        found = searched.sums(top=job.top, bits=job.bits)
        total = found if total is None else added_found(total, found, top=job.top)
    assert total is not None  # a part has people
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
    return total


def narrow_part(job: Job, part: Part, *, low: float, high: float, bits: int) -> BinnedSteps:
    """Return the steps with slopes from `low` to `high`, in finer bins."""
    return BinnedSteps.of(steps_of(_kept(job, part)), bits=bits, low=low, high=high)


def settle_part(
    job: Job, part: Part, *, lam: float, prices: Sequence[float], folder: str | None = None
) -> SettledSums:
    """Say what λ* means for a part's people, and write their unfair map if a folder is given."""
    frontier = _kept(job, part)
    if folder is not None:
        _write_map(job, part, steps_taken(frontier, lam), Path(folder))
    return settle(frontier, lam, prices, first=part.first, top=job.top)


def pick_part(job: Job, item: tuple[Part, IntArray]) -> Any:
    """Return some people of a part by number."""
    return job.table.pick(*item)


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
                support = search_people(job.prepared, problem).support
                start = problem.first - part.first
                corner = corners(support.frontier, taken[start : start + problem.n])
                shown = support.unfair_map(corner, person=problem.first + np.arange(problem.n))
                table = pa.Table.from_pandas(shown.frame, preserve_index=False)
                writer = writer or pq.ParquetWriter(temporary, table.schema)
                writer.write_table(table.cast(writer.schema))
        finally:
            if writer is not None:
                writer.close()


# What several parts found together: small, and the same whatever the order or place in which parts were worked on.


def added_found(one: FoundSums, two: FoundSums, *, top: int) -> FoundSums:
    """Return what was found for the people of two parts."""
    sensitive = None if one.sensitive is None or two.sensitive is None else one.sensitive.merge(two.sensitive)
    return FoundSums(
        one.losses.merge(two.losses),
        one.free.merge(two.free),
        one.changed + two.changed,
        sensitive,
        one.steps.merge(two.steps),
        one.changes.merge(two.changes),
        _added_worst(one.worst, two.worst, top),
        _added_endings(one.ending, two.ending),
        {name: one.cpu.get(name, 0.0) + two.cpu.get(name, 0.0) for name in {**one.cpu, **two.cpu}},
    )


def added_settled(one: SettledSums, two: SettledSums, *, top: int) -> SettledSums:
    """Return what λ* means for the people of two parts."""
    return SettledSums(
        {price: found.merge(two.gains[price]) for price, found in one.gains.items()},
        _added_worst(one.worst, two.worst, top),
        one.cpu + two.cpu,
    )


def _added_worst(one: Worst, two: Worst, top: int) -> Worst:
    columns = (
        np.concatenate([getattr(one, name), getattr(two, name)]) for name in ("harm", "person", "corner")
    )
    return Worst.of(*columns, top=top)


def _added_endings(one: Ending, two: Ending) -> Ending:
    """Of two groups of people only bounds at ε = 0 add up: there what one may lose does not depend on the others."""
    theirs = {bound_kind(bound): bound for bound in two.bounds}
    bounds = tuple(
        _added_bounds(bound, theirs[bound_kind(bound)])
        for bound in one.bounds
        if bound_kind(bound) in theirs and bound.eps == 0 and bound.confidence == 1
    )
    return Ending(*one.ended(two.status, two.reasons), bounds)


def _added_bounds(one: Bound, two: Bound) -> Bound:
    n = one.n + two.n
    value = (one.n * one.value + two.n * two.value) / n
    gap = None if one.gap is None or two.gap is None else (one.n * one.gap + two.n * two.gap) / n
    return replace(one, n=n, value=value, gap=gap)
