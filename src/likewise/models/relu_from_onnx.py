"""The ReLU network that an ONNX graph is: read operation by operation, then compared with what the graph answers.

The file is not trusted: shapes are checked before anything is multiplied, nothing outside the file is loaded, and an
operation that is not known ends the reading.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.core.checks import FloatArray
from likewise.core.errors import InputError, require
from likewise.models.layers import Layers
from likewise.models.onnx_model import OnnxModel, graph_bytes

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
    """What was read off is believed only where it gives the graph's own answers on probe rows."""
    rng = np.random.default_rng(0)
    probes = np.concatenate([s * rng.standard_normal((8, net.n_inputs)) for s in (0.0, 0.1, 1.0, 10.0)])
    probes = probes.astype(np.float32).astype(np.float64)
    scores = net.outputs(probes)
    answer = np.asarray(model.outputs(probes), dtype=np.float64).reshape(len(probes), -1)
    if scores.shape[1] == 1 and answer.shape[1] == 2:
        scores = np.hstack([-scores / 2, scores / 2])
    if model.gives_probabilities:
        raised = np.exp(scores - scores.max(axis=1, keepdims=True))
        scores = raised / raised.sum(axis=1, keepdims=True)
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
