"""One step of several ranks: each works on its share of the batch, and all make the same update."""

from __future__ import annotations

import math
import signal
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

from likewise.core.arrays import to_numpy
from likewise.core.errors import InputError
from likewise.models.guard import module_device
from likewise.training.batch import Batch
from likewise.training.objective import Objective, State
from likewise.training.ranks import ONE, Ranks
from likewise.training.sampling import BatchSource
from likewise.training.sharing import Share, sharing

__all__ = ["Together", "check_same_plan", "held_interrupts", "same_weights", "seed_torch", "why_not_shared"]


class Together:
    """How the ranks make a step. With one rank there is nothing to it.

    Every rank draws the same batch, so what is learned does not depend on how many there are. Each takes its share
    of the rows; their gradients add up to that of the batch, and every rank makes the same update with it.

    Parameters
    ----------
    ranks : Ranks
    share : bool, default=True
        Whether batches are shared; otherwise every rank works on the whole batch.
    seed : int, default=0
        For what is random in the network (dropout): drawn for each step and rank.
    """

    def __init__(self, ranks: Ranks = ONE, *, share: bool = True, seed: int = 0) -> None:
        self.ranks, self._shared, self._seed = ranks, share, seed
        self.interrupted = False

    def step(
        self, objective: Objective, net: nn.Module, batch: Batch, state: State
    ) -> tuple[torch.Tensor, State]:
        """Return the objective's loss, whose gradients of all ranks add up to that of the batch, and the next state."""
        if not self.ranks.several:
            return objective.step(net, batch, state)
        share = self._share_of(batch)
        # Ranks with rows of their own need masks of their own; those that repeat each other's work the same ones.
        own = 0 if share is None else 1 + self.ranks.rank
        drawn = np.random.SeedSequence([self._seed, state.step, own]).generate_state(1)[0]
        seed_torch(int(drawn), module_device(net))
        with sharing(share):
            loss, after = objective.step(net, batch if share is None else share.rows, state)
        if share is None:
            # Everyone has all of the gradient: an equal part from each adds up to it.
            part = loss / self.ranks.world
            loss = part + (loss.detach() - part.detach())
        return loss, after

    def backward(self, loss: torch.Tensor, parameters: Sequence[torch.Tensor]) -> bool:
        """Give the parameters the gradient of the whole batch; return whether every rank's loss was finite.

        Raises
        ------
        KeyboardInterrupt
            On every rank, when any of them was interrupted.
        """
        loss.backward()  # type: ignore[no-untyped-call]
        if not self.ranks.several:
            return True
        told = [float(self.interrupted), float(not math.isfinite(float(loss.detach())))]
        interrupted, bad = _sum_gradients(self.ranks, parameters, told)
        if interrupted:
            raise KeyboardInterrupt
        return not bad

    def robust_loss(self, objective: Objective, net: nn.Module, rows: Batch, state: State) -> float:
        """Return the objective's robust loss on held-out rows, of which each rank takes its share."""
        if not self.ranks.several:
            return objective.robust_loss(net, rows, state)
        share = self._share_of(rows)
        with sharing(share):
            value = objective.robust_loss(net, rows if share is None else share.rows, state)
        # What is decided by it must be decided alike.
        return float(self.ranks.from_first(torch.tensor(value, dtype=torch.float64)))

    def _share_of(self, batch: Batch) -> Share | None:
        return Share(self.ranks, batch) if self._shared and len(batch) >= self.ranks.world else None


def seed_torch(seed: int, device: torch.device) -> None:
    """Seed the generators that a network on a device draws from.

    Not ``torch.manual_seed``: without CUDA it keeps the stack of every call for a CUDA that may come.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)


def _sum_gradients(
    ranks: Ranks, parameters: Sequence[torch.Tensor], told: Sequence[float]
) -> tuple[bool, ...]:
    """Sum the gradients over the ranks, in one message per dtype, and say which of `told` is not 0 anywhere."""
    heard: tuple[bool, ...] = ()
    for dtype in dict.fromkeys(p.dtype for p in parameters):
        own = [p for p in parameters if p.dtype == dtype]
        # Beside the gradients: which parameters have one, since the optimiser leaves the others alone.
        notes = [float(p.grad is not None) for p in own] + list(told)
        flat = [(torch.zeros_like(p) if p.grad is None else p.grad).reshape(-1) for p in own]
        summed = ranks.sum(torch.cat([*flat, flat[0].new_tensor(notes)]))
        *parts, noted = torch.split(summed, [*(p.numel() for p in own), len(notes)])
        present = (noted != 0).tolist()
        for p, part, there in zip(own, parts, present, strict=False):
            p.grad = part.reshape(p.shape) if there else None
        heard = tuple(present[len(own) :])
    return heard


@contextmanager
def held_interrupts(together: Together) -> Iterator[None]:
    """Run a block in which Ctrl-C is noted, for all ranks to stop at the same step; one rank stops at once."""
    if not together.ranks.several or threading.current_thread() is not threading.main_thread():
        yield
        return

    def note(number: int, frame: Any) -> None:
        together.interrupted = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def why_not_shared(objective: Objective, net: nn.Module) -> str | None:
    """Return why every rank has to work on the whole batch; None when batches can be shared.

    Examples
    --------
    >>> from likewise.training import ERM
    >>> print(why_not_shared(ERM(), nn.Linear(1, 1)))
    None
    >>> why_not_shared(ERM(), nn.BatchNorm1d(1))
    'the network has a BatchNorm1d, whose statistics are of the whole batch'
    """
    for part in objective.parts:
        if (reason := why_not_shared(part, net)) is not None:
            return reason
    if not objective.sums_over_ranks:
        return f"{type(objective).__name__} does not say that it adds up over ranks (sums_over_ranks)"
    for layer in net.modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm) and not isinstance(layer, nn.SyncBatchNorm):
            return f"the network has a {type(layer).__name__}, whose statistics are of the whole batch"
    return None


@torch.no_grad()
def same_weights(ranks: Ranks, net: nn.Module) -> None:
    """Give the network of every rank the weights and buffers of the first."""
    if ranks.several:
        for tensor in net.state_dict().values():
            tensor.copy_(ranks.from_first(tensor))


def check_same_plan(ranks: Ranks, source: BatchSource, plan: Sequence[object]) -> None:
    """Raise on every rank when they would draw different batches, or meet at different steps.

    Parameters
    ----------
    ranks : Ranks
    source : BatchSource
    plan : sequence
        What decides when ranks meet, as plain values.
    """
    if not ranks.several:
        return
    begin = source.position()
    batch = source.next()
    source.restore(begin)
    labels = zlib.crc32(to_numpy(batch.y.contiguous()).tobytes())
    exact = [zlib.crc32(repr(plan).encode()), len(batch), batch.x.shape[1], labels]
    # Not to the last bit: machines of different makes may encode a table with other roundings.
    size = float(batch.x.double().abs().sum())
    seen = [part.tolist() for part in ranks.gather(torch.tensor([*exact, size], dtype=torch.float64))]
    for rank, (*other, other_size) in enumerate(seen):
        if other != seen[0][:-1] or not math.isclose(other_size, seen[0][-1], rel_tol=1e-6):
            raise InputError(
                f"train: rank {rank} would draw another first batch than rank 0, or was given other settings. Pass "
                "the same data, seed and settings on every rank, and a loader without a DistributedSampler: each "
                "batch is shared between the ranks here."
            )
