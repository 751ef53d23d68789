"""Trees in terms of a table's columns: every split an exact cut of the values that can exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.bounds.family import Components
from likewise.auditing.bounds.regions import ByteArray, TableLayout, everything, not_linear
from likewise.core.checks import FloatArray, IntArray
from likewise.core.errors import InputError
from likewise.data.curve import Curve
from likewise.models.table_features import TableFeature
from likewise.models.tree_ensemble import TreeEnsemble

# How a model's features come from the columns of a domain: what each value of a column becomes.


@dataclass(frozen=True, eq=False)
class FeatureSource:
    """One feature of a model as a function of one column."""

    column: int
    mean: float = 0.0
    scale: float = 1.0
    table: FloatArray | None = None
    curve: Curve | None = None

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return the feature for values of the column."""
        if self.table is not None:
            return np.asarray(self.table[np.asarray(values, dtype=np.int64)])
        values = np.asarray(values, dtype=np.float64) if self.curve is None else self.curve(values)
        if self.mean == 0.0 and self.scale == 1.0:
            return values
        # The largest numbers there are may become infinite here, which lies on the same side of every threshold.
        with np.errstate(over="ignore"):
            return np.asarray((values - self.mean) / self.scale)


def encoded_sources(layout: TableLayout) -> tuple[FeatureSource, ...]:
    """Sources of a model that sees encoded rows: feature j is the encoded column j."""
    sources: list[FeatureSource] = []
    for i, column in enumerate(layout.columns):
        if column.kind != "categorical":
            sources.append(FeatureSource(i, column.mean, column.scale, curve=column.curve))
        elif column.is_binary:
            sources.append(FeatureSource(i, table=np.array([0.0, 1.0])))
        else:
            sources += [FeatureSource(i, table=row) for row in np.eye(len(column.categories))]
    return tuple(sources)


def raw_sources(
    layout: TableLayout, names: Sequence[str] | None, categories: Mapping[int, Sequence[Any]] = {}
) -> tuple[FeatureSource, ...]:
    """Sources of a model that sees the table itself, its categories by the model's own codes or as the numbers they are."""
    known = {column.name: i for i, column in enumerate(layout.columns)}
    if names is None:
        raise InputError("bounds: the model does not know the names of its columns. Pass them as 'names'.")
    sources = []
    for j, name in enumerate(names):
        if name not in known:
            raise InputError(
                f"bounds: the model's column {name!r} is none of the domain's: {list(known)[:12]}."
            )
        column = layout.columns[known[name]]
        if column.kind != "categorical":
            sources.append(FeatureSource(known[name]))
            continue
        sources.append(FeatureSource(known[name], table=_codes(column.categories, categories.get(j), name)))
    return tuple(sources)


def pipeline_sources(layout: TableLayout, features: Sequence[TableFeature]) -> tuple[FeatureSource, ...]:
    """Sources of a model behind the encoders and scalers of a pipeline."""
    known = {column.name: i for i, column in enumerate(layout.columns)}
    sources = []
    for feature in features:
        if feature.column not in known:
            raise InputError(f"bounds: the pipeline's column {feature.column!r} is none of the domain's.")
        table = None if feature.answers is None else np.asarray(feature.answers, dtype=np.float64)
        sources.append(FeatureSource(known[feature.column], feature.mean, feature.scale, table))
    return tuple(sources)


def affine_of(layout: TableLayout, sources: Sequence[FeatureSource]) -> tuple[FloatArray, FloatArray]:
    """Return A (F, d) and c (F,) with feature = A x + c of an encoded row x."""
    matrix, shift = np.zeros((len(sources), layout.width)), np.zeros(len(sources))
    for j, source in enumerate(sources):
        column = layout.columns[source.column]
        if source.table is None:
            if source.curve != column.curve:
                raise InputError(not_linear(column))
            matrix[j, column.start] = column.scale / source.scale
            shift[j] = (column.mean - source.mean) / source.scale
        elif column.is_binary:
            matrix[j, column.start] = source.table[1] - source.table[0]
            shift[j] = source.table[0]
        else:
            matrix[j, column.slice] = source.table
    return matrix, shift


def _codes(categories: Sequence[Any], codes: Sequence[Any] | None, name: str) -> FloatArray:
    if codes is not None:
        places = {value: float(code) for code, value in enumerate(codes)}
        return np.array([places.get(category, np.nan) for category in categories])
    try:
        return np.array([float(category) for category in categories])
    except (TypeError, ValueError):
        raise InputError(
            f"bounds: the domain's column {name!r} has categories, and the model does not say their codes. "
            "Pass a model of encoded rows."
        ) from None


