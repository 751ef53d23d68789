"""The paper's Project: plain training on rows without the sensitive directions."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from likewise.domains import TabularDomain
from likewise.estimators.fields_as_parameters import parameters_from_fields
from likewise.estimators.metrics import metric_encoder, trained_metric
from likewise.estimators.network_classifier import NetworkClassifier
from likewise.estimators.network_rows import TrainingRows
from likewise.preprocessing.project import projected_off

__all__ = ["ProjectClassifier"]


@parameters_from_fields
class ProjectClassifier(NetworkClassifier):
    """Plain training on rows projected off the sensitive subspace, as the paper's "Project".

    The same as a pipeline of `likewise.preprocessing.Project` and `MLPBaselineClassifier`, in one estimator whose
    network takes the unprojected rows: the projection is folded into its first layer.

    Parameters
    ----------
    metric : FairMetric, learner or list of them, optional
        Whose sensitive subspace is projected off; as in `SenSRClassifier`.

    Attributes
    ----------
    metric_ : FairMetric
    removed_ : Subspace
        What was projected off.

    Examples
    --------
    >>> import numpy as np
    >>> from likewise.fair_metrics import ExpertSubspace
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> clf = ProjectClassifier(ExpertSubspace([0]), n_steps=100, random_state=0).fit(X, X.sum(axis=1) > 0)
    >>> a, b = clf.predict_proba([[-9.0, 1.0], [9.0, 1.0]])
    >>> bool(np.allclose(a, b))
    True
    """

    metric: Any = field(default=None, kw_only=False)

    def _encoder(self) -> TabularDomain | None:
        return self.domain if self.domain is not None else metric_encoder(self.metric)

    def _learn(self, rows: TrainingRows) -> None:
        self.metric_ = trained_metric(self.metric, rows, owner=type(self).__name__)
        self.removed_ = projected_off(self.metric_, owner=type(self).__name__)

    def _why_at_chance(self) -> str:
        linear = "" if self.hidden_layer_sizes or self.module is not None else "add hidden layers, "
        return (
            f"what tells it was projected off: {linear}name fewer attributes, or project off just the sensitive columns "
            "themselves: metric=ExpertSubspace([...])"
        )
