"""A batch that several ranks work on: each has a share of its rows, and what is summed over rows is summed over all.

An objective that is worked on like this sees its share as its batch. Whatever it computes row by row stays as it is;
whatever it adds up over rows goes through `total` (or `weighted_mean`), and then has the value of the whole batch on
every rank. The gradient that a rank finds is its share's part of the whole, so the parts add up to the whole
gradient: unequal shares need no weights of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch

from likewise.training.batch import Batch
from likewise.training.ranks import Ranks

__all__ = ["Share", "anywhere", "current_share", "evenly", "sharing", "total", "whole_gradients"]


@dataclass(frozen=True, eq=False)
class Share:
    """The rows of a batch that are this rank's: every world-th, so that batches sorted by class are shared class by class.

    Parameters
    ----------
    ranks : Ranks
    whole : Batch
        The same on every rank, with at least one row for each.

    Examples
    --------
    >>> whole = Batch(torch.zeros(5, 2), torch.tensor([0, 0, 0, 1, 1]))
    >>> [Share(Ranks(rank, 2), whole).rows.y.tolist() for rank in (0, 1)]
    [[0, 0, 1], [0, 1]]
    """

    ranks: Ranks
    whole: Batch

    @property
    def rows(self) -> Batch:
        """The share."""
        return Batch(**{name: self.part(tensor) for name, tensor in self.whole.tensors().items()})

    def part(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return this rank's rows of a tensor that has one for each row of the whole batch."""
        return tensor[self.ranks.rank :: self.ranks.world].contiguous()

    def rejoin(self, part: torch.Tensor) -> torch.Tensor:
        """Return the tensor of the whole batch of which every rank has its `part`."""
        n, world = len(self.whole), self.ranks.world
        most = -(-n // world)
        padded = part.detach()
        if len(padded) < most:
            padded = torch.cat([padded, padded.new_zeros(1, *padded.shape[1:])])
        parts = self.ranks.gather(padded)
        # Row i of the whole is row i // world of rank i % world.
        return torch.stack(parts, dim=1).flatten(0, 1)[:n]


_share: ContextVar[Share | None] = ContextVar("share", default=None)


def current_share() -> Share | None:
    """Return the share that the current step works on; None where the batch is whole.

    Examples
    --------
    >>> current_share() is None
    True
    """
    return _share.get()


@contextmanager
def sharing(share: Share | None) -> Iterator[None]:
    """Run a step, or a validation, on a share."""
    token = _share.set(share)
    try:
        yield
    finally:
        _share.reset(token)


def total(tensor: torch.Tensor) -> torch.Tensor:
    """Return the sum over all ranks of what each computed from its rows; the tensor itself where there is no share.

    Differentiable: the slope of the sum by a rank's own part is 1, so whatever is computed from it has, on each
    rank, the gradient of that rank's rows.

    Examples
    --------
    >>> total(torch.tensor(2.0))
    tensor(2.)
    """
    share = _share.get()
    if share is None:
        return tensor
    summed: torch.Tensor = _Total.apply(tensor, share.ranks)  # type: ignore[no-untyped-call]
    return summed


def anywhere(found: bool) -> bool:
    """Return whether something is so on any rank's rows.

    Examples
    --------
    >>> anywhere(False)
    False
    """
    return found if _share.get() is None else bool(total(torch.tensor(float(found))) > 0)


def whole_gradients(gradients: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
    """Return gradients of the whole batch for those of this rank's rows; in one message.

    Examples
    --------
    >>> whole_gradients([torch.ones(2), None])
    [tensor([1., 1.]), None]
    """
    share = _share.get()
    given = [g for g in gradients if g is not None]
    if share is None or not given:
        return list(gradients)
    flat = share.ranks.sum(torch.cat([g.reshape(-1) for g in given]))
    parts = iter(torch.split(flat, [g.numel() for g in given]))
    return [None if g is None else next(parts).reshape(g.shape) for g in gradients]


def evenly(gradients: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return a rank's equal part of gradients that every rank knows whole, so that the parts add up to them.

    Examples
    --------
    >>> evenly([torch.ones(2)])
    [tensor([1., 1.])]
    """
    share = _share.get()
    return list(gradients) if share is None else [g / share.ranks.world for g in gradients]


class _Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, ranks: Ranks) -> torch.Tensor:
        return ranks.sum(tensor)

    @staticmethod
    def backward(ctx: Any, *slopes: Any) -> Any:
        return slopes[0], None
