"""Pairs of rows that differ in the sensitive columns alone and are decided differently, the most plausible first.

A pair counts only if the model itself decides the two rows differently. Rows of the table come before made-up rows, and
a row with two categories that nobody in the table has together (a female husband) is shown only if nothing else is there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.bounds.table_layout import IntArray, TableLayout
from likewise.auditing.bounds.verifying.sensitive_values import SensitiveValues
from likewise.core.arrays import FloatArray

__all__ = ["Decide", "Flip", "FlipExamples"]

Decide = Callable[[FloatArray], Any]

_EXAMPLES = 20
# Regions that are looked into for made-up rows, in batches, and rows of a batch that the model is asked about.
_LOOKS, _CONFIRMED = 200, 8
# People whose categories are looked at.
_PEOPLE = 100_000


@dataclass(frozen=True, eq=False)
class Flip:
    """Two rows that differ in the sensitive columns alone and are decided differently.

    Parameters
    ----------
    first, second : float arrays of shape (d,)
        Encoded valid rows.
    decisions : tuple of int
        What is decided for each, as positions of classes.
    person : int, optional
        Number of the person in the table whose own row is the first; None for made-up rows.
    """

    first: FloatArray
    second: FloatArray
    decisions: tuple[int, int]
    person: int | None = None


class FlipExamples:
    """Collects pairs of rows that flip, each once.

    Parameters
    ----------
    layout : TableLayout
    values : SensitiveValues
    decide : callable
        Decisions of rows of values (n, P), by the model itself.
    people : float array of shape (n, P), optional
        Rows of the table: they say which categories occur together.
    """

    def __init__(
        self,
        layout: TableLayout,
        values: SensitiveValues,
        decide: Decide,
        people: FloatArray | None = None,
    ) -> None:
        self._layout, self._values, self._decide = layout, values, decide
        self._together = None if people is None or not len(people) else _together(layout, people)
        self._known: set[frozenset[bytes]] = set()
        self._plausible: list[Flip] = []
        self._others: list[Flip] = []
        self._looks = _LOOKS

    @property
    def found(self) -> tuple[Flip, ...]:
        """The plausible pairs; others if there are none."""
        return tuple(self._plausible or self._others)

    @property
    def wants(self) -> bool:
        """Whether more pairs are looked for."""
        return len(self._plausible) < _EXAMPLES and self._looks > 0

    def labels(self, rows: FloatArray) -> IntArray:
        """The model's decisions of rows of values under every sensitive value that is asked about, (m, A)."""
        found = self._decide(self._values.rows(rows))
        return np.asarray(found, dtype=np.int64).reshape(len(rows), len(self._values.asked))

    def add_people(self, people: FloatArray, number: IntArray) -> None:
        """Keep pairs of a person's own row and one with other sensitive values, of some numbers of people."""
        for first in range(0, len(number), _CONFIRMED):
            if not self.wants:
                return
            rows = people[number[first : first + _CONFIRMED]]
            own, labels = np.asarray(self._decide(rows), dtype=np.int64), self.labels(rows)
            for i, row in enumerate(rows):
                twins = np.repeat(row[None], len(self._values.asked), axis=0)
                twins[:, self._values.columns] = self._values.asked
                at = np.flatnonzero((labels[i] >= 0) & (own[i] >= 0) & (labels[i] != own[i]))
                if not len(at):
                    continue
                best = int(at[self._cost(twins[at], row).argmin()])
                self._keep(row, twins[best], (int(own[i]), int(labels[i, best])), int(number[first + i]))

    def add(self, rows: FloatArray, labels: IntArray) -> None:
        """Keep pairs of made-up rows, given the model's decisions (m, A); −1 is unknown."""
        for row, label in zip(rows, labels, strict=True):
            if len(self._plausible) >= _EXAMPLES:
                return
            twins = np.repeat(row[None], len(label), axis=0)
            twins[:, self._values.columns] = self._values.asked
            known = np.flatnonzero(label >= 0)
            fits = known[self._are_plausible(twins[known])]
            for at in (fits, known):
                if len(at) and label[at].min() < label[at].max():
                    a, b = int(at[label[at].argmin()]), int(at[label[at].argmax()])
                    self._keep(twins[a], twins[b], (int(label[a]), int(label[b])), None)
                    break

    def look(self, rows: FloatArray, read: Decide) -> None:
        """Keep pairs that made-up rows show to flip: those that a reading expects to, if the model agrees."""
        if not self.wants or not len(rows):
            return
        self._looks -= 1
        expected = np.asarray(read(self._values.rows(rows)), dtype=np.int64).reshape(len(rows), -1)
        highest = expected.max(axis=1)
        lowest = np.where(expected >= 0, expected, highest[:, None]).min(axis=1)
        likely = rows[np.flatnonzero(lowest < highest)[:_CONFIRMED]]
        if len(likely):
            self.add(likely, self.labels(likely))

    def _are_plausible(self, rows: FloatArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
        if self._together is None or not self._layout.is_category.any():
            return np.ones(len(rows), dtype=bool)
        codes = _codes(self._layout, rows)
        return np.asarray(self._together[codes[:, :, None], codes[:, None, :]].all(axis=(1, 2)))

    def _cost(self, twins: FloatArray, row: FloatArray) -> FloatArray:
        """The nearest is the cheapest: fewest columns changed, numbers by little, no two that contradict each other."""
        changed, far = twins != row, np.abs(twins - row)
        width = [max(column.upper - column.lower, 1e-300) for column in self._layout.columns]
        by = np.where(self._layout.is_category, 0.0, far / np.array(width))
        return np.asarray((changed + by).sum(axis=1) + 1e3 * ~self._are_plausible(twins))

    def _keep(
        self, first: FloatArray, second: FloatArray, decisions: tuple[int, int], person: int | None
    ) -> None:
        key = frozenset((first.tobytes(), second.tobytes()))
        if key in self._known:
            return
        self._known.add(key)
        both = np.stack([first, second])
        where = self._plausible if self._are_plausible(both).all() else self._others
        if len(where) < _EXAMPLES:
            one, two = self._layout.encode(both)
            where.append(Flip(one, two, decisions, person))


def _codes(layout: TableLayout, rows: FloatArray) -> IntArray:
    """Places of the rows' categories among all categories, (n, K)."""
    at = np.flatnonzero(layout.is_category)
    return np.asarray(layout.offset[at] + rows[:, at].astype(np.int64))


def _together(layout: TableLayout, people: FloatArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which two categories somebody has together, (M, M)."""
    codes = np.unique(_codes(layout, people[:_PEOPLE]), axis=0)
    found = np.zeros((layout.n_categories, layout.n_categories), dtype=bool)
    for i in range(codes.shape[1]):
        for j in range(codes.shape[1]):
            found[codes[:, i], codes[:, j]] = True
    return found
