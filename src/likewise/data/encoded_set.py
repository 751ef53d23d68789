"""Encoded rows: read, held to constants, and projected: boxes for numbers and binary columns, simplices for categories."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from likewise.core.checks import FloatArray, IntArray, is_tensor, like, namespace, to_numpy
from likewise.core.errors import InputError
from likewise.core.frames import is_frame, to_pandas
from likewise.data.column import Column


def as_rows(X: Any, n_features: int | None, *, owner: str, name: str = "X") -> Any:
    """Return encoded rows as a floating array or tensor of the right width, without looking at the values."""
    if not isinstance(X, np.ndarray) and not is_tensor(X):
        X = to_pandas(X, owner=owner, name=name).to_numpy() if is_frame(X) else np.asarray(X, dtype=float)
    X = like(X, X)
    if X.ndim < 2:
        raise InputError(
            f"{owner}: {name!r} must have one row per person, got an array of shape {tuple(X.shape)}. "
            "Reshape one row with X.reshape(1, -1)."
        )
    if n_features is not None and X.shape[-1] != n_features:
        raise InputError(
            f"{owner}: {name!r} has {X.shape[-1]} columns, the domain has {n_features}. "
            "Pass rows in the encoding that the domain was made for."
        )
    return X


def put_back(X: Any, origin: Any, index: Any, *, owner: str) -> Any:
    """Write the origin's values into the coordinates `index` of X, in place, and return X."""
    origin = as_rows(origin, X.shape[-1], owner=owner, name="origin")
    if origin.shape != X.shape:
        raise InputError(
            f"{owner}: 'origin' has {origin.shape[0]} rows, 'X' has {X.shape[0]}. "
            "Pass the row that each row started from."
        )
    X[..., index] = like(origin if is_tensor(origin) == is_tensor(X) else to_numpy(origin), X)[..., index]
    return X


def clip(X: Any, lower: Any, upper: Any) -> Any:
    """Clip rows of any library to bounds of the same kind; what is not a number stays so."""
    return namespace(X).clip(X, lower, upper)


# Constants of a domain, converted once to every kind of array that a search may use.


class Constants:
    """Named arrays that are converted once for each library, dtype and device they are asked in.

    `project` runs at every step of every search: converting bounds and indices anew each time would cost
    more than the projection of a small batch.
    """

    def __init__(self, **arrays: np.ndarray[Any, Any]) -> None:
        self._arrays = arrays
        self._ready: dict[Any, dict[str, Any]] = {}

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        return self._arrays[name]

    def like(self, reference: Any) -> dict[str, Any]:
        """Return the arrays as the kind `reference` is; integer arrays stay integer."""
        key = (reference.dtype, reference.device) if is_tensor(reference) else reference.dtype
        if key not in self._ready:
            self._ready[key] = {name: _convert(values, reference) for name, values in self._arrays.items()}
        return self._ready[key]

    def __getstate__(self) -> dict[str, Any]:
        return {"_arrays": self._arrays, "_ready": {}}


def _convert(values: np.ndarray[Any, Any], reference: Any) -> Any:
    if values.dtype.kind == "f":
        return like(values, reference)
    if is_tensor(reference):
        return sys.modules["torch"].as_tensor(values, device=reference.device)
    return values


def on_numpy(x: Any) -> np.ndarray[Any, Any] | None:
    """Return the memory of a plain CPU tensor as a numpy array without a copy; None if that cannot be.

    numpy costs a fraction of torch's overhead per operation, which dominates on batches of a thousand rows.
    A tensor that takes part in a gradient, lives elsewhere, or has a dtype numpy lacks stays with torch.
    """
    torch = sys.modules["torch"]
    plain = (
        x.device.type == "cpu"
        and x.layout == torch.strided
        and not (x.requires_grad and torch.is_grad_enabled())
    )
    if not plain or x.dtype not in (torch.float32, torch.float64) or torch.compiler.is_compiling():
        return None
    view: np.ndarray[Any, Any] = x.detach().numpy()
    return view


# Euclidean projection onto the probability simplex: where a one-hot column may be during a search.


# Measured: beyond this width one sort per vector beats the network's k log² k comparisons.
_WIDEST_NETWORK = 32


