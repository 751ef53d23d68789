"""A layered network as plain arrays: one description for gradients, bounds, linear forms and pages.

Torch modules (`network.py`), scikit-learn models (`sklearn_network.py`), ONNX graphs (below) and files in a process of
their own (`sandbox/`) are read into it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from scipy.special import expit, ndtr, softmax

from likewise.core.checks import FloatArray, is_torch_module
from likewise.core.errors import InputError, bad_parameter, require
from likewise.models.model import DifferentiableModel, Model, two_classes
from likewise.models.onnx_model import OnnxModel, graph_bytes

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
        raise bad_parameter("MLPOracle", "activations", f"names among {sorted(ACTIVATIONS)}", name)
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

    def gradient_oracle(self) -> Oracle:
        """Return an `MLPOracle` of the weights in float64."""
        import torch

        from likewise.models.mlp import MLPOracle

        weights, biases = (
            [torch.tensor(np.ascontiguousarray(part), dtype=torch.float64) for part in parts]
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
        return relu_from_onnx(model)
    from likewise.models.convert import as_model

    # An adapter for a loss without a slope does not read the weights of its estimator. A wrapper of scikit-learn keeps
    # under that name what it was given, and not what it fitted.
    estimator = model.estimator if isinstance(model, Model) and hasattr(model, "estimator") else model
    try:
        adapter = as_model(estimator)
    except InputError:  # without probabilities, decisions go by scores
        try:
            adapter = as_model(estimator, loss="hinge")
        except InputError as error:
            raise _not_plain(type(estimator).__name__) from error
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


def probe_rows(width: int) -> FloatArray:
    """Return rows at several scales on which what was read of a model is compared with the model."""
    rng = np.random.default_rng(0)
    return np.concatenate([s * rng.standard_normal((8, width)) for s in (0.0, 0.1, 1.0, 10.0)])


def _not_plain(kind: str) -> InputError:
    return InputError(
        f"read_relu_network: {kind} is not a plain network of linear layers and ReLUs. "
        "Pass an nn.Sequential of them, an MLP with activation='relu', or either as ONNX."
    )


# The ReLU network that an ONNX graph is: read operation by operation, then compared with what the graph answers. The
# file is not trusted: shapes are checked before anything is multiplied, nothing outside the file is loaded, and an
# operation that is not known ends the reading.


_NOTHING = ("Identity", "Cast", "Flatten", "Reshape", "Squeeze", "Dropout", "ZipMap")
_ENDINGS = ("Softmax", "LogSoftmax", "Sigmoid")
# More numbers than any table's network has; a file may claim any shape.
_MOST = 50_000_000


def relu_from_onnx(model: OnnxModel) -> Layers:
    """Read a chain of Gemm, MatMul, Add, Sub, Mul, Div, Scaler and Relu, as exporters of MLPs write it."""
    onnx = require("onnx", extra="onnx", why="Reading the network of an ONNX graph")
    graph = onnx.load_from_string(graph_bytes(model.session)).graph
    if len(graph.input) - len(graph.initializer) > 1 and len(model.session.get_inputs()) > 1:
        raise _refused("it has one input per column")
    known = {tensor.name: _array(onnx, tensor) for tensor in graph.initializer}
    chain = _chain(onnx, graph, model.output_name, known)
    width = model.n_features
    if width is None:
        raise _refused("it does not say how many columns it takes")
    net = _layers(onnx, chain, known, int(width))
    _check_answers(model, net)
    return net


def _chain(onnx: Any, graph: Any, output: str, known: dict[str, FloatArray]) -> list[tuple[Any, int]]:
    """Operations from the input to an output, each with the position of the value that flows through it."""
    makers = {name: node for node in graph.node for name in node.output}
    for node in graph.node:
        if node.op_type == "Constant" and node.output:
            value = onnx.helper.get_attribute_value(node.attribute[0])
            if hasattr(value, "dims"):
                known[node.output[0]] = _array(onnx, value)
    name = output
    chain: list[tuple[Any, int]] = []
    while name in makers:
        node = makers[name]
        flowing = [i for i, source in enumerate(node.input) if source and source not in known]
        if node.op_type == "Concat":
            # Two classes by one sigmoid: its probability beside one minus it.
            name = _single_sigmoid(node, makers)
            continue
        if node.op_type in ("Reshape", "Squeeze"):
            flowing = flowing[:1]
        if len(flowing) != 1 or len(chain) > len(graph.node):
            raise _refused(f"{node.op_type} takes {len(flowing)} values")
        chain.append((node, flowing[0]))
        name = node.input[flowing[0]]
    return chain[::-1]


def _single_sigmoid(node: Any, makers: dict[str, Any]) -> str:
    made = [makers.get(source) for source in node.input]
    kinds = [None if maker is None else maker.op_type for maker in made]
    if sorted(str(kind) for kind in kinds) == ["Sigmoid", "Sub"]:
        sigmoid = node.input[kinds.index("Sigmoid")]
        if kinds[0] == "Sub" and sigmoid in getattr(made[0], "input", ()):
            return str(sigmoid)
    raise _refused("Concat puts several values together")


def _layers(onnx: Any, chain: list[tuple[Any, int]], known: dict[str, FloatArray], width: int) -> Layers:
    """Multiply out what stands between ReLUs."""
    weights: list[FloatArray] = []
    biases: list[FloatArray] = []
    matrix, offset = np.eye(width), np.zeros(width)
    # Sizes of what the graph adds up before the first ReLU; means that a scaler takes off may cancel there.
    sizes = np.eye(width), np.zeros(width)
    ended = False
    for node, at in chain:
        if node.op_type in _NOTHING:
            continue
        if ended:
            raise _refused(f"{node.op_type} follows the probabilities")
        if node.op_type in _ENDINGS:
            if node.op_type == "Sigmoid" and len(matrix) != 1:
                raise _refused("a Sigmoid has several outputs")
            ended = True
        elif node.op_type == "Relu":
            weights.append(matrix)
            biases.append(offset)
            matrix, offset = np.eye(len(matrix)), np.zeros(len(matrix))
        else:
            step, shift = _affine(onnx, node, at, known, len(matrix))
            matrix, offset = step @ matrix, step @ offset + shift
            if not weights:
                sizes = np.abs(step) @ sizes[0], np.abs(step) @ sizes[1] + np.abs(shift)
        if matrix.size > _MOST:
            raise _refused("it is too large")
    weights.append(matrix)
    biases.append(offset)
    if not all(np.isfinite(part).all() for part in (*weights, *biases)):
        raise _refused("some of its weights are not finite")
    return Layers(tuple(weights), tuple(biases), 8.0 * 2.0**-24, sizes)


def _affine(
    onnx: Any, node: Any, at: int, known: dict[str, FloatArray], size: int
) -> tuple[FloatArray, FloatArray]:
    """One affine operation on `size` numbers as a matrix and what is added."""
    given = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    others = [known[source] for i, source in enumerate(node.input) if i != at and source]
    kind = node.op_type
    if kind == "Gemm" and at == 0 and not given.get("transA"):
        weight = others[0] if given.get("transB") else others[0].T
        _check_shape(weight.ndim == 2 and weight.shape[1] == size, kind)
        bias = _vector(others[1], len(weight), kind) if len(others) > 1 else np.zeros(len(weight))
        return given.get("alpha", 1.0) * weight, given.get("beta", 1.0) * bias
    if kind == "MatMul" and at == 0:
        _check_shape(others[0].ndim == 2 and others[0].shape[0] == size, kind)
        return others[0].T, np.zeros(others[0].shape[1])
    if kind == "Scaler":
        shift = _vector(np.asarray(given.get("offset", [0.0])), size, kind)
        scale = _vector(np.asarray(given.get("scale", [1.0])), size, kind)
        return np.diag(scale), -shift * scale
    if kind in ("Add", "Sub"):
        value = _vector(others[0], size, kind)
        sign = -1.0 if kind == "Sub" and at == 1 else 1.0
        return sign * np.eye(size), -value if kind == "Sub" and at == 0 else value
    if kind == "Mul" or (kind == "Div" and at == 0):
        value = _vector(others[0], size, kind)
        return np.diag(1.0 / value if kind == "Div" else value), np.zeros(size)
    raise _refused(f"it has the operation {kind}")


def _vector(value: FloatArray, size: int, kind: str) -> FloatArray:
    flat = np.asarray(value, dtype=np.float64).ravel()
    _check_shape(flat.size in (1, size), kind)
    return np.broadcast_to(flat, (size,))


def _array(onnx: Any, tensor: Any) -> FloatArray:
    if len(tensor.external_data):
        raise _refused("its weights are in another file")
    count = int(np.prod([float(size) for size in tensor.dims])) if len(tensor.dims) else 1
    if count > _MOST or any(size < 0 for size in tensor.dims):
        raise _refused("it is too large")
    found = onnx.numpy_helper.to_array(tensor)
    return np.asarray(found, dtype=np.float64) if found.dtype.kind in "fiub" else np.zeros(0)


def _check_shape(fits: bool, kind: str) -> None:
    if not fits:
        raise _refused(f"the shapes of {kind} do not fit")


def _check_answers(model: OnnxModel, net: Layers) -> None:
    """Raise unless what was read gives the graph's own answers on probe rows."""
    probes = probe_rows(net.n_inputs).astype(np.float32).astype(np.float64)
    scores = net.outputs(probes)
    answer = np.asarray(model.outputs(probes), dtype=np.float64).reshape(len(probes), -1)
    if answer.shape[1] == 2:
        scores = two_classes(scores)
    if model.gives_probabilities:
        scores = np.asarray(softmax(scores, axis=1))
    elif scores.shape == answer.shape and scores.shape[1] > 1:
        # Scores count up to a number that is the same for all classes.
        scores, answer = (part - part.mean(axis=1, keepdims=True) for part in (scores, answer))
    size = 1e-4 * (1.0 + np.abs(scores))
    if answer.shape != scores.shape or not bool((np.abs(answer - scores) <= size).all()):
        raise _refused("what was read off does not give its answers")


def _refused(why: str) -> InputError:
    return InputError(
        f"read_relu_network: the ONNX graph is not a plain network of linear layers and ReLUs: {why}."
    )
