"""Conditional distributions by gradient boosting, cross-fitted: classes given causes, numbers given causes.

Every person belongs to a fold that their own row names, and the model of a fold has not seen the people of it. So the
rank of a person is taken in a distribution they had no part in, and it is the same whenever they are asked about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.core.checks import FloatArray, IntArray

_LEAST = 1e-9  # probability of a class
# People of a group, for quantiles of their own; and for each number that a line of theirs follows.
_ENOUGH = 20


@dataclass(frozen=True)
class Boosting:
    """How the trees are grown.

    Parameters
    ----------
    n_iter : int, default=40
        Rounds.
    learning_rate : float, default=0.15
    max_leaves : int, default=12
    min_leaf : int, default=20
        People in a leaf at least.
    folds : int, default=2
        Parts of the people; each is predicted by trees grown on the others.

    Examples
    --------
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> Boosting(n_iter=10, folds=3).trees(HistGradientBoostingClassifier, [False], seed=0).max_iter
    10
    """

    n_iter: int = 40
    learning_rate: float = 0.15
    max_leaves: int = 12
    min_leaf: int = 20
    folds: int = 2

    def trees(self, estimator: Any, categorical: Any, seed: int, **more: Any) -> Any:
        """Return an unfitted HistGradientBoosting estimator with these choices."""
        choices: dict[str, Any] = {
            "max_iter": self.n_iter,
            "learning_rate": self.learning_rate,
            "max_leaf_nodes": self.max_leaves,
            "min_samples_leaf": self.min_leaf,
            "l2_regularization": 1.0,
            "early_stopping": False,
            "categorical_features": categorical if np.any(categorical) else None,
            "random_state": seed,
        }
        return estimator(**(choices | more))


@dataclass(frozen=True, eq=False)
class ClassModel:
    """P(class | causes, group), one boosted classifier per fold, mended so that every group's shares are its own."""

    models: tuple[Any, ...]
    known: tuple[IntArray, ...]
    factors: FloatArray

    def probabilities(self, causes: FloatArray, group: IntArray, fold: IntArray) -> FloatArray:
        """Return the distribution of each row, (n, K)."""
        return _normalised(self._raw(causes, fold) * self.factors[group])

    def _raw(self, causes: FloatArray, fold: IntArray) -> FloatArray:
        raw = np.full((len(causes), self.factors.shape[1]), _LEAST)
        for number, (model, known) in enumerate(zip(self.models, self.known, strict=True)):
            some = np.flatnonzero(fold == number)
            if not len(some):
                continue
            if model is None:
                raw[some] = 1.0
            else:
                raw[some[:, None], known] = np.maximum(model.predict_proba(causes[some]), _LEAST)
        return raw


