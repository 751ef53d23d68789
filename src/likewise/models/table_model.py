"""A model of plain numbers that gets them straight from a table's columns, unscaled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from likewise.models.model import Model

__all__ = ["TableModel"]


class TableModel(Model):
    """Another model, shown the columns of a raw table as they are.

    An audit encodes a table for a model of numbers; a model that was trained on the table's own numbers must not
    get them standardised.

    Parameters
    ----------
    inner : Model
        Takes an array (n, d).
    columns : sequence of str
        The d columns it was trained on, in its order.

    Examples
    --------
    >>> import pandas as pd
    >>> from likewise.models import as_model
    >>> inner = as_model(lambda X: 1 / (1 + np.exp(-X[:, 0])))
    >>> TableModel(inner, ["age"]).predict(pd.DataFrame({"sex": ["F", "M"], "age": [-1, 2]})).tolist()
    [0, 1]
    """

    def __init__(self, inner: Model, columns: Sequence[str]) -> None:
        super().__init__(
            loss=inner.loss,
            kind=inner.output_kind,
            classes=inner.known_classes,
            takes_frame=True,
            feature_names=columns,
        )
        self.inner = inner

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the inner model's own decisions, under the names of this model's classes."""
        own = self.inner.predict(self._numbers(self._rows(X)))
        if self._classes is None:
            return own
        return np.asarray(self._classes[self.inner.targets(own)])

    def _answer(self, rows: Any) -> Any:
        return self.inner.outputs(self._numbers(rows))

    @staticmethod
    def _numbers(rows: Any) -> np.ndarray[Any, Any]:
        return np.asarray(rows.to_numpy(dtype=np.float64))
