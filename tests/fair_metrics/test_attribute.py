import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

from likewise.core.errors import InputError
from likewise.core.subspace import Subspace
from likewise.data import TabularDomain
from likewise.fair_metrics import AttributeSubspace


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(400, 5))


def angle(learner, *rows):
    return float(learner.subspace_.principal_angles(Subspace.from_directions(np.stack(rows)))[0])


class TestAgainstScikitLearn:
    """γ on the mean loss is C = 1/(2γn) or α of scikit-learn, up to the factor in front of the squares."""

    gamma = 0.03

    def test_logistic(self, X):
        y = (X @ [1, 2, 0, 0, -1] + np.random.default_rng(1).logistic(size=400)) > 1
        model = LogisticRegression(C=1 / (2 * self.gamma * 400), tol=1e-10, max_iter=10_000).fit(X, y)
        learner = AttributeSubspace(regularization=self.gamma).fit(X, y)
        np.testing.assert_allclose(learner.directions_[0], model.coef_, atol=1e-5)

    def test_softmax(self, X):
        y = (X[:, :3] * 2 + np.random.default_rng(1).gumbel(size=(400, 3))).argmax(1)
        model = LogisticRegression(C=1 / (2 * self.gamma * 400), tol=1e-10, max_iter=10_000).fit(X, y)
        learner = AttributeSubspace(regularization=self.gamma).fit(X, y)
        np.testing.assert_allclose(learner.directions_[0], model.coef_, atol=1e-5)
        assert learner.subspace_.dim == 2

    def test_balanced_classes(self, X):
        y = (X @ [1, 2, 0, 0, -1] + np.random.default_rng(1).logistic(size=400)) > 3
        C = 1 / (2 * self.gamma * 400)
        model = LogisticRegression(C=C, tol=1e-10, max_iter=10_000, class_weight="balanced").fit(X, y)
        learner = AttributeSubspace(regularization=self.gamma, class_weight="balanced").fit(X, y)
        np.testing.assert_allclose(learner.directions_[0], model.coef_, atol=1e-5)

    def test_ridge(self, X):
        y = 50 + 10 * (X @ [1, 2, 0, 0, -1]) + np.random.default_rng(1).normal(size=400)
        model = Ridge(alpha=2 * self.gamma * 400).fit(X, (y - y.mean()) / y.std())
        learner = AttributeSubspace(regularization=self.gamma).fit(X, y)
        np.testing.assert_allclose(learner.directions_[0][0], model.coef_, atol=1e-6)

    def test_poisson(self, X):
        y = np.random.default_rng(1).poisson(np.exp(1 + X @ [0.3, 0.2, 0, 0, -0.1]))
        model = PoissonRegressor(alpha=2 * self.gamma, tol=1e-10, max_iter=10_000).fit(X, y)
        learner = AttributeSubspace(kind="count", regularization=self.gamma).fit(X, y)
        np.testing.assert_allclose(learner.directions_[0][0], model.coef_, atol=1e-5)


def test_own_coordinates_are_left_out_of_the_fit_and_added_to_the_span(X):
    X[:, 0] = (X[:, 1] > 0).astype(float)
    learner = AttributeSubspace([0]).fit(X)
    assert learner.directions_[0][0, 0] == 0.0
    assert learner.subspace_.dim == 2
    assert learner.subspace_.remove(np.eye(5)[:1]) == pytest.approx(np.zeros((1, 5)), abs=1e-12)


def test_several_attributes_each_add_their_own(X):
    frame = pd.DataFrame(X, columns=list("abcde")).assign(g=X[:, 0] > 0.5, r=np.exp(X[:, 1]))
    learner = AttributeSubspace(["g", "r"]).fit(frame)
    assert learner.kinds_ == {"g": "categorical", "r": "continuous"}
    assert learner.subspace_.dim == 4
    one, other = (AttributeSubspace(name).fit(frame).metric_ for name in ("g", "r"))
    assert (one | other).subspace.principal_angles(learner.subspace_)[0] < 1e-6


def test_sensitive_features_of_every_shape(X):
    g = np.where(X[:, 0] > 0, "a", "b")
    expected = AttributeSubspace().fit(X, g).subspace_
    for given in (g, g[:, None], g.tolist(), pd.Series(g), {"g": g}, pd.DataFrame({"g": g})):
        learner = AttributeSubspace().fit(X, sensitive_features=given)
        assert learner.subspace_.principal_angles(expected)[0] < 1e-8
    tensors = AttributeSubspace().fit(torch.tensor(X), sensitive_features=torch.tensor(X[:, 0] > 0))
    assert tensors.subspace_.principal_angles(expected)[0] < 1e-8
    # With attributes named, y is some pipeline's target and no attribute.
    frame = pd.DataFrame({"g": g, "h": X[:, 1] > 0})
    named = AttributeSubspace("g").fit(X, np.arange(400) % 7, sensitive_features=frame)
    assert named.subspace_.principal_angles(expected)[0] < 1e-8


