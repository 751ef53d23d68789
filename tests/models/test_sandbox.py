"""Model files in a process of their own: the same answers, and nothing that a file does reaches this process."""

import copy
import functools
import io
import json
import os
import pickle
import re
import signal
import struct
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

import likewise as lw
from likewise.core.errors import FormatError, InputError, ModelError
from likewise.models import DifferentiableModel, load_model
from likewise.models.layers import read_relu_network
from likewise.models.sandbox import Limits, SandboxedFile, confined, process
from likewise.models.sandbox.facts import (
    pack_network,
    pack_rows,
    pack_trees,
    read_facts,
    unpack_rows,
    unpack_trees,
)
from likewise.models.sandbox.messages import receive, send
from likewise.models.tree_ensemble import TreeEnsemble, read_trees

pytest.importorskip("xgboost")
IN_THE_TESTS = 120


@pytest.fixture(scope="module")
def sound(fuzz):
    return fuzz.sound_files()


def written(files, folder):
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder / next(iter(files))


def table(fuzz, n=70):
    return fuzz.people(n, seed=3).drop(columns="paid")


# ------------------------------------------------------------------------------------ the same answers

FORMATS = [
    "xgboost json",
    "xgboost json, categories",
    "xgboost ubj, categories",
    "lightgbm",
    "lightgbm, categories",
    "catboost",
    "boosting",
    "onnx",
    "onnx, trees",
    "skops",
    "skops, forest",
]


def same(there, here, read, pack):
    """Whether what is read of two models is the same to the bit, or refused alike."""
    try:
        wanted = pack(read(here))
    except InputError as refused:
        with pytest.raises(InputError, match=re.escape(str(refused)[:60])):
            read(there)
        return
    found = pack(read(there))
    assert json.dumps(found[0]) == json.dumps(wanted[0])
    assert [a.tobytes() for a in found[1]] == [b.tobytes() for b in wanted[1]]


@pytest.mark.parametrize("kind", FORMATS)
def test_answers_trees_and_weights_are_those_of_this_process(kind, fuzz, sound, tmp_path):
    path = written(sound[kind], tmp_path)
    there, here = load_model(path), load_model(path, trust=True)
    assert type(there).__name__.startswith("Sandboxed")
    people = table(fuzz)
    if kind == "onnx, trees":
        people = lw.TabularDomain.from_frame(people).encode_array(people)
    assert there.outputs(people).tobytes() == here.outputs(people).tobytes()
    assert there.predict(people).tolist() == here.predict(people).tolist()
    for name in ("feature_names", "n_features", "takes_frame", "output_kind"):
        assert getattr(there, name) == getattr(here, name)
    assert isinstance(there, DifferentiableModel) == isinstance(here, DifferentiableModel)
    if kind in ("catboost", "skops"):
        with pytest.raises(InputError, match=r"trust=True|outside the sandbox"):
            read_trees(there)
    else:
        same(there, here, read_trees, pack_trees)


def test_the_network_in_an_onnx_file_is_read(fuzz, tmp_path):
    from onnx import helper, numpy_helper

    rng = np.random.default_rng(0)
    shapes = {"v": (2, 3), "b": (3,), "w": (3, 2), "c": (2,)}
    parts = [numpy_helper.from_array(rng.normal(size=s).astype(np.float32), n) for n, s in shapes.items()]
    nodes = [
        helper.make_node("Gemm", ["x", "v", "b"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "w", "c"], ["s"]),
        helper.make_node("Softmax", ["s"], ["probabilities"]),
    ]
    path = onnx_file(tmp_path / "m.onnx", nodes, parts)
    same(load_model(path), load_model(path, trust=True), read_relu_network, pack_network)


def test_a_linear_model_keeps_its_gradient_its_linear_form_and_its_network(fuzz, tmp_path):
    import skops.io
    import torch
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, "yes", "no")
    for number, estimator in enumerate(
        [LogisticRegression(), MLPClassifier((4,), solver="lbfgs", max_iter=40, tol=1.0, random_state=0)]
    ):
        skops.io.dump(estimator.fit(X, y), tmp_path / f"{number}.skops")
        there = load_model(tmp_path / f"{number}.skops")
        here = load_model(tmp_path / f"{number}.skops", trust=True)
        targets = torch.tensor(here.targets(y))
        pair = [m.gradient_oracle()(torch.tensor(X), targets) for m in (there, here)]
        assert all(torch.equal(a, b) for a, b in zip(*pair, strict=True))
        assert (there.linear_form() is None) == (here.linear_form() is None) == (number == 1)
        assert there.predict(X).tolist() == estimator.predict(X).tolist()


