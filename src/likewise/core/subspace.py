"""A linear subspace with an orthonormal basis: the sensitive directions of the paper, without any inverse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.core.checks import Array, like, namespace, to_numpy
from likewise.core.errors import InputError, bad_parameter


@dataclass(frozen=True, eq=False)
class Subspace:
    """Span of K orthonormal directions in d dimensions.

    Parameters
    ----------
    basis : array of shape (d, K)
        Orthonormal columns (the paper's Q). Use `from_directions` for anything that is not orthonormal yet.

    Notes
    -----
    Methods take numpy arrays or torch tensors and return the same kind, dtype and device. Every product is
    O(dK) per row; nothing is inverted and no d × d matrix is formed.

    Examples
    --------
    >>> import numpy as np
    >>> sub = Subspace.from_directions([[2.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> sub.dim, sub.n_features
    (1, 3)
    >>> sub.remove(np.array([[5.0, 1.0, 2.0]]))
    array([[0., 1., 2.]])
    """

    basis: Array

    def __post_init__(self) -> None:
        if self.basis.ndim != 2:
            raise bad_parameter(
                "Subspace",
                "basis",
                "a matrix with one column per direction",
                f"{self.basis.ndim} dimension(s)",
                "Use Subspace.from_directions for a list of directions.",
            )
        if self.basis.shape[1]:
            gram = to_numpy(self.basis.T @ self.basis).astype(float)
            tolerance = 100 * float(np.sqrt(_resolution(self.basis)))
            if not np.allclose(gram, np.eye(len(gram)), atol=tolerance):
                raise bad_parameter(
                    "Subspace",
                    "basis",
                    "orthonormal columns",
                    "columns that are not",
                    "Use Subspace.from_directions, which orthonormalises any directions.",
                )

    @classmethod
    def from_directions(cls, directions: Any) -> Subspace:
        """Build the span of any set of directions, one per row.

        Parameters
        ----------
        directions : array-like of shape (K', d)
            Need be neither orthogonal nor of unit length. Zero, duplicate and collinear rows add nothing.
            Directions that differ only by rounding (the square root of the dtype's resolution, 1.5e-8 in float64)
            are one direction.

        Returns
        -------
        Subspace
            Of the numerical rank of the directions, with a basis that follows their order: orthogonal directions are
            the basis, and each other one adds what is new in it. A search that moves coordinate by coordinate thus
            moves along the directions that were given. Signs are fixed, so equal input gives equal output.
        """
        matrix = directions if hasattr(directions, "dtype") else np.asarray(directions, dtype=float)
        matrix = like(matrix, matrix)
        if matrix.ndim == 1:
            matrix = matrix[None, :]
        if matrix.ndim != 2:
            raise bad_parameter(
                "Subspace.from_directions",
                "directions",
                "a matrix with one row per direction",
                f"{matrix.ndim} dimensions",
            )
        xp = namespace(matrix)
        if not bool(xp.isfinite(matrix).all()):
            row, column = np.argwhere(~np.isfinite(to_numpy(matrix)))[0]
            raise InputError(
                f"Subspace.from_directions: direction {row} is not finite at coordinate {column}. "
                "Remove or impute it."
            )
        norms = xp.linalg.norm(matrix, axis=1)
        matrix = matrix[norms > 0] / norms[norms > 0][:, None]
        if matrix.shape[0] == 0:
            return cls(matrix.T)
        _, singular, rows = xp.linalg.svd(matrix, full_matrices=False)
        threshold = float(np.sqrt(_resolution(matrix)))
        rows = rows[singular > threshold * singular[0]]
        kept = _in_order(matrix, len(rows))
        rows = rows if kept is None else kept
        peak = abs(rows).argmax(axis=1)
        signs = xp.sign(rows[range(len(rows)), peak])
        return cls((rows * signs[:, None]).T)

    @property
    def dim(self) -> int:
        """Number of independent directions, K."""
        return int(self.basis.shape[1])

    @property
    def n_features(self) -> int:
        """Dimension of the space around it, d."""
        return int(self.basis.shape[0])

    def basis_like(self, reference: Array) -> Any:
        """Return the basis as the kind of array `reference` is (library, dtype, device)."""
        return like(self.basis, reference)

    def coordinates(self, X: Any) -> Any:
        """Coefficients of each row in the basis: `X Q`, of shape (n, K)."""
        X = self._checked(X)
        return X @ self.basis_like(X)

    def project(self, X: Any) -> Any:
        """Part of each row inside the subspace: `X Q Qᵀ`."""
        X = self._checked(X)
        Q = self.basis_like(X)
        return (X @ Q) @ Q.T

    def remove(self, X: Any) -> Any:
        """Part of each row outside the subspace: `X (I − Q Qᵀ)`."""
        return self._checked(X) - self.project(X)

    def complement(self) -> Subspace:
        """Orthogonal complement, of dimension d − K."""
        xp = namespace(self.basis)
        if self.dim == 0:
            return Subspace(like(np.eye(self.n_features), self.basis))
        full = xp.linalg.svd(self.basis, full_matrices=True)[0]
        return Subspace(full[:, self.dim :])

    def union(self, *others: Subspace) -> Subspace:
        """Span of this subspace and the others together."""
        xp = namespace(self.basis)
        for other in others:
            self._same_space(other)
        parts = [self.basis.T, *(like(other.basis, self.basis).T for other in others)]
        return Subspace.from_directions(xp.concatenate(parts, axis=0))

    def __or__(self, other: Subspace) -> Subspace:
        return self.union(other)

    def principal_angles(self, other: Subspace) -> Any:
        """Angles between the two subspaces in radians, largest first, min(K1, K2) of them.

        Small angles come from their sines and large ones from their cosines (Knyazev & Argentati 2002), so
        both ends are accurate to the dtype's resolution.

        Examples
        --------
        >>> a = Subspace.from_directions([[1.0, 0.0]])
        >>> b = Subspace.from_directions([[1.0, 1e-6]])
        >>> float(a.principal_angles(b)[0])  # doctest: +ELLIPSIS
        9.99999...e-07
        """
        self._same_space(other)
        big, small = (self, other) if self.dim >= other.dim else (other, self)
        xp = namespace(self.basis)
        P, R = like(big.basis, self.basis), like(small.basis, self.basis)
        if small.dim == 0:
            return P[0, :0]
        cosines = xp.clip(xp.linalg.svd(P.T @ R, full_matrices=False)[1], 0.0, 1.0)
        sines = xp.clip(xp.linalg.svd(R - P @ (P.T @ R), full_matrices=False)[1], 0.0, 1.0)
        from_cosines = xp.arccos(xp.flip(cosines, (0,)))
        from_sines = xp.arcsin(sines[: small.dim])
        return xp.where(from_sines**2 < 0.5, from_sines, from_cosines)

    def _same_space(self, other: Subspace) -> None:
        if other.n_features != self.n_features:
            raise InputError(
                f"Subspace: the two subspaces live in {self.n_features} and {other.n_features} dimensions. "
                "Learn both on the same columns."
            )

    def _checked(self, X: Any) -> Any:
        if not hasattr(X, "dtype"):
            X = np.asarray(X, dtype=float)
        X = like(X, X)
        if X.shape[-1] != self.n_features:
            raise InputError(
                f"Subspace: rows have {X.shape[-1]} columns, the subspace lives in {self.n_features}. "
                "Pass rows with the columns that the subspace was learned on."
            )
        return X


def _in_order(matrix: Array, rank: int) -> Any:
    """Orthonormalise unit rows in their order (Gram–Schmidt, twice); None if that does not reach the rank safely."""
    xp = namespace(matrix)
    safe = float(np.sqrt(np.sqrt(_resolution(matrix))))
    kept = matrix[:0]
    for row in matrix:
        if len(kept) == rank:
            return kept
        rest = row
        for _ in range(2):
            rest = rest - (kept @ rest) @ kept
        length = float(xp.linalg.norm(rest))
        if length > safe:
            kept = xp.concatenate([kept, (rest / length)[None, :]], axis=0)
    return kept if len(kept) == rank else None


def _resolution(matrix: Array) -> float:
    return float(namespace(matrix).finfo(matrix.dtype).eps)
