"""Directions in which comparable people differ: factor analysis of groups (paper Appendix B.2, Algorithm 3)."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
from scipy.linalg import eigh

from likewise.core.checks import FloatArray, check_choice, is_whole
from likewise.core.errors import InputError, bad_parameter
from likewise.core.parameters import parameters_from_fields
from likewise.core.randomness import RandomState, numpy_generator
from likewise.core.subspace import Subspace
from likewise.fair_metrics.comparable_groups import Groups, centred_chunks, read_groups
from likewise.fair_metrics.learner import Features, SubspaceLearner

# Within-group scatter Σ_g Φ_gᵀ H_g Φ_g of Algorithm 3: whole, streamed, or only its top directions.


class Scatter:
    """Sum of squares and products around the group means, accumulated in float64."""

    def __init__(self, n_features: int) -> None:
        self.gram: FloatArray = np.zeros((n_features, n_features))
        self.freedom = 0
        self._places: dict[Any, int] = {}
        self._counts: FloatArray = np.zeros(0)
        self._means: FloatArray = np.zeros((0, n_features))

    def add(self, X: FloatArray, groups: Groups, *, remember: bool) -> None:
        """Add rows."""
        sizes = groups.sizes
        for chunk in centred_chunks(X, groups):
            self.gram += chunk.rows.T @ chunk.rows
            if remember and len(chunk.means):
                numbers = slice(chunk.first, chunk.first + len(chunk.means))
                self._merge(groups.labels[numbers].tolist(), sizes[numbers].astype(float), chunk.means)
        self.freedom += int(sizes.sum())
        if not remember:
            self.freedom -= len(sizes)

    def _merge(self, labels: list[Any], sizes: FloatArray, means: FloatArray) -> None:
        """Merge groups with what came of them before, as Chan, Golub and LeVeque (1979): no large differences."""
        places = np.array([self._places.get(label, -1) for label in labels])
        new = places < 0
        self.freedom -= int(new.sum())
        if new.any():
            for i in np.flatnonzero(new):
                self._places[labels[i]] = len(self._places)
            self._counts = np.concatenate([self._counts, sizes[new]])
            self._means = np.concatenate([self._means, means[new]])
        old = places[~new]
        if len(old):
            before, more = self._counts[old], sizes[~new]
            gap = means[~new] - self._means[old]
            scaled = gap * np.sqrt(before * more / (before + more))[:, None]
            self.gram += scaled.T @ scaled
            self._means[old] += gap * (more / (before + more))[:, None]
            self._counts[old] = before + more


def top_of_gram(gram: FloatArray, count: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Largest eigenvalues, descending, and their eigenvectors as columns; all of them without `count`."""
    d = len(gram)
    wanted = None if count is None or count >= d else (d - count, d - 1)
    values, vectors = eigh(gram, subset_by_index=wanted)
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1]


def leading_directions(
    X: FloatArray, groups: Groups, count: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, float]:
    """Top directions by randomised subspace iteration (Halko, Martinsson and Tropp 2011), for wide X.

    Every pass multiplies the centred rows chunk by chunk, so neither a centred copy of X nor a d × d matrix
    is made.
    """
    d = X.shape[1]
    width = min(count + 10, d)
    vectors = np.linalg.qr(rng.normal(size=(d, width)))[0]
    for _ in range(8):
        cast = vectors.astype(X.dtype)
        product, total = np.zeros((d, width)), 0.0
        for chunk in centred_chunks(X, groups):
            product += chunk.rows.T @ (chunk.rows @ cast)
            total += float(np.einsum("ij,ij->", chunk.rows, chunk.rows, dtype=np.float64))
        # Rayleigh and Ritz: the scatter as seen inside the current directions.
        small = vectors.T @ product
        values, turn = np.linalg.eigh((small + small.T) / 2)
        ritz = (vectors @ turn)[:, ::-1]
        vectors = np.linalg.qr(product)[0]
    return np.maximum(values[::-1][:count], 0.0), ritz[:, :count], total


# How many directions stand out from the spread of single columns: parallel analysis of what is left, one by
# one.


# The 99% quantile of the Tracy–Widom law of real matrices.
_TRACY_WIDOM = 2.0234
# No column is taken for less noise than this share of its variance: a column explained in full would be divided by 0.
_LEAST_NOISE = 1e-4
_ROUNDS = 20
_SETTLED = 1e-2


def largest_noise_eigenvalue(n_columns: int, freedom: int) -> float:
    """Return what the largest eigenvalue of a scatter of independent columns of variance 1 hardly ever exceeds.

    It is the 99% quantile of the largest eigenvalue of a white Wishart matrix by Johnstone (2001): the
    Marchenko–Pastur edge (√n + √p)², and its spread.
    """
    a, b = np.sqrt(max(freedom, 1)), np.sqrt(max(n_columns, 1))
    return float((a + b) ** 2 + _TRACY_WIDOM * (a + b) * (1 / a + 1 / b) ** (1 / 3))


