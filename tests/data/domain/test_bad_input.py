"""Rows that cannot be encoded or decoded: each error names column, value, row and what to do."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.exceptions import NotFittedError

from likewise.core.errors import InputError
from likewise.data import TabularDomain


@pytest.fixture
def people():
    return pd.DataFrame({"age": [20, 30, 40], "job": ["cook", "clerk", "nurse"], "sex": ["f", "m", "f"]})


@pytest.fixture
def domain(people):
    return TabularDomain.from_frame(people)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"job": ["cook", "cler", "cook"]},
            r"'job' has a category never seen: 'cler' at row 1 \(did you mean 'clerk'\?\)",
        ),
        ({"job": ["king", "king", "cook"]}, "'king' at row 0 and 1 more row"),
        ({"job": ["cook", None, None]}, r"'job' \(2 of 3 rows, first at row 1\).*Drop those rows or impute"),
        ({"age": [20.0, np.nan, 40.0]}, r"'age' \(1 of 3 rows, first at row 1\)"),
        ({"age": [20.0, 30.0, -np.inf]}, "'age' has 1 infinite value.*-inf at row 2"),
        ({"age": ["20", "30", "40"]}, "'age' must hold numbers, got '20' at row 0.*pandas.to_numeric"),
        ({"age": [20, "x", 40]}, "'age' must hold numbers, got 'x' at row 1"),
        (
            {"income": [1, 2, 3]},
            r"does not know: 'income'\. Drop them: frame\[list\(domain.feature_names_in_\)\]",
        ),
    ],
)
def test_rows_that_cannot_be_encoded(domain, people, change, message):
    frame = people.assign(**change)
    for method in (domain.encode, domain.encode_array, domain.transform):
        with pytest.raises(InputError, match=message):
            method(frame)


def test_the_same_in_polars(domain, people):
    frame = pl.from_pandas(people)
    with pytest.raises(InputError, match="'king' at row 0"):
        domain.encode(frame.with_columns(job=pl.lit("king")))
    with pytest.raises(InputError, match=r"'age' \(3 of 3 rows"):
        domain.encode(frame.with_columns(age=pl.lit(None, dtype=pl.Int64)))


def test_missing_column_and_empty_frame(domain, people):
    with pytest.raises(InputError, match=r"no column 'job' \(did you mean 'jobs'\?\)"):
        domain.encode(people.rename(columns={"job": "jobs"}))
    with pytest.raises(InputError, match="has no rows"):
        domain.encode(people.iloc[:0])


def test_numbers_out_of_range_are_encoded(domain, people):
    older = people.assign(age=[120, 30, 40])
    column = domain.column("age")
    assert domain.encode(older)["age"][0] == pytest.approx((120 - column.mean) / column.scale)


def test_other_dtypes_of_the_same_values_are_welcome(domain, people):
    expected = domain.encode_array(people)
    for dtypes in (
        {"age": float},
        {"age": object},
        {"age": "Int16"},
        {"age": "category"},
        {"job": object, "sex": "category"},
        {"job": "string"},
    ):
        np.testing.assert_array_equal(domain.encode_array(people.astype(dtypes)), expected)


def test_arrays_are_taken_by_place_with_scikit_learns_warning(domain, people):
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        encoded = domain.encode(people.to_numpy())
    np.testing.assert_array_equal(encoded, domain.encode_array(people))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_encoded_rows_that_are_not_finite(domain, bad):
    X = np.zeros((3, 5))
    X[1, 2] = bad
    for method in (domain.decode, domain.nearest_valid):
        for rows in (X, torch.tensor(X)):
            with pytest.raises(InputError, match="first at row 1, column 2"):
                method(rows)


def test_encoded_rows_of_the_wrong_shape(domain, people):
    for method in (domain.decode, domain.nearest_valid, domain.project, domain.contains, domain.validate):
        with pytest.raises(InputError, match="4 columns"):
            method(np.zeros((1, 4)))
    with pytest.raises(InputError, match="no column 'job_clerk'"):
        domain.decode(people)
    with pytest.raises(InputError, match="'origin' has 4 columns"):
        TabularDomain.from_frame(people, immutable=["sex"]).project(np.zeros((1, 5)), np.zeros((1, 4)))
    with pytest.raises(InputError, match="'origin' has 2 rows, 'X' has 1"):
        TabularDomain.from_frame(people, immutable=["sex"]).nearest_valid(np.zeros((1, 5)), np.zeros((2, 5)))


def test_unknown_column_of_the_domain(domain):
    with pytest.raises(InputError, match=r"'domain' has no column 'jobb' \(did you mean 'job'\?\)"):
        domain.group("jobb")


def test_before_fit(people):
    domain = TabularDomain()
    for call in (
        lambda: domain.encode(people),
        lambda: domain.decode(np.zeros((1, 5))),
        lambda: domain.project(np.zeros((1, 5))),
        lambda: domain.nearest_valid(np.zeros((1, 5))),
        lambda: domain.validate(people),
        domain.bounds,
        domain.to_dict,
        domain.get_feature_names_out,
        lambda: domain.column("age"),
    ):
        with pytest.raises(NotFittedError):
            call()
