"""A model that takes missing values, asked about tables in which gaps are filled and marked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from likewise.core.errors import InputError, LikewiseError
from likewise.core.text import folded
from likewise.models.model import Model
from likewise.tables.missing_cells import MissingCells

__all__ = ["MissingCellsModel", "why_not_missing"]

# People with gaps that a model is tried on.
_TRIED = 256


class MissingCellsModel(Model):
    """Another model, shown the gaps that a marked table stands for.

    Parameters
    ----------
    inner : Model
        Takes a table.
    missing : MissingCells
        How the table was filled and marked.

    Examples
    --------
    >>> from likewise.models import as_model
    >>> from likewise.tables.missing_cells import find_missing
    >>> people = pd.DataFrame({"age": [20.0, None]})
    >>> unknown = as_model(lambda frame: frame["age"].isna().to_numpy(dtype=float), takes_frame=True)
    >>> missing = find_missing(people)
    >>> MissingCellsModel(unknown, missing).predict(missing.marked(people)).tolist()
    [0, 1]
    """

    def __init__(self, inner: Model, missing: MissingCells) -> None:
        super().__init__(
            loss=inner.loss, kind=inner.output_kind, classes=inner.known_classes, takes_frame=True
        )
        self.inner = inner
        self.missing = missing

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the inner model's own decisions, under the names of this model's classes."""
        own = self.inner.predict(self.missing.restored(self._rows(X)))
        if self._classes is None or self.loss.regression:
            return own
        return np.asarray(self._classes[self.inner.targets(own)])

    def _answer(self, rows: Any) -> Any:
        return self.inner.outputs(self.missing.restored(rows))


def why_not_missing(model: Model, frame: pd.DataFrame) -> str | None:
    """Return why a model does not take missing values; None where it does.

    Parameters
    ----------
    model : Model
    frame : DataFrame
        The table with its gaps; some of the people who have any are tried.
    """
    if not model.takes_frame:
        return "it takes encoded numbers, in which nothing can be missing"
    gaps = frame.isna()
    # People who together lack whatever anybody lacks.
    first = [int(gaps[name].to_numpy().argmax()) for name in frame.columns if gaps[name].any()]
    rows = sorted({*first, *np.flatnonzero(gaps.any(axis=1).to_numpy())[:_TRIED].tolist()})
    try:
        model.outputs(frame.iloc[rows].reset_index(drop=True))
    except LikewiseError as error:
        return str(error).splitlines()[0][:200]
    return None


def refuse_missing(frame: pd.DataFrame, why: str) -> InputError:
    """Return the error for a model that does not take missing values."""
    named = folded([repr(name) for name in frame.columns if frame[name].isna().any()], most=5)
    return InputError(
        f"The table has missing values in {named}, and the model does not take them: {why.rstrip('.')}. Choose what "
        "stands in for them: --missing impute, --missing category, or --missing drop."
    )