def count_factors(gram: FloatArray, freedom: int) -> int:
    """Return how many factors the columns share: as many as stand out from columns without correlation.

    Parallel analysis (Horn 1965) asks of each eigenvalue whether columns without correlation would have it too.
    With many factors the columns' own variances are mostly these factors, and the later ones are missed. So each
    question is asked of what the factors before leave: every column is divided by the noise that is left in it, and
    the next eigenvalue is compared with the largest of white noise in the remaining dimensions.
    """
    variances = np.diag(gram) / freedom
    spread = variances > 1e-12 * max(float(variances.max(initial=0.0)), 1e-300)
    covariance, variances = gram[np.ix_(spread, spread)] / freedom, variances[spread]
    d = len(variances)
    noise: FloatArray = variances.copy()
    for count in range(int(d + 0.5 - np.sqrt(2 * d + 0.25))):
        noise, following = _noise_beside(covariance, noise, variances, count)
        if following * freedom <= largest_noise_eigenvalue(d - count, freedom - count):
            return count
    return max(0, int(d + 0.5 - np.sqrt(2 * d + 0.25)))


def _noise_beside(
    covariance: FloatArray, noise: FloatArray, variances: FloatArray, count: int
) -> tuple[FloatArray, float]:
    """The variance of each column beside `count` factors, and the next eigenvalue relative to it.

    With P = I − UUᵀ, U the leading directions of the columns so scaled, the residual of noise ψ has the diagonal
    (P∘P) ψ: solved for ψ until it agrees with itself.
    """
    for _ in range(_ROUNDS):
        scale = np.sqrt(noise)
        scaled = covariance / np.outer(scale, scale)
        values, vectors = top_of_gram(scaled, count + 1)
        if count == 0:
            break
        leading = vectors[:, :count]
        outside = np.eye(len(noise)) - leading @ leading.T
        left = np.diag(scaled) - (leading**2) @ values[:count]
        # The small ridge is for columns that the leading directions span alone.
        change = np.linalg.solve(outside**2 + 1e-6 * np.eye(len(noise)), left).clip(0.1, 10.0)
        before, noise = noise, np.clip(noise * change, _LEAST_NOISE * variances, variances)
        if np.abs(noise / before - 1).max() < _SETTLED:
            break
    return noise, float(values[count])


# Up to this width the d × d scatter is the cheaper way: one pass over the rows and one eigenproblem.
_WIDE = 2000


