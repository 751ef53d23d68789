"""FairBoostingClassifier through scikit-learn's own checks, with both libraries."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from likewise.fair_metrics import euclidean
from likewise.training import FairBoostingClassifier

pytest.importorskip("xgboost")
pytest.importorskip("lightgbm")

LIGHT = {"n_estimators": 12, "learning_rate": 0.3, "random_state": 0}
ESTIMATORS = [
    FairBoostingClassifier(**LIGHT),
    FairBoostingClassifier(library="lightgbm", **LIGHT),
    FairBoostingClassifier(metric=euclidean(), eps=0.01, **LIGHT),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
