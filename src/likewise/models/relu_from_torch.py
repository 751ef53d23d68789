"""The ReLU network that a torch module is."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.core.arrays import to_numpy
from likewise.core.errors import InputError
from likewise.models.relu_network import ReluNetwork, no_plain_network

__all__ = ["is_torch_module", "relu_from_torch"]


def is_torch_module(module: Any) -> bool:
    """Whether something is a torch module, without importing torch."""
    return any(
        kind.__module__.split(".")[0] == "torch" and kind.__name__ == "Module"
        for kind in type(module).__mro__
    )


def relu_from_torch(module: Any) -> ReluNetwork:
    """Read an ``nn.Linear``, or an ``nn.Sequential`` of linear layers and ReLUs.

    Parameters
    ----------
    module : torch.nn.Module
        Dropout and batch norms with running statistics may stand between; a softmax or a single sigmoid at the end is
        left away.

    Examples
    --------
    >>> import torch
    >>> relu_from_torch(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))).n_inputs
    3
    """
    import torch

    from likewise.models.activations import LeakyReLU
    from likewise.models.network import network_of

    network = network_of(module)
    if network is None:
        raise no_plain_network(type(module).__name__)
    weights, biases = [], []
    for stage in network.stages:
        hidden = stage is not network.stages[-1]
        if hidden and stage.activation != LeakyReLU(0.0):
            raise InputError("read_relu_network: the network has hidden units that are no ReLUs.")
        with torch.no_grad():
            weight, bias = stage.read()
        weights.append(to_numpy(weight).astype(np.float64))
        biases.append(to_numpy(bias).astype(np.float64))
    single = next(module.parameters()).dtype != torch.float64
    # What is multiplied out here is rounded once more.
    several = any(len(stage.parts) > 1 for stage in network.stages)
    roundoff = (2.0**-24 if single else 2.0**-53) * (8.0 if several else 1.0)
    return ReluNetwork(tuple(weights), tuple(biases), roundoff)
