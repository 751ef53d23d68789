"""Columns that alone tell the target of nearly everybody: often they were written down after it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

# Balanced accuracy of one column above which it is told: honest columns hardly ever reach it.
_TELLING = 0.95
# Of fewer people, or with more values, a column may tell much by chance.
_LEAST_PEOPLE, _MOST_VALUES = 100, 20


def leaking_columns(frame: pd.DataFrame, y: Any) -> dict[str, float]:
    """Return the columns that alone tell y of nearly everybody, and the balanced accuracy of each.

    A column decides for the class that has its value more often, numbers of many values by twenty quantiles.
    """
    codes, classes = pd.factorize(np.asarray(y))
    if len(codes) < _LEAST_PEOPLE or len(classes) < 2:
        return {}
    found = {str(name): _told(frame[name], codes, len(classes)) for name in frame.columns}
    return {name: told for name, told in found.items() if told >= _TELLING}


def _told(column: pd.Series[Any], codes: np.ndarray[Any, Any], n_classes: int) -> float:
    """Balanced accuracy of the best decision by one column; 0 where it has too many values to tell."""
    values = column
    if column.nunique() > _MOST_VALUES:
        if not pd.api.types.is_numeric_dtype(column):
            return 0.0
        values = pd.qcut(column.rank(method="average"), _MOST_VALUES, labels=False, duplicates="drop")
    places, kinds = pd.factorize(values, use_na_sentinel=False)
    counts = np.bincount(places * n_classes + codes, minlength=len(kinds) * n_classes)
    rates = counts.reshape(-1, n_classes) / np.bincount(codes, minlength=n_classes)
    return float(rates.max(axis=1).sum() / n_classes)
