"""Run studies: what is finished is kept, what is missing is computed, what fails is told and the rest goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from likewise.core.checks import check_integer
from likewise.core.errors import InputError, bad_parameter
from likewise.experiments.store import Cell, Store
from likewise.experiments.study import Study
from likewise.experiments.workers import CellTask, Failure, work

__all__ = ["Plan", "StudyProgress", "plan_run", "run_plan"]


@dataclass(frozen=True)
class Plan:
    """Cells to be computed, and those that are there.

    Parameters
    ----------
    tasks : tuple of CellTask
        In the order they are started: by seed, the longest of each seed first, and the last two seeds as one.
    stores : dict of str to Store
        Study's name to its folder.
    finished : int
        Cells asked for that were there.
    damaged : tuple of str
        Files that could not be read; they are computed again.
    replaced : tuple of str
        Cells of other settings that will be computed again.
    """

    tasks: tuple[CellTask, ...]
    stores: dict[str, Store]
    finished: int
    damaged: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()


@dataclass
class StudyProgress:
    """How far a run is, told after each cell.

    Parameters
    ----------
    costs : dict of CellTask to float
        Cells to be computed in this run, and about how many CPU seconds each takes.
    done : int
        How many are finished, failed ones included.
    failures : list of Failure
    """

    costs: dict[CellTask, float]
    done: int = 0
    failures: list[Failure] = field(default_factory=list)
    _started: float = field(default_factory=lambda: time.monotonic())
    _spent: float = 0.0
    _dropped: float = 0.0

    @property
    def total(self) -> int:
        """Cells to be computed in this run."""
        return len(self.costs)

    @property
    def seconds_left(self) -> float | None:
        """Wall seconds that the rest will take at the speed so far; None before the first cell is computed."""
        if self._spent == 0.0:
            return None
        rest = sum(self.costs.values()) - self._spent - self._dropped
        return (time.monotonic() - self._started) * rest / self._spent

    def finish(self, task: CellTask, failure: Failure | None = None) -> None:
        """Count a cell. One that failed says nothing about the speed."""
        self.done += 1
        if failure is None:
            self._spent += self.costs[task]
        else:
            self.failures.append(failure)
            self._dropped += self.costs[task]


def plan_run(
    studies: Sequence[tuple[Study, Store]],
    seeds: int,
    methods: Iterable[str] = (),
    *,
    replace_other: bool = False,
) -> Plan:
    """Find out which cells are missing.

    Parameters
    ----------
    studies : sequence of (Study, Store)
    seeds : int
        Seeds 0 to seeds − 1.
    methods : iterable of str, optional
        Only these, in any case of letters; each must be a method of one of the studies. Default: all.
    replace_other : bool, default=False
        Compute cells again that were made with other settings. Otherwise they are an error: nobody's results are
        replaced unasked, and none are mixed.

    Returns
    -------
    Plan

    Examples
    --------
    >>> from pathlib import Path
    >>> from likewise.experiments import ToyStudy
    >>> study = ToyStudy()
    >>> plan = plan_run([(study, Store(Path("nowhere"), study))], seeds=2, methods=["sensr"])
    >>> [(task.method, task.seed) for task in plan.tasks]
    [('SenSR', 0), ('SenSR', 1)]
    """
    check_integer(seeds, owner="plan_run", name="seeds", low=1)
    wanted = _choose([study for study, _ in studies], list(methods))
    tasks: list[CellTask] = []
    damaged: list[str] = []
    other: list[str] = []
    finished = 0
    for study, store in studies:
        found = store.find(wanted[study.name], range(seeds))
        finished += len(found.cells)
        damaged += found.damaged.values()
        other += (f"{store.path(*key)}: {how}" for key, how in found.other.items())
        cells = [(method, seed) for method in wanted[study.name] for seed in range(seeds)]
        tasks += (CellTask(study, *key) for key in cells if key not in found.cells)
    if other and not replace_other:
        raise InputError(
            f"{len(other)} finished cells were made with other settings, such as {other[0]}. Choose another --out, "
            "or pass --force to compute them again."
        )
    # The last two seeds are one, so that no long cell is left to run alone at the end.
    joined = max((task.seed for task in tasks), default=0) - 1
    tasks.sort(key=lambda task: (min(task.seed, joined), -task.study.cost(task.method), task.seed))
    stores = {study.name: store for study, store in studies}
    return Plan(tuple(tasks), stores, finished, tuple(damaged), tuple(other))


def _choose(studies: Sequence[Study], asked: list[str]) -> dict[str, list[str]]:
    """Study's name to the methods asked for, in the study's order."""
    known = {method.lower() for study in studies for method in study.methods}
    for method in asked:
        if method.lower() not in known:
            names = dict.fromkeys(repr(method) for study in studies for method in study.methods)
            raise bad_parameter("reproduce", "--method", allowed=f"one of {', '.join(names)}", got=method)
    chosen = {method.lower() for method in asked} or known
    return {s.name: [method for method in s.methods if method.lower() in chosen] for s in studies}


def run_plan(
    plan: Plan,
    *,
    jobs: int = 2,
    report: Callable[[StudyProgress, CellTask, Cell | Failure], None] | None = None,
) -> tuple[Failure, ...]:
    """Compute the missing cells and keep each as soon as it is finished.

    Parameters
    ----------
    plan : Plan
    jobs : int, default=2
        Cells at a time, each in a process of its own with one thread; 0 computes them in this process.
    report : callable, optional
        Called after each cell with the progress, the task and what came of it.

    Returns
    -------
    tuple of Failure
        Cells that could not be computed; the others were.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from likewise.experiments import ToyStudy
    >>> study = ToyStudy(quick=True)
    >>> store = Store(Path(tempfile.mkdtemp()), study)
    >>> run_plan(plan_run([(study, store)], seeds=1, methods=["baseline"]), jobs=0)
    ()
    >>> plan_run([(study, store)], seeds=1, methods=["baseline"]).tasks
    ()
    """
    check_integer(jobs, owner="run_plan", name="jobs", low=0)
    progress = StudyProgress({task: task.study.cost(task.method) for task in plan.tasks})
    with closing(work(plan.tasks, jobs)) as outcomes:
        for task, outcome in outcomes:
            if isinstance(outcome, Cell):
                plan.stores[task.study.name].write(outcome)
                progress.finish(task)
            else:
                progress.finish(task, outcome)
            if report is not None:
                report(progress, task, outcome)
    return tuple(progress.failures)
