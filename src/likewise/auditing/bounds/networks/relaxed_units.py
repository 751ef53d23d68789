"""Lines above and below a ReLU where its input lies in an interval, and how lines of a layer pass through them."""

from __future__ import annotations

import numpy as np

from likewise.core.arrays import FloatArray
from likewise.core.compiled import compiled, is_compiled

__all__ = ["pass_through", "relaxed_units"]


def relaxed_units(
    low: FloatArray, high: FloatArray, alpha: str | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Slope and lift of the upper line of each unit, and the slope of its lower line.

    Parameters
    ----------
    low, high : float arrays of shape (n, H)
        What enters the units.
    alpha : {None, "none", "all", "parallel"}
        Slope of the lower line of a unit that may be on or off: 1 where it is rather on, 0, 1, or that of the upper line.

    Examples
    --------
    >>> rise, lift, least = relaxed_units(np.array([[-1.0]]), np.array([[3.0]]), None)
    >>> rise.item(), lift.item(), least.item()
    (0.75, 0.75, 1.0)
    """
    active, dead = low >= 0.0, high <= 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        slanted = high / (high - low)
        lift = -slanted * low
    rise = np.where(active, 1.0, np.where(dead, 0.0, slanted))
    lift = np.where(active | dead, 0.0, lift)
    if alpha is None:
        least = (high > -low).astype(np.float64)
    elif alpha == "parallel":
        least = rise
    else:
        least = np.full(low.shape, 1.0 if alpha == "all" else 0.0)
    return rise, lift, np.where(active, 1.0, np.where(dead, 0.0, least))


def pass_through(
    slope: FloatArray, rise: FloatArray, lift: FloatArray, least: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Upper lines in what leaves the units of a layer as upper lines in what enters them.

    Parameters
    ----------
    slope : float array of shape (n, K, H)
    rise, lift, least : float arrays of shape (n, H)
        From `relaxed_units`.

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
        mixed, offset = np.empty(slope.shape), np.empty(slope.shape[:2])
        _mix(np.ascontiguousarray(slope), rise, lift, least, mixed, offset)
        return mixed, offset
    up = np.maximum(slope, 0.0)
    return np.where(slope > 0, rise[:, None, :], least[:, None, :]) * slope, np.einsum("nkh,nh->nk", up, lift)


@compiled
def _mix(slope, rise, lift, least, mixed, offset):  # type: ignore[no-untyped-def]
    n, count, width = slope.shape
    for i in range(n):
        for k in range(count):
            total = 0.0
            for h in range(width):
                s = slope[i, k, h]
                if s > 0.0:
                    mixed[i, k, h] = s * rise[i, h]
                    total += s * lift[i, h]
                else:
                    mixed[i, k, h] = s * least[i, h]
            offset[i, k] = total
