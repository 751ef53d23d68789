"""Which kind of table people come in: its columns in order, each in its own dtype, for rows that a search makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from likewise.domains.encoding import Encoding

__all__ = ["TableKind"]


@dataclass(frozen=True, eq=False)
class TableKind:
    """Columns and dtypes of a raw table.

    Parameters
    ----------
    dtypes : mapping of str to dtype
        In the order of the table.
    unknown : tuple of str, default=()
        Columns of the table that the encoding does not know, so that no row can be made up with them.

    Examples
    --------
    >>> from likewise.domains import TabularDomain
    >>> words = pd.DataFrame({"age": [30, 40], "sex": ["f", "m"]})
    >>> table = words[["sex", "age"]].astype({"sex": "category"})
    >>> kind = TableKind.of(table, TabularDomain.from_frame(words).encoding_)
    >>> kind.like(words).dtypes.astype(str).to_dict()
    {'sex': 'category', 'age': 'int64'}
    """

    dtypes: Mapping[str, Any]
    unknown: tuple[str, ...] = ()

    @classmethod
    def of(cls, frame: pd.DataFrame, encoding: Encoding) -> TableKind:
        """Read the kind of a table.

        Parameters
        ----------
        frame : DataFrame
            Some of the people.
        encoding : Encoding
            Knows categories that these people may not have.
        """
        known = encoding.by_name
        return cls(
            {
                str(name): _dtype(frame[name].dtype, known[str(name)])
                for name in frame.columns
                if str(name) in known
            },
            tuple(str(name) for name in frame.columns if str(name) not in known),
        )

    def like(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return decoded rows as a table of this kind."""
        wanted = {
            name: dtype
            for name, dtype in self.dtypes.items()
            if dtype is not None and name in frame.columns and frame[name].dtype != dtype
        }
        ordered = [*(name for name in self.dtypes if name in frame.columns)]
        others = [name for name in frame.columns if name not in self.dtypes]
        return frame[[*ordered, *others]].astype(wanted)


def _dtype(dtype: Any, column: Any) -> Any:
    """The dtype that rows of a column can be written in without loss; None to leave them as they are."""
    if isinstance(dtype, pd.CategoricalDtype):
        if dtype.categories is None or not column.categories:
            return None
        # Codes of known categories stay what they are.
        more = [value for value in column.categories if value not in dtype.categories]
        if not more:
            return dtype
        return pd.CategoricalDtype([*dtype.categories, *more], ordered=dtype.ordered)
    if column.kind == "integer":
        return dtype if dtype.kind in "iuf" else None
    if column.kind == "continuous":
        return dtype if dtype == "float64" else None
    # Words are words, whatever pandas stores them as.
    return dtype if dtype.kind == "O" and all(isinstance(value, str) for value in column.categories) else None
