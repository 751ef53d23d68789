"""Lines above and below a ReLU where its input lies in an interval, and how lines of a layer pass through them."""

from __future__ import annotations

import numpy as np

from likewise.core.arrays import FloatArray
from likewise.core.compiled import compiled, is_compiled

__all__ = ["lower_slopes", "pass_through", "upper_lines"]


def upper_lines(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Slope and lift of the upper line of units whose input lies in [low, high]; arrays of any one shape.

    Examples
    --------
    >>> rise, lift = upper_lines(np.array([-1.0, 2.0]), np.array([3.0, 4.0]))
    >>> rise.tolist(), lift.tolist()
    ([0.75, 1.0], [0.75, 0.0])
    """
    active, dead = low >= 0.0, high <= 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        slanted = high / (high - low)
        lift = -slanted * low
    rise = np.where(active, 1.0, np.where(dead, 0.0, slanted))
    return rise, np.where(active | dead, 0.0, lift)


def lower_slopes(low: FloatArray, high: FloatArray, rise: FloatArray, alpha: str | None) -> FloatArray:
    """Slope of the lower line of the same units.

    Parameters
    ----------
    low, high, rise : float arrays of one shape
        `rise` from `upper_lines`.
    alpha : {None, "none", "all", "parallel"}
        Slope for a unit that may be on or off: 1 where it is rather on, 0, 1, or that of the upper line.

    Examples
    --------
    >>> lower_slopes(np.array([-1.0, -3.0, 2.0]), np.array([3.0, 1.0, 4.0]), np.ones(3), None)
    array([1., 0., 1.])
    """
    if alpha == "parallel":
        return rise
    if alpha is None:
        return (high > -low).astype(np.float64)
    return ((low >= 0.0) if alpha == "none" else (high > 0.0)).astype(np.float64)


def pass_through(
    slope: FloatArray, rise: FloatArray, lift: FloatArray, least: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Upper lines in what leaves the units of a layer as upper lines in what enters them.

    Parameters
    ----------
    slope : float array of shape (n, K, H), or (1, K, H) for the same in all
    rise, lift, least : float arrays of shape (n, H)
        From `upper_lines` and `lower_slopes`.

    Returns
    -------
    slope : float array of shape (n, K, H)
    offset : float array of shape (n, K)
        What the lifts add.

    Examples
    --------
    >>> slope = np.array([[[2.0, -1.0]]])
    >>> pass_through(slope, np.full((1, 2), 0.5), np.full((1, 2), 0.5), np.zeros((1, 2)))
    (array([[[ 1., -0.]]]), array([[1.]]))
    """
    if is_compiled():
        mixed = np.empty((len(rise), *slope.shape[1:]))
        offset = np.empty(mixed.shape[:2])
        _mix(slope, rise, lift, least, mixed, offset)
        return mixed, offset
    up = np.maximum(slope, 0.0)
    return np.where(slope > 0, rise[:, None, :], least[:, None, :]) * slope, (up @ lift[:, :, None])[:, :, 0]


@compiled
def _mix(slope, rise, lift, least, mixed, offset):  # type: ignore[no-untyped-def]
    n, count, width = mixed.shape
    shared = len(slope) == 1
    for i in range(n):
        own = 0 if shared else i
        for k in range(count):
            total = 0.0
            for h in range(width):
                s = slope[own, k, h]
                if s > 0.0:
                    mixed[i, k, h] = s * rise[i, h]
                    total += s * lift[i, h]
                else:
                    mixed[i, k, h] = s * least[i, h]
            offset[i, k] = total
