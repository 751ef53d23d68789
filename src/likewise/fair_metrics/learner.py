"""The base of all learners: reads a table of any kind as named features φ, and stores the metric learned."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import validate_data

from likewise.core.checks import FloatArray, check_matrix, check_number, is_tensor, to_numpy
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import declared_encoded, is_frame, is_raw, to_pandas, with_columns
from likewise.core.subspace import Subspace
from likewise.fair_metrics.metric import FairMetric
from likewise.fair_metrics.naming import ColumnPlaces, apply_feature_map, is_encoder, map_names

# A metric given ready, as a learner, or as several of either: one `FairMetric` on the rows at hand.


def ready_metric(
    metric: Any, X: Any, *, owner: str, sensitive_features: Any = None, encoder: Any = None
) -> FairMetric:
    """Return the fair metric that was given, or fit a clone of the learner that was given.

    None is `AttributeSubspace` of the `sensitive_features`.
    """
    if metric is None:
        if sensitive_features is None:
            raise InputError(
                f"{owner}: nothing says who is comparable. Pass metric=AttributeSubspace(['sex']) or another "
                "metric or learner, or the sensitive attributes as fit(X, y, sensitive_features=...)."
            )
        from likewise.fair_metrics.attribute import AttributeSubspace

        metric = AttributeSubspace()
    if isinstance(metric, (list, tuple)):
        if not metric:
            raise bad_parameter(owner, "metric", "at least one metric or learner", "none")
        parts = [
            ready_metric(part, X, owner=owner, sensitive_features=sensitive_features, encoder=encoder)
            for part in metric
        ]
        union = parts[0]
        for part in parts[1:]:
            union = union | part
        return union
    if isinstance(metric, FairMetric):
        return metric
    if hasattr(metric, "metric_learner"):  # an edit with consequences knows who is comparable
        metric = metric.metric_learner(owner=owner)
    if isinstance(metric, Subspace):
        return FairMetric.from_subspace(metric, feature_map=encoder)
    if isinstance(metric, type) or not hasattr(metric, "fit") or not hasattr(metric, "get_params"):
        raise bad_parameter(
            owner,
            "metric",
            "a FairMetric, a learner such as AttributeSubspace(['sex']), an Edit with consequences, or a list of "
            "them",
            f"the class {metric.__name__}" if isinstance(metric, type) else type(metric).__name__,
        )
    return _learn(metric, X, owner=owner, sensitive_features=sensitive_features, encoder=encoder)


def _learn(learner: Any, X: Any, *, owner: str, sensitive_features: Any, encoder: Any) -> FairMetric:
    fresh = clone(learner)
    # A clone of an encoder forgets the people it was fitted on; the one that was given is meant.
    given = learner.get_params(deep=False)
    fresh.set_params(
        **{name: given[name] for name in ("domain", "feature_map") if is_encoder(given.get(name))}
    )
    choices = fresh.get_params(deep=False)
    unset = choices.get("feature_map") is None and choices.get("domain") is None
    if is_encoder(encoder) and "domain" in choices and unset:
        fresh.set_params(domain=encoder)
    beside = {}
    if sensitive_features is not None and "sensitive_features" in inspect.signature(fresh.fit).parameters:
        beside["sensitive_features"] = sensitive_features
    fresh.fit(X, **beside)
    found = getattr(fresh, "metric_", None)
    if not isinstance(found, FairMetric):
        raise InputError(
            f"{owner}: 'metric' is {type(learner).__name__}, which learned no metric_. "
            "Pass a learner of likewise.fair_metrics, or a FairMetric."
        )
    return found


@dataclass(frozen=True)
class Features:
    """Rows as a learner sees them."""

    phi: FloatArray
    where: ColumnPlaces
    feature_map: Any
    frame: pd.DataFrame | None
    holes: dict[int, Any]


class SubspaceLearner(BaseEstimator):
    """Base of the estimators that learn a sensitive subspace: reads the input, and stores what was learned."""

    weight: float
    domain: Any
    feature_map: Any
    encoder_: Any

    def _read(self, X: Any, *, may_miss: Iterable[Any] = (), reset: bool = True, rows: int = 1) -> Features:
        """Return the features of X: a raw frame is encoded, a numeric one and an array are taken as they are.

        Columns in `may_miss` (attributes known for part of the rows) may have missing values.
        """
        owner = type(self).__name__
        if self.domain is not None and self.feature_map is not None:
            raise InputError(
                f"{owner}: 'domain' and 'feature_map' were both given. A domain is itself the feature map; "
                "pass one of them."
            )
        if reset and hasattr(self, "encoder_"):
            del self.encoder_
        if is_tensor(X):
            X = to_numpy(X)
        frame = to_pandas(X, owner=owner, name="X") if is_frame(X) else None
        if self.feature_map is not None and not is_encoder(self.feature_map):
            phi = check_matrix(to_numpy(apply_feature_map(self.feature_map, X)), owner=owner)
            self._remember_columns(X if frame is None else frame, reset=reset)
            return Features(np.asarray(phi), ColumnPlaces(owner, phi.shape[1]), self.feature_map, frame, {})
        domain = getattr(self, "encoder_", self.feature_map if self.domain is None else self.domain)
        names = map_names(domain)
        encoded = declared_encoded(X)
        if frame is not None and not encoded and (domain is not None or is_raw(frame)):
            return self._read_raw(owner, frame, domain, list(may_miss), reset=reset)
        where_names = names if frame is None else tuple(frame.columns)
        array = validate_data(
            self,
            X if frame is None else frame,
            dtype=[np.float64, np.float32],
            # A frame is checked below, where the message can name the column.
            ensure_all_finite=frame is None and not may_miss,
            ensure_min_samples=rows,
            reset=reset,
        )
        where = ColumnPlaces(owner, array.shape[1], where_names, domain if names else None)
        phi, holes = _without_holes(owner, array, where, list(may_miss))
        return Features(phi, where, where.domain, frame, holes)

    def _read_raw(
        self, owner: str, frame: pd.DataFrame, domain: Any, may_miss: list[Any], *, reset: bool
    ) -> Features:
        filled, missing = _fill(frame, may_miss)
        if not is_encoder(domain):
            from likewise.data.tabular import TabularDomain

            domain = TabularDomain.from_frame(filled) if domain is None else clone(domain).fit(filled)
        phi = np.array(domain.encode_array(filled), dtype=float)
        where = ColumnPlaces(owner, phi.shape[1], map_names(domain), domain)
        holes = {i: rows for name, rows in missing.items() for i in where.find(name)}
        for i, rows in holes.items():
            phi[rows, i] = 0.0
        self._remember_columns(frame, reset=reset)
        self.encoder_ = domain
        return Features(phi, where, domain, frame, holes)

    def _remember_columns(self, X: Any, *, reset: bool) -> None:
        """Keep scikit-learn's record of the columns if the table is not numeric."""
        if not reset and hasattr(self, "n_features_in_"):
            return
        self.n_features_in_ = int(np.shape(X)[1])
        if isinstance(X, pd.DataFrame):
            self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _learned(
        self,
        subspace: Subspace,
        features: Features,
        sensitive_features: Iterable[str | None] = (),
        removed_variance: str | None = None,
    ) -> None:
        """Store the subspace and the metric that ignores it, which was told that some columns are sensitive.

        `removed_variance` says how much of the table it takes and why, if that is too much.
        """
        weight = check_number(self.weight, owner=type(self).__name__, name="weight", low=0.0, high=1.0)
        self.subspace_ = subspace
        self.metric_ = FairMetric.from_subspace(
            subspace,
            weight,
            feature_map=features.feature_map,
            feature_names=features.where.names,
            sensitive_features=[name for name in sensitive_features if name is not None],
        )
        warn_if_all_is_free(self.metric_, owner=type(self).__name__, removed_variance=removed_variance)


