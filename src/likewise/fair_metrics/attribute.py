"""Directions along which a sensitive attribute can be predicted (paper Appendix B.1 and section 4.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from likewise.core.arrays import FloatArray
from likewise.core.checks import check_integer, check_number
from likewise.core.errors import InputError, bad_parameter
from likewise.core.subspace import Subspace
from likewise.fair_metrics.attribute_values import (
    Attribute,
    Target,
    as_list,
    collect,
    make_target,
    resolve_kinds,
)
from likewise.fair_metrics.glm import Penalty, fit_glm
from likewise.fair_metrics.learner import Features, SubspaceLearner
from likewise.fair_metrics.swallowed import who_swallows

__all__ = ["AttributeSubspace"]


class AttributeSubspace(SubspaceLearner):
    """Sensitive subspace from observations of sensitive attributes: span[w_g, e_g, …].

    For every attribute a generalised linear model is fitted on the other columns, and its weights span the
    subspace together with the attribute's own coordinates: softmax regression for classes (logistic for
    two), ridge for continuous values, Poisson for counts.

    Parameters
    ----------
    attributes : str, int or list of them, optional
        Columns of X: names ("sex" means all columns of its group) or indices. Without it the attributes are
        the columns of `sensitive_features` (or of y) given to `fit`.
    kind : str, list or dict, default="auto"
        "categorical", "continuous" or "count": one for all, one per attribute, or by name. "auto" takes
        text, booleans, anything with two values and whole numbers with up to 10 values as classes; whole
        numbers from 0 to at most 100 as counts; other numbers as continuous.
    regularization : float, default=0.1
        The paper's γ: the penalty is added to the *mean* loss, so it does not depend on the number of rows.
    penalty : {"squared", "norm"}, default="squared"
        γ‖w‖₂² (ridge), or γ‖w‖₂ as the formula in section 4.2 is printed.
    fit_intercept : bool, default=True
        Fit the intercepts b of Appendix B.1, which are not penalised. The formula in section 4.2 has none.
    class_weight : {None, "balanced"}, default=None
        "balanced" gives every class the same weight, as the authors' balanced batches do.
    rounds : int, default=1
        Further rounds fit again on what the projection leaves (iterated null-space projection), and add what
        they find.
    weight, domain, feature_map
        As in `ExpertSubspace`.
    max_iter, tol : int, float
        Limits of the L-BFGS iterations.

    Attributes
    ----------
    metric_ : FairMetric
    subspace_ : Subspace
    directions_ : dict of name to ndarray of shape (m, d)
        The learned weights of each attribute, without its own coordinates.
    kinds_ : dict of name to str
        What every attribute was taken for.
    encoder_, n_features_in_, feature_names_in_
        As in `ExpertSubspace`.

    Notes
    -----
    The paper's Appendix D.3 names "0.1 ℓ2 regularization". The authors' program adds 0.1 · ½‖W‖² of a
    two-column softmax layer, which is γ = 0.025 in the logistic form used here.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3))
    >>> learner = AttributeSubspace().fit(X, X[:, 1] > 0)
    >>> bool(abs(learner.subspace_.basis[1, 0]) > 0.99)
    True
    """

    def __init__(
        self,
        attributes: Any = None,
        *,
        kind: Any = "auto",
        regularization: float = 0.1,
        penalty: str = "squared",
        fit_intercept: bool = True,
        class_weight: str | None = None,
        rounds: int = 1,
        weight: float = 0.0,
        domain: Any = None,
        feature_map: Any = None,
        max_iter: int = 1000,
        tol: float = 1e-7,
    ) -> None:
        self.attributes = attributes
        self.kind = kind
        self.regularization = regularization
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.rounds = rounds
        self.weight = weight
        self.domain = domain
        self.feature_map = feature_map
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None) -> AttributeSubspace:
        """Learn the subspace.

        Parameters
        ----------
        X : array, tensor or frame of shape (n, p)
        y : array of shape (n,) or (n, m), optional
            Attribute values where neither `attributes` nor `sensitive_features` is given; else ignored, so
            that a pipeline may pass its target.
        sensitive_features : array, Series, frame or dict, optional
            Attribute values that are not columns of X, one column per attribute. None or NaN means unknown:
            those rows are left out of that attribute's fit. A column with the name of a column of X is that
            column's attribute.

        Returns
        -------
        AttributeSubspace
            itself
        """
        owner = type(self).__name__
        penalty = self._check()
        features = self._read(X, may_miss=as_list(self.attributes), rows=2)
        attributes = collect(owner, features, self.attributes, y, sensitive_features)
        kinds = resolve_kinds(owner, self.kind, attributes)
        rows = [np.zeros((0, features.phi.shape[1]))]
        directions: dict[Any, FloatArray] = {}
        for attribute, kind in zip(attributes, kinds, strict=True):
            target = make_target(owner, attribute, kind)
            learned = self._directions(features.phi, attribute, target, penalty)
            directions[attribute.name] = learned
            rows += [learned, *(features.where.unit(i)[None, :] for i in attribute.own)]
        told = [_told(attribute.name, features) for attribute in attributes]
        subspace = Subspace.from_directions(np.concatenate(rows))
        own = sorted({i for attribute in attributes for i in attribute.own})
        self._learned(subspace, features, told, who_swallows(features.phi, directions, own, subspace))
        self.directions_ = directions
        self.kinds_ = {a.name: kind for a, kind in zip(attributes, kinds, strict=True)}
        return self

    def _check(self) -> Penalty:
        owner = type(self).__name__
        check_number(self.regularization, owner=owner, name="regularization", low=0.0)
        check_number(self.tol, owner=owner, name="tol", low=0.0, open_low=True)
        for name in ("rounds", "max_iter"):
            check_integer(getattr(self, name), owner=owner, name=name, low=1)
        if self.penalty not in ("squared", "norm"):
            raise bad_parameter(owner, "penalty", allowed="'squared' or 'norm'", got=self.penalty)
        if self.class_weight not in (None, "balanced"):
            raise bad_parameter(owner, "class_weight", allowed="None or 'balanced'", got=self.class_weight)
        return Penalty(float(self.regularization), self.penalty == "squared")

    def _directions(
        self, phi: FloatArray, attribute: Attribute, target: Target, penalty: Penalty
    ) -> FloatArray:
        """Weights of one attribute's model, round after round, one direction per row."""
        rest = np.array(phi[target.known], dtype=float)
        rest[:, attribute.own] = 0.0
        if self.class_weight is None or target.codes is None:
            shares = None
        else:
            shares = compute_sample_weight("balanced", target.codes)
        found: list[FloatArray] = []
        for _ in range(self.rounds):
            weights, _intercepts = fit_glm(
                rest,
                target.y,
                target.family,
                penalty,
                fit_intercept=self.fit_intercept,
                sample_weight=shares,
                max_iter=self.max_iter,
                tol=self.tol,
            )
            if target.family == "softmax":
                # Only differences between classes matter; what all share is rounding, not a direction.
                weights = weights - weights.mean(0)
            if found and np.linalg.norm(weights) < 1e-6 * np.linalg.norm(found[0]):
                break
            found.append(weights)
            rest = Subspace.from_directions(weights).remove(rest)
        if not found[0].any() and not attribute.own:
            raise InputError(
                f"{type(self).__name__}: the model of attribute {attribute.name!r} is zero in every column: the "
                "columns do not predict it, or the penalty hides that they do. Lower 'regularization', or leave "
                "the attribute out."
            )
        return np.concatenate(found)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.attributes is None
        tags.input_tags.allow_nan = False
        return tags


def _told(name: Any, features: Features) -> str | None:
    """The column of X that an attribute is; None where its values are no column of X."""
    if features.where.has(name):
        return features.where.whole_column(name)
    # A feature map without names hides which coordinates a column became.
    frame = features.frame
    return str(name) if frame is not None and name in frame.columns else None
