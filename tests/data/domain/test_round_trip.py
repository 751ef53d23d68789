"""decode(encode(frame)) is the frame: values, dtypes, index, library."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal

from likewise.data import TabularDomain
from likewise.datasets import load_adult, load_german

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMERIC = [
    *INTEGERS,
    *(name.replace("int", "Int").replace("uInt", "UInt") for name in INTEGERS),
    "float16",
    "float32",
    "float64",
    "Float32",
    "Float64",
    pd.ArrowDtype(pa.int16()),
    pd.ArrowDtype(pa.float32()),
    pd.ArrowDtype(pa.float64()),
]


@pytest.mark.parametrize("loader", [load_adult, load_german])
def test_every_row_of_the_real_tables(loader):
    data = loader()
    assert_frame_equal(data.domain.decode(data.domain.encode(data.frame)), data.frame, check_exact=True)
    assert data.domain.validate(data.frame) == ()


def test_adult_has_the_41_columns_of_the_paper():
    domain = load_adult().domain
    assert domain.n_features == 41
    assert [len(names) for names in domain.groups_.values()] == [1] * 5 + [7, 7, 14, 6, 1, 1]


@pytest.mark.parametrize("dtype", NUMERIC, ids=str)
def test_numeric_dtypes(dtype):
    frame = pd.DataFrame({"x": pd.Series([3, 1, 100, 7], dtype=dtype)})
    domain = TabularDomain.from_frame(frame)
    assert_frame_equal(domain.decode(domain.encode(frame)), frame, check_exact=True)
    valid = domain.decode(np.array([[-50.0], [50.0], [0.1234]]))
    assert valid["x"].dtype == dtype
    assert valid["x"].tolist()[:2] == [1, 100]


@pytest.mark.parametrize(
    "series",
    [
        pd.Series(["a", "b", "a"], dtype=object),
        pd.Series(["a", "b", "a"], dtype=pd.StringDtype("python")),
        pd.Series(["a", "b", "a"], dtype=pd.StringDtype("pyarrow")),
        pd.Series(["a", "b", "a"], dtype=pd.StringDtype("pyarrow", na_value=np.nan)),
        pd.Series(["a", "b", "a"], dtype=pd.StringDtype("python", na_value=np.nan)),
        pd.Series(["a", "b", "a"], dtype=pd.ArrowDtype(pa.string())),
        pd.Series(["a", "b", "a"], dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))),
        pd.Series([True, False, True]),
        pd.Series([True, True, True]),
        pd.Series([True, False, True], dtype="boolean"),
        pd.Series([True, False, True], dtype=pd.ArrowDtype(pa.bool_())),
        pd.Series([2, "one", True], dtype=object),
        pd.Series(["b", "c", "a"], dtype="category"),
        pd.Series(pd.Categorical(["lo", "hi", "lo"], ["lo", "mid", "hi"], ordered=True)),
        pd.Series(pd.Categorical([3, 1, 3], [3, 2, 1])),
        pd.Series(pd.Categorical([0.5, 1.5, 0.5])),
        pd.Series(pd.Categorical([True, False, True])),
        pd.Series(pd.Categorical(["a", "a", "a"])),
        pd.Series(["only", "only", "only"]),
        pd.Series(["", " ", "ü"]),
    ],
    ids=lambda series: str(series.dtype),
)
def test_categorical_dtypes(series):
    frame = pd.DataFrame({"x": series, "n": [1, 2, 3]})
    domain = TabularDomain.from_frame(frame)
    assert_frame_equal(domain.decode(domain.encode(frame)), frame)
    described = TabularDomain.from_dict(json.loads(json.dumps(domain.to_dict())))
    assert_frame_equal(described.decode(described.encode(frame)), frame)


@pytest.mark.parametrize("values", [[1, 2, 1], [0.5, 2.5, 0.5]])
def test_a_numeric_column_made_categorical_keeps_its_dtype(values):
    frame = pd.DataFrame({"x": values})
    domain = TabularDomain.from_frame(frame, categories={"x": [values[0] + 5]})
    assert domain.n_features == 3
    assert_frame_equal(domain.decode(domain.encode(frame)), frame)


def test_polars_comes_back_as_polars():
    frame = pl.DataFrame(
        {
            "i": pl.Series([1, 2, 3], dtype=pl.Int8),
            "u": pl.Series([1, 2, 3], dtype=pl.UInt32),
            "f": pl.Series([1.5, 2.5, 0.1], dtype=pl.Float32),
            "s": ["x", "y", "z"],
            "b": [True, False, True],
            "c": pl.Series(["u", "v", "u"], dtype=pl.Categorical),
            "e": pl.Series(["lo", "hi", "lo"], dtype=pl.Enum(["lo", "mid", "hi"])),
        }
    )
    domain = TabularDomain.from_frame(frame)
    encoded = domain.encode(frame)
    assert isinstance(encoded, pl.DataFrame)
    assert set(encoded.dtypes) == {pl.Float64}
    decoded = domain.decode(encoded)
    assert decoded.equals(frame)
    assert decoded.schema == frame.schema
    assert domain.column("e").categories == ("hi", "lo", "mid")
    described = TabularDomain.from_dict(json.loads(json.dumps(domain.to_dict())))
    assert described.decode(encoded).schema == frame.schema


def test_a_polars_categorical_knows_only_its_own_levels():
    pl.DataFrame({"other": pl.Series(["never", "here"], dtype=pl.Categorical)})
    frame = pl.DataFrame({"c": pl.Series(["u", "v"], dtype=pl.Categorical)})
    assert TabularDomain.from_frame(frame).column("c").categories == ("u", "v")


def test_arrow_comes_back_as_arrow():
    table = pa.table(
        {
            "i": pa.array([1, 2, 3], pa.int8()),
            "h": pa.array(np.array([1, 2, 3], dtype=np.float16)),
            "f": pa.array([1.5, 2.5, 0.1], pa.float32()),
            "s": ["x", "y", "z"],
            "l": pa.array(["x", "y", "z"], pa.large_string()),
            "v": pa.array(["x", "y", "z"], pa.string_view()),
            "b": [True, False, True],
            "d": pa.array(["v", "u", "v"]).dictionary_encode(),
        }
    )
    required = pa.schema([field.with_nullable(field.name != "i") for field in table.schema])
    table = table.cast(required)
    domain = TabularDomain.from_frame(table)
    for one in (domain, TabularDomain.from_dict(json.loads(json.dumps(domain.to_dict())))):
        encoded = one.encode(table)
        assert isinstance(encoded, pa.Table)
        decoded = one.decode(encoded)
        assert decoded.schema.equals(table.schema)
        assert decoded.equals(table)


def test_libraries_agree_on_the_encoding():
    frame = load_german().frame
    expected = TabularDomain.from_frame(frame).encode_array(frame)
    for table in (pl.from_pandas(frame), pa.Table.from_pandas(frame, preserve_index=False)):
        np.testing.assert_array_equal(TabularDomain.from_frame(table).encode_array(table), expected)


def test_a_domain_encodes_tables_of_another_library():
    frame = pd.DataFrame({"age": [20, 30], "sex": ["f", "m"]})
    domain = TabularDomain.from_frame(frame)
    encoded = domain.encode(pl.from_pandas(frame))
    assert isinstance(encoded, pl.DataFrame)
    assert_frame_equal(domain.decode(encoded), frame)


def test_index_is_kept():
    frame = pd.DataFrame({"age": [20, 30], "sex": ["f", "m"]}, index=pd.Index(["Ann", "Bob"], name="who"))
    domain = TabularDomain.from_frame(frame)
    encoded = domain.encode(frame)
    assert encoded.index.equals(frame.index)
    assert_frame_equal(domain.decode(encoded), frame)


def test_columns_are_found_by_name_not_by_place():
    frame = pd.DataFrame({"age": [20, 30], "sex": ["f", "m"]})
    domain = TabularDomain.from_frame(frame)
    assert_frame_equal(domain.encode(frame[["sex", "age"]]), domain.encode(frame))
    encoded = domain.encode(frame)
    assert_frame_equal(domain.decode(encoded[encoded.columns[::-1]]), frame)


@pytest.mark.parametrize("encoded_dtype", ["float32", "float64"])
def test_short_decimals_come_back_exactly(encoded_dtype):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"cents": rng.integers(0, 10**6, 500) / 100, "offset": 1e4 + rng.integers(0, 99, 500) / 10}
    )
    domain = TabularDomain.from_frame(frame)
    encoded = domain.encode_array(frame).astype(encoded_dtype)
    assert_frame_equal(domain.decode(encoded), frame, check_exact=True)


def test_zeros_and_short_decimals_survive_among_long_ones():
    frame = pd.DataFrame({"x": [0.0, 0.1, 1 / 3, 2e10, 7.25]})
    domain = TabularDomain.from_frame(frame)
    decoded = domain.decode(domain.encode(frame))["x"]
    assert decoded.drop(2).tolist() == frame["x"].drop(2).tolist()
    assert decoded[2] == pytest.approx(1 / 3, abs=1e-5)


def test_zeros_of_a_narrow_float_come_back_as_zeros():
    # Regression: they came back as 4e-16, the rounding of the standardisation.
    frame = pd.DataFrame({"x": pd.Series([0, 0, 0, 1, 13], dtype="float32")})
    domain = TabularDomain.from_frame(frame)
    assert_frame_equal(domain.decode(domain.encode(frame)), frame, check_exact=True)


def test_decoding_does_not_snap_a_value_that_is_no_short_decimal():
    frame = pd.DataFrame({"x": [0.0, 1.0, 10.0]})
    domain = TabularDomain.from_frame(frame)
    column = domain.column("x")
    value = domain.decode(np.array([[(1.234567 - column.mean) / column.scale]]))["x"][0]
    assert value == pytest.approx(1.234567, abs=1e-14)


def test_arrays_have_numbered_columns():
    X = np.array([[1.0, 5.0], [2.0, 7.0]])
    domain = TabularDomain().fit(X)
    encoded = domain.encode(X)
    assert isinstance(encoded, np.ndarray)
    np.testing.assert_array_equal(domain.decode(encoded), X)
    assert domain.get_feature_names_out().tolist() == ["x0", "x1"]
    mixed = np.array([[1, "a"], [2, "b"], [3, "c"]], dtype=object)
    domain = TabularDomain().fit(mixed)
    assert domain.get_feature_names_out().tolist() == ["x0", "x1_a", "x1_b", "x1_c"]
    np.testing.assert_array_equal(domain.decode(domain.encode(mixed)), mixed)
