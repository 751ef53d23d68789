"""Shares that rest on asking the model: of the people of a table, and of random rows of the whole domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from likewise.auditing.bounds.families import uniform_rows
from likewise.auditing.bounds.regions import Regions, TableLayout
from likewise.auditing.people import differ_alike
from likewise.core.checks import BoolArray, FloatArray, IntArray
from likewise.core.errors import InputError, bad_parameter
from likewise.core.intervals import share_limits

# All values that the sensitive columns can take, as parts of a domain.


_FEW = 16
_PIECES = 8
_MOST = 512
# Combinations of single values that a model is asked about at a random row, at most; a whole number with up to so many
# values is asked about at each of them, another number at so many points.
_MOST_ASKED, _ALL_WHOLE, _POINTS = 1000, 128, 33
# Combinations that it is asked about one person, at most.
_MOST_OF_PERSON = 50_000


class OneHot(NamedTuple):
    """0/1 columns that are one attribute, and the combinations of codes that occur in them, (m, k)."""

    names: tuple[str, ...]
    codes: FloatArray


@dataclass(frozen=True, eq=False)
class SensitiveValues:
    """Every combination of the sensitive columns: single values, and pieces of numbers that have many."""

    columns: IntArray
    low: FloatArray
    high: FloatArray
    covers: BoolArray
    asked: FloatArray
    complete: bool
    every: FloatArray | None

    @classmethod
    def of(cls, layout: TableLayout, names: Sequence[str], groups: Sequence[OneHot] = ()) -> SensitiveValues:
        """List the combinations; columns of a group take only the combinations that occur."""
        known = [column.name for column in layout.columns]
        wrong = [name for name in names if name not in known]
        if wrong or not names or isinstance(names, str):
            raise bad_parameter(
                "verify",
                "sensitive_features",
                allowed=f"a list of columns of the domain: {', '.join(known[:12])}",
                got=wrong[0] if wrong else names,
            )
        parts, left = [], list(names)
        for group in groups:
            mine = [k for k, name in enumerate(group.names) if name in left]
            if mine:
                left = [name for name in left if name not in group.names]
                codes = np.unique(group.codes[:, mine], axis=0)
                pieces = [(code, code, True) for code in codes]
                parts.append(_Part([known.index(group.names[k]) for k in mine], pieces, codes, True))
        parts += [_part(layout.columns[known.index(name)], known.index(name)) for name in left]
        count = prod(len(part.pieces) for part in parts)
        if count > _MOST:
            raise InputError(
                f"verify: the sensitive columns have {count} combinations, at most {_MOST} are looked at. "
                "Name fewer columns."
            )
        chosen = list(product(*(part.pieces for part in parts)))
        low, high = (np.array([np.concatenate([one[k] for one in row]) for row in chosen]) for k in (0, 1))
        covers = np.array([all(one[2] for one in row) for row in chosen])
        values, complete = [part.values for part in parts], all(part.complete for part in parts)
        every = None
        if complete and prod(map(len, values)) <= _MOST_OF_PERSON:
            every = _combined(values)
        few = [
            part.values if len(part.values) <= max(_ALL_WHOLE, len(part.pieces)) else _thinned(part.values)
            for part in parts
        ]
        while prod(map(len, few)) > _MOST_ASKED:
            longest = int(np.argmax([len(part) for part in few]))
            few[longest] = np.append(few[longest][:-1:2], few[longest][-1:], axis=0)
        complete = complete and all(len(one) == len(all_) for one, all_ in zip(few, values, strict=True))
        columns = np.array([i for part in parts for i in part.columns])
        return cls(columns, low, high, covers, _combined(few), complete, every)

    def rows(self, rows: FloatArray) -> FloatArray:
        """Return rows of values under every combination that is asked about, (n · A, P)."""
        every = np.repeat(rows, len(self.asked), axis=0)
        every[:, self.columns] = np.tile(self.asked, (len(rows), 1))
        return every

    def of_person(self) -> SensitiveValues:
        """Return the same with every combination asked about, if these are not too many for one person."""
        return self if self.every is None else replace(self, asked=self.every, complete=True)

    def put(self, layout: TableLayout, regions: Regions, which: IntArray) -> Regions:
        """Return regions with their sensitive columns at combinations; one of each."""
        low, high, allowed = regions.low.copy(), regions.high.copy(), regions.allowed.copy()
        for k, column in enumerate(self.columns):
            if not layout.is_category[column]:
                low[:, column], high[:, column] = self.low[which, k], self.high[which, k]
                continue
            codes = self.low[which, k]
            allowed[:, layout.its(column)] = np.arange(layout.count[column])[None, :] == codes[:, None]
        return Regions(low, high, allowed)


class _Part(NamedTuple):
    """Some sensitive columns that are exchanged together: pieces (low, high, covers), values (m, k), if these are all."""

    columns: list[int]
    pieces: list[tuple[FloatArray, FloatArray, bool]]
    values: FloatArray
    complete: bool


def _combined(values: Sequence[FloatArray]) -> FloatArray:
    return np.array([np.concatenate(one) for one in product(*values)], dtype=np.float64)


def _thinned(values: FloatArray) -> FloatArray:
    return values[np.unique(np.linspace(0, len(values) - 1, _POINTS).round().astype(np.int64))]


def _part(column: Any, i: int) -> _Part:
    """The pieces and values of one column."""
    if column.categories:
        values = np.arange(float(len(column.categories)))[:, None]
        return _Part([i], [(one, one, True) for one in values], values, True)
    if not np.isfinite([column.lower, column.upper]).all():
        raise InputError(
            f"verify: the sensitive column {column.name!r} has no bounded range. Give the domain one."
        )
    low, high, whole = column.lower, column.upper, column.kind == "integer"
    if whole:
        low, high = np.ceil(low), np.floor(high)
    complete = bool(high - low < _MOST_OF_PERSON if whole else low == high)
    values = np.arange(low, high + 1.0) if whole and complete else np.linspace(low, high, _POINTS)
    values = np.unique(np.floor(values) if whole else values)[:, None]
    if whole and len(values) <= _FEW:
        return _Part([i], [(one, one, True) for one in values], values, True)
    edges = np.linspace(low, high, _PIECES + 1)
    edges = np.floor(edges) if whole else edges
    pieces = [(a + (whole and k > 0), b, True) for k, (a, b) in enumerate(pairwise(edges))]
    # Single values besides: two of them with different decisions show a flip that a wide piece would hide.
    pieces += [(end, end, False) for end in (low, high)]
    return _Part([i], [(np.array([a]), np.array([b]), covers) for a, b, covers in pieces], values, complete)


# Pairs of rows that differ in the sensitive columns alone and are decided differently, the most plausible
# first.


Decide = Callable[[FloatArray], Any]

_EXAMPLES = 20
# Regions that are looked into for made-up rows, in batches, and rows of a batch that the model is asked about.
_LOOKS, _CONFIRMED = 200, 8
# People whose categories are looked at.
_PEOPLE = 100_000


@dataclass(frozen=True, eq=False)
class Flip:
    """Two rows of values that differ in the sensitive columns alone and are decided differently."""

    first: FloatArray
    second: FloatArray
    decisions: tuple[int, int]
    person: int | None = None
    confirmed: bool = False


class FlipExamples:
    """Collects pairs of rows that flip, each once."""

    def __init__(
        self, layout: TableLayout, values: SensitiveValues, decide: Decide, people: FloatArray | None = None
    ) -> None:
        self._layout, self._values, self._decide = layout, values, decide
        self._together = None if people is None or not len(people) else _together(layout, people)
        self._known: set[frozenset[bytes]] = set()
        self._plausible: list[Flip] = []
        self._others: list[Flip] = []
        self._looks = _LOOKS

    @property
    def found(self) -> tuple[Flip, ...]:
        """The plausible pairs; others if there are none. Each is decided so in another batch, too."""
        for kept in (self._plausible, self._others):
            new = [flip for flip in kept if not flip.confirmed]
            if new:
                rows = (np.stack([flip.first for flip in new]), np.stack([flip.second for flip in new]))
                again = np.stack([self._decide(part) for part in rows], axis=1)
                kept[:] = [flip for flip in kept if flip.confirmed] + [
                    replace(flip, confirmed=True)
                    for flip, now in zip(new, again, strict=True)
                    if flip.decisions == tuple(now.tolist())
                ]
        return tuple(self._plausible or self._others)

    @property
    def wants(self) -> bool:
        """Whether more pairs are looked for."""
        return len(self._plausible) < _EXAMPLES and self._looks > 0

    def labels(self, rows: FloatArray) -> IntArray:
        """The model's decisions of rows of values under every sensitive value that is asked about, (m, A)."""
        return twin_labels(self._decide, self._values.rows(rows), len(rows))

    def add_people(self, people: FloatArray, number: IntArray) -> None:
        """Keep pairs of a person's own row and one with other sensitive values, of some numbers of people."""
        whole = self._values.of_person()
        for first in range(0, len(number), _CONFIRMED):
            if not self.wants:
                return
            rows = people[number[first : first + _CONFIRMED]]
            own = np.asarray(self._decide(rows), dtype=np.int64)
            labels = twin_labels(self._decide, whole.rows(rows), len(rows))
            for i, row in enumerate(rows):
                twins = whole.rows(row[None])
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
            twins = self._values.rows(row[None])
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
        expected = twin_labels(read, self._values.rows(rows), len(rows))
        highest = expected.max(axis=1)
        lowest = np.where(expected >= 0, expected, highest[:, None]).min(axis=1)
        likely = rows[np.flatnonzero(lowest < highest)[:_CONFIRMED]]
        if len(likely):
            self.add(likely, self.labels(likely))

    def _are_plausible(self, rows: FloatArray) -> BoolArray:
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
        # −0.0 is the same number as 0.0, in other bytes.
        key = frozenset((row + 0.0).tobytes() for row in (first, second))
        if key in self._known:
            return
        self._known.add(key)
        both = np.stack([first, second])
        where = self._plausible if self._are_plausible(both).all() else self._others
        if len(where) < _EXAMPLES:
            where.append(Flip(first.copy(), second.copy(), decisions, person))