def warn_if_all_is_free(metric: FairMetric, *, owner: str, removed_variance: str | None = None) -> None:
    """Give a `UserWarning` if Σ = 0: everybody is comparable with everybody, whatever they differ in.

    Also if it is nearly so, by `removed_variance`.
    """
    if (metric.scale == 0 or metric.basis.shape[1] == metric.n_features) and not (
        metric.scale + metric.values
    ).any():
        warnings.warn(
            f"{owner}: the metric is zero: all of its {metric.n_features} directions are free, so everybody is "
            "comparable with everybody. Name fewer columns as sensitive, or fewer directions; a weight above 0 keeps "
            f"some of the cost.{'' if removed_variance is None else f' ({removed_variance}.)'}",
            UserWarning,
            stacklevel=4,
        )
    elif removed_variance is not None and metric.weight == 0.0:
        warnings.warn(
            f"{owner}: {removed_variance}: people who differ in nearly everything are comparable. Name fewer attributes or "
            "merge rare values of one; raise 'regularization'; or make only the columns themselves free with "
            "ExpertSubspace.",
            UserWarning,
            stacklevel=4,
        )


def _without_holes(
    owner: str, array: FloatArray, where: ColumnPlaces, may_miss: list[Any]
) -> tuple[FloatArray, dict[int, Any]]:
    """Encoded values with 0 for what is missing; only the coordinates of `may_miss` may have holes."""
    allowed = sorted({i for name in may_miss if where.has(name) for i in where.find(name)})
    holes = {i: np.isnan(array[:, i]) for i in allowed}
    holes = {i: rows for i, rows in holes.items() if rows.any()}
    if holes:
        array = array.copy()
        for i, rows in holes.items():
            array[rows, i] = 0.0
    if where.names is None and not may_miss:
        # scikit-learn has looked for what is not finite already.
        return array, holes
    table = array if where.names is None else pd.DataFrame(array, columns=list(where.names), copy=False)
    return np.asarray(check_matrix(table, owner=owner)), holes