def test_a_sensitive_feature_with_a_columns_name_is_that_column(X):
    frame = pd.DataFrame(X, columns=list("abcde")).assign(sex_Male=(X[:, 0] > 0).astype(float))
    values = pd.Series(np.where(X[:, 0] > 0, "Male", "Female"), name="sex")
    learner = AttributeSubspace().fit(frame, sensitive_features=values)
    assert learner.directions_["sex"][0, 5] == 0.0
    assert learner.subspace_.principal_angles(AttributeSubspace("sex").fit(frame).subspace_)[0] < 1e-6


def test_partly_known_attributes_use_the_rows_that_know_them(X):
    g = (X[:, 0] + X[:, 1] > 0).astype(float)
    known = np.arange(400) < 250
    partly = np.where(known, g, np.nan)
    expected = AttributeSubspace().fit(X[known], g[known]).subspace_
    as_objects = np.where(known, g.astype(object), None)
    for given in (partly, as_objects):
        assert AttributeSubspace().fit(X, given).subspace_.principal_angles(expected)[0] < 1e-7
    frame = pd.DataFrame(X, columns=list("abcde")).assign(g=partly)
    inside = AttributeSubspace("g").fit(frame)
    assert inside.subspace_.dim == 2
    assert np.abs(inside.subspace_.remove(np.append(expected.basis[:, 0], 0.0)[None, :])).max() < 1e-6


def test_partly_known_column_of_a_raw_frame():
    rng = np.random.default_rng(0)
    age = rng.integers(20, 60, size=300)
    sex = np.where(age + rng.normal(size=300) * 5 > 40, "Male", "Female").astype(object)
    sex[::3] = None
    frame = pd.DataFrame({"age": age, "job": rng.choice(["a", "b", "c"], size=300), "sex": sex})
    learner = AttributeSubspace("sex").fit(frame)
    assert learner.subspace_.dim == 2
    assert learner.directions_["sex"][0, 0] > 0.3
    complete = frame.dropna()
    assert learner.metric_.squared_distance(complete[:2], complete[2:4]).shape == (2,)
    with pytest.raises(InputError, match="missing values: 'job'"):
        AttributeSubspace("sex").fit(frame.assign(job=[None, *frame["job"][1:]]))


def test_names_on_raw_and_encoded_frames_mean_the_same():
    rng = np.random.default_rng(0)
    race = rng.choice(["A", "B", "C", "D"], size=500)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 9, size=500) + 5 * (race == "A"),
            "pay": rng.normal(size=500) + (race == "B") - (race == "C"),
            "hours": rng.normal(size=500),
            "tenure": rng.normal(size=500),
            "race": race,
        }
    )
    domain = TabularDomain.from_frame(frame)
    raw = AttributeSubspace("race").fit(frame)
    encoded = AttributeSubspace("race").fit(domain.encode(frame))
    assert raw.kinds_ == encoded.kinds_ == {"race": "categorical"}
    assert raw.subspace_.dim == encoded.subspace_.dim == 7
    np.testing.assert_allclose(raw.directions_["race"], encoded.directions_["race"], atol=1e-6)
    with_array = AttributeSubspace("race", domain=domain).fit(domain.encode_array(frame))
    np.testing.assert_allclose(raw.directions_["race"], with_array.directions_["race"], atol=1e-6)


def test_further_rounds_find_what_the_first_leaves(X):
    # A ring: the class depends on the square, so one linear round cannot take it all away.
    y = (np.abs(X[:, 0]) + 0.8 * X[:, 1]) > 0.5
    dims = [AttributeSubspace(rounds=r, regularization=1e-3).fit(X, y).subspace_.dim for r in (1, 2, 3)]
    assert dims == [1, 2, 3]
    learner = AttributeSubspace(rounds=2, regularization=1e-3).fit(X, y)
    first = AttributeSubspace(regularization=1e-3).fit(X, y).subspace_
    assert learner.subspace_.remove(first.basis.T) == pytest.approx(np.zeros((1, 5)), abs=1e-7)
    with pytest.warns(
        UserWarning, match="AttributeSubspace: the metric is zero: all of its 5 directions are free"
    ):
        everything = AttributeSubspace(rounds=50, regularization=1e-3).fit(X, y)
    assert everything.subspace_.dim == 5


def test_the_order_of_the_rows_does_not_matter(X):
    y = np.array(["x", "y", "z"])[np.clip(np.round(X[:, 0] + 1), 0, 2).astype(int)]
    turned = AttributeSubspace().fit(X[::-1], y[::-1])
    np.testing.assert_allclose(turned.directions_[0], AttributeSubspace().fit(X, y).directions_[0], atol=1e-6)


