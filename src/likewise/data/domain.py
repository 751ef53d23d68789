"""Domains: which encoded rows may exist, and projection onto them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from likewise.core.checks import FloatArray, IntArray, check_matrix, column_names, is_whole, to_numpy
from likewise.core.errors import InputError, bad_parameter
from likewise.core.subspace import Subspace
from likewise.data.encoded_set import Constants, as_rows, clip, put_back


class Domain(ABC):
    """A convex set X of encoded rows: the paper's sample space, over which a search looks for the worst case.

    A subclass says how to project and what box surrounds the set; the rest follows from that.

    Attributes
    ----------
    n_features : int or None
        Width d of an encoded row; None if any width will do.

    Examples
    --------
    >>> import numpy as np
    >>> class Ball(Domain):
    ...     n_features = 2
    ...     def project(self, X, origin=None):
    ...         return X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    ...     def bounds(self):
    ...         return -np.ones(2), np.ones(2)
    >>> Ball().contains(np.array([[0.6, 0.8], [1.0, 1.0]]))
    array([ True, False])
    """

    @property
    @abstractmethod
    def n_features(self) -> int | None:
        """Width of an encoded row, or None if any width will do."""

    @abstractmethod
    def project(self, X: Any, origin: Any = None) -> Any:
        """Euclidean projection of every row onto the set.

        Parameters
        ----------
        X : array or tensor of shape (n, d)
            Encoded rows. Every row is projected by itself, whatever the other rows are.
        origin : array or tensor of shape (n, d), optional
            The rows the search started from. If given, coordinates that may not change are put back to
            its values.

        Returns
        -------
        array or tensor of shape (n, d)
            Of the kind, dtype and device of `X`. A row that is not a number stays so: a search that diverged
            is never made to look sound.
        """

    @abstractmethod
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the smallest box around the set: lower and upper, of shape (d,), infinite if free."""

    def nearest_valid(self, X: Any, origin: Any = None) -> Any:
        """Encoded row nearest to each row that can exist; for a plain convex set its projection."""
        return self.project(X, origin)

    def contains(self, X: Any, origin: Any = None, tol: float = 1e-6) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether each row lies in the set, every coordinate within `tol`.

        Parameters
        ----------
        X : array or tensor of shape (n, d)
            Encoded rows.
        origin : array or tensor of shape (n, d), optional
            If given, coordinates that may not change must equal its.
        tol : float, default=1e-6
            Largest difference from the projection, in encoded units, that counts as rounding.

        Returns
        -------
        ndarray of bool, shape (n,)
            False for a row that is not a number.
        """
        X = as_rows(X, self.n_features, owner=f"{type(self).__name__}.contains")
        away = abs(to_numpy(X) - to_numpy(self.project(X, origin)))
        return np.asarray((away <= tol).all(axis=-1))


# Domains of plain numeric arrays: everything, a box, or as far along a subspace as the data goes.


@dataclass(frozen=True)
class Unbounded(Domain):
    """Every row may exist. Under a metric with free directions the worst case then has no bound at all.

    Examples
    --------
    >>> Unbounded().project(np.array([[1e9]]))
    array([[1.e+09]])
    """

    @property
    def n_features(self) -> int | None:
        """None: any width will do."""
        return None

    def project(self, X: Any, origin: Any = None) -> Any:
        """Return the rows as they are."""
        return as_rows(X, None, owner="Unbounded.project")

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return −∞ and +∞ with no dimension of their own: they broadcast to any width.

        Returns
        -------
        lower, upper : ndarray of shape (1,)
        """
        return np.array([-np.inf]), np.array([np.inf])


