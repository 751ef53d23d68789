"""A Mahalanobis metric from pairs judged comparable or not (EXPLORE, Mukherjee et al. 2020)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from likewise.core.checks import FloatArray, check_integer, check_number, check_same_length, to_numpy
from likewise.core.errors import InputError
from likewise.core.frames import is_frame, to_pandas
from likewise.core.parameters import parameters_from_fields
from likewise.core.randomness import RandomState, numpy_generator
from likewise.fair_metrics.comparable_groups import (
    Judgements,
    judge_groups,
    read_comparable,
    read_groups,
    read_judgements,
)
from likewise.fair_metrics.learner import Features, SubspaceLearner, warn_if_all_is_free
from likewise.fair_metrics.metric import FairMetric

# The likelihood of judgements, and its maximum: a convex problem over positive semi-definite matrices.


# Directions in which the pairs differ by less than this share of the others are not seen by them.
_UNSEEN = 1e-10


def comparable_probability(squared_distance: FloatArray) -> FloatArray:
    """Probability that a pair is judged comparable: 2σ(−d²) = 2 / (1 + exp(d²)), which is 1 at distance 0."""
    return np.asarray(2.0 * expit(-squared_distance))


def pair_losses(squared_distance: FloatArray, comparable: FloatArray) -> FloatArray:
    """Minus log-likelihood of every judgement, −y log p − (1 − y) log(1 − p); convex in the squared distance."""
    s, y = squared_distance, comparable
    # −log p = log((1 + eˢ) / 2) and −log(1 − p) = −log tanh(s / 2), each without overflow or cancellation.
    alike = np.logaddexp(0.0, s) - np.log(2.0)
    positive = np.where(s > 0, s, 1.0)
    apart = np.log1p(np.exp(-positive)) - np.log(-np.expm1(-positive))
    return np.where((s <= 0) & (y < 1), np.inf, y * alike + (1.0 - y) * apart)


@dataclass(frozen=True)
class Factor:
    """What was found: Σ = F Fᵀ on the directions that the pairs show."""

    root: FloatArray
    unseen: FloatArray
    n_iter: int
    gap: float


def maximise_likelihood(
    delta: FloatArray,
    comparable: FloatArray,
    shares: FloatArray,
    *,
    regularization: float,
    max_iter: int = 1000,
    tol: float = 1e-6,
) -> Factor:
    """Minimise Σ_i share_i loss(δ_iᵀΣδ_i, y_i) + γ Σ_i share_i δ_iᵀΣδ_i over positive semi-definite Σ."""
    whitener, unseen = _whiten(delta, shares)
    r = whitener.shape[1]
    problem = _Problem(delta @ whitener, comparable, shares, regularization * np.eye(r))
    S, n_iter, gap, budget = np.eye(r) / r, 0, np.inf, 20
    while n_iter < max_iter and gap > tol:
        problem, S, turn = _rescale(problem, S)
        whitener = whitener @ turn
        S, steps, gap, stuck = _descend(problem, S, min(budget, max_iter - n_iter), tol)
        n_iter += steps
        if stuck:
            break
        budget *= 2
    if gap > max(100 * tol, 1e-4):
        warnings.warn(
            f"The metric of the pairs did not converge (the mean loss may be {gap:.2g} above the optimum after "
            f"{n_iter} steps). Raise 'max_iter' or 'regularization'.",
            ConvergenceWarning,
            stacklevel=3,
        )
    values, vectors = np.linalg.eigh(S)
    kept = values > values[-1] * 1e-12
    return Factor(whitener @ (vectors[:, kept] * np.sqrt(values[kept])), unseen, n_iter, gap)


def _whiten(delta: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return W (d, r) with Σ_i share_i Wᵀδ_i δ_iᵀW = I, and the directions in which nothing differs."""
    d = delta.shape[1]
    spread = np.sqrt(shares @ delta**2)
    # Units first, so that "unseen" does not depend on whether a column counts dollars or thousands of them.
    units = np.divide(1.0, spread, out=np.zeros(d), where=spread > 0)
    scaled = delta * units
    values, vectors = np.linalg.eigh(scaled.T @ (scaled * shares[:, None]))
    seen = values > _UNSEEN * values[-1]
    whitener = (units[:, None] * vectors[:, seen]) / np.sqrt(values[seen])
    if seen.all():
        return whitener, np.zeros((d, 0))
    # Null vectors of the scaled columns, back in the units of the rows; a column without spread is one itself.
    null = np.where(spread > 0, units, 1.0)[:, None] * vectors[:, ~seen]
    unseen = np.linalg.qr(null)[0]
    return whitener - unseen @ (unseen.T @ whitener), unseen


