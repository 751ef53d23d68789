"""A search whose process is killed, workers and all, goes on where it was and ends the same."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from likewise.improving import Rule, improve
from likewise.improving.candidates import BoostingCandidate, NetworkCandidate
from likewise.improving.output import improvement_document

FEW = {"n_estimators": 5, "max_depth": 2}
QUICK = {"hidden_layer_sizes": (), "n_steps": 60, "lr": 0.05}
CANDIDATES = (
    BoostingCandidate("plain", "", blind=False, choices=FEW),
    BoostingCandidate("twins", "", blind=False, consensus=True, choices=FEW),
    NetworkCandidate("linear", "", "ProjectClassifier", 1.0, QUICK),
)
CHOICES = {"sensitive_features": ["sex"], "candidates": CANDIDATES, "rule": Rule(within=0.3), "folds": 2}
# Two workers, who start as processes of their own and import what they need.
SCRIPT = """
import sys
import pandas as pd
sys.path.insert(0, sys.argv[3])
from test_killed import CHOICES
from likewise.improving import improve

if __name__ == "__main__":
    table = pd.read_csv(sys.argv[1])
    improve(table.drop(columns="hired"), table["hired"].to_numpy(), **CHOICES, n_jobs=2, folder=sys.argv[2])
"""


def without_times(found):
    document = improvement_document(found)
    for one in document["alternatives"]:
        assert one.pop("cpu_seconds") >= 0
    return document


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill a process outright")
def test_killed_among_two_workers_and_resumed_by_one_it_ends_the_same(hiring, tmp_path):
    frame, y = (part[:240] for part in hiring)
    frame.assign(hired=y).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "search.py").write_text(SCRIPT)
    cells = tmp_path / "out" / "cells.jsonl"
    words = [sys.executable, "search.py", "people.csv", "out", str(Path(__file__).parent)]
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE) as search:
        until = time.monotonic() + 300
        while search.poll() is None and time.monotonic() < until and not _finished(cells):
            time.sleep(0.01)
        search.send_signal(signal.SIGKILL)
        said = search.communicate()[1].decode()
    assert search.returncode == -signal.SIGKILL, said
    assert 1 <= _finished(cells) < 2 * len(CANDIDATES)
    before = cells.read_bytes()
    resumed = improve(frame, y, **CHOICES, folder=tmp_path / "out")
    assert cells.read_bytes().startswith(before)
    assert without_times(resumed) == without_times(improve(frame, y, **CHOICES))


def _finished(cells):
    return cells.read_bytes().count(b"\n") if cells.exists() else 0


INTERRUPTED = """
import os, signal
from likewise.improving.runner import _Worker

if __name__ == "__main__":
    signal.signal(signal.SIGINT, lambda *_: None)
    worker = _Worker()
    os.killpg(0, signal.SIGINT)
    worker.connection.send("no task")
    print(worker.connection.recv())
    worker.end()
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="this system cannot block a signal")
def test_ctrl_c_does_not_reach_a_worker_that_is_starting(tmp_path):
    """It left a traceback of multiprocessing behind "Stopped."."""
    (tmp_path / "starts.py").write_text(INTERRUPTED)
    done = subprocess.run(
        [sys.executable, tmp_path / "starts.py"],
        capture_output=True,
        text=True,
        start_new_session=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "AttributeError" in done.stdout
