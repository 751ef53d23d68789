"""The two-group data of the paper's Figure 1: a majority on the left, a small minority on the right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise.core.checks import FloatArray, IntArray, check_integer, check_number
from likewise.core.randomness import RandomState, numpy_generator

# Centres of the clusters: label 1 above, label 0 below, and each group leans outwards as it goes up. The
# two groups mirror each other, so with as many people right as left the best straight line is level.
GROUP_CENTRE = 1.5
LEAN = 0.75
HEIGHT = 1.0
SPREAD = np.array([0.4, 0.9])  # horizontal, vertical


@dataclass(frozen=True, eq=False, repr=False)
class ToyData:
    """Points in the plane with a label, a group and the direction that should not matter.

    Parameters
    ----------
    X : ndarray of shape (n, 2)
        Horizontal and vertical coordinate.
    y : ndarray of int of shape (n,)
        1 for the upper clusters, 0 for the lower ones.
    group : ndarray of int of shape (n,)
        0 for the majority on the left, 1 for the minority on the right.
    sensitive_directions : ndarray of shape (1, 2)
        The horizontal direction, as `Subspace.from_directions` takes it.

    Examples
    --------
    >>> make_toy(n=200)
    ToyData(200 points, 20 of them in the minority)
    """

    X: FloatArray
    y: IntArray
    group: IntArray
    sensitive_directions: FloatArray

    def __repr__(self) -> str:
        return f"ToyData({len(self.y)} points, {int(self.group.sum())} of them in the minority)"


def make_toy(n: int = 500, *, minority: float = 0.1, random_state: RandomState = 0) -> ToyData:
    """Make the two-group data of the paper's Figure 1.

    The label is a matter of height: upper clusters are 1, lower clusters 0, in both groups alike, and a
    level line at height 0 does equally well by both. But each group leans outwards as it goes up, and the
    two lean against each other. If they are equally many the leans cancel; if the right-hand group is
    underrepresented, logistic regression follows the lean of the majority, its boundary tilts, and the
    minority pays for it.

    Parameters
    ----------
    n : int, default=500
        Number of points, at least 8.
    minority : float, default=0.1
        Share of the points in the right-hand group, above 0 and at most 0.5.
    random_state : int, numpy Generator or RandomState, or None, default=0
        Same seed, same points.

    Returns
    -------
    ToyData
        In random order, both labels equally frequent in both groups (up to one point).

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> toy = make_toy()
    >>> w = LogisticRegression().fit(toy.X, toy.y).coef_[0]
    >>> bool(abs(w[0] / w[1]) > 0.2)
    True
    """
    check_integer(n, owner="make_toy", name="n", low=8)
    share = check_number(minority, owner="make_toy", name="minority", low=0, high=0.5, open_low=True)
    rng = numpy_generator(random_state)
    n_minority = max(2, round(share * n))
    group = np.repeat(np.array([0, 1], dtype=np.int64), [n - n_minority, n_minority])
    y = np.concatenate([np.arange(n - n_minority), np.arange(n_minority)]).astype(np.int64) % 2
    side, up = 2 * group - 1, 2 * y - 1
    centres = np.stack([side * (GROUP_CENTRE + LEAN * up), HEIGHT * up], axis=1)
    X = centres + SPREAD * rng.standard_normal((n, 2))
    order = rng.permutation(n)
    return ToyData(X=X[order], y=y[order], group=group[order], sensitive_directions=np.array([[1.0, 0.0]]))
