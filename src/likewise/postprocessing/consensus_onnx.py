"""A consensus of an ONNX graph as one ONNX graph: the graph once for each twin, and the mean of their probabilities."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from likewise.core.errors import InputError
from likewise.core.extras import require
from likewise.evaluation.twins import TwinFactor
from likewise.models.onnx_model import OnnxModel, graph_bytes

__all__ = ["consensus_graph"]

_OWNER = "TwinConsensus.export"


def consensus_graph(
    model: OnnxModel, factors: Sequence[TwinFactor], names: Sequence[str] | None = None
) -> bytes:
    """Return a graph that takes the same rows and gives the mean of the probabilities over a person's twins.

    Parameters
    ----------
    model : OnnxModel
        Of one input of floating-point numbers (n, d) and an output of probabilities (n, C).
    factors : sequence of TwinFactor
        Values are numbers; columns by position ("0", "1", …) or by name.
    names : sequence of str, optional
        Names of the columns.

    Returns
    -------
    bytes
        An ONNX file: input ``X``, output ``probabilities``.
    """
    onnx = require("onnx", extra="onnx", why="Writing a consensus as ONNX")
    require("onnx.compose", extra="onnx", why="Writing a consensus as ONNX")
    inner = onnx.load_model_from_string(graph_bytes(model.session))
    if len(model._inputs) != 1 or model.output_kind != "probabilities":
        raise InputError(
            f"{_OWNER}: only graphs of one input and an output of probabilities can be exported. Convert the model so, "
            "or save the consensus as it is."
        )
    kind = inner.graph.input[0].type.tensor_type.elem_type
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    if dtype.kind != "f":
        raise InputError(
            f"{_OWNER}: the graph's input is no floating-point number, so it cannot be exported."
        )
    width = model.n_features or len(names or ())
    parts = _Parts(onnx, dtype, int(width), list(names or (str(i) for i in range(width))))
    members = [None if factor.everybody else parts.member(factor) for factor in factors]
    outputs = []
    for number, settings in enumerate(itertools.product(*(factor.settings for factor in factors))):
        rows = "X"
        for setting, member in zip(settings, members, strict=True):
            rows = parts.replaced(rows, setting, member)
        copy = onnx.compose.add_prefix(inner, f"twin{number}_")
        parts.nodes.append(parts.node("Identity", [rows], [copy.graph.input[0].name]))
        parts.nodes += copy.graph.node
        parts.constants += copy.graph.initializer
        outputs.append(f"twin{number}_{model.output_name}")
    parts.nodes.append(parts.node("Mean", outputs, ["probabilities"]))
    graph = onnx.helper.make_graph(
        parts.nodes,
        "consensus",
        [onnx.helper.make_tensor_value_info("X", kind, [None, parts.width])],
        [onnx.helper.make_tensor_value_info("probabilities", onnx.TensorProto.FLOAT, [None, None])],
        initializer=parts.constants,
    )
    made = onnx.helper.make_model(
        graph,
        opset_imports=_opsets(inner, onnx),
        ir_version=inner.ir_version,
        functions=list(inner.functions),
    )
    onnx.checker.check_model(made)
    return bytes(made.SerializeToString())


def _opsets(inner: Any, onnx: Any) -> list[Any]:
    """The graph's own operator sets, and the plain one at a version that has Where and Equal of floats."""
    versions = {part.domain: part.version for part in inner.opset_import}
    versions[""] = versions.get("", 17)
    if versions[""] < 11:
        raise InputError(f"{_OWNER}: the graph is of operator set {versions['']}; convert it to 11 or later.")
    return [onnx.helper.make_opsetid(domain, version) for domain, version in versions.items()]


class _Parts:
    """Nodes and constants of the graph being made."""

    def __init__(self, onnx: Any, dtype: np.dtype[Any], width: int, names: list[str]) -> None:
        self.onnx, self.dtype, self.width, self.names = onnx, dtype, width, names
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._made = 0

    def node(self, kind: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> Any:
        return self.onnx.helper.make_node(kind, list(inputs), list(outputs), **attributes)

    def member(self, factor: TwinFactor) -> str:
        """Name of a (n, 1) tensor: whether each row has one of the factor's settings."""
        found = ""
        for setting in factor.settings:
            same = ""
            for column, value in setting.items():
                place = self._constant(np.array([self._place(column)], dtype=np.int64))
                own = self._add("Gather", ["X", place], axis=1)
                equal = self._add("Equal", [own, self._constant(np.array([[value]], dtype=self.dtype))])
                same = self._add("And", [same, equal]) if same else equal
            found = self._add("Or", [found, same]) if found else same
        return found

    def replaced(self, rows: str, setting: Any, member: str | None) -> str:
        """Name of the rows with the setting's values in its columns, of the members only where there are some."""
        here = np.zeros((1, self.width), dtype=bool)
        values = np.zeros((1, self.width), dtype=self.dtype)
        for column, value in setting.items():
            here[0, self._place(column)] = True
            values[0, self._place(column)] = value
        where = self._constant(here)
        if member is not None:
            where = self._add("And", [where, member])
        return self._add("Where", [where, self._constant(values), rows])

    def _place(self, column: str) -> int:
        if column not in self.names:
            raise InputError(
                f"{_OWNER}: the graph's columns do not have the name {column!r}. Use positions: '0', '1', …."
            )
        return self.names.index(column)

    def _constant(self, array: Any) -> str:
        self._made += 1
        name = f"consensus_{self._made}"
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def _add(self, kind: str, inputs: Sequence[str], **attributes: Any) -> str:
        self._made += 1
        name = f"consensus_{self._made}"
        self.nodes.append(self.node(kind, inputs, [name], **attributes))
        return name
