"""The metric of an estimator on encoded rows, from the metric or learner that it was given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from likewise.core.checks import to_numpy
from likewise.core.errors import InputError, bad_parameter
from likewise.core.subspace import Subspace
from likewise.data.domain import DataRangeDomain, Domain
from likewise.data.tabular import TabularDomain
from likewise.fair_metrics import FairMetric
from likewise.fair_metrics.learner import ready_metric
from likewise.mitigation.project import check_width, projected_off
from likewise.training.estimators.rows import TrainingRows


def metric_encoder(metric: Any) -> TabularDomain | None:
    """Return the encoder that a metric or a learner (or one of a list) carries, if any."""
    if isinstance(metric, (list, tuple)):
        return next((found for part in metric if (found := metric_encoder(part)) is not None), None)
    for name in ("feature_map", "domain"):
        carried = getattr(metric, name, None)
        if isinstance(carried, TabularDomain):
            return carried
    return None


def trained_metric(metric: Any, rows: TrainingRows, *, owner: str) -> FairMetric:
    """Return the metric on the encoded rows, fitted on them if it is a learner."""
    found = ready_metric(
        metric, rows.given, owner=owner, sensitive_features=rows.sensitive_features, encoder=rows.encoder
    )
    check_width(found, rows.x.shape[1], owner=owner)
    _check_fits(found, rows, owner)
    return found


def _check_fits(metric: FairMetric, rows: TrainingRows, owner: str) -> None:
    if rows.encoder is None or metric.feature_names is None:
        return
    names = tuple(str(name) for name in rows.encoder.get_feature_names_out())
    if metric.feature_names != names:
        other = next((a, b) for a, b in zip(metric.feature_names, names, strict=True) if a != b)
        raise InputError(
            f"{owner}: the metric was made on other columns than the table is encoded to: {other[0]!r} where "
            f"the table has {other[1]!r}. Pass the metric's own encoder as domain=."
        )
    if isinstance(metric.feature_map, TabularDomain):
        for mine, theirs in zip(rows.encoder.columns_, metric.feature_map.columns_, strict=True):
            if mine.curve != theirs.curve:
                raise InputError(
                    f"{owner}: the metric was made with another scale of {mine.name!r} than the table is encoded with. "
                    "Pass the metric's own encoder as domain=."
                )


def removed_directions(
    directions: list[Any], rows: TrainingRows, *, owner: str
) -> tuple[Subspace | None, tuple[str, ...]]:
    """Return the directions that metrics or learners make cheap, to be projected off, and their sensitive columns."""
    if not directions:
        return None, ()
    metric = trained_metric(directions if len(directions) > 1 else directions[0], rows, owner=owner)

    return projected_off(metric, owner=owner), metric.sensitive_features


def metric_of_model(
    metric: FairMetric, removed: Subspace | None, sensitive_features: Sequence[str] = ()
) -> FairMetric:
    """Return the metric of a model that does not see `removed`: what is projected off costs nothing too."""
    if removed is None:
        return metric
    return metric | FairMetric.from_subspace(
        removed,
        feature_map=metric.feature_map,
        feature_names=metric.feature_names,
        sensitive_features=sensitive_features,
    )


def searched_metric(metric: FairMetric, removed: Subspace | None) -> FairMetric:
    """Return the metric to search with: without the projected directions, along which nothing can be found."""
    if removed is None:
        return metric
    free = metric.null_space
    rest = removed.remove(np.asarray(to_numpy(free.basis), dtype=float).T)
    # What lies inside the projection up to rounding is not a direction of its own.
    rest = rest[np.linalg.norm(rest, axis=1) > 1e-6]
    if metric.weight != 0.0:
        # Not all cheap directions are free: leave their prices as they are.
        return metric
    left = Subspace.from_directions(rest if len(rest) else np.zeros((1, removed.n_features)))
    return FairMetric.from_subspace(
        left, feature_names=metric.feature_names, sensitive_features=metric.sensitive_features
    )


def search_region(search_domain: Any, metric: FairMetric, rows: TrainingRows, *, owner: str) -> Domain | None:
    """Return where the search may go: anywhere (None), a domain, or along each free direction as far as the data goes."""
    if search_domain is None or isinstance(search_domain, Domain):
        return search_domain
    if not isinstance(search_domain, str) or search_domain != "data":
        raise bad_parameter(owner, "search_domain", allowed="None, 'data' or a Domain", got=search_domain)
    free = metric.null_space
    return DataRangeDomain.from_data(rows.x, free) if free.dim else None
