"""By how much trainings differ beyond the people they are judged on, from the few folds of a cross-validation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from likewise.core.arrays import FloatArray

__all__ = ["between_variance"]

# Standard deviations that are thought of, in units of what the folds show, and how finely.
_REACH, _STEPS = 1e3, 2000


def between_variance(
    values: Sequence[float] | FloatArray, noise: float, count: int, random: np.random.Generator
) -> FloatArray:
    """Draw the variance τ² between trainings, given k values of which each has a variance `noise` besides.

    A random-effects model: value_f ~ N(θ, σ² + τ²), θ unknown. Five folds do not tell τ, so it is not estimated but drawn
    from its posterior under the prior 1/√(σ² + τ²): flat where trainings differ less than people make figures
    differ, and without a scale beyond. Without noise, what it makes of one more value is Student's t with k − 1 degrees
    of freedom; with noise the interval of a further value covers it at least as often as it says (simulated; the
    half-Cauchy prior of Gelman 2006 gives narrower intervals that cover less where trainings differ much).

    Parameters
    ----------
    values : k floats
    noise : float
        σ², the mean over the folds.
    count : int
        Of draws.
    random : numpy.random.Generator

    Returns
    -------
    ndarray of shape (count,)

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> alike, apart = (between_variance([0.7, 0.7 + d, 0.7 - d], 0.01**2, 1000, random) for d in (0.01, 0.2))
    >>> bool(np.sqrt(np.median(alike)) < 0.01), bool(np.sqrt(np.median(apart)) > 0.1)
    (True, True)
    >>> between_variance([0.0, 0.0, 0.0], 0.0, 2, random)
    array([0., 0.])
    """
    k, squares = len(values), float(np.var(values)) * len(values)
    scale = noise + squares / k
    if k < 2 or scale <= 0:
        return np.zeros(count)
    tau2 = scale * np.square(np.geomspace(1 / _REACH, _REACH, _STEPS))
    total = noise + tau2
    # log of prior × likelihood, θ integrated out, and τ for steps that grow with it.
    log = 0.5 * np.log(tau2) - 0.5 * k * np.log(total) - 0.5 * squares / total
    weights = np.exp(log - log.max())
    return np.asarray(random.choice(tau2, p=weights / weights.sum(), size=count))
