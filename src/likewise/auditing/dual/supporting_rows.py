"""The rows a worst case may use: what the searches found so far, each row with its loss and fair distance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from likewise.auditing.dual.finite_dual import Frontier
from likewise.auditing.results.unfair_map import UnfairMap, make_unfair_map
from likewise.core.checks import FloatArray, IntArray
from likewise.core.errors import InputError
from likewise.core.frames import is_frame

if TYPE_CHECKING:
    from likewise.auditing.problem import AuditProblem, Coordinates

Bools = np.ndarray[Any, np.dtype[np.bool_]]


class Numbered(Protocol):
    """Rows by number, made when asked for, such as `Candidates`."""

    def __len__(self) -> int: ...

    def take(self, index: Any) -> Any:
        """Make some of them, as the kind of table that people come in."""


@dataclass(frozen=True, eq=False)
class FoundRows:
    """Encoded rows that a search found, by number."""

    coordinates: Coordinates
    x: FloatArray

    def __len__(self) -> int:
        return len(self.x)

    def take(self, index: Any) -> Any:
        """Return some of them as the kind of table that people come in."""
        return self.coordinates.given(self.x[np.asarray(index, dtype=np.int64)])


@dataclass(frozen=True, eq=False)
class Support:
    """A frontier together with the rows that its candidate numbers count in; `Support.start` makes the first."""

    problem: AuditProblem
    sources: tuple[Numbered, ...]
    frontier: Frontier
    nearest_change: FloatArray

    @classmethod
    def start(cls, problem: AuditProblem) -> Support:
        """Return the support in which everybody stays where they are."""
        nobody = Frontier.from_points(
            base_loss=problem.base_loss, row=[], squared_distance=[], loss=[], candidate=[]
        )
        return cls(problem, (), nobody, np.full(problem.n, np.inf))

    def __len__(self) -> int:
        return sum(len(source) for source in self.sources)

    @property
    def changed(self) -> Bools:
        """Whether some row at no fair distance from a person is decided differently, shape (n,)."""
        return np.asarray(self.nearest_change == 0)

    def with_source(self, source: Numbered, frontier: Frontier, changed: Any) -> Support:
        """Add rows whose frontier is known already."""
        merged = self.frontier.merge(frontier, offset=len(self))
        nearest = np.where(np.asarray(changed), 0.0, self.nearest_change)
        return replace(self, sources=(*self.sources, source), frontier=merged, nearest_change=nearest)

    def with_changes(self, person: IntArray, squared_distance: FloatArray) -> Support:
        """Note at which distances people are decided differently."""
        nearest = self.nearest_change.copy()
        np.minimum.at(nearest, person, squared_distance)
        return replace(self, nearest_change=nearest)

    def with_rows(self, x: FloatArray, person: IntArray, *, resolution: float | None = None) -> Support:
        """Add encoded rows that were found for single people; the model is asked and the distance measured here."""
        x, person = np.asarray(x, dtype=np.float64), np.asarray(person, dtype=np.int64)
        if not len(x):
            return self
        problem, place = self.problem, self.problem.coordinates
        outside, fixed = ~place.possible(x), place.fixed_positions()
        if len(fixed):
            outside |= (np.abs(x[:, fixed] - problem.X[person][:, fixed]) > 1e-6).any(axis=1)
        if outside.any():
            row = int(outside.argmax())
            raise InputError(
                f"Support.with_rows: row {row}, found for person {int(person[row])}, cannot exist in the domain "
                "(out of range, between categories, or changed where nothing may change). "
                "Pass it through domain.nearest_valid(x, origin) first."
            )
        # A person's own numbers stay what they are.
        x = np.where(x == problem.X[person], x, place.canonical(x))
        loss = place.losses_encoded(x, problem.labels[person])
        distance = problem.squared_distance(x, person, resolution=resolution)
        nearest = self.nearest_change.copy()
        nearer = np.flatnonzero(distance < nearest[person])
        if problem.decides and len(nearer):
            decided = place.model.predict(place.encoded_for_model(x[nearer]))
            other = problem.decided_otherwise(
                decided, person[nearer], lambda at: place.encoded_for_model(x[nearer[at]]), loss[nearer]
            )
            differs = nearer[other]
            np.minimum.at(nearest, person[differs], distance[differs])
            if place.model.loss.wants == "decisions":
                loss[nearer[~other]] = problem.base_loss[person[nearer[~other]]]
        points = Frontier.from_points(
            base_loss=self.frontier.base_loss,
            row=person,
            squared_distance=distance,
            loss=loss,
            candidate=np.arange(len(x)),
        )
        return self._with_found(FoundRows(place, x), points, nearest)

    def _with_found(self, rows: FoundRows, frontier: Frontier, nearest: FloatArray) -> Support:
        """Merge, and keep only found rows that the frontier needs, so that rounds of search do not pile up."""
        sources, earlier, below = self.sources, rows.x[:0], len(self)
        if sources and isinstance(sources[-1], FoundRows):
            earlier, sources = sources[-1].x, sources[:-1]
            below -= len(earlier)
        merged = self.frontier.merge(frontier, offset=below + len(earlier))
        everything = np.concatenate([earlier, rows.x])
        mine = merged.candidate >= below
        used = np.unique(merged.candidate[mine]) - below
        renumber = np.full(len(everything), -1, dtype=np.int64)
        renumber[used] = np.arange(len(used))
        numbers = merged.candidate.copy()
        numbers[mine] = below + renumber[numbers[mine] - below]
        kept = Frontier(merged.indptr, merged.squared_distance, merged.loss, numbers)
        found = (FoundRows(rows.coordinates, everything[used]),) if len(used) else ()
        return replace(self, sources=(*sources, *found), frontier=kept, nearest_change=nearest)

    def change_frontier(self) -> Frontier:
        """Return the frontier of "the decision is another one" (1) or not (0) over everything seen so far.

        Its dual at ε is a share of people whose decision changes within the budget, attained by rows that were seen.
        """
        frontier = self.frontier
        nearest = self.nearest_change.copy()
        row = frontier.row
        unseen = (frontier.candidate >= 0) & (frontier.squared_distance < nearest[row])
        corner = np.flatnonzero(unseen) if self.problem.decides else np.zeros(0, dtype=np.int64)
        if len(corner):
            place = self.problem.coordinates
            differs = corner[
                self.problem.decided_otherwise(
                    self._decided(corner),
                    row[corner],
                    lambda at: place.for_model(self.twins(corner[at])),
                    frontier.loss[corner],
                )
            ]
            np.minimum.at(nearest, row[differs], frontier.squared_distance[differs])
        person = np.flatnonzero(np.isfinite(nearest))
        return Frontier.from_points(
            base_loss=np.zeros(self.problem.n),
            row=person,
            squared_distance=nearest[person],
            loss=np.ones(len(person)),
            candidate=person,
        )

    def twins(self, corner: IntArray) -> Any:
        """Return the row at one corner per person, as the kind of table that people come in."""
        number = self.frontier.candidate[corner]
        ends = np.cumsum([0, *(len(source) for source in self.sources)])
        home = np.searchsorted(ends, number, side="right") - 1
        stays = np.flatnonzero(number < 0)
        rows = self.problem.rows
        parts, places = [rows.iloc[stays] if is_frame(rows) else rows[stays]], [stays]
        for k, source in enumerate(self.sources):
            here = np.flatnonzero((home == k) & (number >= 0))
            if len(here):
                parts.append(source.take(number[here] - ends[k]))
                places.append(here)
        order, filled = (
            np.argsort(np.concatenate(places), kind="stable"),
            [part for part in parts if len(part)],
        )
        if not is_frame(filled[0]):
            return np.concatenate(filled)[order]
        columns = list(filled[0].columns)
        whole = pd.concat([frame[columns] for frame in filled], ignore_index=True)
        return whole.iloc[order].reset_index(drop=True)

    def _decided(self, corner: IntArray, twins: Any = None) -> Any:
        """The decisions about the rows at one corner per person; the model is not asked again about known ones."""
        number = self.frontier.candidate[corner]
        if len(self.sources) == 1 and hasattr(self.sources[0], "decided"):
            own = self.problem.decisions[self.frontier.row[corner]]
            return np.where(number < 0, own, self.sources[0].decided(np.maximum(number, 0)))
        place = self.problem.coordinates
        return place.model.predict(place.for_model(self.twins(corner) if twins is None else twins))

    def best_rows(self, lambda_: float) -> FloatArray:
        """Return the encoded row of each person that attains most at a λ, (n, d); their own where none does better."""
        # 0 · ∞ is not a number; a move that costs anything at all is worth none at this price.
        corner = self.frontier.best(min(lambda_, 1e30))
        return self.problem.coordinates.encoded(self.twins(corner))

    def unfair_map(
        self, corner: IntArray, *, person: IntArray | None = None, total: int | None = None
    ) -> UnfairMap:
        """Show each person beside the row at one of their corners, as people read it."""
        place, twins = self.problem.coordinates, self.twins(corner)
        return make_unfair_map(
            place.original(self.problem.rows),
            place.original(twins),
            label=self.problem.y,
            loss=self.frontier.base_loss,
            twin_loss=self.frontier.loss[corner],
            decision=self.problem.decisions,
            twin_decision=self._decided(corner, twins),
            squared_distance=self.frontier.squared_distance[corner],
            person=person,
            total=total,
        )
