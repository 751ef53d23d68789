"""Broken and hostile tables through `likewise inspect`: no crash, no hang, no flood of memory, one sentence.

    python tests/fuzz/fuzz_tables.py [--files 5000] [--seed 0] [--seconds 30] [--gigabytes 2]

The command runs in a process that goes on to the next file and is started again behind a file that ended it. Exits with 1 if
a file ended in a signal, took longer or more memory than allowed, or in anything but a sentence.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import resource
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from mutated_tables import crafted, mutated, sound_files


def all_files(count: int, seed: int) -> Iterator[tuple[int, str, Callable[[], bytes]]]:
    """Crafted files first, then mutations of every format in turn."""
    sound = sound_files()
    names = list(sound)
    numbers = itertools.count()
    for name, make in crafted().items():
        yield next(numbers), name, make
    for number in numbers:
        name = names[number % len(names)]
        yield number, name, partial(mutated, sound[name], np.random.default_rng([seed, number]))
        if number >= count - 1:
            return


def inspect(path: Path) -> tuple[int, str]:
    """Run the command in this process."""
    from likewise.cli.app import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(["inspect", str(path), "--no-file"])
        except SystemExit as ended:
            return int(ended.code or 0), out.getvalue() + err.getvalue()
        except BaseException as error:
            return -1, f"{type(error).__name__}: {error}"
    return -1, "the command did not end"


def verdict(code: int, said: str) -> str:
    if code not in (0, 2):
        return "WRONG CODE"
    if "unforeseen" in said or "Traceback" in said:
        return "UNFORESEEN"
    if any(
        not sign.isprintable() and sign not in "\n\u2068\u2069\u200c\u200d\u00a0\u202f\u2009" for sign in said
    ):
        return "NOT PRINTABLE"
    return "read" if code == 0 else "refused" if "Error: " in said else "NO SENTENCE"


def work(options: argparse.Namespace, first: int) -> None:
    """Go through the files from one on; one line of JSON for each."""
    with tempfile.TemporaryDirectory() as place:
        inspect(Path(place) / "absent.csv")  # the libraries are loaded before memory is counted
        for number, name, make in all_files(options.files, options.seed):
            if number < first:
                continue
            path = Path(place) / name
            path.write_bytes(make())
            print(json.dumps({"begin": number, "name": name}), flush=True)
            # Of computing, since other work may have the processor; of waiting for something that never comes, longer.
            signal.setitimer(signal.ITIMER_PROF, options.seconds)
            signal.alarm(20 * options.seconds)
            code, said = inspect(path)
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
            path.unlink()
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            word = verdict(code, said) if peak <= options.gigabytes else "TOO MUCH MEMORY"
            print(
                json.dumps(
                    {"number": number, "name": name, "verdict": word, "peak": peak, "said": said[-300:]}
                ),
                flush=True,
            )
            if peak > options.gigabytes:
                return


def drive(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Start the worker, and start it again behind a file that ended it."""
    results: list[dict[str, Any]] = []
    while (first := results[-1]["number"] + 1 if results else 0) < options.files:
        words = [sys.executable, __file__, *sys.argv[1:], "--worker", str(first)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as worker:
            begun: dict[str, Any] = {}
            for line in worker.stdout or ():
                found = json.loads(line)
                if "begin" in found:
                    begun = found
                else:
                    results.append(found)
        if not begun:
            raise RuntimeError("the worker does not start")
        if (
            worker.returncode
            and begun["begin"] >= first
            and (not results or results[-1]["number"] < begun["begin"])
        ):
            ended = f"ENDED BY SIGNAL {-worker.returncode}" if worker.returncode < 0 else "ENDED"
            results.append({"number": begun["begin"], "name": begun["name"], "verdict": ended, "said": ""})
    return results


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--worker", type=int)
    options = parser.parse_args()
    if options.worker is not None:
        work(options, options.worker)
        return
    results = drive(options)
    wrong = [one for one in results if one["verdict"] not in ("read", "refused")]
    for one in wrong:
        print(json.dumps(one))
    print(f"{len(results)} tables: {dict(Counter(one['verdict'] for one in results))}, {len(wrong)} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
