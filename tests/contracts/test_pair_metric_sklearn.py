"""`PairMetric` through scikit-learn's own checks of an estimator: y are labels of groups of comparable rows."""

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from likewise.fair_metrics import PairMetric

# The checks call fit with ten rows up to hundreds; nothing is exempt.
LEARNERS = [PairMetric(random_state=0), PairMetric(max_pairs=50, regularization=0.1)]


@parametrize_with_checks(LEARNERS)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_works_as_the_last_step_of_a_pipeline():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(3, size=60)
    learner = PairMetric(random_state=0)
    metric = make_pipeline(StandardScaler(), clone(learner)).fit(X, y)[-1].metric_
    assert metric.squared_distance(X[:5], X[5:10]).shape == (5,)
    assert not hasattr(learner, "metric_")
