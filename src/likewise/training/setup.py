"""Preparation of a training: checked data, a source of batches, an optimiser, the number of threads."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from inspect import unwrap
from typing import Any, Literal, TypeAlias

import torch
from torch import nn

from likewise.core.checks import check_integer, check_number, to_numpy
from likewise.core.errors import InputError, bad_parameter, no_rows
from likewise.models.oracle import module_dtype
from likewise.training.batch import ArrayBatches, Batch, BatchSource, LoaderBatches, Sampling
from likewise.training.objective import Objective, try_network

# The optimisers that have a name, without torch's compiler: torch loads it for the first one that is made.


# Methods as torch wrote them (`unwrap`): what is around them keeps the compiler out by importing it.


class _Eager(torch.optim.Optimizer):
    """What the three share."""

    add_param_group = unwrap(torch.optim.Optimizer.add_param_group)
    load_state_dict = unwrap(torch.optim.Optimizer.load_state_dict)
    state_dict = unwrap(torch.optim.Optimizer.state_dict)
    zero_grad = unwrap(torch.optim.Optimizer.zero_grad)


class Adam(_Eager, torch.optim.Adam):
    """`torch.optim.Adam`, the same numbers."""

    step = torch.no_grad()(unwrap(torch.optim.Adam.step))


class AdamW(_Eager, torch.optim.AdamW):
    """`torch.optim.AdamW`, the same numbers."""

    step = torch.no_grad()(unwrap(torch.optim.AdamW.step))


class SGD(_Eager, torch.optim.SGD):
    """`torch.optim.SGD`, the same numbers."""

    step = torch.no_grad()(unwrap(torch.optim.SGD.step))


# Below this many parameters a batch of a thousand rows is too little work to share: on a busy machine two
# threads that wait for each other were up to 34 times slower than one.
_SMALL = 1_000_000


@contextmanager
def torch_threads(net: nn.Module, threads: int | Literal["auto"] | None) -> Iterator[None]:
    """Run a block with so many torch threads ("auto": one for a small network), then put the number back.

    None leaves the number alone.
    """
    before = torch.get_num_threads()
    if threads == "auto":
        threads = 1 if sum(p.numel() for p in net.parameters()) < _SMALL else None
    if threads is not None:
        besides = "'auto' or None"
        torch.set_num_threads(check_integer(threads, owner="train", name="threads", low=1, besides=besides))
    try:
        yield
    finally:
        torch.set_num_threads(before)


Data: TypeAlias = "Batch | BatchSource | Iterable[Any] | tuple[Any, Any]"
OptimizerLike: TypeAlias = (
    "Literal['adam', 'adamw', 'sgd'] | torch.optim.Optimizer | Callable[..., torch.optim.Optimizer]"
)


def check_batch(net: nn.Module, batch: Batch, objective: Objective, *, name: str = "data") -> None:
    """Raise, before training starts, when rows, targets, network and objective do not fit together."""
    if len(batch) == 0:
        raise no_rows("train", name)
    for part, tensor in batch.tensors().items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            row = int(torch.nonzero(~torch.isfinite(tensor.reshape(len(tensor), -1)).all(dim=1))[0, 0])
            raise InputError(
                f"train: {name!r} has values in {part!r} that are not finite, first at row {row}. "
                "Drop or impute them."
            )
    loss = objective.row_loss
    if loss.regression != batch.y.is_floating_point():
        allowed = "floating numbers" if loss.regression else "class indices (int64)"
        raise bad_parameter("train", f"{name}.y", f"{allowed} for this loss", str(batch.y.dtype))
    outputs = try_network(net, batch.x, loss, owner="train", name="the network")
    least, most = int(batch.y.min()), int(batch.y.max())
    if not loss.regression and least < 0:
        raise InputError(f"train: {name!r} has the class index {least}. Class indices start at 0.")
    if not loss.regression and most >= outputs:
        raise InputError(
            f"train: the network has {outputs} outputs, but {name!r} has class {most}. "
            "Give it an output per class."
        )
    objective.check(batch)


def checked_rows(
    net: nn.Module, data: Batch | tuple[Any, Any], objective: Objective, device: torch.device, *, name: str
) -> Batch:
    """Return rows in memory as the network takes them, once they fit it and the objective."""
    dtype = module_dtype(net)
    rows = data if isinstance(data, Batch) else Batch.from_arrays(*data, dtype=dtype)
    rows = rows.to(device, dtype)
    check_batch(net, rows, objective, name=name)
    return rows


def make_source(
    net: nn.Module,
    data: Data,
    objective: Objective,
    *,
    batch_size: int,
    sampling: Sampling,
    generator: torch.Generator,
    device: torch.device,
) -> BatchSource:
    """Return the source of batches of whatever the user passed."""
    if isinstance(data, Batch) or (isinstance(data, tuple) and len(data) == 2):
        rows = checked_rows(net, data, objective, device, name="data")
        if not rows.y.is_floating_point() and len(torch.unique(rows.y)) < 2:
            raise InputError(
                f"train: 'data' has one class only ({int(rows.y[0])}). Two or more are needed; check how the target "
                "was cut."
            )
        return ArrayBatches(rows, batch_size, sampling, generator=generator)
    if not isinstance(data, (BatchSource, Iterable)):
        raise bad_parameter(
            "train",
            "data",
            "a Batch, (X, y), a DataLoader or another BatchSource",
            type(data).__name__,
            "Build one with Batch.from_arrays(X, y).",
        )
    source = data
    if not isinstance(source, BatchSource):
        source = LoaderBatches(source, generator=generator, device=device, dtype=module_dtype(net))
    # The first batch is looked at and put back.
    begin = source.position()
    check_batch(net, source.next(), objective)
    source.restore(begin)
    return source


def fingerprint(source: BatchSource) -> int:
    """Return a checksum of rows held in memory, by which a resumed run knows its data again; 0 for other sources."""
    code = 0
    for tensor in source.data.tensors().values() if isinstance(source, ArrayBatches) else ():
        code = zlib.crc32(to_numpy(tensor.contiguous()).tobytes(), code)
    return code


def make_optimizer(net: nn.Module, optimizer: OptimizerLike, lr: float) -> torch.optim.Optimizer:
    """Return an optimiser of the network's parameters."""
    if isinstance(optimizer, torch.optim.Optimizer):
        return optimizer
    rate = check_number(lr, owner="train", name="lr", low=0, open_low=True)
    parameters = [p for p in net.parameters() if p.requires_grad]
    if not parameters:
        raise InputError(
            "train: the network has no parameter that requires a gradient. Nothing can be trained."
        )
    if callable(optimizer):
        return optimizer(parameters, lr=rate)
    named: dict[str, Callable[..., torch.optim.Optimizer]] = {"adam": Adam, "adamw": AdamW, "sgd": SGD}
    if optimizer not in named:
        raise bad_parameter(
            "train",
            "optimizer",
            f"one of {sorted(named)}, an Optimizer, or a function (parameters, lr) -> Optimizer",
            optimizer,
        )
    # One kernel for all parameters: a third of the time of the default for small networks.
    return named[optimizer](parameters, lr=rate, fused=True)
