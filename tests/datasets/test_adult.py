from __future__ import annotations

import numpy as np
import pytest

from likewise.core.errors import InputError
from likewise.datasets import load_adult


@pytest.fixture(scope="module")
def data():
    return load_adult()


def test_the_facts_of_appendix_d1(data):
    rich = data.y == 1
    white = (data.frame["race"] == "White").to_numpy()
    male = (data.frame["sex"] == "Male").to_numpy()
    shares = {
        # what: (ours, to a tenth of a percent; the paper, which rounds some and cuts some)
        "rich": (rich, 24.8, 25),
        "white": (white, 86.0, 86),
        "rich among whites": (rich[white], 26.2, 26),
        "rich among non-whites": (rich[~white], 15.8, 15),
        "male": (male, 67.5, 67),
        "rich among men": (rich[male], 31.2, 31),
        "rich among women": (rich[~male], 11.4, 11),
    }
    assert data.X.shape == (45222, 41)
    for what, (values, ours, paper) in shares.items():
        percent = 100 * float(np.mean(values))
        assert round(percent, 1) == ours, what
        assert abs(percent - paper) < 1, what


def test_columns_are_those_of_the_paper_in_original_units(data):
    assert data.frame.columns.tolist() == [
        *("age", "education-num", "capital-gain", "capital-loss", "hours-per-week"),
        *("workclass", "marital-status", "occupation", "relationship", "race", "sex"),
    ]
    assert all(data.frame[column].dtype == np.int64 for column in data.frame.columns[:5])
    assert data.frame["age"].between(17, 90).all()
    assert not data.frame.isin(["?"]).any().any()
    assert set(data.frame["sex"]) == {"Female", "Male"}
    assert set(data.frame["race"]) == {"White", "Non-White"}
    assert data.target_names == ("<=50K", ">50K")
    assert set(data.sensitive_features) <= set(data.frame.columns)


def test_encoding_is_standardised_on_everybody_and_one_hot(data):
    X = data.X
    numbers = X.columns[:5].tolist()
    assert numbers == data.frame.columns[:5].tolist()
    np.testing.assert_allclose(X[numbers].mean(), 0, atol=1e-10)
    np.testing.assert_allclose(X[numbers].std(ddof=0), 1, atol=1e-10)
    assert np.isin(X.iloc[:, 5:], (0, 1)).all()
    for column, count in {"workclass": 7, "marital-status": 7, "occupation": 14, "relationship": 6}.items():
        block = X[[name for name in X.columns if name.startswith(f"{column}_")]]
        assert block.shape[1] == count
        assert (block.sum(axis=1) == 1).all()
    assert (X["sex_Male"] == (data.frame["sex"] == "Male")).all()
    assert (X["race_White"] == (data.frame["race"] == "White")).all()


def test_first_person_of_the_file(data):
    assert data.frame.iloc[0].tolist() == [
        *(39, 13, 2174, 0, 40),
        *("State-gov", "Never-married", "Adm-clerical", "Not-in-family", "White", "Male"),
    ]
    assert data.y[0] == 0


def test_ten_splits_are_80_20_disjoint_and_reproducible(data):
    seen = set()
    for i in range(10):
        part = data.with_split(i)
        assert (len(part.train_index), len(part.test_index)) == (36177, 9045)
        assert len(np.union1d(part.train_index, part.test_index)) == 45222
        assert part.split == i
        seen.add(part.test_index.tobytes())
    assert len(seen) == 10
    assert np.array_equal(load_adult(split=3).test_index, data.with_split(3).test_index)


def test_parts_are_the_rows_of_the_split(data):
    part = data.with_split(1)
    assert part.X is data.X
    assert part.X_train.equals(data.X.iloc[part.train_index])
    assert part.X_test.index.equals(part.frame_test.index)
    assert part.frame_train.equals(data.frame.iloc[part.train_index])
    assert np.array_equal(part.y_train, data.y[part.train_index])
    assert np.array_equal(part.y_test, data.y[part.test_index])


def test_a_caller_cannot_corrupt_what_the_next_one_gets(data):
    spoiled = load_adult()
    spoiled.frame.iloc[:, 0] = 0
    spoiled.frame["sex"] = "?"
    spoiled.y[:] = 1
    spoiled.X.iloc[:, 0] = 7.0
    again = load_adult()
    assert again.frame.equals(data.frame)
    assert np.array_equal(again.y, data.y)
    assert again.X.equals(data.X)
    assert again.domain is not spoiled.domain


def test_decoding_gives_the_people_back(data):
    assert data.domain.decode(data.X).equals(data.frame)


def test_bad_split_is_named(data):
    with pytest.raises(InputError, match="load_adult: 'split' must be a whole number >= 0, got -1"):
        load_adult(split=-1)
    with pytest.raises(InputError, match="with_split: 'split'"):
        data.with_split(0.5)
