"""Which rows can exist: tables of people, boxes, the range of the data, or anything at all.

Examples
--------
>>> from likewise.data import BoxDomain
>>> BoxDomain(lower=[0.0], upper=1.0).project([[3.0]])
array([[1.]])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.data.column import Column as Column
    from likewise.data.domain import (
        BoxDomain as BoxDomain,
        DataRangeDomain as DataRangeDomain,
        Domain as Domain,
        Unbounded as Unbounded,
    )
    from likewise.data.missing_values import MissingCells as MissingCells, find_missing as find_missing
    from likewise.data.opening import MemoryFile as MemoryFile, Reading as Reading
    from likewise.data.rows import Violation as Violation
    from likewise.data.table_files import ReadTable as ReadTable, read_table as read_table
    from likewise.data.tabular import TabularDomain as TabularDomain
    from likewise.data.type_inference import (
        InferredColumn as InferredColumn,
        infer_types as infer_types,
        write_columns as write_columns,
    )

__getattr__, __dir__, __all__ = lazy_names(__name__)
