"""Every option that takes a path, given what is not a file: a sentence and exit code 2, and nothing is replaced.

    OMP_NUM_THREADS=1 python tests/fuzz/fuzz_paths.py [--seconds 60]

A pipe, a device by a link, a loop of links and a folder stand for each file that a verb reads; for each that it writes also
a device itself (which an administrator could replace), with and without --force. Exits with 1 if a command ends otherwise,
takes longer, or leaves another thing in the place. What evidence may name is in `tests/cli/test_replay.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import click

sys.path.insert(0, str(Path(__file__).parent))

from fuzz_ends import prepared

TOLD = ["--target", "paid", "--sensitive", "sex"]
TABLE, MODEL = ["people.csv"], ["model.safetensors", "people.csv"]
SCORER = [
    "--text",
    "text",
    "--scorer",
    "scorer.py:score",
    "--names",
    "black-female",
    "--names",
    "white-female",
]
# What a verb is called with, and which of its options name a file that it reads.
READ = {
    "inspect": (TABLE, ["--columns", "--config"]),
    "audit": ([*MODEL, *TOLD], ["--metric", "--columns", "--config", "--twins"]),
    "audit -o evidence2/": ([*MODEL, *TOLD], ["--sign"]),
    "audit-texts": (["texts.csv", *SCORER], ["--config", "--cache"]),
    "verify": ([*MODEL, "--sensitive", "sex"], ["--columns", "--config"]),
    "person": ([*MODEL, *TOLD, "--row", "7"], ["--columns", "--config", "--reason-codes", "--rules"]),
    "recourse": ([*MODEL, *TOLD, "--sample", "5"], ["--columns", "--config", "--rules", "--keep"]),
    "proxies": ([*MODEL, *TOLD], ["--columns", "--config"]),
    "serve": ([*MODEL, *TOLD], ["--columns", "--config", "--metric"]),
    "replay": (["evidence"], ["--model", "--table", "--metric", "--columns", "--config", "--verify-key"]),
    "train": ([*TABLE, *TOLD, "-o", "m.safetensors"], ["--columns", "--config", "--metric"]),
    "improve": ([*TABLE, *TOLD, "-o", "made/"], ["--columns", "--config", "--metric", "--model"]),
    "learn-metric": ([*TABLE, *TOLD, "-o", "d.safetensors"], ["--columns", "--config"]),
    "reproduce": (["sentiment", "--quick"], ["--vectors", "--names"]),
}
WRITTEN = [
    (["inspect", *TABLE], "columns.toml"),
    *((["audit", *MODEL, *TOLD], name) for name in ("a.html", "a.json", "a/")),
    *((["audit-texts", "texts.csv", *SCORER], name) for name in ("t.html", "t.json")),
    *((["verify", *MODEL, "--sensitive", "sex"], name) for name in ("v.html", "v.csv", "v.json")),
    *((["person", *MODEL, *TOLD, "--row", "7"], name) for name in ("p.html", "p.json")),
    *((["recourse", *MODEL, *TOLD, "--sample", "5"], name) for name in ("r.html", "r.json")),
    *((["proxies", *MODEL, *TOLD], name) for name in ("x.html", "x.csv", "x.json")),
    (["train", *TABLE, *TOLD, "--steps", "2"], "m.safetensors"),
    (["learn-metric", *TABLE, *TOLD], "d.safetensors"),
    (["improve", *TABLE, *TOLD], "made/"),
    (["improve", *TABLE, *TOLD, "--compare", "baseline"], "c.html"),
    (["datasets", "german"], "german.csv"),
    (["demo", "--quick"], "demo.html"),
    (["reproduce", "toy", "--quick"], "paper"),
]  # fmt: skip


def not_looked_at() -> set[str]:
    """Options of files by their type that stand in no list above."""
    from likewise.cli.app import VERBS, cli

    found = set()
    for verb in VERBS:
        command = cli.get_command(click.Context(cli), verb)
        assert command is not None
        listed = {
            option for words, (_, options) in READ.items() if words.split()[0] == verb for option in options
        }
        found |= {
            f"{verb} {option.opts[0]}"
            for option in command.params
            if isinstance(option.type, click.Path) and isinstance(option, click.Option)
            and not (listed | {"--output"}) & set(option.opts)
        }  # fmt: skip
    return found


def make(kind: str, place: Path) -> None:
    """Put something in a place that is not a file."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "device":
        place.symlink_to("/dev/zero")
    elif kind == "node":
        os.mknod(place, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    elif kind == "loop":
        place.symlink_to(place.name)
    elif kind == "folder":
        place.mkdir()
        (place / "mine").write_text("mine")


def run(words: list[str], seconds: int) -> str:
    """Run the command in this process; say what is wrong with its end."""
    from likewise.cli.app import main

    def late(*_: Any) -> NoReturn:
        raise TimeoutError

    out, err, code = io.StringIO(), io.StringIO(), None
    signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(words)
    except SystemExit as ended:
        code = ended.code
    except BaseException as error:
        return repr(error)
    finally:
        signal.alarm(0)
    said = err.getvalue()
    sound = code == 2 and said.count("Error: ") == 1 and "unforeseen" not in said
    return "" if sound else f"exit {code}: {(out.getvalue() + said)[-300:]!r}"


def reading(seconds: int) -> Iterator[str]:
    odd = Path("odd")
    for verb, (words, options) in READ.items():
        tables = [
            at
            for at, word in enumerate(words)
            if word in (*MODEL, "texts.csv", "evidence", "scorer.py:score")
        ]
        asked = [[*words, option, str(odd)] for option in options]
        asked += [[*words[:at], str(odd), *words[at + 1 :]] for at in tables]
        for one in asked:
            for kind in ("pipe", "device", "loop", "folder"):
                if "--keep" in one and kind == "folder":
                    continue
                make(kind, odd)
                if wrong := run([*verb.split(), *one], seconds):
                    yield f"{kind}, {verb} {one}: {wrong}"
    make("", odd)


def writing(seconds: int) -> Iterator[str]:
    for words, name in WRITTEN:
        place = Path(name)
        for kind in ("pipe", "device", "node", "loop", "folder"):
            if kind == "node" and os.geteuid() != 0:
                continue
            for force in ([], ["--force"]):
                if words[0] == "reproduce" and (force or kind == "folder"):
                    continue
                make(kind, place)
                before = place.lstat()
                wrong = run([*words, "-o", name, *force], seconds)
                after = place.lstat()
                if (before.st_mode, before.st_ino) != (after.st_mode, after.st_ino):
                    wrong += " IT WAS REPLACED"
                if wrong:
                    yield f"{kind}, {words[0]} -o {name} {force}: {wrong}"
                make("", place)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        prepared(Path(place))
        wrong = [f"no path was tried for {one}" for one in sorted(not_looked_at())]
        wrong += [*reading(options.seconds), *writing(options.seconds)]
    print(*wrong, f"{len(wrong)} wrong", sep="\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
