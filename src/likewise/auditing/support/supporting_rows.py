"""The rows a worst case may use: candidates of the finite search, and rows that a gradient search found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd

from likewise.auditing.people.unfair_map import UnfairMap, make_unfair_map
from likewise.auditing.problem.coordinates import Views
from likewise.auditing.support.frontier import Floats, Frontier, Ints
from likewise.core.arrays import to_numpy
from likewise.core.frames import is_frame, to_pandas

__all__ = ["Support"]


class Numbered(Protocol):
    """Candidates by number, such as `Candidates`."""

    def __len__(self) -> int: ...

    def take(self, index: Any) -> Any:
        """Make some of them."""


@dataclass(frozen=True, eq=False)
class Support:
    """A frontier together with the tables that its candidate numbers count in.

    Parameters
    ----------
    views : Views
        How rows are shown to model, metric and domain.
    rows : table of n rows
        The audited rows: a raw frame, or an encoded frame or array.
    candidates : Candidates, ShardedCandidates or None
        Numbers below ``len(candidates)`` are theirs.
    found : float array of shape (m, d)
        Encoded rows; number ``len(candidates) + j`` is row j.
    frontier : Frontier
        Of the n audited rows.
    """

    views: Views
    rows: Any
    candidates: Numbered | None
    found: Floats
    frontier: Frontier

    @property
    def offset(self) -> int:
        """Number of the first row in `found`."""
        return 0 if self.candidates is None else len(self.candidates)

    def with_found(self, x: Floats, *, row: Ints, loss: Floats, squared_distance: Floats) -> Support:
        """Add rows that were found for single audited rows, and keep those that the frontier needs.

        Parameters
        ----------
        x : float array of shape (k, d)
            Encoded rows.
        row : int array of shape (k,)
            The audited row that each was found for.
        loss, squared_distance : float arrays of shape (k,)
            Under the label of, and from, that row.
        """
        first = self.offset + len(self.found)
        frontier = self.frontier.merge(
            Frontier.from_points(
                base_loss=self.frontier.base_loss,
                row=row,
                squared_distance=squared_distance,
                loss=loss,
                candidate=first + np.arange(len(x)),
            )
        )
        everything = np.concatenate([self.found, x]) if len(self.found) else x
        # Rows that no corner uses any more are dropped, so that rounds of search do not pile up.
        used = np.unique(frontier.candidate[frontier.candidate >= self.offset]) - self.offset
        renumber = np.full(len(everything), -1, dtype=np.int64)
        renumber[used] = np.arange(len(used))
        mine = frontier.candidate >= self.offset
        numbers = frontier.candidate.copy()
        numbers[mine] = self.offset + renumber[numbers[mine] - self.offset]
        kept = Frontier(frontier.indptr, frontier.squared_distance, frontier.loss, numbers)
        return Support(self.views, self.rows, self.candidates, everything[used], kept)

    def twins(self, corner: Ints) -> Any:
        """Return the row at one corner per audited row, as the kind of table the audited rows are.

        Parameters
        ----------
        corner : int array of shape (n,)
            `DualSolution.corner`, or `Frontier.best`.
        """
        number = self.frontier.candidate[corner]
        parts: list[tuple[Ints, Any]] = []
        stays = np.flatnonzero(number < 0)
        parts.append((stays, self._take_rows(stays)))
        listed = np.flatnonzero((number >= 0) & (number < self.offset))
        if len(listed) and self.candidates is not None:
            parts.append((listed, self.candidates.take(number[listed])))
        found = np.flatnonzero(number >= self.offset) if len(self.found) else np.zeros(0, dtype=np.int64)
        if len(found):
            x = self.found[number[found] - self.offset]
            raw = self.views.raw and self.views.encoder is not None
            parts.append((found, self.views.encoder.decode(x) if raw else x))
        order = np.argsort(np.concatenate([index for index, _ in parts]), kind="stable")
        return _stacked([table for _, table in parts], self.rows, order)

    def unfair_map(
        self, corner: Ints, y: Any, *, person: Ints | None = None, total: int | None = None
    ) -> UnfairMap:
        """Show each audited row beside the row at one of its corners, as people read it.

        Parameters
        ----------
        corner : int array of shape (n,)
        y : array of shape (n,)
            Labels of the audited rows.
        person, total
            As in `make_unfair_map`.
        """
        model, twins = self.views.model, self.twins(corner)
        return make_unfair_map(
            self.original(self.rows),
            self.original(twins),
            label=y,
            loss=self.frontier.base_loss,
            twin_loss=self.frontier.loss[corner],
            decision=model.predict(self.views.for_model(self.rows)),
            twin_decision=model.predict(self.views.for_model(twins)),
            squared_distance=self.frontier.squared_distance[corner],
            person=person,
            total=total,
        )

    def original(self, table: Any) -> pd.DataFrame:
        """Return rows in original units for people to read, whatever kind of table they are."""
        if self.views.raw:
            return to_pandas(table, owner="audit").reset_index(drop=True)
        if self.views.encoder is not None:
            decoded = self.views.encoder.decode(np.asarray(to_numpy(table), dtype=float))
            return to_pandas(decoded, owner="audit").reset_index(drop=True)
        if is_frame(table):
            return to_pandas(table, owner="audit").reset_index(drop=True)
        matrix = to_numpy(table)
        return pd.DataFrame(matrix, columns=[f"x{j}" for j in range(matrix.shape[1])])

    def _take_rows(self, index: Ints) -> Any:
        if is_frame(self.rows):
            return to_pandas(self.rows, owner="audit").iloc[index]
        return to_numpy(self.rows)[index]


def _stacked(tables: list[Any], like: Any, order: Ints) -> Any:
    if not is_frame(like):
        return np.concatenate([np.asarray(to_numpy(table)) for table in tables if len(table)])[order]
    columns = list(to_pandas(like, owner="audit").columns)
    frames = []
    for table in tables:
        if not len(table):
            continue
        frame = (
            to_pandas(table, owner="audit")
            if is_frame(table)
            else pd.DataFrame(to_numpy(table), columns=columns)
        )
        frames.append(frame[columns])
    return pd.concat(frames, ignore_index=True).iloc[order].reset_index(drop=True)
