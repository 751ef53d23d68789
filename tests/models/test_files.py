"""Model files: every container that is read, and everything that is refused without being run."""

import json
import pickle
import re
import struct
import zipfile
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
import torch
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import likewise as lw
from likewise.core.errors import FormatError, InputError
from likewise.models import load_model
from likewise.models.containers import find_container
from likewise.models.model_files import UnsafeFileWarning, read_model, read_tried
from likewise.models.tree_readers import check_lightgbm, check_xgboost

pytestmark = pytest.mark.usefixtures("fuzz")
RNG = np.random.default_rng(0)
NUMBERS, WORDS = ["age", "hours"], ["job", "sex"]


@pytest.fixture(scope="module")
def people():
    n = 300
    frame = pd.DataFrame(
        {
            "age": RNG.integers(18, 80, n),
            "hours": RNG.integers(10, 60, n),
            "job": RNG.choice(["clerk", "cook", "nurse"], n),
            "sex": RNG.choice(["Female", "Male"], n),
        }
    )
    score = frame["age"] / 20 + 0.8 * (frame["sex"] == "Male") + RNG.normal(size=n)
    return frame, np.where(score > 2.8, "yes", "no")


@pytest.fixture(scope="module")
def pipeline(people):
    encode = ColumnTransformer([("n", StandardScaler(), NUMBERS), ("c", OneHotEncoder(), WORDS)])
    return make_pipeline(encode, LogisticRegression()).fit(*people)


@pytest.fixture(scope="module")
def boosters(people):
    """One small model per boosting library, trained on the table with its categories."""
    import catboost
    import lightgbm
    import xgboost

    frame, y = people[0], (people[1] == "yes").astype(int)
    categories = frame.astype(dict.fromkeys(WORDS, "category"))
    quiet = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}
    return {
        "xgboost": xgboost.XGBClassifier(n_estimators=4, max_depth=3, enable_categorical=True, n_jobs=1).fit(
            categories, y
        ),
        "lightgbm": lightgbm.LGBMClassifier(n_estimators=4, num_leaves=7, verbose=-1, n_jobs=1).fit(
            categories, y
        ),
        "catboost": catboost.CatBoostClassifier(iterations=4, depth=3, cat_features=WORDS, **quiet).fit(
            frame, y
        ),
    }


