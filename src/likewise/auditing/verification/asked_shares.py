"""Shares that rest on asking the model: of the people of a table, and of random rows of the whole domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from likewise.auditing.bounds.regions import Regions, TableLayout
from likewise.auditing.problem import AuditProblem
from likewise.auditing.results.sensitive import sensitive_twins
from likewise.core.checks import BoolArray, FloatArray, IntArray
from likewise.core.errors import InputError, bad_parameter
from likewise.core.intervals import share_limits

# All values that the sensitive columns can take, as parts of a domain.


_FEW = 16
_PIECES = 8
_MOST = 512
# Combinations of single values that a model is asked about, at most; a whole number with up to so many values is asked
# about at each of them, another number at so many points.
_MOST_ASKED, _ALL_WHOLE, _POINTS = 1000, 128, 33


@dataclass(frozen=True, eq=False)
class SensitiveValues:
    """Every combination of the sensitive columns: single values, and pieces of numbers that have many."""

    columns: IntArray
    low: FloatArray
    high: FloatArray
    covers: np.ndarray[Any, np.dtype[np.bool_]]
    asked: FloatArray
    complete: bool

    @classmethod
    def of(cls, layout: TableLayout, names: Sequence[str]) -> SensitiveValues:
        """List the combinations."""
        known = [column.name for column in layout.columns]
        wrong = [name for name in names if name not in known]
        if wrong or not names or isinstance(names, str):
            raise bad_parameter(
                "verify",
                "sensitive_features",
                allowed=f"a list of columns of the domain: {', '.join(known[:12])}",
                got=wrong[0] if wrong else names,
            )
        parts = [_parts(layout, known.index(name)) for name in names]
        every = list(product(*parts))
        if len(every) > _MOST:
            raise InputError(
                f"verify: the sensitive columns have {len(every)} combinations, at most {_MOST} are looked at. "
                "Name fewer columns."
            )
        low = np.array([[part[0] for part in one] for one in every])
        high = np.array([[part[1] for part in one] for one in every])
        covers = np.array([all(part[2] for part in one) for one in every])
        columns = np.array([known.index(name) for name in names])
        return cls(columns, low, high, covers, *_asked(layout, columns))

    def rows(self, rows: FloatArray) -> FloatArray:
        """Return rows of values under every combination that is asked about, (n · A, P)."""
        every = np.repeat(rows, len(self.asked), axis=0)
        every[:, self.columns] = np.tile(self.asked, (len(rows), 1))
        return every

    def put(self, layout: TableLayout, regions: Regions, which: IntArray) -> Regions:
        """Return regions with their sensitive columns at combinations; one of each."""
        low, high, allowed = regions.low.copy(), regions.high.copy(), regions.allowed.copy()
        for k, column in enumerate(self.columns):
            if not layout.is_category[column]:
                low[:, column], high[:, column] = self.low[which, k], self.high[which, k]
                continue
            first, count = int(layout.offset[column]), int(layout.count[column])
            codes = self.low[which, k]
            allowed[:, first : first + count] = np.arange(count)[None, :] == codes[:, None]
        return Regions(low, high, allowed)


def _asked(layout: TableLayout, columns: IntArray) -> tuple[FloatArray, bool]:
    """Single values to ask about, and whether they are all that can exist."""
    options, complete = [], True
    for column in (layout.columns[i] for i in columns):
        if column.categories:
            options.append(np.arange(float(len(column.categories))))
        elif column.kind == "integer" and np.floor(column.upper) - np.ceil(column.lower) < _ALL_WHOLE:
            options.append(np.arange(np.ceil(column.lower), np.floor(column.upper) + 1.0))
        else:
            points = np.linspace(column.lower, column.upper, _POINTS)
            options.append(np.unique(np.floor(points)) if column.kind == "integer" else np.unique(points))
            complete = complete and len(options[-1]) == 1
    while prod(map(len, options)) > _MOST_ASKED:
        complete = False
        longest = int(np.argmax([len(part) for part in options]))
        options[longest] = np.append(options[longest][:-1:2], options[longest][-1])
    return np.array(list(product(*options)), dtype=np.float64), complete


def _parts(layout: TableLayout, column: int) -> list[tuple[float, float, bool]]:
    known = layout.columns[column]
    if known.categories:
        return [(float(code), float(code), True) for code in range(len(known.categories))]
    if not (np.isfinite(known.lower) and np.isfinite(known.upper)):
        raise InputError(
            f"verify: the sensitive column {known.name!r} has no bounded range. Give the domain one."
        )
    if known.kind == "integer" and known.upper - known.lower < _FEW:
        whole = np.arange(np.ceil(known.lower), np.floor(known.upper) + 1)
        return [(float(value), float(value), True) for value in whole]
    edges = np.linspace(known.lower, known.upper, _PIECES + 1)
    if known.kind == "integer":
        edges = np.floor(edges)
        pieces = [(float(a) + (i > 0), float(b), True) for i, (a, b) in enumerate(pairwise(edges))]
    else:
        pieces = [(float(a), float(b), True) for a, b in pairwise(edges)]
    # Single values besides: two of them with different decisions show a flip that a wide piece would hide.
    ends = [(known.lower, known.lower, False), (known.upper, known.upper, False)]
    return [*pieces, *ends]


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
    """Two rows that differ in the sensitive columns alone and are decided differently."""

    first: FloatArray
    second: FloatArray
    decisions: tuple[int, int]
    person: int | None = None


class FlipExamples:
    """Collects pairs of rows that flip, each once."""

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


# Rows that a model is asked about for a sampled share; rows of the sample, at least; rows asked about at once.
_ASKED, _LEAST, _BATCH = 60_000, 300, 16_384
# Rows whose regions are decided at once.
_AT_ONCE = 512


class Sampled(NamedTuple):
    """Share of all rows of a domain whose decision depends on the sensitive columns, from a random sample."""

    share: float
    low: float
    high: float
    rows: int


def uniform_rows(layout: TableLayout, rng: np.random.Generator, count: int) -> FloatArray:
    """Rows of a domain drawn uniformly, (count, P): every value of a column as likely as every other."""
    rows = np.empty((count, layout.n_columns))
    for i, column in enumerate(layout.columns):
        if column.categories:
            rows[:, i] = rng.integers(len(column.categories), size=count)
        elif column.kind == "integer":
            low, high = np.ceil(column.lower), np.floor(column.upper)
            rows[:, i] = low + np.minimum(np.floor(rng.random(count) * (high - low + 1.0)), high - low)
        else:
            rows[:, i] = rng.uniform(column.lower, column.upper, size=count)
    return rows


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
    at_once = max(1, _BATCH // size)
    flips = unknown = 0
    for first in range(0, count, at_once):
        rows = uniform_rows(layout, rng, min(at_once, count - first))
        labels = np.asarray(decide(values.rows(rows)), dtype=np.int64).reshape(len(rows), size)
        _, flip = settled(labels, np.ones(size, dtype=bool))
        flips += int(flip.sum())
        rest = np.flatnonzero(~flip & ((labels < 0).any(axis=1) | (not values.complete)))
        unknown += int((~same(rows[rest])).sum()) if same is not None and len(rest) else len(rest)
        if on_progress is not None and flip.any():
            on_progress(rows[flip], labels[flip])
    low, _ = share_limits(flips, count, confidence=0.95)
    _, high = share_limits(flips + unknown, count, confidence=0.95)
    return Sampled(flips / count, float(low), float(high), count)


def changed_people(
    problem: AuditProblem, same: Callable[[FloatArray], BoolArray] | None, values: FloatArray
) -> tuple[BoolArray, BoolArray]:
    """Whose decision is the same for all sensitive values, and whose is not, (n,) each; as an audit counts them."""
    found = sensitive_twins(problem)
    if found is None:
        return np.ones(problem.n, dtype=bool), np.zeros(problem.n, dtype=bool)
    kept = ~found.changed
    if not found.exact:
        kept[kept] = same(values[kept]) if same is not None and kept.any() else False
    return kept, found.changed


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
