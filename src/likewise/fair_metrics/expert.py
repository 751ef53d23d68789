"""Directions that an expert names: vectors, columns, or contrasts between categories."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from likewise.core.checks import FloatArray, is_tensor, to_numpy
from likewise.core.errors import InputError, bad_parameter
from likewise.core.parameters import parameters_from_fields
from likewise.core.subspace import Subspace
from likewise.fair_metrics.learner import SubspaceLearner
from likewise.fair_metrics.naming import ColumnPlaces


@parameters_from_fields
class ExpertSubspace(SubspaceLearner):
    """Sensitive subspace spanned by directions that an expert gives (paper section 2.1).

    Parameters
    ----------
    directions : str, Subspace, array of shape (K, d) or (d,), or list
        Each item of a list is one of

        - the name of a column, "sex": all coordinates of that column;
        - a contrast, "relationship: Husband − Wife" (a minus or a hyphen between spaces);
        - the index of a column (an int);
        - a vector of length d, in the space of φ.

        Collinear directions are fine; they add nothing.
    weight : float in [0, 1], default=0
        What is left of the cost inside the subspace.
    domain : TabularDomain, optional
        Encoder of raw frames. Without it one is made from the frame if it has columns of text.
    feature_map : callable, torch module or scikit-learn transformer, optional
        A known map φ to learn in, instead of a domain.

    Attributes
    ----------
    metric_ : FairMetric
    subspace_ : Subspace
    encoder_ : TabularDomain
        Only if a raw frame was encoded.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if the input had column names.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [1.0, 2.0], "sex_Male": [0.0, 1.0]})
    >>> metric = ExpertSubspace(["sex"]).fit(frame).metric_
    >>> metric.squared_distance(frame[:1], frame[1:])
    array([1.])
    """

    directions: Any = field(kw_only=False)
    weight: float = 0.0
    domain: Any = None
    feature_map: Any = None

    def fit(self, X: Any, y: Any = None) -> ExpertSubspace:
        """Look up the directions among the columns of X; its values do not matter, nor does y.

        Parameters
        ----------
        X : array, tensor or frame of shape (n, p)
        y : ignored

        Returns
        -------
        ExpertSubspace
            itself
        """
        features, items = self._read(X), _items(self.directions)
        where = features.where
        rows = [_item(item, where) for item in items]
        subspace = Subspace.from_directions(np.concatenate(rows))
        if subspace.dim == 0:
            raise InputError(
                "ExpertSubspace: the directions span nothing: every one is zero. Name at least one column."
            )
        # Contrasts and vectors do not name a column as a whole.
        named = [item for item in items if isinstance(item, (str, int, np.integer)) and where.has(item)]
        self._learned(subspace, features, [where.whole_column(item) for item in named])
        return self


def _items(directions: Any) -> list[Any]:
    """What was given, one item per column, contrast or vector."""
    if isinstance(directions, Subspace):
        directions = to_numpy(directions.basis).T
    if isinstance(directions, (str, int, np.integer)):
        directions = [directions]
    if is_tensor(directions):
        directions = to_numpy(directions)
    if isinstance(directions, np.ndarray) and directions.dtype.kind == "f":
        directions = list(np.atleast_2d(directions))
    try:
        items = list(directions)
    except TypeError as error:
        raise _no_directions(directions) from error
    if not items:
        raise bad_parameter("ExpertSubspace", "directions", "at least one direction", "none")
    return items


def _no_directions(got: Any) -> InputError:
    allowed = "column names, contrasts, indices or vectors"
    return bad_parameter("ExpertSubspace", "directions", allowed, got)


def _item(item: Any, where: ColumnPlaces) -> FloatArray:
    if isinstance(item, str):
        if not where.has(item) and ":" in item:
            return where.direction(item)[None, :]
        return where.axes(item)
    if isinstance(item, (int, np.integer)):
        return where.axes(item)
    try:
        vector = np.asarray(to_numpy(item), dtype=float)
    except (TypeError, ValueError):
        vector = np.zeros(())
    if vector.ndim == 0:
        raise _no_directions(item)
    if vector.shape != (where.n_features,):
        raise bad_parameter(
            "ExpertSubspace",
            "directions",
            f"vectors of length {where.n_features}, the number of columns",
            f"one of shape {vector.shape}",
            "On a raw frame the columns are those of the encoded frame.",
        )
    return vector[None, :]