@parameters_from_fields
class ComparableSubspace(SubspaceLearner):
    """Sensitive subspace from groups of comparable rows (Algorithm 3 of the paper).

    The rows of every group are centred, and the subspace is spanned by the top singular directions of all
    centred rows together: what makes comparable people look different.

    Parameters
    ----------
    n_components : int, float or "auto", default="auto"
        A number of directions; a share of the within-group variance in (0, 1); or "auto": as many as stand
        out from columns without correlation (parallel analysis, Horn 1965, of what the directions before
        leave), at least one.
    solver : {"auto", "gram", "randomized"}, default="auto"
        "gram" accumulates the d × d scatter in one pass; "randomized" makes several passes with a few
        vectors, for an integer `n_components` and wide rows. "auto" takes "gram" up to 2,000 columns.
    weight, domain, feature_map
        As in `ExpertSubspace`.
    random_state : int, numpy Generator or None, default=None
        For "randomized".

    Attributes
    ----------
    metric_ : FairMetric
    subspace_ : Subspace
    n_components_ : int
    singular_values_ : ndarray of shape (n_components,)
        Of the stacked, centred rows.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of the within-group variance.
    encoder_, n_features_in_, feature_names_in_
        As in `ExpertSubspace`.

    Notes
    -----
    Parallel analysis asks which directions are more than the spread of single columns, so a sensitive factor
    that lives in one column alone does not stand out; name that column with `ExpertSubspace`.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [4.0, 1.0], [7.0, 3.0], [9.0, 3.0]])
    >>> learner = ComparableSubspace(n_components=1).fit(X, groups=[[0, 1], [2, 3]])
    >>> learner.metric_.squared_distance(X[:1], X[2:3]).round(6)
    array([4.])
    """

    n_components: int | float | str = field(default="auto", kw_only=False)
    solver: str = "auto"
    weight: float = 0.0
    domain: Any = None
    feature_map: Any = None
    random_state: RandomState = None

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> ComparableSubspace:
        """Learn the subspace.

        Parameters
        ----------
        X : array, tensor or frame of shape (n, p)
        y : array of shape (n,), optional
            Labels of the groups if `groups` is not given.
        groups : array of shape (n,) or list of index lists, optional
            One label per row (missing: the row is in no group), or for every group the numbers of its rows.

        Returns
        -------
        ComparableSubspace
            itself
        """
        self._check()
        if hasattr(self, "scatter_"):
            del self.scatter_
        features = self._read(X, rows=2)
        found = self._groups(features, y, groups)
        found = found.keep(found.sizes >= 2)
        if not len(found.labels):
            raise InputError(
                "ComparableSubspace: every group has one row only, or one sample per class. Comparable rows come "
                "in groups of two or more."
            )
        freedom = int(found.sizes.sum()) - len(found.labels)
        width = features.phi.shape[1]
        small = width <= _WIDE or not is_whole(self.n_components)
        if self.solver == "gram" or (self.solver == "auto" and small):
            scatter = Scatter(features.phi.shape[1])
            scatter.add(features.phi, found, remember=False)
            self._solve(scatter.gram, freedom, features)
        else:
            count, rng = int(self.n_components), numpy_generator(self.random_state)
            values, vectors, total = leading_directions(features.phi, found, count, rng)
            rank = _rank(values, total, freedom, features.phi)
            self._components(values, vectors, count, total, rank, features)
        return self

    def partial_fit(
        self, X: Any, y: Any = None, *, groups: Any = None, whole_groups: bool = False
    ) -> ComparableSubspace:
        """Add rows to what was seen so far; for inputs beyond memory.

        Parameters
        ----------
        X, y, groups
            As in `fit`. A label that came in an earlier call means the same group; index lists are always
            new groups.
        whole_groups : bool, default=False
            Promise that no group goes on in a later call. Then nothing is kept per group; else the mean of
            every group is (G × d numbers).

        Returns
        -------
        ComparableSubspace
            itself; ``metric_`` appears as soon as the rows so far have that many directions.
        """
        self._check()
        fresh = not hasattr(self, "scatter_")
        features = self._read(X, reset=fresh)
        if fresh:
            self.scatter_ = Scatter(features.phi.shape[1])
        found = self._groups(features, y, groups)
        self.scatter_.add(features.phi, found, remember=found.named and not whole_groups)
        if self.scatter_.freedom:
            self._solve(self.scatter_.gram, self.scatter_.freedom, features, streaming=True)
        return self

    def _check(self) -> None:
        number = self.n_components
        owner, name = "ComparableSubspace", "n_components"
        share = isinstance(number, (float, np.floating)) and 0 < number < 1
        if not (share or (number == "auto" if isinstance(number, str) else is_whole(number) and number >= 1)):
            allowed = "a whole number >= 1, a share of variance in (0, 1) or 'auto'"
            raise bad_parameter(owner, name, allowed, number)
        check_choice(self.solver, ("auto", "gram", "randomized"), owner=owner, name="solver")
        if self.solver == "randomized" and not is_whole(number):
            allowed = "a whole number with solver='randomized'"
            raise bad_parameter(owner, name, allowed, number, "Pass solver='gram'.")

    def _groups(self, features: Features, y: Any, groups: Any) -> Groups:
        given, name = (y, "y") if groups is None else (groups, "groups")
        if given is None:
            raise InputError(
                "ComparableSubspace requires y to be passed, but the target y is None: no groups were given. Pass "
                "groups=, one label per row or a list of index lists."
            )
        return read_groups("ComparableSubspace", given, len(features.phi), name=name)

    def _solve(self, gram: FloatArray, freedom: int, features: Features, *, streaming: bool = False) -> None:
        count = self.n_components
        total = float(np.trace(gram))
        if is_whole(count):
            values, vectors = top_of_gram(gram, int(count))
        else:
            values, vectors = top_of_gram(gram)
            if count == "auto":
                count = max(1, count_factors(gram, freedom))
            else:  # a share of the variance
                shares = np.cumsum(values) / max(total, 1e-300)
                count = int(np.searchsorted(shares, float(count) - 1e-12) + 1)
        rank = _rank(values, total, freedom, features.phi)
        if streaming and int(count) > rank:
            return
        self._components(values, vectors, int(count), total, rank, features)

    def _components(
        self, values: FloatArray, vectors: FloatArray, count: int, total: float, rank: int, features: Features
    ) -> None:
        if rank == 0:
            raise InputError(
                "ComparableSubspace: the rows of every group are equal, so nothing tells them apart. Pass groups "
                "whose rows differ in what is sensitive."
            )
        if count > rank:
            allowed = f"at most {rank}, the number of directions in which rows of a group differ"
            raise bad_parameter("ComparableSubspace", "n_components", allowed, count)
        # Signs are fixed, so that equal input gives equal output whatever the solver.
        chosen = np.array(vectors[:, :count], dtype=float)
        peak = np.abs(chosen).argmax(0)
        chosen = np.linalg.qr(chosen)[0]
        chosen *= np.sign(chosen[peak, np.arange(count)])
        self.n_components_ = count
        self.singular_values_ = np.sqrt(values[:count])
        self.explained_variance_ratio_ = values[:count] / total
        self._learned(Subspace(chosen), features)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _rank(values: FloatArray, total: float, freedom: int, phi: FloatArray) -> int:
    """How many of the eigenvalues are more than rounding of the rows' own dtype."""
    resolution = float(np.finfo(phi.dtype).eps) * phi.shape[1]
    return min(int((values > resolution * total).sum()), freedom)
