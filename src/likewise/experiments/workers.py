"""Worker processes: each computes one cell at a time with one thread, and dies with the process that started it."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from likewise.experiments.store import Cell, versions
from likewise.experiments.study import Study

__all__ = ["CellTask", "Failure", "work"]

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class CellTask:
    """A cell to be computed."""

    study: Study
    method: str
    seed: int


@dataclass(frozen=True)
class Failure:
    """Why a cell could not be computed.

    Parameters
    ----------
    task : CellTask
    reason : str
        One line.
    details : str
        Where it happened, for a bug report.
    """

    task: CellTask
    reason: str
    details: str = ""


def work(tasks: Sequence[CellTask], jobs: int) -> Generator[tuple[CellTask, Cell | Failure], None, None]:
    """Compute cells in worker processes; yield each as it finishes.

    A worker that dies fails its cell and is replaced; the others go on. Closing the iterator ends the workers.

    Parameters
    ----------
    tasks : sequence of CellTask
        Started in this order.
    jobs : int
        How many at a time; 0 computes one after the other in this process.

    Yields
    ------
    task, outcome : CellTask, Cell or Failure
    """
    if jobs == 0:
        for task in tasks:
            answer = _compute(task)
            yield task, answer if isinstance(answer, Cell) else Failure(task, *answer)
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
        with _one_thread():
            self.process.start()
        theirs.close()

    def send(self, task: CellTask) -> None:
        """Start a cell; a worker that is gone already is noticed when its answer is awaited."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(task)

    def receive(self, task: CellTask) -> Cell | Failure:
        """Return what came of a cell."""
        try:
            answer: Cell | tuple[str, str] = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            return Failure(task, _how_it_ended(self.process.exitcode))
        return answer if isinstance(answer, Cell) else Failure(task, *answer)

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
    # Ctrl-C reaches the whole group of processes; the one that started us decides what is kept.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
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


def _compute(task: CellTask) -> Cell | tuple[str, str]:
    begin = time.process_time()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", DeprecationWarning)
            result = task.study.run(task.method, task.seed)
        json.dumps(result.extras, allow_nan=False)
    except Exception as error:  # whatever it is, the other cells go on
        return f"{type(error).__name__}: {error}", traceback.format_exc()
    told = tuple(dict.fromkeys(str(warning.message) for warning in caught))
    return Cell(task.method, task.seed, result, time.process_time() - begin, told, versions())
