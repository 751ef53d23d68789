"""The environment of a launcher such as torchrun: this process's rank and the number of processes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

_alone: ContextVar[bool] = ContextVar("alone", default=False)


@dataclass(frozen=True)
class Launch:
    """One process of those that were started together."""

    rank: int = 0
    world: int = 1
    local_rank: int = 0

    @property
    def several(self) -> bool:
        """Whether there are others."""
        return self.world > 1

    @property
    def first(self) -> bool:
        """Whether this is the one that writes files and talks."""
        return self.rank == 0


def launched() -> Launch:
    """Return what torchrun's variables say; one process of one if they are absent or say nothing.

    A process that a launched one started for itself (a worker of joblib, of a data loader) inherits the variables,
    but is not one of the ranks.
    """
    inherited = multiprocessing.parent_process() is not None
    if inherited or is_alone() or not os.environ.get("MASTER_ADDR"):
        return Launch()
    try:
        rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        local = int(os.environ.get("LOCAL_RANK", "0"))
    except (KeyError, ValueError):
        return Launch()
    return Launch(rank, world, local) if 0 <= rank < world and world > 1 else Launch()


@contextmanager
def alone() -> Iterator[None]:
    """Run a block in which this process works by itself, whatever other processes were started with it.

    Examples
    --------
    >>> with alone():
    ...     launched().several
    False
    """
    token = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(token)


def is_alone() -> bool:
    """Return whether this is inside `alone`."""
    return _alone.get()
