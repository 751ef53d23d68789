"""Penalised generalised linear models: mean loss plus a penalty on the weights, never on the intercept."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax
from sklearn.exceptions import ConvergenceWarning

from likewise.core.arrays import FloatArray

__all__ = ["Penalty", "fit_glm"]

# Loss of every row and its derivative by the scores, both from scores of shape (n, k).
Link = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class Penalty:
    """What is added to the mean loss.

    Parameters
    ----------
    strength : float
        The paper's γ.
    squared : bool, default=True
        γ‖w‖₂² (ridge), or γ‖w‖₂ as the formula of section 4.2 is printed. Both give the same family of
        directions; at equal γ the printed one is the weaker where ‖w‖₂ > 1/2.
    """

    strength: float
    squared: bool = True

    def value_and_gradient(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """Penalty of the weights, and its gradient (zero where the norm has none)."""
        if self.squared:
            return self.strength * float((weights**2).sum()), 2.0 * self.strength * weights
        norm = float(np.linalg.norm(weights))
        return self.strength * norm, self.strength * weights / norm if norm else np.zeros_like(weights)


def fit_glm(
    X: FloatArray,
    y: FloatArray,
    family: str,
    penalty: Penalty,
    *,
    fit_intercept: bool = True,
    sample_weight: FloatArray | None = None,
    max_iter: int = 1000,
    tol: float = 1e-7,
) -> tuple[FloatArray, FloatArray]:
    """Minimise the weighted mean loss plus the penalty.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    y : ndarray
        (n, k) indicators for "softmax"; (n, 1) of 0/1 for "logistic", numbers for "gaussian", counts for
        "poisson".
    family : {"softmax", "logistic", "gaussian", "poisson"}
    penalty : Penalty
        For a softmax model its norm is that of the whole matrix A (Frobenius).
    fit_intercept : bool, default=True
        Add the b of Appendix B.1.
    sample_weight : ndarray of shape (n,), optional
        Weights of the rows in the mean.
    max_iter, tol : int, float
        L-BFGS stops when no entry of the gradient is larger than `tol`.

    Returns
    -------
    weights : ndarray of shape (k, d)
        One row per linear predictor.
    intercepts : ndarray of shape (k,)

    Examples
    --------
    >>> X = np.array([[-1.0], [1.0]])
    >>> weights, intercepts = fit_glm(X, X, "gaussian", Penalty(0.0))
    >>> weights.round(6)
    array([[1.]])
    """
    k, d = y.shape[1], X.shape[1]
    link = _LINKS[family]
    share = np.full(len(X), 1.0 / len(X)) if sample_weight is None else sample_weight / sample_weight.sum()

    def objective(packed: FloatArray) -> tuple[float, FloatArray]:
        weights, intercepts = packed[: k * d].reshape(k, d), packed[k * d :]
        scores = X @ weights.T
        scores = scores + intercepts if fit_intercept else scores
        losses, slopes = link(scores, y)
        slopes *= share[:, None]
        cost, pull = penalty.value_and_gradient(weights)
        gradient = slopes.T @ X + pull
        parts = [gradient.ravel(), slopes.sum(0)] if fit_intercept else [gradient.ravel()]
        return float(share @ losses) + cost, np.concatenate(parts)

    start = np.zeros(k * d + (k if fit_intercept else 0))
    if fit_intercept:
        start[k * d :] = _INTERCEPTS[family](share @ y)
    if not penalty.squared:
        # The norm has no gradient at zero; a step down the loss leaves it, or zero is the answer.
        slope = objective(start)[1][: k * d]
        if np.linalg.norm(slope) <= penalty.strength:
            return np.zeros((k, d)), start[k * d :] if fit_intercept else np.zeros(k)
        start[: k * d] = -1e-3 * slope
    packed = _descend(objective, start, max_iter=max_iter, tol=tol)
    return packed[: k * d].reshape(k, d), packed[k * d :] if fit_intercept else np.zeros(k)


def _descend(objective: Any, start: FloatArray, *, max_iter: int, tol: float) -> FloatArray:
    options: Any = {"maxiter": max_iter, "maxfun": 20 * max_iter, "gtol": tol, "ftol": 0.0, "maxcor": 20}
    found = minimize(
        objective, np.asarray(start, dtype=np.float64), jac=True, method="L-BFGS-B", options=options
    )
    # The line search gives up where the loss is flat to rounding; that is an answer, not a failure.
    steepest = float(np.abs(objective(found.x)[1]).max())
    if steepest > max(1e3 * tol, 1e-4) or not np.isfinite(found.fun):
        warnings.warn(
            f"The regression on the attribute did not converge (largest slope {steepest:.2g} after "
            f"{found.nit} iterations). Raise 'max_iter' or 'regularization', or standardise the columns.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return np.asarray(found.x)


def _softmax(scores: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    logs = log_softmax(scores, axis=1)
    return -(y * logs).sum(1), np.exp(logs) - y


def _logistic(scores: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    # −x_g (wᵀx) + log(1 + exp(wᵀx)), section 4.2
    return (np.logaddexp(0.0, scores) - y * scores)[:, 0], expit(scores) - y


def _gaussian(scores: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    residual = scores - y
    return 0.5 * (residual**2)[:, 0], residual


def _poisson(scores: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    with np.errstate(over="ignore"):
        rate = np.exp(np.minimum(scores, 700.0))
    return (rate - y * scores)[:, 0], rate - y


_LINKS: dict[str, Link] = {
    "softmax": _softmax,
    "logistic": _logistic,
    "gaussian": _gaussian,
    "poisson": _poisson,
}

# The best intercept of a model without weights, from the mean of y.
_INTERCEPTS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "softmax": np.log,
    "logistic": lambda mean: np.log(mean) - np.log1p(-mean),
    "gaussian": lambda mean: mean,
    "poisson": np.log,
}
