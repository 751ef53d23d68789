"""How well an attribute can be predicted from rows: a linear and a gradient-boosted probe, cross-validated."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import stdtrit

from likewise.core.arrays import FloatArray
from likewise.core.errors import InputError
from likewise.evaluation.measures import Measure

__all__ = ["PROBES", "at_resolution", "choose_rows", "probe"]

PROBES = ("linear", "boosted")

_ROUNDS = 100


def probe(name: str, X: FloatArray, y: Any, *, classes: bool, folds: int, seed: int) -> Measure:
    """Cross-validated score of one probe.

    Parameters
    ----------
    name : {"linear", "boosted"}
        Logistic or ridge regression (penalty ½‖w‖² on the summed loss); or histogram gradient boosting.
    X : ndarray of shape (n, d)
        In units of about the columns' spread, as from `at_resolution`.
    y : ndarray of shape (n,)
        Class numbers, or numbers.
    classes : bool
        Whether y are classes: then the score is the AUC (one class against the rest, averaged over the classes
        where there are more than two), else R².
    folds, seed : int
        Number of folds, and the seed that shuffles the rows.

    Returns
    -------
    Measure
        Mean over the folds, with a 95% interval.

    Notes
    -----
    Folds share training rows, so the interval uses the variance of Nadeau and Bengio (2003),
    s² (1/k + 1/(k − 1)), and Student's t with k − 1 degrees of freedom.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> probe("linear", X, X[:, 0] > 0, classes=True, folds=3, seed=0).value > 0.99
    True
    """
    from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

    splitter = StratifiedKFold if classes else KFold
    cv = splitter(folds, shuffle=True, random_state=seed)
    score = "r2" if not classes else "roc_auc" if len(np.unique(y)) == 2 else "roc_auc_ovr"
    scores = cross_val_score(_model(name, classes, seed), X, y, cv=cv, scoring=score)
    mean = float(scores.mean())
    error = float(scores.std(ddof=1)) * np.sqrt(1.0 / folds + 1.0 / (folds - 1.0))
    half = float(stdtrit(folds - 1, 0.975)) * error
    low, high = mean - half, min(mean + half, 1.0)
    return Measure(name, mean, max(low, 0.0) if classes else low, high, "folds")


def _model(name: str, classes: bool, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression, Ridge

    if name == "linear":
        return LogisticRegression(max_iter=2000) if classes else Ridge()
    boosted = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return boosted(max_iter=_ROUNDS, early_stopping=False, random_state=seed)


def at_resolution(rows: FloatArray, before: FloatArray) -> FloatArray:
    """Return rows in units of the spread that the columns had before the projection, to a hundredth of a unit.

    A projection leaves tiny copies of what it takes: a column of a rare category is 0 for nearly everyone before
    it, and 0.0001 times the projected-off score after it; a column that was projected off itself keeps rounding
    of 1e-17. A probe that is blind to size reads the attribute from them, although they are nothing to the
    metric. So columns are not blown up to a common spread: those with less than the median spread keep their
    size, and values are rounded.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Before or after the projection.
    before : ndarray of shape (m, d)
        Before it.

    Examples
    --------
    >>> before = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> at_resolution(before * [1e-4, 1.0], before)
    array([[0., 1.],
           [0., 3.]])
    """
    spread = before.std(0)
    typical = float(np.median(spread[spread > 0])) if (spread > 0).any() else 1.0
    # Adding zero turns -0.0 into 0.0.
    return np.asarray(np.round(rows / np.maximum(spread, typical), 2) + 0.0)


def choose_rows(
    owner: str, y: Any, *, classes: bool, folds: int, max_rows: int | None, rng: np.random.Generator
) -> Any:
    """Numbers of the rows to probe: all, or `max_rows` at random with the same shares of the classes.

    Examples
    --------
    >>> y = np.array([0] * 90 + [1] * 10)
    >>> rows = choose_rows("f", y, classes=True, folds=2, max_rows=50, rng=np.random.default_rng(0))
    >>> len(rows), int((y[rows] == 1).sum())
    (50, 5)
    """
    n = len(y)
    if not classes:
        if n < 2 * folds:
            raise InputError(
                f"{owner}: {n} rows know the attribute, too few for {folds} folds. Pass at least {2 * folds}, or "
                "lower 'folds'."
            )
        return np.sort(rng.permutation(n)[:max_rows])
    counts = np.bincount(y)
    if counts.min() < folds:
        raise InputError(
            f"{owner}: one category of the attribute has {counts.min()} row(s), fewer than the {folds} folds. "
            "Merge rare categories, or lower 'folds'."
        )
    if max_rows is None or n <= max_rows:
        return np.arange(n)
    wanted = np.maximum(folds, np.round(counts * (max_rows / n)).astype(int))
    parts = [rng.permutation(np.flatnonzero(y == k))[:size] for k, size in enumerate(wanted)]
    return np.sort(np.concatenate(parts))
