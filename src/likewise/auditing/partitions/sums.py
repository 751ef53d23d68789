"""What the parts of an audit answer: small, and the same whatever order or place they were made in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from likewise.auditing.dual.finite_dual import BinnedSteps
from likewise.auditing.dual.frontier import Floats
from likewise.auditing.dual.moments import Moments
from likewise.auditing.inference.certificate import Bound
from likewise.auditing.results.sensitive import ChangedGroup, ChangedPerson, SensitiveTwins
from likewise.auditing.search.contract import Found, Status
from likewise.core.checks import IntArray

# Bins of harm (increase of loss) that people are counted in.
HARM_EDGES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, np.inf)
_WORSE = ("converged", "not_converged", "failed")
_MOST_REASONS = 5


@dataclass(frozen=True, eq=False)
class Worst:
    """The most harmed people, the worst first; of equals the one who comes first in the table."""

    harm: Floats
    person: IntArray
    corner: IntArray

    @classmethod
    def of(cls, harm: Floats, person: IntArray, corner: Any, *, top: int) -> Worst:
        """Keep the `top` worst."""
        order = np.lexsort((person, -harm))[:top]
        return cls(harm[order], person[order], np.asarray(corner)[order])

    def merge(self, other: Worst, *, top: int) -> Worst:
        """Return the worst of both."""
        columns = (
            np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("harm", "person", "corner")
        )
        return self.of(*columns, top=top)


@dataclass(frozen=True)
class Ending:
    """How the searches of one part, or of several, ended."""

    status: Status = "converged"
    reasons: tuple[str, ...] = ()
    bounds: tuple[Bound, ...] = ()

    def then(self, found: Found) -> Ending:
        """Return how this and a further search of the same people ended."""
        given = (found.bound, found.population_bound, *found.more)
        known = self.with_bounds([bound for bound in given if bound is not None])
        return Ending(*self._status(found.status, found.reasons), known.bounds)

    def with_bounds(self, bounds: Iterable[Bound]) -> Ending:
        """Return the same with further bounds of all these people; of a kind the tightest stays."""
        tightest = {_kind(bound): bound for bound in self.bounds}
        for bound in bounds:
            known = tightest.get(_kind(bound))
            tightest[_kind(bound)] = bound if known is None or bound.value < known.value else known
        return replace(self, bounds=tuple(tightest.values()))

    def merge(self, other: Ending) -> Ending:
        """Return how the searches of other people ended, and of these."""
        theirs = {_kind(bound): bound for bound in other.bounds}
        pairs = [(bound, theirs[_kind(bound)]) for bound in self.bounds if _kind(bound) in theirs]
        both = tuple(_together(one, two) for one, two in pairs if one.eps == 0 and one.confidence == 1)
        return Ending(*self._status(other.status, other.reasons), both)

    def bound(self, *, eps: float, measure: str = "loss", about: str = "sample") -> Bound | None:
        """Return the bound of a kind, None where there is none."""
        return next((bound for bound in self.bounds if _kind(bound) == (measure, eps, about)), None)

    def _status(self, status: Status, reasons: tuple[str, ...]) -> tuple[Status, tuple[str, ...]]:
        worse: Status = max(self.status, status, key=_WORSE.index)
        return worse, tuple(dict.fromkeys((*self.reasons, *reasons)))[:_MOST_REASONS]


def _kind(bound: Bound) -> tuple[str, float, str]:
    return bound.measure, bound.eps, bound.about


def _together(one: Bound, two: Bound) -> Bound:
    """Bound of two groups of people at ε = 0, where what one may lose does not depend on the others."""
    n = one.n + two.n
    value = (one.n * one.value + two.n * two.value) / n
    gap = None if one.gap is None or two.gap is None else (one.n * one.gap + two.n * two.gap) / n
    return replace(one, n=n, value=value, gap=gap)


@dataclass(frozen=True)
class SensitiveSums:
    """What becomes of people when only the sensitive columns change, added up."""

    columns: tuple[str, ...]
    harm: Moments
    changed: int
    groups: tuple[ChangedGroup, ...] = ()
    examples: dict[tuple[str, Any], ChangedPerson] = field(default_factory=dict)
    exact: bool = True

    @classmethod
    def of(cls, twins: SensitiveTwins) -> SensitiveSums:
        """Add up what was found for each person."""
        return cls(
            twins.columns,
            Moments.of(twins.harm),
            int(twins.changed.sum()),
            twins.groups,
            twins.examples,
            twins.exact,
        )

    def merge(self, other: SensitiveSums) -> SensitiveSums:
        """Return the sums of both."""
        return SensitiveSums(
            self.columns,
            self.harm.merge(other.harm),
            self.changed + other.changed,
            _added_groups((*self.groups, *other.groups)),
            {
                key: min(
                    (found[key] for found in (self.examples, other.examples) if key in found),
                    key=lambda one: one.rank,
                )
                for key in {**self.examples, **other.examples}
            },
            self.exact and other.exact,
        )


def _added_groups(groups: Iterable[ChangedGroup]) -> tuple[ChangedGroup, ...]:
    total: dict[tuple[str, Any, Any], ChangedGroup] = {}
    for one in groups:
        key = one.column, one.value, one.decision
        known = total.get(key)
        total[key] = (
            one
            if known is None
            else replace(known, people=known.people + one.people, changed=known.changed + one.changed)
        )
    return tuple(total.values())


@dataclass(frozen=True, eq=False)
class FoundSums:
    """What the searches found in one part, or in several."""

    losses: Moments
    free: Moments
    changed: int
    sensitive: SensitiveSums | None
    steps: BinnedSteps
    changes: BinnedSteps
    worst: Worst
    ending: Ending = field(default_factory=Ending)
    cpu: dict[str, float] = field(default_factory=dict)

    def merge(self, other: FoundSums, *, top: int) -> FoundSums:
        """Return the sums of both parts' people."""
        mine, theirs = self.sensitive, other.sensitive
        return FoundSums(
            self.losses.merge(other.losses),
            self.free.merge(other.free),
            self.changed + other.changed,
            None if mine is None or theirs is None else mine.merge(theirs),
            self.steps.merge(other.steps),
            self.changes.merge(other.changes),
            self.worst.merge(other.worst, top=top),
            self.ending.merge(other.ending),
            {name: self.cpu.get(name, 0.0) + other.cpu.get(name, 0.0) for name in {**self.cpu, **other.cpu}},
        )


@dataclass(frozen=True, eq=False)
class SettledSums:
    """What λ* means for one part, or for several."""

    gains: dict[float, Moments]
    worst: Worst
    histogram: IntArray
    written: int
    cpu: float

    def merge(self, other: SettledSums, *, top: int) -> SettledSums:
        """Return the sums of both parts' people."""
        return SettledSums(
            {price: found.merge(other.gains[price]) for price, found in self.gains.items()},
            self.worst.merge(other.worst, top=top),
            self.histogram + other.histogram,
            self.written + other.written,
            self.cpu + other.cpu,
        )
