"""Scikit-learn classifiers: the paper's methods, one thin class each, all on the same training loop."""

from __future__ import annotations

from likewise.estimators.baseline import MLPBaselineClassifier
from likewise.estimators.sensr import SenSRClassifier

__all__ = ["MLPBaselineClassifier", "SenSRClassifier"]
