"""Model files of every format, small and sound, and seeded ways to break them; `fuzz_models.py` and the tests use them."""

from __future__ import annotations

import copy
import io
import json
import pickle
import re
import struct
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

NUMBERS, WORDS = ["age", "hours"], ["job", "sex"]
HUGE = [2**31 - 1, 2**31, 2**32, 2**40, 2**62, -1, -(2**31), 10**6, 10**9, 0]
LEAVES: list[Any] = [
    [], ["a"], {}, {"a": [1]}, None, True, "", "a" * 300, -1, 0, 1.5, 1e308, 10**12, 2**70, "NaN", [[[]]], "10000000000",
]  # fmt: skip


class Payload:
    """Unpickled, it writes a file: the proof that a loader ran what it was given."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (self.mark, "boom")


def people(n: int = 200, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "hours": rng.integers(10, 60, n),
            "job": rng.choice(["clerk", "cook", "nurse"], n),
            "sex": rng.choice(["Female", "Male"], n),
        }
    )
    score = (frame["age"] - 45) / 12 + 1.5 * (frame["sex"] == "Male") + rng.normal(size=n)
    return frame.assign(paid=(score > 0.5).astype(int))


def sound_files() -> dict[str, dict[str, bytes]]:
    """One small model per format: file names with their bytes; a description beside a file is a second one."""
    table = people()
    frame, y = table.drop(columns="paid"), table["paid"].to_numpy()
    numbers = frame[NUMBERS].astype(float)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        return {
            **_boosted(frame, numbers, y, place),
            **_onnx_and_skops(frame, numbers, y),
            **_own(frame, y, place),
        }


def _boosted(frame: Any, numbers: Any, y: Any, place: Path) -> dict[str, dict[str, bytes]]:
    import catboost
    import lightgbm
    import xgboost

    from likewise.training import FairBoostingClassifier

    categories = frame.astype(dict.fromkeys(WORDS, "category"))
    plain = xgboost.XGBClassifier(n_estimators=3, max_depth=3, n_jobs=1).fit(numbers, y).get_booster()
    words = xgboost.XGBClassifier(n_estimators=3, max_depth=3, enable_categorical=True, n_jobs=1)
    words = words.fit(categories, y).get_booster()
    few = {"n_estimators": 3, "num_leaves": 5, "verbose": -1, "n_jobs": 1}
    light = lightgbm.LGBMClassifier(**few).fit(numbers, y).booster_.model_to_string()
    light_words = lightgbm.LGBMClassifier(**few).fit(categories, y).booster_.model_to_string()
    quiet = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}
    cat = catboost.CatBoostClassifier(iterations=3, depth=3, **quiet).fit(numbers, y)
    cat.save_model(str(place / "m.cbm"))
    fair = FairBoostingClassifier(["sex"], n_estimators=3, random_state=0).fit(frame, y)
    fair.save(place / "m.ubj")
    return {
        "xgboost json": {"m.json": bytes(plain.save_raw("json"))},
        "xgboost json, categories": {"m.json": bytes(words.save_raw("json"))},
        "xgboost ubj": {"m.ubj": bytes(plain.save_raw("ubj"))},
        "xgboost ubj, categories": {"m.ubj": bytes(words.save_raw("ubj"))},
        "lightgbm": {"m.txt": light.encode()},
        "lightgbm, categories": {"m.txt": light_words.encode()},
        "catboost": {"m.cbm": (place / "m.cbm").read_bytes()},
        "boosting": {name: (place / name).read_bytes() for name in ("m.ubj", "m.ubj.likewise.json")},
    }


def _onnx_and_skops(frame: Any, numbers: Any, y: Any) -> dict[str, dict[str, bytes]]:
    import skops.io
    from skl2onnx import to_onnx
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    from likewise.data import TabularDomain

    encode = ColumnTransformer([("n", StandardScaler(), NUMBERS), ("c", OneHotEncoder(), WORDS)])
    pipeline = make_pipeline(encode, LogisticRegression()).fit(frame, y)
    encoded = np.asarray(TabularDomain.from_frame(frame).encode_array(frame), dtype=np.float32)
    forest = RandomForestClassifier(3, max_depth=3, random_state=0).fit(encoded, y)
    graph = to_onnx(pipeline, frame.head(3), options={"zipmap": False})
    trees = to_onnx(forest, encoded[:3], options={"zipmap": False})
    return {
        "onnx": {"m.onnx": graph.SerializeToString()},
        "onnx, trees": {"m.onnx": trees.SerializeToString()},
        "skops": {"m.skops": bytes(skops.io.dumps(pipeline))},
        "skops, forest": {
            "m.skops": bytes(skops.io.dumps(RandomForestClassifier(3, max_depth=3).fit(numbers, y)))
        },
    }


def _own(frame: Any, y: Any, place: Path) -> dict[str, dict[str, bytes]]:
    from likewise.data import TabularDomain
    from likewise.fair_metrics import AttributeSubspace
    from likewise.training import MLPBaselineClassifier

    net = MLPBaselineClassifier(
        domain=TabularDomain.from_frame(frame), hidden_layer_sizes=(4,), n_steps=5, random_state=0
    )
    net.fit(frame, y).save(place / "m.safetensors", training=True)
    AttributeSubspace(["sex"]).fit(frame).metric_.save(place / "metric.safetensors")
    return {
        "own": {"m.safetensors": (place / "m.safetensors").read_bytes()},
        "metric": {"metric.safetensors": (place / "metric.safetensors").read_bytes()},
    }


# ------------------------------------------------------------------------------------------------ ways to break


def flip(data: bytes, rng: np.random.Generator) -> bytes:
    out = bytearray(data)
    for place in rng.integers(len(out), size=int(rng.integers(1, 9))):
        out[place] ^= int(rng.integers(1, 256))
    return bytes(out)


def truncate(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: int(rng.integers(len(data)))]


def cut_and_paste(data: bytes, rng: np.random.Generator) -> bytes:
    a, b, c = (int(v) for v in np.sort(rng.integers(len(data), size=3)))
    return data[:b] + data[a:b] + data[c:] if rng.random() < 0.5 else data[:a] + data[b:]


def huge_word(data: bytes, rng: np.random.Generator) -> bytes:
    out = bytearray(data)
    size = int(rng.choice([4, 8]))
    if len(out) <= size:
        return data
    place = int(rng.integers(len(out) - size))
    value = HUGE[int(rng.integers(len(HUGE)))] & (2 ** (8 * size) - 1)
    out[place : place + size] = value.to_bytes(size, "little" if rng.random() < 0.5 else "big")
    return bytes(out)


def other_number(data: bytes, rng: np.random.Generator) -> bytes:
    """Another number in text: JSON, LightGBM, headers."""
    found = list(re.finditer(rb"-?\d+(\.\d+)?([eE][-+]?\d+)?", data))
    if not found:
        return flip(data, rng)
    out = data
    for match in sorted(rng.choice(len(found), size=min(len(found), int(rng.integers(1, 4))), replace=False))[
        ::-1
    ]:
        new = str(HUGE[int(rng.integers(len(HUGE)))] if rng.random() < 0.7 else rng.normal()).encode()
        out = out[: found[match].start()] + new + out[found[match].end() :]
    return out


def other_leaf(data: bytes, rng: np.random.Generator) -> bytes:
    """Something else where JSON has a value, on any level."""
    try:
        document = json.loads(data)
    except ValueError:
        return other_number(data, rng)
    return json.dumps(_with_other_leaf(document, rng)).encode()


def _with_other_leaf(document: Any, rng: np.random.Generator) -> Any:
    places: list[tuple[Any, Any]] = []
    stack = [document]
    while stack:
        part = stack.pop()
        items = part.items() if isinstance(part, dict) else enumerate(part)
        # Long lists of numbers are one place or two, so that the rest is met as well.
        for count, (key, value) in enumerate(list(items)):
            if count < 40:
                places.append((part, key))
            if isinstance(value, (dict, list)):
                stack.append(value)
    if places:
        part, key = places[int(rng.integers(len(places)))]
        if isinstance(part, dict) and rng.random() < 0.2:
            del part[key]
        else:
            part[key] = copy.deepcopy(LEAVES[int(rng.integers(len(LEAVES)))])
    return document


def other_header(data: bytes, rng: np.random.Generator) -> bytes:
    """Another value in the header of safetensors, or in the description inside."""
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    if rng.random() < 0.8:
        inside = json.loads(header["__metadata__"]["likewise"])
        for _ in range(int(rng.integers(1, 3))):
            inside = _with_other_leaf(inside, rng)
        header["__metadata__"]["likewise"] = json.dumps(inside)
    else:
        header = _with_other_leaf(header, rng)
    text = json.dumps(header).encode()
    claimed = len(text) if rng.random() < 0.95 else HUGE[int(rng.integers(len(HUGE)))] % 2**63
    return struct.pack("<Q", claimed) + text + data[8 + length :]


def other_member(data: bytes, rng: np.random.Generator) -> bytes:
    """A zip archive with one member changed."""
    source = zipfile.ZipFile(io.BytesIO(data))
    names = source.namelist()
    chosen, out = names[int(rng.integers(len(names)))], io.BytesIO()
    with zipfile.ZipFile(out, "w") as target:
        for name in names:
            part = source.read(name)
            if name == chosen and part:
                part = (other_leaf if name.endswith(".json") else flip)(part, rng)
            target.writestr(name, part)
    return out.getvalue()


TEXT = (other_number, other_number, other_leaf, other_leaf)
ANY: tuple[Callable[[bytes, np.random.Generator], bytes], ...] = (flip, truncate, cut_and_paste, huge_word)


def mutated(kind: str, files: dict[str, bytes], rng: np.random.Generator) -> dict[str, bytes]:
    """Break one of a model's files."""
    names = list(files)
    name = names[int(rng.integers(len(names)))]
    ways = [*ANY]
    if name.endswith((".json", ".txt")):
        ways += TEXT
    if name.endswith(".safetensors"):
        ways += [other_header] * 6
    if name.endswith(".skops"):
        ways += [other_member] * 4
    data = ways[int(rng.integers(len(ways)))](files[name], rng)
    out = {**files, name: data}
    if len(names) == 2:
        out = _named_again(out, rng)
    return out


