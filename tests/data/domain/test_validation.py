import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from likewise.core.errors import InputError
from likewise.data import TabularDomain, Violation


@pytest.fixture
def people():
    return pd.DataFrame(
        {
            "job": ["cook", "clerk", "nurse", "cook"],
            "age": [20, 30, 40, 30],
            "pay": [1.5, 2.5, 3.5, 2.5],
            "sex": ["f", "m", "f", "m"],
        },
        index=["w", "x", "y", "z"],
    )


@pytest.fixture
def domain(people):
    return TabularDomain.from_frame(people, immutable=["sex", "age"], ranges={"age": (18, 65)})


def test_a_valid_frame_has_no_violations(domain, people):
    assert domain.validate(people) == ()
    assert domain.validate(people, people) == ()
    assert domain.validate(pl.from_pandas(people)) == ()


def test_each_thing_that_can_be_wrong_is_named_by_row_and_column(domain, people):
    wrong = people.assign(
        age=[17.0, 30.5, np.inf, 66.0], job=["cook", "king", None, "cook"], pay=[np.nan, 2.5, 0.5, 4.0]
    )
    assert domain.validate(wrong)[1:] == (
        Violation(0, "pay", None, "missing"),
        Violation(1, "job", "king", "a category never seen"),
        Violation(1, "age", 30.5, "not a whole number"),
        Violation(2, "job", None, "missing"),
        Violation(2, "age", np.inf, "not finite"),
        Violation(2, "pay", 0.5, "below 1.5"),
        Violation(3, "age", 66.0, "above 65"),
        Violation(3, "pay", 4.0, "above 3.5"),
    )
    assert str(domain.validate(wrong)[0]) == "row 0, 'age' = 17.0: below 18"


def test_text_in_a_numeric_column_is_a_violation(domain, people):
    found = domain.validate(people.assign(age=[20, "30", 40, 30]))
    assert found == (Violation(1, "age", "30", "not a number"),)


def test_immutable_columns_are_held_to_the_origin(domain, people):
    changed = people.assign(sex=["m", "m", "f", "m"], age=[20, 30, 40, 31], pay=2.0)
    assert domain.validate(changed) == ()
    assert domain.validate(changed, people) == (
        Violation(0, "sex", "m", "changed, but immutable"),
        Violation(3, "age", 31, "changed, but immutable"),
    )


def test_encoded_rows_are_checked_too(domain, people):
    X = domain.encode_array(people)
    assert domain.validate(X, X) == ()
    assert domain.validate(torch.tensor(X, dtype=torch.float32)) == ()
    unit = domain.column("age").unit
    bad = X.copy()
    bad[0, domain.group("job")] = [0.5, 0.5, 0.0]
    bad[1, domain.group("age")] += 0.5 * unit
    bad[2, domain.group("sex")] = 0.3
    bad[3, domain.group("pay")] = 9.0
    reasons = {(v.row, v.column): v.reason for v in domain.validate(bad)}
    assert reasons == {
        (0, "job"): "not one of its categories",
        (1, "age"): "not a whole number",
        (2, "sex"): "not one of its categories",
        (3, "pay"): "above 3.5",
    }
    moved = X.copy()
    moved[1, domain.group("age")] += unit
    assert [(v.row, v.column, v.reason) for v in domain.validate(moved, X)] == [
        (1, "age", "changed, but immutable")
    ]
    for vector in ([1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [2.0, -1.0, 0.0], [np.nan, 0.0, 1.0]):
        bad = X.copy()
        bad[0, domain.group("job")] = vector
        assert [v.column for v in domain.validate(bad)] == ["job"]


def test_frame_and_origin_must_be_of_one_kind_and_length(domain, people):
    with pytest.raises(InputError, match="both be frames"):
        domain.validate(people, domain.encode_array(people))
    with pytest.raises(InputError, match="'frame' has 4 rows, 'origin' has 3"):
        domain.validate(people, people.iloc[:3])


def test_nearest_valid_rows_pass(domain, people):
    rng = np.random.default_rng(0)
    origin = domain.encode_array(people)[rng.integers(4, size=500)]
    X = origin + 2 * rng.normal(size=origin.shape)
    valid = domain.nearest_valid(X, origin)
    assert domain.validate(valid, origin) == ()
    assert domain.validate(domain.decode(valid), domain.decode(origin)) == ()
    assert domain.contains(valid, origin).all()
    np.testing.assert_allclose(domain.encode_array(domain.decode(valid)), valid, atol=1e-12)
    pd.testing.assert_frame_equal(domain.decode(domain.nearest_valid(X)), domain.decode(X))


def test_projection_with_an_immutable_simplex(people):
    domain = TabularDomain.from_frame(people, immutable=["job"])
    origin = domain.encode_array(people)
    group = domain.group("job")
    for repeat in (1, 200):  # few rows and many take different ways
        X = np.tile(origin + 1.0, (repeat, 1))
        held = domain.project(X, np.tile(origin, (repeat, 1)))
        np.testing.assert_array_equal(held[:, group], np.tile(origin, (repeat, 1))[:, group])
        np.testing.assert_allclose(domain.project(X)[:, group].sum(axis=1), 1.0)
