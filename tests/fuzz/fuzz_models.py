"""Broken and hostile model files through the command: no crash, no hang, nothing run, one sentence.

    OMP_NUM_THREADS=1 python tests/fuzz/fuzz_models.py [--files 2000] [--seed 0] [--seconds 20] [--start-processes]

Every file is audited by `likewise audit` on 60 people. The command runs in a process that goes on to the next file, so
that a crash of it shows; the process of each model file is forked from one that has its libraries loaded, instead of
started, which saves two seconds per file (--start-processes does not save them). Metrics go in as --metric.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from mutated_models import crafted, mutated, people, sound_files  # noqa: E402

LIBRARIES = [
    "numpy",
    "pandas",
    "xgboost",
    "lightgbm",
    "catboost",
    "onnx",
    "onnxruntime",
    "skops.io",
    "sklearn.ensemble",
]
OPTIONS = [
    "--target",
    "paid",
    "--sensitive",
    "sex",
    "--set",
    "search=candidates",
    "--quiet",
    "--trust",
    "sklearn.tree._tree.Tree",
]
ALLOWED = (0, 1, 2, 3)


class Forked:
    """A process that was forked."""

    def __init__(self, process: Any) -> None:
        self.process = process

    def kill(self) -> None:
        self.process.kill()

    def wait(self, timeout: float) -> int | None:
        self.process.join(timeout)
        code: int | None = self.process.exitcode
        return code


def serve(questions: Any, answers: Any, limits: dict[str, Any]) -> None:
    """Be the process of a model file; pipes arrive as connections."""
    from likewise.models.sandbox.child import serve as answer
    from likewise.models.sandbox.confined import confine

    held = confine(limits)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for taken in (0, 1, 2):
        os.dup2(nowhere, taken)
    answer(os.dup(questions.fileno()), os.dup(answers.fileno()), held)


def fork_instead(*more: str) -> None:
    """Let processes of model files be forked from one that has everything loaded, and `more`."""
    from likewise.models.sandbox import process

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        [
            *LIBRARIES,
            "likewise.models.sandbox.child",
            "likewise.models.boosted",
            "likewise.models.stored",
            "likewise.training.boosting.classifier",
            *more,
        ]
    )

    def start(limits: Any, paths: Any = (), files: Any = ()) -> Any:
        ask_there, ask_here = context.Pipe(duplex=False)
        tell_here, tell_there = context.Pipe(duplex=False)
        made = context.Process(
            target=serve,
            args=(ask_there, tell_there, {"memory": limits.memory, "files": list(files)}),
            daemon=True,
        )
        made.start()
        ask_there.close()
        tell_there.close()
        pipes = os.fdopen(os.dup(ask_here.fileno()), "wb"), os.fdopen(os.dup(tell_here.fileno()), "rb")
        ask_here.close()
        tell_here.close()
        return Forked(made), *pipes

    process.starter[0] = start


def all_files(
    count: int, seed: int, mark: Path, sound: dict[str, dict[str, bytes]]
) -> Iterator[tuple[int, str, dict[str, bytes]]]:
    """Sound files first (number -1), then crafted ones, then mutations of every format in turn."""
    number = 0
    for kind, files in sound.items():
        yield -1, kind, files
    for kind, files in crafted(mark):
        if number < count:
            yield number, kind, files
            number += 1
    kinds = list(sound)
    while number < count:
        kind = kinds[number % len(kinds)]
        yield number, kind, mutated(kind, sound[kind], np.random.default_rng([seed, number]))
        number += 1


def audit(arguments: list[str]) -> tuple[int, str]:
    """Run the command in this process."""
    from likewise.cli.app import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as ended:
            return int(ended.code or 0), err.getvalue()
        except BaseException as error:
            return -1, f"{type(error).__name__}: {error}"
    return -1, "the command did not end"


def try_files(kind: str, files: dict[str, bytes], folder: Path, sound_model: Path) -> dict[str, Any]:
    for name, data in files.items():
        (folder / name).write_bytes(data)
    model = folder / next(iter(files))
    arguments = ["audit", str(model), str(folder / "people.csv"), *OPTIONS]
    if kind == "metric":
        arguments = ["audit", str(sound_model), str(folder / "people.csv"), *OPTIONS, "--metric", str(model)]
    start = time.time()
    code, said = audit(arguments)
    for name in files:
        (folder / name).unlink()
    return {"code": code, "said": said.strip(), "seconds": time.time() - start}


def verdict(done: dict[str, Any], mark: Path, limit: float) -> str:
    """What became of a file, in one word."""
    said = str(done["said"])
    if mark.exists():
        return "PAYLOAD RUN"
    if done["code"] not in ALLOWED:
        return "CRASH"
    if done["seconds"] > limit:
        return "HANG"
    if "unforeseen" in said or "Traceback" in said:
        return "UNFORESEEN"
    if done["code"] == 2 and "Error: " not in said:
        return "NO SENTENCE"
    return "refused" if done["code"] == 2 else "audited"


def work(options: argparse.Namespace, first: int) -> None:
    """Go through the files from one on; one line of JSON for each."""
    if not options.start_processes:
        fork_instead()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        people(60, seed=1).to_csv(folder / "people.csv", index=False)
        mark, model = folder / "ran", folder / "sound.safetensors"
        sound = sound_files()
        model.write_bytes(sound["own"]["m.safetensors"])
        for number, kind, files in all_files(options.files, options.seed, mark, sound):
            if 0 <= number < first:
                continue
            print(json.dumps({"begin": number, "kind": kind}), flush=True)
            done = try_files(kind, files, folder, model)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            # Time beyond the limit of a question is the command's own: reading the table, starting a process.
            word = verdict(done, mark, 3 * options.seconds + 30)
            if number < 0:
                if word != "audited":
                    raise RuntimeError(f"the sound {kind} file is {word}: {done['said']}")
                continue
            print(
                json.dumps({"number": number, "kind": kind, "verdict": word, "peak": peak, **done}),
                flush=True,
            )


def drive(options: argparse.Namespace) -> None:
    """Start the worker, and start it again behind a file that ended it."""
    results: list[dict[str, Any]] = []
    first = 0
    environment = os.environ | {"LIKEWISE_MODEL_SECONDS": str(options.seconds)}
    while first < options.files:
        words = [sys.executable, __file__, *sys.argv[1:], "--worker", str(first)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as worker:
            assert worker.stdout is not None
            begun: dict[str, Any] = {"begin": first, "kind": "?"}
            for line in worker.stdout:
                found = json.loads(line)
                if "begin" in found:
                    begun = found
                else:
                    results.append(found)
                    if options.log is not None:
                        with options.log.open("a") as log:
                            log.write(line)
        first = (results[-1]["number"] if results else -1) + 1
        if worker.returncode and begun["kind"] == "?":
            raise RuntimeError("the worker does not start")
        if worker.returncode and first <= begun["begin"] < options.files:
            results.append({"number": begun["begin"], "kind": begun["kind"], "verdict": "CRASH", "said": ""})
            first = begun["begin"] + 1
    show(results)


def show(results: list[dict[str, Any]]) -> None:
    """Print the table, and whatever went wrong."""
    kinds = dict.fromkeys(result["kind"].split(",")[0] for result in results)
    print("| format | files | refused with a sentence | audited | wrong |\n|---|---|---|---|---|")
    for kind in [*kinds, "all"]:
        own = Counter(r["verdict"] for r in results if kind in ("all", r["kind"].split(",")[0]))
        wrong = own.total() - own["refused"] - own["audited"]
        print(f"| {kind} | {own.total()} | {own['refused']} | {own['audited']} | {wrong} |")
    slow = max((r.get("seconds", 0.0) for r in results), default=0.0)
    print(
        f"\nslowest {slow:.1f} s, peak memory of the command {max(r.get('peak', 0.0) for r in results):.0f} MB"
    )
    for result in results:
        if result["verdict"] not in ("refused", "audited"):
            print(json.dumps(result))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--start-processes", action="store_true")
    parser.add_argument("--log", type=Path, help="one line of JSON per file")
    parser.add_argument("--worker", type=int)
    options = parser.parse_args()
    if options.worker is None:
        drive(options)
    else:
        work(options, options.worker)


if __name__ == "__main__":
    main()
