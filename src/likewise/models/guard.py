"""A torch module leaves a computation exactly as it came: modes, weights, buffers, random state."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from likewise.core.errors import InputError

__all__ = ["GuardedCall", "check_rows_independent", "evaluating", "module_device", "module_dtype"]

_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


@dataclass
class GuardedCall:
    """What happened inside `evaluating`: whether the module wrote to its own weights or buffers."""

    wrote: bool = False


@contextmanager
def evaluating(module: nn.Module, *, keep_tensors: bool = True) -> Iterator[GuardedCall]:
    """Run a block with the module in evaluation mode, then put everything back, also when the block raises.

    Parameters
    ----------
    module : torch.nn.Module
    keep_tensors : bool, default=True
        Whether to copy weights and buffers first and put back those the block changed (a module may write to
        them in ``forward``: `nn.Embedding(max_norm=...)`, counters).

    Notes
    -----
    The mode is set by attribute, not by ``module.eval()``, because a module may override that to do more.

    Examples
    --------
    >>> net = nn.Sequential(nn.Linear(2, 2), nn.Dropout()).train()
    >>> with evaluating(net) as happened:
    ...     net[1].training
    False
    >>> net[1].training, happened.wrote
    (True, False)
    """
    training = [part for part in module.modules() if part.training]
    tensors = [*module.parameters(), *module.buffers()] if keep_tensors else []
    copies = [tensor.detach().clone() for tensor in tensors]
    cpu_state = torch.get_rng_state()
    device = module_device(module)
    cuda_state = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    for part in training:
        part.training = False
    happened = GuardedCall()
    try:
        yield happened
    finally:
        for part in training:
            part.training = True
        torch.set_rng_state(cpu_state)
        if cuda_state is not None:
            torch.cuda.set_rng_state(cuda_state, device)
        for tensor, copy in zip(tensors, copies, strict=True):
            if not torch.equal(tensor, copy):
                # Through .data, so that a graph of the caller that holds this tensor stays valid.
                tensor.data.copy_(copy)
                happened.wrote = True


def module_dtype(module: nn.Module) -> torch.dtype:
    """Floating dtype of the module's parameters; torch's default when it has none.

    Examples
    --------
    >>> module_dtype(nn.Linear(1, 1).double())
    torch.float64
    """
    for tensor in itertools.chain(module.parameters(), module.buffers()):
        if tensor.is_floating_point():
            return tensor.dtype
    return torch.get_default_dtype()


def module_device(module: nn.Module) -> torch.device:
    """Device of the module's first parameter or buffer; the CPU when it has none.

    Examples
    --------
    >>> module_device(nn.Identity())
    device(type='cpu')
    """
    for tensor in itertools.chain(module.parameters(), module.buffers()):
        return tensor.device
    return torch.device("cpu")


def check_rows_independent(module: nn.Module, *, owner: str) -> None:
    """Raise when the module mixes rows of a batch even in evaluation mode.

    Examples
    --------
    >>> check_rows_independent(nn.BatchNorm1d(2, track_running_stats=False), owner="audit")
    Traceback (most recent call last):
    ...
    likewise.core.errors.InputError: audit: the module's '' (BatchNorm1d) has no running statistics...
    """
    for name, part in module.named_modules():
        if isinstance(part, _BATCH_NORMS) and part.running_mean is None:
            raise InputError(
                f"{owner}: the module's {name!r} ({type(part).__name__}) has no running statistics, so its answer "
                "for a row depends on the other rows of the batch. Use track_running_stats=True."
            )
