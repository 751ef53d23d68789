import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.preprocessing import StandardScaler

from likewise.core.errors import InputError
from likewise.core.subspace import Subspace
from likewise.data import TabularDomain
from likewise.fair_metrics import ExpertSubspace


@pytest.fixture
def people():
    return pd.DataFrame(
        {
            "age": [20, 40, 60, 30],
            "hours-per-week": [40, 30, 20, 35],
            "relationship": ["Husband", "Wife", "Not-in-family", "Own-child"],
            "sex": ["Male", "Female", "Male", "Female"],
        }
    )


# age, hours-per-week, relationship_{Husband, Not-in-family, Own-child, Wife}, sex_Male
AXES = np.eye(7)


def span(*rows):
    return Subspace.from_directions(np.stack(rows))


def same(subspace, *rows):
    expected = span(*rows)
    return subspace.dim == expected.dim and float(subspace.principal_angles(expected)[0]) < 1e-7


@pytest.mark.parametrize(
    ("directions", "rows"),
    [
        (["sex"], [AXES[6]]),
        ("sex", [AXES[6]]),
        (["relationship"], AXES[2:6]),
        (["relationship: Husband − Wife"], [AXES[2] - AXES[5]]),
        (["relationship: Husband - Wife", "sex"], [AXES[2] - AXES[5], AXES[6]]),
        (["relationship: Not-in-family - Own-child"], [AXES[3] - AXES[4]]),
        (["sex: Male - Female"], [AXES[6]]),
        (["sex: Female − Male"], [AXES[6]]),
        (["hours-per-week"], [AXES[1]]),
        (["sex", "sex", "sex: Male - Female"], [AXES[6]]),
        ([6, -7], [AXES[6], AXES[0]]),
        ([AXES[0] + AXES[1], "sex"], [AXES[0] + AXES[1], AXES[6]]),
        (np.stack([AXES[0], AXES[1]]), [AXES[0], AXES[1]]),
        (torch.tensor(AXES[0] + AXES[6]), [AXES[0] + AXES[6]]),
        (span(AXES[0], AXES[3]), [AXES[0], AXES[3]]),
    ],
)
def test_directions_by_name_contrast_index_and_vector(people, directions, rows):
    raw = ExpertSubspace(directions).fit(people)
    assert same(raw.subspace_, *rows)
    assert isinstance(raw.metric_.feature_map, TabularDomain)
    encoded = ExpertSubspace(directions).fit(TabularDomain.from_frame(people).encode(people))
    assert same(encoded.subspace_, *rows)
    assert encoded.metric_.feature_map is None
    assert encoded.metric_.feature_names == raw.metric_.feature_names


def test_the_metric_of_a_raw_frame_takes_raw_frames(people):
    learner = ExpertSubspace(["sex"], weight=0.25).fit(people)
    twins = people.assign(sex=people["sex"].map({"Male": "Female", "Female": "Male"}))
    np.testing.assert_allclose(learner.metric_.squared_distance(people, twins), 0.25)
    assert list(learner.feature_names_in_) == list(people.columns)
    assert learner.n_features_in_ == 4
    assert learner.encoder_ is learner.metric_.feature_map


def test_other_libraries_and_a_given_domain(people):
    domain = TabularDomain.from_frame(people, categories={"relationship": ["Unmarried"]})
    learner = ExpertSubspace(["relationship"], domain=domain).fit(people)
    assert learner.subspace_.dim == 5
    assert learner.metric_.feature_map is domain
    unfitted = ExpertSubspace(["sex"], domain=TabularDomain(immutable=["age"])).fit(people)
    assert unfitted.metric_.feature_map.columns_[0].immutable
    table = pl.from_pandas(people)
    metric = ExpertSubspace(["sex"]).fit(table).metric_
    np.testing.assert_allclose(
        metric.pairwise(table), ExpertSubspace(["sex"]).fit(people).metric_.pairwise(people)
    )
    encoded = domain.encode(people)
    assert ExpertSubspace(["sex"], domain=domain).fit(encoded).metric_.feature_map is domain
    assert ExpertSubspace(["sex"], domain=domain).fit(encoded.to_numpy()).subspace_.dim == 1


