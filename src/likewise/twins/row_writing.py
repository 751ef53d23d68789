"""Write rows of one table into another, every column in its own dtype."""

from __future__ import annotations

from typing import Any

import pandas as pd

__all__ = ["put_rows"]


def put_rows(frame: pd.DataFrame, rows: pd.DataFrame, at: Any) -> pd.DataFrame:
    """Return the frame with some rows replaced.

    Parameters
    ----------
    frame : DataFrame of n rows
    rows : DataFrame of m rows
        With the same columns.
    at : int array of shape (m,)
        Their positions in the frame.

    Examples
    --------
    >>> put_rows(pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [9]}), [1])["a"].tolist()
    [1, 9]
    """
    if not len(at):
        return frame
    changed: dict[Any, Any] = {}
    for name in frame.columns:
        column = frame[name].array.copy()
        column[at] = rows[name].array
        changed[name] = column
    return pd.DataFrame(changed, index=frame.index, columns=frame.columns)
