"""How far a run of cells is, on standard error: a bar with the time left, or a line per cell in a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from likewise.experiments.runner import StudyProgress
    from likewise.experiments.store import Cell
    from likewise.experiments.workers import CellTask, Failure

    Reporter = Callable[[StudyProgress, CellTask, Cell | Failure], None]

__all__ = ["reporting"]


@contextmanager
def reporting(total: int, quiet: bool, *, unit: str = "seed") -> Iterator[Reporter | None]:
    """Yield what to call after each cell: a bar with the time left on a terminal, a line per cell in a log.

    Parameters
    ----------
    total : int
        Cells to be computed.
    quiet : bool
        Say nothing; yields None.
    unit : str, default="seed"
        What the cells of a method are called.
    """
    if quiet or not total:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield partial(_log, unit)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Bar(*columns, console=console) as bar:
        line = bar.add_task("Computing", total=total, left="")

        def show(progress: StudyProgress, task: CellTask, outcome: Cell | Failure) -> None:
            left = progress.seconds_left
            bar.update(
                line, completed=progress.done, left="" if left is None else f"about {_duration(left)} left"
            )
            bar.console.print(_line(task, outcome, unit), markup=False)

        yield show


def _log(unit: str, progress: StudyProgress, task: CellTask, outcome: Cell | Failure) -> None:
    left = progress.seconds_left
    rest = f", about {_duration(left)} left" if left and progress.done < progress.total else ""
    click.echo(f"{_line(task, outcome, unit)} ({progress.done} of {progress.total}{rest})", err=True)


def _line(task: CellTask, outcome: Cell | Failure, unit: str) -> str:
    from likewise.experiments.store import Cell

    name = f"{task.study.name}: {task.method}, {unit} {task.seed}"
    if isinstance(outcome, Cell):
        return f"{name}: {outcome.cpu_seconds:.1f} CPU s"
    return f"{name} failed: {outcome.reason}"


def _duration(seconds: float) -> str:
    """Seconds in the unit a person waits in.

    Examples
    --------
    >>> _duration(42), _duration(600), _duration(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