def test_the_same_audit_and_the_same_family_for_bounds(fuzz, sound, tmp_path):
    from likewise.auditing.bounds.families import family_of

    path = written(sound["xgboost ubj, categories"], tmp_path)
    people = fuzz.people(40, seed=3)
    frame, y = people.drop(columns="paid"), people["paid"].to_numpy()
    metric = lw.AttributeSubspace(["sex"]).fit(frame).metric_
    domain = lw.TabularDomain.from_frame(frame)
    found = []
    for trust in (False, True):
        model = load_model(path, trust=trust)
        result = lw.audit(
            model, frame, y, metric=metric, domain=domain, eps=0.05, search="candidates", random_state=0
        )
        found.append((result.gap, result.pure_gap, type(family_of(model, domain, encoded=False)).__name__))
    assert found[0] == found[1]
    assert found[0][2] == "TreeFamily"


def test_it_goes_to_another_process_and_into_a_fork(fuzz, sound, tmp_path):
    model = load_model(written(sound["xgboost ubj"], tmp_path))
    people = table(fuzz)
    wanted = model.outputs(people).tobytes()
    sent = pickle.dumps(model)
    (tmp_path / "m.ubj").unlink()
    again = pickle.loads(sent)
    assert again.outputs(people).tobytes() == wanted
    assert copy.copy(again).outputs(people).tobytes() == wanted
    assert pickle.loads(sent).file is again.file, "a process for each part of a table"
    again.file._child.owner = -1  # as it is after a fork
    assert again.outputs(people).tobytes() == wanted


def test_classes_can_be_named_before_the_model_tells_them(sound, fuzz, tmp_path):
    model = load_model(written(sound["onnx"], tmp_path))
    assert model.known_classes is None
    assert set(model.with_classes(["no", "yes"]).predict(table(fuzz))) <= {"no", "yes"}


# --------------------------------------------------------------------------------- what cannot get out


def onnx_file(path, nodes, initializers=()):
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        nodes,
        "crafted",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 2])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [None, 2])],
        initializer=list(initializers),
    )
    made = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    path.write_bytes(made.SerializeToString())
    return path


def hungry(path):
    """A graph that makes 2³¹ numbers of every question."""
    from onnx import helper, numpy_helper

    size = numpy_helper.from_array(np.array([2**31], dtype=np.int64), "s")
    nodes = [
        helper.make_node("ConstantOfShape", ["s"], ["c"]),
        helper.make_node("ReduceSum", ["c"], ["r"], keepdims=0),
        helper.make_node("Add", ["x", "r"], ["y"]),
        helper.make_node("Softmax", ["y"], ["probabilities"]),
    ]
    return onnx_file(path, nodes, [size])


def test_a_started_process_is_confined_and_a_file_that_eats_memory_is_a_sentence(tmp_path):
    """The one test with a process that is started as users start it."""
    kept = process.starter[0]
    process.starter[0] = process.start_process
    try:
        opened = SandboxedFile(hungry(tmp_path / "m.onnx"), "onnx", limits=Limits(2**30, 60.0))
    finally:
        process.starter[0] = kept
    if sys.platform.startswith("linux"):
        assert {"memory", "files"} <= set(opened.held)
    model = lw.models.as_model(opened)
    with pytest.raises(ModelError, match=r"memory|alloc"):
        model.outputs(np.zeros((3, 2)))
    opened.close()
    with pytest.raises(ModelError, match=r"m\.onnx"):
        model.outputs(np.zeros((3, 2)))


def test_a_file_that_never_ends_is_stopped(fuzz, tmp_path):
    endless = dict(fuzz.crafted(tmp_path / "ran"))["onnx, endless"]
    with pytest.raises(
        FormatError, match=r"m\.onnx did not answer within 1 s and was stopped\. .*trust=True"
    ):
        SandboxedFile(written(endless, tmp_path), "onnx", limits=Limits(seconds=1.0))


def test_a_process_that_crashed_says_so_and_answers_the_next_question(fuzz, sound, tmp_path):
    model = load_model(written(sound["lightgbm"], tmp_path))
    before = model.outputs(table(fuzz))
    os.kill(model.file._child.handle.process.pid, 11)
    with pytest.raises(
        ModelError, match=r"m\.txt is a damaged LightGBM model: it crashed .*SIGSEGV.*trust=True"
    ):
        model.outputs(table(fuzz))
    np.testing.assert_array_equal(model.outputs(table(fuzz)), before)


