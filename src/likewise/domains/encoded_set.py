"""The set of encoded rows: a box for numbers and binary columns, a simplex for every other category."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.core.arrays import FloatArray, is_tensor, like, namespace, to_numpy
from likewise.domains.column import Column
from likewise.domains.constants import Constants, on_numpy
from likewise.domains.domain import clip, put_back
from likewise.domains.simplex import project_simplex, project_simplex_columns

__all__ = ["EncodedSet"]

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
    """Geometry of an encoded table, worked out once.

    Parameters
    ----------
    columns : sequence of Column
        In the order of the encoding.

    Attributes
    ----------
    lower, upper : ndarray of shape (d,)
        The smallest box around the set.

    Examples
    --------
    >>> from likewise.domains.dtypes import Dtype
    >>> job = Column("job", "categorical", Dtype("str"), categories=("a", "b", "c"), stop=3)
    >>> EncodedSet([job]).project(np.array([[0.5, 0.5, 3.0]]))
    array([[0., 0., 1.]])
    """

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


def _positions(columns: Sequence[Column]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array([i for c in columns for i in range(c.start, c.stop)], dtype=np.int64)


def _tensor(values: FloatArray) -> Any:
    return sys.modules["torch"].from_numpy(values)