def twin_labels(decide: Decide, twins: FloatArray, n: int) -> IntArray:
    """The decisions of the twins of n rows, (n, A)."""
    return np.asarray(decide(twins), dtype=np.int64).reshape(n, -1)


def _codes(layout: TableLayout, rows: FloatArray) -> IntArray:
    """Places of the rows' categories among all categories, (n, K)."""
    at = np.flatnonzero(layout.is_category)
    return np.asarray(layout.offset[at] + rows[:, at].astype(np.int64))


def _together(layout: TableLayout, people: FloatArray) -> BoolArray:
    """Which two categories somebody has together, (M, M)."""
    codes = np.unique(_codes(layout, people[:_PEOPLE]), axis=0)
    found = np.zeros((layout.n_categories, layout.n_categories), dtype=bool)
    for i in range(codes.shape[1]):
        for j in range(codes.shape[1]):
            found[codes[:, i], codes[:, j]] = True
    return found


# Rows that a model is asked about for a sampled share; rows of the sample, at least; rows asked about at once.
_ASKED, _LEAST, BATCH = 60_000, 300, 16_384
# Rows whose regions are decided at once.
_AT_ONCE = 512


class Sampled(NamedTuple):
    """Share of all rows of a domain whose decision depends on the sensitive columns, from a random sample."""

    share: float
    low: float
    high: float
    rows: int


