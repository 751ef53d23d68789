"""The inner supremum of a binary linear model without a box: one dimension, solved to rounding."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from likewise.core.arrays import FloatArray

__all__ = ["logistic_supremum"]

_MAX_STEPS = 200


def logistic_supremum(
    margin: FloatArray, kappa: FloatArray | float, lam: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Global maximum over t of log(1 + exp(t − m)) − λ t² / κ, for every row at once.

    Lowering the margin by t costs at least t² / κ with κ = wᵀΣ⁺w, by the move t Σ⁺w / κ. So this is ℓ^c_λ of
    equation 4 of the paper for logistic regression where w has no free component.

    Parameters
    ----------
    margin : array of shape (n,)
        m = ±(wᵀx + b), positive where the model is right.
    kappa : array of shape (n,) or float
        wᵀΣ⁺w, at least 0.
    lam : float
        λ > 0.

    Returns
    -------
    value, drop, squared_distance : arrays of shape (n,)
        The supremum, the t that attains it, and what it costs (t² / κ).

    Notes
    -----
    With a = κ / 2λ and p the sigmoid at the new margin, stationarity reads t = a p. It has up to three
    solutions when a > 4, because the sigmoid is S-shaped. In terms of p the objective is the entropy of p
    − m p + a p² / 2, and exchanging p and 1 − p changes it by (2p − 1)(a/2 − m): the global maximum has
    p ≥ 1/2 exactly when m ≤ a/2. On that side the stationarity condition is convex and increasing beyond its
    last turning point, so Newton's method from the right end comes down to the only root there.

    Examples
    --------
    >>> import numpy as np
    >>> value, drop, cost = logistic_supremum(np.array([0.0]), 2.0, lam=1.0)
    >>> bool(np.isclose(drop[0], 1 / (1 + np.exp(-drop[0]))))
    True
    """
    margin = np.asarray(margin, dtype=float)
    a = np.broadcast_to(np.asarray(kappa, dtype=float) / (2.0 * lam), margin.shape)
    upper = margin <= a / 2.0
    # The lower half is the upper half seen from the other end: p ↔ 1 − p, s ↔ −s, m ↔ a − m.
    m = np.where(upper, margin, a - margin)
    turning = 2.0 * np.arccosh(np.sqrt(np.maximum(a, 4.0)) / 2.0)
    s = np.maximum(a - m, turning)
    for _ in range(_MAX_STEPS):
        p = expit(s)
        slope = 1.0 - a * p * expit(-s)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(slope > 0, (s + m - a * p) / slope, 0.0)
        following = np.maximum(s - np.maximum(step, 0.0), turning)
        done = bool((s - following <= 1e-15 * (1.0 + s)).all())
        s = following
        if done:
            break
    p = expit(np.where(upper, s, -s))
    drop = a * p
    return np.logaddexp(0.0, drop - margin) - drop * p / 2.0, drop, drop * p / (2.0 * lam)