@dataclass(frozen=True, eq=False)
class TableTrees:
    """Nodes of all trees over the columns of a layout."""

    roots: IntArray
    left: IntArray
    right: IntArray
    column: IntArray
    cut: FloatArray
    group: IntArray
    goes_left: ByteArray
    values: FloatArray
    peak: FloatArray
    base: FloatArray
    slack: float

    @classmethod
    def of(
        cls, trees: TreeEnsemble, layout: TableLayout, sources: Sequence[FeatureSource], parts: Components
    ) -> TableTrees:
        """Translate an ensemble."""
        if len(sources) != trees.n_features:
            raise InputError(
                f"bounds: the trees have {trees.n_features} features, {len(sources)} were described."
            )
        inner = np.flatnonzero(trees.left >= 0)
        column = np.zeros(len(trees.left), dtype=np.int64)
        column[inner] = [sources[j].column for j in trees.feature[inner]]
        cut = np.zeros(len(trees.left))
        group = np.full(len(trees.left), -1, dtype=np.int64)
        masks: list[ByteArray] = []
        for node in inner:
            if layout.is_category[column[node]]:
                group[node] = len(masks)
                mask, codes = np.zeros(layout.n_categories, np.uint8), np.arange(layout.count[column[node]])
                source = sources[trees.feature[node]]
                mask[layout.its(column[node])] = trees.goes_left(int(node), source(codes.astype(np.float64)))
                masks.append(mask)
        on_codes = inner[(group[inner] < 0) & (trees.last[inner] > trees.first[inner])]
        if len(on_codes):
            name = layout.columns[column[on_codes[0]]].name
            raise InputError(
                f"bounds: the model splits {name!r} by categories, and the domain calls it a number. "
                "Call it categorical in the domain."
            )
        for j, source in enumerate(sources):
            nodes = inner[(trees.feature[inner] == j) & (group[inner] < 0)]
            if len(nodes):
                cut[nodes] = _cuts(trees, nodes, layout, source)
        values = np.einsum("nc,lck->lnk", trees.values, parts.mixing)
        # One output enters a component with weight at most 1 in each sign, so at most two rounded sums do.
        slack = trees.slack * float(np.abs(parts.mixing).sum(axis=1).max())
        return cls(
            trees.roots,
            trees.left,
            trees.right,
            column,
            cut,
            group,
            np.array(masks, dtype=np.uint8).reshape(len(masks), layout.n_categories),
            values,
            peaks(trees.left, trees.right, values),
            np.einsum("c,lck->lk", trees.base, parts.mixing),
            slack,
        )

    def thresholds(self, layout: TableLayout) -> dict[str, list[float]]:
        """Cuts of every number by name, for a search that steps over them."""
        used = (self.left >= 0) & (self.group < 0) & np.isfinite(self.cut)
        return {
            column.name: np.unique(self.cut[used & (self.column == i)]).tolist()
            for i, column in enumerate(layout.columns)
            if column.kind != "categorical"
        }

    def split_rows(
        self, layout: TableLayout, base: FloatArray, rng: np.random.Generator, most: int
    ) -> FloatArray:
        """Rows on both sides of splits that they reach, the cut and the next value, every category; and rows in leaves."""
        inner = np.flatnonzero(self.left >= 0)
        if not len(inner) or not len(base):
            return np.zeros((0, layout.n_columns))
        each = max(2.0, float(np.where(self.group[inner] >= 0, layout.count[self.column[inner]], 2).mean()))
        nodes = rng.permutation(inner)[: max(1, int(most / each))]
        nodes, rows, low, high, allowed = self._rows_at(layout, nodes, base, rng)
        leaves = rng.permutation(np.flatnonzero(self.left < 0))
        found = [self._rows_at(layout, np.resize(leaves, min(16 * len(leaves), most // 8)), base, rng)[1]]
        column, cut = self.column[nodes], self.cut[nodes]
        at = np.arange(len(nodes))
        after = np.where(layout.is_integer[column], cut + 1.0, np.nextafter(cut, np.inf))
        numbers = self.group[nodes] < 0
        for value in (cut, after):
            fits = numbers & (value >= low[at, column]) & (value <= high[at, column])
            part = rows[fits].copy()
            part[np.arange(len(part)), column[fits]] = value[fits]
            found.append(part)
        for code in range(int(layout.count.max(initial=0))):
            place = np.minimum(layout.offset[column] + code, max(layout.n_categories - 1, 0))
            fits = ~numbers & (code < layout.count[column])
            fits[fits] = allowed[at[fits], place[fits]] != 0
            part = rows[fits].copy()
            part[np.arange(len(part)), column[fits]] = float(code)
            found.append(part)
        return np.concatenate(found)

    def _rows_at(
        self, layout: TableLayout, nodes: IntArray, base: FloatArray, rng: np.random.Generator
    ) -> Any:
        """Nodes that rows can reach, with somebody's row moved to each, and the part of the domain that reaches it."""
        low, high, allowed, possible = self._paths(layout, nodes)
        nodes, low, high, allowed = nodes[possible], low[possible], high[possible], allowed[possible]
        rows = np.clip(base[rng.integers(len(base), size=len(nodes))], low, high)
        for i in np.flatnonzero(layout.is_category):
            at = allowed[:, layout.its(i)] != 0
            kept = at[np.arange(len(rows)), rows[:, i].astype(np.int64)] & (rng.random(len(rows)) < 0.5)
            rows[:, i] = np.where(kept, rows[:, i], (rng.random(at.shape) * at).argmax(axis=1))
        return nodes, rows, low, high, allowed

    def _paths(self, layout: TableLayout, nodes: IntArray) -> tuple[FloatArray, FloatArray, ByteArray, Any]:
        """The part of the domain that reaches each node, and whether there is any."""
        parent = np.full(len(self.left), -1, dtype=np.int64)
        inner = np.flatnonzero(self.left >= 0)
        went_left = np.zeros(len(self.left), dtype=bool)
        parent[self.right[inner]] = inner
        # Of a node with several parents any one will do.
        parent[self.left[inner]], went_left[self.left[inner]] = inner, True
        whole = everything(layout).take(np.zeros(len(nodes), dtype=np.int64))
        low, high, allowed = whole.low, whole.high, whole.allowed
        owner = np.repeat(np.arange(layout.n_columns), layout.count)
        at = nodes.copy()
        while (at >= 0).any():
            going = np.flatnonzero((at >= 0) & (parent[at] >= 0))
            if not len(going):
                break
            above, left = parent[at[going]], went_left[at[going]]
            column, cut, group = self.column[above], self.cut[above], self.group[above]
            after = np.where(layout.is_integer[column], cut + 1.0, np.nextafter(cut, np.inf))
            number = group < 0
            i, c = going[number & left], column[number & left]
            high[i, c] = np.minimum(high[i, c], cut[number & left])
            i, c = going[number & ~left], column[number & ~left]
            low[i, c] = np.maximum(low[i, c], after[number & ~left])
            for row, g, own, side in zip(
                going[~number], group[~number], column[~number], left[~number], strict=True
            ):
                goes = self.goes_left[g] != 0
                allowed[row] &= (owner != own) | (goes if side else ~goes)
            at[going] = above
            at[np.setdiff1d(np.arange(len(at)), going)] = -1
        possible = (low <= high).all(axis=1)
        for p in np.flatnonzero(layout.is_category):
            possible &= allowed[:, layout.its(p)].any(axis=1)
        return low, high, allowed, possible


def _cuts(trees: TreeEnsemble, nodes: IntArray, layout: TableLayout, source: FeatureSource) -> FloatArray:
    """The last value of a number that each node sends left, by bisection over the values that can exist."""
    column = layout.columns[source.column]
    whole = column.kind == "integer"

    def left(at: IntArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        values = at.astype(np.float64) if whole else _from_order(at)
        return trees._goes_left(nodes, source(values))

    edge = 2**52 if whole else int(_order(np.array([np.finfo(np.float64).max]))[0])
    low, high = np.full(len(nodes), -edge, dtype=np.int64), np.full(len(nodes), edge, dtype=np.int64)
    none, every = ~left(low), left(high)
    while (high - 1 > low).any():
        middle = low // 2 + high // 2 + (low % 2 + high % 2) // 2
        goes = left(middle)
        low, high = np.where(goes, middle, low), np.where(goes, high, middle)
    found = low.astype(np.float64) if whole else _from_order(low)
    return np.where(none, -np.inf, np.where(every, np.inf, found))


def _order(values: FloatArray) -> IntArray:
    """Doubles as integers in the same order."""
    bits = values.view(np.int64)
    return np.where(bits >= 0, bits, np.int64(-(2**63)) - bits)


def _from_order(order: IntArray) -> FloatArray:
    return np.where(order >= 0, order, np.int64(-(2**63)) - order).view(np.float64)


def peaks(left: Any, right: Any, values: FloatArray) -> FloatArray:
    """The highest leaf below each node; nodes may be shared, so each is looked at once, after its children."""
    peak = np.where((left < 0)[None, :, None], values, -np.inf)
    known = left < 0
    while not known.all():
        ready = np.flatnonzero(~known)
        ready = ready[known[left[ready]] & known[right[ready]]]
        if not len(ready):
            break
        peak[:, ready] = np.maximum(peak[:, left[ready]], peak[:, right[ready]])
        known[ready] = True
    return peak
