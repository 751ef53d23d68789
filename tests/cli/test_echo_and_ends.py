"""Hostile strings are spelled out wherever they are shown; Ctrl-C and a closed pipe have exit codes of their own."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.cli.app import main
from likewise.core.frames import csv_text
from likewise.core.progress import PrintableStream
from likewise.core.text import printable

NAMES = ("sex\x1b[2J\nProved independent of sex", "r\u202eace", "=1+1", "<b>\x9b31m", "+tab\t")


def shown(text: str) -> bool:
    return all(sign.isprintable() or sign in "\n\t\u2068\u2069\u00a0\u202f" for sign in text)


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    cells = {name: rng.choice([f"a{name}", f"b{name}"], 40) for name in NAMES}
    return pd.DataFrame({**cells, "skill": rng.normal(size=40), "paid": rng.choice(["no", "yes"], 40)})


def score(frame: pd.DataFrame) -> np.ndarray:
    unfair = sum((frame[name] == f"a{name}").astype(float) for name in NAMES)
    return 1 / (1 + np.exp(-frame["skill"] - unfair + 2))


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


def test_nothing_of_a_table_reaches_terminal_page_card_or_json_unspelled(table, tmp_path, capsys):
    from likewise.report.terminal import print_audit

    result = lw.audit(score, table[[*NAMES, "skill"]], sensitive_features=list(NAMES))
    print_audit(result, full=True)
    for name in ("audit.html", "audit.json", "evidence"):
        result.save(tmp_path / name)
    texts = {"terminal": capsys.readouterr().out, "text": str(result)}
    texts |= {str(path): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert len(texts) > 8
    for where, text in texts.items():
        assert shown(text), where
        # Inside of a page and of quoted cells a line end is a space.
        if not where.endswith((".html", ".csv")):
            assert "\nProved independent" not in text, where


def test_verbs_spell_out_names_of_columns_and_files(table, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = "people\x1b]0;x\x07\nProved.csv"
    table.to_csv(file, index=False)
    assert run("inspect", file, "-o", "columns.toml") == 0
    assert run("inspect", file, "--target", "p\x1baid\nProved") == 2
    assert run("audit", "model\x1b[31m\nProved.onnx", file, "--target", "paid", "--sensitive", "\x1bx") == 2
    out, err = capsys.readouterr()
    assert shown(out + err)
    assert "\nProved" not in out + err


def test_every_csv_is_safe_in_a_spreadsheet(table):
    text = csv_text(table, index="=row")
    assert "'=1+1" in text
    assert text.startswith("'=row,")
    assert shown(text)
    read = pd.read_csv(io.StringIO(text), dtype=str)
    assert not any(str(cell).startswith(tuple("=+@")) for cell in read.to_numpy().ravel())


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_no_cell_is_a_formula_whatever_a_spreadsheet_takes_for_the_end_of_one(separator):
    """A German one ends cells at semicolons: `a;=1+1` was a formula there."""
    starts = ["=1", "+1", "-a", "@a", "\t=1", "＝1"]
    words = [
        f"a{end}{start}" for end in ("", ";", "|", "\t", "\n", "\r\n", ";;") for start in starts
    ] + starts
    text = csv_text(pd.DataFrame({"a": 1, "b;=c": words}))
    cells = [cell.lstrip('"') for line in text.splitlines() for cell in line.split(separator)]
    assert not [cell for cell in cells if cell.startswith(tuple("=+-@＝＋－＠"))]


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_streams_replace_what_their_encoding_lacks(encoding):
    raw = io.BytesIO()
    stream = PrintableStream(io.TextIOWrapper(raw, encoding=encoding))
    stream.write("ε → “naïve” \x1b[2J\u202e\n")
    stream.flush()
    assert "\\u001b[2J\\u202e" in raw.getvalue().decode(encoding)


def test_json_means_the_same_after_the_gate():
    import json

    value = {"a\u202e\x7f\U000e0001": "\\\u2028\x1b"}
    assert json.loads(printable(json.dumps(value, ensure_ascii=False), keep="\n")) == value


def test_a_closed_pipe_is_not_a_verdict(tmp_path):
    """`likewise audit … | head -1` ended with 1, which means unfair."""
    code = "import sys, os; os.close(1); os.dup2(int(sys.argv[1]), 1); from likewise.cli import main; main(['datasets'])"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", code, str(writer)], pass_fds=[writer], capture_output=True, text=True
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize(("words", "stream"), [("datasets", "stdout"), ("no-verb", "stderr")])
def test_an_output_that_is_full_is_not_a_verdict(words, stream):
    """A traceback, or nothing where it could not be written either, and 1."""
    with Path("/dev/full").open("w") as full:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: full}
        done = subprocess.run([sys.executable, "-m", "likewise", words], text=True, check=False, **streams)
    assert done.returncode == 2
    if stream == "stdout":
        assert done.stderr.startswith("Error: the disk is full")
        assert "Traceback" not in done.stderr


def test_after_ctrl_c_no_code_is_a_verdict(monkeypatch, capsys):
    """A search that makes something of Ctrl-C must not end in a result: `replay` said "Different", `train` left with 0."""
    import click

    from likewise.cli import app

    @click.command()
    def swallows() -> int:
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return 1

    monkeypatch.setattr(app.LazyGroup, "get_command", lambda *_: swallows)
    before = signal.getsignal(signal.SIGINT)
    try:
        assert run("audit") == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == "Stopped.\n"


def test_ctrl_c_waits_until_a_library_is_loaded(monkeypatch, capsys, tmp_path):
    """Numpy's C code printed a traceback, and the verb said that something unforeseen had happened."""
    import importlib
    import time

    import click

    from likewise.cli import app

    (tmp_path / "halved.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\nwhole = True\n")
    monkeypatch.syspath_prepend(tmp_path)

    slept: list[None] = []

    @click.command()
    def loads() -> None:
        assert importlib.import_module("halved").whole
        list(
            map(slept.append, map(time.sleep, [30]))
        )  # no bytecode in between: a signal ends the sleep or nothing

    monkeypatch.setattr(app.LazyGroup, "get_command", lambda *_: loads)
    before = signal.getsignal(signal.SIGINT)
    assert run("audit") == 130
    assert not slept
    assert signal.getsignal(signal.SIGINT) is before
    assert capsys.readouterr().err.strip() == "Stopped."


@pytest.mark.parametrize("module", ["likewise.core", "likewise.cli.app"])
def test_ctrl_c_while_libraries_load_leaves_no_traceback(module, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import signal, sys, importlib.abc\n"
        "class Late(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == {module!r}: signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Late())\n"
    )
    program = Path(sys.executable).with_name("likewise")
    for words in ([sys.executable, "-m", "likewise"], [program]):
        done = subprocess.run(
            [*words, "datasets"],
            env=os.environ | {"PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (130, "Stopped.\n")


def test_an_interrupted_result_is_not_delivered(tmp_path):
    from likewise.cli.output import Outputs, deliver
    from likewise.core import progress

    written = {"json": lambda path: tmp_path.joinpath("x.json").touch()}
    progress._interrupted.set()
    try:
        with pytest.raises(KeyboardInterrupt):
            deliver(Outputs({"json": Path("x.json")}, quiet=True), None, show=str, writers=written)
        assert not [*tmp_path.iterdir()]
    finally:
        progress._interrupted.clear()
