"""Mend any fitted model without training: its scores, smoothed over a graph of comparable people (GLIF)."""

from __future__ import annotations

import os
from dataclasses import field
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.utils.validation import check_is_fitted

from likewise.core.checks import FloatArray, IntArray, check_integer, check_number
from likewise.core.errors import InputError, NotConvergedError
from likewise.core.parameters import parameters_from_fields
from likewise.core.randomness import RandomState
from likewise.fair_metrics.learner import ready_metric
from likewise.fair_metrics.neighbours import NearestPlaces, same_places
from likewise.mitigation.twin_consensus import MendedModel, usual_loss
from likewise.models.convert import as_model
from likewise.models.losses import LossLike
from likewise.models.model import Model
from likewise.models.stored import Arrays, decode, encode, remade, save_beside

# Scores smoothed over a graph: argmin_f Σ m_i (f_i − s_i)² + λ Σ_{i<j} W_ij (f_i − f_j)², that is (M + λL)
# f = M s.


def neighbour_graph(index: IntArray, weight: FloatArray) -> sparse.csr_array:
    """Return the symmetric weights W (n, n): two rows are joined when either names the other."""
    n, k = index.shape
    one_way = sparse.csr_array(
        (weight.ravel(), index.ravel().astype(np.int32), np.arange(0, n * k + 1, k, dtype=np.int64)),
        shape=(n, n),
    )
    one_way.sum_duplicates()
    return sparse.csr_array(one_way.maximum(one_way.T))


def smooth_scores(
    scores: FloatArray, graph: sparse.csr_array, strength: float, *, mass: FloatArray | None = None
) -> FloatArray:
    """Solve (M + λL) f = M s for every column of scores by conjugate gradients."""
    m = np.ones(len(scores)) if mass is None else mass
    diagonal = m + strength * graph.sum(axis=1)
    system = LinearOperator(
        graph.shape, matvec=lambda f: diagonal * f - strength * (graph @ f), dtype=np.float64
    )
    scaling = LinearOperator(graph.shape, matvec=lambda f: f / diagonal, dtype=np.float64)
    smoothed = np.empty_like(scores, dtype=np.float64)
    for column in range(scores.shape[1]):
        # From the mean: the constant part of the scores is kept as it is.
        middle = float(m @ scores[:, column] / m.sum())
        right = m * (scores[:, column] - middle)
        found, status = cg(system, right, rtol=1e-12, atol=0.0, maxiter=10_000, M=scaling)
        if status != 0:
            raise NotConvergedError(
                f"GraphSmoothing: the smoothed scores were not found within 10,000 steps (strength {strength:g}). "
                "Lower the strength."
            )
        smoothed[:, column] = found + middle
    return smoothed


def extend_scores(
    scores: FloatArray, smoothed: FloatArray, weight: FloatArray, strength: float
) -> FloatArray:
    """Return the scores of new rows: the minimiser in f_new with everybody else's smoothed score held."""
    pulled = scores + strength * np.einsum("qk,qkc->qc", weight, smoothed)
    return np.asarray(pulled / (1.0 + strength * weight.sum(axis=1, keepdims=True)))


# Lower probabilities count as this one, so that scores are finite.
_FLOOR = 1e-9
# Squared distance, in units of the graph's scale, below which a new row stands at a place of the graph.
_SAME = 1e-16