def test_ctrl_c_is_heard_when_the_answer_is_in_and_the_model_goes_on(fuzz, sound, tmp_path, monkeypatch):
    """Broke once: who pressed Ctrl-C was told that the model file is damaged."""
    model = load_model(written(sound["lightgbm"], tmp_path))
    people, sent = table(fuzz), process.send
    wanted = model.outputs(people)

    def pressed(stream, text, arrays, *, times):
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        sent(stream, text, arrays)

    monkeypatch.setattr(process, "send", functools.partial(pressed, times=1))
    with pytest.raises(KeyboardInterrupt):
        model.outputs(people)
    monkeypatch.setattr(process, "send", sent)
    assert model.outputs(people).tobytes() == wanted.tobytes()
    monkeypatch.setattr(process, "send", functools.partial(pressed, times=2))
    with pytest.raises(KeyboardInterrupt):
        model.outputs(people)
    with pytest.raises(ModelError, match=r"m\.txt was stopped in the middle of an answer\. Load it again"):
        model.outputs(people)


def test_ctrl_c_in_the_terminal_does_not_reach_the_process_of_a_model():
    words = [sys.executable, "-P", confined.__file__, json.dumps({"memory": 2**31})]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ) as started:
        send(started.stdin, {"ask": "nothing", "seconds": 60.0})
        receive(started.stdout, most=0)  # it is up
        started.send_signal(signal.SIGINT)
        send(started.stdin, {"ask": "nothing", "seconds": 60.0})
        assert receive(started.stdout, most=0)
        started.stdin.close()
    assert started.returncode == 0


def test_what_the_model_raises_there_is_raised_here(fuzz, sound, tmp_path):
    model = load_model(written(sound["xgboost ubj, categories"], tmp_path))
    with pytest.raises(InputError, match="'pilot', which the model never saw"):
        model.outputs(table(fuzz).assign(job="pilot"))
    with pytest.raises(InputError, match="XGBoostModel: 'X' must be a table"):
        model.outputs(np.zeros((2, 4)))
    assert model.outputs(table(fuzz)).shape == (70, 2)


CONFINED = """
import ctypes, fcntl, importlib.util, json, os, platform, resource, signal, socket, sys, threading
tgkill, shmget = {"aarch64": (131, 194)}.get(platform.machine(), (234, 29))
def call(number, *given):
    if ctypes.CDLL(None, use_errno=True).syscall(number, *given) < 0:
        raise OSError(ctypes.get_errno(), "refused")
spec = importlib.util.spec_from_file_location("confined", sys.argv[1])
confined = importlib.util.module_from_spec(spec)
spec.loader.exec_module(confined)
listening = socket.create_server(("127.0.0.1", 0))
held = confined.confine({"memory": 2**28})
done = {"held": held, "heavy": [name for name in ("numpy", "likewise") if name in sys.modules]}
try:
    done["memory"] = len(bytearray(2**29))
except MemoryError:
    done["memory"] = 0
try:
    with open(sys.argv[2], "wb") as file:
        file.write(b"written")
except OSError:
    pass
def refused(act):
    try:
        act()
    except OSError:
        return True
    return False
done["paths"] = {
    "read": refused(lambda: open(sys.argv[3]).read()),
    "list": refused(lambda: os.listdir(os.path.dirname(sys.argv[3]))),
    "truncate": refused(lambda: os.truncate(sys.argv[3], 0)),
    "rename": refused(lambda: os.rename(sys.argv[3], sys.argv[3] + "2")),
    "remove": refused(lambda: os.remove(sys.argv[3])),
}
done["calls"] = {
    "run": refused(lambda: os.execv("/bin/true", ["true"])),
    "fork": refused(lambda: os._exit(0) if os.fork() == 0 else None),
    "socket": refused(lambda: socket.socket(socket.AF_UNIX)),
    "signal": refused(lambda: os.kill(os.getppid(), 0)),
    "signal of a thread": refused(lambda: call(tgkill, os.getppid(), os.getppid(), 0)),
    "signal by a handle": refused(lambda: fcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, os.getppid())),
    "limits of others": refused(lambda: resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE)),
    "times": refused(lambda: os.utime(sys.argv[3])),
    "attributes": refused(lambda: os.setxattr(sys.argv[3], "user.likewise", b"written")),
    "shared memory": refused(lambda: call(shmget, 12345, 4096, 0o1600)),
    "special files": refused(lambda: os.mkfifo(sys.argv[3] + "2")),
}
signal.signal(signal.SIGUSR1, lambda *_: done.setdefault("own", True))
call(tgkill, os.getpid(), threading.get_native_id(), signal.SIGUSR1)
resource.setrlimit(resource.RLIMIT_CPU, resource.getrlimit(resource.RLIMIT_CPU))
done["privileges"] = {"namespace": refused(lambda: os.setns(os.open("/proc/self/ns/net", os.O_RDONLY), 0) if hasattr(os, "setns") else os.chroot("/"))}
answers = []
thread = threading.Thread(target=answers.append, args=(1,))
thread.start(); thread.join()
done["threads"] = len(answers)
try:
    socket.create_connection(listening.getsockname(), timeout=5).close()
    done["network"] = True
except OSError:
    done["network"] = False
print(json.dumps(done))
"""


