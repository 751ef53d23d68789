"""Over all people who could exist: where the decision is the same whatever the sensitive columns are, and where not."""

from __future__ import annotations

import heapq
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from likewise.auditing.bounds.families import family_of
from likewise.auditing.bounds.regions import Regions, Split, divide, whole_domain
from likewise.auditing.bounds.table_layout import IntArray, TableLayout
from likewise.auditing.bounds.verifying.region_rules import count_points, describe, points_of, volumes
from likewise.auditing.bounds.verifying.sensitive_values import SensitiveValues
from likewise.core.arrays import FloatArray
from likewise.models.losses import ZeroOne

__all__ = ["Decider", "Flip", "Verification", "verify", "verify_family"]

_AT_ONCE = 512
# Regions with so few rows are looked at row by row.
_FEW_ROWS = 8
_EXAMPLES = 20


class Decider(Protocol):
    """A family that decides regions; `TreeFamily` and `NetworkFamily` are."""

    layout: TableLayout

    def state(self, n: int) -> Any:
        """State of n whole domains."""

    def decide(self, regions: Regions, state: Any) -> tuple[Any, FloatArray, Any]:
        """The one decision of each region or −1, how much each column matters, the state."""

    def decisions(self, values: FloatArray) -> Any:
        """The decision of rows, −1 where rounding leaves it open."""

    def cuts(self, regions: Regions, column: IntArray, values: FloatArray) -> Split:
        """Where to cut a column of each region."""


@dataclass(frozen=True, eq=False)
class Flip:
    """Two rows that differ in the sensitive columns alone and are decided differently.

    Parameters
    ----------
    first, second : float arrays of shape (d,)
        Encoded valid rows.
    decisions : tuple of int
        What is decided for each, as positions of classes.
    """

    first: FloatArray
    second: FloatArray
    decisions: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Verification:
    """What is known of the whole domain.

    Parameters
    ----------
    proved : float
        Share of the domain, sensitive columns aside, where every row keeps its decision whatever they are.
    flips : float
        Share where every row's decision depends on them.
    undecided : float
        The rest.
    people : tuple of float, optional
        The same three shares of the people who were given.
    examples : tuple of Flip
    rules : tuple of (float, str)
        The largest regions that flip: their share of the domain, and which rows they are.
    regions : int
        Regions looked at.
    seconds : float
        CPU time.
    """

    proved: float
    flips: float
    undecided: float
    people: tuple[float, float, float] | None
    examples: tuple[Flip, ...]
    rules: tuple[tuple[float, str], ...]
    regions: int
    seconds: float


def verify(
    model: Any,
    domain: Any,
    sensitive_features: Sequence[str],
    *,
    X: FloatArray | None = None,
    encoded: bool | None = None,
    seconds: float = 60.0,
    max_regions: int = 1_000_000,
) -> Verification:
    """Prove where a model's decision does not depend on the sensitive columns, over all rows that can exist.

    Parameters
    ----------
    model : Model, or anything that `as_model` takes
        A tree ensemble or a ReLU network.
    domain : TabularDomain or BoxDomain
    sensitive_features : sequence of str
        Columns of the domain; every combination of their values is looked at.
    X : float array of shape (n, d), optional
        People, encoded: the shares are then also given of them.
    encoded : bool, optional
        As in `family_of`.
    seconds : float, default=60
        CPU time.
    max_regions : int, default=1,000,000

    Returns
    -------
    Verification

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from likewise.domains import TabularDomain
    >>> people = pd.DataFrame({"age": [20, 30, 40, 50], "sex": ["f", "m", "f", "m"]})
    >>> domain = TabularDomain.from_frame(people)
    >>> tree = DecisionTreeClassifier().fit(domain.encode(people), [0, 0, 1, 1])
    >>> found = verify(tree, domain, ["sex"], encoded=True)
    >>> found.proved, found.flips
    (1.0, 0.0)
    """
    family = family_of(model, domain, loss=ZeroOne(), encoded=encoded)
    return verify_family(family, sensitive_features, X=X, seconds=seconds, max_regions=max_regions)


def verify_family(
    family: Decider,
    sensitive_features: Sequence[str],
    *,
    X: FloatArray | None = None,
    seconds: float = 60.0,
    max_regions: int = 1_000_000,
) -> Verification:
    """Do what `verify` does for a family that is at hand already.

    Parameters
    ----------
    family : Decider
    sensitive_features, X, seconds, max_regions
        As in `verify`.
    """
    work = _Verifying(family, SensitiveValues.of(family.layout, sensitive_features))
    clock = time.process_time()
    work.begin()
    while work.heap and time.process_time() - clock < seconds and work.looked < max_regions:
        work.advance()
    people = None if X is None else work.people(np.asarray(X, dtype=np.float64))
    left = float(sum(-volume for volume, *_ in work.heap)) + work.unknown
    # The three add up to 1 but for rounding; what is not settled is never claimed.
    proved, flips = min(1.0, work.proved), min(1.0, work.flipped)
    worst = sorted(work.rules, key=lambda rule: -rule[0])[:10]
    rules = tuple(
        (share, describe(family.layout, low, high, allowed, work.values.columns))
        for share, low, high, allowed in worst
    )
    return Verification(
        proved,
        flips,
        max(0.0, left),
        people,
        tuple(work.examples),
        rules,
        work.looked,
        time.process_time() - clock,
    )


