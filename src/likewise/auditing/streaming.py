"""Audits of Parquet files larger than memory: chunk by chunk, against a pool of people drawn once.

Every person is compared with their own twins and with a seeded sample of the table (the pool) and its twins, so a
person's outcome depends neither on the chunk they come in nor on its size. What stays in memory is the frontier of
each person (some ten numbers), the pool, and the most harmed people.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from likewise.auditing.conclusion import Clock, Evidence, Questions, assumptions_of, conclude, settings_of
from likewise.auditing.dual import DualSolution, solve_dual
from likewise.auditing.frontier import Frontier, Ints
from likewise.auditing.problem import AuditProblem, free_columns
from likewise.auditing.result import AuditResult
from likewise.auditing.search.candidates import CandidateFrontier, CandidateSearch
from likewise.auditing.support import Support
from likewise.auditing.unfair_map import UnfairMap
from likewise.core.errors import InputError
from likewise.core.randomness import numpy_generator
from likewise.domains import TabularDomain

__all__ = ["ParquetTable", "audit_parquet"]


@dataclass(frozen=True)
class ParquetTable:
    """Parquet files as one table of people with a target column.

    Parameters
    ----------
    paths : tuple of str
        The files, in order.
    target : str
        Name of the target column.
    positive : object, optional
        The target's value that counts as 1, all others as 0; without it the target is used as it is.
    """

    paths: tuple[str, ...]
    target: str
    positive: Any = None

    @classmethod
    def find(cls, pattern: str | Path, y: Any) -> ParquetTable:
        """Find the files of a path or glob pattern; `y` is the target's name or (name, positive value)."""
        paths = tuple(sorted(glob.glob(str(pattern), recursive=True)))  # noqa: PTH207 (the pattern may be absolute)
        if not paths:
            raise InputError(f"audit: no file fits {str(pattern)!r}. Check the path of the Parquet files.")
        target, positive = y if isinstance(y, tuple) else (y, None)
        table = cls(paths, target, positive)
        if not isinstance(target, str) or target not in table.schema.names:
            raise InputError(
                f"audit: 'y' must name the target column of the Parquet files, got {target!r}. "
                f"Their columns: {', '.join(table.schema.names[:30])}."
            )
        return table

    @property
    def schema(self) -> pa.Schema:
        """Columns and types."""
        return self._dataset().schema

    @property
    def n_rows(self) -> int:
        """Number of people."""
        return int(self._dataset().count_rows())

    def chunks(self, rows: int) -> Iterator[tuple[pd.DataFrame, np.ndarray[Any, Any]]]:
        """Yield people and labels, at most `rows` at a time, in the order of the files."""
        batches: list[pa.RecordBatch] = []
        waiting = 0
        for batch in self._dataset().to_batches(batch_size=min(rows, 65_536), batch_readahead=1):
            while batch.num_rows:
                part = batch.slice(0, rows - waiting)
                batches.append(part)
                waiting += part.num_rows
                batch = batch.slice(part.num_rows)
                if waiting == rows:
                    yield self._split(pa.Table.from_batches(batches))
                    batches, waiting = [], 0
        if waiting:
            yield self._split(pa.Table.from_batches(batches))

    def take(self, rows: Ints) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
        """Return some people by number."""
        order = np.argsort(rows, kind="stable")
        table = self._dataset().take(pa.array(rows[order]))
        frame, labels = self._split(table)
        back = np.argsort(order, kind="stable")
        return frame.iloc[back].reset_index(drop=True), labels[back]

    def domain(self, sample: pd.DataFrame, rows: int, immutable: tuple[str, ...] = ()) -> TabularDomain:
        """Return the domain of all values and ranges in the files; means and scales come from the sample."""
        values: dict[str, set[Any]] = {}
        ranges: dict[str, tuple[float, float]] = {}
        for batch in self._dataset().to_batches(batch_size=rows):
            for name in sample.columns:
                column = batch.column(name)
                if sample[name].dtype.kind in "iuf":
                    found = pc.min_max(column).as_py()
                    if found["min"] is not None:
                        low, high = ranges.get(name, (np.inf, -np.inf))
                        ranges[name] = min(low, found["min"]), max(high, found["max"])
                else:
                    seen = pc.unique(column).to_pylist()
                    values.setdefault(name, set()).update(value for value in seen if value is not None)
        return TabularDomain.from_frame(
            sample,
            immutable=immutable,
            ranges=ranges or None,
            categories={name: sorted(words) for name, words in values.items()} or None,
        )

    def _split(self, table: pa.Table) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
        frame = table.to_pandas()
        labels = frame.pop(self.target)
        if self.positive is not None:
            labels = (labels == self.positive).astype(np.int64)
        return frame, labels.to_numpy()

    def _dataset(self) -> ds.Dataset:
        try:
            return ds.dataset(list(self.paths), format="parquet")
        except (pa.ArrowInvalid, OSError) as error:
            raise InputError(f"audit: the files are no readable Parquet files: {error}") from error


