"""Scikit-learn models that are plain networks (linear models, MLPs, scalers in front) have input gradients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import softmax

from likewise.core.checks import FloatArray
from likewise.models.layers import ACTIVATIONS, LayeredModel, Layers, probe_rows
from likewise.models.model import is_one_of, named, two_classes
from likewise.models.sklearn_model import SklearnModel
from likewise.models.table_features import changes_columns, scaler_terms

# The types whose weights are read, by the module that has them: a closed list.
_LINEAR = {
    "sklearn.linear_model": (
        "ARDRegression", "BayesianRidge", "ElasticNet", "ElasticNetCV", "HuberRegressor", "Lars", "LarsCV", "Lasso",
        "LassoCV", "LassoLars", "LassoLarsCV", "LassoLarsIC", "LinearRegression", "LogisticRegression",
        "LogisticRegressionCV", "OrthogonalMatchingPursuit", "OrthogonalMatchingPursuitCV",
        "PassiveAggressiveClassifier", "PassiveAggressiveRegressor", "Perceptron", "QuantileRegressor", "Ridge",
        "RidgeCV", "RidgeClassifier", "RidgeClassifierCV", "SGDClassifier", "SGDRegressor", "TheilSenRegressor",
    ),
    "sklearn.svm": ("LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "SVC", "SVR"),
    "sklearn.discriminant_analysis": ("LinearDiscriminantAnalysis",),
}  # fmt: skip
_NETWORKS = {
    "sklearn.neural_network": ("MLPClassifier", "MLPRegressor"),
    "likewise.training": (
        "AdversarialDebiasingClassifier", "CoCLClassifier", "MLPBaselineClassifier", "ProjectClassifier",
        "SenSRClassifier", "SenSeIClassifier", "WassersteinRobustClassifier",
    ),
}  # fmt: skip
_AFFINE = {
    "sklearn.preprocessing": ("MaxAbsScaler", "MinMaxScaler", "RobustScaler", "StandardScaler"),
    "sklearn.decomposition": ("PCA", "TruncatedSVD"),
    "sklearn.impute": ("SimpleImputer",),
}
_SELECTORS = {
    "sklearn.feature_selection": (
        "GenericUnivariateSelect", "RFE", "RFECV", "SelectFdr", "SelectFpr", "SelectFromModel", "SelectFwe",
        "SelectKBest", "SelectPercentile", "SequentialFeatureSelector", "VarianceThreshold",
    ),
}  # fmt: skip
_SEARCHES = {
    "sklearn.model_selection": (
        "GridSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV", "RandomizedSearchCV",
    ),
}  # fmt: skip
_FROZEN = {"sklearn.frozen": ("FrozenEstimator",)}
_ACTIVATIONS = ("relu", "tanh", "logistic", "identity")
_PIPELINE = {"sklearn.pipeline": ("Pipeline",)}


class SklearnNetwork(SklearnModel, LayeredModel):
    """A scikit-learn model that is exactly a linear model or an MLP of its numeric input.

    Losses are the estimator's own, as in `SklearnModel`; gradients come from the same weights, read when the model
    was made. Made by `from_sklearn` (or `as_model`), which checks that weights and estimator agree.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]
    >>> model = from_sklearn(LogisticRegression().fit(X, y))
    >>> coef, intercept = model.linear_form()
    >>> coef.shape, intercept.shape
    ((2, 1), (2,))
    """

    def __init__(self, estimator: Any, layers: Layers, **choices: Any) -> None:
        super().__init__(estimator, **choices)
        self.layers = layers
        self.n_features = layers.n_inputs


def from_sklearn(estimator: Any, **choices: Any) -> SklearnModel:
    """Return a `SklearnNetwork` if the estimator is one, else a `SklearnModel`."""
    plain = SklearnModel(estimator, **choices)
    if plain.takes_frame or not plain.loss.differentiable:
        return plain
    if plain.loss.wants == "native" and plain.gives_probabilities:
        return plain
    layers = read_layers(estimator)
    if layers is None or not _agrees(plain, layers):
        return plain
    return SklearnNetwork(estimator, layers, **choices)


def read_layers(estimator: Any) -> Layers | None:
    """Return the layers of a linear model or an MLP, scalers in front absorbed; None if it is not such a model.

    An output is a score or a value, which only a sigmoid or softmax may follow. Nothing says yet that they give the
    estimator's own answers: compare before use.
    """
    if is_one_of(estimator, _SEARCHES):
        return read_layers(estimator.best_estimator_)
    if is_one_of(estimator, _FROZEN):
        return read_layers(estimator.estimator)
    steps = [step for _, step in estimator.steps] if is_one_of(estimator, _PIPELINE) else [estimator]
    layers = _final_layers(steps[-1])
    for step in reversed(steps[:-1]):
        if layers is None:
            return None
        first = _absorb(step, layers.weights[0], layers.biases[0])
        if first is None:
            return None
        layers = replace(
            layers, weights=(first[0], *layers.weights[1:]), biases=(first[1], *layers.biases[1:])
        )
    return layers


def _final_layers(estimator: Any) -> Layers | None:
    if is_one_of(estimator, _NETWORKS):
        # An own estimator whose network is not a plain MLP has no such weights.
        if not hasattr(estimator, "coefs_") or estimator.activation not in _ACTIVATIONS:
            return None
        weights = tuple(np.asarray(part, dtype=np.float64).T for part in estimator.coefs_)
        biases = tuple(np.asarray(part, dtype=np.float64) for part in estimator.intercepts_)
        units = (ACTIVATIONS[estimator.activation],) * (len(weights) - 1)
        return Layers(weights, biases, activations=units)
    if not is_one_of(estimator, _LINEAR):
        return None
    coef, intercept = getattr(estimator, "coef_", None), getattr(estimator, "intercept_", None)
    if coef is None or intercept is None or not isinstance(coef, np.ndarray):
        return None
    weight = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    bias = np.broadcast_to(np.asarray(intercept, dtype=np.float64).ravel(), (len(weight),))
    return Layers((weight,), (np.array(bias),))


def _absorb(step: Any, weight: FloatArray, bias: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Put an affine transformer in front of a linear layer into the layer: W(Ax + c) + b = (WA)x + (Wc + b)."""
    if step is None or isinstance(step, str):
        return (weight, bias) if step in (None, "passthrough") else None
    if is_one_of(step, _SELECTORS):
        spread = np.zeros((len(weight), len(step.get_support())))
        spread[:, step.get_support()] = weight
        return spread, bias
    if not is_one_of(step, _AFFINE):
        return None
    kind = type(step).__name__
    if kind in ("StandardScaler", "RobustScaler"):
        centre, width = scaler_terms(step)
        scaled = weight if width is None else weight / width
        return scaled, bias if centre is None else bias - scaled @ centre
    if kind == "MinMaxScaler" and not step.clip:
        return weight * step.scale_, bias + weight @ step.min_
    if kind == "MaxAbsScaler":
        return weight / step.scale_, bias
    if kind in ("PCA", "TruncatedSVD"):
        components = step.components_
        if getattr(step, "whiten", False):
            components = components / np.sqrt(step.explained_variance_)[:, None]
        turned = weight @ components
        return turned, bias - turned @ step.mean_ if kind == "PCA" else bias
    if kind == "SimpleImputer" and not changes_columns(step):
        return weight, bias
    return None


def _agrees(model: SklearnModel, layers: Layers) -> bool:
    """Whether the layers give the estimator's own answers on probe rows at several scales."""
    if model.n_features not in (None, layers.n_inputs):
        return False
    probes = probe_rows(layers.n_inputs)
    answer = np.asarray(getattr(model.estimator, model._method)(named(probes, model.feature_names)))
    scores = layers.outputs(probes)
    if model.gives_probabilities:
        scores = np.asarray(softmax(two_classes(scores), axis=1))
    answer = answer.reshape(len(probes), -1)
    return answer.shape == scores.shape and bool(np.allclose(answer, scores, rtol=1e-6, atol=1e-8))
