"""Fair metrics that need no learning: Euclidean, Mahalanobis, the union of two, and one in other coordinates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from likewise.core.checks import FloatArray, check_integer, check_matrix, is_tensor, namespace, to_numpy
from likewise.core.errors import InputError, bad_parameter
from likewise.core.subspace import Subspace
from likewise.fair_metrics.metric import COSTS_NOTHING, FairMetric
from likewise.fair_metrics.naming import is_encoder, map_names

# Fair metrics that need no learning: the Euclidean one, and that of a given matrix.


def euclidean(n_features: int | None = None) -> FairMetric:
    """Return the plain squared Euclidean distance, under which every difference counts.

    Parameters
    ----------
    n_features : int, optional
        Number of columns; without it the metric takes rows of any width.

    Examples
    --------
    >>> euclidean(2).squared_distance([[0.0, 0.0]], [[1.0, 1.0]])
    array([2.])
    """
    width = (
        0 if n_features is None else check_integer(n_features, owner="euclidean", name="n_features", low=1)
    )
    return FairMetric(1.0, np.zeros((width, 0)), np.zeros(0))


def mahalanobis(
    sigma: Any, *, feature_map: Any = None, feature_names: Sequence[str] | None = None
) -> FairMetric:
    """Return the metric of a given positive semi-definite Σ (used as it is, not inverted).

    Parameters
    ----------
    sigma : array of shape (d, d)
        Symmetric and positive semi-definite up to rounding.
    feature_map, feature_names
        As in `FairMetric`.

    Examples
    --------
    >>> mahalanobis([[2.0, 0.0], [0.0, 0.0]]).squared_distance([[1.0, 7.0]], [[0.0, 0.0]])
    array([2.])
    """
    matrix = check_matrix(to_numpy(sigma), owner="mahalanobis", name="sigma").astype(float)
    if matrix.shape[0] != matrix.shape[1]:
        raise bad_parameter("mahalanobis", "sigma", "a square matrix", f"shape {matrix.shape}")
    size = float(np.abs(matrix).max())
    if not np.allclose(matrix, matrix.T, rtol=0, atol=1e-8 * size):
        got, remedy = "a matrix that is not", "Pass (sigma + sigma.T) / 2."
        raise bad_parameter("mahalanobis", "sigma", "symmetric", got, remedy)
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    if values[0] < -1e-8 * max(size, 1e-300):
        raise bad_parameter(
            "mahalanobis",
            "sigma",
            "positive semi-definite",
            f"a matrix with eigenvalue {values[0]:.3g}",
            "A covariance must be inverted first if its inverse is meant.",
        )
    keep = values > COSTS_NOTHING * max(values[-1], 0.0)
    names = None if feature_names is None else tuple(feature_names)
    return FairMetric(0.0, vectors[:, keep], values[keep], feature_map, names)


# The union of two fair metrics: who is comparable under either is comparable under both together.


def union(first: FairMetric, second: FairMetric) -> FairMetric:
    """Return the metric under which every direction that is free in one of the two is free."""
    if not isinstance(second, FairMetric):
        return NotImplemented
    told = (*first.sensitive_features, *second.sensitive_features)
    for one, other in ((first, second), (second, first)):
        if one.n_features is None:
            return replace(other, sensitive_features=told)
    if first.n_features != second.n_features:
        raise InputError(
            f"FairMetric: the two metrics have {first.n_features} and {second.n_features} columns. "
            "Learn both on the same columns."
        )
    feature_map, names = _common_map(first, second)
    # Σ = I − Q diag(1 − w) Qᵀ, one weight per direction.
    if all(one.scale == 1.0 and bool((one.values <= 0).all()) for one in (first, second)):
        basis, values = _span_of_both(first, second)
        return FairMetric(1.0, basis, values, feature_map, names, told)
    # The harmonic mean.
    sigma, tau = first.sigma(), second.sigma()
    mean = 2.0 * sigma @ np.linalg.pinv(sigma + tau, hermitian=True) @ tau
    mean = (mean + mean.T) / 2
    # What is free in either is free exactly, not up to the rounding of the pseudo-inverse.
    free = first.null_space | second.null_space
    mean = free.remove(free.remove(mean).T).T if free.dim else mean
    found = mahalanobis((mean + mean.T) / 2, feature_map=feature_map, feature_names=names)
    return replace(found, sensitive_features=told)


def _span_of_both(first: FairMetric, second: FairMetric) -> tuple[Any, Any]:
    """Directions from the cheapest on; each adds only what those before it do not span."""
    groups: dict[float, list[Any]] = {}
    for metric in (first, second):
        for direction, value in zip(metric.basis.T, metric.values, strict=True):
            groups.setdefault(float(value), []).append(direction)
    bases = [np.zeros((first.basis.shape[0], 0))]
    values: list[float] = []
    for value in sorted(groups):
        spanned = np.concatenate(bases, axis=1)
        rows = np.stack(groups[value])
        rest = rows - (rows @ spanned) @ spanned.T
        # Unit vectors of which nothing but rounding is left point nowhere.
        rest = rest[np.linalg.norm(rest, axis=1) > 1e-8]
        if len(rest):
            basis = np.asarray(Subspace.from_directions(rest).basis)
            bases.append(basis)
            values += [value] * basis.shape[1]
    return np.linalg.qr(np.concatenate(bases, axis=1))[0] if values else bases[0], np.array(values)


def _common_map(first: FairMetric, second: FairMetric) -> tuple[Any, tuple[str, ...] | None]:
    one, other = first.feature_map, second.feature_map
    names = first.feature_names or second.feature_names
    if one is other or (is_encoder(one) and is_encoder(other) and one.to_dict() == other.to_dict()):
        return one, names
    for given, absent in ((one, second), (other, first)):
        if absent.feature_map is None and given is not None and absent.feature_names == map_names(given):
            return given, names
    raise InputError(
        "FairMetric: the two metrics have different feature maps. Learn both on the same frame, or pass the "
        "same domain to both learners."
    )


# Squared Euclidean distances of all pairs of embedded rows, in blocks of bounded memory.


_AT_ONCE = 2**14


def distance_blocks(left: Any, right: Any, max_bytes: int) -> Iterator[tuple[slice, Any]]:
    """Yield (slice of left's rows, squared distances to every row of right), one matrix product each."""
    xp = namespace(left)
    step = max(1, int(max_bytes // max(1, right.shape[0] * left.dtype.itemsize)))
    tolerance = float(np.sqrt(float(xp.finfo(left.dtype).eps)))
    # [−2a, ‖a‖², 1] · [b, 1, ‖b‖²]: the norms ride along in the product, so the block is written once.
    right_norms = (right * right).sum(-1)
    ones = xp.ones_like(right_norms)
    wide = xp.concatenate([right, ones[:, None], right_norms[:, None]], axis=1).T
    for start in range(0, left.shape[0], step):
        rows = slice(start, min(start + step, left.shape[0]))
        part = left[rows]
        norms = (part * part).sum(-1)
        block = xp.concatenate([-2.0 * part, norms[:, None], xp.ones_like(norms)[:, None]], axis=1) @ wide
        _sharpen(block, part, right, norms, right_norms, tolerance)
        yield rows, block


def _sharpen(block: Any, left: Any, right: Any, norms: Any, right_norms: Any, tolerance: float) -> None:
    """Compute again, in place, the pairs that are closer than rounding allows to tell."""
    # One threshold per row first, which needs no second block; then the exact one for the few that pass.
    close = block < tolerance * (norms[:, None] + right_norms.max())
    i, j = (
        close.nonzero(as_tuple=True) if is_tensor(close) else np.divmod(np.flatnonzero(close), close.shape[1])
    )
    tight = block[i, j] < tolerance * (norms[i] + right_norms[j])
    i, j = i[tight], j[tight]
    for start in range(0, len(i), _AT_ONCE):
        a, b = i[start : start + _AT_ONCE], j[start : start + _AT_ONCE]
        difference = left[a] - right[b]
        block[a, b] = (difference * difference).sum(-1)


# Squared lengths of one unit that differ by more than this cannot stand in one matrix of doubles.
_WIDEST = 1e-11


def reexpress(metric: FairMetric, matrix: FloatArray) -> FairMetric:
    """Return the metric of rows x that gives the distances the given one has for rows Ax + b."""
    if matrix.shape[0] == matrix.shape[1] and bool((matrix == np.eye(len(matrix))).all()):
        return replace(metric, feature_map=None)
    plain = metric.without_feature_map()
    # Rows of B = Σ^½ A, so that Σ′ = BᵀB; singular values keep what eigenvalues of the product would lose.
    root = np.asarray(plain.embed(np.ascontiguousarray(matrix.T)))
    directions, lengths, _ = np.linalg.svd(root, full_matrices=False)
    costs = lengths**2
    top = float(costs.max(initial=0.0))
    squeezed = (costs > 0) & (costs <= _WIDEST * top) & (lengths > 1e-13 * np.sqrt(top) * len(matrix))
    if squeezed.any():
        raise InputError(
            "The metric and the domain scale the columns so differently that a distance would be lost to rounding. "
            "Learn the metric on the table that is audited, or pass domain=metric.feature_map."
        )
    priced = costs > _WIDEST * top
    told = metric.sensitive_features
    return FairMetric(0.0, directions[:, priced], costs[priced], sensitive_features=told)
