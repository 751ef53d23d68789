"""A `TwinConsensus` as one model of another library: an ONNX graph, or XGBoost's trees."""

from __future__ import annotations

import copy
import itertools
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from likewise.core.errors import InputError, bad_parameter, require
from likewise.core.files import atomic_path
from likewise.counterfactuals.edited_rows import TwinFactor
from likewise.models.boosted import XGBoostModel, xgboost_categories
from likewise.models.onnx_model import OnnxModel, graph_bytes
from likewise.models.tree_readers import kept_rounds, kept_trees, node_categories

if TYPE_CHECKING:
    from likewise.mitigation.twin_consensus import TwinConsensus

# A consensus of an ONNX graph as one ONNX graph: the graph once for each twin, and the mean of their
# probabilities.


_EXPORT = "TwinConsensus.export"


def consensus_graph(
    model: OnnxModel, factors: Sequence[TwinFactor], names: Sequence[str] | None = None
) -> bytes:
    """Return a graph that takes the same rows and gives the mean of the probabilities over a person's twins."""
    onnx = require("onnx", extra="onnx", why="Writing a consensus as ONNX")
    require("onnx.compose", extra="onnx", why="Writing a consensus as ONNX")
    inner = onnx.load_model_from_string(graph_bytes(model.session))
    if len(model._inputs) != 1 or model.output_kind != "probabilities":
        raise InputError(
            f"{_EXPORT}: only graphs of one input and an output of probabilities can be exported. Convert the model so, "
            "or save the consensus as it is."
        )
    kind = inner.graph.input[0].type.tensor_type.elem_type
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    if dtype.kind != "f":
        raise InputError(
            f"{_EXPORT}: the graph's input is not a floating-point number, so it cannot be exported."
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
        raise InputError(
            f"{_EXPORT}: the graph is of operator set {versions['']}; convert it to 11 or later."
        )
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
        """Name of the rows with the setting's values in its columns, of the members only if there are some."""
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
                f"{_EXPORT}: the graph's columns do not have the name {column!r}. Use positions: '0', '1', …."
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


# A consensus of XGBoost as one XGBoost model: the trees of all twins, summed.


# Every number is below the one and none below the other.
_ALWAYS_LEFT, _ALWAYS_RIGHT = float(np.finfo(np.float32).max), float(np.finfo(np.float32).min)


def summed_trees(model: Any, factors: Sequence[TwinFactor]) -> Any:
    """Return an XGBoost booster whose margin is the mean of a model's margins over a person's twins."""
    xgboost = require("xgboost", extra="boosting", why="Writing a consensus as trees")
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    document = json.loads(bytes(booster.save_raw("json")).decode())
    learner = document["learner"]
    ensemble = learner["gradient_booster"].get("model")
    if ensemble is None or learner["gradient_booster"].get("name") != "gbtree":
        raise InputError(f"{_EXPORT}: only XGBoost's plain trees (booster='gbtree') can be summed.")
    columns = _columns(factors, booster)
    trees, groups = kept_trees(ensemble, kept_rounds(model))
    twins = [dict(parts) for parts in itertools.product(*(_codes(f, columns) for f in factors))]
    summed: list[dict[str, Any]] = []
    info: list[int] = []
    for tree, group in zip(trees, groups, strict=True):
        for twin in twins:
            summed.append(_settled(tree, twin, factors, columns, len(twins)) | {"id": len(summed)})
            info.append(group)
    ensemble["trees"], ensemble["tree_info"] = summed, info
    ensemble["gbtree_model_param"]["num_trees"] = str(len(summed))
    if "iteration_indptr" in ensemble:
        last = [start for start in ensemble["iteration_indptr"] if start <= len(trees)]
        ensemble["iteration_indptr"] = [start * len(twins) for start in last]
    learner["attributes"] = {}
    found = xgboost.Booster()
    found.load_model(bytearray(json.dumps(document).encode()))
    return found


class _Column(NamedTuple):
    """A column of the booster: its position, and the number that stands for each of the factor's values."""

    position: int
    codes: Mapping[Any, float]


def _columns(factors: Sequence[TwinFactor], booster: Any) -> dict[str, _Column]:
    names = list(booster.feature_names or [str(i) for i in range(booster.num_features())])
    known = xgboost_categories(booster)
    found = {}
    for factor in factors:
        if len(factor.columns) > 1:
            raise InputError(f"{_EXPORT}: columns that change together cannot be summed into trees.")
        name = factor.columns[0]
        if name not in names:
            raise InputError(
                f"{_EXPORT}: the trees have no column {name!r}. They have: {', '.join(names[:12])}."
            )
        values = [setting[name] for setting in factor.settings]
        if name in known:
            codes = {value: float(known[name].index(value)) for value in values if value in known[name]}
        else:
            codes = {v: float(v) for v in values if isinstance(v, (bool, int, float, np.number))}
        missing = [value for value in values if value not in codes]
        if missing:
            raise InputError(f"{_EXPORT}: the trees never saw {missing[0]!r} in column {name!r}.")
        found[name] = _Column(names.index(name), codes)
    return found


def _codes(factor: TwinFactor, columns: Mapping[str, _Column]) -> list[tuple[str, float]]:
    name = factor.columns[0]
    return [(name, columns[name].codes[setting[name]]) for setting in factor.settings]


def _settled(
    tree: Any,
    twin: Mapping[str, float],
    factors: Sequence[TwinFactor],
    columns: Mapping[str, _Column],
    n_twins: int,
) -> dict[str, Any]:
    """A tree as it is for one twin, its leaves divided by the number of twins."""
    new: dict[str, Any] = copy.deepcopy(tree)
    sets = {node: set(asked) for node, asked in node_categories(tree).items()}
    by_position = {columns[f.columns[0]].position: f for f in factors}
    for node, left in enumerate(tree["left_children"]):
        if left < 0:
            new["split_conditions"][node] = float(np.float32(tree["split_conditions"][node] / n_twins))
            continue
        factor = by_position.get(tree["split_indices"][node])
        if factor is None:
            continue
        name = factor.columns[0]
        code, members = twin[name], {int(c) for c in columns[name].codes.values()}
        if factor.everybody:
            right = code in sets[node] if node in sets else code >= np.float32(tree["split_conditions"][node])
            _force(new, node, bool(right), sets)
        elif node not in sets:
            raise InputError(
                f"{_EXPORT}: {name!r} concerns only some people and is a number to the trees; make it categorical."
            )
        else:
            sets[node] = sets[node] | members if int(code) in sets[node] else sets[node] - members
            if not sets[node]:
                _force(new, node, False, sets, missing=tree["default_left"][node])
    nodes = sorted(sets)
    sizes = [len(sets[node]) for node in nodes]
    new["categories"] = [code for node in nodes for code in sorted(sets[node])]
    new["categories_nodes"], new["categories_sizes"] = nodes, sizes
    new["categories_segments"] = [sum(sizes[:i]) for i in range(len(sizes))]
    return new


def _force(tree: Any, node: int, right: bool, sets: dict[int, Any], missing: int | None = None) -> None:
    """Let everybody at a node go the same way; a missing value too, unless it is told otherwise."""
    sets.pop(node, None)
    tree["split_type"][node] = 0
    tree["split_conditions"][node] = _ALWAYS_RIGHT if right else _ALWAYS_LEFT
    tree["default_left"][node] = int(not right) if missing is None else missing


def export_consensus(consensus: TwinConsensus, path: str | os.PathLike[str]) -> None:
    """Write a consensus as one model; see `TwinConsensus.export`."""
    where = Path(path)
    inner, factors = consensus._inner(), consensus._factors()
    if where.suffix == ".onnx":
        if not isinstance(inner, OnnxModel):
            raise InputError(
                f"{_EXPORT}: a {type(inner).__name__} is not an ONNX graph. Convert the model to ONNX first, and wrap that."
            )
        _check_how(consensus, "mean", "ONNX")

        data = consensus_graph(inner, factors, inner.feature_names)
    elif where.suffix in (".json", ".ubj"):
        if not isinstance(inner, XGBoostModel):
            raise InputError(f"{_EXPORT}: a {type(inner).__name__} has no trees of XGBoost to sum.")
        _check_how(consensus, "margin", "summed trees")

        booster = summed_trees(consensus.model, factors)
        data = bytes(booster.save_raw("json" if where.suffix == ".json" else "ubj"))
    else:
        raise bad_parameter(_EXPORT, "path", "a name that ends in .onnx, .json or .ubj", where.name)
    with atomic_path(where) as temporary:
        temporary.write_bytes(data)


def _check_how(consensus: TwinConsensus, wanted: str, what: str) -> None:
    if consensus.how != wanted:
        raise InputError(
            f"{_EXPORT}: {what} can hold how={wanted!r} only, and this is how={consensus.how!r}."
        )
