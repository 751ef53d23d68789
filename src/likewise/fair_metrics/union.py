"""The union of two fair metrics: who is comparable under either is comparable under both together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.core.errors import InputError
from likewise.core.subspace import Subspace
from likewise.fair_metrics.feature_maps import is_encoder, map_names

if TYPE_CHECKING:
    from likewise.fair_metrics.metric import FairMetric

__all__ = ["union"]


def union(first: FairMetric, second: FairMetric) -> FairMetric:
    """Return the metric under which every direction that is free in one of the two is free.

    Parameters
    ----------
    first, second : FairMetric
        On the same features.

    Returns
    -------
    FairMetric
        Of two subspace metrics: the span of both subspaces; where their weights differ, shared directions
        get the lower one. Of any other two: the harmonic mean 2 (Σ₁⁻¹ + Σ₂⁻¹)⁻¹, extended to singular
        matrices (twice the parallel sum of Anderson and Duffin), whose free directions are those of both.
        Told to be sensitive is what either was told.

    Examples
    --------
    >>> from likewise.fair_metrics import FairMetric
    >>> a = FairMetric.from_subspace(Subspace.from_directions([[1.0, 0.0, 0.0]]))
    >>> b = FairMetric.from_subspace(Subspace.from_directions([[1.0, 1.0, 0.0]]))
    >>> (a | b).squared_distance([[5.0, 6.0, 2.0]], [[0.0, 0.0, 0.0]])
    array([4.])
    """
    from likewise.fair_metrics.metric import FairMetric

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
    if _is_softened(first) and _is_softened(second):
        basis, values = _span_of_both(first, second)
        return FairMetric(1.0, basis, values, feature_map, names, told)
    return replace(_harmonic_mean(first, second, feature_map, names), sensitive_features=told)


def _is_softened(metric: FairMetric) -> bool:
    """Whether Σ = I − Q diag(1 − w) Qᵀ, one weight per direction."""
    return metric.scale == 1.0 and bool((metric.values <= 0).all())


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


def _harmonic_mean(
    first: FairMetric, second: FairMetric, feature_map: Any, names: tuple[str, ...] | None
) -> FairMetric:
    from likewise.fair_metrics.fixed_metrics import mahalanobis

    one, other = first.sigma(), second.sigma()
    mean = 2.0 * one @ np.linalg.pinv(one + other, hermitian=True) @ other
    mean = (mean + mean.T) / 2
    # What is free in either is free exactly, not up to the rounding of the pseudo-inverse.
    free = first.null_space | second.null_space
    mean = free.remove(free.remove(mean).T).T if free.dim else mean
    return mahalanobis((mean + mean.T) / 2, feature_map=feature_map, feature_names=names)


def _common_map(first: FairMetric, second: FairMetric) -> tuple[Any, tuple[str, ...] | None]:
    one, other = first.feature_map, second.feature_map
    names = first.feature_names or second.feature_names
    if one is other or _same_encoder(one, other):
        return one, names
    for given, absent in ((one, second), (other, first)):
        if absent.feature_map is None and given is not None and absent.feature_names == map_names(given):
            return given, names
    raise InputError(
        "FairMetric: the two metrics have different feature maps. Learn both on the same frame, or pass the "
        "same domain to both learners."
    )


def _same_encoder(one: Any, other: Any) -> bool:
    return is_encoder(one) and is_encoder(other) and bool(one.to_dict() == other.to_dict())
