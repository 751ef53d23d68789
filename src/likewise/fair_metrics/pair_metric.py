"""A Mahalanobis metric from pairs judged comparable or not (EXPLORE, Mukherjee et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from likewise.core.checks import FloatArray, check_integer, check_number, check_same_length, to_numpy
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import is_frame, to_pandas
from likewise.core.randomness import RandomState, numpy_generator
from likewise.fair_metrics.comparable_groups import Groups, read_groups
from likewise.fair_metrics.learner import Features, SubspaceLearner, warn_if_all_is_free
from likewise.fair_metrics.metric import FairMetric
from likewise.fair_metrics.pair_likelihood import (
    Factor,
    comparable_probability,
    maximise_likelihood,
    pair_losses,
)

# Pairs of rows and whether they were judged comparable: given one by one, or following from groups.


@dataclass(frozen=True)
class Judgements:
    """Judged pairs."""

    first: Any
    second: Any
    comparable: FloatArray
    shares: FloatArray


def read_judgements(owner: str, pairs: Any, comparable: Any, n: int) -> Judgements:
    """Read pairs of row numbers and what was judged of each."""
    if comparable is None:
        raise InputError(
            f"{owner}: 'pairs' were given without judgements. Pass comparable=, one value per pair: True where "
            "the two rows are comparable."
        )
    rows = to_numpy(pairs)
    if rows.ndim != 2 or rows.shape[1:] != (2,) or rows.dtype.kind not in "iu":
        raise bad_parameter(
            owner,
            "pairs",
            allowed="pairs of row numbers, shape (m, 2)",
            got=f"{rows.dtype} of shape {rows.shape}",
            remedy="For two tables of paired rows call fit_pairs(first, second, comparable).",
        )
    if not len(rows):
        raise InputError(f"{owner}: 'pairs' is empty. Pass pairs of both kinds, comparable and not.")
    outside = np.flatnonzero(((rows < -n) | (rows >= n)).any(1))
    if len(outside):
        i = int(outside[0])
        raise InputError(
            f"{owner}: pair {i} is {tuple(rows[i].tolist())}, but X has {n} rows (0 to {n - 1}). "
            "Pass positions of rows, not labels of an index."
        )
    values = read_comparable(owner, comparable, len(rows))
    rows = rows % n
    return Judgements(rows[:, 0], rows[:, 1], values, np.full(len(rows), 1.0 / len(rows)))


def read_comparable(owner: str, comparable: Any, m: int) -> FloatArray:
    """Return the judgements as numbers in [0, 1], of both kinds."""
    name = "comparable"
    try:
        values = np.asarray(to_numpy(comparable), dtype=float)
    except (TypeError, ValueError) as error:
        raise bad_parameter(
            owner, name, allowed="True or False per pair, or a share in [0, 1]", got=str(error)
        ) from error
    if values.shape != (m,):
        raise bad_parameter(
            owner, name, allowed=f"one judgement per pair ({m})", got=f"an array of shape {values.shape}"
        )
    if not ((values >= 0) & (values <= 1)).all():
        i = int(np.argmin((values >= 0) & (values <= 1)))
        raise bad_parameter(
            owner,
            name,
            allowed="True or False, or the share of judges in [0, 1]",
            got=f"{values[i]:g} at pair {i}",
            remedy="Write −1/+1 as comparable > 0, and leave out pairs that nobody judged.",
        )
    if not ((values > 0).any() and (values < 1).any()):
        which = "comparable" if (values > 0).any() else "not comparable"
        raise InputError(
            f"{owner}: every pair was judged {which}, so one class of judgements is missing and no distance can "
            "be learned. Add pairs of the other kind."
        )
    return values


def judge_groups(owner: str, groups: Groups, max_pairs: int, rng: np.random.Generator) -> Judgements:
    """Judge rows of one group comparable and rows of different groups not, both kinds with half the weight.

    All pairs where there are at most `max_pairs` of them; else so many drawn at random, half of each kind.
    """
    sizes = groups.sizes
    rows = np.arange(groups.starts[-1]) if groups.order is None else groups.order
    if not (sizes >= 2).any():
        raise InputError(
            f"{owner}: every group has one row only, or one sample per class, so no two rows are comparable. "
            "Groups of two or more are needed."
        )
    if len(sizes) < 2:
        raise InputError(
            f"{owner}: there is one group only, one class, so no two rows are known not to be comparable. Pass "
            "two groups or more, or judged pairs."
        )
    m = len(rows)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    if m * (m - 1) // 2 <= max_pairs:
        first, second = np.triu_indices(m, 1)
    else:
        first, second = _draw(groups.starts, codes, max_pairs, rng)
    comparable = (codes[first] == codes[second]).astype(float)
    together = comparable.mean()
    shares = np.where(comparable == 1, 0.5 / together, 0.5 / (1.0 - together)) / len(first)
    return Judgements(rows[first], rows[second], comparable, shares)


def _draw(starts: Any, codes: Any, count: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Draw pairs inside groups, and as many across them, as positions in the grouped order."""
    sizes = np.diff(starts)
    half = max(1, count // 2)
    # Every comparable pair is equally likely, so a group is drawn by how many pairs it has.
    weights = sizes * (sizes - 1.0)
    group = rng.choice(len(sizes), size=half, p=weights / weights.sum())
    a = rng.integers(sizes[group])
    b = (a + 1 + rng.integers(sizes[group] - 1)) % sizes[group]
    # A row is drawn by how many rows the other groups have, then one of those.
    outside = (len(codes) - sizes).astype(float)[codes]
    left = rng.choice(len(codes), size=half, p=outside / outside.sum())
    own = codes[left]
    right = rng.integers(len(codes) - sizes[own])
    right = np.where(right < starts[:-1][own], right, right + sizes[own])
    return np.concatenate([starts[:-1][group] + a, left]), np.concatenate([starts[:-1][group] + b, right])


class PairMetric(SubspaceLearner):
    """Mahalanobis metric from pairs of people that someone judged comparable, or not.

    The model is EXPLORE's: a pair is judged comparable with probability 2 / (1 + exp(d²)), where d² is the
    squared fair distance of the two, so equal rows are always comparable. Σ is the positive semi-definite
    matrix of the largest likelihood; finding it is a convex problem without local optima.

    Parameters
    ----------
    regularization : float, default=1e-3
        Price of the mean squared distance of the pairs, in units of the mean loss per pair. It keeps Σ finite
        where the judgements follow a metric without any error, and hardly matters otherwise.
    max_pairs : int, default=50_000
        Where groups are given instead of pairs: the most pairs to draw from them.
    max_iter, tol : int, float
        The accelerated projected gradient stops when the mean loss is within `tol` of its optimum.
    domain : TabularDomain, optional
        Encoder of raw frames. Without it one is made from the frame where it has columns of text.
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

    def __init__(
        self,
        *,
        regularization: float = 1e-3,
        max_pairs: int = 50_000,
        max_iter: int = 1000,
        tol: float = 1e-6,
        domain: Any = None,
        feature_map: Any = None,
        random_state: RandomState = None,
    ) -> None:
        self.regularization = regularization
        self.max_pairs = max_pairs
        self.max_iter = max_iter
        self.tol = tol
        self.domain = domain
        self.feature_map = feature_map
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, pairs: Any = None, comparable: Any = None) -> PairMetric:
        """Learn the metric from judged pairs of rows of X.

        Parameters
        ----------
        X : array, tensor or frame of shape (n, p)
        y : array of shape (n,), optional
            Groups of comparable rows, where `pairs` is not given: rows with the same label are taken as
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
            −inf where a pair at distance 0 was judged not comparable.
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
