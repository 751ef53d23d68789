"""How far the searches of people in memory are, on standard error: one line each, with the time left where it is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

from likewise.auditing.search.contract import Budget

__all__ = ["Watched", "search_bar"]

# (name of a search, budget) -> the same budget, which now shows what it is told.
Watched: TypeAlias = Callable[[str, Budget], Budget]


@contextmanager
def search_bar(*, show: bool) -> Iterator[Watched]:
    """Give a function that has a search's progress shown; it changes nothing when `show` is False.

    Parameters
    ----------
    show : bool
        Whether there are bars at all. They disappear when the block ends.

    Examples
    --------
    >>> with search_bar(show=False) as watched:
    ...     watched("candidates", Budget()).tell(0.5)
    """
    if not show:
        yield lambda name, budget: budget
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: list[Any] = []

        def watched(name: str, budget: Budget) -> Budget:
            for earlier in tasks:
                bar.update(earlier, total=1.0, completed=1.0)
            # Until a search says how far it is, its bar only moves.
            task = bar.add_task(name, total=None)
            tasks.append(task)
            return replace(budget, watch=lambda share: bar.update(task, total=1.0, completed=share))

        yield watched
