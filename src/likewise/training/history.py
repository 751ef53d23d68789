"""What happened at every step, as columns of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.checks import FloatArray


@dataclass(frozen=True, eq=False)
class History:
    """One number per step and column.

    Parameters
    ----------
    columns : mapping of str to ndarray of shape (steps,)
        ``step``, ``loss`` (what was minimised), ``lambda_`` and what the objective notes (``squared_distance``,
        ``worst_loss``, …); ``validation`` is NaN where no validation was done.

    Examples
    --------
    >>> recorder = Recorder()
    >>> recorder.add({"step": 1, "loss": 0.7})
    >>> recorder.add({"step": 2, "loss": 0.5, "validation": 0.6})
    >>> history = recorder.history()
    >>> len(history), history["loss"], history["validation"]
    (2, array([0.7, 0.5]), array([nan, 0.6]))
    """

    columns: Mapping[str, FloatArray]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name: str) -> FloatArray:
        return self.columns[name]

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def frame(self) -> pd.DataFrame:
        """Return it as a data frame, one row per step."""
        return pd.DataFrame(dict(self.columns))


class Recorder:
    """Collects rows of numbers; a name that a row does not have is NaN there."""

    def __init__(self, history: History | None = None) -> None:
        self._rows: list[dict[str, float]] = []
        if history is not None:
            names = list(history.columns)
            values = zip(*(history[name].tolist() for name in names), strict=True)
            self._rows = [dict(zip(names, row, strict=True)) for row in values]

    def add(self, row: Mapping[str, Any]) -> None:
        """Add one step."""
        self._rows.append({name: float(value) for name, value in row.items()})

    def history(self) -> History:
        """Return what was collected."""
        names = dict.fromkeys(name for row in self._rows for name in row)
        return History(
            {name: np.array([row.get(name, np.nan) for row in self._rows], dtype=float) for name in names}
        )
