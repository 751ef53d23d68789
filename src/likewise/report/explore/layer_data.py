"""Linear models and plain networks as plain data: weights, biases and the activations between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.core.arrays import FloatArray, to_numpy
from likewise.core.errors import InputError
from likewise.models.layered_model import Layers
from likewise.models.relu_from_torch import is_torch_module
from likewise.models.relu_network import read_relu_network
from likewise.models.sklearn_network import read_layers
from likewise.report.explore.packing import pack

__all__ = ["PlainLayers", "read_plain_layers"]


@dataclass(frozen=True, eq=False)
class PlainLayers:
    """x ↦ W_L a(… a(W_1 x + b_1) …) + b_L.

    Parameters
    ----------
    weights, biases : tuples of float arrays of shapes (out, in) and (out,)
    activations : tuple of (name, slope)
        One after each layer but the last: "leaky" (slope 0 is the ReLU), "tanh", "logistic", "silu" or "identity".
    single : bool, default=False
        Whether the model itself computes in single precision, in which large numbers overflow.

    Examples
    --------
    >>> net = PlainLayers((np.eye(1), np.array([[2.0]])), (np.zeros(1), np.zeros(1)), (("leaky", 0.0),))
    >>> net.scores(np.array([[-1.0], [1.0]])).ravel().tolist()
    [0.0, 2.0]
    """

    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]
    activations: tuple[tuple[str, float], ...]
    single: bool = False

    def scores(self, X: FloatArray) -> FloatArray:
        """Return the outputs (n, C) in double precision."""
        values: FloatArray = np.asarray(X, dtype=np.float64)
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            values = values @ weight.T + bias
            if i < len(self.activations):
                values = _activate(values, *self.activations[i])
        return values

    def document(self) -> dict[str, Any]:
        """Return the layers as plain data."""
        return {
            "kind": "layers",
            "weights": [pack(weight) for weight in self.weights],
            "biases": [pack(bias) for bias in self.biases],
            "activations": [list(one) for one in self.activations],
            "single": self.single,
        }


def read_plain_layers(model: Any) -> PlainLayers:
    """Read a linear model, an MLP or a torch module of linear layers with simple activations.

    Parameters
    ----------
    model : Model, or what it wraps
        Anything that `likewise.models.relu_network.read_relu_network` reads; scikit-learn's and torch's networks with
        tanh, logistic and SiLU units besides.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> fitted = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    >>> read_plain_layers(fitted).weights[0].shape
    (1, 1)
    """
    module = getattr(model, "module", model)
    if is_torch_module(module):
        return _of_torch(module)
    layers = getattr(model, "layers", None)
    found = layers if isinstance(layers, Layers) else read_layers(getattr(model, "estimator", model))
    if found is not None:
        name = {"relu": "leaky"}.get(found.activation, found.activation)
        return PlainLayers(found.weights, found.biases, ((name, 0.0),) * (len(found.weights) - 1))
    net = read_relu_network(model)
    return PlainLayers(net.weights, net.biases, (("leaky", 0.0),) * (len(net.weights) - 1))


def _of_torch(module: Any) -> PlainLayers:
    import torch

    from likewise.models.activations import LeakyReLU, Sigmoid, SiLU, Tanh
    from likewise.models.network import network_of

    network = network_of(module)
    if network is None:
        raise InputError(f"explore: {type(module).__name__} is no plain network of linear layers.")
    names = {Tanh: "tanh", Sigmoid: "logistic", SiLU: "silu", type(None): "identity"}
    weights, biases, activations = [], [], []
    for stage in network.stages:
        with torch.no_grad():
            weight, bias = stage.read()
        weights.append(to_numpy(weight).astype(np.float64))
        biases.append(to_numpy(bias).astype(np.float64))
        unit = stage.activation
        if isinstance(unit, LeakyReLU):
            activations.append(("leaky", float(unit.negative_slope)))
        elif type(unit) in names:
            activations.append((names[type(unit)], 0.0))
        else:
            raise InputError(f"explore: hidden units of the kind {type(unit).__name__} are not written.")
    single = next(module.parameters()).dtype != torch.float64
    return PlainLayers(tuple(weights), tuple(biases), tuple(activations[:-1]), single)


def _activate(u: FloatArray, name: str, slope: float) -> FloatArray:
    if name == "leaky":
        return np.where(u > 0, u, slope * u)
    if name == "identity":
        return u
    if name == "tanh":
        return np.tanh(u)
    logistic = 0.5 * (1.0 + np.tanh(0.5 * u))
    return np.asarray(u * logistic if name == "silu" else logistic)
