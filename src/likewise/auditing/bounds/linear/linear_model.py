"""Linear models as the exact audit sees them: one row of weights per class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.core.arrays import FloatArray, is_tensor, to_numpy
from likewise.core.errors import InputError, ModelError, bad_parameter

__all__ = ["LOSSES", "LinearModel"]

LOSSES = ("cross_entropy", "hinge", "zero_one")


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A classifier with scores z = Wx + b, and the loss it is audited with.

    Parameters
    ----------
    coef : array of shape (C, d), (1, d) or (d,)
        Weights. One row means two classes: its score is for the second class against the first.
    intercept : array of shape (C,) or float
        Biases.
    classes : array of shape (C,), optional
        The labels, in the order of the rows; 0, 1, … where not given.
    loss : {"cross_entropy", "hinge", "zero_one"}, default="cross_entropy"
        Cross-entropy log Σ exp(z_j) − z_y; hinge max(0, 1 − (z_y − max_{j≠y} z_j)); 0–1 for a wrong decision.

    Examples
    --------
    >>> model = LinearModel([2.0, 0.0], -1.0, classes=["no", "yes"], loss="hinge")
    >>> model.losses([[1.0, 5.0]], ["no"])
    array([2.])
    """

    coef: FloatArray
    intercept: FloatArray
    classes: np.ndarray[Any, Any] | None = None
    loss: str = "cross_entropy"

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise bad_parameter("LinearModel", "loss", allowed=f"one of {', '.join(LOSSES)}", got=self.loss)
        coef = np.atleast_2d(np.array(to_numpy(self.coef), dtype=float))
        intercept = np.atleast_1d(np.array(to_numpy(self.intercept), dtype=float))
        if coef.ndim != 2 or intercept.shape != (coef.shape[0],):
            raise bad_parameter(
                "LinearModel",
                "intercept",
                allowed=f"one number per row of the weights ({coef.shape[0]})",
                got=f"shape {intercept.shape}",
            )
        if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
            raise ModelError(
                "LinearModel: the weights are not finite. Train the model again before auditing it."
            )
        if coef.shape[0] == 1:
            coef = np.vstack([np.zeros_like(coef), coef])
            intercept = np.concatenate([[0.0], intercept])
        classes = np.arange(len(coef)) if self.classes is None else to_numpy(self.classes)
        if classes.shape != (len(coef),):
            raise bad_parameter(
                "LinearModel", "classes", allowed=f"{len(coef)} labels", got=f"shape {classes.shape}"
            )
        object.__setattr__(self, "coef", coef)
        object.__setattr__(self, "intercept", intercept)
        object.__setattr__(self, "classes", classes)

    @classmethod
    def from_model(cls, model: Any, *, loss: str = "cross_entropy") -> LinearModel:
        """Read the weights of a fitted linear model.

        Parameters
        ----------
        model : LinearModel, Model, scikit-learn linear classifier, torch.nn.Linear, or a Sequential of one
            A `LinearModel` is returned as it is; it and a `Model` of `as_model` have a loss of their own.
        loss : str
            As in the class, for models that do not say.

        Returns
        -------
        LinearModel

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> fitted = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
        >>> LinearModel.from_model(fitted).coef.shape
        (2, 1)
        """
        if isinstance(model, cls):
            return model
        if hasattr(model, "linear_form"):
            return _from_adapter(model)
        if hasattr(model, "coef_") and hasattr(model, "classes_"):
            linear = cls(model.coef_, model.intercept_, model.classes_, loss)
            _check_softmax(model, linear)
            return linear
        layers = list(model.children()) if hasattr(model, "children") else []
        layer = layers[0] if len(layers) == 1 else model
        weight: Any = getattr(layer, "weight", None)
        bias: Any = getattr(layer, "bias", None)
        if is_tensor(weight) and to_numpy(weight).ndim == 2 and not list(layer.children()):
            return cls(
                to_numpy(weight), np.zeros(len(weight)) if bias is None else to_numpy(bias), None, loss
            )
        raise InputError(
            f"LinearModel.from_model: {type(model).__name__} is not a linear classifier that can be read. "
            "Pass a fitted scikit-learn linear classifier, a torch.nn.Linear, or LinearModel(coef, intercept)."
        )

    @property
    def n_features(self) -> int:
        """Number of columns, d."""
        return int(self.coef.shape[1])

    @property
    def n_classes(self) -> int:
        """Number of classes, C."""
        return int(self.coef.shape[0])

    def label_index(self, y: Any) -> np.ndarray[Any, np.dtype[np.intp]]:
        """Position of each label in `classes`, shape (n,)."""
        labels = to_numpy(y).reshape(-1)
        match = labels[:, None] == np.asarray(self.classes)[None, :]
        unknown = ~match.any(axis=1)
        if unknown.any():
            row = int(unknown.argmax())
            raise InputError(
                f"LinearModel: label {labels[row]!r} at row {row} is none of the classes "
                f"{np.asarray(self.classes).tolist()}. Pass labels the model was trained on."
            )
        return np.asarray(match.argmax(axis=1), dtype=np.intp)

    def losses(self, X: Any, y: Any) -> FloatArray:
        """Loss of each row under its label, shape (n,)."""
        return self.losses_at(np.asarray(to_numpy(X), dtype=float), self.label_index(y))

    def losses_at(self, X: FloatArray, index: np.ndarray[Any, np.dtype[np.intp]]) -> FloatArray:
        """Loss of each row under the class of that position, shape (n,); no checks, for inner loops."""
        scores = X @ self.coef.T + self.intercept
        return loss_of_scores(scores - np.take_along_axis(scores, index[:, None], 1), index, self.loss)


