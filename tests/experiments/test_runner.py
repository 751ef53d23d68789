"""Cells in worker processes: what fails is told with its reason, and everything else is computed."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from likewise.core.errors import InputError
from likewise.experiments.output import write_results
from likewise.improving.cells import Store
from likewise.improving.runner import CellTask, Failure, Plan, StudyProgress, plan_run, run_plan

SCRIPT = Path(__file__).with_name("fake_study.py")
_spec = importlib.util.spec_from_file_location("fake_study", SCRIPT)
fake = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fake)


def test_failing_cells_and_killed_workers_leave_the_others_alone(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert [name[:2] for name in result["failed"]] == [
        [method, seed] for method in ("Dies", "Raises", "Unkeepable") for seed in range(2)
    ]
    reasons = {name[0]: name[2] for name in result["failed"]}
    assert "SIGKILL" in reasons["Dies"]
    assert reasons["Raises"] == "ValueError: no such luck"
    assert "JSON" in reasons["Unkeepable"]
    assert result["told"] == list(range(1, 9))
    assert result["threads"] == {}  # only the workers have one thread
    kept = [json.loads(line) for line in (tmp_path / "cells.jsonl").read_text().splitlines()]
    assert sorted((cell["method"], cell["seed"]) for cell in kept) == [("Fine", 0), ("Fine", 1)]
    for cell in kept:
        assert set(cell["extras"]["threads"].values()) == {"1"}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill a process outright")
def test_a_killed_run_takes_its_workers_along_and_goes_on_to_the_same_csv(tmp_path):
    broken, whole, gate = tmp_path / "broken", tmp_path / "whole", tmp_path / "gate"
    with subprocess.Popen(
        [sys.executable, SCRIPT, broken, gate], stderr=subprocess.PIPE, text=True
    ) as killed:
        until = time.monotonic() + 240
        while _lines(broken) < 2:
            assert killed.poll() is None, killed.communicate()[1]
            assert time.monotonic() < until
            time.sleep(0.01)
        workers = psutil.Process(killed.pid).children(recursive=True)
        assert len(workers) >= 2
        killed.kill()
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert not alive  # a worker whose starter was killed does not compute on
    assert not list(broken.glob("*.csv"))
    assert _lines(broken) == 2
    kept = (broken / "cells.jsonl").read_bytes()

    gate.touch()
    study = fake.PatientStudy(gate=str(gate))
    for folder, left in ((broken, 3), (whole, 5)):
        store = Store(folder, study)
        plan = plan_run([(study, store)], seeds=5)
        assert (plan.finished, len(plan.tasks)) == (5 - left, left)
        assert run_plan(plan, jobs=0) == ()
        write_results(store, 5)
    assert (broken / "cells.jsonl").read_bytes().startswith(kept)
    for name in ("table.csv", "cells.csv"):
        assert (broken / name).read_bytes() == (whole / name).read_bytes()


def _lines(folder):
    file = folder / "cells.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


class _Costly:
    """Stands in for a study in a task."""

    def __init__(self, cost):
        self._cost = cost

    def cost(self, method):
        return self._cost


def test_cells_start_by_seed_the_longest_first(tmp_path):
    from likewise.experiments import AdultStudy

    study = AdultStudy()
    plan = plan_run([(study, Store(tmp_path, study))], seeds=4)
    n = len(study.methods)
    first, second, last = plan.tasks[:n], plan.tasks[n : 2 * n], plan.tasks[2 * n :]
    assert {task.seed for task in first} == {0}
    assert {task.seed for task in second} == {1}
    for part in (first, second, last):
        costs = [study.cost(task.method) for task in part]
        assert costs == sorted(costs, reverse=True)
    # No long cell is left to run alone at the end.
    assert [(task.method, task.seed) for task in last[:2]] == [("SenSR", 2), ("SenSR", 3)]
    assert len(set(plan.tasks)) == 4 * n


def test_time_left_goes_by_cost(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("likewise.improving.runner.time.monotonic", lambda: now[0])
    short, long, bad = (CellTask(_Costly(cost), "a", 0) for cost in (10, 30, 50))
    progress = StudyProgress({task: task.study.cost("") for task in (short, long, bad)})
    progress.finish(bad, Failure(bad, "no luck"))
    assert progress.seconds_left is None  # a cell that failed at once says nothing about the speed
    now[0] += 5
    progress.finish(short)
    assert progress.seconds_left == pytest.approx(15)
    progress.finish(long)
    assert progress.seconds_left == 0
    assert (progress.done, progress.total, len(progress.failures)) == (3, 3, 1)


def test_nothing_to_do_starts_no_process(tmp_path):
    assert run_plan(Plan((), {}, 0)) == ()


@pytest.mark.parametrize("jobs", [-1, True, 1.5])
def test_jobs_is_a_number(jobs):
    with pytest.raises(InputError, match="jobs"):
        run_plan(Plan((), {}, 0), jobs=jobs)


def test_no_jobs_compute_in_this_process(tmp_path, monkeypatch):
    from likewise.experiments import ToyStudy

    study = ToyStudy(quick=True)
    store = Store(tmp_path, study)
    monkeypatch.setattr("likewise.improving.runner._Worker", None)
    plan = plan_run([(study, store)], seeds=1, methods=["Baseline"])
    assert run_plan(plan, jobs=0) == ()
    assert set(store.find(["Baseline"], [0]).cells) == {("Baseline", 0)}
