"""Whether a launcher such as torchrun started this process together with others: read from the environment."""

from __future__ import annotations

import multiprocessing
import os
from dataclasses import dataclass

__all__ = ["Launch", "launched"]


@dataclass(frozen=True)
class Launch:
    """One process of those that were started together.

    Attributes
    ----------
    rank : int
        Its number among all, from 0.
    world : int
        How many there are.
    local_rank : int
        Its number on its own machine: which of the machine's devices is its own.
    """

    rank: int = 0
    world: int = 1
    local_rank: int = 0


def launched() -> Launch:
    """Return what torchrun's variables say; one process of one where they are absent or say nothing.

    A process that a launched one started for itself (a worker of joblib, of a data loader) inherits the variables,
    but is not one of the ranks.

    Examples
    --------
    >>> launched()
    Launch(rank=0, world=1, local_rank=0)
    """
    if multiprocessing.parent_process() is not None or not os.environ.get("MASTER_ADDR"):
        return Launch()
    try:
        rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        local = int(os.environ.get("LOCAL_RANK", "0"))
    except (KeyError, ValueError):
        return Launch()
    return Launch(rank, world, local) if 0 <= rank < world and world > 1 else Launch()
