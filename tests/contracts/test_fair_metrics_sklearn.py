"""Every learner of a fair metric through scikit-learn's own checks of an estimator."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from likewise.fair_metrics import AttributeSubspace, ComparableSubspace, ExpertSubspace

LEARNERS = [
    ExpertSubspace([0]),
    AttributeSubspace(),
    AttributeSubspace(attributes=[0], kind="continuous"),
    ComparableSubspace(n_components=1),
    ComparableSubspace(n_components=0.5),
    ComparableSubspace(random_state=0),
]


def exemptions(estimator):
    if isinstance(estimator, AttributeSubspace) and estimator.attributes is not None:
        reason = (
            "the check puts a NaN into column 0, which is the attribute here, and an attribute may be known for "
            "part of the rows; NaN elsewhere and inf anywhere are refused (test_what_may_not_be_missing)"
        )
        return {"check_estimators_nan_inf": reason}
    return {}


@pytest.mark.parametrize(("value", "column"), [(np.nan, 1), (np.inf, 1), (np.inf, 0)])
def test_what_may_not_be_missing(value, column):
    X = np.random.default_rng(0).normal(size=(20, 3))
    X[4, column] = value
    with pytest.raises(ValueError, match="not finite, first at row 4"):
        AttributeSubspace(attributes=[0], kind="continuous").fit(X)


# Some checks have two columns, and both are free once one of them is the attribute.
@pytest.mark.filterwarnings("ignore:AttributeSubspace. the metric is zero")
@pytest.mark.filterwarnings("ignore:AttributeSubspace. ..% of the variance of the other columns is free")
@parametrize_with_checks(LEARNERS, expected_failed_checks=exemptions)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_works_as_the_last_step_of_a_pipeline(learner):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(3, size=60)
    pipeline = make_pipeline(StandardScaler(), clone(learner)).fit(X, y)
    metric = pipeline[-1].metric_
    assert metric.n_features == 4
    assert metric.squared_distance(X[:5], X[5:10]).shape == (5,)
    assert not hasattr(learner, "metric_")
