"""`likewise reproduce` as a person runs it: everything once, a stopped run that goes on, refusals."""

import json
import pickle
import signal
import subprocess
import sys
import time

import psutil
import pytest

from likewise.experiments import SentimentStudy
from likewise.improving import runner
from likewise.improving.runner import work

TOY = ("reproduce", "toy", "--quick", "--seeds", "2")


def start(folder, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "likewise", *arguments, "-o", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(folder):
    file = folder / "toy-quick" / "cells.jsonl"
    return file.read_text().splitlines() if file.exists() else []


def wait_for_cells(process, folder, count):
    deadline = time.monotonic() + 240
    while len(finished(folder)) < count:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def csv_files(folder):
    return [(folder / "toy-quick" / name).read_bytes() for name in ("table.csv", "cells.csv")]


@pytest.fixture
def in_this_process(monkeypatch):
    """Cells are computed here, after the way to a worker and back: a worker would import everything once more."""

    def travelled(thing):
        return pickle.loads(pickle.dumps(thing))

    def here(tasks, jobs):
        for (_, outcome), task in zip(work(travelled(list(tasks)), 0), tasks, strict=True):
            yield task, travelled(outcome)

    monkeypatch.setattr(runner, "work", here)


def test_everything_quick(run, tmp_path, in_this_process, monkeypatch):
    # Five steps of the sentiment study and few people of Adult: tests/experiments has their quick forms.
    monkeypatch.setattr("likewise.experiments.adult.QUICK_PEOPLE", 150)
    done = run("reproduce", "all", "--quick", "--steps", "5", "--jobs", "1", "-o", tmp_path)
    out, err = done.out, done.err
    assert done.code == 0, err
    for study, cells in (
        ("toy-quick", 4),
        ("adult-quick", 24),
        (SentimentStudy(quick=True, n_steps=5).name, 12),
    ):
        folder = tmp_path / study
        assert len((folder / "cells.jsonl").read_text().splitlines()) == cells
        results = json.loads((folder / "results.json").read_text())
        assert results["missing"] == {}
        assert all(len(method["seeds"]) == 2 for method in results["methods"])
        assert (folder / "table.md").read_text().count("±") > 5
        assert str(folder / "index.html") in out
        lines = (folder / "table.csv").read_text().splitlines()
        assert len(lines) == 1 + len(results["methods"]) * len(results["measures"])
    assert (tmp_path / "toy-quick" / "figure-1.svg").read_text().startswith("<?xml")
    page = (tmp_path / "adult-quick" / "index.html").read_text()
    assert "paper 0.934 ± 0.012" in page
    assert str(tmp_path) not in page  # pages go to other people
    assert "40 of 40" in err


def test_a_stopped_run_goes_on_to_the_same_csv(run, tmp_path, in_this_process):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    stopped = start(broken, *TOY, "--jobs", "1")
    wait_for_cells(stopped, broken, 1)
    workers = psutil.Process(stopped.pid).children(recursive=True)
    stopped.send_signal(signal.SIGINT)
    _, err = stopped.communicate()
    assert stopped.returncode == 130, err
    assert "are kept. Run the same command to go on." in err
    assert "Traceback" not in err
    kept = finished(broken)
    assert 1 <= len(kept) < 4
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert not alive
    assert not list((broken / "toy-quick").glob("*.csv"))

    # Killed outright, it is in tests/experiments/test_runner.py. The line of a cell that the machine was writing:
    with (broken / "toy-quick" / "cells.jsonl").open("a") as file:
        file.write('{"kind": "likewise.experiments.cell", "se')

    resumed = run(*TOY, "-o", broken)
    assert resumed.code == 0, resumed.err
    assert "damaged" in resumed.err
    uninterrupted = run(*TOY, "-o", whole)
    assert uninterrupted.code == 0, uninterrupted.err
    assert csv_files(broken) == csv_files(whole)


def test_more_seeds_and_tables_of_what_is_there(run, tmp_path, monkeypatch):
    from likewise.improving.cells import Cell, CellResult
    from likewise.improving.runner import Failure

    asked = []

    def pretend(tasks, jobs):
        for task in tasks:
            asked.append((task.method, task.seed))
            values = {measure.key: task.seed + 1.0 for measure in task.study.measures}
            if task.seed == 4:
                yield task, Failure(task, "its process was ended from outside (SIGKILL)")
            else:
                yield (
                    task,
                    Cell(task.method, task.seed, CellResult(values, {"weights": [0, 1], "bias": 0}), 1.0),
                )

    monkeypatch.setattr(runner, "work", pretend)
    done = run("reproduce", "toy", "--seeds", 3, "--method", "sensr")
    assert done.code == 0, done.err
    assert asked == [("SenSR", seed) for seed in range(3)]
    assert "Not finished: Baseline (3 seeds)" in done.out
    asked.clear()
    done = run("reproduce", "toy", "--seeds", 6, "--method", "SenSR")
    assert asked == [("SenSR", seed) for seed in range(3, 6)]
    assert done.code == 3  # and yet the others went on
    assert "Failed: toy, SenSR, seed 4: its process was ended" in done.err
    asked.clear()
    done = run("reproduce", "toy", "--seeds", 6, "--tables")
    assert asked == []
    assert "Baseline (6 seeds), SenSR (1 seed)" in done.out
    assert run("reproduce", "toy", "--seeds", 4, "--tables", "--quiet").out == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("adult", "--method", "Baselime"), "'Baseline', 'Project'"),
        (("adult", "--vectors", "x.csv"), "sentiment study"),
        (("adult", "--steps", "9"), "sentiment study"),
        (("sentiment", "--vectors", "absent.npz"), "absent.npz"),
        (("toy", "--seeds", "0"), "--seeds"),
        (("toys",), "'toy', 'sentiment', 'adult', 'sentences', 'all'"),
        (("toy", "-o", "x.csv"), "is a file"),
    ],
    ids=["method", "vectors", "steps", "absent", "seeds", "study", "out"],
)
def test_refusals_say_what_to_do(run, tmp_path, arguments, words):
    (tmp_path / "x.csv").write_text("a\n")
    done = run("reproduce", *arguments)
    assert done.code == 2
    assert words in done.err
    assert not (tmp_path / "reproduction").exists()


def test_other_peoples_files_stay(run, tmp_path):
    folder = tmp_path / "reproduction" / "toy"
    folder.mkdir(parents=True)
    (folder / "table.csv").write_text("mine")
    done = run("reproduce", "toy")
    assert done.code == 2
    assert "was not written by a study" in done.err
    assert (folder / "table.csv").read_text() == "mine"