def sample_rows(
    layout: TableLayout,
    values: SensitiveValues,
    decide: Decide,
    *,
    same: Callable[[FloatArray], BoolArray] | None = None,
    random_state: int = 0,
    on_progress: Callable[[FloatArray, IntArray], None] | None = None,
) -> Sampled | None:
    """Ask a model about random rows of a domain under every sensitive value."""
    ends = [(column.lower, column.upper) for column in layout.columns if not column.categories]
    if not np.isfinite(np.array(ends, dtype=np.float64)).all():
        return None
    size = len(values.asked)
    count, rng = max(_LEAST, _ASKED // size), np.random.default_rng(random_state)
    at_once = max(1, BATCH // size)
    flips = unknown = 0
    for first in range(0, count, at_once):
        rows = uniform_rows(layout, rng, min(at_once, count - first))
        labels = twin_labels(decide, values.rows(rows), len(rows))
        _, flip = settled(labels, np.ones(size, dtype=bool))
        seen = np.flatnonzero(flip)
        # Of each row's twins one of the lowest decision that is known, and one of the highest.
        twins, at = values.rows(rows[seen]), np.arange(len(seen)) * size
        lowest = np.where(labels[seen] >= 0, labels[seen], np.iinfo(np.int64).max).argmin(axis=1)
        flip[seen] = differ_alike(decide, twins[at + lowest], twins[at + labels[seen].argmax(axis=1)])
        flips += int(flip.sum())
        unsure = (labels < 0).any(axis=1) | (labels != labels[:, :1]).any(axis=1)
        rest = np.flatnonzero(~flip & (unsure | (not values.complete)))
        unknown += int((~same(rows[rest])).sum()) if same is not None and len(rest) else len(rest)
        if on_progress is not None and flip.any():
            on_progress(rows[flip], labels[flip])
    low, _ = share_limits(flips, count, confidence=0.95)
    _, high = share_limits(flips + unknown, count, confidence=0.95)
    return Sampled(flips / count, float(low), float(high), count)


def proved_same(family: Any, values: SensitiveValues, rows: FloatArray) -> BoolArray:
    """Which rows of values keep their decision over all sensitive values, by what was read off the model, (n,)."""
    layout, size = family.layout, len(values.low)
    found = np.zeros(len(rows), dtype=bool)
    for first in range(0, len(rows), _AT_ONCE):
        own = rows[first : first + _AT_ONCE]
        allowed = np.zeros((len(own), layout.n_categories), dtype=np.uint8)
        for i in np.flatnonzero(layout.is_category):
            allowed[np.arange(len(own)), layout.offset[i] + own[:, i].astype(np.int64)] = 1
        each = np.repeat(np.arange(len(own)), size)
        there = values.put(layout, Regions(own, own, allowed).take(each), np.tile(np.arange(size), len(own)))
        label, _, _ = family.decide(there, family.state(len(each)))
        labels = np.asarray(label, dtype=np.int64).reshape(len(own), size)
        found[first : first + _AT_ONCE] = settled(labels, values.covers)[0]
    return found


def settled(labels: IntArray, covers: Any) -> tuple[Any, Any]:
    """Which rows of labels (n, S) keep their decision over all values, and which have two that differ."""
    cover = labels[:, covers]
    same = (cover >= 0).all(axis=1) & (cover == cover[:, :1]).all(axis=1)
    lowest = np.where(labels >= 0, labels, np.iinfo(np.int64).max).min(axis=1)
    return same, (labels.max(axis=1) > lowest) & (labels.max(axis=1) >= 0)
