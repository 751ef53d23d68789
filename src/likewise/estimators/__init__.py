"""Scikit-learn classifiers: the paper's methods, one thin class each, all on the same training loop.

Examples
--------
>>> from likewise.estimators import MLPBaselineClassifier
>>> X = [[-2.0], [-1.0], [1.0], [2.0]]
>>> MLPBaselineClassifier(n_steps=50, random_state=0).fit(X, [0, 0, 1, 1]).predict(X)
array([0, 0, 1, 1])
"""

from __future__ import annotations

from likewise.estimators.adversarial import AdversarialDebiasingClassifier
from likewise.estimators.baseline import MLPBaselineClassifier
from likewise.estimators.boosting import FairBoostingClassifier
from likewise.estimators.cocl import CoCLClassifier
from likewise.estimators.estimator_files import load
from likewise.estimators.project import ProjectClassifier
from likewise.estimators.sensei import SenSeIClassifier
from likewise.estimators.sensr import SenSRClassifier
from likewise.estimators.wasserstein import WassersteinRobustClassifier

__all__ = [
    "AdversarialDebiasingClassifier",
    "CoCLClassifier",
    "FairBoostingClassifier",
    "MLPBaselineClassifier",
    "ProjectClassifier",
    "SenSRClassifier",
    "SenSeIClassifier",
    "WassersteinRobustClassifier",
    "load",
]
