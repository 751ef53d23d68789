"""The distribution of a mean whose weights are drawn from a Dirichlet distribution.

With D ~ Dirichlet(c) the sum Σ D_j x_j is at most q exactly where Q = Σ G_j (x_j − q) ≤ 0 for independent gamma
variables G_j of shape c_j. The cumulants of Q are elementary, K(t) = −Σ c_j log(1 − (x_j − q) t), so its tail is one
integral over a path in the complex plane,

    P(Q > 0) = (1 / 2πi) ∫ exp(K(t)) / t dt,

from below to above the real axis through any point of (0, 1 / max(x_j − q)), and −P(Q < 0) through one below 0. A
hyperbola through the saddle point of K, bent as the path of steepest descent is there, hardly oscillates and does
not cancel, so that small tails keep their digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["dirichlet_mean_tails"]

_STEP = 0.1
# The trapezoidal rule in x, with y = sinh x, converges exponentially and reaches 10¹¹ standard deviations.
_GRID = np.arange(0.0, 26.0, _STEP)
_SINH, _COSH = np.sinh(_GRID), np.cosh(_GRID)
_WEIGHT = np.full(len(_GRID), _STEP)
_WEIGHT[0] /= 2.0
_BISECTIONS = 200
_MOST_RISE, _LEAST_BEND = 1.0, 0.01

Complexes = np.ndarray[Any, np.dtype[np.complex128]]


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
    start = _start(atoms)
    width = 1.0 / math.sqrt(_derivative(atoms, start, 2))
    # Steepest descent leaves the vertical by (third derivative / 6 second derivative) y²: so does this hyperbola.
    bend = _derivative(atoms, start, 3) * width**3 / 3.0
    t, cumulants = _path(atoms, start, width, bend)
    while float(cumulants.real.max()) > float(cumulants[0].real) + _MOST_RISE:
        # Far away the path came near another pole. Along the vertical nothing ever rises.
        bend = bend / 2.0 if abs(bend) > _LEAST_BEND else 0.0
        t, cumulants = _path(atoms, start, width, bend)
    slope = width * (1j * _COSH + bend * _SINH)
    tail = min(abs(float(((np.exp(cumulants) / t * slope).imag * _WEIGHT).sum())) / math.pi, 1.0)
    return (1.0 - tail, tail) if start > 0 else (tail, 1.0 - tail)


def _path(
    atoms: Sequence[tuple[float, float]], start: float, width: float, bend: float
) -> tuple[Complexes, Complexes]:
    """The upper half of a hyperbola, and K along it."""
    t = start + width * (1j * _SINH + bend * (_COSH - 1.0))
    cumulants = np.zeros(len(t), dtype=complex)
    for place, weight in atoms:
        cumulants -= weight * np.log1p(-place * t)
    return t, cumulants


def _start(atoms: Sequence[tuple[float, float]]) -> float:
    """Where the path crosses the real axis: at the saddle point, or beside it where it is near the pole 0."""
    saddle = _saddle(atoms)
    width = 1.0 / math.sqrt(_derivative(atoms, saddle, 2))
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


def _derivative(atoms: Sequence[tuple[float, float]], t: float, order: int) -> float:
    """Of K: (order − 1)! Σ c (a / (1 − a t))^order."""
    total = math.fsum(weight * (place / (1.0 - place * t)) ** order for place, weight in atoms)
    return math.factorial(order - 1) * total
