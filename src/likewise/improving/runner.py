"""Run studies: what is finished is kept, what is missing is computed, what fails is told and the rest goes on."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any

from likewise.core.checks import check_integer
from likewise.core.errors import InputError, bad_parameter
from likewise.core.progress import blocked_interrupts
from likewise.core.text import option
from likewise.improving.cells import Cell, Computation, Store, versions

# Worker processes: each computes one cell at a time with one thread, and dies with the process that started
# it.


_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class CellTask:
    """A cell to be computed."""

    study: Computation
    method: str
    seed: int


@dataclass(frozen=True)
class Failure:
    """Why a cell could not be computed."""

    task: CellTask
    reason: str


def work(tasks: Sequence[CellTask], jobs: int) -> Generator[tuple[CellTask, Cell | Failure], None, None]:
    """Compute cells in worker processes; yield each as it finishes.

    A worker that dies fails its cell and is replaced; the others go on. Closing the iterator ends the workers.
    """
    if jobs == 0:
        for task in tasks:
            answer = _compute(task)
            yield task, answer if isinstance(answer, Cell) else Failure(task, answer)
        return
    waiting = list(reversed(tasks))
    busy: dict[Connection, tuple[_Worker, CellTask]] = {}
    idle: list[_Worker] = []
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                worker = idle.pop() if idle else _Worker()
                task = waiting.pop()
                busy[worker.connection] = (worker, task)
                worker.send(task)
            for ready in wait(list(busy)):
                worker, task = busy.pop(ready)  # type: ignore[call-overload]
                outcome = worker.receive(task)
                if worker.process.is_alive():
                    idle.append(worker)
                else:
                    worker.end()
                yield task, outcome
    finally:
        for worker in [*idle, *(worker for worker, _ in busy.values())]:
            worker.end()


class _Worker:
    """A process and the pipe to it."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        # Ctrl-C reaches the whole group of processes; the one that starts them decides what is kept.
        if os.name == "posix":  # which would let signals through again if it were started on the way
            resource_tracker.ensure_running()
        with _one_thread(), blocked_interrupts():
            self.process.start()
        theirs.close()

    def send(self, task: CellTask) -> None:
        """Start a cell; a worker that is gone already is noticed when its answer is awaited."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(task)

    def receive(self, task: CellTask) -> Cell | Failure:
        """Return what came of a cell."""
        try:
            answer: Cell | str = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            return Failure(task, _how_it_ended(self.process.exitcode))
        return answer if isinstance(answer, Cell) else Failure(task, answer)

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self.connection.close()
        self.process.terminate()
        self.process.join()


def _how_it_ended(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name if -code in {s.value for s in signal.Signals} else str(-code)
        return f"its process was ended from outside ({name}): perhaps there was not enough memory"
    return f"its process ended unexpectedly (exit code {code})"


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let processes that start in this block have one thread: libraries, torch too, read it when they are loaded."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _serve(connection: Connection) -> None:
    """Body of a worker process: compute what comes until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where it could not be blocked
    threading.Thread(target=_die_with_parent, daemon=True).start()
    while True:
        try:
            task: CellTask = connection.recv()
        except EOFError:
            return
        connection.send(_compute(task))


def _die_with_parent() -> None:
    """A process whose starter was killed would compute on for nobody."""
    parent: Any = multiprocessing.parent_process()
    wait([parent.sentinel])
    os._exit(1)


def _compute(task: CellTask) -> Cell | str:
    begin = time.process_time()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", DeprecationWarning)
            result = task.study.run(task.method, task.seed)
        json.dumps(result.extras, allow_nan=False)
    except Exception as error:  # whatever it is, the other cells go on
        return f"{type(error).__name__}: {error}"
    told = tuple(dict.fromkeys(str(warning.message) for warning in caught))
    return Cell(task.method, task.seed, result, time.process_time() - begin, told, versions())


@dataclass(frozen=True)
class Plan:
    """Cells to be computed, and those that are there."""

    tasks: tuple[CellTask, ...]
    stores: dict[str, Store]
    finished: int
    damaged: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()


@dataclass
class StudyProgress:
    """How far a run is, told after each cell."""

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
    studies: Sequence[tuple[Computation, Store]],
    seeds: int,
    methods: Iterable[str] = (),
    *,
    replace_other: bool = False,
) -> Plan:
    """Find out which cells are missing.

    Parameters
    ----------
    studies : sequence of (Computation, Store)
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
        damaged += found.damaged
        other += (f"{key[0]}, seed {key[1]}, in {store.path}: {how}" for key, how in found.other.items())
        cells = [(method, seed) for method in wanted[study.name] for seed in range(seeds)]
        tasks += (CellTask(study, *key) for key in cells if key not in found.cells)
    if other and not replace_other:
        raise InputError(
            f"{len(other)} finished cells were made with other settings, such as {other[0]}. Choose another "
            f"folder, or pass {option('replace_other')} to compute them again."
        )
    # The last two seeds are one, so that no long cell is left to run alone at the end.
    joined = max((task.seed for task in tasks), default=0) - 1
    tasks.sort(key=lambda task: (min(task.seed, joined), -task.study.cost(task.method), task.seed))
    stores = {study.name: store for study, store in studies}
    return Plan(tuple(tasks), stores, finished, tuple(damaged), tuple(other))


def _choose(studies: Sequence[Computation], asked: list[str]) -> dict[str, list[str]]:
    """Study's name to the methods asked for, in the study's order."""
    known = {method.lower() for study in studies for method in study.methods}
    for method in asked:
        if method.lower() not in known:
            names = dict.fromkeys(repr(method) for study in studies for method in study.methods)
            raise bad_parameter("reproduce", "method", f"one of {', '.join(names)}", method)
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