def fit_classes(
    causes: FloatArray,
    codes: IntArray,
    group: IntArray,
    fold: IntArray,
    *,
    n_classes: int,
    n_groups: int,
    categorical: Any,
    boosting: Boosting,
    seed: int,
) -> ClassModel:
    """Fit P(class | causes, group); the group is the first column of the causes."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    models: list[Any] = []
    known: list[IntArray] = []
    for number in range(boosting.folds):
        others = np.flatnonzero(fold != number)
        present = np.unique(codes[others])
        if causes.shape[1] == 1 or len(present) < 2:
            models.append(None)
            known.append(np.arange(n_classes))
            continue
        trees = boosting.trees(HistGradientBoostingClassifier, categorical, seed)
        models.append(trees.fit(causes[others], codes[others]))
        known.append(present)
    plain = ClassModel(tuple(models), tuple(known), np.ones((n_groups, n_classes)))
    raw = plain._raw(causes, fold)
    factors = np.ones((n_groups, n_classes))
    for g in range(n_groups):
        # Of a handful nothing can be learned that everybody does not show better.
        mine = group == g if _many(group, g) else np.ones(len(group), dtype=bool)
        share = np.bincount(codes[mine], minlength=n_classes) / max(int(mine.sum()), 1)
        for _ in range(8):
            predicted = _normalised(raw[mine] * factors[g]).mean(axis=0)
            factors[g] *= np.maximum(share, _LEAST) / np.maximum(predicted, _LEAST)
    return ClassModel(tuple(models), tuple(known), factors)


@dataclass(frozen=True, eq=False)
class NumberModel:
    """Location, scale and the ranks of what is left: x = μ(causes) + σ(causes)·z, z by group."""

    line: tuple[FloatArray, ...]
    location: tuple[Any, ...]
    scale: tuple[Any, ...]
    weights: tuple[float, float]
    knots: FloatArray
    design: LineDesign
    spread: FloatArray

    def place(self, causes: FloatArray, fold: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return location and scale of each row, (n,) each."""
        mu, size = np.zeros(len(causes)), self.spread[causes[:, 0].astype(np.int64)]
        rows = self.design.columns(causes)
        for number in range(len(self.line)):
            some = np.flatnonzero(fold == number)
            if not len(some):
                continue
            mu[some] = rows[some] @ self.line[number]
            if self.weights[0] > 0:
                mu[some] += self.weights[0] * self.location[number].predict(causes[some])
            if self.weights[1] > 0:
                size[some] += self.weights[1] * self.scale[number].predict(causes[some])
        return mu, np.exp(size)

    def across(self, z: FloatArray, own: IntArray, other: IntArray) -> FloatArray:
        """Carry what is left from one group's quantiles to another's; beyond the ends in proportion."""
        out = np.empty(len(z))
        for a in range(len(self.knots)):
            for b in range(len(self.knots)):
                some = np.flatnonzero((own == a) & (other == b))
                if len(some):
                    out[some] = _along(z[some], self.knots[a], self.knots[b])
        return out


@dataclass(frozen=True, eq=False)
class LineDesign:
    """Columns of the linear start: one line per group in the numbers, one step per category.

    A group of too few people for a line has its own height and the slope of the largest group.
    """

    n_groups: int
    categorical: Any
    levels: tuple[int, ...]
    centre: FloatArray
    width: FloatArray
    slope: IntArray

    def columns(self, causes: FloatArray) -> FloatArray:
        """Return the design of rows of causes; the first cause is the group."""
        group = causes[:, 0].astype(np.int64)
        slopes = np.eye(int(self.slope.max()) + 1)[self.slope[group]]
        parts = [np.eye(self.n_groups)[group]]
        for j in range(1, causes.shape[1]):
            column = causes[:, j]
            if self.categorical[j]:
                codes = np.where(np.isnan(column), -1, column).astype(np.int64)
                # The first level is what the groups' own steps stand for.
                parts.append((codes[:, None] == np.arange(1, self.levels[j])).astype(float))
            else:
                scaled = np.nan_to_num((column - self.centre[j]) / self.width[j])
                parts.append(slopes * scaled[:, None])
        return np.hstack(parts)


