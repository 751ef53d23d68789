"""Torch's optimisers without its compiler: torch loads that, a second of work, with the first optimiser of a process."""

from __future__ import annotations

from inspect import unwrap
from typing import Any

import torch

__all__ = ["SGD", "Adam", "AdamW"]

_Base = torch.optim.Optimizer


class _Plain(_Base):
    """The methods as they are written; torch wraps them for code that is compiled, and a training here is not."""

    add_param_group = unwrap(_Base.add_param_group)
    zero_grad = unwrap(_Base.zero_grad)
    state_dict = unwrap(_Base.state_dict)
    load_state_dict = unwrap(_Base.load_state_dict)


def _step(kind: type[_Base]) -> Any:
    return torch.no_grad()(unwrap(kind.step))


class Adam(_Plain, torch.optim.Adam):
    """`torch.optim.Adam`.

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

    step = _step(torch.optim.Adam)


class AdamW(_Plain, torch.optim.AdamW):
    """`torch.optim.AdamW`."""

    step = _step(torch.optim.AdamW)


class SGD(_Plain, torch.optim.SGD):
    """`torch.optim.SGD`."""

    step = _step(torch.optim.SGD)
