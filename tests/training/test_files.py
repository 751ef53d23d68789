"""Estimators in files: every part comes back, and nothing is executed."""

import json
import struct

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from likewise import training
from likewise.auditing.search.gradient.search import GradientSearch
from likewise.core.errors import FormatError, InputError
from likewise.core.subspace import Subspace
from likewise.data import BoxDomain, TabularDomain, Unbounded
from likewise.fair_metrics import AttributeSubspace, ExpertSubspace, FairMetric
from likewise.models.stored import CannotStoreError, decode, encode
from likewise.training import (
    AdversarialDebiasingClassifier,
    MLPBaselineClassifier,
    SenSRClassifier,
    TrainingConfig,
)

FEW = {"n_steps": 3, "batch_size": 32, "hidden_layer_sizes": (4,), "random_state": 0}


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "pay": rng.normal(3000, 800, 60),
            "job": rng.choice(["clerk", "cook", "nurse"], 60),
            "sex": pd.Categorical(rng.choice(["F", "M"], 60)),
        }
    )


def test_a_model_of_a_raw_table_comes_back_whole(people, tmp_path):
    y = np.where(people["pay"] > 3000, "yes", "no")
    model = SenSRClassifier(
        [AttributeSubspace(["sex"]), ExpertSubspace(["job: cook - nurse"])],
        blind_to=["columns", ExpertSubspace(["sex"])],
        search=GradientSearch(method="adam", subspace_steps=3),
        training=TrainingConfig(patience=3, checkpoint=tmp_path / "run.safetensors"),
        **FEW,
    ).fit(people, y)
    path = tmp_path / "model.safetensors"
    model.save(path)
    loaded = training.load(path)
    assert loaded.predict_proba(people).tobytes() == model.predict_proba(people).tobytes()
    assert list(loaded.feature_names_in_) == ["pay", "job", "sex"]
    assert (
        loaded.metric_.feature_map.encode_array(people).tobytes()
        == model.encoder_.encode_array(people).tobytes()
    )
    np.testing.assert_array_equal(loaded.metric_.basis, model.metric_.basis)
    np.testing.assert_array_equal(loaded.removed_.basis, model.removed_.basis)
    np.testing.assert_array_equal(loaded.search_domain_.lower, model.search_domain_.lower)
    assert isinstance(loaded.metric[0], AttributeSubspace)
    assert loaded.search == model.search
    assert loaded.status_ == "finished"
    assert not hasattr(loaded, "history_")
    # Learners come back as learners: a new fit learns the metric anew.
    assert loaded.fit(people, y).predict_proba(people).tobytes() == model.predict_proba(people).tobytes()


@pytest.mark.parametrize(
    "labels", [["a", "b"], [3, 1], [1.0, 2.0], [False, True], np.array(["x", "y"], dtype=object)], ids=str
)
def test_labels_keep_their_dtype(labels, tmp_path):
    y = np.asarray(labels)[np.arange(20) % 2]
    model = MLPBaselineClassifier(**FEW).fit(np.random.default_rng(0).normal(size=(20, 2)), y)
    model.save(tmp_path / "m.safetensors")
    loaded = training.load(tmp_path / "m.safetensors")
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.classes_.tolist() == model.classes_.tolist()


