"""ReLU networks as weights and biases in double precision; one file beside this for each kind of model they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.core.checks import FloatArray, to_numpy
from likewise.core.errors import InputError
from likewise.models.model import DifferentiableModel

if TYPE_CHECKING:
    from likewise.models.oracle import Oracle


@dataclass(frozen=True, eq=False)
class ReluNetwork:
    """x ↦ W_L relu(… relu(W_1 x + b_1) …) + b_L."""

    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]
    roundoff: float = 2.0**-53
    first_sizes: tuple[FloatArray, FloatArray] | None = None

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

    def rounding(self, largest: FloatArray) -> FloatArray:
        """How far the model's own outputs may lie from the exact ones, where |x_j| ≤ largest_j; (n,) for (n, d).

        A sum of m products errs by at most (m + 2) roundoffs of the sum of their sizes; what enters a layer wrong
        leaves it at most |W| times as wrong.
        """
        size = np.atleast_2d(np.abs(largest))
        error = self.roundoff * size
        for k, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if k == 0 and self.first_sizes is not None:
                # Twice: the numbers are rounded on their way through the map as well.
                total = 2.0 * ((size + error) @ self.first_sizes[0].T + self.first_sizes[1])
            else:
                total = (size + error) @ np.abs(weight).T + np.abs(bias)
            error = error @ np.abs(weight).T + 1.01 * (weight.shape[1] + 2) * self.roundoff * total
            size = total
        return np.asarray(error.max(axis=1))


def read_relu_network(model: Any) -> ReluNetwork:
    """Read the network of a torch module, an estimator of this package, a scikit-learn MLP, or ONNX of the same."""
    if hasattr(model, "layers") and hasattr(model.layers, "weights"):
        from likewise.models.sklearn_network import relu_from_layers

        return relu_from_layers(model.layers)
    if hasattr(model, "read_network"):
        found: ReluNetwork = model.read_network()
        return found

    module = getattr(model, "module", model)
    if is_torch_module(module):
        return relu_from_torch(module)
    if hasattr(model, "session") and type(model).__name__ == "OnnxModel":
        from likewise.models.relu_from_onnx import relu_from_onnx

        return relu_from_onnx(model)
    from likewise.models.convert import as_model

    adapter = as_model(model)
    if adapter is model:
        raise no_plain_network(type(model).__name__)
    return read_relu_network(adapter)


def no_plain_network(kind: str) -> InputError:
    """Return the error that says that something is not a plain network of ReLUs."""
    return InputError(
        f"read_relu_network: {kind} is not a plain network of linear layers and ReLUs. "
        "Pass an nn.Sequential of them, an MLP with activation='relu', or either as ONNX."
    )


# The ReLU network that a torch module is.


def is_torch_module(module: Any) -> bool:
    """Whether something is a torch module, without importing torch."""
    return any(
        kind.__module__.split(".")[0] == "torch" and kind.__name__ == "Module"
        for kind in type(module).__mro__
    )


def relu_from_torch(module: Any) -> ReluNetwork:
    """Read an ``nn.Linear``, or an ``nn.Sequential`` of linear layers and ReLUs."""
    import torch

    from likewise.models.network import LeakyReLU, network_of

    network = network_of(module)
    if network is None:
        raise no_plain_network(type(module).__name__)
    own = next(module.parameters()).dtype
    if own.itemsize == 2:
        raise InputError(
            "read_relu_network: the network computes in half precision, which rounds too coarsely to be read. "
            "Pass a float32 copy: module.float()."
        )
    weights, biases = [], []
    for stage in network.stages:
        hidden = stage is not network.stages[-1]
        if hidden and stage.activation != LeakyReLU(0.0):
            raise InputError("read_relu_network: the network has hidden units that are no ReLUs.")
        with torch.no_grad():
            weight, bias = stage.read()
        weights.append(to_numpy(weight).astype(np.float64))
        biases.append(to_numpy(bias).astype(np.float64))
    # What is multiplied out here is rounded once more.
    several = any(len(stage.parts) > 1 for stage in network.stages)
    roundoff = (2.0**-53 if own == torch.float64 else 2.0**-24) * (8.0 if several else 1.0)
    return ReluNetwork(tuple(weights), tuple(biases), roundoff)


# Models that are exactly a linear model or a small network of their numeric input, known by their weights.


@dataclass(frozen=True, eq=False)
class Layers:
    """Weights (out, in) and biases (out,) from input to output, and the activation between them."""

    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]
    activation: str = "identity"

    def scores(self, X: FloatArray) -> FloatArray:
        """Return the network's outputs (n, C), or (n, 1)."""
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            X = X @ weight.T + bias
            if i < len(self.weights) - 1:
                X = _activate(X, self.activation)
        return X


class LayeredModel(DifferentiableModel):
    """A model whose gradients and linear form come from weights that are at hand.

    Attributes
    ----------
    layers : Layers
    """

    layers: Layers

    def gradient_oracle(self, dtype: Any = None) -> Oracle:
        """Return an `MLPOracle` of the weights, float64 by default."""
        import torch

        from likewise.models.mlp import MLPOracle
        from likewise.models.oracle import as_dtype

        wanted = as_dtype(dtype, torch.float64)
        weights, biases = (
            [torch.tensor(np.ascontiguousarray(part), dtype=wanted) for part in parts]
            for parts in (self.layers.weights, self.layers.biases)
        )
        return MLPOracle(weights, biases, self.layers.activation, self.loss)

    def linear_form(self) -> tuple[FloatArray, FloatArray] | None:
        """Return (coef (C, d), intercept (C,)) for a linear model, None for an MLP."""
        if len(self.layers.weights) > 1:
            return None
        coef, intercept = self.layers.weights[0], self.layers.biases[0]
        if len(coef) == 1 and not self.loss.regression:
            return np.vstack([-coef / 2, coef / 2]), np.concatenate([-intercept / 2, intercept / 2])
        return coef, intercept


def _activate(u: FloatArray, name: str) -> FloatArray:
    if name == "relu":
        return np.maximum(u, 0.0)
    if name == "tanh":
        return np.tanh(u)
    return u if name == "identity" else np.asarray(0.5 * (1.0 + np.tanh(0.5 * u)))
