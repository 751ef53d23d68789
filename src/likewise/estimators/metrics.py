"""Who is comparable, from what an estimator was given: a metric on the encoded rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.core.arrays import to_numpy
from likewise.core.errors import InputError
from likewise.core.subspace import Subspace
from likewise.domains import TabularDomain
from likewise.estimators.rows import TrainingRows
from likewise.fair_metrics import AttributeSubspace, FairMetric
from likewise.fair_metrics.ready import ready_metric

__all__ = ["metric_encoder", "removed_directions", "searched_metric", "trained_metric"]


def metric_encoder(metric: Any) -> TabularDomain | None:
    """Return the encoder that a metric or a learner (or one of a list) carries, if any.

    Examples
    --------
    >>> metric_encoder(AttributeSubspace(["sex"])) is None
    True
    """
    if isinstance(metric, (list, tuple)):
        return next((found for part in metric if (found := metric_encoder(part)) is not None), None)
    for name in ("feature_map", "domain"):
        carried = getattr(metric, name, None)
        if isinstance(carried, TabularDomain):
            return carried
    return None


def trained_metric(metric: Any, rows: TrainingRows, *, owner: str) -> FairMetric:
    """Return the metric on the encoded rows, fitted on them where it is a learner.

    Parameters
    ----------
    metric : None, FairMetric, learner or list
        None learns one from the sensitive features.
    rows : TrainingRows
    owner : str
    """
    if metric is None:
        if rows.sensitive is None:
            raise InputError(
                f"{owner}: nothing says who is comparable. Pass metric=AttributeSubspace(['sex']) or another "
                "metric or learner, or the sensitive attributes as fit(X, y, sensitive_features=...)."
            )
        metric = AttributeSubspace()
    found = ready_metric(
        metric, rows.given, owner=owner, sensitive_features=rows.sensitive, encoder=rows.encoder
    )
    _check_fits(found, rows, owner)
    return found


def _check_fits(metric: FairMetric, rows: TrainingRows, owner: str) -> None:
    width = rows.x.shape[1]
    if metric.n_features is not None and metric.n_features != width:
        raise InputError(
            f"{owner}: the metric is of {metric.n_features} columns, the encoded rows have {width}. "
            "Learn it on the same table, or pass the learner itself to have it fitted here."
        )
    if rows.encoder is None or metric.feature_names is None:
        return
    names = tuple(str(name) for name in rows.encoder.get_feature_names_out())
    if metric.feature_names != names:
        other = next((a, b) for a, b in zip(metric.feature_names, names, strict=True) if a != b)
        raise InputError(
            f"{owner}: the metric was made on other columns than the table is encoded to: {other[0]!r} where "
            f"the table has {other[1]!r}. Pass the metric's own encoder as domain=."
        )


def removed_directions(project: Any, rows: TrainingRows, *, owner: str) -> Subspace | None:
    """Return the directions that a metric or learner makes cheap, to be projected off; None for none."""
    if project is None:
        return None
    found = trained_metric(project, rows, owner=owner).subspace
    if found is None or found.dim == 0:
        raise InputError(
            f"{owner}: there is nothing to project off: the metric has no sensitive subspace. "
            "Pass one that has, such as ExpertSubspace(['sex'])."
        )
    if found.dim >= found.n_features:
        raise InputError(
            f"{owner}: the subspace to project off is the whole space of {found.n_features} columns: nothing "
            "would be left. Name fewer directions."
        )
    return found


def searched_metric(metric: FairMetric, removed: Subspace | None) -> tuple[FairMetric, FairMetric]:
    """Return the metric of a model that does not see `removed`, and the one to search with.

    Along what is projected off nothing can be found, so the search leaves those directions out.

    Examples
    --------
    >>> metric = FairMetric.from_subspace(Subspace.from_directions([[1.0, 1.0, 0.0]]))
    >>> whole, searched = searched_metric(metric, Subspace.from_directions([[1.0, 0.0, 0.0]]))
    >>> whole.subspace.dim, abs(searched.subspace.basis).ravel().tolist()
    (2, [0.0, 1.0, 0.0])
    """
    if removed is None:
        return metric, metric
    free = FairMetric.from_subspace(
        removed, feature_map=metric.feature_map, feature_names=metric.feature_names
    )
    own, weight = metric.subspace, metric.weight
    if own is None or weight is None:
        return metric | free, metric
    rest = removed.remove(np.asarray(to_numpy(own.basis), dtype=float).T)
    # What lies inside the projection up to rounding is no direction of its own.
    rest = rest[np.linalg.norm(rest, axis=1) > 1e-6]
    left = Subspace.from_directions(rest if len(rest) else np.zeros((1, removed.n_features)))
    return metric | free, FairMetric.from_subspace(left, weight, feature_names=metric.feature_names)
