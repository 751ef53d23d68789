"""A metric given ready, as a learner, or as several of either: one `FairMetric` on the rows at hand."""

from __future__ import annotations

import inspect
from typing import Any

from sklearn.base import clone

from likewise.core.errors import InputError, bad_parameter
from likewise.core.subspace import Subspace
from likewise.fair_metrics.feature_maps import is_encoder
from likewise.fair_metrics.metric import FairMetric

__all__ = ["ready_metric"]


def ready_metric(
    metric: Any, X: Any, *, owner: str, sensitive_features: Any = None, encoder: Any = None
) -> FairMetric:
    """Return the fair metric that was given, or fit a clone of the learner that was given.

    Parameters
    ----------
    metric : FairMetric, Subspace, learner, Edit with consequences, or list of them
        A learner (`AttributeSubspace(["sex"])`) is cloned and fitted on X; a subspace is ignored by the metric; an edit
        stands for the learner that its twins make (`likewise.twins.TwinSubspace`); a list means the union.
    X : array or frame of shape (n, p)
        What learners are fitted on.
    owner : str
        For error messages.
    sensitive_features : array, Series, frame or dict, optional
        Handed to learners whose `fit` takes them.
    encoder : TabularDomain, optional
        Fitted encoder of X where it is a raw frame; learners without one of their own get it.

    Returns
    -------
    FairMetric

    Examples
    --------
    >>> import pandas as pd
    >>> from likewise.fair_metrics import ExpertSubspace
    >>> people = pd.DataFrame({"age": [0.0, 1.0], "sex_Male": [0.0, 1.0], "race_White": [1.0, 1.0]})
    >>> metric = ready_metric([ExpertSubspace(["sex"]), ExpertSubspace(["race"])], people, owner="fit")
    >>> metric.subspace.dim
    2
    """
    if isinstance(metric, (list, tuple)):
        if not metric:
            raise bad_parameter(owner, "metric", allowed="at least one metric or learner", got="none")
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
            allowed="a FairMetric, a learner such as AttributeSubspace(['sex']), an Edit with consequences, or a list of "
            "them",
            got=f"the class {metric.__name__}" if isinstance(metric, type) else type(metric).__name__,
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
