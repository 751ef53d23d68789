"""The ReLU network that a scikit-learn MLP or linear model is."""

from __future__ import annotations

from likewise.core.errors import InputError
from likewise.models.relu_network import ReluNetwork
from likewise.models.sklearn_network import Layers

__all__ = ["relu_from_layers"]


def relu_from_layers(layers: Layers) -> ReluNetwork:
    """Read the layers of an MLP with ``activation="relu"``, or of a linear model; scalers in front are part of them.

    Parameters
    ----------
    layers : Layers
        From `likewise.models.sklearn_network`.

    Examples
    --------
    >>> import numpy as np
    >>> relu_from_layers(Layers((np.eye(2),), (np.zeros(2),))).n_outputs
    2
    """
    if len(layers.weights) > 1 and layers.activation != "relu":
        raise InputError(
            f"read_relu_network: the hidden units are {layers.activation!r}, and only ReLUs are read."
        )
    return ReluNetwork(tuple(layers.weights), tuple(layers.biases))
