"""Distributed training: each rank works on a share of every batch, and sums over rows are taken over all ranks.

An objective that is worked on like this sees its share as its batch. Whatever it computes row by row stays as it is;
whatever it adds up over rows goes through `total` (or `weighted_mean`), and then has the value of the whole batch on
every rank. The gradient that a rank finds is its share's part of the whole, so the parts add up to the whole
gradient: unequal shares need no weights of their own.
"""

from __future__ import annotations

import builtins
import json
import math
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from likewise.core import errors
from likewise.core.checks import to_numpy
from likewise.core.errors import first_line_of
from likewise.core.launch import is_alone, launched
from likewise.core.progress import deferred_interrupts
from likewise.core.randomness import RandomState, numpy_generator, seed_torch
from likewise.models.oracle import module_device
from likewise.training.batch import Batch, BatchSource
from likewise.training.results import TrainingWarning

if TYPE_CHECKING:
    from likewise.training.objective import Objective, State

# The processes of a training and their collective operations. One process is the trivial case.


class RankLostError(errors.NotConvergedError):
    """Another process of the training ended, or cannot be reached.

    Examples
    --------
    >>> issubclass(RankLostError, errors.NotConvergedError)
    True
    """


@dataclass(frozen=True)
class Ranks:
    """The processes of a training, seen from one of them.

    Every method is a collective operation: all ranks call it, in the same order. With one rank each returns at once.

    Parameters
    ----------
    rank : int, default=0
        Number of this process.
    world : int, default=1
        Number of all.

    Examples
    --------
    >>> Ranks().sum(torch.tensor([1.0, 2.0])), Ranks().first
    (tensor([1., 2.]), True)
    """

    rank: int = 0
    world: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the one that writes files and talks."""
        return self.rank == 0

    @property
    def several(self) -> bool:
        """Whether there are others."""
        return self.world > 1

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the sum over all ranks of a tensor of one shape; the same bits on every rank."""
        return self._exchanged(tensor, lambda dist, moved: dist.all_reduce(moved))

    def gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """Return every rank's tensor, of one shape, in the order of the ranks."""
        if self.world == 1:
            return [tensor]
        import torch.distributed as dist

        moved = _travelling(tensor)
        found = [torch.empty_like(moved) for _ in range(self.world)]
        with _in_touch():
            dist.all_gather(found, moved)
        return [part.to(tensor.device) for part in found]

    def from_first(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the first rank's tensor; the others pass one of its shape and dtype."""
        return self._exchanged(tensor, lambda dist, moved: dist.broadcast(moved, src=0))

    def _exchanged(
        self, tensor: torch.Tensor, exchange: Callable[[Any, torch.Tensor], object]
    ) -> torch.Tensor:
        if self.world == 1:
            return tensor
        import torch.distributed as dist

        moved = _travelling(tensor).clone()
        with _in_touch():
            exchange(dist, moved)
        return moved.to(tensor.device)

    def bytes_from_first(self, data: bytes | None) -> bytes | None:
        """Return the bytes that the first rank has, or None if it has none."""
        if self.world == 1:
            return data
        size = int(self.from_first(torch.tensor(-1 if data is None else len(data))))
        if size < 0:
            return None
        mine = data if self.first and data is not None else bytes(size)
        sent = torch.frombuffer(bytearray(mine or b"\0"), dtype=torch.uint8)
        return self.from_first(sent).numpy().tobytes()[:size]

    def generator(self, random_state: RandomState) -> np.random.Generator:
        """Return a generator that draws the same on every rank; what an int gives is what one process gets."""
        if self.world == 1 or isinstance(random_state, (int, np.integer)):
            return numpy_generator(random_state)
        drawn = int(numpy_generator(random_state).integers(2**31))
        return numpy_generator(int(self.from_first(torch.tensor(drawn))))

    @contextmanager
    def agree(self) -> Iterator[None]:
        """Run a block without collective operations inside; an error on any rank is raised on all of them.

        The rank that failed raises its own error, the others one of its kind that names the rank. If several
        failed the lowest of them counts, so that what fails alike everywhere is reported by the first rank.
        """
        if self.world == 1:
            yield
            return
        error: Exception | None = None
        try:
            yield
        except Exception as raised:
            error = raised
        reports = self._reports(error)
        failed = [rank for rank, report in enumerate(reports) if report]
        if not failed:
            return
        if error is not None and self.rank == failed[0]:
            raise error
        kind, message = json.loads(reports[failed[0]])
        own = error is not None and str(error) == message
        told = message if own else f"rank {failed[0]}: {message}"
        raise _error_of(kind, told) from error

    def _reports(self, error: Exception | None) -> list[bytes]:
        """What went wrong on each rank, as JSON; empty if nothing did."""
        mine = b"" if error is None else json.dumps([type(error).__name__, str(error)]).encode()
        lengths = [int(length) for length in self.gather(torch.tensor(len(mine)))]
        if not any(lengths):
            return [b""] * self.world
        padded = torch.frombuffer(bytearray(mine.ljust(max(lengths), b" ")), dtype=torch.uint8)
        return [
            part.numpy().tobytes()[:length] for part, length in zip(self.gather(padded), lengths, strict=True)
        ]


ONE = Ranks()


def current_ranks() -> Ranks:
    """Return the ranks of the process group there is; one rank if there is none.

    Examples
    --------
    >>> current_ranks()
    Ranks(rank=0, world=1)
    """
    # Without the import there is no group.
    dist = sys.modules.get("torch.distributed")
    if is_alone() or dist is None or not (dist.is_available() and dist.is_initialized()):
        return ONE
    world = dist.get_world_size()
    return Ranks(dist.get_rank(), world) if world > 1 else ONE


@contextmanager
def joined() -> Iterator[Ranks]:
    """Give the ranks that this process belongs to: a process group made by the caller, or from torchrun's variables.

    A group that is made here (gloo for the CPU, nccl for CUDA) is destroyed when the block ends.

    Examples
    --------
    >>> with joined() as ranks:
    ...     ranks
    Ranks(rank=0, world=1)
    """
    ranks, launch = current_ranks(), launched()
    if ranks.several or not launch.several:
        yield ranks
        return
    import torch.distributed as dist

    if dist.is_initialized():
        # A group of one that the caller made.
        yield ONE
        return
    cuda = torch.cuda.is_available() and dist.is_nccl_available()
    if cuda:
        torch.cuda.set_device(launch.local_rank % torch.cuda.device_count())
    _make_group("cpu:gloo,cuda:nccl" if cuda else "gloo")
    try:
        yield current_ranks()
    finally:
        dist.destroy_process_group()


# The store in which the ranks find each other, and how many groups were made through it.
_store: Any = None
_groups = 0


def _make_group(backend: str) -> None:
    """Make the process group, with names of its own in the store, apart from those of earlier groups."""
    global _store, _groups
    import torch.distributed as dist

    launch = launched()
    _groups += 1
    with _in_touch():
        if _store is None:
            _store = next(iter(dist.rendezvous("env://")))[0]
        store = dist.PrefixStore(f"likewise/{_groups}", _store)
        dist.init_process_group(backend, store=store, rank=launch.rank, world_size=launch.world)


@contextmanager
def _in_touch() -> Iterator[None]:
    """Raise a `RankLostError` for the backend's own error if another rank has ended."""
    try:
        yield
    except RuntimeError as error:
        raise RankLostError(
            "another process of this training ended, or cannot be reached: see its message. "
            f"Resume from the checkpoint if there is one. ({first_line_of(error)})"
        ) from error


def _travelling(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor on a device that the backend of the group can send from."""
    import torch.distributed as dist

    found = str(dist.get_backend())
    tensor = tensor.detach().contiguous()
    if found == "nccl":
        return tensor.to(torch.device("cuda", torch.cuda.current_device()))
    return tensor.cpu() if tensor.is_cuda and "nccl" not in found else tensor


def _error_of(kind: str, message: str) -> Exception:
    """The error of another rank, as one of its kind if that is the package's or the system's."""
    found = getattr(errors, kind, None) or getattr(builtins, kind, None)
    if isinstance(found, type) and issubclass(found, errors.LikewiseError):
        return found(message)
    if isinstance(found, type) and issubclass(found, OSError):
        return OSError(message)
    return RuntimeError(f"{kind}: {message}")


@dataclass(frozen=True, eq=False)
class Share:
    """The rows of a batch that are this rank's: every world-th, so that batches sorted by class are shared class by class."""

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
    """Return the share that the current step works on; None if the batch is whole."""
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
    """Return the sum over all ranks of what each computed from its rows; the tensor itself if there is no share.

    Differentiable: the slope of the sum by a rank's own part is 1, so whatever is computed from it has, on each
    rank, the gradient of that rank's rows.
    """
    share = _share.get()
    if share is None:
        return tensor
    summed: torch.Tensor = _Total.apply(tensor, share.ranks)  # type: ignore[no-untyped-call]
    return summed


def anywhere(found: bool) -> bool:
    """Return whether something is so on any rank's rows."""
    return found if _share.get() is None else bool(total(torch.tensor(float(found))) > 0)


def whole_gradients(gradients: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
    """Return gradients of the whole batch for those of this rank's rows; in one message."""
    share = _share.get()
    given = [g for g in gradients if g is not None]
    if share is None or not given:
        return list(gradients)
    flat = share.ranks.sum(torch.cat([g.reshape(-1) for g in given]))
    parts = iter(torch.split(flat, [g.numel() for g in given]))
    return [None if g is None else next(parts).reshape(g.shape) for g in gradients]


def evenly(gradients: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return a rank's equal part of gradients that every rank knows whole, so that the parts add up to them."""
    share = _share.get()
    return list(gradients) if share is None else [g / share.ranks.world for g in gradients]


class _Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, ranks: Ranks) -> torch.Tensor:
        return ranks.sum(tensor)

    @staticmethod
    def backward(ctx: Any, *slopes: Any) -> Any:
        return slopes[0], None


# One step of several ranks: each works on its share of the batch, and all make the same update.


class DistributedStep:
    """How several ranks make a step.

    Every rank draws the same batch, so what is learned does not depend on how many there are. Each takes its share
    of the rows; their gradients add up to that of the batch, and every rank makes the same update with it.
    """

    def __init__(self, objective: Objective, ranks: Ranks, net: nn.Module, *, seed: int) -> None:
        reason = why_not_shared(objective, net) if ranks.several else None
        if reason is not None:
            warnings.warn(
                f"train: every rank works on whole batches, so several are no faster than one: {reason}.",
                TrainingWarning,
                stacklevel=3,
            )
        self.objective, self.ranks, self._seed = objective, ranks, seed
        self._shared, self.interrupted = ranks.several and reason is None, False

    def step(self, net: nn.Module, batch: Batch, state: State) -> tuple[torch.Tensor, State]:
        """Return the objective's loss, whose gradients of all ranks add up to that of the batch, and the next state."""
        share = self._share_of(batch)
        # Ranks with rows of their own need masks of their own; those that repeat each other's work the same ones.
        own = 0 if share is None else 1 + self.ranks.rank
        drawn = np.random.SeedSequence([self._seed, state.step, own]).generate_state(1)[0]
        seed_torch(int(drawn), module_device(net))
        with sharing(share):
            loss, after = self.objective.step(net, batch if share is None else share.rows, state)
        if share is None:
            # Everyone has all of the gradient: an equal part from each adds up to it.
            part = loss / self.ranks.world
            loss = part + (loss.detach() - part.detach())
        return loss, after

    def backward(self, loss: torch.Tensor, parameters: Sequence[torch.Tensor]) -> bool:
        """Give the parameters the gradient of the whole batch if every rank's loss is finite; return whether it is."""
        finite = math.isfinite(float(loss.detach()))
        if finite or self.ranks.several:
            loss.backward()  # type: ignore[no-untyped-call]
        if not self.ranks.several:
            return finite
        told = [float(self.interrupted), float(not finite)]
        interrupted, bad = _sum_gradients(self.ranks, parameters, told)
        if interrupted:
            raise KeyboardInterrupt
        return not bad

    def interrupts(self) -> AbstractContextManager[None]:
        """Defer Ctrl-C, for all ranks to stop at the same step; one rank stops at once."""
        return deferred_interrupts(self._interrupt) if self.ranks.several else nullcontext()

    def _interrupt(self) -> None:
        self.interrupted = True

    def robust_loss(self, net: nn.Module, rows: Batch, state: State) -> float:
        """Return the objective's robust loss on held-out rows, of which each rank takes its share."""
        share = self._share_of(rows)
        with sharing(share):
            value = self.objective.robust_loss(net, rows if share is None else share.rows, state)
        # What is decided by it must be decided alike.
        return float(self.ranks.from_first(torch.tensor(value, dtype=torch.float64)))

    def _share_of(self, batch: Batch) -> Share | None:
        return Share(self.ranks, batch) if self._shared and len(batch) >= self.ranks.world else None


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


def why_not_shared(objective: Objective, net: nn.Module) -> str | None:
    """Return why every rank has to work on the whole batch; None when batches can be shared."""
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
    """Raise on every rank when they would draw different batches, or communicate at different steps."""
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
            raise errors.InputError(
                f"train: rank {rank} would draw another first batch than rank 0, or was given other settings. Pass "
                "the same data, seed and settings on every rank, and a loader without a DistributedSampler: each "
                "batch is shared between the ranks here."
            )
