"""Number of torch threads: set for a block, and put back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import nn

from likewise.core.checks import check_integer

__all__ = ["choose_threads", "torch_threads"]

# Below this many parameters a batch of a thousand rows is too little work to share: on a busy machine two
# threads that wait for each other were up to 34 times slower than one.
_SMALL = 1_000_000


def choose_threads(net: nn.Module, threads: int | Literal["auto"] | None) -> int | None:
    """Return how many threads a training of this network should use; None leaves torch's setting alone.

    Examples
    --------
    >>> choose_threads(nn.Linear(41, 100), "auto"), choose_threads(nn.Linear(41, 100), 4)
    (1, 4)
    """
    if threads is None:
        return None
    if threads == "auto":
        return 1 if sum(p.numel() for p in net.parameters()) < _SMALL else None
    return check_integer(threads, owner="train", name="threads", low=1, besides="'auto' or None")


@contextmanager
def torch_threads(threads: int | None) -> Iterator[None]:
    """Run a block with so many torch threads, then put the number back.

    Examples
    --------
    >>> before = torch.get_num_threads()
    >>> with torch_threads(1):
    ...     torch.get_num_threads()
    1
    >>> torch.get_num_threads() == before
    True
    """
    if threads is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