def project_simplex(X: Any) -> Any:
    """Project every vector along the last axis onto the simplex."""
    if is_tensor(X):
        sums = X.sort(dim=-1, descending=True).values.cumsum(-1) - 1
        ranks = X.new_ones(X.shape[-1]).cumsum(-1)
        return (X - (sums / ranks).amax(-1, keepdim=True)).clamp(min=0)
    sums = np.cumsum(np.sort(X, axis=-1)[..., ::-1], axis=-1) - 1
    ranks = np.arange(1, X.shape[-1] + 1, dtype=X.dtype)
    return np.maximum(X - (sums / ranks).max(axis=-1, keepdims=True), 0)


def project_simplex_columns(X: FloatArray) -> None:
    """Project many vectors held as columns, in place: the same as `project_simplex`, several times faster."""
    k = X.shape[-2]
    if k > _WIDEST_NETWORK:
        X[...] = project_simplex(X.swapaxes(-1, -2)).swapaxes(-1, -2)
        return
    rows = list(np.array(np.moveaxis(X, -2, 0), order="C"))
    spare = np.empty_like(rows[0])
    # A network compares the same positions in every vector, so each comparison is one call on whole rows.
    for i, j in _sorting_network(k):
        np.maximum(rows[i], rows[j], out=spare)
        np.minimum(rows[i], rows[j], out=rows[j])
        rows[i], spare = spare, rows[i]
    total = rows[0] - 1
    theta = total.copy()
    for j in range(1, k):
        total += rows[j]
        np.divide(total, X.dtype.type(j + 1), out=spare)
        np.maximum(theta, spare, out=theta)
    X -= theta[..., None, :]
    np.maximum(X, 0, out=X)


@lru_cache(maxsize=64)
def _sorting_network(k: int) -> tuple[tuple[int, int], ...]:
    """Comparators of Batcher's odd-even merge sort for k entries (Knuth, TAOCP 3, algorithm 5.2.2M)."""
    pairs: list[tuple[int, int]] = []
    block = 1
    while block < k:
        gap = block
        while gap:
            starts = (i for first in range(gap % block, k - gap, 2 * gap) for i in range(first, first + gap))
            pairs += [
                (i, i + gap) for i in starts if i + gap < k and i // (2 * block) == (i + gap) // (2 * block)
            ]
            gap //= 2
        block *= 2
    return tuple(pairs)


# Measured: from here on the column-wise way wins; so many bytes of it stay in a core's cache.
_MANY_ROWS = 400
_CACHE_BYTES = 2**19


@dataclass(frozen=True)
class _Simplices:
    """Categorical columns of one width: `count` simplices of `width` coordinates at the positions `key`."""

    key: str
    count: int
    width: int
    immutable: bool


