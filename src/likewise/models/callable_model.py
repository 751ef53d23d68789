"""Any function that predicts, as a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from likewise.core.errors import bad_parameter
from likewise.models.losses import Loss, LossLike, as_loss
from likewise.models.model import Model, OutputKind
from likewise.models.model_rows import named

__all__ = ["CallableModel"]


class CallableModel(Model):
    """A prediction function.

    Parameters
    ----------
    function : callable
        Takes a numeric array (n, d), or a pandas frame when ``takes_frame=True``, and returns class
        probabilities (n, C), or (n,) of the second of two classes. With ``loss="hinge"`` or
        ``output="logits"`` it returns scores; for regression one value per row.
    loss : str, Loss or callable, default="cross_entropy"
    classes : array-like, optional
        Labels in the order of the outputs; 0, 1, … by default. Taken from the owner of a bound method such as
        ``pipeline.predict_proba``.
    takes_frame : bool, optional
        Whether it takes the table; False unless the function is a bound method of an estimator that was fitted
        on a table with categories.
    output : {"auto", "probabilities", "logits"}, default="auto"
        What the function returns.
    batch_rows : int, default=16384
        Rows per call.

    Examples
    --------
    >>> import numpy as np
    >>> model = CallableModel(lambda X: 1 / (1 + np.exp(-X[:, 0])))
    >>> model.losses(np.array([[0.0], [2.0]]), [1, 1]).round(3)
    array([0.693, 0.127])
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        *,
        loss: LossLike = "cross_entropy",
        classes: Any = None,
        takes_frame: bool | None = None,
        output: Literal["auto", "probabilities", "logits"] = "auto",
        batch_rows: int = 16384,
    ) -> None:
        self.function = function
        loss = as_loss(loss)
        owner = getattr(function, "__self__", None)
        if classes is None and getattr(function, "__name__", "") != "predict":
            classes = getattr(owner, "classes_", None)
        if takes_frame is None:
            takes_frame = _owner_takes_frame(owner)
        super().__init__(
            loss=loss,
            kind=function_output(loss, output),
            classes=classes,
            takes_frame=takes_frame,
            feature_names=getattr(owner, "feature_names_in_", None),
            missing=True,
            batch_rows=batch_rows,
        )

    def _answer(self, rows: Any) -> Any:
        return self.function(named(rows, self.feature_names))


def function_output(loss: Loss, output: str) -> OutputKind:
    """What a function that is not known further returns under a loss."""
    if output not in ("auto", "probabilities", "logits"):
        raise bad_parameter("as_model", "output", allowed="'auto', 'probabilities' or 'logits'", got=output)
    if loss.regression:
        return "values"
    if output == "auto":
        return "scores" if loss.wants == "scores" else "probabilities"
    return "scores" if output == "logits" else "probabilities"


def _owner_takes_frame(owner: object) -> bool:
    if owner is None or not hasattr(owner, "feature_names_in_"):
        return False
    from likewise.models.sklearn_model import wants_table

    return wants_table(owner)
