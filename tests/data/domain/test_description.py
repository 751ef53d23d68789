"""to_dict and from_dict: plain JSON that encodes identically, and refuses what it is not."""

import copy
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from likewise.core.errors import FormatError
from likewise.data import TabularDomain


@pytest.fixture
def people():
    return pd.DataFrame(
        {
            "age": np.array([20, 30, 40], dtype=np.int8),
            "pay": [0.1, 1 / 3, 2e10],
            "job": ["cook", "clerk", "nurse"],
            "size": pd.Categorical(["S", "L", "S"], ["S", "M", "L"], ordered=True),
            "member": [True, False, True],
        }
    )


@pytest.fixture
def domain(people):
    return TabularDomain.from_frame(
        people,
        immutable=("job",),
        ranges={"age": (np.int64(0), np.inf), "pay": (None, 1e11)},
        categories={"job": np.array(["baker"])},
    )


def test_there_and_back(domain, people):
    text = json.dumps(domain.to_dict(), allow_nan=False)
    again = TabularDomain.from_dict(json.loads(text))
    assert again.columns_ == domain.columns_
    assert again.groups_ == domain.groups_
    assert json.dumps(again.to_dict()) == text
    np.testing.assert_array_equal(again.encode_array(people), domain.encode_array(people))
    X = np.random.default_rng(0).normal(size=(50, domain.n_features)) * 3
    np.testing.assert_array_equal(again.project(X), domain.project(X))
    pd.testing.assert_frame_equal(again.decode(X), domain.decode(X))
    assert again.feature_names_in_.tolist() == domain.feature_names_in_.tolist()
    refitted = TabularDomain(**again.get_params()).fit(people)
    assert refitted.columns_ == domain.columns_


def test_arrays(people):
    domain = TabularDomain().fit(people[["age", "pay"]].to_numpy())
    again = TabularDomain.from_dict(json.loads(json.dumps(domain.to_dict())))
    assert not hasattr(again, "feature_names_in_")
    X = np.array([[20.0, 0.1]])
    np.testing.assert_array_equal(again.decode(again.encode(X)), X)


def test_nothing_of_the_rows_is_kept(domain):
    assert set(domain.to_dict()) == {"format", "version", "parameters", "library", "names", "columns"}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: d.update(format="x"), "not a description of a TabularDomain"),
        (lambda d: d.update(version=99), "version 99, this package reads 1"),
        (lambda d: d.pop("columns"), "damaged"),
        (lambda d: d["columns"].pop(), "names and columns"),
        (lambda d: d["columns"][0].update(scale=0.0), "scale 0.0"),
        (lambda d: d["columns"][0].update(kind="odd"), "'kind' of part 0 .* got 'odd'"),
        (lambda d: d["columns"][0].update(lower=500), "empty range"),
        (lambda d: d["columns"][1].update(start=5, stop=6), "do not follow"),
        (lambda d: d["columns"][-1].update(stop=99), "wrong width"),
        (lambda d: d["columns"][0].update(surprise=1), "damaged"),
        (lambda d: d.update(parameters={"odd": 1}), "damaged"),
    ],
)
def test_damage_is_noticed(domain, damage, message):
    values = copy.deepcopy(domain.to_dict())
    damage(values)
    with pytest.raises(FormatError, match=message):
        TabularDomain.from_dict(values)
    with pytest.raises(FormatError, match="not a description"):
        TabularDomain.from_dict([values])


def test_unknown_dtype_names_are_refused(domain, people):
    values = copy.deepcopy(domain.to_dict())
    values["columns"][0]["dtype"]["name"] = "int7"
    with pytest.raises(FormatError, match="int7"):
        TabularDomain.from_dict(values).decode(domain.encode_array(people))


def test_domains_do_not_import_torch():
    code = "import sys, likewise.data; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