class EncodedSet:
    """Geometry of an encoded table, worked out once."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.lower, self.upper = _box(columns)
        box_lower, box_upper = self.lower.copy(), self.upper.copy()
        groups: dict[tuple[int, bool], list[Column]] = {}
        for column in columns:
            if len(column.categories) > 2:
                # Clipping a coordinate of a simplex first would not give the nearest point of the simplex.
                box_lower[column.slice], box_upper[column.slice] = -np.inf, np.inf
                groups.setdefault((column.width, column.immutable), []).append(column)
        whole = [c for c in columns if c.kind == "integer" and c.curve is None]
        self._curved = [c for c in columns if c.kind == "integer" and c.curve is not None]
        self._whole = np.array([[c.mean, c.scale, c.lower, c.upper] for c in whole]).reshape(-1, 4).T
        arrays = {
            "box_lower": box_lower,
            "box_upper": box_upper,
            "fixed": _positions([c for c in columns if c.immutable]),
            "binary": _positions([c for c in columns if c.is_binary]),
            "whole": _positions(whole),
        }
        self._simplices = []
        for (width, immutable), members in groups.items():
            key = f"simplices_{width}_{immutable}"
            arrays[key] = _positions(members)
            self._simplices.append(_Simplices(key, len(members), width, immutable))
        self._constants = Constants(**arrays)

    def project(self, X: Any, origin: Any = None) -> Any:
        """Euclidean projection of every row (the set is a product, so each part is projected by itself)."""
        if is_tensor(X) and (plain := on_numpy(X)) is not None:
            return _tensor(self.project(plain, None if origin is None else to_numpy(origin)))
        held = origin is not None and len(self._constants["fixed"]) > 0
        simplices = [group for group in self._simplices if not (held and group.immutable)]
        many = not is_tensor(X) and X.ndim == 2 and len(X) >= _MANY_ROWS
        inside = self._project_many(X, simplices) if many else self._project_few(X, simplices)
        if held:
            put_back(inside, origin, self._constants.like(X)["fixed"], owner="TabularDomain.project")
        return inside

    def _project_few(self, X: Any, simplices: Sequence[_Simplices]) -> Any:
        ready = self._constants.like(X)
        inside = clip(X, ready["box_lower"], ready["box_upper"])
        for group in simplices:
            index = ready[group.key]
            part = X[..., index].reshape(*X.shape[:-1], group.count, group.width)
            inside[..., index] = project_simplex(part).reshape(*X.shape[:-1], -1)
        return inside

    def _project_many(self, X: FloatArray, simplices: Sequence[_Simplices]) -> FloatArray:
        """Blocks of rows, turned on their side so that every coordinate is one run of memory."""
        ready = self._constants.like(X)
        lower, upper = ready["box_lower"][:, None], ready["box_upper"][:, None]
        inside = np.empty(X.shape, dtype=X.dtype)
        step = max(_MANY_ROWS, _CACHE_BYTES // (X.shape[1] * X.itemsize))
        for start in range(0, len(X), step):
            block = np.array(X[start : start + step].T, order="C")
            np.maximum(block, lower, out=block)
            np.minimum(block, upper, out=block)
            for group in simplices:
                index = ready[group.key]
                part = block[index].reshape(group.count, group.width, -1)
                project_simplex_columns(part)
                block[index] = part.reshape(len(index), -1)
            inside[start : start + step] = block.T
        return inside

    def nearest_valid(self, X: Any, origin: Any = None) -> Any:
        """Nearest encoded row that can exist: whole numbers whole, one category each, all within bounds."""
        if is_tensor(X) and (plain := on_numpy(X)) is not None:
            return _tensor(self.nearest_valid(plain, None if origin is None else to_numpy(origin)))
        ready = self._constants.like(X)
        valid = clip(X, ready["box_lower"], ready["box_upper"])
        valid[..., ready["binary"]] = like(X[..., ready["binary"]] >= 0.5, X)
        valid[..., ready["whole"]] = self._whole_numbers(X[..., ready["whole"]])
        for column in self._curved:
            found = column.whole_number(to_numpy(X[..., column.start]).astype(float))
            place = column.place(np.clip(found, column.lower, column.upper))
            valid[..., column.start] = like(place, X)
        for group in self._simplices:
            index = ready[group.key]
            part = X[..., index].reshape(*X.shape[:-1], group.count, group.width)
            valid[..., index] = _vertices(part).reshape(*X.shape[:-1], -1)
        if origin is not None and len(self._constants["fixed"]):
            put_back(valid, origin, ready["fixed"], owner="TabularDomain.nearest_valid")
        return valid

    def _whole_numbers(self, part: Any) -> Any:
        """Round in original units, in double precision: single would add its own error to that of the row."""
        wide = part.double() if is_tensor(part) else part.astype(float)
        mean, scale, lower, upper = (like(values, wide) for values in self._whole)
        units = clip(namespace(part).round(wide * scale + mean), lower, upper)
        return like((units - mean) / scale, part)


def _box(columns: Sequence[Column]) -> tuple[FloatArray, FloatArray]:
    lower, upper = np.zeros(columns[-1].stop), np.ones(columns[-1].stop)
    for column in columns:
        if column.kind != "categorical":
            lower[column.start], upper[column.start] = column.place([column.lower, column.upper])
        elif len(column.categories) == 1:
            lower[column.start] = 1.0
    return lower, upper


def _vertices(part: Any) -> Any:
    """One-hot of the largest entry along the last axis (the first of equals): the nearest vertex."""
    best = part.argmax(-1)[..., None]
    out = namespace(part).zeros_like(part)
    if is_tensor(part):
        return out.scatter(-1, best, 1.0)
    np.put_along_axis(out, best, 1.0, axis=-1)
    return out


def _positions(columns: Sequence[Column]) -> IntArray:
    return np.array([i for c in columns for i in range(c.start, c.stop)], dtype=np.int64)


def _tensor(values: FloatArray) -> Any:
    return sys.modules["torch"].from_numpy(values)
