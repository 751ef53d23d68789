"""Where the people of an audit come from: a table in memory, or Parquet files that are read part by part."""

from __future__ import annotations

import atexit
import glob
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.cli.case import (
    AuditRequest,
    binary_labels,
    choose_columns,
    find_value,
    plain_plan,
    planned_domain,
    read_people,
)
from likewise.core.errors import InputError
from likewise.core.frames import check_columns
from likewise.core.text import folded

if TYPE_CHECKING:
    import pandas as pd

    from likewise.auditing import AuditResult
    from likewise.auditing.partitions.engine import Engine
    from likewise.auditing.partitions.tables import Extent
    from likewise.auditing.results.unfair_map import UnfairMap
    from likewise.cli.case import People
    from likewise.data.column import ColumnPlan
    from likewise.data.missing_values import MissingCells
    from likewise.data.opening import MemoryFile
    from likewise.data.tabular import TabularDomain
    from likewise.models.matching import Matched

# Above this many people everybody is compared with a sample of the table instead of with all of it.
STREAM_ROWS = 100_000
# People of a file that the metric is learned on and the model evaluated on.
SAMPLE_ROWS = 50_000


@dataclass(frozen=True, eq=False)
class Source:
    """The people of an audit."""

    people: pd.DataFrame | Path
    y: Any
    frame: pd.DataFrame
    labels: np.ndarray[Any, Any]
    values: list[Any]
    plans: Mapping[str, ColumnPlan] = field(default_factory=dict)
    missing: MissingCells | None = None
    notes: tuple[str, ...] = ()
    extent: Extent | None = None

    @property
    def filled(self) -> pd.DataFrame:
        """The people in memory without gaps."""
        return self.frame if self.missing is None else self.missing.filled(self.frame)

    def domain(self, columns: Sequence[str], immutable: Sequence[str]) -> TabularDomain:
        """Return the domain of some columns, with everything that occurs in the table or in the whole file."""
        if self.extent is None:
            return planned_domain(self.filled, self.plans, columns, immutable)
        from likewise.data.tabular import TabularDomain

        names = list(columns)
        words = {n: sorted(self.extent.values[n]) for n in names if n in self.extent.values}
        codes = {n for n in names if n in self.plans and self.plans[n].kind == "category"} - set(words)
        ranges = {n: self.extent.ranges[n] for n in names if n in self.extent.ranges and n not in codes}
        return TabularDomain.from_frame(
            self.frame[names],
            immutable=tuple(immutable),
            ranges=ranges or None,
            categories=words or None,
            columns={n: replace(self.plans[n], range=None) for n in names if n in self.plans},
        )

    def widened(self, domain: TabularDomain) -> TabularDomain:
        """Return a domain that reaches as far as the people in the table, or in the whole file, do."""
        if self.extent is not None:
            return domain.reaching(self.extent.ranges)
        return domain.widened(self.filled[[column.name for column in domain.columns_]])


def open_people(path: Path | MemoryFile, asked: AuditRequest, engine: Engine | None = None) -> Source:
    """Read a table, or sample one that is too large."""
    from likewise.data.table_files import table_rows

    if not isinstance(path, Path):
        return _in_memory(path, asked)
    several = path.is_dir() or (not path.exists() and glob.has_magic(str(path)))
    if several and asked.sample is not None:
        raise InputError("--sample takes one file. Pass one of the Parquet files.")
    rows = table_rows(path) if asked.sample is None and not several else None
    if several or (rows is not None and (rows > STREAM_ROWS or engine is not None)):
        # The auditor takes patterns; a file called a[1].parquet is meant as it is written.
        pattern = path if several else Path(glob.escape(str(path)))
        return _stream(pattern, asked, engine)
    if engine is not None:
        raise InputError(
            f"--engine and -o FOLDER.parquet are for Parquet files. Save {path.name} as Parquet first."
        )
    return _in_memory(path, asked)


def _in_memory(path: Path | MemoryFile, asked: AuditRequest) -> Source:
    people = read_people(path, asked, keeps_missing=True)
    assert people.labels is not None  # a target was named
    labels = binary_labels(people.labels, asked.positive)
    if asked.sample is None and len(labels) > STREAM_ROWS and isinstance(path, Path):
        return _spilled(people, labels, asked)
    values = list(dict.fromkeys(labels.tolist()))
    return Source(
        people.frame, labels, people.frame, labels, values, people.plans, people.missing, people.notes
    )


def _spilled(people: People, labels: np.ndarray[Any, Any], asked: AuditRequest) -> Source:
    """Return a large table that came as CSV or Arrow as one that is read part by part."""
    notes = list(people.notes)
    if people.missing is not None:
        said = f"more than {STREAM_ROWS:,} people are read part by part, where missing values cannot be kept"
        if asked.choices.policy == "keep":
            raise InputError(f"{said}. Pass --read missing=impute, --read missing=drop or --sample.")
        people = replace(people, frame=people.missing.filled(people.frame))
        notes.append(f"{said}; they were filled with the median or the most frequent value.")
    codes = {
        name: replace(plan, values=tuple(people.frame[name].unique().tolist()))
        for name, plan in people.plans.items()
        if plan.kind == "category"
    }
    file = _spill(people.frame.assign(**{str(asked.target): labels}))
    plain = replace(asked.choices, columns=None, only=(), ignore=(), keep=(), missing="auto")
    again = replace(asked, choices=plain, plans={**people.plans, **codes})
    source = _stream(file, again, None)
    return replace(source, notes=(*notes, *source.notes))


