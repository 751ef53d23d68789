"""An upper confidence limit of a mean, by a bet whose size was settled on other people.

If a mean of numbers in [0, M] were q, a gambler who stakes the share b of his capital on every number in turn, and gets
back 1 + b (q − x) / M times it, would gain nothing on average; so it has grown to 1/α at the end with probability α at
most (Markov's inequality; Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting"). The
limit is the least q at which it did. It holds for every sample size and whatever the numbers' distribution; and also for
a sample of a table without replacement, whose numbers are negatively associated, so that the capital's expectation is
smaller still (Joag-Dev and Proschan 1983). A stake that must not look at the numbers may look at other people's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq

from likewise.core.arrays import FloatArray
from likewise.core.checks import check_number
from likewise.core.errors import InputError

__all__ = ["betting_upper_limit"]

# Stakes that are tried; a stake of 1 may lose everything to one large number.
_STAKES = np.geomspace(1e-3, 0.95, 40)


def betting_upper_limit(values: Any, ceiling: float, *, pilot: Any, level: float = 0.95) -> float:
    """Upper confidence limit of a mean; holds with probability `level`, for any distribution in [0, M].

    Parameters
    ----------
    values : array of shape (n,)
        Independent draws, or drawn from a table without replacement.
    ceiling : float
        M: no number can be larger, seen or not.
    pilot : array of shape (k,)
        Numbers of other people, which settle the stake; they may be anything.
    level : float, default=0.95
        One-sided.

    Returns
    -------
    float
        At most M.

    Examples
    --------
    Of n zeros it is close to the rule of three, M · 3 / n:

    >>> round(betting_upper_limit(np.zeros(1000), 2.0, pilot=np.zeros(50)), 4)
    0.0063
    """
    owner = "betting_upper_limit"
    level = check_number(level, owner=owner, name="level", low=0.0, high=1.0, open_low=True, open_high=True)
    ceiling = check_number(ceiling, owner=owner, name="ceiling", low=0.0)
    x, other = np.asarray(values, dtype=np.float64), np.asarray(pilot, dtype=np.float64)
    if not len(x):
        raise InputError(f"{owner}: 'values' is empty. Pass the numbers of at least one person.")
    if x.min() < 0 or x.max() > ceiling * (1.0 + 1e-9):
        raise InputError(
            f"{owner}: values run from {x.min():g} to {x.max():g}, outside [0, {ceiling:g}]. Pass a ceiling that "
            "holds for everybody, seen or not."
        )
    if ceiling == 0:
        return 0.0
    wanted = float(np.log(1.0 / (1.0 - level)))
    guess = np.clip(other / ceiling, 0.0, 1.0) if len(other) else np.zeros(1)
    limits = [_limit(guess, stake, wanted * len(guess) / len(x)) for stake in _STAKES]
    return ceiling * _limit(np.minimum(x / ceiling, 1.0), float(_STAKES[int(np.argmin(limits))]), wanted)


def _limit(x: FloatArray, stake: float, wanted: float) -> float:
    """The least q at which the logarithm of the capital is `wanted`; 1 where it never is."""

    def grown(q: float) -> float:
        return float(np.log1p(stake * (q - x)).sum()) - wanted

    # At the mean of the sample the capital cannot have grown (Jensen's inequality).
    low = float(x.mean())
    return 1.0 if low >= 1.0 or grown(1.0) <= 0 else float(brentq(grown, low, 1.0, xtol=1e-12))