@dataclass(frozen=True)
class _Problem:
    """The penalised loss of S, where d² = zᵀSz of whitened differences z, and the penalty is ⟨P, S⟩."""

    z: FloatArray
    y: FloatArray
    shares: FloatArray
    penalty: FloatArray

    def value(self, S: FloatArray) -> float:
        return self._loss(S, self.distances(S))

    def value_and_gradient(self, S: FloatArray) -> tuple[float, FloatArray]:
        s = self.distances(S)
        value = self._loss(S, s)
        if not np.isfinite(value):
            return value, S
        # The derivative y σ(s) − (1 − y) / sinh(s): only pairs that are wholly comparable may be at distance 0, and the
        # second term is none of theirs.
        apart = 1.0 / np.sinh(np.clip(np.where(s > 0, s, 1.0), 1e-300, 700.0))
        slopes = self.shares * (self.y * expit(s) - (1.0 - self.y) * apart)
        gradient = self.z.T @ (self.z * slopes[:, None]) + self.penalty
        return value, (gradient + gradient.T) / 2

    def distances(self, S: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("ij,ij->i", self.z @ S, self.z))

    def _loss(self, S: FloatArray, s: FloatArray) -> float:
        return float(self.shares @ pair_losses(s, self.y)) + float(np.vdot(self.penalty, S))


def _rescale(problem: _Problem, S: FloatArray) -> tuple[_Problem, FloatArray, FloatArray]:
    """Change coordinates so that the loss curves alike in every direction at S; returns the change too.

    Along uuᵀ the curvature is Σ share κ (zᵀu)⁴ with κ = loss″, so the rows are whitened with weights √κ.
    """
    s = np.maximum(problem.distances(S), 1e-150)
    near = expit(-s)
    # κ = y σ(1 − σ) + (1 − y) cosh / sinh²; the latter is e⁻ˢ (1 + e⁻²ˢ) · 2 / (1 − e⁻²ˢ)² without overflow.
    apart = 2.0 * np.exp(-s) * (1.0 + np.exp(-2.0 * s)) / np.expm1(-2.0 * s) ** 2
    weights = np.sqrt(
        problem.y * near * (1.0 - near) + (1.0 - problem.y) * np.where(problem.y < 1, apart, 0.0)
    )
    gram = problem.z.T @ (problem.z * (problem.shares * weights)[:, None])
    values, vectors = np.linalg.eigh(gram)
    # If all pairs are far apart the loss is flat; the floor keeps the coordinates finite.
    roots = np.sqrt(np.maximum(values, 1e-6 * values[-1]))
    turn = vectors / roots
    back = vectors * roots
    scaled = _Problem(problem.z @ turn, problem.y, problem.shares, turn.T @ problem.penalty @ turn)
    return scaled, back.T @ S @ back, turn


def _descend(
    problem: _Problem, start: FloatArray, max_iter: int, tol: float
) -> tuple[FloatArray, int, float, bool]:
    """Run accelerated steps; returns the last S, their number, the gap, and whether no step goes down."""
    best = ahead = start
    best_value = problem.value(best)
    step, momentum, gap = 1.0, 1.0, np.inf
    for n_iter in range(1, max_iter + 1):
        value, gradient = problem.value_and_gradient(ahead)
        if not np.isfinite(value):
            # Extrapolation left the region where every pair that is apart has a distance.
            ahead, momentum = best, 1.0
            value, gradient = problem.value_and_gradient(ahead)
        found, found_value, step = _step(problem, ahead, value, gradient, step)
        if found_value >= best_value:
            if momentum == 1.0:
                return best, n_iter, _gap(best, gradient), True
            ahead, momentum = best, 1.0
            continue
        following = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = found + (momentum - 1.0) / following * (found - best)
        best, best_value, momentum = found, found_value, following
        step *= 1.1
        if n_iter % 10 == 0 or n_iter == max_iter:
            gap = _gap(best, problem.value_and_gradient(best)[1])
            if gap <= tol:
                break
    return best, n_iter, gap, False


def _gap(S: FloatArray, gradient: FloatArray) -> float:
    """How much lower the loss can be, by convexity: at most ⟨G, S − S*⟩, with S* of about the size of S."""
    lowest = float(np.linalg.eigvalsh(gradient)[0])
    # A negative ⟨G, S⟩ says that S is too small, so it counts as well.
    return abs(float(np.vdot(gradient, S))) + max(0.0, -lowest) * float(np.trace(S))


def _step(
    problem: _Problem, start: FloatArray, value: float, gradient: FloatArray, step: float
) -> tuple[FloatArray, float, float]:
    """One projected gradient step, halved until the quadratic model is an upper bound."""
    while True:
        # The nearest positive semi-definite matrix: negative eigenvalues become zero.
        values, vectors = np.linalg.eigh(start - step * gradient)
        vectors = vectors * np.sqrt(np.maximum(values, 0.0))
        found = np.asarray(vectors @ vectors.T)
        found_value = problem.value(found)
        move = found - start
        model = value + float(np.vdot(gradient, move))
        model += float(np.vdot(move, move)) / (2.0 * step)
        if found_value <= model + 1e-14 * abs(value) or step < 1e-30:
            return found, found_value, step
        step /= 2.0