def audit_parquet(
    model: Any,
    table: ParquetTable,
    *,
    metric: Any,
    domain: Any,
    loss: Any,
    chosen: CandidateSearch | None,
    sensitive: Any,
    edits: Any,
    questions: Questions,
    random_state: int,
    pool_rows: int = 2_000,
    chunk_rows: int = 50_000,
    top: int = 1_000,
    progress: bool = False,
) -> AuditResult:
    """Audit a Parquet table chunk by chunk.

    Parameters
    ----------
    model, metric, domain, loss, sensitive, edits, random_state
        As in `audit`. A learner is fitted on the pool.
    table : ParquetTable
    chosen : CandidateSearch or None
        All choices of the candidate search.
    questions : Questions
    pool_rows : int, default=2000
        Size of the sample that everybody is compared with.
    chunk_rows : int, default=50000
        People in memory at once; changes memory and speed only.
    top : int, default=1000
        The most harmed people that the maps show.
    progress : bool, default=False
        Show a bar with the time left, on standard error.

    Returns
    -------
    AuditResult
        Its maps hold the `top` most harmed people; ``unfair_map.total`` says how many were audited.
    """
    clock, n = Clock(), table.n_rows
    if not n:
        raise InputError("audit: the Parquet files have no rows.")
    picked = np.sort(numpy_generator(random_state).choice(n, size=min(pool_rows, n), replace=False))
    pool, pool_y = table.take(picked)
    domain = table.domain(pool, 65_536) if domain is None else domain
    problem = AuditProblem.build(model, pool, pool_y, metric=metric, domain=domain, loss=loss)
    views = problem.views
    search = chosen or CandidateSearch(
        sensitive=free_columns(views) if sensitive is None else tuple(sensitive), edits=edits
    )
    search = replace(search, use_rows="pool" if search.use_rows else False)
    clock.lap("prepare")

    def run(rows: pd.DataFrame, y: Any) -> CandidateFrontier:
        return search.run(views.model, rows, y, metric=views.metric, domain=views.domain, pool=pool)

    parts, flips = [], 0
    for rows, y in _tracked(table.chunks(chunk_rows), n, progress):
        found = run(rows, y)
        parts.append(found.frontier)
        free = solve_dual(found.frontier, 0.0).corner
        moved = np.flatnonzero(found.frontier.candidate[free] >= 0)
        if len(moved):
            twins = found.candidates.take(found.frontier.candidate[free[moved]])
            before = views.model.predict(views.for_model(rows.iloc[moved]))
            flips += int((before != views.model.predict(views.for_model(twins))).sum())
    frontier = Frontier.stack(parts)
    clock.lap("candidates")

    def make_map(solution: DualSolution) -> UnfairMap:
        harm = frontier.loss[solution.corner] - frontier.base_loss
        worst = np.sort(np.argsort(-harm, kind="stable")[:top])
        rows, y = table.take(worst)
        found = run(rows, y)
        support = Support(views, rows, found.candidates, np.zeros((0, 0)), found.frontier)
        corner = found.frontier.indptr[:-1] + (solution.corner - frontier.indptr[:-1])[worst]
        return support.unfair_map(corner, y, person=worst, total=n)

    evidence = Evidence(
        frontier=frontier,
        search="candidates, chunk by chunk",
        assumptions=(*problem.assumptions, *assumptions_of(views, search)),
        settings=settings_of(views, search) | {"seed": random_state, "pool_rows": len(pool)},
        flipped=flips / n,
    )
    return conclude(evidence, questions, make_map, clock)


def _tracked(
    chunks: Iterator[tuple[pd.DataFrame, Any]], total: int, progress: bool
) -> Iterator[tuple[pd.DataFrame, Any]]:
    if not progress:
        yield from chunks
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("auditing people"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("audit", total=total)
        for rows, y in chunks:
            yield rows, y
            bar.advance(task, len(y))
