"""How much a learned subspace moves when the people it was learned from are drawn again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from likewise.core.checks import FloatArray, take_rows, to_numpy
from likewise.core.errors import InputError
from likewise.core.frames import is_frame, to_pandas
from likewise.core.intervals import Measure
from likewise.core.subspace import Subspace
from likewise.fair_metrics.comparable_groups import read_groups
from likewise.fair_metrics.naming import is_encoder


@dataclass(frozen=True)
class Stability:
    """Principal angles between the subspace and the subspaces of bootstrap resamples.

    Parameters
    ----------
    angles : tuple of Measure
        One per direction, the largest first, in radians: median over the resamples, with the interval that
        holds 95% of them. 0 is the same direction, π/2 one that was lost.
    n_resamples : int
        How many resamples could be learned from.
    n_failed : int
        How many could not, for example because a rare category was not drawn.
    dims : tuple of (int, int)
        Fewest and most directions that a resample gave.

    Examples
    --------
    >>> from likewise.evaluation import Measure
    >>> found = Stability((Measure("angle", 0.1, 0.05, 0.2, "bootstrap"),), n_resamples=20, n_failed=0, dims=(1, 1))
    >>> found.largest.value
    0.1
    """

    angles: tuple[Measure, ...]
    n_resamples: int
    n_failed: int
    dims: tuple[int, int]

    @property
    def largest(self) -> Measure:
        """The largest angle: how far the least certain direction moves."""
        return self.angles[0]


def bootstrap_angles(
    learner: Any, X: Any, fit_params: Mapping[str, Any], n_resamples: int, rng: np.random.Generator
) -> Stability:
    """Learn again from resamples, and compare with what `learner` has learned."""
    reference: Subspace = learner.metric_.subspace
    table = to_pandas(X, owner="diagnose", name="learned_on") if is_frame(X) else to_numpy(X)
    encoder = learner.metric_.feature_map
    found: list[FloatArray] = []
    dims: list[int] = []
    failure: InputError | None = None
    for _ in range(n_resamples):
        again = clone(learner)
        if is_encoder(encoder):
            # The same coordinates every time: means, scales and categories are not what is tested.
            again.set_params(domain=encoder, feature_map=None)
        rows, params = _resample(table, fit_params, rng)
        try:
            subspace = again.fit(rows, **params).metric_.subspace
        except InputError as error:
            failure = error
            continue
        dims.append(0 if subspace is None else subspace.dim)
        angles = np.zeros(0) if subspace is None else to_numpy(reference.principal_angles(subspace))
        # One for each direction of the reference, the largest first; a direction that was lost is at π/2.
        found.append(np.concatenate([np.full(reference.dim - len(angles), np.pi / 2), angles]))
    if failure is not None and not found:
        raise InputError(f"diagnose: no bootstrap resample could be learned from. {failure}") from failure
    middle, (low, high) = np.median(found, axis=0), np.quantile(found, [0.025, 0.975], axis=0)
    ends = enumerate(zip(middle.tolist(), low.tolist(), high.tolist(), strict=True), start=1)
    angles_found = tuple(Measure(f"angle {i}", *numbers, "percentile") for i, numbers in ends)
    return Stability(angles_found, len(found), n_resamples - len(found), (min(dims), max(dims)))


def _resample(
    table: Any, fit_params: Mapping[str, Any], rng: np.random.Generator
) -> tuple[Any, dict[str, Any]]:
    """Draw the units that the learner learns from, with replacement."""
    params = dict(fit_params)
    n = len(table)
    if params.get("pairs") is not None:
        pairs, comparable = to_numpy(params["pairs"]), to_numpy(params["comparable"])
        drawn = rng.integers(len(pairs), size=len(pairs))
        return table, {**params, "pairs": pairs[drawn], "comparable": comparable[drawn]}
    if params.get("groups") is not None:
        groups = read_groups("diagnose", params["groups"], n)
        order = np.arange(n) if groups.order is None else groups.order
        lists = [order[a:b] for a, b in zip(groups.starts[:-1], groups.starts[1:], strict=True) if b - a > 1]
        return table, {**params, "groups": [lists[i] for i in rng.integers(len(lists), size=len(lists))]}
    drawn = rng.integers(n, size=n)
    return _take(table, drawn, n), {name: _take(value, drawn, n) for name, value in params.items()}


def _take(values: Any, rows: Any, n: int) -> Any:
    """The drawn rows of anything with one entry per row; anything else as it is."""
    if isinstance(values, Mapping):
        return {name: _take(value, rows, n) for name, value in values.items()}
    if is_frame(values):
        values = to_pandas(values, owner="diagnose", name="fit_params")
    if not hasattr(values, "__len__") or isinstance(values, str) or len(values) != n:
        return values
    return take_rows(values, rows)