@parameters_from_fields
class GraphSmoothing(MendedModel):
    """A fitted model whose scores are smoothed over a graph of comparable people.

    Every person is joined to their k nearest neighbours under a fair metric, by weights exp(−d²/scale), and the
    scores f minimise ``Σ (f_i − s_i)² + strength · Σ W_ij (f_i − f_j)²`` where s are the model's. People at no
    distance from each other are one node: they get the same score.

    Parameters
    ----------
    model : object
        A fitted model: anything `likewise.models.as_model` takes.
    metric : FairMetric, learner or list of them
        Who is comparable; of the rows that `fit` and `predict` get. A learner is fitted on the rows of `fit`.
    n_neighbors : int, default=10
    strength : float >= 0, default=1.0
        λ. The weights are scaled so that at 1 a person's neighbours count, on average, as much as their own score.
    scale : float, optional
        Squared distance at which a neighbour counts 1/e; by default the median of the neighbours'.
    exact : bool, optional
        Whether the graph has everybody's true neighbours; by default up to 8,192 rows. Beyond, neighbours are
        looked for in the nearest cells of a partition.
    random_state : int, Generator or None, default=0
        Draws the partition.

    Attributes
    ----------
    smoothed_ : ndarray of shape (n,) or (n, C)
        Smoothed scores of the rows of `fit`: log-odds of two classes, log-probabilities of more, or values.
    metric_ : FairMetric
    graph_ : sparse array of shape (m, m)
        W over the m different places.
    scale_ : float
    classes_ : ndarray of shape (C,)

    References
    ----------
    F. Petersen, D. Mukherjee, Y. Sun, M. Yurochkin: Post-processing for Individual Fairness. NeurIPS 2021.

    Examples
    --------
    >>> from likewise.core.subspace import Subspace
    >>> from likewise.fair_metrics import FairMetric
    >>> metric = FairMetric.from_subspace(Subspace.from_directions([[0.0, 1.0]]))
    >>> biased = lambda X: 1 / (1 + np.exp(-X.sum(axis=1)))
    >>> X = np.array([[0.0, 0.0], [0.0, 2.0], [1.0, 0.0], [1.0, 2.0]])
    >>> smooth = GraphSmoothing(biased, metric=metric, n_neighbors=1).fit(X)
    >>> smooth.smoothed_.round(3).tolist()
    [1.25, 1.25, 1.75, 1.75]
    >>> smooth.predict_proba(X)[:2, 1].round(3).tolist()
    [0.777, 0.777]
    """

    model: Any = field(kw_only=False)
    metric: Any
    n_neighbors: int = 10
    strength: float = 1.0
    scale: float | None = None
    exact: bool | None = None
    random_state: RandomState = 0

    def fit(self, X: Any, y: Any = None) -> Self:
        """Build the graph over some people and smooth their scores.

        Parameters
        ----------
        X : frame or array of shape (n, p)
            Rows that both the model and the metric take.
        y : ignored

        Returns
        -------
        self
        """
        owner = "GraphSmoothing"
        self._check(owner)
        scores = self._scores(X)
        self.metric_ = ready_metric(self.metric, X, owner=owner)
        places = np.asarray(self.metric_.embed(X), dtype=np.float64)
        first, place = same_places(places)
        if len(first) < 2:
            raise InputError(f"{owner}: all rows are at one place under the metric. Pass different people.")
        mass = np.bincount(place).astype(np.float64)
        mean = np.stack([np.bincount(place, column) for column in scores.T], axis=1) / mass[:, None]
        self._nearest = NearestPlaces(places[first], exact=self.exact, random_state=self.random_state)
        del places
        index, distance = self._nearest.among_themselves(min(self.n_neighbors, len(first) - 1))
        self.scale_ = float(np.median(distance)) if self.scale is None else float(self.scale)
        graph = neighbour_graph(index, np.exp(-distance / self.scale_))
        self._unit = max(float(graph.sum()) / len(first), np.finfo(np.float64).tiny)
        graph.data /= self._unit
        self.graph_ = graph
        self._nodes = smooth_scores(mean, graph, float(self.strength), mass=mass)
        smoothed = self._nodes[place]
        self.smoothed_ = smoothed[:, 0] if smoothed.shape[1] == 1 else smoothed
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model in its own format and, beside it, what smooths its scores; see `load_model`.

        Parameters
        ----------
        path : path-like
            Of the model's file; ``<path>.likewise.json`` and ``<path>.arrays.safetensors`` come beside it. Move the
            three together. For models of the same libraries as `TwinConsensus.save`.
        """
        check_is_fitted(self)
        nearest, graph = self._nearest, self.graph_
        if not nearest.exact and not isinstance(self.random_state, (int, np.integer)):
            raise InputError(
                "GraphSmoothing.save: the cells of the graph were drawn at random. Fit with a random_state that is an int."
            )
        arrays: Arrays = {}
        parts = {"weights": graph.data, "columns": graph.indices, "starts": graph.indptr}
        parts |= {"places": nearest.places, "nodes": self._nodes}
        save_beside(
            self,
            path,
            "graph_smoothing",
            self.model,
            {name: getattr(self, name) for name in ("metric_", "scale_", "smoothed_")},
            arrays=arrays,
            skip=("model", "metric"),
            graph=encode(parts, arrays),
            exact=nearest.exact,
            unit=self._unit,
        )

    @classmethod
    def _reopened(cls, about: dict[str, Any], arrays: Arrays, model: Any) -> Self:
        made: Self = remade(cls, about, arrays, model=model, metric=None)
        made.metric = made.metric_
        graph, made._unit = decode(about["graph"], arrays), float(about["unit"])
        made._nodes, places = graph["nodes"], graph["places"]
        made._nearest = NearestPlaces(places, exact=bool(about["exact"]), random_state=made.random_state)
        parts = (graph["weights"], graph["columns"], graph["starts"])
        made.graph_ = sparse.csr_array(parts, shape=(len(places), len(places)))
        return made

    def __likewise_model__(self, *, loss: LossLike | None = None, classes: Any = None) -> Model:
        """Return the smoothed model as a `likewise.models.Model`, for `as_model` and audits."""
        check_is_fitted(self)
        return SmoothedModel(self, self._inner(loss=loss, classes=classes))

    def _inner(self, *, loss: LossLike | None = None, classes: Any = None) -> Model:
        if isinstance(self.model, Model):
            return self.model
        return as_model(self.model, loss=usual_loss(self.model) if loss is None else loss, classes=classes)

    def _scores(self, X: Any) -> FloatArray:
        """Scores of the model that may be averaged: values, log-odds of two classes, log-probabilities of more."""
        inner = self._inner()
        if inner.loss.regression:
            return inner.outputs(X)
        logs = np.log(np.maximum(inner.predict_proba(X), _FLOOR))
        return logs[:, 1:] - logs[:, :1] if logs.shape[1] == 2 else logs

    def _smoothed(self, X: Any) -> FloatArray:
        scores = self._scores(X)
        places = np.asarray(self.metric_.embed(X), dtype=np.float64)
        k = min(self.n_neighbors, len(self._nodes))
        index, distance = self._nearest.query(places, k)
        weight = np.exp(-distance / self.scale_) / self._unit
        smoothed = extend_scores(scores, self._nodes[index], weight, float(self.strength))
        here = distance[:, 0] <= _SAME * (1.0 + (places**2).sum(axis=1))
        smoothed[here] = self._nodes[index[here, 0]]
        return smoothed

    def _check(self, owner: str) -> None:
        check_number(self.strength, owner=owner, name="strength", low=0)
        check_integer(self.n_neighbors, owner=owner, name="n_neighbors", low=1)
        if self.scale is not None:
            check_number(self.scale, owner=owner, name="scale", low=0, open_low=True)


class SmoothedModel(Model):
    """A fitted `GraphSmoothing` as a model; what `as_model` makes of one."""

    def __init__(self, smoothing: GraphSmoothing, inner: Model) -> None:
        super().__init__(**inner._like() | {"kind": "values" if inner.loss.regression else "scores"})
        self.smoothing = smoothing

    def _answer(self, rows: Any) -> FloatArray:
        return self.smoothing._smoothed(rows)
