"""Whether the arrays that were read off a model answer as the model does, before anything is proved with them.

Both are asked about the audited people and about rows of the whole domain: at random, every category, the ends of every
range, numbers that often mean something else, and, for trees, both sides of every split at a row that reaches it. Any
difference beyond the rounding of that row withdraws the reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd
from scipy.special import softmax

from likewise.auditing.bounds.regions import TableLayout
from likewise.core.checks import FloatArray, IntArray
from likewise.core.errors import InputError, ModelError
from likewise.models.losses import ZeroOne

if TYPE_CHECKING:
    from likewise.auditing.coordinates import Coordinates

# The model itself, asked about rows of values: what it is shown, and which values that really is.


class Asker:
    """A model that answers about rows of values (n, P), one number per column."""

    def __init__(self, place: Coordinates, layout: TableLayout) -> None:
        self.place, self.layout = place, layout
        self._sees_table = place.encoding is not None and place.takes in ("table", "numbers")

    def shown(self, values: FloatArray) -> tuple[Any, FloatArray]:
        """Return rows as the model takes them, and the values that they hold."""
        if not self._sees_table:
            values = self._stored(values)
        x: Any = self.layout.encode(values)
        if not self._sees_table:
            return self.place.encoded_for_model(x), values
        table = self.place.original(self.place.given(x))
        seen = np.array(values, dtype=np.float64)
        for i, column in enumerate(self.layout.columns):
            if column.kind == "continuous" and table[column.name].dtype.kind == "f":
                kept: Any = table[column.name].dtype
                table[column.name] = pd.Series(seen[:, i], index=table.index).astype(kept)
            if column.kind != "categorical":
                seen[:, i] = table[column.name].to_numpy(dtype=np.float64)
        return (self.place.for_model(table) if self.place.raw else table), seen

    def _stored(self, values: FloatArray) -> FloatArray:
        """Return values as their columns hold them: what is listed is what the model was asked about."""
        if self.place.encoding is None:
            return values
        columns = [
            column.stored(part) if column.kind == "continuous" else part
            for column, part in zip(self.layout.columns, values.T, strict=True)
        ]
        return np.stack(columns, axis=1)

    def losses(self, values: FloatArray, targets: Any) -> tuple[FloatArray, FloatArray]:
        """Return the model's own losses of rows under targets (class positions, or numbers), and what was shown."""
        rows, seen = self.shown(values)
        classes = self.place.model.classes_
        labels = targets if classes is None else np.asarray(classes)[np.asarray(targets, dtype=np.int64)]
        return np.asarray(self.place.model.losses(rows, labels), dtype=np.float64), seen

    def decisions(self, values: FloatArray) -> IntArray:
        """Return the model's own decisions as positions of classes, (n,)."""
        if not len(values):
            return np.zeros(0, dtype=np.int64)
        model = self.place.model
        return np.asarray(model.targets(model.predict(self.shown(values)[0])), dtype=np.int64)


_ROWS = 2_000
# Rows of splits, at most: an unpruned forest has a hundred times as many.
_SPLIT_ROWS = 24_000
# Numbers that stand for something else in many a table.
_SENTINELS = (0.0, -1.0, 1.0, -9.0, 99.0, -99.0, 999.0, -999.0, 9999.0, -9999.0, 99999.0)
_HIGHEST = 1e300


