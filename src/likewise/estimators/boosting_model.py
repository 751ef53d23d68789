"""A fitted `FairBoostingClassifier` as a `Model`: what audits ask."""

from __future__ import annotations

from typing import Any

from likewise.core.arrays import FloatArray
from likewise.models.losses import LossLike, as_loss
from likewise.models.model import Model

__all__ = ["BoostingModel"]


class BoostingModel(Model):
    """The trees of a fitted estimator; what `likewise.models.as_model` makes of one.

    Parameters
    ----------
    estimator : FairBoostingClassifier
        Fitted.
    loss : str, Loss or callable, default="cross_entropy"
    classes : array-like, optional
        Other names for the estimator's classes, in the same order.
    """

    def __init__(self, estimator: Any, *, loss: LossLike = "cross_entropy", classes: Any = None) -> None:
        names = getattr(estimator, "feature_names_in_", None)
        super().__init__(
            loss=as_loss(loss),
            kind="scores",
            classes=estimator.classes_ if classes is None else classes,
            takes_frame=names is not None,
            feature_names=names,
            n_features=estimator.n_features_in_,
            missing=True,
            batch_rows=65536,
        )
        self.estimator = estimator

    def _answer(self, rows: Any) -> FloatArray:
        scores: FloatArray = self.estimator._scores(rows)
        return scores
