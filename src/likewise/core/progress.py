"""Terminal output: printable text in any encoding, progress on standard error, and deferred SIGINT."""

from __future__ import annotations

import signal
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from likewise.core.text import printable


class ClosedOutputError(Exception):
    """Nobody reads the output any more, or it cannot be written to.

    Not an `OSError`: click, rich and Python itself would end the command with 1, a verdict.
    """


class PrintableStream:
    """A text stream that writes every line as printable text; `styled` passes the escapes of our own console.

    It has no `buffer`: click takes that for a stream in ASCII, and writes UTF-8 past the text layer.
    """

    def __init__(self, stream: TextIO, *, passing: bool = False) -> None:
        self._stream, self._passing = stream, passing
        self.encoding = getattr(stream, "encoding", None) or "utf-8"
        self.errors = "replace"

    @property
    def styled(self) -> PrintableStream:
        """The same stream for text that is checked already."""
        return PrintableStream(self._stream, passing=True)

    def write(self, text: str) -> int:
        """Write text; what the encoding lacks becomes a question mark."""
        shown = text if self._passing else printable(text, keep="\n\t")
        # Streams that cannot be told how to replace (a test's, a notebook's) would raise instead.
        shown = shown.encode(self.encoding, "replace").decode(self.encoding, "replace")
        try:
            self._stream.write(shown)
        except OSError as error:
            raise ClosedOutputError from error
        return len(text)

    def flush(self) -> None:
        """Write what is held back."""
        try:
            self._stream.flush()
        except OSError as error:
            raise ClosedOutputError from error

    def isatty(self) -> bool:
        """Whether a person sees it."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the number of the file."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """Whether it can be written to."""
        return True


@contextmanager
def printable_streams() -> Iterator[None]:
    """Run a block in which standard output and error take printable text only."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (PrintableStream(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def open_console(*, stderr: bool = False, **choices: Any) -> Any:
    """Return a rich console whose text is printable; what it adds for colours and bars is its own."""
    from rich.console import Console
    from rich.segment import Segment

    class PrintableConsole(Console):
        def render(self, *given: Any, **named: Any) -> Any:
            for part in super().render(*given, **named):
                if part.control or part.text.isprintable():
                    yield part
                else:
                    yield Segment(printable(part.text, keep="\n"), part.style)

    stream = sys.stderr if stderr else sys.stdout
    return PrintableConsole(file=getattr(stream, "styled", None), stderr=stderr, highlight=False, **choices)


def write_error(line: str) -> None:
    """Write one line on standard error; on a terminal, break it between words."""
    # While a bar is drawn, rich puts what is written here above it.
    if sys.stderr.isatty() and not hasattr(sys.stderr, "rich_proxied_file"):
        open_console(stderr=True).print(printable(line), markup=False)
    else:
        sys.stderr.write(f"{printable(line)}\n")


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
    with RichProgress(*columns, console=open_console(stderr=True), transient=transient) as bar:
        yield ProgressBar(bar)


class Progress:
    """Stages of a command, the current one on the screen alone: what stays there is the result and the notes."""

    def __init__(self, quiet: bool = False) -> None:
        self._console = open_console(stderr=True)
        self._quiet = quiet
        self._held: list[str] | None = None
        self.shown = bool(self._console.is_terminal) and not quiet
        self.lines = 0  # of notes, on a terminal

    @property
    def searches(self) -> Any:
        """What `audit` takes as `progress`: whether to show bars, or a function to call."""
        return self.shown

    @contextmanager
    def stage(self, title: str, *, spinner: bool = True) -> Iterator[None]:
        """Show a stage while the block runs; its notes come when it has ended."""
        if not self.shown:
            yield
            return
        self._held = []
        try:
            with self._status(title) if spinner else self._title(title):
                yield
        finally:
            held, self._held = self._held, None
            for text in held:
                self.note(text)

    def _status(self, title: str) -> Any:
        from rich.markup import escape

        return self._console.status(f"{escape(title)} …")

    @contextmanager
    def _title(self, title: str) -> Iterator[None]:
        """A line that bars are drawn over: two of rich's displays cannot be shown at a time."""
        from rich.control import Control
        from rich.segment import ControlType

        self._console.print(f"{title} …", markup=False, end="")
        self._console.control(Control(ControlType.CARRIAGE_RETURN))
        try:
            yield
        finally:
            self._console.control(Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2)))

    def note(self, text: str) -> None:
        """Print something that the user should know, in one line on standard error."""
        if self._held is not None:
            self._held.append(text)
        elif not self._quiet:
            said = printable(f"Note: {text}")
            self.lines += len(textwrap.wrap(said, self._console.width)) if self.shown else 0
            write_error(said)


def written_duration(seconds: float) -> str:
    """Write seconds in the unit a person waits in."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


_interrupted = threading.Event()


@contextmanager
def noted_interrupts() -> Iterator[None]:
    """Remember every SIGINT during the block, wherever the KeyboardInterrupt that it raises is handled."""
    _interrupted.clear()
    before = signal.getsignal(signal.SIGINT)
    # A command that was started to ignore Ctrl-C goes on ignoring it.
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupt(number: int, frame: Any) -> None:
    first = not _interrupted.is_set()
    _interrupted.set()
    # An import that is cut short leaves half a library, and C code that imports another prints a traceback of its own.
    if first and _loads_library(frame):
        threading.Thread(target=_once_loaded, args=(number,), daemon=True).start()
        return
    raise KeyboardInterrupt


def _loads_library(frame: Any) -> bool:
    """Whether a verb is in the middle of an import."""
    while frame is not None and frame.f_globals.get("__name__") != "likewise.cli.app":
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _once_loaded(number: int) -> None:
    """Deliver a signal again when the main thread imports nothing: to that thread, which may be waiting for something."""
    main = threading.main_thread().ident or 0
    while _loads_library(sys._current_frames().get(main)):
        time.sleep(0.02)
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(main, number)
    else:
        signal.raise_signal(number)


def was_interrupted(*, forget: bool = False) -> bool:
    """Return whether SIGINT came since `noted_interrupts` began; `forget` if Ctrl-C is how a verb ends."""
    came = _interrupted.is_set()
    if forget:
        _interrupted.clear()
    return came


def stop_if_interrupted() -> None:
    """Raise KeyboardInterrupt before the result of a search that was cut short is shown."""
    if _interrupted.is_set():
        raise KeyboardInterrupt


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
        if before is _interrupt:
            _interrupted.set()
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


@contextmanager
def blocked_interrupts() -> Iterator[None]:
    """Start processes in a block that never hear Ctrl-C, from their first moment; this one hears it after the block."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
