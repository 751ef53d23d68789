"""Cells of a table as JSON values that mean exactly the same to the page."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["exact_cell"]


def exact_cell(value: Any) -> Any:
    """Return a cell as text, number, truth value, or None where it is missing; no digit is lost.

    Examples
    --------
    >>> [exact_cell(v) for v in (np.int8(3), np.float64(0.1), np.True_, np.nan, "a")]
    [3, 0.1, True, None, 'a']
    """
    if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)
