"""Who is comparable: metrics ready, learned inside fit, joined, projected."""

import numpy as np
import pandas as pd
import pytest

from likewise.auditing.search.gradient.search import GradientSearch
from likewise.core.errors import InputError
from likewise.core.subspace import Subspace
from likewise.data import BoxDomain, DataRangeDomain, TabularDomain
from likewise.fair_metrics import AttributeSubspace, ExpertSubspace, FairMetric, euclidean, mahalanobis
from likewise.training import (
    MLPBaselineClassifier,
    ProjectClassifier,
    SenSeIClassifier,
    SenSRClassifier,
    TrainingConfig,
)
from likewise.training.estimators.rows import searched_metric

FEW = {"n_steps": 3, "batch_size": 32, "hidden_layer_sizes": (4,), "random_state": 0}


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    return X, X[:, 1] + X[:, 0] > 0


def test_a_learner_is_cloned_and_fitted_on_the_training_rows(data):
    X, y = data
    learner = AttributeSubspace(attributes=[0], kind="continuous")
    model = SenSRClassifier(learner, **FEW).fit(X, y)
    assert not hasattr(learner, "metric_")
    expected = AttributeSubspace(attributes=[0], kind="continuous").fit(X).subspace_
    assert float(model.metric_.subspace.principal_angles(expected)[0]) < 1e-7


def test_sensitive_features_reach_the_learner_and_are_the_default(data):
    X, y = data
    sex = pd.Series(np.where(X[:, 2] > 0, "F", "M"), name="sex")
    default = SenSRClassifier(**FEW).fit(X, y, sensitive_features=sex)
    named = SenSRClassifier(AttributeSubspace(["sex"]), **FEW).fit(X, y, sensitive_features=sex)
    assert abs(default.metric_.subspace.basis[2, 0]) > 0.9
    assert default.predict_proba(X).tobytes() == named.predict_proba(X).tobytes()


def test_several_metrics_mean_their_union(data):
    X, y = data
    parts = [ExpertSubspace([0]), FairMetric.from_subspace(Subspace.from_directions([[0.0, 0.0, 1.0, 1.0]]))]
    model = ProjectClassifier(parts, **FEW).fit(X, y)
    assert model.removed_.dim == model.metric_.subspace.dim == 2
    moved = X + np.array([[5.0, 0.0, 3.0, 3.0]])
    np.testing.assert_allclose(model.predict_proba(moved), model.predict_proba(X), atol=1e-6)


def test_what_is_projected_off_changes_nothing_and_is_not_searched(data):
    X, y = data
    model = SenSRClassifier(ExpertSubspace([0]), blind_to=ExpertSubspace([2]), **FEW).fit(X, y)
    assert model.metric_.subspace.dim == 2
    assert model.objective_.metric.subspace.dim == 1
    assert abs(model.objective_.metric.subspace.basis[0, 0]) == 1.0
    np.testing.assert_allclose(
        model.predict_proba(X + np.array([[0.0, 0.0, 9.0, 0.0]])), model.predict_proba(X), atol=1e-6
    )
    assert np.abs(model.coefs_[0][2]).max() < 1e-7


def test_a_metric_inside_the_projection_leaves_nothing_to_search():
    metric = FairMetric.from_subspace(Subspace.from_directions([[1.0, 0.0, 0.0]]))
    assert searched_metric(metric, Subspace.from_directions(np.eye(3)[:2])).subspace is None


def test_metrics_without_free_directions_are_searched_as_they_are(data):
    X, y = data
    metric = mahalanobis(np.diag([1.0, 2.0, 0.5, 1.0]))
    model = SenSRClassifier(metric, blind_to=["auto", ExpertSubspace([2])], search="paper", **FEW).fit(X, y)
    assert model.metric_.null_space.dim == 1


@pytest.mark.parametrize("kind", [SenSRClassifier, SenSeIClassifier])
def test_where_the_search_may_go(data, kind):
    X, y = data
    box = BoxDomain.from_data(X)
    learner = ExpertSubspace([0])
    assert isinstance(kind(learner, blind_to=None, **FEW).fit(X, y).search_domain_, DataRangeDomain)
    assert kind(learner, **FEW).fit(X, y).search_domain_ is None  # nothing free is left to search along
    assert kind(learner, training=TrainingConfig(search_domain=box), **FEW).fit(X, y).search_domain_ is box
    assert kind(learner, training=TrainingConfig(search_domain=None), **FEW).fit(X, y).search_domain_ is None
    full = GradientSearch(full_steps=3)
    assert (
        kind(euclidean(4), search=full, training=TrainingConfig(lambda_rule="fixed"), **FEW)
        .fit(X, y)
        .search_domain_
        is None
    )
    with pytest.raises(InputError, match="'search_domain' must be None, 'data' or a Domain"):
        kind(learner, training=TrainingConfig(search_domain="box"), **FEW).fit(X, y)
    with pytest.raises(InputError, match="domain is of 2 columns, the rows have 4"):
        kind(learner, training=TrainingConfig(search_domain=BoxDomain([0, 0], [1, 1])), **FEW).fit(X, y)


def test_bad_metrics(data):
    X, y = data
    with pytest.raises(InputError, match="nothing says who is comparable"):
        SenSRClassifier(**FEW).fit(X, y)
    with pytest.raises(InputError, match="'metric' must be a FairMetric, a learner"):
        SenSRClassifier("sex", **FEW).fit(X, y)
    with pytest.raises(InputError, match="nothing to project off"):
        ProjectClassifier(euclidean(4), **FEW).fit(X, y)
    with pytest.raises(InputError, match="'lambda_rule' must be one of"):
        SenSRClassifier(ExpertSubspace([0]), training=TrainingConfig(lambda_rule="newton"), **FEW).fit(X, y)
    with pytest.raises(InputError, match="'search' must be one of"):
        SenSRClassifier(ExpertSubspace([0]), search="slow", **FEW).fit(X, y)


def test_a_metric_of_other_columns_is_refused_by_name():
    people = pd.DataFrame({"job": ["a", "b", "c"] * 5, "sex": ["F", "M", "M"] * 5})
    other = people.rename(columns={"job": "work"})
    metric = ExpertSubspace(["sex"], domain=TabularDomain.from_frame(other)).fit(other).metric_
    y = np.arange(15) % 2
    with pytest.raises(InputError, match="'work_a' where the table has 'job_a'"):
        SenSRClassifier(metric.without_feature_map(), **FEW).fit(people, y)


def test_robust_training_uses_the_sensitive_column_less():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = X.sum(axis=1) > 0
    twins = X * [[-1.0, 1.0]]
    choices = {"n_steps": 150, "batch_size": 200, "lr": 0.02, "random_state": 0, "hidden_layer_sizes": (20,)}
    base = MLPBaselineClassifier(**choices).fit(X, y)
    choices |= {"eps": 0.0, "validation": None}
    assert (base.predict(X) == base.predict(twins)).mean() < 0.7
    for robust in (
        SenSRClassifier(
            ExpertSubspace([0]),
            search="fast",
            training=TrainingConfig(search_domain=None),
            blind_to=None,
            **choices,
        ),
        SenSRClassifier(ExpertSubspace([0]), blind_to=None, **choices),
        SenSeIClassifier(ExpertSubspace([0]), blind_to=None, **choices),
    ):
        model = robust.fit(X, y)
        assert (model.predict(X) == model.predict(twins)).mean() > 0.93
        assert model.score(X, y) > 0.65
