"""What a network is not shown at all: the sensitive columns, or everything that costs nothing under the metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from likewise.core.arrays import FloatArray, to_numpy
from likewise.core.errors import bad_parameter
from likewise.core.subspace import Subspace
from likewise.domains import TabularDomain
from likewise.fair_metrics import FairMetric
from likewise.fair_metrics.naming import ColumnPlaces
from likewise.fair_metrics.swallowed import MOST, share_swallowed

__all__ = ["BlindTo", "blind_directions", "choose_blindness", "sensitive_coordinates"]

BlindTo: TypeAlias = Literal["subspace", "columns"]


def sensitive_coordinates(metric: FairMetric, encoder: TabularDomain | None, width: int) -> list[int]:
    """Return the coordinates of the columns that the metric was told are sensitive.

    Where the rows have no names, those of whole columns that cost nothing, as long as not all do.

    Parameters
    ----------
    metric : FairMetric
        Of encoded rows.
    encoder : TabularDomain or None
        What encoded them.
    width : int
        Number of coordinates.

    Examples
    --------
    >>> named = FairMetric.from_subspace(
    ...     Subspace.from_directions([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]),
    ...     feature_names=["age", "sex_M", "pay"],
    ...     sensitive_features=["sex"],
    ... )
    >>> sensitive_coordinates(named, None, 3)
    [1]
    """
    if metric.sensitive_features:
        where = ColumnPlaces("fit", width, metric.feature_names, encoder)
        known = [name for name in metric.sensitive_features if where.has(name)]
        return sorted({i for name in known for i in where.find(name)})
    free = metric.null_space
    if metric.feature_names is not None or free.dim >= width:
        return []
    inside = np.square(np.asarray(to_numpy(free.basis), dtype=float)).sum(axis=1)
    return [int(i) for i in np.flatnonzero(inside > 1.0 - 1e-9)]


def choose_blindness(
    blind_to: Any, metric: FairMetric, x: FloatArray, sensitive: Sequence[int] = (), *, owner: str
) -> BlindTo | None:
    """Return what "auto" means for these rows, and any other choice as it is.

    Parameters
    ----------
    blind_to : "auto", "subspace", "columns" or None
    metric : FairMetric
    x : ndarray of shape (n, d)
        Encoded rows.
    sensitive : sequence of int
        Coordinates of the sensitive columns.
    owner : str

    Examples
    --------
    >>> metric = FairMetric.from_subspace(Subspace.from_directions([[1.0, 0.0]]))
    >>> x = np.random.default_rng(0).normal(size=(50, 2))
    >>> choose_blindness("auto", metric, x * [0.5, 1.0], owner="fit")
    'subspace'
    >>> choose_blindness("auto", metric, x * [5.0, 1.0], owner="fit")
    'columns'
    """
    if blind_to is None:
        return None
    if not isinstance(blind_to, str) or blind_to not in ("auto", "subspace", "columns"):
        raise bad_parameter(
            owner, "blind_to", allowed="'auto', 'subspace', 'columns' or None", got=repr(blind_to)
        )
    if blind_to != "auto":
        return "subspace" if blind_to == "subspace" else "columns"
    return "subspace" if share_swallowed(x, metric.null_space, sensitive) <= MOST else "columns"


def blind_directions(
    blind_to: BlindTo | None, metric: FairMetric, sensitive: list[int], width: int
) -> Subspace | None:
    """Return what is projected off in front of the network; None for nothing.

    Parameters
    ----------
    blind_to : "subspace", "columns" or None
        As `choose_blindness` resolved it.
    metric : FairMetric
    sensitive : list of int
        Coordinates of the sensitive columns.
    width : int

    Examples
    --------
    >>> metric = FairMetric.from_subspace(Subspace.from_directions([[1.0, 1.0, 0.0]]))
    >>> blind_directions("columns", metric, [2], 3).basis.ravel().tolist()
    [0.0, 0.0, 1.0]
    >>> blind_directions("subspace", metric, [2], 3).dim
    2
    """
    rows = [np.eye(width)[sensitive]] if blind_to is not None else []
    if blind_to == "subspace" and metric.null_space.dim:
        rows.append(np.asarray(to_numpy(metric.null_space.basis), dtype=float).T)
    directions = np.concatenate([np.zeros((0, width)), *rows])
    return Subspace.from_directions(directions) if len(directions) else None
