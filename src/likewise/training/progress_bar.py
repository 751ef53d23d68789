"""A progress bar with the time left, when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Report", "progress_bar"]

Report = Callable[[int, float], None]


@contextmanager
def progress_bar(steps: int, done: int = 0, *, show: bool, title: str) -> Iterator[Report]:
    """Give a function of (steps done, loss) that moves the bar; it does nothing when `show` is False.

    Parameters
    ----------
    steps : int
        How many steps there will be.
    done : int, default=0
        How many are done already (a resumed run).
    show : bool
        Whether there is a bar at all. It goes to standard error and disappears when the block ends.
    title : str
        What it says beside the bar.

    Examples
    --------
    >>> with progress_bar(10, show=False, title="ERM") as report:
    ...     report(1, 0.5)
    """
    if not show:
        yield lambda step, loss: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.4f}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=steps, completed=done, loss=float("nan"))
        yield lambda step, loss: bar.update(task, completed=step, loss=loss)