def test_a_feature_map_of_ones_own():
    rng = np.random.default_rng(0)
    X = rng.normal(5, 3, size=(30, 3))
    scaler = StandardScaler().fit(X)
    metric = ExpertSubspace([1], feature_map=scaler).fit(X).metric_
    expected = np.delete(scaler.transform(X[:1]) - scaler.transform(X[1:2]), 1)
    assert metric.squared_distance(X[:1], X[1:2]) == pytest.approx([np.sum(expected**2)])


def test_an_exact_name_is_that_column_and_not_its_namesakes():
    frame = pd.DataFrame({"age": [1.0, 2.0], "age_group_old": [0.0, 1.0]})
    assert same(ExpertSubspace(["age"]).fit(frame).subspace_, np.eye(2)[0])


@pytest.mark.parametrize(
    ("directions", "message"),
    [
        (["gender"], "no column 'gender'. The columns: age, hours-per-week, relationship, sex"),
        (["sexx"], "did you mean 'sex'"),
        (["relationship: Husband - Spouse"], "has no category 'Spouse'. Its categories: Husband"),
        (["relationship: Husband"], "spaces around the minus"),
        (["relationship: Wife - Wife"], "between two categories"),
        (["age: 1 - 2"], "it is a number"),
        ([7], "no column 7"),
        ([[1.0, 2.0]], "vectors of length 7"),
        ([np.zeros(7)], "span nothing"),
        ([None], "column names, contrasts, indices or vectors"),
        ([], "at least one direction"),
        (None, "column names, contrasts, indices or vectors"),
        ([np.full(7, np.nan)], "not finite"),
    ],
)
def test_bad_directions(people, directions, message):
    with pytest.raises(InputError, match=message):
        ExpertSubspace(directions).fit(people)


def test_bad_names_on_arrays_and_encoded_frames(people):
    with pytest.raises(InputError, match="have no column names"):
        ExpertSubspace(["sex"]).fit(np.zeros((3, 2)))
    encoded = TabularDomain.from_frame(people).encode(people)
    with pytest.raises(InputError, match="has no category 'Spouse'"):
        ExpertSubspace(["relationship: Husband - Spouse"]).fit(encoded)


def test_domain_and_feature_map_exclude_each_other(people):
    with pytest.raises(InputError, match="both given"):
        ExpertSubspace(["sex"], domain=TabularDomain(), feature_map=np.abs).fit(people)


@pytest.mark.parametrize(
    ("directions", "told"),
    [
        (["sex"], ("sex",)),
        (["sex", "relationship: Husband - Wife"], ("sex",)),
        (["sex", "age", "sex"], ("sex", "age")),
        (["relationship: Husband - Wife"], ()),
        (["relationship_Wife"], ()),
        ([6, 0], ("sex", "age")),
        ([2], ()),
        (AXES[:1], ()),
        (span(AXES[6]), ()),
    ],
)
def test_the_metric_knows_which_columns_it_was_told_are_sensitive(people, directions, told):
    assert ExpertSubspace(directions).fit(people).metric_.sensitive_features == told


def test_columns_of_encoded_and_numeric_tables_are_told_by_their_names(people):
    encoded = TabularDomain.from_frame(people).encode(people)
    assert ExpertSubspace(["sex", 0]).fit(encoded).metric_.sensitive_features == ("sex", "age")
    numbers = pd.DataFrame({"SEX": [1, 2], "AGE": [30, 40]})
    assert ExpertSubspace("SEX").fit(numbers).metric_.sensitive_features == ("SEX",)
    assert ExpertSubspace([0]).fit(np.zeros((2, 3))).metric_.sensitive_features == ()


def test_a_metric_that_is_zero_is_warned_of(people):
    with pytest.warns(
        UserWarning, match="ExpertSubspace: the metric is zero: all of its 7 directions are free"
    ):
        ExpertSubspace(list(people.columns)).fit(people)
    ExpertSubspace(list(people.columns), weight=0.1).fit(people)
    ExpertSubspace(list(people.columns)[1:]).fit(people)