@dataclass(frozen=True, eq=False)
class BoxDomain(Domain):
    """Every coordinate between a lower and an upper bound.

    Parameters
    ----------
    lower, upper : array-like of shape (d,), or a number
        Bounds of each coordinate; ±inf if free. One of the two may be a number.
    immutable : sequence of int, default=()
        Coordinates that a search may not change.

    Examples
    --------
    >>> box = BoxDomain(lower=[0.0, 0.0], upper=1.0)
    >>> box.project(np.array([[2.0, -3.0]]))
    array([[1., 0.]])
    >>> box.contains(np.array([[0.5, 0.5], [0.5, 1.5]]))
    array([ True, False])
    """

    lower: Any
    upper: Any
    immutable: Iterable[int] = ()
    _constants: Constants = field(init=False, repr=False)

    def __post_init__(self) -> None:
        try:
            lower, upper = np.broadcast_arrays(
                np.asarray(to_numpy(self.lower), dtype=float), np.asarray(to_numpy(self.upper), dtype=float)
            )
        except (TypeError, ValueError) as error:
            raise bad_parameter(
                "BoxDomain", "lower and upper", "numbers, as many in one as in the other", str(error)
            ) from error
        if lower.ndim != 1 or not len(lower):
            raise bad_parameter(
                "BoxDomain",
                "lower and upper",
                "one number per column",
                f"shape {lower.shape}",
                "Repeat one bound for every column: numpy.full(n_columns, bound).",
            )
        wrong = ~(lower <= upper)
        if wrong.any():
            at = int(wrong.argmax())
            raise bad_parameter(
                "BoxDomain",
                "lower",
                "at most 'upper' in every column",
                f"{lower[at]:g} > {upper[at]:g} in column {at}"
                if lower[at] > upper[at]
                else f"a bound that is not a number in column {at}",
            )
        index = _indices(self.immutable, len(lower))
        lower, upper = lower.copy(), upper.copy()
        for array in (lower, upper):
            array.setflags(write=False)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        object.__setattr__(self, "immutable", tuple(int(i) for i in index))
        object.__setattr__(self, "_constants", Constants(lower=lower, upper=upper, fixed=index))

    @classmethod
    def from_data(cls, X: Any, immutable: Iterable[int | str] = ()) -> BoxDomain:
        """Make the box around data: each column from its least to its greatest value.

        Parameters
        ----------
        X : array-like, tensor or numeric data frame of shape (n, d)
            The data.
        immutable : sequence of int or str, default=()
            Columns that may not change, by position, or by name if `X` is a frame.

        Returns
        -------
        BoxDomain

        Examples
        --------
        >>> BoxDomain.from_data(np.array([[0.0, 5.0], [2.0, 4.0]])).upper
        array([2., 5.])
        """
        names = column_names(X) or []
        data = to_numpy(check_matrix(X, owner="BoxDomain.from_data")).astype(float)
        unknown = [name for name in immutable if isinstance(name, str) and name not in names]
        if unknown:
            raise bad_parameter("BoxDomain.from_data", "immutable", "columns of 'X'", f"{unknown[0]!r}")
        index = [names.index(name) if isinstance(name, str) else name for name in immutable]
        return cls(data.min(axis=0), data.max(axis=0), immutable=index)

    @property
    def n_features(self) -> int:
        """Number of coordinates."""
        return len(self.lower)

    def project(self, X: Any, origin: Any = None) -> Any:
        """Clip every coordinate to its bounds; see `Domain.project`."""
        X = as_rows(X, self.n_features, owner="BoxDomain.project")
        ready = self._constants.like(X)
        inside = clip(X, ready["lower"], ready["upper"])
        if origin is not None and self.immutable:
            put_back(inside, origin, ready["fixed"], owner="BoxDomain.project")
        return inside

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the lower and the upper bounds, of shape (d,)."""
        return self.lower.copy(), self.upper.copy()


@dataclass(frozen=True, eq=False)
class DataRangeDomain(Domain):
    """As far along each direction of a subspace as the data goes; free across it.

    The directions that cost nothing under a fair metric are exactly those along which a search would never
    stop. This domain stops it there and nowhere else.

    Parameters
    ----------
    subspace : Subspace
        K directions in d dimensions.
    lower, upper : array-like of shape (K,)
        Bounds of each row's coordinates in the basis of the subspace.

    Examples
    --------
    >>> subspace = Subspace.from_directions([[1.0, 0.0]])
    >>> domain = DataRangeDomain.from_data(np.array([[0.0, 7.0], [2.0, 9.0]]), subspace)
    >>> domain.project(np.array([[5.0, 100.0]]))
    array([[  2., 100.]])
    """

    subspace: Subspace
    lower: Any
    upper: Any
    _constants: Constants = field(init=False, repr=False)

    def __post_init__(self) -> None:
        lower, upper = (np.array(to_numpy(side), dtype=float) for side in (self.lower, self.upper))
        if lower.shape != (self.subspace.dim,) or upper.shape != (self.subspace.dim,):
            raise bad_parameter(
                "DataRangeDomain",
                "lower and upper",
                f"one number for each of the {self.subspace.dim} directions",
                f"shapes {lower.shape} and {upper.shape}",
                "Use DataRangeDomain.from_data(X, subspace).",
            )
        if not (lower <= upper).all():
            raise bad_parameter("DataRangeDomain", "lower", "at most 'upper' in every direction", str(lower))
        basis = to_numpy(self.subspace.basis).astype(float)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        object.__setattr__(self, "_constants", Constants(lower=lower, upper=upper, basis=basis))

    @classmethod
    def from_data(cls, X: Any, subspace: Subspace) -> DataRangeDomain:
        """Measure how far the data goes along each direction of the subspace.

        Parameters
        ----------
        X : array-like, tensor or numeric data frame of shape (n, d)
            The data.
        subspace : Subspace
            The directions.

        Returns
        -------
        DataRangeDomain
        """
        data = to_numpy(check_matrix(X, owner="DataRangeDomain.from_data")).astype(float)
        if data.shape[1] != subspace.n_features:
            raise InputError(
                f"DataRangeDomain.from_data: 'X' has {data.shape[1]} columns, the subspace lives in "
                f"{subspace.n_features}. Pass the columns that the subspace was learned on."
            )
        coordinates = data @ to_numpy(subspace.basis).astype(float)
        return cls(subspace, coordinates.min(axis=0), coordinates.max(axis=0))

    @property
    def n_features(self) -> int:
        """Dimension of the space around the subspace."""
        return self.subspace.n_features

    def project(self, X: Any, origin: Any = None) -> Any:
        """Move each row along the subspace only, as far as needed; see `Domain.project`."""
        X = as_rows(X, self.n_features, owner="DataRangeDomain.project")
        ready = self._constants.like(X)
        # Q is orthonormal, so the coordinates QᵀX are clipped one by one: x + Q (clip(Qᵀx) − Qᵀx).
        coordinates = X @ ready["basis"]
        inside = clip(coordinates, ready["lower"], ready["upper"])
        return X + (inside - coordinates) @ ready["basis"].T

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the box around the set: finite only for coordinates whose axis lies in the subspace.

        Returns
        -------
        lower, upper : ndarray of shape (d,)
        """
        basis = self._constants["basis"]
        ends = np.stack([basis * self.lower, basis * self.upper])
        held = np.isclose((basis**2).sum(axis=1), 1.0, rtol=0, atol=1e-9)
        lower = np.where(held, ends.min(axis=0).sum(axis=1), -np.inf)
        upper = np.where(held, ends.max(axis=0).sum(axis=1), np.inf)
        return lower, upper


def _indices(immutable: Iterable[Any], n_features: int) -> IntArray:
    values = list(immutable)
    for value in values:
        if not is_whole(value) or not 0 <= value < n_features:
            raise bad_parameter(
                "BoxDomain", "immutable", f"positions of columns, 0 to {n_features - 1}", value
            )
    return np.array(sorted(set(values)), dtype=np.int64)
