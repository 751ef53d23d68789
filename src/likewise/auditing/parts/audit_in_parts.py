"""Audits of Parquet files of any size, part by part, against a pool of people drawn once.

Every person is compared with their own twins and with a seeded sample of the table (the pool) and its twins, so a
person's outcome depends neither on the part they come in nor on the people beside them. The rounds over the parts:

1. *survey*: the sample, and which values and ranges occur where no domain says so;
2. *search*: everybody's frontier, which stays in a file where it was made; its steps added up in bins of λ;
3. *narrow*: the bin in which λ* lies, more finely, until λ* is exact (not needed for small tables);
4. *settle*: what λ* means for everybody: spread, histogram, the most harmed, the unfair map as files.

What comes back to this process is small and independent of the number of people.
"""

from __future__ import annotations

import tempfile
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from likewise.auditing.audit_result import AuditResult
from likewise.auditing.claims.conclusion import (
    Clock,
    Evidence,
    Questions,
    assumptions_of,
    settings_of,
    write_up,
)
from likewise.auditing.parts.engine import Engine, LocalEngine
from likewise.auditing.parts.map_folder import MapFolder
from likewise.auditing.parts.one_part import Job
from likewise.auditing.parts.parquet_table import PART_ROWS, ParquetTable, Part
from likewise.auditing.parts.reduction import Rounds
from likewise.auditing.parts.survey import survey
from likewise.auditing.problem.audit_problem import AuditProblem, free_columns
from likewise.auditing.search.candidates.candidate_search import CandidateSearch
from likewise.auditing.search.candidates.candidate_shards import cut_pool
from likewise.auditing.support.binned_steps import ALL_BITS
from likewise.core.errors import InputError
from likewise.core.randomness import numpy_generator

__all__ = ["Asked", "ParquetTable", "Sizes", "audit_parquet"]

# Leading bits of λ that the bins of a large table agree in: 256 bins for every doubling of λ.
_BITS = 8


@dataclass(frozen=True)
class Sizes:
    """How much of a table is held at once.

    Parameters
    ----------
    sample : int, default=20000
        People that learners are fitted on, and proxies found in.
    part : int
        People of a part: what is worked on, and repeated after a failure, as a whole.
    chunk : int, default=32768
        People in memory at once.
    shard : int, default=20000
        People of the pool that are compared at once.
    top : int, default=1000
        The most harmed people that the maps show.
    exact : int, default=250000
        Up to so many people every step is kept. The curve of more is exact at ε and at the edges of bins.
    """

    sample: int = 20_000
    part: int = PART_ROWS
    chunk: int = 32_768
    shard: int = 20_000
    top: int = 1_000
    exact: int = 250_000


@dataclass(frozen=True, eq=False)
class Asked:
    """What the user passed to `audit`, as it came."""

    model: Any
    metric: Any
    domain: Any = None
    loss: Any = "cross_entropy"
    candidates: CandidateSearch | None = None
    sensitive: Any = None
    edits: Any = None
    random_state: int = 0


def audit_parquet(
    asked: Asked,
    table: ParquetTable,
    questions: Questions,
    *,
    engine: Engine | None = None,
    sizes: Sizes | None = None,
    map_folder: str | Path | None = None,
    progress: bool = False,
) -> AuditResult:
    """Audit a Parquet table part by part.

    Parameters
    ----------
    asked : Asked
        A learner among it is fitted on a sample.
    table : ParquetTable
    questions : Questions
    engine, map_folder
        As in `audit`.
    sizes : Sizes, optional
    progress : bool, default=False
        Show a bar with the time left, on standard error.

    Returns
    -------
    AuditResult
        Its maps hold the most harmed people; ``unfair_map.total`` says how many were audited.
    """
    clock, sizes = Clock(), sizes or Sizes()
    parts = table.parts(sizes.part)
    if not parts:
        raise InputError("audit: the Parquet files have no rows.")
    folder = None if map_folder is None else MapFolder(map_folder)
    scratch = str(Path(tempfile.gettempdir()) / f"likewise-{uuid.uuid4().hex}")
    with engine or LocalEngine() as runner:
        if progress and runner.dashboard is not None:
            _say(f"Dashboard of {runner.describe()}: {runner.dashboard}")
        runner.check(table.paths)
        try:
            job, evidence = _prepare(asked, table, parts, runner, sizes, scratch)
            clock.lap("prepare")
            rounds = Rounds(runner, job, parts, progress)
            answer, found = rounds.answer(questions, folder, clock)
        finally:
            runner.forget(scratch)
            if folder is not None:
                folder.discard()
        settings = evidence.settings | found | {"engine": runner.describe(), "parts": len(parts)}
    return write_up(answer, replace(evidence, settings=settings), questions, clock)


def _say(line: str) -> None:
    from rich.console import Console

    Console(stderr=True, highlight=False).print(line, markup=False)


def _prepare(
    asked: Asked, table: ParquetTable, parts: tuple[Part, ...], engine: Engine, sizes: Sizes, scratch: str
) -> tuple[Job, Evidence]:
    """Draw the sample and the pool, and fill in all that is learned from data."""
    n = sum(part.rows for part in parts)
    search = asked.candidates or CandidateSearch()
    draws = [
        np.sort(numpy_generator(asked.random_state).choice(n, size=min(size, n), replace=False))
        for size in (search.pool_rows, sizes.sample)
    ]
    ((pool, _), (sample, y)), extent = survey(engine, table, parts, draws, extent=asked.domain is None)
    domain = extent.domain(sample) if asked.domain is None else asked.domain
    problem = AuditProblem.build(asked.model, sample, y, metric=asked.metric, domain=domain, loss=asked.loss)
    views = problem.views
    if asked.candidates is None:
        sensitive = free_columns(views) if asked.sensitive is None else tuple(asked.sensitive)
        search = replace(search, sensitive=sensitive, edits=asked.edits)
    search = replace(search, use_rows="pool" if search.use_rows else False)
    said = (*problem.assumptions, *assumptions_of(views, search))
    settings = settings_of(views, search) | {"seed": asked.random_state, "pool_rows": len(pool)}
    plan = search.plan(views.model, sample, metric=views.metric, domain=views.domain)
    job = Job(
        table,
        views,
        search.settled(plan),
        cut_pool(pool, sizes.shard) if search.use_rows else (None,),
        chunk_rows=sizes.chunk,
        top=sizes.top,
        bits=ALL_BITS if n <= sizes.exact else _BITS,
        scratch=scratch,
    )
    return job, Evidence("candidates, part by part", said, settings)