def fit_numbers(
    causes: FloatArray,
    numbers: FloatArray,
    group: IntArray,
    fold: IntArray,
    *,
    n_groups: int,
    categorical: Any,
    boosting: Boosting,
    seed: int,
) -> NumberModel:
    """Fit location and scale given causes, and the groups' ranks of what is left; cross-fitted."""
    design = _design(causes, n_groups, categorical)
    rows = design.columns(causes)
    line: list[FloatArray] = []
    left = np.empty(len(numbers))
    rest = []
    for number in range(boosting.folds):
        others, mine = np.flatnonzero(fold != number), fold == number
        slope = _ridge(rows[others], numbers[others])
        line.append(slope)
        rest.append(numbers - rows @ slope)
        left[mine] = rest[-1][mine]
    location, worth, said = _grown(causes, rest, left, fold, categorical, boosting, seed)
    left = left - worth * said
    spread = max(float(np.sqrt(np.mean(left**2))), 1e-12)
    # The logarithm of |z| has a heavy left tail; people exactly on the line must not rule it.
    size = np.log(np.maximum(np.abs(left), 1e-2 * spread))
    # Each group has its own size; trees say what is left of it given the other causes.
    usual = np.array(
        [float(size[group == g].mean() if _many(group, g) else size.mean()) for g in range(n_groups)]
    )
    few = Boosting(
        max(10, boosting.n_iter // 2), boosting.learning_rate, 6, 3 * boosting.min_leaf, boosting.folds
    )
    scale, sure, _ = _grown(
        causes, [size - usual[group]] * boosting.folds, size - usual[group], fold, categorical, few, seed
    )
    parts = (tuple(line), tuple(location), tuple(scale), (worth, sure))
    mu, sigma = NumberModel(*parts, np.zeros((n_groups, 2)), design, usual).place(causes, fold)
    z = (numbers - mu) / sigma
    n = min([int((group == g).sum()) for g in range(n_groups) if _many(group, g)] or [len(z)])
    # Quantiles that are known of n people: 200, and finer towards both ends if people are many.
    levels = (np.arange(200) + 0.5) / 200
    ends = np.geomspace(2.5 / n, levels[0], 9)[:-1] if n > 1000 else np.zeros(0)
    levels = np.concatenate([ends, levels, 1.0 - ends[::-1]])
    knots = np.stack([_quantiles(z[group == g] if _many(group, g) else z, levels) for g in range(n_groups)])
    return NumberModel(*parts, knots, design, usual)


def _grown(
    causes: FloatArray,
    goals: Sequence[FloatArray],
    truth: FloatArray,
    fold: IntArray,
    categorical: Any,
    boosting: Boosting,
    seed: int,
) -> tuple[list[Any], float, FloatArray]:
    """Trees for each fold's goal, what they are worth to people they have not seen, and what they say of these."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    said = np.zeros(len(truth))
    if causes.shape[1] == 1:
        return [None] * boosting.folds, 0.0, said
    grown = []
    for number, goal in enumerate(goals):
        others, mine = fold != number, fold == number
        trees = boosting.trees(HistGradientBoostingRegressor, categorical, seed)
        grown.append(trees.fit(causes[others], goal[others]))
        if mine.any():
            said[mine] = trees.predict(causes[mine])
    # The least squares weight of what trees say about people they have not seen; none for what is but noise.
    worth = float(said @ truth) / max(float(said @ said), 1e-300)
    return grown, min(max(worth, 0.0), 1.0), said


def _design(causes: FloatArray, n_groups: int, categorical: Any) -> LineDesign:
    levels = [int(np.nanmax(c, initial=-1)) + 1 if categorical[j] else 0 for j, c in enumerate(causes.T)]
    centre = np.array([0.0 if categorical[j] else float(np.nanmean(c)) for j, c in enumerate(causes.T)])
    width = np.array([1.0 if categorical[j] else float(np.nanstd(c)) or 1.0 for j, c in enumerate(causes.T)])
    people = np.bincount(causes[:, 0].astype(np.int64), minlength=n_groups)
    enough = people >= _ENOUGH * max(int(np.sum(~np.asarray(categorical))) - 1, 1)
    enough[np.argmax(people)] = True
    slope = np.where(enough, np.cumsum(enough) - 1, (np.cumsum(enough) - 1)[np.argmax(people)])
    return LineDesign(n_groups, tuple(categorical), tuple(levels), centre, width, slope)


def _ridge(rows: FloatArray, numbers: FloatArray) -> FloatArray:
    gram = rows.T @ rows
    # Just enough that categories which repeat each other have a solution.
    gram[np.diag_indices_from(gram)] += 1e-6 * max(float(np.trace(gram)) / len(gram), 1e-12)
    return np.asarray(np.linalg.solve(gram, rows.T @ numbers))


def _many(group: IntArray, g: int) -> bool:
    return int((group == g).sum()) >= _ENOUGH


def _quantiles(some: FloatArray, levels: FloatArray) -> FloatArray:
    knots = np.quantile(some, levels)
    # Strictly rising, so that the way back is the way there.
    step = 1e-9 * max(float(knots[-1] - knots[0]), 1e-12)
    return np.asarray(knots + step * np.arange(len(knots)))


def _along(z: FloatArray, start: FloatArray, end: FloatArray) -> FloatArray:
    inside = np.interp(z, start, end)
    # Beyond the ends all that is known is how wide the groups are.
    slope = (end[-1] - end[0]) / (start[-1] - start[0])
    below, above = end[0] + slope * (z - start[0]), end[-1] + slope * (z - start[-1])
    return np.where(z < start[0], below, np.where(z > start[-1], above, inside))


def _normalised(weights: FloatArray) -> FloatArray:
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
