"""Scikit-learn classifiers: the paper's methods, one thin class each, all on the same training loop.

Examples
--------
>>> from likewise.estimators import MLPBaselineClassifier
>>> X = [[-2.0], [-1.0], [1.0], [2.0]]
>>> MLPBaselineClassifier(n_steps=50, random_state=0).fit(X, [0, 0, 1, 1]).predict(X)
array([0, 0, 1, 1])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.estimators.boosting import FairBoostingClassifier as FairBoostingClassifier
    from likewise.estimators.classifiers import (
        AdversarialDebiasingClassifier as AdversarialDebiasingClassifier,
        CoCLClassifier as CoCLClassifier,
        MLPBaselineClassifier as MLPBaselineClassifier,
        ProjectClassifier as ProjectClassifier,
        SenSeIClassifier as SenSeIClassifier,
        SenSRClassifier as SenSRClassifier,
        WassersteinRobustClassifier as WassersteinRobustClassifier,
    )
    from likewise.estimators.files import load as load

__getattr__, __dir__, __all__ = lazy_names(__name__)
