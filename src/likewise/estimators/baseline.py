"""The paper's Baseline: plain training."""

from __future__ import annotations

from likewise.estimators.fields_as_parameters import parameters_from_fields
from likewise.estimators.network_classifier import NetworkClassifier

__all__ = ["MLPBaselineClassifier"]


@parameters_from_fields
class MLPBaselineClassifier(NetworkClassifier):
    """A multilayer perceptron trained for accuracy alone, as the paper's "Baseline".

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> clf = MLPBaselineClassifier(n_steps=200, random_state=0).fit(X, y)
    >>> clf.predict([[2.0, 0.0, 0.0], [-2.0, 0.0, 0.0]]).tolist()
    ['yes', 'no']
    """
