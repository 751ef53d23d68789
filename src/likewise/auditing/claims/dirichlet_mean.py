"""The distribution of a mean whose weights are drawn from a Dirichlet distribution.

With D ~ Dirichlet(c) the sum Σ D_j x_j is at most q exactly where Q = Σ G_j (x_j − q) ≤ 0 for independent gamma
variables G_j of shape c_j. The cumulants of Q are elementary, K(t) = −Σ c_j log(1 − (x_j − q) t), so its tail is one
integral over a vertical line in the complex plane,

    P(Q > 0) = (1 / 2πi) ∫ exp(K(t)) / t dt,   Re t = any point of (0, 1 / max(x_j − q)),

and −P(Q < 0) with Re t < 0. Through the saddle point of K the integrand neither oscillates nor cancels, so small
tails keep their digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

__all__ = ["dirichlet_mean_tails"]

_STEP = 0.1
# The trapezoidal rule in x, y = sinh x, converges exponentially and reaches 10¹¹ standard deviations.
_GRID = np.arange(0.0, 26.0, _STEP)
_SINH = np.sinh(_GRID)
_WEIGHT = np.cosh(_GRID) * _STEP
_WEIGHT[0] /= 2.0
_BISECTIONS = 200


def dirichlet_mean_tails(values: Sequence[float], weights: Sequence[float], q: float) -> tuple[float, float]:
    """P(Σ D_j x_j ≤ q) and P(Σ D_j x_j > q) with D ~ Dirichlet(weights); both keep their digits where small.

    Parameters
    ----------
    values : sequence of float
        x, a few of them.
    weights : sequence of float
        c > 0, one per value; equal values may be given once with their weights added.
    q : float

    Returns
    -------
    below, above : float
        They sum to 1.

    Examples
    --------
    Of two values it is a beta distribution:

    >>> from scipy import stats
    >>> below, above = dirichlet_mean_tails([0.0, 1.0], [18.0, 3.0], 0.3)
    >>> bool(abs(below - stats.beta.cdf(0.3, 3, 18)) < 1e-12), bool(abs(above - stats.beta.sf(0.3, 3, 18)) < 1e-12)
    (True, True)
    """
    atoms = [(value - q, weight) for value, weight in zip(values, weights, strict=True) if value != q]
    if not any(place > 0 for place, _ in atoms):
        return 1.0, 0.0
    if not any(place < 0 for place, _ in atoms):
        return 0.0, 1.0
    line = _line(atoms)
    width = 1.0 / math.sqrt(_curvature(atoms, line))
    t = line + 1j * width * _SINH
    cumulants = sum(-weight * np.log1p(-place * t) for place, weight in atoms)
    tail = float(((np.exp(cumulants) / t).real * _WEIGHT).sum()) * width / math.pi
    tail = min(max(abs(tail), 0.0), 1.0)
    return (1.0 - tail, tail) if line > 0 else (tail, 1.0 - tail)


def _line(atoms: Sequence[tuple[float, float]]) -> float:
    """Where the line of integration crosses the real axis: the saddle point, or near it where it is the pole 0."""
    saddle = _saddle(atoms)
    width = 1.0 / math.sqrt(_curvature(atoms, saddle))
    if abs(saddle) >= width:
        return saddle
    end = 1.0 / (max if saddle >= 0 else min)(place for place, _ in atoms)
    return math.copysign(min(width, abs(end) / 2.0), saddle)


def _saddle(atoms: Sequence[tuple[float, float]]) -> float:
    """The root of K'(t) = Σ c a / (1 − a t), which rises from −∞ to ∞ between the poles."""
    low, high = 1.0 / min(place for place, _ in atoms), 1.0 / max(place for place, _ in atoms)
    slope = sum(weight * place for place, weight in atoms)
    low, high = (0.0, high) if slope < 0 else (low, 0.0)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        if sum(weight * place / (1.0 - place * middle) for place, weight in atoms) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0


def _curvature(atoms: Sequence[tuple[float, float]], t: float) -> float:
    return sum(weight * (place / (1.0 - place * t)) ** 2 for place, weight in atoms)
