"""Project: what is removed, what stays, tables of every kind."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from likewise.core.errors import InputError
from likewise.core.subspace import Subspace
from likewise.data import TabularDomain
from likewise.fair_metrics import AttributeSubspace, ExpertSubspace, FairMetric, euclidean
from likewise.mitigation import Project


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    n = 80
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, n),
            "job": rng.choice(["clerk", "cook", "nurse"], n),
            "sex": rng.choice(["Female", "Male"], n),
        },
        index=[f"p{i}" for i in range(n)],
    )


def test_nothing_of_the_subspace_is_left_and_nothing_else_is_gone():
    rng = np.random.default_rng(1)
    X, subspace = rng.normal(size=(50, 6)), Subspace.from_directions(rng.normal(size=(2, 6)))
    out = Project(FairMetric.from_subspace(subspace)).fit_transform(X)
    np.testing.assert_allclose(subspace.coordinates(out), 0.0, atol=1e-12)
    rest = subspace.complement()
    np.testing.assert_allclose(rest.coordinates(out), rest.coordinates(X), atol=1e-12)


def test_people_who_differ_by_the_removed_columns_alone_become_the_same(people):
    project = Project(ExpertSubspace(["sex"])).fit(people)
    twin = people.assign(sex=people["sex"].map({"Male": "Female", "Female": "Male"}))
    pd.testing.assert_frame_equal(project.transform(people), project.transform(twin))


def test_raw_frames_come_back_encoded_with_names_and_index(people):
    project = Project(ExpertSubspace(["sex", "job: cook - nurse"])).fit(people)
    out = project.transform(people)
    assert list(out.columns) == ["age", "job_clerk", "job_cook", "job_nurse", "sex_Male"]
    assert list(out.columns) == list(project.get_feature_names_out())
    assert out.index.equals(people.index)
    encoded = project.encoder_.encode(people)
    pd.testing.assert_frame_equal(project.transform(encoded), out)
    np.testing.assert_allclose(project.transform(encoded.to_numpy()), out.to_numpy())
    np.testing.assert_allclose(out["job_cook"], out["job_nurse"])
    assert list(project.feature_names_in_) == ["age", "job", "sex"]


def test_other_libraries_keep_theirs(people):
    frame = pl.from_pandas(people.reset_index(drop=True))
    out = Project(ExpertSubspace(["sex"])).fit_transform(frame)
    assert isinstance(out, pl.DataFrame)
    assert out.columns == ["age", "job_clerk", "job_cook", "job_nurse", "sex_Male"]


def test_float32_stays_float32():
    X = np.random.default_rng(0).normal(size=(9, 3)).astype(np.float32)
    assert Project(ExpertSubspace([1])).fit_transform(X).dtype == np.float32


def test_a_given_domain_encodes(people):
    domain = TabularDomain.from_frame(people, categories={"job": ["baker"]})
    out = Project(ExpertSubspace(["sex"]), domain=domain).fit_transform(people)
    assert "job_baker" in out.columns
    metric = ExpertSubspace(["sex"], domain=domain).fit(people).metric_
    pd.testing.assert_frame_equal(Project(metric).fit_transform(people), out)


def test_a_learner_is_cloned_and_takes_sensitive_features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    learner = AttributeSubspace()
    project = Project(learner).fit(X, sensitive_features=X[:, 2] > 0)
    assert not hasattr(learner, "metric_")
    assert abs(project.subspace_.basis[2, 0]) > 0.99
    default = Project().fit(X, sensitive_features=X[:, 2] > 0)
    np.testing.assert_allclose(default.transform(X), project.transform(X))


def test_several_metrics_are_removed_together(people):
    both = Project([ExpertSubspace(["sex"]), ExpertSubspace(["age"])]).fit_transform(people)
    assert np.abs(both[["sex_Male", "age"]].to_numpy()).max() == 0.0


def test_in_a_pipeline_the_decision_ignores_the_subspace():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + X[:, 1] > 0
    model = make_pipeline(Project(ExpertSubspace([0])), LogisticRegression()).fit(X, y)
    moved = X + rng.normal(size=(200, 1)) * [[5.0, 0.0, 0.0]]
    np.testing.assert_allclose(model.predict_proba(moved), model.predict_proba(X))
    assert model.score(X, y) > 0.7


def test_set_output_is_honoured():
    X = np.random.default_rng(0).normal(size=(9, 3))
    out = Project(ExpertSubspace([1])).set_output(transform="pandas").fit_transform(X)
    assert list(out.columns) == ["x0", "x1", "x2"]


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (None, "nothing says who is comparable"),
        (euclidean(3), "nothing to project off"),
        (ExpertSubspace([0, 1, 2]), "whole space"),
        (ExpertSubspace([0]).fit(np.ones((2, 5))).metric_, "of 5 columns, the encoded rows have 3"),
        ("sex", "must be a FairMetric, a learner"),
        (ExpertSubspace, "got the class ExpertSubspace"),
        ([], "at least one metric"),
    ],
)
@pytest.mark.filterwarnings("ignore:ExpertSubspace. the metric is zero")
def test_bad_metrics(metric, message):
    with pytest.raises(InputError, match=message):
        Project(metric).fit(np.random.default_rng(0).normal(size=(9, 3)))


def test_bad_lengths_and_domains(people):
    with pytest.raises(InputError, match="lengths differ: X has 80 rows, sensitive_features has 2"):
        Project().fit(people, sensitive_features=[1, 0])
    with pytest.raises(InputError, match="'domain' must be a TabularDomain"):
        Project(ExpertSubspace(["sex"]), domain="adult").fit(people)
    with pytest.raises(InputError, match="missing"):
        Project(ExpertSubspace(["sex"])).fit(people.assign(job=None))
