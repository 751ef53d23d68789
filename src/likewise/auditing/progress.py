"""How far the searches of people in memory are: on standard error with the time left, or for a function that looks on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

from likewise.auditing.search.contract import Budget
from likewise.core.progress import progress_bar

# (name of a search, share of it that is done or None where that is not known yet) -> nothing; raising KeyboardInterrupt
# ends the search as Ctrl-C does.
OnProgress: TypeAlias = Callable[[str, float | None], None]
# (name of a search, budget) -> the same budget, which now shows what it is told.
Watched: TypeAlias = Callable[[str, Budget], Budget]


@contextmanager
def search_bar(*, show: bool | OnProgress) -> Iterator[Watched]:
    """Give a function that has a search's progress shown; it changes nothing when `show` is False."""
    if callable(show):
        yield lambda name, budget: _heard(show, name, budget)
        return
    if not show:
        yield lambda name, budget: budget
        return
    with progress_bar() as bar:

        def watched(name: str, budget: Budget) -> Budget:
            bar.start(name)  # until a search reports its share, its bar only moves
            return replace(budget, watch=lambda share: bar.update(share, total=1.0))

        yield watched


def _heard(on_progress: OnProgress, name: str, budget: Budget) -> Budget:
    on_progress(name, None)
    return replace(budget, watch=lambda share: on_progress(name, share))
