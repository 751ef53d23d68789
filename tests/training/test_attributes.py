"""Sensitive attributes as codes for an adversary and as vectors for CoCL."""

import numpy as np
import pandas as pd
import pytest

from likewise.core.errors import InputError
from likewise.data import TabularDomain
from likewise.training import AdversarialDebiasingClassifier, CoCLClassifier, MLPBaselineClassifier
from likewise.training.estimators.rows import AttributeCodes, ProxyVectors, TrainingRows

FEW = {"n_steps": 3, "batch_size": 32, "hidden_layer_sizes": (4,), "random_state": 0}


def rows(given, sensitive=None):
    x = np.zeros((len(given), 1))
    return TrainingRows(given, x, np.zeros(len(given), dtype=int), sensitive, None)


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, 50),
            "race": rng.choice(["Asian", "Black", "White"], 50),
            "sex": rng.choice(["F", "M"], 50),
        }
    )


def test_codes_of_raw_encoded_and_separate_attributes_agree(people):
    raw = AttributeCodes.of(rows(people), ["sex", "race"], owner="fit")
    assert raw.values == (("F", "M"), ("Asian", "Black", "White"))
    codes = raw.codes(rows(people), owner="fit")
    assert codes.shape == (50, 2)
    assert (codes[:, 0] == (people["sex"] == "M")).all()
    encoded = TabularDomain.from_frame(people).encode(people)
    seen = AttributeCodes.of(rows(encoded), ["sex", "race"], owner="fit")
    # "M" comes before "not M".
    assert seen.values == (("M", "not M"), ("Asian", "Black", "White"))
    assert (seen.codes(rows(encoded), owner="fit") == np.stack([1 - codes[:, 0], codes[:, 1]], axis=1)).all()
    apart = rows(np.zeros((50, 2)), people[["sex", "race"]].to_dict("list"))
    assert (AttributeCodes.of(apart, None, owner="fit").codes(apart, owner="fit") == codes).all()
    named = rows(np.zeros((50, 2)), people)
    assert (
        AttributeCodes.of(named, ["race"], owner="fit").codes(named, owner="fit")[:, 0] == codes[:, 1]
    ).all()


def test_numbers_with_many_values_are_cut_at_the_median(people):
    found = AttributeCodes.of(rows(people), "age", owner="fit")
    codes = found.codes(rows(people), owner="fit")[:, 0]
    assert (codes == (people["age"] > people["age"].median())).all()
    skewed = rows(np.zeros((40, 1)), np.r_[np.arange(15.0), np.full(25, 20.0)])
    codes = AttributeCodes.of(skewed, None, owner="fit").codes(skewed, owner="fit")
    assert set(codes[:, 0]) == {0, 1}


def test_proxies_are_numbers_as_they_are_and_categories_as_indicators(people):
    found = ProxyVectors.of(rows(people), ["sex", "race", "age"], owner="fit")
    assert found.width == 5
    vectors = found.vectors(rows(people), owner="fit")
    np.testing.assert_array_equal(vectors[:, 0], people["sex"] == "M")
    np.testing.assert_array_equal(vectors[:, 2], people["race"] == "Black")
    np.testing.assert_array_equal(vectors[:, 4], people["age"])
    embedding = np.random.default_rng(0).normal(size=(50, 7))
    names = rows(np.zeros((50, 1)), embedding)
    np.testing.assert_array_equal(
        ProxyVectors.of(names, None, owner="fit").vectors(names, owner="fit"), embedding
    )


@pytest.mark.parametrize("kind", [AdversarialDebiasingClassifier, CoCLClassifier])
def test_what_is_missing_is_said(people, kind):
    y = np.arange(50) % 2
    with pytest.raises(InputError, match="no sensitive attributes were given"):
        kind(**FEW).fit(people, y)
    with pytest.raises(InputError, match="no column 'gender'"):
        kind(["gender"], **FEW).fit(people, y)
    with pytest.raises(InputError, match="'attributes' must be names of columns"):
        kind([9], **FEW).fit(people, y)
    with pytest.raises(InputError, match="at least one column"):
        kind([], **FEW).fit(people, y)
    with pytest.raises(InputError, match="missing values"):
        kind(**FEW).fit(people, y, sensitive_features=[None, "a"] * 25)
    with pytest.raises(InputError, match="'sensitive_features' must be one column per attribute"):
        kind(**FEW).fit(people, y, sensitive_features=np.zeros((50, 1, 1)))


def test_an_attribute_of_one_value_is_no_attribute(people):
    with pytest.raises(InputError, match="'sex' has one value only"):
        AdversarialDebiasingClassifier(["sex"], **FEW).fit(people.assign(sex="F"), np.arange(50) % 2)


@pytest.mark.parametrize(
    "fair",
    [AdversarialDebiasingClassifier(strength=0.5, adversary_lr=0.1), CoCLClassifier(strength=10.0)],
    ids=["adversarial", "cocl"],
)
def test_the_answer_tells_less_of_the_attribute_than_without(fair):
    rng = np.random.default_rng(0)
    sex, skill = rng.integers(2, size=500), rng.normal(size=500)
    X = np.stack([2 * sex - 1 + 0.3 * rng.normal(size=500), skill], axis=1)
    y = (skill + (2 * sex - 1) + rng.normal(size=500) > 0).astype(int)
    leaks = []
    for model in (MLPBaselineClassifier(), fair):
        model.set_params(n_steps=200, batch_size=200, lr=0.02, hidden_layer_sizes=(8,), random_state=0)
        answer = model.fit(X, y, sensitive_features=sex).predict_proba(X)[:, 1]
        leaks.append(max(abs(np.cov(answer[y == c], sex[y == c])[0, 1]) for c in (0, 1)))
        assert model.score(X, y) > 0.7
    assert leaks[1] < 0.3 * leaks[0]