def test_limits_hold(tmp_path):
    (tmp_path / "mine").write_text("secret")
    words = [
        sys.executable,
        "-c",
        CONFINED,
        confined.__file__,
        str(tmp_path / "file"),
        str(tmp_path / "mine"),
    ]
    done = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    assert not done["heavy"]
    if "memory" in done["held"]:
        assert done["memory"] == 0
    if "files" in done["held"] and (tmp_path / "file").exists():
        assert not (tmp_path / "file").read_bytes()
    for name in ("paths", "calls", "privileges"):
        if name in done["held"]:
            assert all(done[name].values()), done[name]
    if "paths" in done["held"]:
        assert (tmp_path / "mine").read_text() == "secret"
    assert done["threads"] == 1
    assert done["own"]
    if "network" in done["held"]:
        assert not done["network"]


@pytest.mark.parametrize(("name", "value"), [("GB", "much"), ("SECONDS", "-1")])
def test_limits_of_the_environment(name, value, monkeypatch):
    monkeypatch.setenv(f"LIKEWISE_MODEL_{name}", "2.5")
    limits = Limits.from_environment()
    assert 2.5 in (limits.gigabytes, limits.seconds)
    monkeypatch.setenv(f"LIKEWISE_MODEL_{name}", value)
    with pytest.raises(InputError, match=f"LIKEWISE_MODEL_{name}"):
        Limits.from_environment()


# ----------------------------------------------------------------------------- what crosses is plain data

words = st.one_of(st.none(), st.text(max_size=4), st.just(float("nan")))
mixed = st.one_of(words, st.booleans(), st.integers(-3, 3), st.floats(allow_infinity=True))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(mixed, words, st.floats(width=32), st.integers(-5, 5)), min_size=1, max_size=8))
def test_rows_arrive_as_they_were(rows):
    objects, text, floats, whole = zip(*rows, strict=True)
    frame = pd.DataFrame(
        {
            "objects": pd.Series(objects, dtype=object),
            "text": pd.Series(text, dtype="str"),
            "string": pd.Series([None if w is None or w != w else w for w in text], dtype="string"),
            "floats": np.array(floats, dtype=np.float32),
            "categories": pd.Categorical([str(w) for w in text], ordered=True),
            "masked": pd.array([None if w == 0 else w for w in whole], dtype="Int64"),
            "arrow": pd.array([None if w == 0 else w > 2 for w in whole], dtype="bool[pyarrow]"),
            "times": pd.to_datetime(pd.Series(whole), unit="D"),
            7: np.array(whole, dtype=np.int8),
        }
    )
    stream = io.BytesIO()
    send(stream, *pack_rows(frame))
    stream.seek(0)
    back = unpack_rows(*receive(stream, most=10**6))
    pd.testing.assert_frame_equal(back, frame)
    for a, b in zip(back["objects"], frame["objects"], strict=True):
        assert type(a) is type(b)


def test_what_cannot_travel_is_said():
    with pytest.raises(InputError, match=r"'a' holds complex.*trust=True"):
        pack_rows(pd.DataFrame({"a": pd.Series([1j], dtype=object)}))


def message(text, arrays=()):
    data = json.dumps({"text": text, "arrays": list(arrays)}).encode()
    return struct.pack("<4sI", b"LWM1", len(data)) + data


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        (b"pickle! and more", "not a message"),
        (struct.pack("<4sI", b"LWM1", 2**31), "not a message"),
        (struct.pack("<4sI", b"LWM1", 100_000) + b"[" * 100_000, "not JSON"),
        (message({}, [{"type": "<f8", "shape": [2**40]}]), "at most 1,000"),
        (message({}, [{"type": "|O", "shape": [1]}]), "'type' of part 0"),
        (message({}, [{"type": "<f8", "shape": [-1]}]), "from 0"),
        (message([1]), "must be a mapping"),
    ],
)
def test_answers_in_another_form_are_refused(data, wrong):
    with pytest.raises(FormatError, match=wrong):
        receive(io.BytesIO(data), most=1000)


