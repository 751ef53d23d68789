"""A layered network as plain arrays: one description for gradients, bounds, linear forms and pages.

Torch modules (`network.py`), scikit-learn models (`sklearn_network.py`), ONNX graphs (`relu_from_onnx.py`) and files in
a process of their own (`sandbox/`) are read into it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from scipy.special import expit, ndtr

from likewise.core.checks import FloatArray
from likewise.core.errors import InputError, bad_parameter
from likewise.models.model import DifferentiableModel

if TYPE_CHECKING:
    from likewise.models.oracle import Oracle


class Activation(NamedTuple):
    """An elementwise function: its name, and the slope below 0 of "leaky" or the α of "elu"."""

    name: str
    number: float = 0.0


RELU, IDENTITY = Activation("leaky"), Activation("identity")
ACTIVATIONS = {
    "relu": RELU,
    "leaky_relu": Activation("leaky", 0.01),
    "tanh": Activation("tanh"),
    "sigmoid": Activation("logistic"),
    "logistic": Activation("logistic"),
    "silu": Activation("silu"),
    "gelu": Activation("gelu"),
    "elu": Activation("elu", 1.0),
    "softplus": Activation("softplus"),
    "identity": IDENTITY,
    "linear": IDENTITY,
}
_NUMPY: dict[str, Callable[[Any, float], Any]] = {
    "identity": lambda u, _: u,
    "leaky": lambda u, slope: np.where(u > 0, u, slope * u),
    "tanh": lambda u, _: np.tanh(u),
    "logistic": lambda u, _: expit(u),
    "silu": lambda u, _: u * expit(u),
    "gelu": lambda u, _: u * ndtr(u),
    "elu": lambda u, alpha: np.where(u > 0, u, alpha * np.expm1(np.minimum(u, 0.0))),
    "softplus": lambda u, _: np.logaddexp(0.0, u),
}


def as_activation(name: str | Activation) -> Activation:
    """Return the activation of a name, or the activation itself."""
    if isinstance(name, Activation):
        return name
    if name not in ACTIVATIONS:
        raise bad_parameter(
            "MLPOracle", "activations", allowed=f"names among {sorted(ACTIVATIONS)}", got=name
        )
    return ACTIVATIONS[name]


@dataclass(frozen=True, eq=False)
class Layers:
    """x ↦ W_L a(… a(W_1 x + b_1) …) + b_L, in double precision.

    `roundoff` is that of the model's own arithmetic. `first_sizes` are the sizes of the numbers that the model adds up
    in its first layer, if they are larger than those of the first weight and bias. Activations are ReLUs unless named.
    """

    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]
    roundoff: float = 2.0**-53
    first_sizes: tuple[FloatArray, FloatArray] | None = None
    activations: tuple[Activation, ...] | None = None

    def __post_init__(self) -> None:
        if self.activations is None:
            object.__setattr__(self, "activations", (RELU,) * (len(self.weights) - 1))

    @property
    def units(self) -> tuple[Activation, ...]:
        """The activation after each layer but the last."""
        assert self.activations is not None
        return self.activations

    @property
    def n_inputs(self) -> int:
        """Number of input columns."""
        return int(self.weights[0].shape[1])

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return int(self.weights[-1].shape[0])

    def outputs(self, X: FloatArray) -> FloatArray:
        """Return the outputs (n, C)."""
        values = np.asarray(X, dtype=np.float64)
        for weight, bias, unit in zip(self.weights, self.biases, (*self.units, IDENTITY), strict=True):
            values = _NUMPY[unit.name](values @ weight.T + bias, unit.number)
        return values

    def linear_form(self, *, regression: bool) -> tuple[FloatArray, FloatArray] | None:
        """Return (coef (C, d), intercept (C,)) of a linear model, else None; one score f of two classes is (−f/2, f/2)."""
        if any(unit != IDENTITY for unit in self.units):
            return None
        coef, intercept = self.weights[0], self.biases[0]
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            coef, intercept = weight @ coef, weight @ intercept + bias
        if len(coef) == 1 and not regression:
            return np.vstack([-coef / 2, coef / 2]), np.concatenate([-intercept / 2, intercept / 2])
        return coef, intercept

    def rounding(self, largest: FloatArray) -> FloatArray:
        """How far the outputs of a ReLU network may lie from the exact ones if |x_j| ≤ largest_j; (n,) for (n, d).

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


class LayeredModel(DifferentiableModel):
    """A model whose gradients and linear form come from its layers.

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
        return MLPOracle(weights, biases, self.layers.units, self.loss)

    def linear_form(self) -> tuple[FloatArray, FloatArray] | None:
        """Return (coef (C, d), intercept (C,)) for a linear model, None for an MLP."""
        return self.layers.linear_form(regression=self.loss.regression)


def read_network(model: Any) -> Layers:
    """Read the layers of a torch module, an estimator of this package, a scikit-learn model, or ONNX of the same."""
    if isinstance(getattr(model, "layers", None), Layers):
        return cast(Layers, model.layers)
    if hasattr(model, "read_network"):
        return cast(Layers, model.read_network())
    module = getattr(model, "module", model)
    if is_torch_module(module):
        from likewise.models.network import network_of

        network = network_of(module)
        if network is None:
            raise _not_plain(type(module).__name__)
        return network.layers()
    if hasattr(model, "session") and type(model).__name__ == "OnnxModel":
        from likewise.models.relu_from_onnx import relu_from_onnx

        return relu_from_onnx(model)
    from likewise.models.convert import as_model

    # An adapter for a loss without a slope does not read the weights of its estimator.
    estimator = getattr(model, "estimator", model)
    adapter = as_model(estimator)
    if adapter is not model and type(adapter) is not type(model):
        return read_network(adapter)
    from likewise.models.sklearn_network import read_layers

    if read_layers(estimator) is not None:
        raise InputError(
            f"read_relu_network: what was read of {type(estimator).__name__} does not give its answers."
        )
    raise _not_plain(type(estimator).__name__)


def read_relu_network(model: Any) -> Layers:
    """Read the layers of a model whose hidden units are ReLUs."""
    layers = read_network(model)
    other = next((unit for unit in layers.units if unit != RELU), None)
    if other is not None:
        raise InputError(
            f"read_relu_network: the network has hidden units that are not ReLUs ({other.name!r})."
        )
    return layers


def is_torch_module(module: Any) -> bool:
    """Whether something is a torch module, without importing torch."""
    return any(
        kind.__module__.split(".")[0] == "torch" and kind.__name__ == "Module"
        for kind in type(module).__mro__
    )


def _not_plain(kind: str) -> InputError:
    return InputError(
        f"read_relu_network: {kind} is not a plain network of linear layers and ReLUs. "
        "Pass an nn.Sequential of them, an MLP with activation='relu', or either as ONNX."
    )
