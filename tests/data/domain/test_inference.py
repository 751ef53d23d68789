"""What a domain learns from a frame and from the user's word."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from likewise.core.errors import InputError
from likewise.data import TabularDomain


@pytest.fixture
def people():
    return pd.DataFrame(
        {
            "sex": ["Male", "Female", "Male", "Male"],
            "age": [20, 30, 40, 30],
            "job": ["cook", "clerk", "nurse", "cook"],
            "pay": [1.5, 2.5, 3.5, 2.5],
            "member": [True, False, True, True],
            "score": [1.0, 2.0, 3.0, 4.0],
        }
    )


def kinds(domain):
    return {column.name: column.kind for column in domain.columns_}


def test_kinds_follow_dtypes(people):
    assert kinds(TabularDomain.from_frame(people)) == {
        "age": "integer",
        "pay": "continuous",
        "score": "continuous",
        "sex": "categorical",
        "job": "categorical",
        "member": "categorical",
    }


def test_numbers_come_first_then_categories_each_in_the_frames_order(people):
    domain = TabularDomain.from_frame(people)
    names = ["age", "pay", "score", "sex_Male", "job_clerk", "job_cook", "job_nurse", "member_True"]
    assert domain.get_feature_names_out().tolist() == names
    assert domain.groups_["job"] == names[4:7]
    assert domain.group("job") == slice(4, 7)
    assert domain.n_features == 8
    assert [column.start for column in domain.columns_] == [0, 1, 2, 3, 4, 7]


def test_columns_say_what_a_coordinate_search_needs(people):
    domain = TabularDomain.from_frame(people, immutable=["sex"])
    age, job, pay = (domain.column(name) for name in ("age", "job", "pay"))
    older = people.assign(age=people["age"] + 1)
    step = domain.encode_array(older) - domain.encode_array(people)
    np.testing.assert_allclose(step[:, age.start], age.unit)
    assert pay.unit is None
    assert job.unit is None
    assert job.width == len(job.categories) == 3
    assert domain.column("sex").immutable
    assert not age.immutable
    assert (age.lower, age.upper, age.mean) == (20, 40, 30.0)
    assert age.scale == pytest.approx(np.std(people["age"]))


def test_ranges_replace_those_of_the_data(people):
    domain = TabularDomain.from_frame(people, ranges={"age": (17.5, 90), "pay": (0, None)})
    age, pay = domain.column("age"), domain.column("pay")
    assert (age.lower, age.upper) == (18, 90)
    assert (pay.lower, pay.upper) == (0, np.inf)
    valid = domain.decode(np.full((1, 8), 1000.0))
    assert valid["age"][0] == 90
    assert valid["pay"][0] > 100
    assert domain.decode(np.full((1, 8), -1000.0))["age"][0] == 18
    lower, upper = domain.bounds()
    assert lower[0] == pytest.approx((18 - age.mean) / age.scale)
    assert upper[1] == np.inf


def test_ranges_narrower_than_the_data_make_rows_of_it_invalid(people):
    domain = TabularDomain.from_frame(people, ranges={"age": (25, 35)})
    assert [(v.row, v.value) for v in domain.validate(people)] == [(0, 20), (2, 40)]


def test_an_open_range_ends_where_the_dtype_ends():
    domain = TabularDomain.from_frame(
        pd.DataFrame({"n": np.array([1, 2], dtype=np.int8)}), ranges={"n": (None, None)}
    )
    assert domain.decode(np.array([[-1e9], [1e9]]))["n"].tolist() == [-128, 127]


def test_bounds_of_a_narrow_float_move_inward_to_what_it_can_hold():
    frame = pd.DataFrame({"p": np.array([0.25, 0.5], dtype=np.float32)})
    domain = TabularDomain.from_frame(frame, ranges={"p": (0.1, 0.7)})
    ends = domain.decode(np.array([[-100.0], [100.0]]))
    assert domain.validate(ends) == ()
    assert 0.1 <= float(ends["p"][0]) < 0.1001
    assert 0.6999 < float(ends["p"][1]) <= 0.7


def test_integers_names_float_columns(people):
    domain = TabularDomain.from_frame(people, integers=["score"])
    assert domain.column("score").kind == "integer"
    decoded = domain.decode(domain.encode_array(people) + 0.05)
    assert decoded["score"].dtype == np.float64
    assert decoded["score"].tolist() == people["score"].tolist()


def test_categories_extend_what_the_frame_shows(people):
    domain = TabularDomain.from_frame(people, categories={"job": ["baker"], "age": None})
    assert domain.column("job").categories == ("baker", "clerk", "cook", "nurse")
    assert domain.column("age").categories == (20, 30, 40)
    assert domain.encode(people.assign(job="baker"))["job_baker"].tolist() == [1.0] * 4


def test_a_category_dtype_is_extended_too():
    frame = pd.DataFrame({"job": pd.Categorical(["b", "a"], ["b", "a"])})
    domain = TabularDomain.from_frame(frame, categories={"job": ["c"]})
    decoded = domain.decode(np.eye(3))
    assert decoded["job"].tolist() == ["a", "b", "c"]
    assert decoded["job"].cat.categories.tolist() == ["b", "a", "c"]


def test_declared_categories_can_exist_though_none_is_seen():
    frame = pd.DataFrame({"job": pd.Categorical(["a", "b"], ["a", "b", "c"]), "member": [True, True]})
    domain = TabularDomain.from_frame(frame)
    assert domain.column("job").categories == ("a", "b", "c")
    assert domain.column("member").categories == (False, True)


def test_one_category_is_one_constant_column():
    frame = pd.DataFrame({"land": ["Y", "Y"]})
    domain = TabularDomain.from_frame(frame)
    assert domain.encode(frame)["land_Y"].tolist() == [1.0, 1.0]
    np.testing.assert_array_equal(domain.project(np.array([[-3.0], [7.0]])), np.ones((2, 1)))
    np.testing.assert_array_equal(domain.nearest_valid(np.array([[0.1]])), np.ones((1, 1)))
    assert domain.decode(np.array([[0.1]]))["land"].tolist() == ["Y"]


def test_a_constant_number_has_scale_one():
    frame = pd.DataFrame({"x": [0.1] * 7, "n": [3] * 7})
    domain = TabularDomain.from_frame(frame)
    assert (domain.encode_array(frame) == 0).all()
    assert domain.column("x").scale == 1.0
    pd.testing.assert_frame_equal(domain.decode(np.full((7, 2), 5.0)), frame, check_exact=True)


@pytest.mark.parametrize(
    "values", [[1e300, -1e300, 5e299], [1e-300, 3e-300, 2e-300], [1e9, 1e9 + 1, 1e9 + 2]]
)
def test_standardising_neither_overflows_nor_underflows(values):
    frame = pd.DataFrame({"x": values})
    domain = TabularDomain.from_frame(frame)
    encoded = domain.encode_array(frame)
    assert encoded.std() == pytest.approx(1.0)
    np.testing.assert_allclose(domain.decode(encoded)["x"], values, rtol=1e-14)


def test_encoded_names_stay_unique():
    frame = pd.DataFrame({"a": ["b_c", "x", "y"], "a_b": ["c", "u", "v"], "a_x": [1, 2, 3]})
    names = TabularDomain.from_frame(frame).get_feature_names_out().tolist()
    assert len(set(names)) == len(names) == 7
    assert "a_x" in names
    assert "a_x#2" in names
    assert "a_b_c#2" in names


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"immutable": ["sx"]}, r"'immutable': 'frame' has no column 'sx' \(did you mean 'sex'\?\)"),
        ({"immutable": "sex"}, r"a list of column names, got 'sex'.* Pass \['sex'\]"),
        ({"integers": ["agee"]}, "did you mean 'age'"),
        ({"integers": ["pay"]}, r"'integers', but holds 1\.5 at row 0"),
        ({"integers": ["job"]}, "'integers', but its dtype .* is categorical"),
        ({"ranges": {"job": (0, 1)}}, "'ranges', but its dtype .* is categorical"),
        ({"ranges": {"agee": (0, 1)}}, "did you mean 'age'"),
        ({"ranges": {"age": 5}}, r"a pair \(lowest, highest\), got 5.*None for an open end"),
        ({"ranges": {"age": (9, 5)}}, r"a pair \(lowest, highest\), got \(9, 5\)"),
        ({"ranges": {"age": (0, np.nan)}}, "finite number"),
        ({"ranges": {"age": (20.2, 20.8)}}, "no value of the column can lie"),
        ({"ranges": [("age", (0, 1))]}, "a dict from column names"),
        ({"categories": {"job": "cook"}}, "a list of categories"),
        ({"categories": {"jobb": ["x"]}}, "did you mean 'job'"),
        ({"categories": {"age": ["old"]}}, r"of dtype int64 cannot hold all .*'old'"),
        ({"categories": {"age": None}, "ranges": {"age": (0, 9)}}, "either numeric or categorical"),
    ],
)
def test_bad_parameters_say_what_to_do(people, parameters, message):
    with pytest.raises(InputError, match=message):
        TabularDomain.from_frame(people, **parameters)


def test_a_range_beyond_the_dtype_is_refused():
    frame = pd.DataFrame({"n": np.array([1, 2], dtype=np.int8)})
    with pytest.raises(InputError, match="int8 holds -128 to 127"):
        TabularDomain.from_frame(frame, ranges={"n": (0, 300)})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pd.to_datetime(["2020-01-01", "2020-01-02"]), "neither a number nor a category"),
        ([1j, 2j], "neither a number nor a category"),
        (pd.arrays.SparseArray([0, 1]), "to_dense"),
        ([["a"], ["b"]], "cannot be categories"),
        ([("a",), ("b",)], "of type tuple"),
        (pd.cut([1, 5], 2), "of type Interval"),
        ([2**60, 1], r"beyond ±2\*\*48, such as 1152921504606846976 at row 0"),
        ([1.7e308, 1.7e308, -1.7e308], "too far to standardise"),
        ([np.inf, 1.0], "1 infinite value"),
        ([np.nan, 1.0], "missing values: 'x' .1 of 2 rows, first at row 0"),
        (["a", None], "missing values: 'x' .1 of 2 rows, first at row 1"),
        (pd.array([1, None], dtype="Int64"), "missing values"),
    ],
    ids=str,
)
def test_columns_that_cannot_be_used(values, message):
    with pytest.raises(InputError, match=message):
        TabularDomain.from_frame(pd.DataFrame({"x": values}))


def test_empty_frames():
    with pytest.raises(InputError, match="has no rows"):
        TabularDomain.from_frame(pd.DataFrame({"x": []}))
    with pytest.raises(InputError, match="has no columns"):
        TabularDomain.from_frame(pd.DataFrame(index=[0, 1]))
    with pytest.raises(InputError, match="has no rows"):
        TabularDomain.from_frame(pa.table({"x": pa.array([], pa.int64())}))


def test_column_names_must_be_unique_as_text():
    with pytest.raises(InputError, match="same name"):
        TabularDomain.from_frame(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(InputError, match="same name"):
        TabularDomain.from_frame(pd.DataFrame([[1, 2]], columns=[1, "1"]))


def test_fitting_again_forgets_the_names():
    domain = TabularDomain().fit(pd.DataFrame({"a": [1, 2]}))
    domain.fit(np.array([[1.0], [2.0]]))
    assert not hasattr(domain, "feature_names_in_")
    assert domain.get_feature_names_out().tolist() == ["x0"]
