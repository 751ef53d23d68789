"""How far a run of cells is, on standard error: a bar with the time left, or a line per cell in a log."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.core.errors import InputError, require

if TYPE_CHECKING:
    from likewise.auditing.progress import OnProgress
    from likewise.improving.cells import Cell
    from likewise.improving.runner import CellTask, Failure, StudyProgress

    Reporter = Callable[[StudyProgress, CellTask, Cell | Failure], None]

# Files a verb will write: checked before any work is done, so that nobody waits for a refusal.


def can_write_pages() -> bool:
    """Whether what pages are made with is installed; it comes with the extra "report"."""
    return importlib.util.find_spec("jinja2") is not None


def check_outputs(
    paths: Sequence[Path | None], *, force: bool, suffixes: Sequence[str] = (), option: str = "-o"
) -> None:
    """Raise unless every file can be written where it should go."""
    wanted = [path for path in paths if path is not None]
    if any(path.suffix == ".html" for path in wanted):
        require("jinja2", extra="report", why="Writing a page")
    for path in wanted:
        if not path.parent.is_dir():
            raise InputError(f"The folder {str(path.parent)!r} does not exist. Make it first.")
        if path.is_dir():
            raise InputError(f"{str(path)!r} is a folder. Name a file in it.")
        if path.exists() and not force:
            raise InputError(f"{path} exists already. Choose another name, or pass --force to replace it.")
        if not os.access(path.parent, os.W_OK):
            raise InputError(f"The folder {str(path.parent)!r} cannot be written to.")
        if suffixes and not path.name.endswith(tuple(suffixes)):
            raise InputError(f"{option} must end in {' or '.join(suffixes)}, got {path.name!r}.")
    if len({path.absolute() for path in wanted}) < len(wanted):
        raise InputError("Two outputs have the same name. Give each its own.")


# What is going on, on standard error: only where a person looks on, and never with --quiet.


class Progress:
    """Stages of a run: a spinner with the current one, a line with its time when it is done."""

    def __init__(self, quiet: bool = False) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False)
        self._quiet = quiet
        self.shown = self._console.is_terminal and not quiet

    @property
    def searches(self) -> bool | OnProgress:
        """What `audit` is told about progress: whether its searches show bars of their own, or who hears of them."""
        return self.shown

    @contextmanager
    def stage(self, title: str, *, spinner: bool = True) -> Iterator[None]:
        """Show a stage while the block runs."""
        if not self.shown:
            yield
            return
        start = time.monotonic()
        if spinner:
            status: Any = self._console.status(f"{title} …")
            with status:
                yield
        else:
            self._console.print(f"{title} …", markup=False)
            yield
        self._console.print(f"[green]✓[/] {_escaped(title)} [dim]{time.monotonic() - start:.1f} s[/]")

    def note(self, text: str) -> None:
        """Say something that the user should know, in one line on standard error."""
        if not self._quiet:
            click.echo(f"Note: {text}", err=True)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


@contextmanager
def reporting(total: int, quiet: bool, *, unit: str = "seed") -> Iterator[Reporter | None]:
    """Yield what to call after each cell: a bar with the time left on a terminal, a line per cell in a log."""
    if quiet or not total:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bar, TextColumn, TimeElapsedColumn

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
    from likewise.improving.cells import Cell

    name = f"{task.study.name}: {task.method}, {unit} {task.seed}"
    if isinstance(outcome, Cell):
        return f"{name}: {outcome.cpu_seconds:.1f} CPU s"
    return f"{name} failed: {outcome.reason}"


def _duration(seconds: float) -> str:
    """Seconds in the unit a person waits in."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