class Bomb:
    """Unpickled, it writes a file: the proof that a loader ran what it was given."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return (Path.write_text, (self.mark, "boom"))


class Unknown(LogisticRegression):
    """A type that skops has never heard of."""


# ------------------------------------------------------------------------------------ what is read


def test_a_skops_file_gives_the_pipeline_back(people, pipeline, tmp_path):
    skops.io.dump(pipeline, tmp_path / "model.bin")  # a name that says nothing
    model = load_model(tmp_path / "model.bin")
    assert model.takes_frame
    np.testing.assert_array_equal(model.predict(people[0]), pipeline.predict(people[0]))


def test_an_import_path_is_imported_from_the_current_folder(people, tmp_path, monkeypatch):
    (tmp_path / "scoring.py").write_text(
        "class box:\n    @staticmethod\n    def score(X):\n        return (X[:, 0] > 40) * 0.8 + 0.1\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [path for path in __import__("sys").path if path])
    model = load_model("scoring:box.score", takes_frame=False)
    assert model.predict(np.array([[20.0], [60.0]])).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("kind", "suffixes"), [("xgboost", [".json", ".ubj"]), ("lightgbm", [".txt"]), ("catboost", [".cbm"])]
)
def test_boosted_files_predict_as_before_also_from_words(kind, suffixes, people, boosters, tmp_path):
    native = boosters[kind]
    for suffix in suffixes:
        path = tmp_path / f"model{suffix}"
        (native.booster_ if kind == "lightgbm" else native).save_model(str(path))
        model = load_model(path)
        wanted = native.predict_proba(
            people[0] if kind == "catboost" else people[0].astype(dict.fromkeys(WORDS, "category"))
        )
        np.testing.assert_allclose(model.predict_proba(people[0]), wanted, atol=1e-6)


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm"])
def test_a_word_that_a_booster_never_saw_is_named(kind, people, boosters):
    model = lw.models.as_model(boosters[kind])
    with pytest.raises(InputError, match="'pilot', which the model never saw"):
        model.outputs(people[0].head(2).assign(job=["cook", "pilot"]))


def test_an_onnx_file_is_known_by_content(people, pipeline, tmp_path):
    from skl2onnx import to_onnx

    path = tmp_path / "model.dat"
    proto = to_onnx(pipeline, people[0].head(5), options={"zipmap": False})
    path.write_bytes(proto.SerializeToString())
    found = load_model(path, classes=["no", "yes"])
    typed = people[0]
    np.testing.assert_allclose(found.predict_proba(typed), pipeline.predict_proba(typed), atol=1e-5)


def test_our_own_file(people, tmp_path):
    from likewise.training import MLPBaselineClassifier

    frame, y = people
    domain = lw.TabularDomain.from_frame(frame)
    trained = MLPBaselineClassifier(domain=domain, n_steps=20, hidden_layer_sizes=(5,), random_state=0)
    trained.fit(frame, y).save(tmp_path / "model.safetensors")
    model = load_model(tmp_path / "model.safetensors")
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_allclose(model.predict_proba(frame), trained.predict_proba(frame), atol=1e-5)


# -------------------------------------------------------------------------------- what can run code


@pytest.mark.parametrize(
    "suffix",
    [
        ".pkl",
        ".joblib",
        ".onnx",
        ".safetensors",
        ".skops",
        ".json",
        ".ubj",
        ".txt",
        ".cbm",
        ".pt",
        ".pt2",
        "",
    ],
)
@pytest.mark.parametrize("protocol", [0, 4])
def test_a_pickle_is_never_run_whatever_its_name(suffix, protocol, tmp_path):
    mark, path = tmp_path / "ran", tmp_path / f"model{suffix}"
    path.write_bytes(pickle.dumps(Bomb(mark), protocol=protocol))
    with pytest.raises(InputError, match=r"can run any code.*Save the model "):
        load_model(path)
    assert not mark.exists()


@pytest.mark.parametrize("compress", [("zlib", 3), ("gzip", 3), ("bz2", 3), ("xz", 3), ("lzma", 3)])
def test_a_compressed_pickle_is_never_run(compress, tmp_path):
    mark, path = tmp_path / "ran", tmp_path / "model.onnx"
    joblib.dump(Bomb(mark), path, compress=compress)
    with pytest.raises(InputError, match="can run any code"):
        load_model(path)
    assert not mark.exists()


def test_the_bomb_is_live_and_permission_comes_with_a_warning(tmp_path):
    mark, path = tmp_path / "ran", tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps(Bomb(mark)))
    with pytest.warns(UnsafeFileWarning, match="can run any code"), pytest.raises(InputError):
        load_model(path, allow_pickle=True)
    assert mark.exists()


def test_torch_files_need_permission(tmp_path):
    net = torch.nn.Sequential(torch.nn.Linear(2, 2))
    torch.save(net, tmp_path / "net.pt")
    torch.save(net.state_dict(), tmp_path / "weights.pt")
    with zipfile.ZipFile(tmp_path / "script.pt", "w") as archive:
        archive.writestr("script/data.pkl", b"")
        archive.writestr("script/code/__torch__.py", b"")
    with zipfile.ZipFile(tmp_path / "program.pt2", "w") as archive:
        archive.writestr("program/archive_format", b"pt2")
    kinds = {"net.pt": "torch", "script.pt": "torchscript", "program.pt2": "pt2"}
    for name, kind in kinds.items():
        assert find_container((tmp_path / name).read_bytes(), name) == kind
        with pytest.raises(InputError, match="can run any code"):
            load_model(tmp_path / name)
    with pytest.warns(UnsafeFileWarning):
        model = load_model(tmp_path / "net.pt", allow_pickle=True)
    assert model.predict(np.zeros((3, 2))).shape == (3,)
    with pytest.warns(UnsafeFileWarning), pytest.raises(FormatError, match="holds a dictionary"):
        load_model(tmp_path / "weights.pt", allow_pickle=True)


def test_a_skops_file_with_an_unknown_type_is_refused_by_name(people, tmp_path):
    frame, y = people
    skops.io.dump(Unknown().fit(frame[NUMBERS], y), tmp_path / "model.skops")
    with pytest.raises(InputError, match=r"types that skops does not know.*Unknown.*trusted=") as refused:
        load_model(tmp_path / "model.skops")
    name = re.search(r"harmless: (\S+)\. ", str(refused.value)).group(1)
    assert read_model(tmp_path / "model.skops", trusted=[name], trust=True).container == "skops"


def skops_kinds():
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import (
        GradientBoostingClassifier,
        HistGradientBoostingClassifier,
        RandomForestClassifier,
        VotingClassifier,
    )
    from sklearn.model_selection import GridSearchCV
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.svm import SVC

    return [
        LogisticRegression(),
        RandomForestClassifier(3),
        HistGradientBoostingClassifier(max_iter=3),
        GradientBoostingClassifier(n_estimators=3),
        KNeighborsClassifier(),
        SVC(),
        MLPClassifier((3,), max_iter=500, tol=0.1),
        CalibratedClassifierCV(LogisticRegression(), cv=2),
        GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2, scoring="roc_auc"),
        VotingClassifier([("a", LogisticRegression()), ("b", RandomForestClassifier(2))]),
    ]


def test_what_scikit_learn_makes_is_read_from_skops_without_naming_types(people, tmp_path, recwarn):
    frame, y = people
    path = tmp_path / "model.skops"
    words = make_column_selector(dtype_exclude="number")
    for estimator in skops_kinds():
        encode = ColumnTransformer(
            [("c", OneHotEncoder(sparse_output=False), words)], remainder=StandardScaler()
        )
        fitted = make_pipeline(encode, estimator).fit(frame, y)
        skops.io.dump(fitted, path)
        native = read_model(path, trust=True).native
        np.testing.assert_array_equal(native.predict(frame), fitted.predict(frame))


def test_a_skops_file_is_audited_by_the_command_line(people, tmp_path, monkeypatch, capsys):
    from likewise.cli.app import main

    monkeypatch.chdir(tmp_path)
    frame, y = people
    encode = ColumnTransformer([("n", StandardScaler(), NUMBERS), ("c", OneHotEncoder(), WORDS)])
    fitted = make_pipeline(encode, skops_kinds()[3]).fit(frame, y)
    skops.io.dump(fitted, "model.skops")
    frame.assign(paid=y).to_csv("people.csv", index=False)
    with pytest.raises(SystemExit) as ended:
        main(["audit", "model.skops", "people.csv", "--target", "paid", "--sensitive", "sex", "--metric", "columns",
              "--eps", "0", "--favourable", "yes", "-o", "audit.json"])  # fmt: skip
    assert ended.value.code == 0, capsys.readouterr().err
    twins = [fitted.predict(frame.assign(sex=sex)) for sex in ("Female", "Male")]
    assert json.dumps(float((twins[0] != twins[1]).mean())) in (tmp_path / "audit.json").read_text()


def shout(words):
    return words


def test_what_can_read_files_or_run_code_stays_refused(tmp_path):
    from functools import partial
    from operator import methodcaller

    from sklearn.compose import make_column_transformer
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import FunctionTransformer

    path = tmp_path / "model.skops"
    (tmp_path / "secret").write_text("yes no")
    frame = pd.DataFrame({"text": [str(tmp_path / "secret")] * 4})
    read = make_column_transformer((CountVectorizer(input="filename"), "text"))
    skops.io.dump(make_pipeline(read, LogisticRegression()).fit(frame, [0, 1, 0, 1]), path)
    for trust in (False, True):
        with pytest.raises(InputError, match=r"CountVectorizer with input='filename'.*opens the files"):
            load_model(path, trust=trust)
    for function in (shout, partial(shout), methodcaller("to_csv", "out.csv"), [].append):
        skops.io.dump(make_pipeline(FunctionTransformer(function), LogisticRegression()), path)
        with pytest.raises((InputError, FormatError)):
            load_model(path, trust=True)


def test_compiled_parts_are_not_loaded_into_this_process_because_a_trial_went_well(people, tmp_path):
    frame, y = people
    path = tmp_path / "model.skops"
    skops.io.dump(skops_kinds()[1].fit(frame[NUMBERS], y), path)
    with pytest.raises(InputError, match=re.escape("sklearn.tree._tree.Tree")):
        read_tried(path)


# ------------------------------------------------------------------------------- what is no model


def test_a_zip_bomb_is_not_unpacked(tmp_path):
    path = tmp_path / "model.skops"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", b"0" * (80 * 2**20))
    assert path.stat().st_size < 2**20
    with pytest.raises(FormatError, match="zip bomb"):
        load_model(path)


HEADER = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"<!DOCTYPE html><html><body>Sign in</body></html>", "web page"),
        (b"age,sex,target\n20,F,no\n", "not a model file that likewise knows"),
        (b'{"a": 1}', "not an XGBoost model"),
        (b'{"learner": {', "damaged"),
        (b"PK\x03\x04 nothing else", "damaged zip archive"),
        (b"PAR1....PAR1", "Parquet table"),
        (b"\x89HDF\r\n\x1a\n....", "HDF5"),
        (struct.pack("<Q", len(HEADER)) + HEADER + b"\0\0\0\0", "not the model they belong to"),
        (np.random.default_rng(1).bytes(5000), "not a model file that likewise knows"),
    ],
)
def test_what_is_no_model_is_said(data, message, tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=message):
        load_model(path)


def test_a_metric_is_not_a_model(people, tmp_path):
    lw.ExpertSubspace(["sex"]).fit(people[0]).metric_.save(tmp_path / "metric.safetensors")
    with pytest.raises(FormatError, match="fair metric, not a model"):
        load_model(tmp_path / "metric.safetensors")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("no/such/file.onnx", "there is no file"),
        ("no_such_module:model", "no module 'no_such_module'"),
        ("json:no_such_thing", "has no 'no_such_thing'"),
        (".", "one file"),
    ],
)
def test_sources_that_are_not_there(source, message):
    with pytest.raises(InputError, match=message):
        load_model(source)


def test_a_module_that_raises_is_a_message(tmp_path, monkeypatch):
    (tmp_path / "broken_module.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="raised ZeroDivisionError"):
        load_model("broken_module:model")


# ---------------------------------------------------------------------------------- broken trees


def xgboost_document(boosters):
    return json.loads(boosters["xgboost"].get_booster().save_raw("json"))


def break_tree(document, field, value):
    document["learner"]["gradient_booster"]["model"]["trees"][0][field][0] = value
    return document


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("left_children", 10**6, "child does not exist"),
        ("left_children", 0, "own descendant"),
        ("split_indices", 10**6, "splits on feature 1000000"),
        ("categories_segments", 10**6, "beyond the end"),
    ],
)
def test_broken_xgboost_trees_are_named(field, value, message, boosters):
    document = xgboost_document(boosters)
    check_xgboost(document)
    trees = document["learner"]["gradient_booster"]["model"]["trees"]
    if field == "categories_segments":  # put a tree with categories first
        trees.sort(key=lambda tree: -len(tree["categories"]))
        assert trees[0]["categories"]
    with pytest.raises(FormatError, match=message):
        check_xgboost(break_tree(document, field, value))


@pytest.mark.parametrize(
    ("pattern", "new", "message"),
    [
        (r"left_child=-?\d+", "left_child=100000", "child does not exist"),
        (r"left_child=-?\d+", "left_child=0", "own descendant"),
        (r"split_feature=\d+", "split_feature=99", "splits on feature 99"),
        (r"leaf_value=\S+ ", "leaf_value=", "does not have a value"),
        (r"cat_boundaries=0", "cat_boundaries=7", "beyond the end"),
    ],
)
def test_broken_lightgbm_trees_are_named(pattern, new, message, boosters):
    text = boosters["lightgbm"].booster_.model_to_string()
    check_lightgbm(text)
    assert re.search(pattern, text)
    with pytest.raises(FormatError, match=message):
        check_lightgbm(re.sub(pattern, new, text, count=1))


def test_a_file_that_crashes_its_library_crashes_only_the_child(boosters, tmp_path):
    # LightGBM trusts the sizes in its header and aborts the process; XGBoost reads past the end of a tree.
    text = boosters["lightgbm"].booster_.model_to_string()
    (tmp_path / "model.txt").write_text(re.sub(r"tree_sizes=\d+", "tree_sizes=3", text))
    with pytest.raises(FormatError, match="damaged LightGBM model"):
        load_model(tmp_path / "model.txt")
    (tmp_path / "model.json").write_text(
        json.dumps(break_tree(xgboost_document(boosters), "left_children", 10**6))
    )
    with pytest.raises(FormatError, match="damaged XGBoost model"):
        load_model(tmp_path / "model.json")
    (tmp_path / "model.cbm").write_bytes(b"CBM1" + RNG.bytes(400))
    with pytest.raises(FormatError, match="damaged CatBoost model"):
        load_model(tmp_path / "model.cbm")
    (tmp_path / "model.onnx").write_bytes(b"\x08\x09\x3a\x02\x08\x01")
    with pytest.raises(FormatError, match="damaged ONNX model"):
        load_model(tmp_path / "model.onnx")
