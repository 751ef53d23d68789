"""What verbs write and print: files checked before any work is done, results, and how far a run of cells is."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.core.errors import InputError, require
from likewise.core.progress import progress_bar, stop_if_interrupted, written_duration
from likewise.core.streams import open_console
from likewise.core.text import join_words, printable

if TYPE_CHECKING:
    from likewise.cli.options import Outputs
    from likewise.improving.cells import Cell
    from likewise.improving.runner import CellTask, Failure, Plan, StudyProgress

    Reporter = Callable[[StudyProgress, CellTask, Cell | Failure], None]


def check_outputs(paths: Sequence[Path], *, force: bool) -> None:
    """Raise unless every file can be written where it should go."""
    for path in paths:
        if path.suffix == ".html":
            require("jinja2", extra="report", why="Writing a page")
        if not path.parent.is_dir():
            raise InputError(f"The folder {str(path.parent)!r} does not exist. Make it first.")
        if path.is_dir():
            raise InputError(f"{str(path)!r} is a folder. Name a file in it.")
        if path.exists() and not force:
            raise InputError(f"{path} exists already. Choose another name, or pass --force to replace it.")
        if not os.access(path.parent, os.W_OK):
            raise InputError(f"The folder {str(path.parent)!r} cannot be written to.")


def say(line: str, *, err: bool = False) -> None:
    """Print one line, whatever stands in the names and cells that it tells; on a terminal, break it between words."""
    line = printable(line)
    if (sys.stderr if err else sys.stdout).isatty():
        line = textwrap.fill(line, shutil.get_terminal_size().columns, break_on_hyphens=False)
    click.echo(line, err=err)


def deliver(
    outputs: Outputs,
    *,
    quiet: bool,
    document: Callable[[], str],
    show: Callable[[], object],
    partial: bool = False,
    **writers: Callable[[Path], object],
) -> None:
    """Write the files that were asked for, each by the writer of its kind; then print the result, or its JSON text."""
    if not partial:  # else the result says itself that it was cut short
        stop_if_interrupted()
    for kind, write in writers.items():
        if (path := outputs.get(kind)) is not None:
            write(path)
    if outputs.screen:
        click.echo(document().rstrip("\n"))
    elif not quiet:
        if outputs.paths:
            say(f"Wrote {join_words([str(path) for path in outputs.paths.values()], 'and')}.")
        show()


# Cells: trainings that run in processes of their own and are kept.


def announce_plan(plan: Plan, jobs: int, quiet: bool) -> None:
    """Say how much is kept and how much is left to compute."""
    if quiet:
        return
    for line in plan.damaged:
        say(f"Note: {line}; it is computed again.", err=True)
    if plan.replaced:
        say(f"Note: {len(plan.replaced)} cells of other settings are computed again.", err=True)
    kept = f"{plan.finished} cells are finished; " if plan.finished else ""
    say(f"{kept}{len(plan.tasks)} to compute, {jobs} at a time.", err=True)


@contextmanager
def reporting(total: int, quiet: bool, *, unit: str = "seed") -> Iterator[Reporter | None]:
    """Yield what to call after each cell: a bar with the time left on a terminal, or a line per cell in a log."""
    if quiet or not total:
        yield None
        return
    on_terminal = bool(open_console(stderr=True).is_terminal)
    with progress_bar(show=on_terminal, counted=True, estimated=False, transient=True) as bar:
        bar.start("Computing", total=total)

        def show(progress: StudyProgress, task: CellTask, outcome: Cell | Failure) -> None:
            seconds = progress.seconds_left if progress.done < progress.total else None
            left = f"about {written_duration(seconds)} left" if seconds else ""
            line = _line(task, outcome, unit)
            bar.update(progress.done, note=left)
            if not on_terminal:
                rest = f", {left}" if left else ""
                say(f"{line} ({progress.done} of {progress.total}{rest})", err=True)

        yield show


def _line(task: CellTask, outcome: Cell | Failure, unit: str) -> str:
    from likewise.improving.cells import Cell

    name = f"{task.study.name}: {task.method}, {unit} {task.seed}"
    if isinstance(outcome, Cell):
        return f"{name}: {outcome.cpu_seconds:.1f} CPU s"
    return f"{name} failed: {outcome.reason}"
