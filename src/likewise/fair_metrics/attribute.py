"""Directions along which a sensitive attribute can be predicted (paper Appendix B.1 and section 4.2)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import expit, log_softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_sample_weight

from likewise.core.checks import (
    FloatArray,
    attribute_columns,
    check_choice,
    check_integer,
    check_number,
    check_same_length,
)
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import has_numbers
from likewise.core.parameters import parameters_from_fields
from likewise.core.subspace import Subspace
from likewise.fair_metrics.learner import Features, SubspaceLearner, removed_variance_words

# Values of a sensitive attribute, where they come from, and what kind of attribute it is.


KINDS = ("categorical", "continuous", "count")
# A kind of all columns of `sensitive_features` together: the probability of each group.
PROBABILITIES = "probabilities"
_FEW = 10
_MANY = 100


@dataclass(frozen=True)
class Attribute:
    """One sensitive attribute."""

    name: Any
    values: pd.Series[Any]
    own: list[int]


@dataclass(frozen=True)
class Target:
    """What the regression predicts."""

    family: str
    y: FloatArray
    known: Any
    codes: Any = None


def as_list(attributes: Any) -> list[Any]:
    """One or several names as a list."""
    if attributes is None:
        return []
    return [attributes] if isinstance(attributes, (str, int, np.integer)) else list(attributes)


def collect(
    owner: str, features: Features, attributes: Any, y: Any, sensitive_features: Any
) -> list[Attribute]:
    """Find the values of every attribute: in `sensitive_features`, in the columns of X, or in y."""
    wanted = as_list(attributes)
    if attributes is not None and not wanted:
        raise bad_parameter(owner, "attributes", "at least one column", "none")
    given = sensitive_features if sensitive_features is not None or wanted else y
    if given is None and not wanted:
        raise InputError(
            f"{owner} requires y to be passed, but the target y is None: no attribute was given. Name columns of X "
            "in 'attributes', or pass the values as sensitive_features=."
        )
    table = None if given is None else attribute_columns(given, owner=owner)
    if table is not None:
        check_same_length(owner, X=features.phi, sensitive_features=table)
    names = wanted or list(table.columns if table is not None else [])
    return [_attribute(features, table, name) for name in names]


def _attribute(features: Features, table: pd.DataFrame | None, name: Any) -> Attribute:
    where = features.where
    by_name = isinstance(name, str)
    if table is not None and name in table.columns:
        return Attribute(name, table[name], where.find(name) if by_name and where.has(name) else [])
    frame = features.frame
    if by_name and frame is not None and name in frame.columns:
        return Attribute(name, frame[name], where.find(name) if where.has(name) else [])
    own = where.find(name)
    if len(own) > 1:
        return Attribute(name, _one_hot_classes(features, own), own)
    values = np.array(features.phi[:, own[0]], dtype=float)
    values[features.holes.get(own[0], [])] = np.nan
    return Attribute(name, pd.Series(values), own)


def _one_hot_classes(features: Features, own: list[int]) -> pd.Series[Any]:
    """Class of each row from its one-hot columns; rows without any 1 are a class of their own."""
    block = features.phi[:, own]
    if not np.isin(block, (0.0, 1.0)).all() or (block.sum(1) > 1).any():
        names = ", ".join((features.where.names or ())[i] for i in own[:4])
        raise InputError(
            f"{features.where.owner}: the columns {names} … belong together but are not one-hot columns. "
            "Pass the attribute's values as sensitive_features=."
        )
    classes = np.where(block.any(1), block.argmax(1), -1).astype(float)
    for i in own:
        if i in features.holes:
            classes[features.holes[i]] = np.nan
    return pd.Series(classes)


def resolve_kinds(owner: str, kind: Any, attributes: list[Attribute]) -> list[str]:
    """The kind of every attribute, as asked for or found from its values."""
    if isinstance(kind, Mapping):
        unknown = [name for name in kind if name not in [a.name for a in attributes]]
        if unknown:
            raise bad_parameter(
                owner, "kind", f"about the attributes {[a.name for a in attributes]}", unknown
            )
        asked = [kind.get(attribute.name, "auto") for attribute in attributes]
    elif isinstance(kind, str):
        asked = [kind] * len(attributes)
    else:
        asked = list(kind)
    if len(asked) != len(attributes) or not all(one in ("auto", *KINDS) for one in asked):
        allowed = "'auto', 'categorical', 'continuous' or 'count', one for all or one per attribute"
        raise bad_parameter(owner, "kind", allowed, kind)
    return [
        _guess(a.values.dropna()) if one == "auto" else one for one, a in zip(asked, attributes, strict=True)
    ]


def _guess(values: pd.Series[Any]) -> str:
    if not has_numbers(values):
        try:
            values = pd.to_numeric(values) if values.dtype == object else values
        except (TypeError, ValueError):
            return "categorical"
        if not has_numbers(values):
            return "categorical"
    numbers = values.to_numpy(dtype=float)
    distinct = np.unique(numbers)
    if len(distinct) == 2:
        return "categorical"
    if not np.equal(np.floor(distinct), distinct).all():
        return "continuous"
    if len(distinct) <= _FEW:
        return "categorical"
    return "count" if distinct[0] == 0 and distinct[-1] <= _MANY else "continuous"


def make_target(owner: str, attribute: Attribute, kind: str) -> Target:
    """Turn the known values of an attribute into what the regression of its kind predicts."""
    known = attribute.values.notna().to_numpy()
    values = attribute.values[known]
    shown = f"attribute {attribute.name!r}"
    infinite = InputError(
        f"{owner}: {shown}: Input y contains infinity or a value too large. Drop those rows."
    )
    if not known.any():
        raise InputError(f"{owner}: {shown} is missing in every row. At least some rows must know it.")
    if values.dtype.kind == "f" and np.isinf(values.to_numpy()).any():
        raise infinite
    if kind == "categorical":
        codes, categories = pd.factorize(values, sort=False)
        if len(categories) < 2:
            raise InputError(
                f"{owner}: {shown} has one category only ({categories[0]!r}), one class. Two or more are needed."
            )
        # Order by the category's text, so that the order of the rows does not matter.
        order = sorted(range(len(categories)), key=lambda i: str(categories[i]))
        codes = np.argsort(order)[codes]
        if len(categories) == 2:
            return Target("logistic", codes[:, None].astype(float), known, codes)
        return Target("softmax", np.eye(len(categories))[codes], known, codes)
    try:
        numbers = values.to_numpy(dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{owner}: {shown} is not a number, so it cannot be {kind}. Pass kind='categorical'."
        ) from error
    if not np.isfinite(numbers).all():
        raise infinite
    if np.ptp(numbers) == 0:
        raise InputError(
            f"{owner}: {shown} has one value only ({numbers[0]:g}), one class. Nothing can be learned from it."
        )
    if kind == "continuous":
        # In units of its own spread, so that the penalty means the same for years and for dollars.
        return Target("gaussian", ((numbers - numbers.mean()) / numbers.std())[:, None], known)
    if (numbers < 0).any() or not np.equal(np.floor(numbers), numbers).all():
        raise InputError(
            f"{owner}: {shown} is not a count: counts are whole numbers >= 0. Pass kind='continuous'."
        )
    return Target("poisson", numbers[:, None], known)


def _likely_groups(
    owner: str, features: Features, attributes: Any, y: Any, sensitive_features: Any
) -> tuple[list[Attribute], list[Target]]:
    """One attribute whose values are known by probability: what its regression predicts are the probabilities."""
    given = y if sensitive_features is None else sensitive_features
    if attributes is not None or given is None:
        raise InputError(
            f"{owner}: with kind='probabilities' pass one column per group as sensitive_features= and leave out "
            "'attributes'."
        )
    table = attribute_columns(getattr(given, "table", given), owner=owner)
    check_same_length(owner, X=features.phi, sensitive_features=table)
    try:
        chances = table.to_numpy(dtype=float)
    except (TypeError, ValueError):
        chances = np.full(table.shape, np.nan)
    known = ~np.isnan(chances).any(axis=1)
    seen = chances[known]
    if seen.shape[1] < 2 or not len(seen) or (seen < 0).any() or abs(seen.sum(1) - 1.0).max() > 1e-3:
        allowed = "two or more columns of probabilities whose rows sum to 1"
        raise bad_parameter(owner, "sensitive_features", allowed, f"{table.shape[1]} columns")
    name = ", ".join(map(str, table.columns))
    two = seen.shape[1] == 2
    target = Target("logistic" if two else "softmax", seen[:, 1:] if two else seen, known, seen)
    return [Attribute(name, pd.Series(seen.argmax(1)), [])], [target]


# Penalised generalised linear models: mean loss plus a penalty on the weights, never on the intercept.


# Loss of every row and its derivative by the scores, both from scores of shape (n, k).
Link = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class Penalty:
    """What is added to the mean loss."""

    strength: float
    squared: bool = True

    def value_and_gradient(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """Penalty of the weights, and its gradient (zero if the norm has none)."""
        if self.squared:
            return self.strength * float((weights**2).sum()), 2.0 * self.strength * weights
        norm = float(np.linalg.norm(weights))
        return self.strength * norm, self.strength * weights / norm if norm else np.zeros_like(weights)


def fit_glm(
    X: FloatArray,
    y: FloatArray,
    family: str,
    penalty: Penalty,
    *,
    fit_intercept: bool = True,
    sample_weight: FloatArray | None = None,
    max_iter: int = 1000,
    tol: float = 1e-7,
) -> tuple[FloatArray, FloatArray]:
    """Minimise the weighted mean loss plus the penalty."""
    k, d = y.shape[1], X.shape[1]
    link = _LINKS[family]
    share = np.full(len(X), 1.0 / len(X)) if sample_weight is None else sample_weight / sample_weight.sum()

    def objective(packed: FloatArray) -> tuple[float, FloatArray]:
        weights, intercepts = packed[: k * d].reshape(k, d), packed[k * d :]
        scores = X @ weights.T
        scores = scores + intercepts if fit_intercept else scores
        losses, slopes = link(scores, y)
        slopes *= share[:, None]
        cost, pull = penalty.value_and_gradient(weights)
        gradient = slopes.T @ X + pull
        parts = [gradient.ravel(), slopes.sum(0)] if fit_intercept else [gradient.ravel()]
        return float(share @ losses) + cost, np.concatenate(parts)

    start = np.zeros(k * d + (k if fit_intercept else 0))
    if fit_intercept:
        start[k * d :] = _INTERCEPTS[family](share @ y)
    if not penalty.squared:
        # The norm has no gradient at zero; a step down the loss leaves it, or zero is the answer.
        slope = objective(start)[1][: k * d]
        if np.linalg.norm(slope) <= penalty.strength:
            return np.zeros((k, d)), start[k * d :] if fit_intercept else np.zeros(k)
        start[: k * d] = -1e-3 * slope
    options: Any = {"maxiter": max_iter, "maxfun": 20 * max_iter, "gtol": tol, "ftol": 0.0, "maxcor": 20}
    found = minimize(
        objective, np.asarray(start, dtype=np.float64), jac=True, method="L-BFGS-B", options=options
    )
    # The line search gives up if the loss is flat to rounding; that is an answer, not a failure.
    steepest = float(np.abs(objective(found.x)[1]).max())
    if steepest > max(1e3 * tol, 1e-4) or not np.isfinite(found.fun):
        warnings.warn(
            f"The regression on the attribute did not converge (largest slope {steepest:.2g} after "
            f"{found.nit} iterations). Raise 'max_iter' or 'regularization', or standardise the columns.",
            ConvergenceWarning,
            stacklevel=2,
        )
    packed = np.asarray(found.x)
    return packed[: k * d].reshape(k, d), packed[k * d :] if fit_intercept else np.zeros(k)


def _softmax(scores: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    logs = log_softmax(scores, axis=1)
    return -(y * logs).sum(1), np.exp(logs) - y


def _logistic(scores: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    # −x_g (wᵀx) + log(1 + exp(wᵀx)), section 4.2
    return (np.logaddexp(0.0, scores) - y * scores)[:, 0], expit(scores) - y


def _gaussian(scores: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    residual = scores - y
    return 0.5 * (residual**2)[:, 0], residual


def _poisson(scores: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    with np.errstate(over="ignore"):
        rate = np.exp(np.minimum(scores, 700.0))
    return (rate - y * scores)[:, 0], rate - y


_LINKS: dict[str, Link] = {
    "softmax": _softmax,
    "logistic": _logistic,
    "gaussian": _gaussian,
    "poisson": _poisson,
}

# The best intercept of a model without weights, from the mean of y.
_INTERCEPTS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "softmax": np.log,
    "logistic": lambda mean: np.log(mean) - np.log1p(-mean),
    "gaussian": lambda mean: mean,
    "poisson": np.log,
}


# A class that is rarer may not be enough to learn a direction; a direction known less well than this is reported.
_RARE, _KNOWN = 0.05, 0.95


def direction_cosines(
    X: FloatArray, y: FloatArray, weights: FloatArray, intercepts: FloatArray, penalty: Penalty, family: str
) -> FloatArray:
    """Cosine that the learned direction of each class is expected to have with that of many people, (k,).

    From the coefficients' sandwich covariance C (White 1982): E tan² of the angle is about tr(PC) / ‖w‖², P the projection
    off w. NaN if a class is not rare or its weights are 0.
    """
    scores = X @ weights.T + intercepts
    chance = expit(scores) if family == "logistic" else np.exp(log_softmax(scores, axis=1))
    found = np.full(len(weights), np.nan)
    for c, w in enumerate(weights):
        share = min(float(y[:, c].mean()), 1.0 - float(y[:, c].mean()))
        norm = float(w @ w)
        if share >= _RARE or norm == 0.0:
            continue
        p = chance[:, c]
        centred = X - np.average(X, axis=0, weights=p * (1 - p) + 1e-12)
        bend = (centred * (p * (1 - p))[:, None]).T @ centred / len(X)
        bend[np.diag_indices(len(w))] += (
            2.0 * penalty.strength if penalty.squared else penalty.strength / norm**0.5
        )
        bend[np.diag_indices(len(w))] += 1e-12
        noise = (centred * ((y[:, c] - p) ** 2)[:, None]).T @ centred / len(X) ** 2
        spread = np.linalg.solve(bend, np.linalg.solve(bend, noise).T)
        off = float(np.trace(spread) - w @ spread @ w / norm)
        found[c] = 1.0 / np.sqrt(1.0 + max(off, 0.0) / norm)
    return found


@parameters_from_fields
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
        "categorical", "continuous" or "count": one for all, one per attribute, or by name. "probabilities":
        the columns of `sensitive_features` are how likely everybody is of each group of one attribute, as
        from `likewise.group_probabilities`. "auto" takes text, booleans, anything with two values and whole numbers with up to 10 values as classes; whole
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

    attributes: Any = field(default=None, kw_only=False)
    kind: Any = "auto"
    regularization: float = 0.1
    penalty: str = "squared"
    fit_intercept: bool = True
    class_weight: str | None = None
    rounds: int = 1
    weight: float = 0.0
    domain: Any = None
    feature_map: Any = None
    max_iter: int = 1000
    tol: float = 1e-7

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None) -> AttributeSubspace:
        """Learn the subspace.

        Parameters
        ----------
        X : array, tensor or frame of shape (n, p)
        y : array of shape (n,) or (n, m), optional
            Attribute values if neither `attributes` nor `sensitive_features` is given; else ignored, so
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
        if isinstance(self.kind, str) and self.kind == PROBABILITIES:
            attributes, targets = _likely_groups(owner, features, self.attributes, y, sensitive_features)
            kinds = [PROBABILITIES]
        else:
            attributes = collect(owner, features, self.attributes, y, sensitive_features)
            kinds = resolve_kinds(owner, self.kind, attributes)
            targets = [make_target(owner, a, kind) for a, kind in zip(attributes, kinds, strict=True)]
        rows = [np.zeros((0, features.phi.shape[1]))]
        directions: dict[Any, FloatArray] = {}
        for attribute, target in zip(attributes, targets, strict=True):
            learned = self._directions(features.phi, attribute, target, penalty)
            directions[attribute.name] = learned
            rows += [learned, *(features.where.unit(i)[None, :] for i in attribute.own)]
        told = [_own_column(attribute.name, features) for attribute in attributes]
        subspace = Subspace.from_directions(np.concatenate(rows))
        own = sorted({i for attribute in attributes for i in attribute.own})
        self._learned(
            subspace, features, told, removed_variance_words(features.phi, directions, own, subspace)
        )
        self.directions_ = directions
        self.kinds_ = {a.name: kind for a, kind in zip(attributes, kinds, strict=True)}
        return self

    def _check(self) -> Penalty:
        owner = type(self).__name__
        check_number(self.regularization, owner=owner, name="regularization", low=0.0)
        check_number(self.tol, owner=owner, name="tol", low=0.0, open_low=True)
        for name in ("rounds", "max_iter"):
            check_integer(getattr(self, name), owner=owner, name=name, low=1)
        check_choice(self.penalty, ("squared", "norm"), owner=owner, name="penalty")
        check_choice(self.class_weight, (None, "balanced"), owner=owner, name="class_weight")
        return Penalty(float(self.regularization), self.penalty == "squared")

    def _directions(
        self, phi: FloatArray, attribute: Attribute, target: Target, penalty: Penalty
    ) -> FloatArray:
        """Weights of one attribute's model, round after round, one direction per row."""
        rest = np.array(phi[target.known], dtype=float)
        rest[:, attribute.own] = 0.0
        if self.class_weight is None or target.codes is None:
            shares = None
        elif target.codes.ndim == 2:
            shares = target.codes @ (1.0 / np.maximum(target.codes.mean(0), 1e-12))
        else:
            shares = compute_sample_weight("balanced", target.codes)
        found: list[FloatArray] = []
        for _ in range(self.rounds):
            weights, intercepts = fit_glm(
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
            if not found and shares is None and target.codes is not None:
                known = direction_cosines(rest, target.y, weights, intercepts, penalty, target.family)
                self._warn_of_unknown(attribute, target, known)
            found.append(weights)
            rest = Subspace.from_directions(weights).remove(rest)
        if not found[0].any() and not attribute.own:
            raise InputError(
                f"{type(self).__name__}: the model of attribute {attribute.name!r} is zero in every column: the "
                "columns do not predict it, or the penalty hides that they do. Lower 'regularization', or leave "
                "the attribute out."
            )
        return np.concatenate(found)

    def _warn_of_unknown(self, attribute: Attribute, target: Target, cosines: FloatArray) -> None:
        rare = np.flatnonzero(np.nan_to_num(cosines, nan=1.0) < _KNOWN)
        if len(rare):
            c = int(rare[np.argmin(cosines[rare])])
            count = int(min(target.y[:, c].sum(), len(target.y) - target.y[:, c].sum()))
            warnings.warn(
                f"{type(self).__name__}: only {count:,} of {len(target.y):,} people are of one class of "
                f"{attribute.name!r}, so its direction is not well known: it is expected to have a cosine of "
                f"{cosines[c]:.2f} with that of many people. Learn from more people of this class, or name the columns "
                "that carry the attribute (ExpertSubspace).",
                UserWarning,
                stacklevel=4,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.attributes is None
        tags.input_tags.allow_nan = False
        return tags


def _own_column(name: Any, features: Features) -> str | None:
    """The column of X that an attribute is; None if its values are not a column of X."""
    if features.where.has(name):
        return features.where.whole_column(name)
    # A feature map without names hides which coordinates a column became.
    frame = features.frame
    return str(name) if frame is not None and name in frame.columns else None
