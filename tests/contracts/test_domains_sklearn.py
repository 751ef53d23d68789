"""The tabular domain under scikit-learn's own checks, and in the company of its estimators."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from likewise.data import TabularDomain


@parametrize_with_checks([TabularDomain()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


# Checks that scikit-learn runs on its own transformers but `parametrize_with_checks` leaves out. The one not
# here is check_dataframe_column_names_consistency: it wants an error where columns come in another order,
# and a domain looks columns up by name instead.
@pytest.mark.parametrize(
    "check",
    [
        "check_transformer_get_feature_names_out",
        "check_transformer_get_feature_names_out_pandas",
        "check_set_output_transform",
        "check_set_output_transform_pandas",
        "check_global_output_transform_pandas",
        "check_set_output_transform_polars",
        "check_global_set_output_transform_polars",
        "check_n_features_in_after_fitting",
    ],
)
def test_scikit_learn_output_contract(check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X (does not have|has)( valid)? feature names")
        getattr(estimator_checks, check)("TabularDomain", TabularDomain())


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, 60),
            "job": rng.choice(["clerk", "cook", "nurse"], 60),
            "income": rng.normal(30.0, 5.0, 60).round(1),
            "sex": rng.choice(["Female", "Male"], 60),
        }
    )


def test_encoding_is_that_of_scikit_learn(people):
    reference = make_column_transformer(
        (StandardScaler(), ["age", "income"]),
        (OneHotEncoder(drop="if_binary", sparse_output=False), make_column_selector(dtype_include="str")),
    )
    expected = reference.fit_transform(people)
    np.testing.assert_allclose(TabularDomain().fit_transform(people).to_numpy(), expected, atol=1e-12)


def test_feature_names(people):
    names = ["age", "income", "job_clerk", "job_cook", "job_nurse", "sex_Male"]
    domain = TabularDomain().fit(people)
    assert domain.get_feature_names_out().tolist() == names
    assert domain.feature_names_in_.tolist() == ["age", "job", "income", "sex"]
    assert domain.n_features_in_ == 4
    assert list(domain.encode(people).columns) == names


def test_pipeline_and_grid_search(people):
    y = people["age"].to_numpy() > 40
    pipeline = make_pipeline(TabularDomain(immutable=["sex"]), LogisticRegression())
    grid = GridSearchCV(pipeline, {"tabulardomain__ranges": [None, {"age": (0, 120)}]}, cv=3).fit(people, y)
    assert grid.predict(people).shape == (60,)
    assert list(grid.best_estimator_[-1].feature_names_in_) == list(
        TabularDomain().fit(people).encode(people)
    )


def test_set_output_chooses_the_container(people):
    domain = TabularDomain().fit(people)
    assert isinstance(domain.transform(people), pd.DataFrame)
    assert isinstance(domain.transform(pl.from_pandas(people)), pl.DataFrame)
    domain.set_output(transform="polars")
    encoded = domain.encode(people)
    assert isinstance(encoded, pl.DataFrame)
    pd.testing.assert_frame_equal(domain.decode(encoded), people)


def test_clone_is_not_fitted_and_keeps_parameters(people):
    domain = TabularDomain.from_frame(people, immutable=["sex"], ranges={"age": (0, 120)})
    copy = clone(domain)
    assert copy.get_params() == domain.get_params()
    assert copy.n_features is None
    assert not hasattr(copy, "columns_")
