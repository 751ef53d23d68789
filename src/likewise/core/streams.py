"""What the command line prints: printable text only, in any encoding; a closed pipe ends it with a code of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from likewise.core.text import printable


class ClosedOutputError(Exception):
    """Nobody reads the output any more. Not an `OSError`: click and rich would end the command with 1, a verdict."""


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
        except BrokenPipeError as error:
            raise ClosedOutputError from error
        return len(text)

    def flush(self) -> None:
        """Write what is held back."""
        try:
            self._stream.flush()
        except BrokenPipeError as error:
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
