"""ReLU networks of torch and scikit-learn as weights and biases in double precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.core.arrays import FloatArray, to_numpy
from likewise.core.errors import InputError

__all__ = ["ReluNetwork", "read_relu_network"]


@dataclass(frozen=True, eq=False)
class ReluNetwork:
    """x ↦ W_L relu(… relu(W_1 x + b_1) …) + b_L.

    Parameters
    ----------
    weights : tuple of float arrays of shape (out, in)
    biases : tuple of float arrays of shape (out,)
    roundoff : float
        Unit roundoff of the arithmetic that the model itself runs in.

    Examples
    --------
    >>> net = ReluNetwork((np.array([[1.0], [-1.0]]), np.array([[1.0, 1.0]])), (np.zeros(2), np.zeros(1)))
    >>> net.outputs(np.array([[-3.0], [2.0]])).ravel()
    array([3., 2.])
    """

    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]
    roundoff: float = 2.0**-53

    @property
    def n_inputs(self) -> int:
        """Number of input columns."""
        return int(self.weights[0].shape[1])

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return int(self.weights[-1].shape[0])

    def outputs(self, X: FloatArray) -> FloatArray:
        """Return the outputs (n, C) in double precision."""
        values = np.asarray(X, dtype=np.float64)
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            values = values @ weight.T + bias
            if i < len(self.weights) - 1:
                values = np.maximum(values, 0.0)
        return values

    def rounding(self, largest: FloatArray) -> float:
        """How far the model's own outputs may lie from the exact ones, where |x_j| ≤ largest_j.

        A sum of m products errs by at most (m + 2) roundoffs of the sum of their sizes; what enters a layer wrong
        leaves it at most |W| times as wrong.
        """
        size, error = np.abs(largest), self.roundoff * np.abs(largest)
        for weight, bias in zip(self.weights, self.biases, strict=True):
            total = np.abs(weight) @ (size + error) + np.abs(bias)
            error = np.abs(weight) @ error + 1.01 * (weight.shape[1] + 2) * self.roundoff * total
            size = total
        return float(error.max())


def read_relu_network(model: Any) -> ReluNetwork:
    """Read the network of a torch module, of an estimator of this package, or of a scikit-learn MLP.

    Parameters
    ----------
    model : Model, torch.nn.Module or scikit-learn estimator
        A softmax, log-softmax or single sigmoid at the end is left away: the outputs are scores.

    Returns
    -------
    ReluNetwork

    Raises
    ------
    InputError
        Where it is no plain network of ReLUs; it says why.

    Examples
    --------
    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    >>> read_relu_network(net).n_outputs
    2
    """
    if hasattr(model, "layers") and hasattr(model.layers, "weights"):
        return _from_layers(model.layers)
    module = getattr(model, "module", model)
    if _is_module(module):
        return _from_module(module)
    from likewise.models.convert import as_model

    adapter = as_model(model)
    if adapter is model:
        raise _not_plain(type(model).__name__)
    return read_relu_network(adapter)


def _from_layers(layers: Any) -> ReluNetwork:
    if len(layers.weights) > 1 and layers.activation != "relu":
        raise InputError(
            f"read_relu_network: the hidden units are {layers.activation!r}, and only ReLUs are read."
        )
    return ReluNetwork(tuple(layers.weights), tuple(layers.biases))


def _is_module(module: Any) -> bool:
    return any(kind.__module__.split(".")[0] == "torch" for kind in type(module).__mro__)


def _from_module(module: Any) -> ReluNetwork:
    import torch

    from likewise.models.activations import LeakyReLU
    from likewise.models.network import network_of

    network = network_of(module)
    if network is None:
        raise _not_plain(type(module).__name__)
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
    return ReluNetwork(tuple(weights), tuple(biases), 2.0**-24 if single else 2.0**-53)


def _not_plain(kind: str) -> InputError:
    return InputError(
        f"read_relu_network: {kind} is no plain network of linear layers and ReLUs. "
        "Pass an nn.Sequential of them, or an MLP with activation='relu'."
    )