def _spill(frame: pd.DataFrame) -> Path:
    """Write a large table that came as CSV or Arrow to a Parquet file, which is gone when the command ends."""
    folder = Path(tempfile.mkdtemp(prefix="likewise-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    frame.to_parquet(folder / "people.parquet", index=False, row_group_size=65_536)
    return folder / "people.parquet"


def _stream(pattern: Path, asked: AuditRequest, engine: Engine | None) -> Source:
    import pandas as pd

    from likewise.auditing.partitions.engine import LocalEngine
    from likewise.auditing.partitions.tables import ParquetTable, parquet_files, survey

    choices, target = asked.choices, str(asked.target)
    if choices.policy not in ("auto", "keep"):
        raise InputError(
            f"{pattern.name} is read part by part, where --read missing={choices.policy} cannot be used. Drop or fill missing "
            "values first, or pass --sample."
        )
    found = parquet_files(str(pattern))
    if not found:
        raise InputError(f"There is no Parquet file that fits {str(pattern)!r}. Check the path.")
    table = ParquetTable(found, target)
    names = pd.DataFrame(columns=pd.Index(table.schema.names))
    check_columns(names, [target, *choices.ignore, *asked.needed], owner=pattern.name, name="table")
    parts = table.parts()
    n = sum(part.rows for part in parts)
    if not n:
        raise InputError(f"{pattern.name} has no rows. Pass a table with people in it.")
    runner = engine or LocalEngine()
    runner.check(table.paths)
    rows = np.sort(np.random.default_rng(asked.seed).choice(n, size=min(SAMPLE_ROWS, n), replace=False))
    ((frame, labels),), extent = survey(runner, table, parts, [rows], extent=True)
    values = _target_values(extent.values[target], asked.positive, pattern.name, target)
    notes: list[str] = []
    features = frame.drop(columns=list(choices.ignore))
    features, plans = choose_columns(features, asked, pattern.name, notes)
    # A code that the sample does not show may stand in another part of the file, so numbers stay numbers unless said.
    said = {*asked.plans, *choices.categorical, *choices.integer}
    plans = {
        name: plan if name in said or choices.columns else plain_plan(features[name])
        for name, plan in plans.items()
    }
    notes.append(f"{n:,} people are read part by part; each is compared with a sample of the others.")
    return Source(pattern, target, features, labels, values, plans, None, tuple(notes), extent)


def _target_values(seen: frozenset[Any], positive: str | None, name: str, target: str) -> list[Any]:
    if None in seen:
        raise InputError(f"{name}: the target {target!r} has missing values. Drop those rows first.")
    values = sorted(seen, key=lambda value: (str(type(value)), value))
    if positive is not None:
        find_value(values, positive, what="--positive: the target")
        if len(values) > 2:
            raise InputError(
                f"{name} is read part by part, where a target with more than two values cannot be cut in two. "
                "Write a column with two values first, or pass --sample."
            )
    return values


# People with missing cells meet a model: gaps stay where it takes them, are filled where it does not, or
# stop.


@dataclass(frozen=True, eq=False)
class Settled:
    """An audit's model and people once it is clear what becomes of missing cells."""

    matched: Matched
    people: Any
    frame: pd.DataFrame
    gaps: MissingCells | None = None
    note: str = ""


def settle_gaps(matched: Matched, source: Source, policy: str, immutable: Sequence[str]) -> Settled:
    """Keep missing cells where the model takes them, else fill them or say what to do."""
    gaps = None if source.missing is None else source.missing.of(matched.columns)
    if gaps is None or not gaps.fills:
        return Settled(matched, source.people, source.frame)
    from likewise.cli.case import planned_domain
    from likewise.models.matching import MissingCellsModel, refuse_missing, why_not_missing

    own = source.frame[list(matched.columns)]
    why = why_not_missing(matched.model, own)
    named = folded([repr(name) for name in gaps.columns], most=5)
    if why is not None:
        if policy == "keep":
            raise refuse_missing(own, why)
        note = (
            f"missing values in {named} were filled with the median or the most frequent value, since the model does "
            "not take them (--read missing=HOW chooses)."
        )
        return Settled(matched, source.filled, source.filled, note=note)
    marked = gaps.marked(source.frame)
    columns = (*matched.columns, *gaps.marks)
    fixed = [*(name for name in immutable if name in matched.columns), *gaps.marks]
    domain = planned_domain(marked, source.plans, columns, fixed)
    wrapped = replace(matched, model=MissingCellsModel(matched.model, gaps), domain=domain, columns=columns)
    note = f"missing values in {named} went to the model as they are; twins lack what their person lacks."
    return Settled(wrapped, marked, marked, gaps, note)


def with_gaps(result: AuditResult, gaps: MissingCells | None, tolerance: float = 0.0) -> AuditResult:
    """Return a result whose people and twins have their gaps again, and whose close predictions are one decision."""
    if gaps is None and not tolerance:
        return result
    return replace(
        result,
        unfair_map=_map_with_gaps(result.unfair_map, gaps, tolerance),
        pure_map=_map_with_gaps(result.pure_map, gaps, tolerance),
    )


def _map_with_gaps(unfair: UnfairMap, gaps: MissingCells | None, tolerance: float) -> UnfairMap:
    from likewise.auditing.results.unfair_map import make_unfair_map

    told = unfair.outcomes
    people, twins = unfair.people, unfair.twins
    if gaps is not None:
        people, twins = gaps.restored(people), gaps.restored(twins)
    keys = ("label", "loss", "twin_loss", "decision", "twin_decision", "squared_distance", "person")
    known: dict[str, Any] = {key: told[key].to_numpy() for key in keys}
    return make_unfair_map(people, twins, **known, total=unfair.total, tolerance=tolerance)
