"""Directions in which comparable people differ: factor analysis of groups (paper Appendix B.2, Algorithm 3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.core.arrays import FloatArray
from likewise.core.errors import InputError, bad_parameter
from likewise.core.randomness import RandomState, numpy_generator
from likewise.core.subspace import Subspace
from likewise.fair_metrics.comparable_groups import Groups, read_groups
from likewise.fair_metrics.learner import Features, SubspaceLearner
from likewise.fair_metrics.parallel_analysis import count_factors
from likewise.fair_metrics.scatter import Scatter, leading_directions, top_of_gram

__all__ = ["ComparableSubspace"]

# Up to this width the d × d scatter is the cheaper way: one pass over the rows and one eigenproblem.
_WIDE = 2000


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

    def __init__(
        self,
        n_components: int | float | str = "auto",
        *,
        solver: str = "auto",
        weight: float = 0.0,
        domain: Any = None,
        feature_map: Any = None,
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.solver = solver
        self.weight = weight
        self.domain = domain
        self.feature_map = feature_map
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> ComparableSubspace:
        """Learn the subspace.

        Parameters
        ----------
        X : array, tensor or frame of shape (n, p)
        y : array of shape (n,), optional
            Labels of the groups where `groups` is not given.
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
        if self._use_gram(features.phi.shape[1]):
            scatter = Scatter(features.phi.shape[1])
            scatter.add(features.phi, found, remember=False)
            self._solve(scatter.gram, freedom, features)
        else:
            self._solve_wide(features, found, freedom)
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
        ok = number == "auto" if isinstance(number, str) else False
        ok = ok or (_is_count(number) and number >= 1)  # type: ignore[operator]
        ok = ok or (isinstance(number, (float, np.floating)) and 0 < number < 1)
        if not ok:
            raise bad_parameter(
                "ComparableSubspace",
                "n_components",
                allowed="a whole number >= 1, a share of variance in (0, 1) or 'auto'",
                got=number,
            )
        if self.solver not in ("auto", "gram", "randomized"):
            raise bad_parameter(
                "ComparableSubspace", "solver", allowed="'auto', 'gram' or 'randomized'", got=self.solver
            )
        if self.solver == "randomized" and not _is_count(number):
            raise bad_parameter(
                "ComparableSubspace",
                "n_components",
                allowed="a whole number with solver='randomized'",
                got=number,
                remedy="Pass solver='gram'.",
            )

    def _use_gram(self, width: int) -> bool:
        if self.solver == "auto":
            return width <= _WIDE or not _is_count(self.n_components)
        return self.solver == "gram"

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
        if _is_count(count):
            values, vectors = top_of_gram(gram, int(count))
        else:
            values, vectors = top_of_gram(gram)
            count = _choose(count, gram, values, freedom)
        rank = _rank(values, total, freedom, features.phi)
        if streaming and int(count) > rank:
            return
        self._components(values, vectors, int(count), total, rank, features)

    def _solve_wide(self, features: Features, groups: Groups, freedom: int) -> None:
        count = int(self.n_components)
        rng = numpy_generator(self.random_state)
        values, vectors, total = leading_directions(features.phi, groups, count, rng)
        rank = _rank(values, total, freedom, features.phi)
        self._components(values, vectors, count, total, rank, features)

    def _components(
        self,
        values: FloatArray,
        vectors: FloatArray,
        count: int,
        total: float,
        rank: int,
        features: Features,
    ) -> None:
        if rank == 0:
            raise InputError(
                "ComparableSubspace: the rows of every group are equal, so nothing tells them apart. Pass groups "
                "whose rows differ in what is sensitive."
            )
        if count > rank:
            raise bad_parameter(
                "ComparableSubspace",
                "n_components",
                allowed=f"at most {rank}, the number of directions in which rows of a group differ",
                got=count,
            )
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


def _is_count(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _rank(values: FloatArray, total: float, freedom: int, phi: FloatArray) -> int:
    """How many of the eigenvalues are more than rounding of the rows' own dtype."""
    resolution = float(np.finfo(phi.dtype).eps) * phi.shape[1]
    return min(int((values > resolution * total).sum()), freedom)


def _choose(wanted: Any, gram: FloatArray, values: FloatArray, freedom: int) -> int:
    """Number of components for a share of variance, or by parallel analysis."""
    if wanted == "auto":
        return max(1, count_factors(gram, freedom))
    shares = np.cumsum(values) / max(float(np.trace(gram)), 1e-300)
    return int(np.searchsorted(shares, float(wanted) - 1e-12) + 1)
