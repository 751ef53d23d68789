"""From what the user passed to a job: the problem, the searches that can serve, the pool, all that is learned.

Where a table is audited in parts, every person is compared with their own twins and with a seeded sample of the table
(the pool) and its twins, so a person's outcome depends neither on the part they come in nor on the people beside them.
"""

from __future__ import annotations

import platform
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from likewise._version import __version__
from likewise.auditing.claims.certificate import Bound
from likewise.auditing.claims.conclusion import Evidence
from likewise.auditing.claims.sanity import check_before_verdict
from likewise.auditing.parts.engine import Engine
from likewise.auditing.parts.memory_table import MemoryTable
from likewise.auditing.parts.one_part import Job
from likewise.auditing.parts.parquet_table import PART_ROWS, ParquetTable, Part
from likewise.auditing.parts.survey import survey
from likewise.auditing.people.sensitive_values import sensitive_values
from likewise.auditing.problem.audit_problem import AuditProblem, rows_of
from likewise.auditing.search.candidates.candidate_rows import plan_candidates
from likewise.auditing.search.candidates.candidate_search import CandidateSearch
from likewise.auditing.search.choosing import choose_searches, searches_words
from likewise.auditing.search.contract import Budget, Search
from likewise.auditing.support.binned_steps import ALL_BITS
from likewise.auditing.support.frontier import Ints
from likewise.core.errors import InputError
from likewise.core.randomness import numpy_generator
from likewise.evaluation.edits import edited_columns
from likewise.fair_metrics.reach import reach
from likewise.texts import Said, Texts

__all__ = ["Asked", "Prepared", "Sizes", "prepare_memory", "prepare_parquet"]

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
    top : int, default=1000
        The most harmed people that the maps show.
    exact : int, default=250000
        Up to so many people every step is kept. The curve of more is exact at ε and at the edges of bins.
    """

    sample: int = 20_000
    part: int = PART_ROWS
    chunk: int = 32_768
    top: int = 1_000
    exact: int = 250_000


@dataclass(frozen=True, eq=False)
class Asked:
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
        said = Said("assumption.free_too_many", columns=list(problem.unnamed))
        return replace(
            problem,
            edits=problem.sensitive_edits,
            unnamed=(),
            assumptions=(*problem.assumptions, said),
        )
    return problem


@dataclass(frozen=True, eq=False)
class Prepared:
    """A job, the parts it is cut into, and what its answer will rest on.

    Parameters
    ----------
    job : Job
    parts : tuple of Part
    evidence : Evidence
    sample : AuditProblem, optional
        Of a table in parts: people drawn at random from all of it.
    provers : tuple of Search
        Which cannot work on parts, but on that sample.
    """

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


def prepare_memory(asked: Asked, X: Any, y: Any, sizes: Sizes | None = None) -> Prepared:
    """Prepare the audit of people in memory: one part, which holds everybody.

    Parameters
    ----------
    asked : Asked
    X, y
        As in `audit`.
    sizes : Sizes, optional
    """
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
    asked: Asked, table: ParquetTable, engine: Engine, sizes: Sizes | None = None
) -> Prepared:
    """Prepare the audit of Parquet files: a sample tells what is learned from people, a pool who is compared.

    Parameters
    ----------
    asked : Asked
        A learner among it is fitted on a sample.
    table : ParquetTable
    engine : Engine
        Where the files are read.
    sizes : Sizes, optional
    """
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
    said = Said("assumption.sample", people=some.n)
    evidence = replace(made.evidence, assumptions=(*made.evidence.assumptions, said))
    return replace(made, evidence=evidence, sample=some, provers=provers)


def _prepared(
    asked: Asked,
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
    said: list[str] = [Said("assumption.loss", loss=_loss_words(problem.coordinates.model.loss.name))]
    said += [line for search in ready for line in search.assumes(problem)]
    said.append(
        Said("assumption.settled")
        if any(search.settles(asked.eps) for search in ready)
        else Said("assumption.estimate")
    )
    names = searches_words([search.name for search in ready])
    evidence = Evidence(
        search=names if here else Said("search.in_parts", search=names),
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
    return Said(key) if Texts().has(key) else name.replace("_", " ")


def _drawn(asked: Asked, searches: Sequence[Search], n: int) -> Ints:
    """Numbers of the people in the pool, rising; none where no search wants one."""
    size = max((search.pool_size for search in searches), default=0)
    return _draw(asked, size, n) if size else np.zeros(0, dtype=np.int64)


def _draw(asked: Asked, size: int, n: int) -> Ints:
    chosen = numpy_generator(asked.random_state).choice(n, size=min(size, n), replace=False)
    return np.sort(chosen).astype(np.int64)


def _settings(asked: Asked, problem: AuditProblem) -> dict[str, Any]:
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
