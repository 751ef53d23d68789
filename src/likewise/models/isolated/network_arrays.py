"""The ReLU network that a model is as plain arrays between two processes, checked on arrival."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from likewise.core.errors import FormatError
from likewise.core.plain_forms import Fields, check_form
from likewise.models.isolated.messages import Array
from likewise.models.relu_network import ReluNetwork

__all__ = ["check_layers", "pack_network", "unpack_network"]


def pack_network(network: ReluNetwork) -> tuple[dict[str, Any], list[Array]]:
    """Return a network as JSON and plain arrays.

    Examples
    --------
    >>> net = ReluNetwork((np.eye(2),), (np.zeros(2),))
    >>> unpack_network(*pack_network(net)).n_outputs
    2
    """
    pairs = zip(network.weights, network.biases, strict=True)
    arrays = [*itertools.chain(*pairs), *(network.first_sizes or ())]
    text = {"roundoff": float(network.roundoff), "sizes": network.first_sizes is not None}
    return text, [np.asarray(array, dtype=np.float64) for array in arrays]


def unpack_network(text: dict[str, Any], arrays: Sequence[Array]) -> ReluNetwork:
    """Return the network that `pack_network` packed.

    Raises
    ------
    FormatError
        Where its layers do not fit together.
    """
    check_form(text, Fields({"roundoff": float, "sizes": bool}), "the network")
    last = len(arrays) - (2 if text["sizes"] else 0)
    weights, biases = check_layers(arrays[:last])
    sizes = None
    if text["sizes"]:
        sizes = arrays[last], arrays[last + 1]
        if (sizes[0].shape, sizes[1].shape) != (weights[0].shape, biases[0].shape):
            raise FormatError("the network's sizes are not those of its first layer")
    if not 0 < text["roundoff"] < 1:
        raise FormatError(f"the network's roundoff is {text['roundoff']}")
    return ReluNetwork(weights, biases, text["roundoff"], sizes)


def check_layers(arrays: Sequence[Array]) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Return weights and biases that came in turns, once each layer takes what the one before gives.

    Raises
    ------
    FormatError
        Where they do not fit together, or are not finite.
    """
    weights, biases = tuple(arrays[0::2]), tuple(arrays[1::2])
    if not weights or len(weights) != len(biases):
        raise FormatError("the model's layers are incomplete")
    fits = all(
        w.ndim == 2 and b.shape == (len(w),) and np.isfinite(w).all() and np.isfinite(b).all()
        for w, b in zip(weights, biases, strict=True)
    )
    if not fits or any(a.shape[0] != b.shape[1] for a, b in itertools.pairwise(weights)):
        raise FormatError("the model's layers do not fit together")
    return weights, biases
