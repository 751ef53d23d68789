"""ONNX graphs as models, run by onnxruntime."""

from __future__ import annotations

import importlib
import itertools
import math
import os
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from likewise.core.errors import FormatError, InputError, ModelError, bad_parameter, require
from likewise.models.containers import external_names, is_beside
from likewise.models.losses import Loss, LossLike, as_loss
from likewise.models.model import Model, OutputKind, check_output

# Checks of an ONNX file: sizes that agree with its bytes, and known operations only.


# The standard's operations, those for trees and tables, and onnxruntime's own.
DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")
# Operations that answer differently each time, or keep state between questions.
_NOT_A_MODEL = (
    "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
)  # fmt: skip
_MAX_DEPTH = 50
# Bits per number in `raw_data`, by the number of the type in the standard.
_BITS = {
    1: 32, 2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64, 14: 64, 15: 128, 16: 16,
    17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4,
}  # fmt: skip


def check_onnx(path: Path) -> None:
    """Check an ONNX file, if the package onnx is installed to read it."""
    try:
        onnx = importlib.import_module("onnx")
    except ImportError:
        return
    try:
        model = onnx.load(path, load_external_data=False)
    except Exception as error:
        raise FormatError(f"it cannot be read ({type(error).__name__})") from error
    local = {(function.domain, function.name) for function in model.functions}
    known = external_names(path.read_bytes())
    for graph in itertools.chain(*(_graphs(part, 0) for part in (model.graph, *model.functions))):
        for tensor in _tensors(graph):
            place = _check_tensor(tensor)
            if place is not None and place not in known:
                raise FormatError(f"the place of its weights, {place!r}, is written in an unusual way")
        for node in graph.node:
            if node.domain not in DOMAINS and (node.domain, node.op_type) not in local:
                raise FormatError(f"it uses {node.domain}.{node.op_type}, which is not an operation of ONNX")
            if node.op_type in _NOT_A_MODEL:
                raise FormatError(f"it answers at random ({node.op_type})")


def _graphs(graph: Any, depth: int) -> Iterator[Any]:
    """A graph and those inside it (branches, loops)."""
    if depth > _MAX_DEPTH:
        raise FormatError(f"it has graphs inside graphs, more than {_MAX_DEPTH} deep")
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [attribute.g, *attribute.graphs] if attribute.type in (5, 10) else []:
                yield from _graphs(inner, depth + 1)


def _tensors(graph: Any) -> Iterator[Any]:
    # A function has nodes, but no weights of its own.
    yield from getattr(graph, "initializer", ())
    for sparse in getattr(graph, "sparse_initializer", ()):
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == 4:
                yield attribute.t
            if attribute.type == 11:
                yield from (attribute.sparse_tensor.values, attribute.sparse_tensor.indices)
            yield from attribute.tensors


def _check_tensor(tensor: Any) -> str | None:
    """Check a tensor; the name of the file that it is kept in, if it is in another."""
    shape = list(tensor.dims)
    where = f"the tensor {tensor.name!r}" if tensor.name else "a tensor"
    if any(size < 0 for size in shape):
        raise FormatError(f"{where} has the shape {shape}")
    count = math.prod(shape)
    if tensor.data_location == 1:
        # Weights in another file must be in one beside this.
        place = {part.key: part.value for part in tensor.external_data}.get("location", "")
        if not is_beside(str(place)):
            raise FormatError(f"{where} is kept in {place!r}, which is not beside the file")
        return str(place)
    if tensor.raw_data:
        bits = _BITS.get(tensor.data_type)
        if bits is None or math.ceil(count * bits / 8) != len(tensor.raw_data):
            raise FormatError(f"{where} has the shape {shape}, and {len(tensor.raw_data)} bytes of data")
        return None
    fields = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
    stored = max(len(getattr(tensor, name)) for name in fields)
    # Two numbers make a complex one; small types are packed several to an entry.
    if count > 16 * stored:
        raise FormatError(f"{where} has the shape {shape}, and {stored} numbers of data")
    return None


_NUMPY: dict[str, np.dtype[Any]] = {
    "tensor(float)": np.dtype(np.float32),
    "tensor(double)": np.dtype(np.float64),
    "tensor(float16)": np.dtype(np.float16),
    "tensor(int64)": np.dtype(np.int64),
    "tensor(int32)": np.dtype(np.int32),
    "tensor(bool)": np.dtype(bool),
    "tensor(string)": np.dtype(object),
}
_FLOATS = ("tensor(float)", "tensor(double)", "tensor(float16)")


