"""The inner problem of an exact audit: rows, linear scores, fair cost and box in one place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from likewise.auditing.bounds.linear.box_response import BoxResponse, CostForm
from likewise.auditing.bounds.linear.linear_model import LinearModel, loss_of_scores
from likewise.core.arrays import FloatArray, to_numpy
from likewise.core.checks import check_matrix, check_same_length
from likewise.core.errors import InputError
from likewise.domains.boxes import BoxDomain, DataRangeDomain, Unbounded

__all__ = ["IntArray", "Problem", "penalised"]

IntArray = np.ndarray[Any, np.dtype[np.intp]]

# A component of the weights below this share of their length is rounding, not a free direction.
_FREE = 1e-10


def penalised(loss: FloatArray, cost: FloatArray, lam: float) -> FloatArray:
    """Loss − λ d², where moves that cost nothing are not penalised even by λ = ∞."""
    with np.errstate(invalid="ignore"):
        return np.asarray(loss - np.where(cost > 0, lam * cost, 0.0))


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows of an exact audit; make one with `Problem.build`.

    Parameters
    ----------
    model : LinearModel
        The audited model.
    X : array of shape (n, d)
        The rows.
    index : int array of shape (n,)
        Positions of their labels in the model's classes.
    metric : FairMetric
        With the identity as feature map.
    domain : Domain or None
        Where rows may go; None is everywhere.
    box : BoxResponse or None
        The box around the domain, per row; None is everywhere.
    """

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
    fixed = _immutable_columns(domain)
    low[:, fixed], high[:, fixed] = 0.0, 0.0
    form = CostForm.from_metric(float(metric.scale), basis, np.asarray(to_numpy(metric.values), dtype=float))
    return BoxResponse(form, low, high, rotation)


def _immutable_columns(domain: Any) -> list[int]:
    """Encoded columns that a search may not change."""
    if isinstance(domain, BoxDomain):
        return [int(column) for column in domain.immutable]
    columns = getattr(domain, "columns_", ())
    return [at for column in columns if column.immutable for at in range(column.start, column.stop)]
