import inspect

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import likewise as lw
from likewise.core.checks import check_integer, check_labels, check_matrix, check_number, check_same_length
from likewise.core.errors import InputError
from likewise.core.frames import check_columns, check_no_missing, is_frame, to_pandas, to_same_library


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_come_back_as_what_they_were(library):
    table = library({"age": [1, 2], "job": ["a", "b"]})
    assert is_frame(table)
    frame = to_pandas(table, owner="test")
    assert isinstance(frame, pd.DataFrame)
    back = to_same_library(frame, table)
    assert type(back) is type(table)
    assert to_pandas(back, owner="test")["job"].tolist() == ["a", "b"]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_bad_cell_is_named_by_column_and_row(library):
    table = library({"age": [1.0, 2.0], "hours": [3.0, float("inf")]})
    with pytest.raises(InputError, match=r"audit: 'X' has 1 value.* row 1, column 'hours'"):
        check_matrix(table, owner="audit")


def test_text_columns_are_named():
    with pytest.raises(InputError, match="not numeric: job"):
        check_matrix(pd.DataFrame({"age": [1], "job": ["a"]}), owner="audit")


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((0, 3)), "no rows"),
        (np.zeros(3), "two-dimensional"),
        ([["a"]], "numeric matrix"),
        (np.zeros((1, 4)), "4 columns, expected 3"),
        (torch.tensor([[float("nan"), 0.0, 0.0]]), "row 0, column 0"),
        (pd.DataFrame({"a": [None, 1.0], "b": [1.0, 1.0], "c": [1, 1]}), "'a' .1 of 2 rows, first at row 0"),
    ],
)
def test_bad_matrices(X, message):
    with pytest.raises(InputError, match=message):
        check_matrix(X, owner="audit", n_features=3)


def test_kinds_are_kept():
    assert check_matrix(torch.zeros(1, 2, dtype=torch.float64), owner="t").dtype == torch.float64
    assert check_matrix(np.zeros((1, 2), dtype=np.float32), owner="t").dtype == np.float32
    assert check_matrix([[1, 2]], owner="t").dtype == np.float64
    assert check_matrix(torch.ones(1, 2, dtype=torch.int64), owner="t").dtype == torch.float32


def test_labels():
    assert check_labels(pd.Series(["no", "yes"]), owner="fit").tolist() == ["no", "yes"]
    assert check_labels(np.array([[0], [1]]), owner="fit").shape == (2,)
    for y, message in [
        ([1, 1], "one class only"),
        ([0.0, np.nan], "1 missing label.*row 1"),
        (["a", None], "1 missing label"),
        (np.zeros((2, 2)), "one label per row"),
        ([], "empty"),
    ]:
        with pytest.raises(InputError, match=message):
            check_labels(y, owner="fit")


def test_lengths_and_numbers():
    assert check_same_length("f", X=[1, 2], y=[1, 2], group=None) == 2
    with pytest.raises(InputError, match="X has 2 rows, y has 1"):
        check_same_length("f", X=[1, 2], y=[1])
    assert check_number(np.float32(0.5), owner="f", name="eps", low=0) == 0.5
    for bad in [-1, np.nan, np.inf, "much", "0.5", None, True]:
        with pytest.raises(InputError, match="'eps' must be a finite number >= 0"):
            check_number(bad, owner="f", name="eps", low=0)
    with pytest.raises(InputError, match="> 0 and < 1"):
        check_number(1, owner="f", name="confidence", low=0, high=1, open_low=True, open_high=True)


def test_columns():
    frame = pd.DataFrame({"sex": ["F"], "race": ["W"]})
    with pytest.raises(InputError, match=r"no column 'gender', 'rase' \(did you mean 'race'\?\)"):
        check_columns(frame, ["gender", "rase"], owner="audit")
    check_no_missing(frame, owner="audit")
    with pytest.raises(InputError, match="same name"):
        to_pandas(pd.DataFrame([[1, 2]], columns=["a", "a"]), owner="audit")
    numbered = pd.DataFrame([[1, 2]])
    assert list(to_pandas(numbered, owner="audit").columns) == ["0", "1"]
    assert list(numbered.columns) == [0, 1]
    with pytest.raises(InputError, match="pandas, polars or arrow"):
        to_pandas([[1]], owner="audit")


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), np.array(3)])
def test_whole_numbers_of_every_kind(value):
    found = check_integer(value, owner="train", name="steps", low=1)
    assert found == 3
    assert type(found) is int


@pytest.mark.parametrize("value", [0, -1, True, np.True_, 2.0, "2", None, np.array([3]), np.nan])
def test_what_is_no_whole_number(value):
    with pytest.raises(
        InputError, match=r"train: 'steps' must be a whole number >= 1, or None, got .*\. Pass 10\."
    ):
        check_integer(value, owner="train", name="steps", low=1, besides="None", remedy="Pass 10.")


# Of each parameter that means the same everywhere, values that mean nothing.
WRONG = {
    "X": [pd.DataFrame({"sex": []})],
    "eps": [True, "0.1", -1, np.nan],
    "delta": ["x"],
    "tau": [-1],
    "limit": [2],
    "tolerance": [True],
    "confidence": [None, 95],
    "test_share": [1],
    "budget_seconds": [True, "x", 0],
    "random_state": [-1, "a", True],
    "alternatives": [1.5],
    "n_jobs": [-1],
    "max_regions": [0, -5, "x"],
    "sample": [0, "x"],
    "missing": ["foo", ["drop"]],
    "encoded": ["maybe"],
    "domain": ["x"],
    "search": [[], ()],
    "progress": [3],
}


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        (verb, name)
        for verb in (lw.audit, lw.verify, lw.explain, lw.recourse, lw.improve)
        for name in WRONG
        if name in inspect.signature(verb).parameters
    ],
)
def test_every_verb_refuses_what_a_parameter_cannot_mean(verb, name):
    people = pd.DataFrame({"age": [20, 30, 40, 50] * 9, "sex": ["F", "M"] * 18})
    right = {"model": lambda frame: frame["age"] / 100, "X": people, "y": [0, 1] * 18, "row": 0}
    needed = {one: right[one] for one, p in inspect.signature(verb).parameters.items() if one in right}
    for value in WRONG[name]:
        with pytest.raises(InputError, match=rf"{verb.__name__}: {name!r} (must be|has no rows)"):
            verb(**needed | {"sensitive_features": ["sex"], name: value})
