"""Columns whose standard deviation says little about how far apart people are: heavy tails, or a mass at one value."""

from __future__ import annotations

import numpy as np

from likewise.core.arrays import FloatArray
from likewise.fair_metrics.feature_maps import is_encoder
from likewise.fair_metrics.naming import ColumnPlaces
from likewise.texts import Said

__all__ = ["uneven_columns", "why_uneven"]

# Half of the people have the same value, and the others more than one.
_MASS = 0.5
# A normal column has a standard deviation of 0.74 times the distance between its quartiles.
_NORMAL = 0.7413
_HEAVY = 3.0


def why_uneven(values: FloatArray) -> str | None:
    """Return why a standardised distance misleads in a column of numbers; None where it does not.

    Parameters
    ----------
    values : ndarray of shape (n,)

    Examples
    --------
    >>> gains = np.array([0.0] * 90 + [114.0, 5000.0, 99999.0] * 3 + [1.0])
    >>> why_uneven(gains)
    '90% of the rows have one value'
    >>> why_uneven(np.linspace(0.0, 1.0, 50)) is None
    True
    """
    kinds, counts = np.unique(values, return_counts=True)
    if len(kinds) < 4:
        return None
    share = counts.max() / len(values)
    if share >= _MASS:
        return Said("diagnosis.one_value", share=round(float(share), 2))
    low, high = np.quantile(values, [0.25, 0.75])
    usual = _NORMAL * float(high - low)
    if usual > 0 and float(values.std()) > _HEAVY * usual:
        return Said("diagnosis.heavy", times=float(values.std()) / usual)
    return None


def uneven_columns(phi: FloatArray, where: ColumnPlaces) -> dict[str, str]:
    """Return the columns of numbers in which distances mislead, and why; not those with a scale of choice.

    Parameters
    ----------
    phi : ndarray of shape (n, d)
        Encoded rows.
    where : ColumnPlaces
        Which coordinates are which columns.

    Examples
    --------
    >>> phi = np.column_stack([np.arange(100.0), np.arange(100.0) ** 8])
    >>> list(uneven_columns(phi, ColumnPlaces("diagnose", 2, ("age", "gain"))))
    ['gain']
    """
    if is_encoder(where.domain):
        numbers = [c for c in where.domain.columns_ if c.kind != "categorical" and c.curve is None]
        places = {c.name: c.start for c in numbers}
    else:
        names = where.names or [f"column {i}" for i in range(phi.shape[1])]
        places = {name: i for i, name in enumerate(names)}
    found = {name: why_uneven(np.asarray(phi[:, at], dtype=float)) for name, at in places.items()}
    return {name: why for name, why in found.items() if why is not None}
