"""What every domain can do: say which encoded rows may exist, and bring any row back to them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from likewise.core.arrays import FloatArray, is_tensor, like, namespace, to_numpy
from likewise.core.errors import InputError
from likewise.core.frames import is_frame, to_pandas

__all__ = ["Domain", "as_rows", "put_back"]


class Domain(ABC):
    """A convex set X of encoded rows: the paper's sample space, over which a search looks for the worst case.

    A subclass says how to project and what box surrounds the set; the rest follows from that.

    Attributes
    ----------
    n_features : int or None
        Width d of an encoded row; None where any width will do.

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
        """Width of an encoded row, or None where any width will do."""

    @abstractmethod
    def project(self, X: Any, origin: Any = None) -> Any:
        """Euclidean projection of every row onto the set.

        Parameters
        ----------
        X : array or tensor of shape (n, d)
            Encoded rows. Every row is projected by itself: who travels with it does not matter.
        origin : array or tensor of shape (n, d), optional
            The rows the search started from. Where given, coordinates that may not change are put back to
            its values.

        Returns
        -------
        array or tensor of shape (n, d)
            Of the kind, dtype and device of `X`. A row that is not a number stays so: a search that diverged
            is never made to look sound.
        """

    @abstractmethod
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the smallest box around the set: lower and upper, of shape (d,), infinite where free."""

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
            Where given, coordinates that may not change must equal its.
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


def as_rows(X: Any, n_features: int | None, *, owner: str, name: str = "X") -> Any:
    """Return encoded rows as a floating array or tensor of the right width, without looking at the values.

    Examples
    --------
    >>> as_rows([[1, 2]], 2, owner="project")
    array([[1., 2.]])
    """
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
    """Write the origin's values into the coordinates `index` of X, in place, and return X.

    Examples
    --------
    >>> put_back(np.zeros((1, 2)), np.ones((1, 2)), np.array([1]), owner="project")
    array([[0., 1.]])
    """
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
