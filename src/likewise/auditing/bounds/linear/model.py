"""The inner problem of an exact audit: rows, linear scores, fair cost and box in one place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from likewise.auditing.bounds.linear.box_response import BoxResponse, CostForm
from likewise.core.checks import FloatArray, IntArray, check_matrix, check_same_length, to_numpy
from likewise.core.errors import InputError, ModelError, bad_parameter
from likewise.data.domain import BoxDomain, DataRangeDomain, Unbounded
from likewise.models.convert import as_model
from likewise.models.layers import is_torch_module

# Linear models as the exact audit sees them: one row of weights per class.


LOSSES = ("cross_entropy", "hinge", "zero_one")


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A classifier with scores z = Wx + b, and the loss it is audited with.

    One row of weights means two classes: its score is for the second class against the first.
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
        """Read the weights of a fitted linear model."""
        if isinstance(model, cls):
            return model
        if hasattr(model, "linear_form"):
            return _from_adapter(model)
        if hasattr(model, "coef_") and hasattr(model, "classes_"):
            linear = cls(model.coef_, model.intercept_, model.classes_, loss)
            _check_softmax(model, linear)
            return linear
        form = as_model(model).linear_form() if is_torch_module(model) else None
        if form is not None:
            return cls(*form, None, loss)
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

    def label_index(self, y: Any) -> IntArray:
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
        index = self.label_index(y)
        scores = np.asarray(to_numpy(X), dtype=float) @ self.coef.T + self.intercept
        return loss_of_scores(scores - np.take_along_axis(scores, index[:, None], 1), index, self.loss)


def loss_of_scores(excess: FloatArray, index: IntArray, loss: str) -> FloatArray:
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


# A component of the weights below this share of their length is rounding, not a free direction.
_FREE = 1e-10


def penalised(loss: FloatArray, cost: FloatArray, lam: float) -> FloatArray:
    """Loss − λ d², where moves that cost nothing are not penalised even by λ = ∞."""
    with np.errstate(invalid="ignore"):
        return np.asarray(loss - np.where(cost > 0, lam * cost, 0.0))


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows of an exact audit; make one with `Problem.build`."""

    model: LinearModel
    X: FloatArray
    index: IntArray
    metric: Any
    domain: Any
    box: BoxResponse | None

    @classmethod
    def build(cls, model: Any, X: Any, y: Any, *, metric: Any, domain: Any, owner: str) -> Problem:
        """Check the input and put it together."""
        linear = LinearModel.from_model(model)
        rows = np.asarray(to_numpy(check_matrix(X, owner=owner, n_features=linear.n_features)), dtype=float)
        index = linear.label_index(y)
        check_same_length(owner, X=rows, y=index)
        if getattr(metric, "feature_map", None) is not None:
            raise InputError(
                f"{owner}: the metric has a feature map, and the exact audit works on rows the model sees. "
                "Pass encoded rows and metric.without_feature_map()."
            )
        if metric.n_features not in (None, linear.n_features):
            raise InputError(
                f"{owner}: the metric is for {metric.n_features} columns, the model for {linear.n_features}. "
                "Learn the metric on the columns the model sees."
            )
        return cls(linear, rows, index, metric, domain, _row_boxes(domain, rows, metric, owner=owner))

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.X)

    @cached_property
    def excess(self) -> FloatArray:
        """Scores above the label's own, z_j − z_y, at the rows themselves; shape (n, C)."""
        scores = self.X @ self.model.coef.T + self.model.intercept
        return np.asarray(scores - np.take_along_axis(scores, self.index[:, None], 1))

    @cached_property
    def base_losses(self) -> FloatArray:
        """Loss of each row where it stands."""
        return loss_of_scores(self.excess, self.index, self.model.loss)

    def gains(self, rows: IntArray, weights: FloatArray) -> FloatArray:
        """Gradient of Σ_j p_j (z_j − z_y) in x, for weights p of shape (m, C)."""
        return np.asarray(weights @ self.model.coef - self.model.coef[self.index[rows]])

    def response(self, rows: IntArray, gain: FloatArray, lam: float) -> tuple[FloatArray, FloatArray]:
        """Maximise gᵀδ − λ δᵀΣδ over the moves δ of the rows: an upper bound of it, and the move."""
        if self.box is not None:
            return self.box(rows, gain, lam)
        solved = self.metric.solve(gain) / (2.0 * lam)
        return (gain * solved).sum(1) / 2.0, solved

    def costs(self, delta: FloatArray, lam: float) -> FloatArray:
        """Squared fair distance of moves; exactly 0 for those that λ = ∞ leaves."""
        if np.isinf(lam):
            return np.zeros(len(delta))
        return self.squared_norm(delta)

    def squared_norm(self, delta: FloatArray) -> FloatArray:
        """Squared fair distance of moves."""
        return np.asarray(self.metric.squared_norm(delta))

    def losses(self, rows: IntArray, delta: FloatArray) -> FloatArray:
        """Loss of the rows after the moves."""
        return loss_of_scores(self.moved_excess(rows, delta), self.index[rows], self.model.loss)

    def moved_excess(self, rows: IntArray, delta: FloatArray) -> FloatArray:
        """Scores above the label's own after the moves, shape (m, C)."""
        change = delta @ self.model.coef.T
        return np.asarray(
            self.excess[rows] + change - np.take_along_axis(change, self.index[rows][:, None], 1)
        )

    def escapes(self, lam: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """For label y and class j, whether z_j − z_y grows without end at no cost; shape (C, C)."""
        return self._free_escapes if lam > 0 else self._any_escapes

    @cached_property
    def _free_escapes(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        if self.box is None:
            return self.is_free(self._differences)
        return self._by_pairs(free_only=True)

    @cached_property
    def _any_escapes(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        if self.box is None:
            return np.asarray((self._differences != 0).any(-1))
        return self._by_pairs(free_only=False)

    @property
    def _differences(self) -> FloatArray:
        coef = self.model.coef
        return np.asarray(coef[None, :, :] - coef[:, None, :])

    def free_part(self, gain: FloatArray) -> FloatArray:
        """Component of gains along the directions that cost nothing."""
        if self.metric.n_features is None:
            return np.zeros_like(gain)
        Q = np.asarray(to_numpy(self.metric.null_space.basis), dtype=float)
        return np.asarray((gain @ Q) @ Q.T)

    def is_free(self, gain: FloatArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether a gain has a component along the directions that cost nothing."""
        size = np.linalg.norm(gain, axis=-1)
        return np.asarray(np.linalg.norm(self.free_part(gain), axis=-1) > _FREE * size)

    def _by_pairs(self, *, free_only: bool) -> np.ndarray[Any, np.dtype[np.bool_]]:
        found = np.zeros((self.model.n_classes,) * 2, dtype=bool)
        for y in range(self.model.n_classes):
            for j in range(self.model.n_classes):
                found[y, j] = self.box is not None and self.box.escapes(
                    self._differences[y, j], free_only=free_only
                )
        return found

    def inside(self, x: FloatArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether points found in the box lie in the domain itself, so that nothing was relaxed."""
        if self.box is None or isinstance(self.domain, (BoxDomain, DataRangeDomain)):
            return np.ones(len(x), dtype=bool)
        found = np.zeros(len(x), dtype=bool)
        finite = np.isfinite(x).all(1)
        if finite.any():
            found[finite] = to_numpy(self.domain.contains(x[finite], origin=self.X[finite]))
        return found


def _row_boxes(domain: Any, X: FloatArray, metric: Any, *, owner: str) -> BoxResponse | None:
    """Return the box around the domain for each row, widened to the row where it lies outside."""
    if domain is None or isinstance(domain, Unbounded):
        return None
    if domain.n_features not in (None, X.shape[1]):
        raise InputError(
            f"{owner}: the domain has {domain.n_features} columns, the rows {X.shape[1]}. "
            "Pass a domain of the columns the model sees."
        )
    basis = np.asarray(to_numpy(metric.basis), dtype=float)
    basis = np.zeros((X.shape[1], 0)) if metric.n_features is None else basis
    rotation = None
    if isinstance(domain, DataRangeDomain):
        # A box in the coordinates along and across the subspace.
        inner = np.asarray(to_numpy(domain.subspace.basis), dtype=float)
        rotation = np.hstack([inner, np.asarray(to_numpy(domain.subspace.complement().basis), dtype=float)])
        open_sides = np.full(X.shape[1] - inner.shape[1], np.inf)
        lower = np.concatenate([domain.lower, -open_sides])
        upper = np.concatenate([domain.upper, open_sides])
        basis, X = rotation.T @ basis, X @ rotation
    else:
        lower, upper = (np.asarray(to_numpy(side), dtype=float) for side in domain.bounds())
    low, high = np.minimum(lower - X, 0.0), np.maximum(upper - X, 0.0)
    if isinstance(domain, BoxDomain):
        fixed = [int(column) for column in domain.immutable]
    else:
        columns = (column for column in getattr(domain, "columns_", ()) if column.immutable)
        fixed = [at for column in columns for at in range(column.start, column.stop)]
    low[:, fixed], high[:, fixed] = 0.0, 0.0
    form = CostForm.from_metric(float(metric.scale), basis, np.asarray(to_numpy(metric.values), dtype=float))
    return BoxResponse(form, low, high, rotation)