class OnnxModel(Model):
    """An ONNX graph: one tensor (n, d) in, or one input per column of a table.

    Parameters
    ----------
    model : onnxruntime.InferenceSession, path, bytes or onnx.ModelProto
    loss : str, Loss or callable, default="cross_entropy"
    classes : array-like, optional
        Labels in the order of the outputs. A ZipMap output carries them; else 0, 1, … by default.
    takes_frame : bool, optional
        Whether it wants the table; by default when the graph has one input per column.
    output : {"auto", "probabilities", "logits"}, default="auto"
        What the chosen output holds. "auto": probabilities for a ZipMap, a name with "prob" in it, or an output that
        comes from a Softmax (or, for one column, a Sigmoid); logits otherwise, and logits that look like
        probabilities then raise an error that asks.
    output_name : str, optional
        Which output to read, if the graph has several and no name tells.

    Attributes
    ----------
    batch_rows : int
        Rows per run; a graph with a fixed batch size is run at that size.

    Examples
    --------
    >>> from onnx import TensorProto, helper
    >>> graph = helper.make_graph(
    ...     [helper.make_node("Softmax", ["x"], ["p"])],
    ...     "softmax",
    ...     [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 2])],
    ...     [helper.make_tensor_value_info("p", TensorProto.FLOAT, [None, 2])],
    ... )
    >>> proto = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    >>> OnnxModel(proto).losses([[0.0, 0.0]], [1]).round(4)
    array([0.6931])
    """

    def __init__(
        self,
        model: Any,
        *,
        loss: LossLike = "cross_entropy",
        classes: Any = None,
        takes_frame: bool | None = None,
        output: Literal["auto", "probabilities", "logits"] = "auto",
        output_name: str | None = None,
    ) -> None:
        check_output(output)
        self.session = open_session(model)
        self._inputs = list(self.session.get_inputs())
        _check_inputs(self._inputs)
        objective = as_loss(loss)
        chosen = _choose(list(self.session.get_outputs()), objective, output_name)
        self.output_name: str = chosen.name
        kind = _kind(chosen, objective, output, self.session)
        if output == "auto":
            self._guessed = f"the values of the output {chosen.name!r}"
        several = len(self._inputs) > 1
        self._fixed = _whole(self._inputs[0].shape, 0)
        self.batch_rows = self._fixed or self.batch_rows
        self._label = _label_output(self.session) if classes is None and kind != "values" else None
        super().__init__(
            loss=objective,
            kind=kind,
            classes=classes,
            takes_frame=several if takes_frame is None else takes_frame,
            feature_names=[part.name for part in self._inputs] if several else None,
            n_features=None if several else _whole(self._inputs[0].shape, 1),
            missing=True,
        )

    def __getstate__(self) -> dict[str, Any]:
        # A session cannot be sent to another process; the graph that it runs can.
        state = {name: value for name, value in self.__dict__.items() if name not in ("session", "_inputs")}
        return state | {"graph": graph_bytes(self.session)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.session = open_session(state["graph"])
        self._inputs = list(self.session.get_inputs())
        self.__dict__.update({name: value for name, value in state.items() if name != "graph"})

    def _answer(self, rows: Any) -> Any:
        n = len(rows)
        feeds = {part.name: values for part, values in zip(self._inputs, self._columns(rows), strict=True)}
        if self._fixed and n < self._fixed:
            feeds = {
                name: np.resize(values, (self._fixed, values.shape[1])) for name, values in feeds.items()
            }
        wanted = [self.output_name] if self._label is None else [self.output_name, self._label]
        answer, *labels = self.session.run(wanted, feeds)
        if isinstance(answer, list):
            # A ZipMap's {class: probability} of each row, in the order of the classes.
            keys = list(answer[0])
            if self._classes is None:
                self._classes = np.asarray(keys)
            answer = np.array([[row[key] for key in keys] for row in answer])
        answer = np.asarray(answer)
        if labels:
            self._check_labels(np.asarray(labels[0]), answer)
        return answer[:n] if self._fixed and len(answer) == self._fixed else answer

    def _columns(self, rows: Any) -> list[np.ndarray[Any, Any]]:
        """Return the values of each input, (n, width), in the type the graph declares."""
        if len(self._inputs) == 1:
            return [_typed(np.asarray(rows), self._inputs[0])]
        return [
            _typed(rows.iloc[:, i].to_numpy()[:, None] if hasattr(rows, "iloc") else rows[:, i : i + 1], part)
            for i, part in enumerate(self._inputs)
        ]

    def _check_labels(self, labels: np.ndarray[Any, Any], answer: np.ndarray[Any, Any]) -> None:
        """The graph's own labels must be 0, 1, … when nobody named the classes."""
        if self._classes is not None and self._classes.dtype.kind not in "iu":
            return
        width = 2 if answer.ndim == 1 or answer.shape[1] == 1 else answer.shape[1]
        known = self._classes if self._classes is not None else np.arange(width)
        if not set(labels.ravel().tolist()) <= set(known.tolist()):
            other = next(label for label in labels.ravel().tolist() if label not in set(known.tolist()))
            raise ModelError(
                f"OnnxModel: the graph predicts the label {other!r}, and its outputs do not say which column is which "
                "class. Pass classes=[...] to as_model, in the order of the outputs."
            )


def open_session(model: Any) -> Any:
    """Return an onnxruntime session on the CPU for whatever holds the graph."""
    runtime = require("onnxruntime", extra="onnx", why="Auditing an ONNX model")
    if isinstance(model, runtime.InferenceSession):
        return model
    if isinstance(model, (str, PathLike)):
        if not Path(model).is_file():
            raise InputError(f"as_model: there is no file {str(model)!r}. Check the path.")
        source: str | bytes = str(model)
    else:
        source = bytes(model) if isinstance(model, (bytes, bytearray)) else model.SerializeToString()
    options = runtime.SessionOptions()
    # Idle threads that spin burn CPU between batches and change nothing else.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if os.environ.get("OMP_NUM_THREADS") == "1":
        # onnxruntime does not read this itself, and takes every core.
        options.intra_op_num_threads = 1
    try:
        return runtime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise FormatError(f"as_model: this is not an ONNX model that onnxruntime can run: {error}") from error


def graph_bytes(session: Any) -> bytes:
    """Return the graph of a session, from memory or from its file."""
    raw, path = getattr(session, "_model_bytes", None), getattr(session, "_model_path", None)
    if raw:
        return bytes(raw)
    if path is None:
        raise TypeError("this onnxruntime session does not say what graph it runs, so it cannot be pickled")
    return Path(path).read_bytes()


def empty_feeds(session: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Return one row of zeros, or of empty text, for every input of a session."""
    inputs = list(session.get_inputs())
    _check_inputs(inputs)
    return {
        part.name: np.full(
            (_whole(part.shape, 0) or 1, _whole(part.shape, 1) or 1),
            "" if part.type == "tensor(string)" else 0,
            dtype=_NUMPY[part.type],
        )
        for part in inputs
    }


def _check_inputs(inputs: Sequence[Any]) -> None:
    for part in inputs:
        if part.type not in _NUMPY:
            raise InputError(
                f"as_model: the ONNX input {part.name!r} has type {part.type}, which no table has."
            )
        if len(part.shape) != 2 or (len(inputs) > 1 and _whole(part.shape, 1) not in (1, None)):
            raise InputError(
                f"as_model: the ONNX input {part.name!r} has shape {part.shape}; expected one input (n, d) or one "
                "input (n, 1) per column. Wrap the session in a function that takes the table."
            )


def _choose(outputs: list[Any], loss: Loss, name: str | None) -> Any:
    """Pick the output to read: by name, else the only one with numbers, else the one whose name tells."""
    if name is not None:
        found = [part for part in outputs if part.name == name]
        if not found:
            raise bad_parameter("OnnxModel", "output_name", str([p.name for p in outputs]), name)
        return found[0]
    numeric = [part for part in outputs if part.type in _FLOATS or part.type.startswith("seq(map(")]
    words = ("score", "logit", "decision", "raw") if loss.wants == "scores" else ("prob",)
    telling = [part for part in numeric if any(word in part.name.lower() for word in words)]
    chosen = telling or numeric
    if len(chosen) != 1 and not loss.regression:
        shown = ", ".join(f"{part.name} ({part.type})" for part in outputs)
        raise InputError(
            f"as_model: cannot tell which ONNX output holds the class probabilities: {shown}. "
            "Use OnnxModel(..., output_name=...)."
        )
    return chosen[0]


def _kind(chosen: Any, loss: Loss, output: str, session: Any) -> OutputKind:
    if loss.regression:
        return "values"
    if output != "auto":
        return "scores" if output == "logits" else "probabilities"
    named = chosen.type.startswith("seq(map(") or "prob" in chosen.name.lower()
    single = len(chosen.shape) < 2 or _whole(chosen.shape, 1) == 1
    makers = ("Softmax", "Sigmoid") if single else ("Softmax",)
    probabilities = named or _made_by(session, chosen.name) in makers
    if probabilities and loss.wants == "scores":
        raise InputError(
            f"as_model: loss={loss.name!r} needs class scores, and the ONNX output {chosen.name!r} holds probabilities. "
            "Use loss='cross_entropy' or 'zero_one'."
        )
    return "probabilities" if probabilities else "scores"


def _made_by(session: Any, name: str) -> str | None:
    """Return the operation that makes an output, if the graph can be read (package onnx installed)."""
    try:
        onnx = importlib.import_module("onnx")
        graph = onnx.load_from_string(graph_bytes(session)).graph
    except (ImportError, OSError, TypeError, ValueError):
        return None
    makers = {result: node for node in graph.node for result in node.output}
    node = makers.get(name)
    while node is not None and node.op_type in ("Identity", "Cast", "Reshape", "Squeeze", "Flatten"):
        node = makers.get(node.input[0])
    return None if node is None else str(node.op_type)


def _label_output(session: Any) -> str | None:
    """Return the output that holds the predicted labels, if any."""
    labels = [part.name for part in session.get_outputs() if part.type in ("tensor(int64)", "tensor(string)")]
    return labels[0] if len(labels) == 1 else None


def _typed(values: np.ndarray[Any, Any], part: Any) -> np.ndarray[Any, Any]:
    kind = _NUMPY[part.type]
    try:
        return np.ascontiguousarray((values.astype(str) if kind.kind == "O" else values).astype(kind))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"OnnxModel: the values for the input {part.name!r} cannot be made {part.type}: {error}."
        ) from error


def _whole(shape: Sequence[Any], axis: int) -> int | None:
    size = shape[axis] if len(shape) > axis else None
    return size if isinstance(size, int) and size > 0 else None
