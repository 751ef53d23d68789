"""Evidence that was altered is refused: one byte of any file that an audit read or wrote, a file more or less.

    OMP_NUM_THREADS=1 python tests/fuzz/fuzz_evidence.py [--cases 500] [--seed 0]

An audit of an ONNX model whose weights stand in a file of their own is made once, with columns and a config of its
own. Then one thing is altered at a time, and `likewise replay` and `AuditResult.load` must refuse it. Exits with 1 if one
of them does not.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

import likewise as lw
from likewise.core.errors import LikewiseError


def command(*words: str) -> int:
    """Run the command in this process."""
    from likewise.cli.app import main

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            main(list(words))
        except SystemExit as ended:
            return int(ended.code or 0)
    return -1


def onnx_with_weights_apart(path: Path, weights: list[list[float]]) -> None:
    """Write a linear model of two columns whose weights are in a file beside it."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    matrix = numpy_helper.from_array(np.array(weights, dtype=np.float32), "w")
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["y"]),
            helper.make_node("Softmax", ["y"], ["probabilities"]),
        ],
        "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, len(weights)])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [None, 2])],
        [matrix],
    )
    made = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save_model(made, str(path), save_as_external_data=True, location="weights.bin", size_threshold=0)


def prepared(folder: Path) -> list[Path]:
    """Audit a model; return every file that was read or written."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"skill": rng.normal(size=80).round(3), "group": rng.integers(0, 2, 80)})
    people.assign(paid=(people["skill"] > 0).astype(int)).to_csv(folder / "people.csv", index=False)
    onnx_with_weights_apart(folder / "model.onnx", [[-1.0, 1.0], [-0.8, 0.8]])
    (folder / "columns.toml").write_text('[group]\nkind = "category"\n')
    words = ["audit", "model.onnx", "people.csv", "--target", "paid", "--sensitive", "group"]
    (folder / "options.toml").write_text("seed = 3\n")
    words += [
        "--config",
        "options.toml",
        "--columns",
        "columns.toml",
        "--trust",
        "process",
        "-o",
        "evidence/",
        "-q",
    ]
    with contextlib.chdir(folder):
        code = command(*words)
        if code != 0 or command("replay", "evidence", "--trust", "process", "-q") != 0:
            raise RuntimeError(f"the sound evidence is not repeated ({code})")
    score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - 0.8 * frame["group"]))  # noqa: E731
    lw.audit(score, people, sensitive_features=["group"]).save(folder / "result.json")
    lw.AuditResult.load(folder / "result.json")
    return sorted(path for path in folder.rglob("*") if path.is_file())


def alter(path: Path, rng: np.random.Generator) -> str:
    """Alter one file, and say how."""
    kinds = ["byte", "byte", "byte", "byte", "cut", "longer", "deleted", "added", "pipe", "device"]
    kind = kinds[int(rng.integers(len(kinds)))]
    data = bytearray(path.read_bytes())
    if kind == "byte":
        at = int(rng.integers(len(data)))
        data[at] = (data[at] + int(rng.integers(1, 256))) % 256
        path.write_bytes(data)
    elif kind == "cut":
        path.write_bytes(data[: int(rng.integers(len(data)))])
    elif kind == "longer":
        path.write_bytes(bytes(data) + b" ")
    elif kind in ("deleted", "pipe", "device"):
        path.unlink()
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "device":
            path.symlink_to("/dev/zero")
    else:
        beside = "more.txt" if "evidence" in path.parts else f"{path.name}.json"
        target = path.with_name(beside)
        if "evidence" not in path.parts and path.name not in ("model.onnx",):
            path.write_bytes(bytes(data) + b"\n")
            return "longer"
        target.write_text("{}")
    return kind


def refused(folder: Path, path: Path) -> bool:
    if path.name == "result.json":
        try:
            lw.AuditResult.load(path)
        except (LikewiseError, OSError):
            return True
        return False
    with contextlib.chdir(folder):
        return command("replay", "evidence", "--trust", "process", "-q") in (1, 2)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, wrong, seen = np.random.default_rng(options.seed), [], Counter()
    with tempfile.TemporaryDirectory() as place:
        sound, tried = Path(place) / "sound", Path(place) / "tried"
        sound.mkdir()
        names = [path.relative_to(sound) for path in prepared(sound)]
        for number in range(options.cases):
            shutil.rmtree(tried, ignore_errors=True)
            shutil.copytree(sound, tried)
            name = names[number % len(names)]
            how = alter(tried / name, rng)
            seen[how] += 1
            if not refused(tried, tried / name):
                wrong.append(f"{name}: {how}")
    for line in wrong:
        print(line)
    print(f"{options.cases} alterations of {len(names)} files {dict(seen)}: {len(wrong)} not refused")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