def _fill(frame: pd.DataFrame, may_miss: list[Any]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Fill the holes of partly known columns with their commonest value, and say which rows had them."""
    filled = frame
    missing: dict[str, Any] = {}
    for name in may_miss:
        if name not in frame.columns:
            continue
        holes = frame[name].isna().to_numpy()
        known = frame[name].dropna()
        if holes.any() and len(known):
            missing[name] = holes
            filled = with_columns(filled, {name: frame[name].fillna(known.mode().iloc[0])})
    return filled, missing


# How much of a table a sensitive subspace takes besides the sensitive columns, and because of which attribute.


# A network that is blind to more than this share has too little left to learn from.
MOST = 0.5
# A metric that makes more than this share free calls people comparable who differ in nearly everything. One direction
# alone does so only if there are hardly any columns.
_NEARLY_ALL = 0.8
_SEVERAL = 2
# A share is known to a percent by so many rows.
_ROWS = 10_000


def removed_share(x: FloatArray, free: Subspace, sensitive: Sequence[int] = ()) -> float:
    """Return the share of the variance of all but the sensitive columns that lies in free directions."""
    centred = x - x.mean(axis=0)
    centred[:, list(sensitive)] = 0.0
    everything = float(np.square(centred).sum())
    if not free.dim or everything == 0.0:
        return 0.0
    directions = np.array(to_numpy(free.basis), dtype=float).T
    directions[:, list(sensitive)] = 0.0
    # What is sensitive up to rounding is not a direction of its own.
    rest = Subspace.from_directions(directions[np.linalg.norm(directions, axis=1) > 1e-6])
    return float(np.square(rest.coordinates(centred)).sum()) / everything if rest.dim else 0.0


def removed_variance_words(
    phi: FloatArray, directions: Mapping[Any, FloatArray], own: Sequence[int], whole: Subspace
) -> str | None:
    """Return a sentence about attributes whose directions take nearly all of the other columns' variance; else None."""
    some = np.asarray(phi[:: max(1, len(phi) // _ROWS)], dtype=float)
    share = removed_share(some, whole, own)
    if share <= _NEARLY_ALL or sum(len(rows) for rows in directions.values()) < _SEVERAL:
        return None
    parts = []
    for name, rows in directions.items():
        span = Subspace.from_directions(rows)
        parts.append((removed_share(some, span, own), span.dim, name))
    parts.sort(key=lambda part: -part[0])
    said = [f"{parts[0][0]:.0%} by the {parts[0][1]} directions of {parts[0][2]!r}"]
    said += [f"{part:.0%} by the {dim} of {name!r}" for part, dim, name in parts[1:]]
    return f"{share:.0%} of the variance of the other columns is free, {', '.join(said)}"
