"""A study without training, for the tests of store, tables and runner; as a script it runs cells that go wrong."""

import json
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from likewise.experiments.study import Published, Study, StudyMeasure
from likewise.improving.cells import CellResult

# Whatever a study loads reads one of these, torch the first.
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class FakeStudy(Study):
    steps: int = 5

    name = "fake"
    title = "A <fake> study"
    measures = (StudyMeasure("good", "Good | great", 3, "higher"), StudyMeasure("gap", "Gap", 2, "lower"))
    methods = ("Fine", "Raises", "Dies", "Unkeepable")
    published = {  # noqa: RUF012
        ("Fine", "good"): Published(0.9, 0.01),
        ("Fine", "gap"): Published(0.5),
        ("Raises", "gap"): Published(0.5, 0.0),
    }

    def settings(self, method):
        return {"steps": self.steps, "method": method}

    def note(self, method):
        return f"{method} was told <nothing>."

    def run(self, method, seed):
        if method == "Raises":
            raise ValueError("no such luck")
        if method == "Dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if method == "Unkeepable":
            return CellResult({"good": 1.0, "gap": 1.0}, {"what": object()})
        time.sleep(0.05 * (2 - seed % 3))  # later seeds may finish first
        threads = {name: os.environ.get(name) for name in THREADS}
        return CellResult({"good": seed / 10, "gap": -seed / 3}, {"threads": threads})


@dataclass(frozen=True)
class PatientStudy(FakeStudy):
    """Two seeds are computed at once, the others wait for a file."""

    gate: str = ""

    methods = ("Fine",)

    def run(self, method, seed):
        until = time.monotonic() + 300
        while seed >= 2 and not Path(self.gate).exists():
            if time.monotonic() > until:
                raise TimeoutError
            time.sleep(0.01)
        return super().run(method, seed)


def main(folder, gate=None):
    from likewise.improving.cells import Store
    from likewise.improving.runner import plan_run, run_plan

    study = FakeStudy() if gate is None else PatientStudy(gate=gate)
    told = []
    plan = plan_run([(study, Store(Path(folder), study))], seeds=2 if gate is None else 5)
    failures = run_plan(plan, jobs=2, report=lambda progress, task, outcome: told.append(progress.done))
    threads = {name: value for name, value in os.environ.items() if name in THREADS}
    failed = sorted([f.task.method, f.task.seed, f.reason] for f in failures)
    print(json.dumps({"failed": failed, "told": told, "threads": threads}))


if __name__ == "__main__":
    main(*sys.argv[1:])
