"""Groups of comparable rows: labels or index lists become one sorted list of row numbers with borders."""

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
            raise bad_parameter(owner, name, allowed="one column of labels", got=f"{groups.shape[1]} columns")
        groups = groups.iloc[:, 0]
    if _are_lists(groups):
        return _from_lists(owner, groups, n, name)
    values = np.asarray(groups)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise bad_parameter(
            owner, name, allowed="one label per row, or a list of index lists", got=f"shape {values.shape}"
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
    codes, names = pd.factorize(labels, use_na_sentinel=True)
    return _from_codes(codes, np.asarray(names))


def _are_lists(groups: Any) -> bool:
    if isinstance(groups, np.ndarray) and groups.dtype != object:
        return groups.ndim == 2 and groups.shape[1] > 1
    if isinstance(groups, pd.Series) or not len(groups):
        return False
    first = groups[0]
    return not isinstance(first, (str, bytes)) and hasattr(first, "__len__") and np.ndim(first) == 1


def _from_codes(codes: Any, names: Any) -> Groups:
    known = codes >= 0
    counts = np.bincount(codes[known], minlength=len(names))
    starts = np.concatenate([[0], np.cumsum(counts)])
    if known.all() and (np.diff(codes) >= 0).all():
        return Groups(None, starts, names, True)
    order = np.argsort(codes, kind="stable")[np.count_nonzero(~known) :]
    return Groups(order, starts, names, True)


def _from_lists(owner: str, lists: Any, n: int, name: str) -> Groups:
    parts = [np.asarray(to_numpy(part)) for part in lists]
    for i, part in enumerate(parts):
        if part.ndim != 1 or part.dtype.kind not in "iu":
            raise bad_parameter(
                owner,
                name,
                allowed="labels, or lists of row numbers",
                got=f"{part.dtype} of shape {part.shape} as group {i}",
            )
        if len(part) < 2:
            raise InputError(
                f"{owner}: group {i} has {len(part)} row(s). A group of comparable rows needs at least two; "
                "leave it out."
            )
        if len(part) and (part.min() < -n or part.max() >= n):
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

    Small groups travel together; a group larger than a chunk is read once for its mean and once more in
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