def _named_again(files: dict[str, bytes], rng: np.random.Generator) -> dict[str, bytes]:
    """A description that names the broken file as its own, which is what somebody with bad intentions would do."""
    import hashlib

    model, beside = files
    try:
        about = json.loads(files[beside])
    except ValueError:
        return files
    if isinstance(about, dict) and rng.random() < 0.8:
        about["sha256"] = hashlib.sha256(files[model]).hexdigest()
    return {**files, beside: json.dumps(about).encode()}


def crafted(mark: Path) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Files that nobody makes by accident: graphs that ask for everything, and programs in disguise."""
    yield from ((f"onnx, {name}", {"m.onnx": data}) for name, data in _graphs())
    yield from _programs(mark)
    deep = b"[" * 200_000
    yield "deep json", {"m.json": b'{"learner": ' + deep}
    yield "deep header", {"m.safetensors": struct.pack("<Q", len(deep) + 1) + b"{" + deep}
    for claimed in (2**63, 2**40, 10**8):
        yield "long header", {"m.safetensors": struct.pack("<Q", claimed) + b'{"a":1}'}
    shape = json.dumps({"a": {"dtype": "F64", "shape": [2**20, 2**20], "data_offsets": [0, 8]}}).encode()
    yield "large tensor", {"m.safetensors": struct.pack("<Q", len(shape)) + shape + b"\0" * 8}
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", b"0" * (80 * 2**20))
    yield "zip bomb", {"m.skops": bomb.getvalue()}


def _graphs() -> Iterator[tuple[str, bytes]]:
    from onnx import TensorProto, helper, numpy_helper

    def model(nodes: list[Any], initializers: list[Any] = ()) -> bytes:  # type: ignore[assignment]
        # As many columns as the encoded people have, so that it is asked about them.
        first = numpy_helper.from_array(np.ones((6, 2), dtype=np.float32), "v")
        graph = helper.make_graph(
            [helper.make_node("MatMul", ["people", "v"], ["x"]), *nodes],
            "crafted",
            [helper.make_tensor_value_info("people", TensorProto.FLOAT, [None, 6])],
            [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [None, 2])],
            initializer=[first, *initializers],
        )
        made = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
        return bytes(made.SerializeToString())

    def ints(name: str, values: list[int]) -> Any:
        return numpy_helper.from_array(np.array(values, dtype=np.int64), name)

    node = helper.make_node
    end = node("Softmax", ["x"], ["probabilities"])
    for power in (28, 31, 34, 40):
        fill = [node("ConstantOfShape", ["s"], ["c"]), node("ReduceSum", ["c"], ["r"], keepdims=0)]
        add = [node("Add", ["x", "r"], ["y"]), node("Softmax", ["y"], ["probabilities"])]
        yield f"a constant of 2^{power} numbers", model([*fill, *add], [ints("s", [2**power])])
        wide = [node("Expand", ["x", "s"], ["e"]), node("ReduceSum", ["e"], ["r"], keepdims=0)]
        yield f"expanded 2^{power} times", model([*wide, *add], [ints("s", [2**power, 1, 2])])
    tile = [node("Tile", ["x", "s"], ["t"]), node("ReduceMax", ["t"], ["r"], keepdims=0)]
    add = [node("Add", ["x", "r"], ["y"]), node("Softmax", ["y"], ["probabilities"])]
    yield "tiled", model([*tile, *add], [ints("s", [2**20, 2**16])])
    lies = helper.make_tensor("w", TensorProto.FLOAT, [2, 2], np.zeros(4, np.float32).tobytes(), raw=True)
    for shape in ([2**31, 2**31], [2**62], [-1, 2], [10**6, 10**6]):
        del lies.dims[:]
        lies.dims.extend(shape)
        yield f"weights of shape {shape}", model([node("MatMul", ["x", "w"], ["probabilities"])], [lies])
    yield (
        "gathered beyond the end",
        model([node("Gather", ["x", "i"], ["probabilities"], axis=1)], [ints("i", [0, 10**9])]),
    )
    yield "reshaped to nothing", model([node("Reshape", ["x", "s"], ["probabilities"])], [ints("s", [-1, 7])])
    yield "an operation of nobody", model([node("Run", ["x"], ["probabilities"], domain="evil.ops")])
    yield (
        "at random",
        model([node("RandomNormalLike", ["x"], ["y"]), node("Softmax", ["y"], ["probabilities"])]),
    )
    yield "a random attribute", model([node("Softmax", ["x"], ["probabilities"], axis=2**40)])
    yield "endless", model([_endless(helper, TensorProto), end], [ints("n", [2**62]), _true(numpy_helper)])
    outside = helper.make_tensor("w", TensorProto.FLOAT, [2, 2], b"\0" * 16, raw=True)
    outside.ClearField("raw_data")
    outside.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "../../../../etc/passwd"), ("length", "16")):
        entry = outside.external_data.add()
        entry.key, entry.value = key, value
    yield "weights elsewhere", model([node("MatMul", ["x", "w"], ["probabilities"])], [outside])


def _true(numpy_helper: Any) -> Any:
    return numpy_helper.from_array(np.array(True), "yes")


def _endless(helper: Any, types: Any) -> Any:
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Sin", ["state"], ["next"])],
        "body",
        [info("i", types.INT64, []), info("go", types.BOOL, []), info("state", types.FLOAT, [None, 2])],
        [info("on", types.BOOL, []), info("next", types.FLOAT, [None, 2])],
    )
    return helper.make_node("Loop", ["n", "yes", "x"], ["looped"], body=body)


def _programs(mark: Path) -> Iterator[tuple[str, dict[str, bytes]]]:
    for protocol in (0, 2, 4):
        data = pickle.dumps(Payload(mark), protocol=protocol)
        for name in ("m.pkl", "m.onnx", "m.json", "m.txt", "m.safetensors", "m.skops", "m.pt"):
            yield "pickle", {name: data}
    data = pickle.dumps(Payload(mark))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/version", "3")
    yield "torch", {"m.pt": out.getvalue()}
    loader = {
        "__class__": "write_text",
        "__module__": "pathlib.Path",
        "__loader__": "FunctionNode",
        "content": {},
    }
    unknown = {"__class__": "system", "__module__": "os", "__loader__": "TypeNode", "__id__": 1}
    for schema in (
        loader,
        unknown,
        {"__class__": "eval", "__module__": "builtins", "__loader__": "TypeNode"},
    ):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("schema.json", json.dumps({**schema, "protocol": 2, "_skops_version": "0.11"}))
            archive.writestr("payload.pkl", data)
        yield "skops with a program", {"m.skops": out.getvalue()}
