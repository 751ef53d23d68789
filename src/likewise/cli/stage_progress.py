"""What is going on, on standard error: only where a person looks on, and never with --quiet."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from likewise.auditing.parts.search_bar import Heard

__all__ = ["Progress"]


class Progress:
    """Stages of a run: a spinner with the current one, a line with its time when it is done.

    Parameters
    ----------
    quiet : bool
        Say nothing at all.

    Attributes
    ----------
    shown : bool
        Whether there is a terminal to show progress on.
    """

    def __init__(self, quiet: bool = False) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False)
        self._quiet = quiet
        self.shown = self._console.is_terminal and not quiet

    @property
    def searches(self) -> bool | Heard:
        """What `audit` is told about progress: whether its searches show bars of their own, or who hears of them."""
        return self.shown

    @contextmanager
    def stage(self, title: str, *, spinner: bool = True) -> Iterator[None]:
        """Show a stage while the block runs.

        Parameters
        ----------
        title : str
        spinner : bool, default=True
            False where the block shows a bar of its own: a terminal has room for one.
        """
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
