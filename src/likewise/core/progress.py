"""Progress on standard error: stages of a command, bars with the time left, and Ctrl-C that can wait."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def error_console() -> Any:
    """Return a console on standard error."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def write_error(line: str) -> None:
    """Write a line on standard error; on a terminal, break it between words."""
    if sys.stderr.isatty():
        error_console().print(line, markup=False)
    else:
        sys.stderr.write(f"{line}\n")


class ProgressBar:
    """One bar on a terminal at a time; without a rich bar all methods do nothing."""

    def __init__(self, bar: Any = None) -> None:
        self._bar = bar
        self._task: Any = None

    def start(self, title: str, *, total: float | None = None, done: float = 0) -> None:
        """Finish the bar before, and begin one; without a total it only moves."""
        if self._bar is None:
            return
        if self._task is not None:
            self._bar.update(self._task, total=1.0, completed=1.0)
        self._task = self._bar.add_task(title, total=total, completed=done, note="")

    def update(self, done: float, **shown: Any) -> None:
        """Show how much is done; `total`, `description` and `note` replace what is shown."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, **shown)

    def print(self, line: str) -> None:
        """Print a line above the bar."""
        if self._bar is not None:
            self._bar.console.print(line, markup=False)


@contextmanager
def progress_bar(
    *, show: bool = True, counted: bool = False, estimated: bool = True, transient: bool = True
) -> Iterator[ProgressBar]:
    """Show a bar while the block runs.

    `counted` adds "12/100", `estimated` the time left as rich estimates it.
    """
    if not show:
        yield ProgressBar()
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress as RichProgress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns: list[Any] = [TextColumn("{task.description}", markup=False), BarColumn()]
    columns += [MofNCompleteColumn()] if counted else []
    columns += [TextColumn("{task.fields[note]}", markup=False), TimeElapsedColumn()]
    columns += [TextColumn("left"), TimeRemainingColumn()] if estimated else []
    with RichProgress(*columns, console=error_console(), transient=transient) as bar:
        yield ProgressBar(bar)


class Progress:
    """Stages of a command: a spinner with the current one, a line with its time when it is done; and notes."""

    def __init__(self, quiet: bool = False) -> None:
        self._console = error_console()
        self._quiet = quiet
        self.shown = bool(self._console.is_terminal) and not quiet

    @property
    def searches(self) -> Any:
        """What `audit` takes as `progress`: whether to show bars, or a function to call."""
        return self.shown

    @contextmanager
    def stage(self, title: str, *, spinner: bool = True) -> Iterator[None]:
        """Show a stage while the block runs."""
        if not self.shown:
            yield
            return
        from rich.markup import escape

        start = time.monotonic()
        if spinner:
            with self._console.status(f"{escape(title)} …"):
                yield
        else:
            self._console.print(f"{title} …", markup=False)
            yield
        self._console.print(f"[green]✓[/] {escape(title)} [dim]{time.monotonic() - start:.1f} s[/]")

    def note(self, text: str) -> None:
        """Print something that the user should know, in one line on standard error."""
        if not self._quiet:
            write_error(f"Note: {text}")


def written_duration(seconds: float) -> str:
    """Write seconds in the unit a person waits in."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def deferred_interrupts(instead: Callable[[], None] | None = None) -> Iterator[None]:
    """Defer SIGINT until the block has ended; a second Ctrl-C is delivered at once.

    With `instead`, every Ctrl-C calls it, and the block decides when to stop. Outside the main thread, and if nobody
    handles SIGINT, the block runs as it is.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    pending: list[int] = []

    def hold(number: int, frame: Any) -> None:
        if instead is not None:
            instead()
            return
        pending.append(number)
        if len(pending) > 1:
            before(number, frame)

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pending:
            before(pending[0], None)
