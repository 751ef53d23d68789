"""`likewise demo`: what `make demo` shows. And progress, which only a terminal sees."""

import contextlib
import json
import os
import sys
import threading
from pathlib import Path

import pytest

from likewise.cli.app import main


def test_the_demo_shows_a_model_that_no_longer_is_unfair(run, monkeypatch):
    monkeypatch.setattr("likewise.cli.demo.QUICK_STEPS", 150)
    monkeypatch.setattr("likewise.cli.demo.QUICK_PEOPLE", 300)
    done = run("demo", "--quick", "-o", "demo.json")
    assert done.code == 0, done.err
    assert "Wrote likewise-demo.html" in done.out
    for word in ("balanced accuracy", "S-Con", "GR-Con", "Gap_RMS sex", "gap at ε = 0", "gap at ε = 0.1"):
        assert word in done.out, word
    page = Path("likewise-demo.html").read_text()
    assert page.startswith("<!doctype html>")
    assert len(page) < 2_000_000
    entries = {
        entry["name"]: entry["audit"]["numbers"]
        for entry in json.loads(Path("demo.json").read_text())["entries"]
    }
    baseline, sensr = entries["Baseline"], entries["SenSR"]
    assert baseline["pure_gap"]["value"] > 0.03
    assert sensr["pure_gap"]["value"] <= baseline["pure_gap"]["value"] / 4
    assert sensr["gap"]["value"] <= baseline["gap"]["value"] / 2


def test_the_demo_replaces_its_own_page_and_no_other(run):
    Path("mine.html").write_text("mine")
    done = run("demo", "--quick", "-o", "mine.html")
    assert (done.code, "--force" in done.err) == (2, True)
    assert Path("mine.html").read_text() == "mine"


@pytest.fixture
def read_terminal(monkeypatch):
    """Run the command with a terminal as its standard error, and return what appears there."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")

    def read(*arguments):
        master, slave = os.openpty()
        parts = []

        def listen():
            # Linux raises when the other end is closed, others return nothing.
            with contextlib.suppress(OSError):
                while part := os.read(master, 65_536):
                    parts.append(part)

        listener = threading.Thread(target=listen)
        listener.start()
        with os.fdopen(slave, "w") as terminal, monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", terminal)
            with pytest.raises(SystemExit) as ended:
                main([str(argument) for argument in arguments])
        listener.join()
        os.close(master)
        assert not ended.value.code
        return b"".join(parts).decode()

    return read


def test_progress_is_shown_on_a_terminal_only(table, tmp_path, monkeypatch, read_terminal):
    monkeypatch.chdir(tmp_path)
    arguments = [
        "learn-metric",
        table,
        "--sensitive",
        "sex",
        "--no-diagnose",
        "-o",
        "metric.safetensors",
        "--force",
    ]
    shown = read_terminal(*arguments)
    assert "Reading people.csv" in shown
    assert "Learning who is comparable" in shown
    assert read_terminal(*arguments, "--quiet") == ""
