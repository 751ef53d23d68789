"""The optimisers that have a name, without torch's compiler: torch loads it for the first one that is made.

Nothing here is compiled, and loading the compiler takes a second of CPU and 60 MB in every process that trains.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["SGD", "Adam", "AdamW"]


def _inside(method: Callable[..., Any]) -> Any:
    """Return a method of torch's as it was written: what stands around it keeps the compiler out by importing it.

    Examples
    --------
    >>> hasattr(_inside(torch.optim.Adam.zero_grad), "__wrapped__")
    False
    """
    return inspect.unwrap(method)


class _Eager(torch.optim.Optimizer):
    """What the three share."""

    add_param_group = _inside(torch.optim.Optimizer.add_param_group)
    load_state_dict = _inside(torch.optim.Optimizer.load_state_dict)
    state_dict = _inside(torch.optim.Optimizer.state_dict)
    zero_grad = _inside(torch.optim.Optimizer.zero_grad)


class Adam(_Eager, torch.optim.Adam):
    """`torch.optim.Adam`, the same numbers.

    Examples
    --------
    >>> net = torch.nn.Linear(1, 1)
    >>> optimizer = Adam(net.parameters(), lr=0.1)
    >>> net(torch.ones(1, 1)).sum().backward()
    >>> before = net.bias.item()
    >>> optimizer.step()
    >>> round(before - net.bias.item(), 4)
    0.1
    """

    step = torch.no_grad()(_inside(torch.optim.Adam.step))


class AdamW(_Eager, torch.optim.AdamW):
    """`torch.optim.AdamW`, the same numbers."""

    step = torch.no_grad()(_inside(torch.optim.AdamW.step))


class SGD(_Eager, torch.optim.SGD):
    """`torch.optim.SGD`, the same numbers."""

    step = torch.no_grad()(_inside(torch.optim.SGD.step))
