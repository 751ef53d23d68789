"""The fair metric itself: d(x1, x2)² = (φ(x1) − φ(x2))ᵀ Σ (φ(x1) − φ(x2)), Σ = identity plus low rank."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from likewise.core.checks import FloatArray, check_matrix, check_number, is_tensor, like, namespace, to_numpy
from likewise.core.errors import InputError, bad_parameter
from likewise.core.files import Fields, ListOf, Maybe, load_described, save_described
from likewise.core.subspace import Subspace
from likewise.fair_metrics.naming import apply_feature_map, is_encoder, map_names

# A move δ is free if δᵀΣδ is at most this share of ‖δ‖² times the largest eigenvalue of Σ, and an eigenvalue is 0
# if it is at most this share of the largest. A basis stored in float32 is true to about 1e-7 in angle, so a move
# along it costs some 1e-14 of its squared length: rounding, not a cost.
COSTS_NOTHING = 1e-12


# Fair metrics in one safetensors file: arrays, and a JSON description with a schema version. No pickle.


_KIND = "fair_metric"
_FORM = Fields(
    {
        "scale": float,
        "feature_names": Maybe(ListOf(str)),
        "sensitive_features": ListOf(str),
        "domain": Maybe(dict),
    },
    more=True,
)


@dataclass(frozen=True, eq=False)
class FairMetric:
    """Squared fair distance with Σ = scale · I + Q diag(values) Qᵀ (paper section 2.1 and Appendix B).

    Make one with `FairMetric.from_subspace`, `euclidean`, `mahalanobis` or a learner's ``metric_``.

    Parameters
    ----------
    scale : float
        Cost of the directions outside the basis; 1 for subspace metrics, 0 for a Mahalanobis metric.
    basis : array of shape (d, k)
        Orthonormal columns (the paper's Q).
    values : array of shape (k,)
        What each direction of the basis adds to `scale`; ``-scale`` makes a direction free.
    feature_map : None, TabularDomain, callable, torch module or scikit-learn transformer
        The known map φ of Appendix B.2. None is the identity.
    feature_names : sequence of str, optional
        Names of the d columns of φ(x).
    sensitive_features : sequence of str, default=()
        Original columns that the metric was told are sensitive, as a whole: what an audit may exchange between
        people without asking the learned directions. Not those that a learner only found to be correlated.

    Notes
    -----
    Every method takes numpy arrays and torch tensors, and returns the same kind, dtype and device; on tensors
    it is differentiable. Costs are O(dk) per row and sums of terms that are never negative, so nothing is
    lost to cancellation.

    Examples
    --------
    >>> import numpy as np
    >>> metric = FairMetric.from_subspace(Subspace.from_directions([[0.0, 1.0]]))
    >>> metric.squared_distance([[1.0, 5.0]], [[3.0, -5.0]])
    array([4.])
    """

    scale: float
    basis: FloatArray
    values: FloatArray
    feature_map: Any = None
    feature_names: tuple[str, ...] | None = None
    sensitive_features: tuple[str, ...] = ()
    _casts: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        scale = check_number(self.scale, owner="FairMetric", name="scale", low=0.0)
        basis = np.array(to_numpy(self.basis), dtype=float)
        Subspace(basis)  # raises if it is not a basis
        gram = basis.T @ basis
        if np.abs(gram - np.eye(len(gram))).max(initial=0.0) > 1e-12:
            # A basis that was stored in float32: one Newton step to the nearest one that is orthonormal in float64.
            basis = basis @ (1.5 * np.eye(len(gram)) - 0.5 * gram)
        values = np.array(to_numpy(self.values), dtype=float)
        if values.shape != (basis.shape[1],):
            raise bad_parameter(
                "FairMetric",
                "values",
                f"one number per column of the basis ({basis.shape[1]})",
                f"shape {values.shape}",
            )
        top = max(scale, float((scale + values).max(initial=0.0)))
        if not np.isfinite(values).all() or (scale + values < -1e-9 * max(top, 1e-300)).any():
            raise bad_parameter(
                "FairMetric",
                "values",
                "finite and at least -scale, so that Σ is positive semi-definite",
                f"{values.min()} with scale {scale}",
            )
        free = scale + values <= COSTS_NOTHING * top
        names = None if self.feature_names is None else tuple(str(name) for name in self.feature_names)
        if names is not None and len(names) != basis.shape[0]:
            raise InputError(
                f"FairMetric: 'feature_names' has {len(names)} names, the metric {basis.shape[0]} columns. "
                "Pass one name per column of φ(x)."
            )
        mapped = map_names(self.feature_map)
        if mapped is not None and len(mapped) != basis.shape[0]:
            raise InputError(
                f"FairMetric: the feature map gives {len(mapped)} columns, the metric has {basis.shape[0]}. "
                "Learn the metric on φ(X)."
            )
        told: Any = self.sensitive_features
        if isinstance(told, str):
            allowed = "a sequence of column names"
            raise bad_parameter("FairMetric", "sensitive_features", allowed, repr(told), f"Pass ({told!r},).")
        object.__setattr__(self, "sensitive_features", tuple(dict.fromkeys(map(str, told))))
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "basis", basis)
        object.__setattr__(self, "values", np.where(free, -scale, values))
        object.__setattr__(self, "feature_names", names or mapped)

    # ---- how it is made -------------------------------------------------------------------------------

    @classmethod
    def from_subspace(
        cls,
        subspace: Subspace,
        weight: float = 0.0,
        *,
        feature_map: Any = None,
        feature_names: Sequence[str] | None = None,
        sensitive_features: Sequence[str] = (),
    ) -> FairMetric:
        """Build the metric that ignores a subspace: Σ = I − (1 − w) QQᵀ.

        Parameters
        ----------
        subspace : Subspace
            The sensitive directions, in the space of φ.
        weight : float in [0, 1], default=0
            What is left of the cost inside the subspace; 0 makes it free, 1 is the Euclidean metric.
        feature_map, feature_names, sensitive_features
            As in the class.

        Returns
        -------
        FairMetric

        Examples
        --------
        >>> sub = Subspace.from_directions([[1.0, 0.0]])
        >>> FairMetric.from_subspace(sub, weight=0.25).squared_distance([[2.0, 1.0]], [[0.0, 0.0]])
        array([2.])
        """
        weight = check_number(weight, owner="FairMetric.from_subspace", name="weight", low=0.0, high=1.0)
        names = None if feature_names is None else tuple(feature_names)
        basis = np.asarray(to_numpy(subspace.basis), dtype=float)
        return cls(
            1.0, basis, np.full(subspace.dim, weight - 1.0), feature_map, names, tuple(sensitive_features)
        )

    def without_feature_map(self) -> FairMetric:
        """Return the same Σ with the identity in place of φ, for rows that are φ(x) already."""
        return self if self.feature_map is None else replace(self, feature_map=None)

    def __or__(self, other: FairMetric) -> FairMetric:
        """Return the union: what is free (or cheap) under either metric is so under the union."""
        from likewise.fair_metrics.constructors import union

        return union(self, other)

    # ---- what it is -----------------------------------------------------------------------------------

    @property
    def n_features(self) -> int | None:
        """Width of φ(x); None for the Euclidean metric of any width."""
        return int(self.basis.shape[0]) or None

    @property
    def null_space(self) -> Subspace:
        """The free directions: the null space of Σ, along which nothing costs anything; possibly none."""
        if self.scale > 0:
            return Subspace(self.basis[:, self.values == -self.scale])
        return Subspace(self.basis[:, self.values > 0]).complement()

    @property
    def subspace(self) -> Subspace | None:
        """The sensitive subspace: directions cheaper than the others; None if there are none."""
        if self.scale > 0:
            cheaper = self.values < 0
            return Subspace(self.basis[:, cheaper]) if cheaper.any() else None
        free = self.null_space
        return free if free.dim else None

    @property
    def weight(self) -> float | None:
        """The w of Σ = I − (1 − w) QQᵀ; None if the metric is not of that form."""
        if self.scale == 0:
            return None
        relative = self.values / self.scale
        if relative.size == 0 or (relative > 0).any() or np.ptp(relative) > COSTS_NOTHING:
            return None
        return float(1.0 + relative[0])

    def sigma(self) -> FloatArray:
        """Return the explicit d × d matrix Σ, for inspection; nothing here computes with it."""
        if self.n_features is None:
            raise InputError(
                "FairMetric.sigma: this Euclidean metric has no fixed width. Pass n_features to it."
            )
        return np.asarray(self.scale * np.eye(self.n_features) + (self.basis * self.values) @ self.basis.T)

    # ---- products in the space of φ -------------------------------------------------------------------

    def _split(self, delta: Any) -> tuple[Any, Any, Any]:
        """Basis, coordinates inside it and the part outside it, as the kind of array `delta` is."""
        Q = self._cast("basis", delta)
        inside = delta @ Q
        return Q, inside, delta - inside @ Q.T

    def _cast(self, name: str, reference: Any) -> Any:
        """One of the metric's arrays as the kind of array `reference` is, converted once."""
        key = (name, str(reference.dtype), str(getattr(reference, "device", "cpu")), is_tensor(reference))
        if key not in self._casts:
            if name == "basis":
                value = self.basis if self.n_features else np.zeros((reference.shape[-1], 0))
            else:
                costs = self.scale + self.values
                roots = np.sqrt(costs) - np.sqrt(self.scale)
                with np.errstate(divide="ignore"):
                    inverse = np.where(costs > 0, 1.0 / costs, 0.0)
                value = {"costs": costs, "roots": roots, "inverse": inverse}[name]
            if not self.n_features:
                return like(value, reference)
            cast = like(value, reference)
            # By column: BLAS multiplies rows by a narrow matrix so laid out in a quarter of the time.
            self._casts[key] = cast.T.contiguous().T if name == "basis" and is_tensor(cast) else cast
        return self._casts[key]

    def squared_norm(self, delta: Any) -> Any:
        """Return δᵀΣδ of each row of differences in the space of φ, shape (n,); no checks, for inner loops.

        Examples
        --------
        >>> from likewise.fair_metrics import euclidean
        >>> euclidean().squared_norm(np.array([[3.0, 4.0]]))
        array([25.])
        """
        if self.scale == 0:
            inside = delta @ self._cast("basis", delta)
            return (inside * inside * self._cast("costs", delta)).sum(-1)
        if not self.values.size:
            return self.scale * (delta * delta).sum(-1)
        _, inside, outside = self._split(delta)
        total = self.scale * (outside * outside).sum(-1)
        if (self.values > -self.scale).any():
            total = total + (inside * inside * self._cast("costs", delta)).sum(-1)
        return total

    def costs_nothing(self, delta: Any) -> Any:
        """Return whether each row of differences in the space of φ is free up to rounding (`COSTS_NOTHING`), (n,).

        Examples
        --------
        >>> metric = FairMetric.from_subspace(Subspace.from_directions([[1.0, 0.0]]))
        >>> metric.costs_nothing(np.array([[3.0, 1e-7], [3.0, 0.1], [0.0, 0.0]]))
        array([ True, False,  True])
        """
        top = max(self.scale, float((self.scale + self.values).max(initial=0.0)))
        return self.squared_norm(delta) <= COSTS_NOTHING * top * (delta * delta).sum(-1)

    def apply(self, delta: Any) -> Any:
        """Return Σδ of each row, shape (n, d); half the gradient of the squared distance.

        Examples
        --------
        >>> metric = FairMetric.from_subspace(Subspace.from_directions([[1.0, 0.0]]))
        >>> metric.apply(np.array([[3.0, 4.0]]))
        array([[0., 4.]])
        """
        Q, inside, outside = self._split(delta)
        return self.scale * outside + (inside * self._cast("costs", delta)) @ Q.T

    def solve(self, gradient: Any) -> Any:
        """Return Σ⁺g of each row, shape (n, d): the pseudo-inverse, zero along free directions.

        Examples
        --------
        >>> metric = FairMetric.from_subspace(Subspace.from_directions([[1.0, 0.0]]), weight=0.5)
        >>> metric.solve(np.array([[3.0, 4.0]]))
        array([[6., 4.]])
        """
        Q, inside, outside = self._split(gradient)
        solved = (inside * self._cast("inverse", gradient)) @ Q.T
        return solved + outside / self.scale if self.scale > 0 else solved

    def embed(self, X: Any) -> Any:
        """Return rows whose plain squared Euclidean distances are the squared fair distances.

        It is Σ^½ φ(x), of width d, or of width k if the metric has rank k only (`scale` = 0).

        Examples
        --------
        >>> metric = FairMetric.from_subspace(Subspace.from_directions([[1.0, 0.0]]))
        >>> metric.embed(np.array([[3.0, 4.0]]))
        array([[0., 4.]])
        """
        return self._embed(self.features(X))

    def _embed(self, phi: Any) -> Any:
        Q = self._cast("basis", phi)
        if self.scale == 0:
            return (phi @ Q) * self._cast("roots", phi)
        if not self.values.size:
            return phi * float(np.sqrt(self.scale))
        return float(np.sqrt(self.scale)) * phi + ((phi @ Q) * self._cast("roots", phi)) @ Q.T

    # ---- distances of rows ----------------------------------------------------------------------------

    def features(self, X: Any) -> Any:
        """Return φ(X): a finite array or tensor of shape (n, d).

        If φ is a `TabularDomain`, frames are encoded, unless they declare that they are already, as what
        ``domain.encode`` returns does; arrays and tensors are encoded rows.
        """
        phi = apply_feature_map(self.feature_map, X)
        return check_matrix(phi, owner="FairMetric", n_features=self.n_features)

    def squared_distance(self, X1: Any, X2: Any) -> Any:
        """Return the squared fair distance of paired rows.

        Parameters
        ----------
        X1, X2 : arrays, tensors or frames of shape (n, p)
            The i-th row of one is compared with the i-th row of the other.

        Returns
        -------
        ndarray or Tensor of shape (n,)

        Examples
        --------
        >>> from likewise.fair_metrics import euclidean
        >>> euclidean().squared_distance([[0.0, 0.0]], [[3.0, 4.0]])
        array([25.])
        """
        first, second = self._pair(X1, X2)
        if first.shape[0] != second.shape[0]:
            raise InputError(
                f"FairMetric.squared_distance: 'X1' has {first.shape[0]} rows, 'X2' has {second.shape[0]}. "
                "Pass paired rows, or use pairwise for all pairs."
            )
        return self.squared_norm(first - second)

    def pairwise(self, X1: Any, X2: Any = None) -> Any:
        """Return the squared fair distances of all pairs, shape (n, m); X2 defaults to X1.

        For more pairs than fit in memory use `blocks`.

        Examples
        --------
        >>> from likewise.fair_metrics import euclidean
        >>> euclidean().pairwise([[0.0], [2.0]])
        array([[0., 4.],
               [4., 0.]])
        """
        first, second = self._pair(X1, X2)
        blocks = self._blocks(first, second, 2**24)
        if is_tensor(first):
            return namespace(first).concatenate([block for _, block in blocks], axis=0)
        whole = np.empty((first.shape[0], second.shape[0]), dtype=first.dtype)
        for rows, block in blocks:
            whole[rows] = block
        return whole

    def blocks(self, X1: Any, X2: Any = None, *, max_bytes: int = 2**24) -> Iterator[tuple[slice, Any]]:
        """Yield all pairs in blocks of rows: (slice of X1's rows, squared distances of shape (b, m)).

        Parameters
        ----------
        X1, X2 : arrays, tensors or frames of shapes (n, p) and (m, p)
            X2 defaults to X1.
        max_bytes : int, default=16 MiB
            Size of one block. The working memory is a small multiple of it, whatever n is.

        Yields
        ------
        (slice, ndarray or Tensor of shape (b, m))
            Each block is one matrix product of rows that were reduced once.

        Examples
        --------
        >>> from likewise.fair_metrics import euclidean
        >>> for rows, block in euclidean().blocks([[0.0], [2.0]], max_bytes=16):
        ...     print(rows, block)
        slice(0, 1, None) [[0. 4.]]
        slice(1, 2, None) [[4. 0.]]
        """
        check_number(max_bytes, owner="FairMetric.blocks", name="max_bytes", low=1)
        return self._blocks(*self._pair(X1, X2), max_bytes)

    def _pair(self, X1: Any, X2: Any) -> tuple[Any, Any]:
        first = self.features(X1)
        if X2 is None:
            return first, first
        second = like(self.features(X2), first)
        if first.shape[1] != second.shape[1]:
            raise InputError(
                f"FairMetric: 'X1' has {first.shape[1]} columns and 'X2' has {second.shape[1]}. "
                "Pass rows with the same columns."
            )
        return first, second

    def _blocks(self, first: Any, second: Any, max_bytes: int) -> Iterator[tuple[slice, Any]]:
        from likewise.fair_metrics.constructors import distance_blocks

        # The mean goes first: distances do not see it, and rounding is relative to what is left.
        centre = second.mean(0)
        left = self._embed(first - centre)
        right = left if second is first else self._embed(second - centre)
        return distance_blocks(left, right, max_bytes)

    # ---- in words and in files ------------------------------------------------------------------------

    def budget(self, units: Mapping[str, Any] | None = None, /, **more: Any) -> float:
        """Return the squared fair distance of moving columns by so many of their original units.

        It turns words into an ε: ``metric.budget(age=5)`` is what five years cost. If φ is not a
        `TabularDomain`, the units are those of the columns as they are.

        Parameters
        ----------
        units : mapping, optional
            Column name to amount, for names that are not Python identifiers: ``{"hours-per-week": 10}``.
        **more : float or str
            Column name and amount; for a categorical column the change as text: ``race="Black - White"``.

        Returns
        -------
        float
            Of all the moves together.

        Examples
        --------
        >>> metric = FairMetric(1.0, np.zeros((2, 0)), np.zeros(0), feature_names=("age", "sex"))
        >>> metric.budget(age=2)
        4.0

        What is free costs exactly 0, without rounding:

        >>> free = FairMetric.from_subspace(Subspace.from_directions([[1.0, 3.0]]), feature_names=("age", "pay"))
        >>> free.budget(age=1, pay=3)
        0.0
        """
        from likewise.fair_metrics.naming import displacement

        delta = displacement(self, {**(units or {}), **more})[None, :]
        return 0.0 if self.costs_nothing(delta)[0] else float(self.squared_norm(delta)[0])

    def save(self, path: str | os.PathLike[str], *, feature_map: bool = True) -> None:
        """Write the metric to one safetensors file, whole or not at all.

        Parameters
        ----------
        path : path-like
            Where to write.
        feature_map : bool, default=True
            Write φ with it, which works if φ is None or a `TabularDomain`. False leaves φ out; give it
            again with ``dataclasses.replace(metric, feature_map=φ)`` after loading.
        """
        mapping = self.feature_map if feature_map else None
        if mapping is not None and not is_encoder(mapping):
            raise InputError(
                f"FairMetric.save: the feature map {type(mapping).__name__} cannot be written to a file. "
                "Call save(path, feature_map=False) and give the map again after loading, with "
                "dataclasses.replace(metric, feature_map=...)."
            )
        description = {
            "scale": self.scale,
            "feature_names": self.feature_names,
            "sensitive_features": self.sensitive_features,
            "domain": None if mapping is None else mapping.to_dict(),
        }
        save_described(path, _KIND, description, {"basis": self.basis, "values": self.values})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FairMetric:
        """Read a metric that `save` wrote; anything else raises a `FormatError`."""
        found: FairMetric = load_described(
            path, _KIND, _FORM, _built, what="a fair metric", owner="FairMetric.load"
        )
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_casts": {}}

    def __repr__(self) -> str:
        width = "any" if self.n_features is None else self.n_features
        parts = [f"n_features={width}", f"scale={self.scale:g}", f"rank of the rest={self.basis.shape[1]}"]
        if self.weight is not None:
            parts[1:] = [f"subspace of {self.basis.shape[1]}", f"weight={self.weight:g}"]
        if self.feature_map is not None:
            parts.append(f"feature_map={type(self.feature_map).__name__}")
        return f"FairMetric({', '.join(parts)})"


def _built(description: dict[str, Any], arrays: dict[str, Any]) -> FairMetric:
    return FairMetric(
        description["scale"],
        arrays["basis"],
        arrays["values"],
        _domain(description["domain"]),
        description["feature_names"],
        description["sensitive_features"],
    )


def _domain(state: dict[str, Any] | None) -> Any:
    if state is None:
        return None
    from likewise.data.tabular import TabularDomain

    return TabularDomain.from_dict(state)
