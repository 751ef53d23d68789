"""Tables as their owners mean them: files of any common format, what their columns are, what is missing in them.

Examples
--------
>>> import pandas as pd
>>> from likewise.tables import look_at_columns
>>> [(look.name, look.plan.kind) for look in look_at_columns(pd.DataFrame({"sex": ["F", "M"], "pay": [1.5, 2.5]}))]
[('sex', 'category'), ('pay', 'number')]
"""

from likewise.tables.choices_of_reading import Reading
from likewise.tables.column_looks import ColumnLook, look_at_columns
from likewise.tables.columns_file import write_columns
from likewise.tables.missing_cells import MissingCells, find_missing
from likewise.tables.opening import MemoryFile
from likewise.tables.read_table import ReadTable, read_table

__all__ = [
    "ColumnLook",
    "MemoryFile",
    "MissingCells",
    "ReadTable",
    "Reading",
    "find_missing",
    "look_at_columns",
    "read_table",
    "write_columns",
]