class Reading(Protocol):
    """What was read off a model, as functions of rows of values."""

    layout: TableLayout
    kind: str

    def outputs(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Outputs (n, C), and how far the model's own may lie from them by rounding, (n,)."""

    def decisions(self, values: FloatArray) -> Any:
        """Decisions (n,); −1 where rounding leaves them open."""

    def split_rows(self, base: FloatArray, rng: np.random.Generator, most: int) -> FloatArray:
        """Rows on both sides of its splits, made of rows `base`; none for a model without splits."""


def check_reading(reading: Reading, asker: Asker, people: FloatArray, *, decides: bool) -> None:
    """Compare a reading with its model over the domain."""
    rng = np.random.default_rng(0)
    rows = random_rows(reading.layout, people, rng, _ROWS)
    for part in (rows, reading.split_rows(rows, rng, _SPLIT_ROWS)):
        check_rows(reading, asker, part, decides=decides)


def check_rows(reading: Reading, asker: Asker, values: FloatArray, *, decides: bool) -> None:
    """Compare a reading with its model on rows of values; as `check_reading`."""
    if not len(values):
        return
    try:
        rows, seen = asker.shown(values)
        graded = asker.place.model.graded()
        own = graded.outputs(rows)
    except ModelError as error:
        # A row of the domain that the model refuses says nothing of the others, but nothing is known of it either.
        raise InputError(f"the model does not answer about rows that the domain allows: {error}") from error
    found, error_of = reading.outputs(seen)
    off = _differences(found, error_of, own, reading.kind, graded.output_kind)
    if off.any():
        i = int(off.argmax())
        raise _withdrawn(reading.layout, seen[i], f"{_words(own[i])} instead of {_words(found[i])}", off)
    if decides and isinstance(asker.place.model.loss, ZeroOne):
        sure = np.asarray(reading.decisions(seen))
        model = asker.place.model
        other = (sure >= 0) & (sure != np.asarray(model.targets(model.predict(rows))))
        if other.any():
            i = int(other.argmax())
            raise _withdrawn(reading.layout, seen[i], "it decides otherwise", other)


def _differences(found: FloatArray, error: FloatArray, own: FloatArray, kind: str, answers: str) -> Any:
    """Which rows differ by more than rounding, (n,)."""
    if found.shape[1] == 1 and own.shape[1] == 2:
        found, error = np.hstack([-found / 2, found / 2]), error / 2
    if found.shape != own.shape:
        return np.ones(len(own), dtype=bool)
    allowed = error[:, None] + 1e-14 * (1.0 + np.abs(found))
    if kind == "scores" and answers == "probabilities":
        # A probability is at most half as far off as the scores; it is answered in single precision at worst.
        found = np.asarray(softmax(found, axis=1))
        allowed = np.minimum(allowed, 1.0) + 2.0**-21
    elif kind == "scores":
        # Scores count up to a number that is the same for all classes.
        found, own = (part - part.mean(axis=1, keepdims=True) for part in (found, own))
        allowed = 2.0 * allowed
    return ~(np.abs(found - own) <= allowed).all(axis=1)


def _withdrawn(layout: TableLayout, row: FloatArray, what: str, off: Any) -> InputError:
    cells = []
    for column, value in zip(layout.columns, row, strict=True):
        shown = column.categories[int(value)] if column.categories else f"{value:.6g}"
        cells.append(f"{column.name} = {shown}")
    more = ", …" if len(cells) > 6 else ""
    return InputError(
        f"the model was read differently than it answers: {what} at {', '.join(cells[:6])}{more} "
        f"({int(off.sum())} of {len(off)} rows). Nothing is proved with such a reading."
    )


def _words(outputs: FloatArray) -> str:
    return "(" + ", ".join(f"{value:.6g}" for value in outputs[:4]) + ")"


def uniform_rows(layout: TableLayout, rng: np.random.Generator, count: int) -> FloatArray:
    """Rows of a domain drawn uniformly, (count, P): every value of a column as likely as every other."""
    rows = np.empty((count, layout.n_columns))
    for i, column in enumerate(layout.columns):
        if column.categories:
            rows[:, i] = rng.integers(len(column.categories), size=count)
            continue
        low, high = _range(column)
        if column.kind == "integer":
            rows[:, i] = low + np.minimum(np.floor(rng.random(count) * (high - low + 1.0)), high - low)
        else:
            rows[:, i] = rng.uniform(low, high, size=count)
    return rows


def random_rows(layout: TableLayout, people: FloatArray, rng: np.random.Generator, count: int) -> FloatArray:
    """Rows of a domain: values of people and values of the domain mixed column by column, and every category."""
    special = [list(_special(layout, i)) for i in range(layout.n_columns)]
    total = count + sum(map(len, special))
    rows = uniform_rows(layout, rng, total)
    if len(people):
        # Half of the cells are somebody's own.
        whose, own = rng.integers(len(people), size=rows.shape), rng.random(rows.shape) < 0.5
        rows = np.where(own, people[whose, np.arange(layout.n_columns)[None, :]], rows)
    first = count
    for i, values in enumerate(special):
        rows[first : first + len(values), i] = values
        first += len(values)
    return rows


def _range(column: Any) -> tuple[float, float]:
    low, high = max(column.lower, -_HIGHEST), min(column.upper, _HIGHEST)
    return (np.ceil(low), np.floor(high)) if column.kind == "integer" else (low, high)


def _special(layout: TableLayout, i: int) -> Iterator[float]:
    """Every category, or the ends of a range with their neighbours and the sentinels inside it."""
    column = layout.columns[i]
    if column.categories:
        yield from map(float, range(len(column.categories)))
        return
    low, high = _range(column)
    whole = column.kind == "integer"
    after = low + 1.0 if whole else np.nextafter(low, np.inf)
    before = high - 1.0 if whole else np.nextafter(high, -np.inf)
    yield from (value for value in (low, after, before, high, *_SENTINELS) if low <= value <= high)