class _Verifying:
    """Regions of all columns but the sensitive ones: the largest open one is cut first."""

    def __init__(self, family: Decider, values: SensitiveValues) -> None:
        self.family, self.layout, self.values = family, family.layout, values
        self.heap: list[tuple[float, int, Any]] = []
        self.proved = self.flipped = self.unknown = 0.0
        self.examples: list[Flip] = []
        self.rules: list[tuple[float, Any, Any, Any]] = []
        self.looked = 0
        self._counter = 0
        self._single = np.flatnonzero(values.single)

    def begin(self) -> None:
        """Look at the whole domain."""
        middle = np.array(
            [
                [
                    0.0 if c.categories else np.clip(np.floor((c.lower + c.upper) / 2), c.lower, c.upper)
                    for c in self.layout.columns
                ]
            ]
        )
        # Nothing is immutable here: all rows are asked about.
        whole = whole_domain(TableLayout(tuple(_free(c) for c in self.layout.columns)), middle)
        labels = np.full((1, len(self.values.low)), -1, dtype=np.int64)
        self._look(whole, labels, np.ones(1))

    def advance(self) -> None:
        """Cut the largest open regions."""
        taken = [
            heapq.heappop(self.heap)
            for _ in range(min(len(self.heap), max(1, _AT_ONCE // len(self.values.low))))
        ]
        parts = [node[2] for node in taken]
        regions = Regions(*(np.stack([part[k] for part in parts]) for k in range(3)))
        labels = np.stack([part[3] for part in parts])
        split = Split(*(np.stack([part[k] for part in parts]) for k in (4, 5, 6)))
        halves = divide(self.layout, regions, split)
        volume = volumes(self.layout, halves, self.values.columns)
        self._look(halves, np.concatenate([labels, labels]), volume)

    def _look(self, regions: Regions, labels: IntArray, volume: FloatArray) -> None:
        """Settle regions, or file them with where they will be cut."""
        self.looked += len(regions)
        labels = labels.copy()
        few = self._by_rows(regions, volume)
        row, part = np.nonzero((labels < 0) & ~few[:, None])
        importance = np.zeros((len(regions), self.layout.n_columns))
        if len(row):
            there = self.values.put(self.layout, regions.take(row), part)
            label, weight, _ = self.family.decide(there, self.family.state(len(row)))
            labels[row, part] = label
            unsure = label < 0
            np.maximum.at(importance, row[unsure], weight[unsure])
        cover = labels[:, self.values.covers]
        same = (cover >= 0).all(axis=1) & (cover == cover[:, :1]).all(axis=1) & ~few
        known = np.where(labels >= 0, labels, -1)
        highest = known.max(axis=1)
        lowest = np.where(labels >= 0, labels, np.iinfo(np.int64).max).min(axis=1)
        flips = (highest > lowest) & (highest >= 0) & ~few
        self.proved += float(volume[same].sum())
        self.flipped += float(volume[flips].sum())
        rest = np.flatnonzero(~same & ~flips & ~few)
        middle = _middles(self.layout, regions)
        for i in np.flatnonzero(flips):
            self.rules.append((float(volume[i]), regions.low[i], regions.high[i], regions.allowed[i]))
            self.rules = (
                sorted(self.rules, key=lambda rule: -rule[0])[:20] if len(self.rules) > 40 else self.rules
            )
        shown = np.concatenate([np.flatnonzero(flips), rest])
        if len(self.examples) < _EXAMPLES and len(shown):
            self._try_rows(middle[shown[:64]])
        self._file(regions.take(rest), labels[rest], volume[rest], importance[rest], middle[rest])

    def _file(
        self,
        regions: Regions,
        labels: IntArray,
        volume: FloatArray,
        importance: FloatArray,
        middle: FloatArray,
    ) -> None:
        open_columns = regions.high > regions.low
        for i in np.flatnonzero(self.layout.is_category):
            first, count = int(self.layout.offset[i]), int(self.layout.count[i])
            open_columns[:, i] = regions.allowed[:, first : first + count].sum(axis=1) > 1
        open_columns[:, self.values.columns] = False
        score = np.where(open_columns, np.maximum(importance, 1e-300), -1.0)
        column = score.argmax(axis=1)
        stuck = score[np.arange(len(column)), column] <= 0
        self.unknown += float(volume[stuck].sum())
        going = np.flatnonzero(~stuck)
        if not len(going):
            return
        part = regions.take(going)
        split = self.family.cuts(part, column[going], middle[going])
        for k, i in enumerate(going):
            self._counter += 1
            node = (
                part.low[k],
                part.high[k],
                part.allowed[k],
                labels[i],
                split.column[k],
                split.cut[k],
                split.left[k],
            )
            heapq.heappush(self.heap, (-float(volume[i]), self._counter, node))

    def _by_rows(self, regions: Regions, volume: FloatArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Settle regions of few rows row by row; return which they were."""
        count = count_points(self.layout, regions, self.values.columns)
        few = count <= _FEW_ROWS
        if not bool(self.values.single[self.values.covers].all()):
            few[:] = False
        at = np.flatnonzero(few)
        if not len(at):
            return few
        rows = [points_of(self.layout, regions.take([i]), self.values.columns) for i in at]
        sizes = np.array([len(part) for part in rows])
        labels = self._labels(np.concatenate(rows))
        share = np.repeat(volume[at] / sizes, sizes)
        unclear = (labels < 0).any(axis=1)
        known = np.where(labels < 0, labels.max(axis=1, keepdims=True), labels)
        flips = (known != known[:, :1]).any(axis=1)
        same = ~flips & ~unclear
        self.proved += float(share[same].sum())
        self.flipped += float(share[flips].sum())
        self.unknown += float(share[~same & ~flips].sum())
        if flips.any() and len(self.examples) < _EXAMPLES:
            self._try_rows(np.concatenate(rows)[np.flatnonzero(flips)[:8]])
        return few

    def _labels(self, rows: FloatArray) -> IntArray:
        """Decisions of rows under every single sensitive value, (m, s)."""
        size = len(self._single)
        every = np.repeat(rows, size, axis=0)
        every[:, self.values.columns] = np.tile(self.values.low[self._single], (len(rows), 1))
        return np.asarray(self.family.decisions(every), dtype=np.int64).reshape(len(rows), size)

    def _try_rows(self, rows: FloatArray) -> None:
        """Keep pairs of rows that show a flip."""
        labels = self._labels(rows)
        for i in range(len(rows)):
            sure = np.flatnonzero(labels[i] >= 0)
            if len(sure) < 2 or len(self.examples) >= _EXAMPLES:
                continue
            a, b = sure[labels[i][sure].argmin()], sure[labels[i][sure].argmax()]
            if labels[i, a] == labels[i, b]:
                continue
            pair = np.repeat(rows[i][None], 2, axis=0)
            pair[:, self.values.columns] = self.values.low[self._single[[a, b]]]
            first, second = self.layout.encode(pair)
            self.examples.append(Flip(first, second, (int(labels[i, a]), int(labels[i, b]))))

    def people(self, X: FloatArray) -> tuple[float, float, float]:
        """Shares of people whose decision is proved the same, flips, or is open."""
        own = self.layout.values(X)
        allowed = np.zeros((len(X), self.layout.n_categories), dtype=np.uint8)
        for i in np.flatnonzero(self.layout.is_category):
            allowed[np.arange(len(X)), self.layout.offset[i] + own[:, i].astype(np.int64)] = 1
        size = len(self.values.low)
        each = np.repeat(np.arange(len(X)), size)
        regions = Regions(own, own, allowed).take(each)
        there = self.values.put(self.layout, regions, np.tile(np.arange(size), len(X)))
        label, _, _ = self.family.decide(there, self.family.state(len(each)))
        labels = np.asarray(label).reshape(len(X), size)
        cover = labels[:, self.values.covers]
        same = (cover >= 0).all(axis=1) & (cover == cover[:, :1]).all(axis=1)
        lowest = np.where(labels >= 0, labels, np.iinfo(np.int64).max).min(axis=1)
        flips = (labels.max(axis=1) > lowest) & (labels.max(axis=1) >= 0)
        return float(same.mean()), float(flips.mean()), float((~same & ~flips).mean())


def _free(column: Any) -> Any:
    from dataclasses import replace

    return replace(column, immutable=False)


def _middles(layout: TableLayout, regions: Regions) -> FloatArray:
    """A row in the middle of each region: the first category that is left, the middle of every number."""
    middle = (regions.low + regions.high) / 2.0
    middle[:, layout.is_integer] = np.floor(middle[:, layout.is_integer])
    for i in np.flatnonzero(layout.is_category):
        first, count = int(layout.offset[i]), int(layout.count[i])
        middle[:, i] = regions.allowed[:, first : first + count].argmax(axis=1)
    return middle
