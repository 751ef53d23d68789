"""From the exact audit of a linear model to what may be claimed about it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from likewise.auditing.bounds.linear.linear_dual import ExactDual, exact_dual
from likewise.auditing.bounds.linear.linear_model import LinearModel
from likewise.auditing.bounds.linear.linear_supremum import exact_supremum
from likewise.auditing.claims.certificate import Bound, Certificate, Estimate
from likewise.auditing.claims.sample_splitting import IntArray, split_bound
from likewise.core.arrays import FloatArray, to_numpy
from likewise.core.errors import InputError
from likewise.core.randomness import RandomState

__all__ = ["exact_bound", "exact_certificate", "loss_ceiling"]


def exact_certificate(dual: ExactDual) -> Certificate:
    """What an exact audit says about the rows at hand, from below and from above.

    Parameters
    ----------
    dual : ExactDual
        Of `exact_dual`.

    Returns
    -------
    Certificate
        With an `Estimate` (the mean loss of a mixture of two maps) and a `Bound` (the dual value).

    Examples
    --------
    >>> from likewise.fair_metrics import euclidean
    >>> model = LinearModel([2.0], 0.0)
    >>> dual = exact_dual(model, [[1.0], [-1.0]], [1, 0], metric=euclidean(), eps=0.25)
    >>> exact_certificate(dual).verdict(0.32, of="value"), exact_certificate(dual).verdict(0.31, of="value")
    ('fair (proved)', 'unfair (shown)')
    """
    n = len(dual.result.value)
    below = Estimate(
        dual.lower, dual.lower - dual.base_loss, dual.eps, n, "mixture of exact unfair maps", lambda_=dual.lam
    )
    kind = "exact dual" if dual.exact else "dual with an over-estimated inner supremum"
    return Certificate(below, Bound(dual.value, dual.gap, dual.eps, n, kind, lambda_=dual.lam))


def loss_ceiling(model: Any, domain: Any) -> float:
    """Largest loss a linear model can have anywhere in a domain: the M of a finite-sample bound.

    Parameters
    ----------
    model : LinearModel, or anything `LinearModel.from_model` reads
        The audited model.
    domain : Domain
        Only the box around it is used.

    Returns
    -------
    float
        Never less than the largest loss; inf where the box is open in a direction that matters.

    Examples
    --------
    >>> from likewise.domains import BoxDomain
    >>> round(loss_ceiling(LinearModel([1.0], 0.0), BoxDomain([-2.0], [2.0])), 4)
    2.1269
    """
    linear = LinearModel.from_model(model)
    if linear.loss == "zero_one":
        return 1.0
    if domain is None:
        return np.inf
    lower, upper = (np.asarray(to_numpy(side), dtype=float) for side in domain.bounds())
    difference = linear.coef[None, :, :] - linear.coef[:, None, :]
    with np.errstate(invalid="ignore"):
        most = np.where(difference == 0, 0.0, np.maximum(difference * lower, difference * upper)).sum(2)
    most = most + linear.intercept[None, :] - linear.intercept[:, None]
    if linear.loss == "hinge":
        np.fill_diagonal(most, -np.inf)
        return float(max(0.0, 1.0 + most.max()))
    return float(np.max(logsumexp(most, axis=1)))


def exact_bound(
    model: Any,
    X: Any,
    y: Any,
    *,
    metric: Any,
    domain: Any,
    eps: float,
    upper: float | None = None,
    confidence: float = 0.95,
    method: str = "empirical_bernstein",
    tol: float = 1e-6,
    max_nodes: int = 500,
    random_state: RandomState = 0,
) -> Bound:
    """Bound the V(ε) of the population that the rows were drawn from, for a linear model and any sample size.

    λ* is found on one half of the rows, and the dual evaluated on the other.

    Parameters
    ----------
    model, X, y, metric, domain, max_nodes
        As in `exact_supremum`; the domain must be bounded where the loss is.
    eps : float
        ε ≥ 0.
    upper : float, optional
        M; by default `loss_ceiling(model, domain)`.
    confidence, method
        As in `finite_sample_bound`.
    tol : float, default=1e-6
        Of the exact solutions.
    random_state : int, Generator, RandomState or None
        Which split.

    Returns
    -------
    Bound
        About the population.

    Examples
    --------
    >>> from likewise.domains import BoxDomain
    >>> from likewise.fair_metrics import euclidean
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(400, 1))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> shown = exact_bound(
    ...     LinearModel([1.0], 0.0), X, y, metric=euclidean(), domain=BoxDomain([-1.0], [1.0]), eps=0.01
    ... )
    >>> shown.about, shown.n, bool(0.5 < shown.value < 0.7)
    ('population', 200, True)
    """
    linear = LinearModel.from_model(model)
    ceiling = loss_ceiling(linear, domain) if upper is None else float(upper)
    if not np.isfinite(ceiling):
        raise InputError(
            "exact_bound: the loss has no upper bound on this domain, so no sample can bound its mean. "
            "Pass a bounded domain, such as BoxDomain.from_data(X), or 'upper'."
        )
    rows = np.asarray(to_numpy(X), dtype=float)
    labels = to_numpy(y)
    shared = {"metric": metric, "domain": domain, "tol": tol, "max_nodes": max_nodes}

    def choose(at: IntArray) -> float:
        return exact_dual(linear, rows[at], labels[at], eps=eps, **shared).lam

    def transform(at: IntArray, lam: float) -> FloatArray:
        value = exact_supremum(linear, rows[at], labels[at], lam=lam, **shared).value
        # The bound of a row may exceed the largest loss by the tolerance.
        return np.where(value <= ceiling + 2.0 * tol * (1.0 + ceiling), np.minimum(value, ceiling), value)

    return split_bound(
        len(rows),
        choose=choose,
        transform=transform,
        losses=linear.losses(rows, labels),
        eps=eps,
        upper=ceiling,
        confidence=confidence,
        method=method,
        random_state=random_state,
    )
