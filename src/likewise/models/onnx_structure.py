"""Whether an ONNX graph is what a model of a table can be: sizes that its bytes bear out, operations that are known."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from likewise.core.errors import FormatError

__all__ = ["check_onnx"]

# The standard's operations, those for trees and tables, and onnxruntime's own.
DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")
# Operations that answer differently each time, or keep state between questions.
_NOT_A_MODEL = (
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
)
_MAX_DEPTH = 50
# Bits per number in `raw_data`, by the number of the type in the standard.
_BITS = {
    1: 32, 2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64, 14: 64, 15: 128, 16: 16,
    17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4,
}  # fmt: skip


def check_onnx(path: Path) -> None:
    """Check an ONNX file, where the package onnx is at hand to read it.

    Parameters
    ----------
    path : Path

    Raises
    ------
    FormatError
        Names what is wrong.
    """
    try:
        onnx = importlib.import_module("onnx")
    except ImportError:
        return
    try:
        model = onnx.load(path, load_external_data=False)
    except Exception as error:
        raise FormatError(f"it cannot be read ({type(error).__name__})") from error
    for graph in _graphs(model.graph, 0):
        for tensor in _tensors(graph):
            _check_tensor(tensor)
        for node in graph.node:
            if node.domain not in DOMAINS and not _is_local(model, node):
                raise FormatError(f"it uses {node.domain}.{node.op_type}, which is no operation of ONNX")
            if node.op_type in _NOT_A_MODEL:
                raise FormatError(f"it answers at random ({node.op_type})")


def _is_local(model: Any, node: Any) -> bool:
    return any(f.domain == node.domain and f.name == node.op_type for f in model.functions)


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
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == 4:
                yield attribute.t
            yield from attribute.tensors


def _check_tensor(tensor: Any) -> None:
    shape = list(tensor.dims)
    where = f"the tensor {tensor.name!r}" if tensor.name else "a tensor"
    if any(size < 0 for size in shape):
        raise FormatError(f"{where} has the shape {shape}")
    count = math.prod(shape)
    if tensor.data_location == 1:
        _check_outside(tensor, where)
        return
    if tensor.raw_data:
        bits = _BITS.get(tensor.data_type)
        if bits is None or math.ceil(count * bits / 8) != len(tensor.raw_data):
            raise FormatError(f"{where} has the shape {shape}, and {len(tensor.raw_data)} bytes of data")
        return
    fields = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
    stored = max(len(getattr(tensor, name)) for name in fields)
    # Two numbers make a complex one; small types are packed several to an entry.
    if count > 16 * stored:
        raise FormatError(f"{where} has the shape {shape}, and {stored} numbers of data")


def _check_outside(tensor: Any, where: str) -> None:
    """Weights in another file must be in one beside this."""
    place = {part.key: part.value for part in tensor.external_data}.get("location", "")
    if not place or Path(place).is_absolute() or ".." in Path(place).parts:
        raise FormatError(f"{where} is kept in {place!r}, which is not beside the file")
