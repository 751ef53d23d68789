import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file, save_file

from likewise.core.errors import FormatError, InputError
from likewise.core.subspace import Subspace
from likewise.data import TabularDomain
from likewise.fair_metrics import FairMetric, euclidean, mahalanobis


@pytest.fixture
def people():
    return pd.DataFrame({"age": [20, 40, 60], "sex": ["Female", "Male", "Male"]})


@pytest.fixture
def metric(people):
    domain = TabularDomain.from_frame(people)
    return FairMetric.from_subspace(Subspace.from_directions([[0.3, 1.0]]), weight=0.1, feature_map=domain)


def metadata(path):
    raw = path.read_bytes()
    return json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])["__metadata__"]


def rewrite(path, **changes):
    description = {**json.loads(metadata(path)["likewise"]), **changes}
    save_file(load_file(path), path, metadata={"likewise": json.dumps(description)})


def test_what_is_saved_is_what_is_loaded(tmp_path, people, metric):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(2, 3))
    for i, saved in enumerate([metric, euclidean(), euclidean(4), mahalanobis(root.T @ root)]):
        path = tmp_path / f"{i}.safetensors"
        saved.save(path)
        loaded = FairMetric.load(path)
        assert loaded.scale == saved.scale
        np.testing.assert_array_equal(loaded.basis, saved.basis)
        np.testing.assert_array_equal(loaded.values, saved.values)
        assert loaded.feature_names == saved.feature_names
    first, again = FairMetric.load(tmp_path / "0.safetensors"), metric
    np.testing.assert_array_equal(first.pairwise(people), again.pairwise(people))
    assert first.budget(age=5) == again.budget(age=5)


def test_same_metric_same_bytes(tmp_path, metric):
    metric.save(tmp_path / "a")
    metric.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_map_that_cannot_be_written_is_refused_unless_left_out(tmp_path):
    metric = FairMetric(1.0, np.zeros((2, 0)), np.zeros(0), np.abs)
    with pytest.raises(InputError, match="save\\(path, feature_map=False\\)"):
        metric.save(tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())
    metric.save(tmp_path / "m.safetensors", feature_map=False)
    assert FairMetric.load(tmp_path / "m.safetensors").feature_map is None


def test_newer_schema_is_refused(tmp_path, metric):
    path = tmp_path / "m.safetensors"
    metric.save(path)
    rewrite(path, schema=2)
    with pytest.raises(FormatError, match="newer version \\(schema 2"):
        FairMetric.load(path)


def test_another_kind_of_file_is_refused(tmp_path, metric):
    path = tmp_path / "m.safetensors"
    save_file({"weight": np.zeros(3)}, path)
    with pytest.raises(FormatError, match="is not a fair metric"):
        FairMetric.load(path)
    metric.save(path)
    rewrite(path, kind="model")
    with pytest.raises(FormatError, match="kind 'model'"):
        FairMetric.load(path)


@pytest.mark.parametrize("content", [b"", b"not a metric at all", b"\xff" * 64])
def test_what_is_no_safetensors_file_is_refused(tmp_path, content):
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)
    with pytest.raises(FormatError, match="damaged or of another kind"):
        FairMetric.load(path)


def test_every_truncation_is_refused(tmp_path, metric):
    path = tmp_path / "m.safetensors"
    metric.save(path)
    whole = path.read_bytes()
    for length in range(0, len(whole), max(1, len(whole) // 60)):
        path.write_bytes(whole[:length])
        with pytest.raises(FormatError):
            FairMetric.load(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"scale": -1},
        {"scale": None},
        {"domain": {"a": 1}},
        {"domain": 3},
        {"feature_names": ["one"]},
        {"schema": "one"},
        {"schema": None},
    ],
)
def test_damaged_description_is_refused(tmp_path, metric, changes):
    path = tmp_path / "m.safetensors"
    metric.save(path)
    rewrite(path, **changes)
    with pytest.raises(FormatError):
        FairMetric.load(path)


@pytest.mark.parametrize("text", ["{", "3", "[]", "null"])
def test_description_that_is_no_description_is_refused(tmp_path, metric, text):
    path = tmp_path / "m.safetensors"
    metric.save(path)
    save_file(load_file(path), path, metadata={"likewise": text})
    with pytest.raises(FormatError):
        FairMetric.load(path)


def test_arrays_that_do_not_fit_are_refused(tmp_path, metric):
    path = tmp_path / "m.safetensors"
    metric.save(path)
    save_file({"basis": np.ones((2, 2)), "values": np.zeros(2)}, path, metadata=metadata(path))
    with pytest.raises(FormatError, match="damaged"):
        FairMetric.load(path)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        FairMetric.load(tmp_path / "none")


def test_told_columns_are_kept(tmp_path, metric):
    told = replace(metric, sensitive_features=("sex", "race"))
    told.save(tmp_path / "m")
    assert FairMetric.load(tmp_path / "m").sensitive_features == ("sex", "race")
    rewrite(tmp_path / "m", sensitive_features="sex")
    with pytest.raises(FormatError, match="damaged"):
        FairMetric.load(tmp_path / "m")