def loss_of_scores(excess: FloatArray, index: np.ndarray[Any, np.dtype[np.intp]], loss: str) -> FloatArray:
    """Loss from the excess of every class's score over the label's own, z_j − z_y, shape (n, C)."""
    if loss == "cross_entropy":
        top = excess.max(axis=1)
        return np.asarray(top + np.log(np.exp(excess - top[:, None]).sum(axis=1)))
    others = excess.copy()
    np.put_along_axis(others, index[:, None], -np.inf, 1)
    worst = others.max(axis=1)
    if loss == "hinge":
        return np.asarray(np.maximum(0.0, 1.0 + worst))
    # The decision is the first class with the top score, as argmax has it.
    return np.asarray(excess.argmax(axis=1) != index, dtype=float)


def _from_adapter(model: Any) -> LinearModel:
    """Read a `likewise.models.Model` whose scores are linear."""
    form = None if model.loss.regression else model.linear_form()
    estimator = getattr(model, "estimator", None)
    if form is None and model.loss.name == "zero_one" and hasattr(estimator, "coef_"):
        # Only the decision counts, and that of every linear classifier is its largest score.
        return LinearModel.from_model(estimator, loss="zero_one")
    if form is None or model.loss.name not in LOSSES:
        raise InputError(
            f"LinearModel.from_model: {type(model).__name__} with {model.loss.name} loss is not a linear classifier "
            f"under one of {', '.join(LOSSES)}. Audit it by search instead."
        )
    coef, intercept = form
    return LinearModel(coef, intercept, model.classes_, model.loss.name)


def _check_softmax(model: Any, linear: LinearModel) -> None:
    """Refuse probabilities that are no softmax of the scores (one-vs-rest models, calibrated ones)."""
    if linear.loss != "cross_entropy":
        return
    wide = np.abs(linear.coef).sum(axis=1).max()
    X = np.random.default_rng(0).normal(size=(16, linear.n_features)) / max(float(wide), 1.0)
    probability = model.predict_proba(X) if hasattr(model, "predict_proba") else None
    scores = X @ linear.coef.T + linear.intercept
    scores -= scores.max(axis=1, keepdims=True)
    softmax = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    if probability is None or not np.allclose(probability, softmax, atol=1e-5):
        raise InputError(
            f"LinearModel.from_model: the probabilities of {type(model).__name__} are not the softmax of its "
            "linear scores, so its cross-entropy has no exact audit. Use loss='hinge' or loss='zero_one'."
        )