@parameters_from_fields
class PairMetric(SubspaceLearner):
    """Mahalanobis metric from pairs of people that someone judged comparable, or not.

    The model is EXPLORE's: a pair is judged comparable with probability 2 / (1 + exp(d²)), where d² is the
    squared fair distance of the two, so equal rows are always comparable. Σ is the positive semi-definite
    matrix of the largest likelihood; finding it is a convex problem without local optima.

    Parameters
    ----------
    regularization : float, default=1e-3
        Price of the mean squared distance of the pairs, in units of the mean loss per pair. It keeps Σ finite
        if the judgements follow a metric without any error, and hardly matters otherwise.
    max_pairs : int, default=50_000
        If groups are given instead of pairs: the most pairs to draw from them.
    max_iter, tol : int, float
        The accelerated projected gradient stops when the mean loss is within `tol` of its optimum.
    domain : TabularDomain, optional
        Encoder of raw frames. Without it one is made from the frame if it has columns of text.
    feature_map : callable, torch module or scikit-learn transformer, optional
        A known map φ to learn in, instead of a domain.
    random_state : int, numpy Generator or None, default=None
        For drawing pairs from groups; given pairs need no random numbers.

    Attributes
    ----------
    metric_ : FairMetric
        Of the form mahalanobis(Σ), with d² in the units of the likelihood.
    subspace_ : Subspace
        Directions that cost nothing; often none.
    sigma_ : ndarray of shape (d, d)
    log_likelihood_ : float
        Mean log-likelihood per pair, at most 0.
    n_pairs_ : int
    n_iter_ : int
    encoder_, n_features_in_, feature_names_in_
        As in `ExpertSubspace`.

    Notes
    -----
    A direction in which no pair differs cannot be learned (a column that is the same in all of them; the sum
    of one-hot columns). Nothing says that such differences are acceptable, so they cost the mean of what the
    others cost.

    References
    ----------
    D. Mukherjee, M. Yurochkin, M. Banerjee, Y. Sun. Two simple ways to learn individual fairness metrics from
    data. ICML 2020. arXiv 2006.11439, section 2.2.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 0.1], [0.2, 1.0], [1.3, 1.2]])
    >>> pairs, comparable = [(0, 1), (2, 3), (0, 2), (1, 3)], [True, True, False, False]
    >>> learner = PairMetric().fit(X, pairs=pairs, comparable=comparable)
    >>> learner.probability(X[[0, 0]], X[[1, 2]]) > 0.5
    array([ True, False])
    """

    regularization: float = 1e-3
    max_pairs: int = 50_000
    max_iter: int = 1000
    tol: float = 1e-6
    domain: Any = None
    feature_map: Any = None
    random_state: RandomState = None

    def fit(self, X: Any, y: Any = None, *, pairs: Any = None, comparable: Any = None) -> PairMetric:
        """Learn the metric from judged pairs of rows of X.

        Parameters
        ----------
        X : array, tensor or frame of shape (n, p)
        y : array of shape (n,), optional
            Groups of comparable rows, if `pairs` is not given: rows with the same label are taken as
            comparable, rows with different labels as not, and both kinds have the same weight. A missing
            label leaves the row out.
        pairs : array of shape (m, 2), optional
            Positions of the two rows of every pair.
        comparable : array of shape (m,), optional
            Their judgements: True or False, or the share in [0, 1] of the judges who found them comparable.

        Returns
        -------
        PairMetric
            itself
        """
        self._check()
        features = self._read(X, rows=2)
        self._solve(features, self._judgements(features, y, pairs, comparable))
        return self

    def fit_pairs(self, first: Any, second: Any, comparable: Any) -> PairMetric:
        """Learn the metric from two tables of paired rows.

        Parameters
        ----------
        first, second : arrays, tensors or frames of shape (m, p)
            The i-th row of one was compared with the i-th row of the other.
        comparable : array of shape (m,)
            As in `fit`.

        Returns
        -------
        PairMetric
            itself

        Examples
        --------
        >>> first, second = np.zeros((2, 2)), np.array([[1.0, 0.0], [0.0, 1.0]])
        >>> learner = PairMetric().fit_pairs(first, second, [True, False])
        >>> float(learner.sigma_[0, 0])
        0.0
        """
        m = check_same_length(type(self).__name__, first=first, second=second)
        pairs = np.arange(2 * m).reshape(2, m).T
        return self.fit(_stack(first, second), pairs=pairs, comparable=comparable)

    def probability(self, first: Any, second: Any) -> FloatArray:
        """Return how probable it is that each of the paired rows is judged comparable, shape (m,)."""
        check_is_fitted(self)
        return comparable_probability(to_numpy(self.metric_.squared_distance(first, second)))

    def log_likelihood(self, first: Any, second: Any, comparable: Any) -> float:
        """Return the mean log-likelihood of judgements of other pairs: higher is better, 0 is perfect.

        Parameters
        ----------
        first, second, comparable
            As in `fit_pairs`.

        Returns
        -------
        float
            −inf if a pair at distance 0 was judged not comparable.
        """
        check_is_fitted(self)
        distances = to_numpy(self.metric_.squared_distance(first, second))
        values = read_comparable(type(self).__name__, comparable, len(distances))
        return -float(pair_losses(distances.astype(float), values).mean())

    def _check(self) -> None:
        owner = type(self).__name__
        check_number(self.regularization, owner=owner, name="regularization", low=0.0)
        check_number(self.tol, owner=owner, name="tol", low=0.0, open_low=True)
        for name, low in (("max_pairs", 2), ("max_iter", 1)):
            check_integer(getattr(self, name), owner=owner, name=name, low=low)

    def _judgements(self, features: Features, y: Any, pairs: Any, comparable: Any) -> Judgements:
        owner, n = type(self).__name__, len(features.phi)
        if pairs is not None:
            return read_judgements(owner, pairs, comparable, n)
        if comparable is not None:
            raise InputError(
                f"{owner}: 'comparable' was given without pairs. Pass pairs= too, or call "
                "fit_pairs(first, second, comparable)."
            )
        if y is None:
            raise InputError(
                f"{owner} requires y to be passed, but the target y is None: there are no judgements. Pass pairs= "
                "and comparable=, or groups of comparable rows as y."
            )
        groups = read_groups(owner, y, n, name="y")
        return judge_groups(owner, groups, int(self.max_pairs), numpy_generator(self.random_state))

    def _solve(self, features: Features, judged: Judgements) -> None:
        phi = features.phi.astype(float)
        delta = phi[judged.first] - phi[judged.second]
        equal = ~delta.any(1)
        impossible = np.flatnonzero(equal & (judged.comparable < 1))
        if len(impossible):
            i = int(impossible[0])
            raise InputError(
                f"PairMetric: {len(impossible)} pair(s) of equal rows were judged not comparable, first rows "
                f"{int(judged.first[i])} and {int(judged.second[i])}. No distance can tell equal rows apart: leave "
                "them out, or add the column in which they differ."
            )
        found = maximise_likelihood(
            delta,
            judged.comparable,
            judged.shares,
            regularization=float(self.regularization),
            max_iter=int(self.max_iter),
            tol=float(self.tol),
        )
        basis, values = _eigen(found)
        self.metric_ = FairMetric(0.0, basis, values, features.feature_map, features.where.names)
        warn_if_all_is_free(self.metric_, owner=type(self).__name__)
        self.subspace_ = self.metric_.null_space
        self.sigma_ = self.metric_.sigma()
        distances = self.metric_.squared_norm(delta)
        self.log_likelihood_ = -float(judged.shares @ pair_losses(distances, judged.comparable))
        self.n_pairs_ = len(delta)
        self.n_iter_ = found.n_iter

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _eigen(found: Factor) -> tuple[FloatArray, FloatArray]:
    """Eigenvectors and positive eigenvalues of Σ = F Fᵀ, with the mean cost along unseen directions."""
    vectors, singular, _ = np.linalg.svd(found.root, full_matrices=False)
    vectors *= np.sign(vectors[np.abs(vectors).argmax(0), np.arange(vectors.shape[1])])
    values = singular**2
    if found.unseen.shape[1]:
        seen = found.unseen.shape[0] - found.unseen.shape[1]
        vectors = np.concatenate([vectors, found.unseen], axis=1)
        values = np.concatenate([values, np.full(found.unseen.shape[1], values.sum() / seen)])
    return np.linalg.qr(vectors)[0] if found.unseen.shape[1] else vectors, values


def _stack(first: Any, second: Any) -> Any:
    """Both tables in one, the rows of the first before those of the second."""
    if is_frame(first) and is_frame(second):
        one, other = (
            to_pandas(t, owner="PairMetric", name=n) for t, n in ((first, "first"), (second, "second"))
        )
        if list(one.columns) != list(other.columns):
            raise InputError(
                "PairMetric: 'first' and 'second' have different columns. Pass the same columns in both."
            )
        return pd.concat([one, other], ignore_index=True)
    rows, more = to_numpy(first), to_numpy(second)
    if rows.shape[1:] != more.shape[1:]:
        raise InputError(
            f"PairMetric: 'first' has shape {rows.shape}, 'second' {more.shape}. Pass the same columns in both."
        )
    return np.concatenate([rows, more])