def test_half_an_answer_is_none():
    with pytest.raises(EOFError):
        receive(io.BytesIO(message({}, [{"type": "<f8", "shape": [4]}]) + b"1234"), most=1000)


FACTS = {
    "number": 0, "adapter": "XGBoostModel", "kind": "scores", "classes": [0, 1], "takes_frame": False,
    "feature_names": ["a", "b"], "n_features": 2, "missing": True, "batch_rows": 10, "decides": False, "guessed": "",
    "keeps_frames": False, "layers": None,
}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "anything"},
        {"classes": [0]},
        {"classes": [[0], [1]]},
        {"classes": 3},
        {"feature_names": ["a"]},
        {"feature_names": [["a"], ["b"]]},
        {"n_features": 10**12},
        {"batch_rows": 0},
        {"number": "0"},
        {"layers": {"roundoff": 1e-9, "sizes": False, "units": []}},
        {"surprise": 1},
    ],
)
def test_a_description_that_does_not_hang_together_is_refused(change):
    assert read_facts(FACTS, []).classes.tolist() == [0, 1]
    with pytest.raises(FormatError):
        read_facts(FACTS | change, [])


def stump():
    return TreeEnsemble.from_nodes(
        roots=[0],
        left=[1, -1, -1],
        right=[2, -1, -1],
        feature=[0, 0, 0],
        threshold=[0.5, 0.0, 0.0],
        values=[[0.0], [-1.0], [2.0]],
        base=[0.0],
        kind="scores",
        n_features=1,
    )


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("left", 9),
        ("left", 0),
        ("right", 1),
        ("right", -1),
        ("feature", 5),
        ("threshold", np.nan),
        ("values", np.inf),
        ("last", 4),
        ("roots", 2),
    ],
)
def test_trees_that_are_none_are_refused(place, value):
    names = (
        "roots",
        "left",
        "right",
        "feature",
        "threshold",
        "missing_left",
        "first",
        "last",
        "listed_left",
        "single",
    )
    text, arrays = pack_trees(stump())
    assert unpack_trees(text, arrays).outputs(np.array([[0.6]])).item() == 2.0
    at = (*names, "codes", "values", "base").index(place)
    arrays[at].reshape(-1)[0] = value
    with pytest.raises(FormatError):
        unpack_trees(text, arrays)


# -------------------------------------------------------------------------------------- broken files


def test_broken_files_are_a_sentence_or_an_audit(fuzz, sound, tmp_path, monkeypatch):
    """120 of the 2,000 of tests/fuzz/fuzz_models.py, through the command."""
    import warnings

    fuzz.people(30, seed=1).to_csv(tmp_path / "people.csv", index=False)
    mark, found = tmp_path / "ran", []
    (tmp_path / "sound.safetensors").write_bytes(sound["own"]["m.safetensors"])
    for number, kind, files in fuzz.all_files(IN_THE_TESTS, 1, mark, sound):
        # Sound files get the time that a busy machine may take.
        monkeypatch.setenv("LIKEWISE_MODEL_SECONDS", "120" if number < 0 else "1")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shown = warnings.showwarning
            done = fuzz.try_files(kind, files, tmp_path, tmp_path / "sound.safetensors")
            warnings.showwarning = shown
        word = fuzz.verdict(done, mark, limit=600)
        assert word == "audited" if number < 0 else word in ("audited", "refused"), (number, kind, done)
        found.append(word)
    assert found.count("refused") > IN_THE_TESTS / 2


def test_variables_stay_here(monkeypatch):
    """Keys and tokens of the environment were there for the model's process to read."""
    monkeypatch.setenv("SECRET_TOKEN", "x")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    _, environment = process._program({})
    assert "SECRET_TOKEN" not in environment
    assert environment["OMP_NUM_THREADS"] == "1"
    assert "paths" in process.held_here() or not sys.platform.startswith("linux")


def test_a_process_that_somebody_killed_is_started_again(fuzz, sound, tmp_path):
    model = load_model(written(sound["xgboost json"], tmp_path))
    rows = table(fuzz)
    before = model.predict_proba(rows)
    for _ in range(2):
        model.file._child.handle.kill()
        model.file._child.handle.wait(5.0)
        np.testing.assert_array_equal(model.predict_proba(rows), before)
