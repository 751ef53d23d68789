"""Which rows were judged comparable: in groups, or pair by pair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from likewise.core.checks import FloatArray, is_tensor, to_numpy
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import is_frame, to_pandas

# Rows per chunk: a few megabytes, so that centring and the product stay in cache.
_CHUNK_BYTES = 2**22


@dataclass(frozen=True)
class Groups:
    """Comparable rows, group after group."""

    order: Any
    starts: Any
    labels: Any
    named: bool

    @property
    def sizes(self) -> Any:
        """Number of rows of every group."""
        return np.diff(self.starts)

    def keep(self, chosen: Any) -> Groups:
        """Return the chosen groups only (a mask over the groups)."""
        if chosen.all():
            return self
        order = np.arange(self.starts[-1]) if self.order is None else self.order
        sizes = self.sizes
        return Groups(
            order[np.repeat(chosen, sizes)],
            np.concatenate([[0], np.cumsum(sizes[chosen])]),
            self.labels[chosen],
            self.named,
        )


def read_groups(owner: str, groups: Any, n: int, *, name: str = "groups") -> Groups:
    """Read labels (one per row; missing = in no group) or index lists (one list of row numbers per group)."""
    if is_tensor(groups):
        groups = to_numpy(groups)
    if is_frame(groups):
        groups = to_pandas(groups, owner=owner, name=name)
        if groups.shape[1] != 1:
            raise bad_parameter(owner, name, "one column of labels", f"{groups.shape[1]} columns")
        groups = groups.iloc[:, 0]
    if _are_lists(groups):
        return _from_lists(owner, groups, n, name)
    values = np.asarray(groups)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise bad_parameter(
            owner, name, "one label per row, or a list of index lists", f"shape {values.shape}"
        )
    labels = pd.Series(values)
    if len(labels) != n:
        raise InputError(
            f"{owner}: {name!r} has {len(labels)} labels, X has {n} rows. Pass one label per row, or a list of "
            "index lists."
        )
    if labels.dtype.kind == "f" and np.isinf(labels.to_numpy()).any():
        raise InputError(
            f"{owner}: Input {name} contains infinity or a value too large. Use None for no group."
        )
    codes, found = pd.factorize(labels, use_na_sentinel=True)
    names, known = np.asarray(found), codes >= 0
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes[known], minlength=len(names)))])
    if known.all() and (np.diff(codes) >= 0).all():
        return Groups(None, starts, names, True)
    return Groups(np.argsort(codes, kind="stable")[np.count_nonzero(~known) :], starts, names, True)


def _are_lists(groups: Any) -> bool:
    if isinstance(groups, np.ndarray) and groups.dtype != object:
        return groups.ndim == 2 and groups.shape[1] > 1
    if isinstance(groups, pd.Series) or not len(groups):
        return False
    first = groups[0]
    return not isinstance(first, (str, bytes)) and hasattr(first, "__len__") and np.ndim(first) == 1


def _from_lists(owner: str, lists: Any, n: int, name: str) -> Groups:
    parts = [np.asarray(to_numpy(part)) for part in lists]
    for i, part in enumerate(parts):
        if part.ndim != 1 or part.dtype.kind not in "iu":
            got = f"{part.dtype} of shape {part.shape} as group {i}"
            raise bad_parameter(owner, name, "labels, or lists of row numbers", got)
        if len(part) < 2:
            raise InputError(
                f"{owner}: group {i} has {len(part)} row(s). A group of comparable rows needs at least two; "
                "leave it out."
            )
        if part.min() < -n or part.max() >= n:
            raise InputError(f"{owner}: group {i} names row {part.max()}, but X has {n} rows (0 to {n - 1}).")
    order = np.concatenate(parts) % n
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    return Groups(order, starts, np.arange(len(parts)), False)


@dataclass(frozen=True)
class Chunk:
    """Some rows, centred at the means of their groups."""

    rows: FloatArray
    means: FloatArray
    first: int


def centred_chunks(X: FloatArray, groups: Groups) -> Iterator[Chunk]:
    """Yield rows centred per group, chunk by chunk, without a centred copy of X.

    Small groups share a chunk; a group larger than a chunk is read once for its mean and once more in
    pieces.
    """
    step = max(1, _CHUNK_BYTES // max(1, X.shape[1] * X.dtype.itemsize))
    starts, first, n_groups = groups.starts, 0, len(groups.labels)
    while first < n_groups:
        begin = int(starts[first])
        after = int(np.searchsorted(starts, begin + step, side="right")) - 1
        if after > first:
            rows = _take(X, groups, begin, int(starts[after]))
            yield Chunk(*_centre(rows, starts[first : after + 1] - begin), first)
            first = after
        else:
            yield from _large_group(X, groups, first, step)
            first += 1


def _large_group(X: FloatArray, groups: Groups, number: int, step: int) -> Iterator[Chunk]:
    begin, end = int(groups.starts[number]), int(groups.starts[number + 1])
    pieces = [(a, min(a + step, end)) for a in range(begin, end, step)]
    sums = [_take(X, groups, a, b).sum(0, dtype=np.float64) for a, b in pieces]
    means = (np.sum(sums, axis=0) / (end - begin))[None, :]
    for i, (a, b) in enumerate(pieces):
        rows = _take(X, groups, a, b) - means.astype(X.dtype)
        yield Chunk(rows, means if i == 0 else means[:0], number)


def _take(X: FloatArray, groups: Groups, begin: int, end: int) -> FloatArray:
    return X[begin:end] if groups.order is None else X[groups.order[begin:end]]


def _centre(rows: FloatArray, borders: Any) -> tuple[FloatArray, FloatArray]:
    """Centre consecutive groups of rows; return them and the means.

    The sums are in the dtype of the rows, which is fast, and so are not exact for means far from zero; what
    they miss is small, so a second round finds it to the last digit.
    """
    sizes = np.diff(borders)
    ones = np.ones(len(rows), dtype=rows.dtype)
    sums = csr_array((ones, np.arange(len(rows)), borders), shape=(len(sizes), len(rows)))
    counts = sizes.astype(rows.dtype)[:, None]
    first = (sums @ rows) / counts
    centred = rows - np.repeat(first, sizes, axis=0)
    second = (sums @ centred) / counts
    centred -= np.repeat(second, sizes, axis=0)
    return centred, first.astype(np.float64) + second


# Pairs of rows and whether they were judged comparable: given one by one, or following from groups.


@dataclass(frozen=True)
class Judgements:
    """Judged pairs."""

    first: Any
    second: Any
    comparable: FloatArray
    shares: FloatArray


def read_judgements(owner: str, pairs: Any, comparable: Any, n: int) -> Judgements:
    """Read pairs of row numbers and what was judged of each."""
    if comparable is None:
        raise InputError(
            f"{owner}: 'pairs' were given without judgements. Pass comparable=, one value per pair: True where "
            "the two rows are comparable."
        )
    rows = to_numpy(pairs)
    if rows.ndim != 2 or rows.shape[1:] != (2,) or rows.dtype.kind not in "iu":
        raise bad_parameter(
            owner,
            "pairs",
            "pairs of row numbers, shape (m, 2)",
            f"{rows.dtype} of shape {rows.shape}",
            "For two tables of paired rows call fit_pairs(first, second, comparable).",
        )
    if not len(rows):
        raise InputError(f"{owner}: 'pairs' is empty. Pass pairs of both kinds, comparable and not.")
    outside = np.flatnonzero(((rows < -n) | (rows >= n)).any(1))
    if len(outside):
        i = int(outside[0])
        raise InputError(
            f"{owner}: pair {i} is {tuple(rows[i].tolist())}, but X has {n} rows (0 to {n - 1}). "
            "Pass positions of rows, not labels of an index."
        )
    values = read_comparable(owner, comparable, len(rows))
    rows = rows % n
    return Judgements(rows[:, 0], rows[:, 1], values, np.full(len(rows), 1.0 / len(rows)))


def read_comparable(owner: str, comparable: Any, m: int) -> FloatArray:
    """Return the judgements as numbers in [0, 1], of both kinds."""
    name = "comparable"
    try:
        values = np.asarray(to_numpy(comparable), dtype=float)
    except (TypeError, ValueError) as error:
        raise bad_parameter(
            owner, name, "True or False per pair, or a share in [0, 1]", str(error)
        ) from error
    if values.shape != (m,):
        raise bad_parameter(owner, name, f"one judgement per pair ({m})", f"an array of shape {values.shape}")
    if not ((values >= 0) & (values <= 1)).all():
        i = int(np.argmin((values >= 0) & (values <= 1)))
        raise bad_parameter(
            owner,
            name,
            "True or False, or the share of judges in [0, 1]",
            f"{values[i]:g} at pair {i}",
            "Write −1/+1 as comparable > 0, and leave out pairs that nobody judged.",
        )
    if not ((values > 0).any() and (values < 1).any()):
        which = "comparable" if (values > 0).any() else "not comparable"
        raise InputError(
            f"{owner}: every pair was judged {which}, so one class of judgements is missing and no distance can "
            "be learned. Add pairs of the other kind."
        )
    return values


def judge_groups(owner: str, groups: Groups, max_pairs: int, rng: np.random.Generator) -> Judgements:
    """Judge rows of one group comparable and rows of different groups not, both kinds with half the weight.

    All pairs if there are at most `max_pairs` of them; else so many drawn at random, half of each kind.
    """
    sizes = groups.sizes
    rows = np.arange(groups.starts[-1]) if groups.order is None else groups.order
    if not (sizes >= 2).any():
        raise InputError(
            f"{owner}: every group has one row only, or one sample per class, so no two rows are comparable. "
            "Groups of two or more are needed."
        )
    if len(sizes) < 2:
        raise InputError(
            f"{owner}: there is one group only, one class, so no two rows are known not to be comparable. Pass "
            "two groups or more, or judged pairs."
        )
    m = len(rows)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    if m * (m - 1) // 2 <= max_pairs:
        first, second = np.triu_indices(m, 1)
    else:
        first, second = _draw(groups.starts, codes, max_pairs, rng)
    comparable = (codes[first] == codes[second]).astype(float)
    together = comparable.mean()
    shares = np.where(comparable == 1, 0.5 / together, 0.5 / (1.0 - together)) / len(first)
    return Judgements(rows[first], rows[second], comparable, shares)


def _draw(starts: Any, codes: Any, count: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Draw pairs inside groups, and as many across them, as positions in the grouped order."""
    sizes = np.diff(starts)
    half = max(1, count // 2)
    # Every comparable pair is equally likely, so a group is drawn by how many pairs it has.
    weights = sizes * (sizes - 1.0)
    group = rng.choice(len(sizes), size=half, p=weights / weights.sum())
    a = rng.integers(sizes[group])
    b = (a + 1 + rng.integers(sizes[group] - 1)) % sizes[group]
    # A row is drawn by how many rows the other groups have, then one of those.
    outside = (len(codes) - sizes).astype(float)[codes]
    left = rng.choice(len(codes), size=half, p=outside / outside.sum())
    own = codes[left]
    right = rng.integers(len(codes) - sizes[own])
    right = np.where(right < starts[:-1][own], right, right + sizes[own])
    return np.concatenate([starts[:-1][group] + a, left]), np.concatenate([starts[:-1][group] + b, right])