def test_kinds():
    rng = np.random.default_rng(0)
    values = {
        "text": rng.choice(["a", "b", "c"], size=200),
        "flag": rng.random(200) > 0.5,
        "two": rng.integers(2, size=200) * 1.5,
        "code": rng.integers(5, size=200),
        "visits": rng.poisson(9, size=200) - 0,
        "age": rng.integers(18, 90, size=200),
        "pay": rng.normal(size=200),
    }
    values["visits"][0] = 0
    frame = pd.DataFrame(values)
    learner = AttributeSubspace(regularization=1.0).fit(rng.normal(size=(200, 20)), sensitive_features=frame)
    assert learner.kinds_ == {
        "text": "categorical",
        "flag": "categorical",
        "two": "categorical",
        "code": "categorical",
        "visits": "count",
        "age": "continuous",
        "pay": "continuous",
    }
    chosen = AttributeSubspace(["code", "age"], kind={"code": "count"})
    assert chosen.fit(rng.normal(size=(200, 20)), sensitive_features=frame).kinds_ == {
        "code": "count",
        "age": "continuous",
    }
    listed = AttributeSubspace(["code", "age"], kind=["continuous", "count"])
    assert listed.fit(rng.normal(size=(200, 20)), sensitive_features=frame).kinds_["age"] == "count"


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        ({}, None, "no attribute was given"),
        ({}, ["a"] * 30, "one category only \\('a'\\)"),
        ({}, [np.nan] * 30, "missing in every row"),
        ({}, [None] * 30, "missing in every row"),
        ({}, [1.0] * 29, "lengths differ"),
        ({"kind": "continuous"}, ["a", "b"] * 15, "is not a number"),
        ({"kind": "continuous"}, [3.0] * 30, "one value only"),
        ({"kind": "count"}, [-1.0, 1.0] * 15, "is not a count"),
        ({"kind": "count"}, [0.5, 1.0] * 15, "is not a count"),
        ({"kind": "ordinal"}, [0, 1] * 15, "'kind'"),
        ({"kind": {"other": "count"}}, [0, 1] * 15, "'kind'"),
        ({"regularization": -1}, [0, 1] * 15, "'regularization'"),
        ({"penalty": "l1"}, [0, 1] * 15, "'penalty'"),
        ({"class_weight": "even"}, [0, 1] * 15, "'class_weight'"),
        ({"rounds": 0}, [0, 1] * 15, "'rounds'"),
        ({"weight": 3}, [0, 1] * 15, "'weight'"),
        ({"attributes": []}, [0, 1] * 15, "at least one column"),
        ({"attributes": [9]}, None, "no column 9"),
        ({"attributes": ["sex"]}, None, "have no column names"),
        ({"penalty": "norm", "regularization": 100.0}, [0, 1] * 15, "Lower 'regularization'"),
        ({}, np.ones((30, 2, 2)), "one column per attribute"),
    ],
)
def test_bad_input(parameters, y, message):
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(InputError, match=message):
        AttributeSubspace(**parameters).fit(X, y)


def test_unknown_column_of_a_frame_and_columns_that_are_no_one_hot():
    frame = pd.DataFrame({"age": [1.0, 2.0, 3.0], "q_a": [0.5, 2.0, 1.0], "q_b": [1.0, 2.0, 0.0]})
    with pytest.raises(InputError, match="no column 'sex'"):
        AttributeSubspace("sex").fit(frame)
    with pytest.raises(InputError, match="are not one-hot columns"):
        AttributeSubspace("q").fit(frame)


def test_a_fit_that_stops_early_says_so(X):
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        AttributeSubspace(max_iter=1, regularization=1e-6).fit(X * [1, 100, 1, 1, 1], X[:, 0] > 0)


def test_the_metric_knows_which_columns_of_the_table_are_sensitive():
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "age": rng.normal(40, 9, size=200),
            "pay": rng.normal(size=200),
            "hours": rng.normal(size=200),
            "sex": rng.choice(["F", "M"], size=200),
        }
    )
    numbers = people.assign(sex=np.where(people["sex"] == "M", 1, 2))
    name = rng.choice(["a", "b"], size=200)
    for table in (people, numbers):
        assert AttributeSubspace(["sex"]).fit(table).metric_.sensitive_features == ("sex",)
        given = AttributeSubspace().fit(table, sensitive_features={"sex": people["sex"], "name": name})
        assert given.metric_.sensitive_features == ("sex",)
    hidden = AttributeSubspace("sex", feature_map=lambda X: X[["age", "pay"]].to_numpy()).fit(people)
    assert hidden.metric_.sensitive_features == ("sex",)
    assert (
        AttributeSubspace().fit(people[["age", "pay"]].to_numpy(), people["sex"]).metric_.sensitive_features
        == ()
    )


def test_a_direction_learned_from_very_few_people_is_said_to_be_uncertain():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 6))
    w = np.array([1.0, 0.5, -0.5, 0.0, 0.0, 0.5])
    rare = rng.random(1500) < 0.006 * np.exp(X @ w)
    assert rare.mean() < 0.02
    with pytest.warns(UserWarning, match="only .* of 1,500 people are of one class"):
        learner = AttributeSubspace().fit(X, rare)
    cosine = abs(learner.subspace_.basis[:, 0] @ w) / np.linalg.norm(w)
    assert cosine < 0.97
    many = rng.normal(size=(60_000, 6))
    AttributeSubspace().fit(
        many, rng.random(60_000) < 0.006 * np.exp(many @ w)
    )  # as rare, and enough of them
    AttributeSubspace().fit(X, X @ w + rng.normal(size=1500) > 0)  # as many people, not rare
