"""The model itself, asked about rows of values: what it is shown, and which values that really is.

An audit keeps rows as encoded numbers. On the way from a value to its encoding and back a number may come out on the
other side of a model's threshold, so that the answer would be about another row. Here the model is shown the values
themselves, and whoever asks is told what was shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.auditing.bounds.table_layout import TableLayout
from likewise.core.arrays import FloatArray
from likewise.core.errors import LikewiseError

if TYPE_CHECKING:
    from likewise.auditing.problem.coordinates import Coordinates
    from likewise.models import Model

__all__ = ["Asker"]


class Asker:
    """A model that answers about rows of values (n, P), one number per column.

    Parameters
    ----------
    place : Coordinates
    layout : TableLayout
        Of the same columns as the domain of `place`.
    """

    def __init__(self, place: Coordinates, layout: TableLayout) -> None:
        self.place, self.layout = place, layout
        self._sees_table = place.encoding is not None and place.takes in ("table", "numbers")

    def shown(self, values: FloatArray) -> tuple[Any, FloatArray]:
        """Return rows as the model takes them, and the values that they hold."""
        x: Any = self.layout.encode(values)
        if not self._sees_table:
            return self.place.encoded_for_model(x), values
        table = self.place.original(self.place.given(x))
        seen = np.array(values, dtype=np.float64)
        for i, column in enumerate(self.layout.columns):
            if column.kind == "continuous" and table[column.name].dtype.kind == "f":
                kept: Any = table[column.name].dtype
                table[column.name] = seen[:, i].astype(kept)
            if column.kind != "categorical":
                seen[:, i] = table[column.name].to_numpy(dtype=np.float64)
        return (self.place.for_model(table) if self.place.raw else table), seen

    def losses(self, values: FloatArray, targets: Any) -> tuple[FloatArray, FloatArray]:
        """Return the model's own losses of rows under targets (class positions, or numbers), and what was shown."""
        rows, seen = self.shown(values)
        classes = self.place.model.classes_
        labels = targets if classes is None else np.asarray(classes)[np.asarray(targets, dtype=np.int64)]
        return np.asarray(self.place.model.losses(rows, labels), dtype=np.float64), seen

    def decisions(self, values: FloatArray) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the model's own decisions as positions of classes, (n,)."""
        if not len(values):
            return np.zeros(0, dtype=np.int64)
        model = self.place.model
        return np.asarray(model.targets(model.predict(self.shown(values)[0])), dtype=np.int64)

    def graded(self) -> Model:
        """Return the model as it answers most finely: probabilities or scores, where it would give decisions alone."""
        model = self.place.model
        for loss in ("cross_entropy", "hinge"):
            if model.loss.wants != "decisions":
                break
            try:
                return model.with_loss(loss)
            except LikewiseError:
                continue
        return model