def test_a_module_of_the_users_own_is_asked_for(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    own = nn.Sequential(nn.Linear(2, 3), nn.Hardtanh(), nn.Linear(3, 2))
    model = MLPBaselineClassifier(module=own, **FEW).fit(X, y)
    path = tmp_path / "m.safetensors"
    model.save(path)
    with pytest.raises(InputError, match="weights of a module of your own"):
        training.load(path)
    other = nn.Sequential(nn.Linear(2, 9), nn.Hardtanh(), nn.Linear(9, 2))
    with pytest.raises(FormatError, match="other weights than the network"):
        training.load(path, module=other)
    fresh = nn.Sequential(nn.Linear(2, 3), nn.Hardtanh(), nn.Linear(3, 2))
    loaded = training.load(path, module=fresh)
    assert loaded.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    MLPBaselineClassifier(**FEW).fit(X, y).save(path)
    with pytest.raises(InputError, match="not trained with a module of your own"):
        training.load(path, module=fresh)


def test_functions_are_left_out_with_a_warning(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    model = MLPBaselineClassifier(
        training=TrainingConfig(lambda p, lr: torch.optim.SGD(p, lr=lr)), **FEW
    ).fit(X, y)
    model.save(tmp_path / "m.safetensors")
    with pytest.warns(UserWarning, match="training could not be written"):
        loaded = training.load(tmp_path / "m.safetensors")
    assert loaded.training is None
    assert loaded.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()


def test_a_metric_that_no_file_can_hold_is_refused(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    model = AdversarialDebiasingClassifier([0], **FEW).fit(X, y)
    model.classes_ = np.array([object(), object()])
    with pytest.raises(InputError, match=r"save: what was learned holds object, .* without pickle"):
        model.save(tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        2.5,
        "x",
        (1, [2, (3,)]),
        {"a": {"b": None}},
        {1: "x", "y": 2},
        BoxDomain([0.0, 1.0], [2.0, 3.0], immutable=[1]),
        Unbounded(),
        TabularDomain(immutable=["sex"], ranges={"age": (0, None)}),
        AttributeSubspace(["sex"], regularization=0.01),
        Subspace.from_directions([[1.0, 2.0]]),
        FairMetric.from_subspace(Subspace.from_directions([[1.0, 2.0]]), 0.5, feature_names=["a", "b"]),
        GradientSearch(method="adam", full_steps=3),
    ],
    ids=lambda v: type(v).__name__,
)
def test_values_come_back(value):
    arrays = {}
    text = json.dumps(encode(value, arrays))
    assert repr(decode(json.loads(text), arrays)) == repr(value)


@pytest.mark.parametrize(
    "value",
    [print, object(), nn.Linear(1, 1)],
    ids=["function", "object", "module"],
)
def test_what_cannot_be_stored(value):
    with pytest.raises(CannotStoreError):
        encode(value, {})


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "m.safetensors"
    with pytest.raises(FileNotFoundError, match="no file"):
        training.load(path)
    path.write_bytes(b"no model")
    with pytest.raises(FormatError, match="not a readable safetensors file"):
        training.load(path)
    ExpertSubspace([0]).fit(np.ones((2, 3))).metric_.save(path)
    with pytest.raises(FormatError, match="is not an estimator"):
        training.load(path)


def test_a_class_that_is_no_estimator_is_not_made(tmp_path):
    path = tmp_path / "m.safetensors"
    X = np.random.default_rng(0).normal(size=(20, 2))
    MLPBaselineClassifier(**FEW).fit(X, np.arange(20) % 2).save(path)
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + size])
    described = json.loads(header["__metadata__"]["likewise"])
    for change, message in (
        ({"class": "load"}, "does not know|damaged"),
        ({"class": "SystemExit"}, "does not know"),
        ({"parameters": {"module": {"object": "SystemExit", "values": {}}}}, "unknown"),
        ({"width": "many"}, "damaged"),
    ):
        header["__metadata__"]["likewise"] = json.dumps({**described, **change})
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + size :])
        with pytest.raises(FormatError, match=message):
            training.load(path)


def described(path, change):
    """Rewrite the description in a file, as `change` says."""
    with safe_open(path, framework="pt") as file:
        description = json.loads(file.metadata()["likewise"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    change(description)
    save_file(tensors, path, metadata={"likewise": json.dumps(description)})


def test_what_the_metric_was_told_comes_back_also_what_is_projected_off(people, tmp_path):
    y = np.where(people["pay"] > 3000, "yes", "no")
    model = SenSRClassifier(
        ExpertSubspace(["job: cook - nurse"]), blind_to=["columns", ExpertSubspace(["sex"])], **FEW
    ).fit(people, y)
    assert model.metric_.sensitive_features == ("sex",)
    model.save(tmp_path / "model")
    assert SenSRClassifier.load(tmp_path / "model").metric_.sensitive_features == ("sex",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(width=10**8), "has 400,000,014 weights, and the file 22"),
        (lambda d: d.update(width=10**15), "from 1 to 100000000"),
        (lambda d: d["parameters"].update(hidden_layer_sizes={"tuple": [10**9]}), "weights, and the file"),
        (lambda d: d["parameters"].update(hidden_layer_sizes={"tuple": ["many"]}), "must be a whole number"),
        (lambda d: d["learned"]["classes_"].update(dtype="<U900000000"), "a type of values"),
        (lambda d: d["learned"].update(predict=3), "which no estimator learns"),
        (lambda d: d["learned"].update(encoder_={"list": []}), "has encoder_ as list"),
        (lambda d: d["learned"].update(n_features_in_={"list": [2]}), "has n_features_in_ as list"),
        (lambda d: d.update(parameters=["module"]), "'parameters' of its description must be a mapping"),
        (lambda d: d.update({"class": ["MLPBaselineClassifier"]}), "'class' of its description must be text"),
        (lambda d: d.update(schema=[1]), "must be a whole number, got a list"),
    ],
)
def test_a_description_in_another_form_is_a_sentence_and_makes_nothing(change, message, tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 2))
    path = tmp_path / "m.safetensors"
    MLPBaselineClassifier(**FEW).fit(X, np.where(np.arange(20) % 2, "yes", "no")).save(path)
    described(path, change)
    with pytest.raises(FormatError, match=message):
        training.load(path)
