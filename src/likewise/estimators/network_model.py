"""A fitted estimator as a `Model`: its network, with gradients, on encoded rows or raw tables."""

from __future__ import annotations

from typing import Any

from likewise.domains import TabularDomain
from likewise.models.losses import LossLike
from likewise.models.torch_module import TorchModel
from likewise.preprocessing.transformer_rows import read_new_rows

__all__ = ["NetworkModel"]


class NetworkModel(TorchModel):
    """The network of a fitted estimator; what `likewise.models.as_model` makes of one.

    Encoded rows go to the network as they are; raw tables are encoded by the estimator's own encoder first.

    Parameters
    ----------
    estimator : NetworkClassifier
        Fitted.
    loss : str, Loss or callable, default="cross_entropy"
    classes : array-like, optional
        Other names for the estimator's classes, in the same order.

    Attributes
    ----------
    encoder : TabularDomain or None
        What encodes raw tables.
    """

    def __init__(self, estimator: Any, *, loss: LossLike = "cross_entropy", classes: Any = None) -> None:
        names = estimator.classes_ if classes is None else classes
        super().__init__(estimator.module_, loss=loss, classes=names)
        self.estimator = estimator
        self.encoder: TabularDomain | None = getattr(estimator, "encoder_", None)
        known = getattr(estimator, "feature_names_in_", None) if self.encoder is None else None
        self.feature_names = None if known is None else tuple(map(str, known))

    def _rows(self, X: Any) -> Any:
        if self.encoder is None:
            return super()._rows(X)
        return read_new_rows(self.estimator, X, owner=type(self.estimator).__name__)
