"""The first look at Parquet files: a sample of the people, and which values and ranges occur at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from likewise.auditing.parts.engine import Engine
from likewise.auditing.parts.parquet_table import ParquetTable, Part, Rows, parts_of
from likewise.auditing.support.frontier import Ints
from likewise.domains import TabularDomain

__all__ = ["Extent", "survey"]


@dataclass(frozen=True, eq=False)
class Extent:
    """Which values, or from where to where, the columns of some rows have."""

    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    values: dict[str, frozenset[Any]] = field(default_factory=dict)

    def with_batch(self, batch: pa.RecordBatch, listed: str | None = None) -> Extent:
        """Return the extent of these rows and those before; all values, None too, of a column that is listed."""
        ranges, values = {}, {}
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            kind = column.type
            if name == listed:
                values[name] = frozenset(pc.unique(column).to_pylist())
            elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
                found = pc.min_max(column).as_py()
                if found["min"] is not None:
                    ranges[name] = (found["min"], found["max"])
            else:
                values[name] = frozenset(
                    value for value in pc.unique(column).to_pylist() if value is not None
                )
        return self.merge(Extent(ranges, values))

    def merge(self, other: Extent) -> Extent:
        """Return the extent of both."""
        ranges, values = dict(self.ranges), dict(self.values)
        for name, (low, high) in other.ranges.items():
            mine = ranges.get(name, (low, high))
            ranges[name] = (min(mine[0], low), max(mine[1], high))
        for name, seen in other.values.items():
            values[name] = values.get(name, frozenset()) | seen
        return Extent(ranges, values)

    def domain(self, sample: pd.DataFrame, immutable: tuple[str, ...] = ()) -> TabularDomain:
        """Return the domain of all that was seen; means and scales come from the sample."""
        ranges = {name: self.ranges[name] for name in sample.columns if name in self.ranges}
        values = {name: sorted(self.values[name]) for name in sample.columns if name in self.values}
        return TabularDomain.from_frame(
            sample, immutable=immutable, ranges=ranges or None, categories=values or None
        )


def survey(
    engine: Engine, table: ParquetTable, parts: Sequence[Part], draws: Sequence[Ints], *, extent: bool
) -> tuple[list[Rows], Extent]:
    """Read samples of a table, and its extent where asked for, in one round.

    Parameters
    ----------
    engine : Engine
    table : ParquetTable
    parts : sequence of Part
    draws : sequence of int arrays
        Rising numbers of people.
    extent : bool
        Whether to read every value, those of the target one by one; else only parts with somebody drawn are read.

    Returns
    -------
    samples : list of (DataFrame, ndarray)
        People and labels of each draw, in the order of their numbers.
    extent : Extent
    """
    numbers = np.unique(np.concatenate(list(draws)))
    inside = dict(parts_of(numbers, parts))
    items = [(part, inside.get(part, numbers[:0]), extent) for part in parts if extent or part in inside]
    found, seen = [], Extent()
    for rows, part_extent in engine.map(survey_part, table, items):
        found.append(rows)
        seen = seen.merge(part_extent)
    return [table.joined(found, np.searchsorted(numbers, draw)) for draw in draws], seen


def survey_part(table: ParquetTable, item: tuple[Part, Ints, bool]) -> tuple[pa.Table, Extent]:
    """Return some people of a part, and its extent where asked for."""
    part, numbers, wanted = item
    rows = table.pick(part, numbers)
    extent = Extent()
    if wanted:
        for batch in table.batches(part):
            extent = extent.with_batch(batch, table.target)
    return rows, extent
