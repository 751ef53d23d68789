"""Descriptions of a model in another process as plain data, checked on arrival."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.checks import python_scalar
from likewise.core.errors import FormatError, InputError
from likewise.core.files import Fields, ListOf, MapOf, Maybe, OneOf, Whole, check_form, is_scalar
from likewise.core.text import option
from likewise.models.layers import ACTIVATIONS, Activation, Layers
from likewise.models.losses import CrossEntropy, CustomLoss, Hinge, Loss, Squared, ZeroOne
from likewise.models.model import Model, label_array
from likewise.models.sandbox.messages import Array
from likewise.models.tree_ensemble import TreeEnsemble, check_tree

# Layers as plain arrays between two processes, checked on arrival.

_NETWORK = Fields({"roundoff": float, "sizes": bool, "units": ListOf(ListOf(object, most=2))})


def pack_network(layers: Layers) -> tuple[dict[str, Any], list[Array]]:
    """Return layers as JSON and plain arrays."""
    pairs = zip(layers.weights, layers.biases, strict=True)
    arrays = [*itertools.chain(*pairs), *(layers.first_sizes or ())]
    text = {
        "roundoff": float(layers.roundoff),
        "sizes": layers.first_sizes is not None,
        "units": [list(unit) for unit in layers.units],
    }
    return text, [np.asarray(array, dtype=np.float64) for array in arrays]


def unpack_network(text: dict[str, Any], arrays: Sequence[Array]) -> Layers:
    """Return the layers that `pack_network` packed, once each layer takes what the one before gives."""
    check_form(text, _NETWORK, "the network")
    last = len(arrays) - (2 if text["sizes"] else 0)
    weights, biases = tuple(arrays[0:last:2]), tuple(arrays[1:last:2])
    units = tuple(itertools.starmap(Activation, text["units"]))
    names = {unit.name for unit in ACTIVATIONS.values()}
    if not weights or len(weights) != len(biases) or len(units) != len(weights) - 1:
        raise FormatError("the model's layers are incomplete")
    fits = all(
        w.ndim == 2 and b.shape == (len(w),) and np.isfinite(w).all() and np.isfinite(b).all()
        for w, b in zip(weights, biases, strict=True)
    )
    if not fits or any(a.shape[0] != b.shape[1] for a, b in itertools.pairwise(weights)):
        raise FormatError("the model's layers do not fit together")
    for unit in units:
        check_form(unit.name, OneOf(tuple(sorted(names))), "an activation")
        check_form(unit.number, float, "the number of an activation")
    sizes = (arrays[last], arrays[last + 1]) if text["sizes"] else None
    if sizes and (sizes[0].shape, sizes[1].shape) != (weights[0].shape, biases[0].shape):
        raise FormatError("the network's sizes are not those of its first layer")
    if not 0 < text["roundoff"] < 1:
        raise FormatError(f"the network's roundoff is {text['roundoff']}")
    return Layers(weights, biases, text["roundoff"], sizes, units)


# The trees of a model as plain arrays between two processes, checked on arrival like any untrusted input.


_NODES = {
    "left": "<i8", "right": "<i8", "feature": "<i8", "threshold": "<f8", "missing_left": "|b1", "first": "<i8",
    "last": "<i8", "listed_left": "|b1", "single": "|b1",
}  # fmt: skip
_ARRAYS = {"roots": "<i8", **_NODES, "codes": "<i8", "values": "<f8", "base": "<f8"}
_TEXT = Fields(
    {
        "kind": OneOf(("scores", "probabilities", "values")),
        "strict": bool,
        "roundoff": float,
        "n_features": Whole(1, 10_000_000),
        "feature_names": Maybe(ListOf(str)),
        "categories": MapOf(ListOf(object)),
    }
)


def pack_trees(trees: TreeEnsemble) -> tuple[dict[str, Any], list[Array]]:
    """Return trees as JSON and plain arrays."""
    names = trees.feature_names
    text = {
        "kind": trees.kind,
        "strict": bool(trees.strict),
        "roundoff": float(trees.roundoff),
        "n_features": int(trees.n_features),
        "feature_names": None if names is None else [str(name) for name in names],
        "categories": {
            str(i): [python_scalar(value) for value in values] for i, values in trees.categories.items()
        },
    }
    return text, [np.asarray(getattr(trees, name)) for name in _ARRAYS]


def unpack_trees(text: dict[str, Any], arrays: list[Array]) -> TreeEnsemble:
    """Return the trees that `pack_trees` packed."""
    check_form(text, _TEXT, "the trees")
    if len(arrays) != len(_ARRAYS):
        raise FormatError(f"the trees have {len(arrays)} arrays, expected {len(_ARRAYS)}")
    parts: dict[str, Any] = dict(zip(_ARRAYS, arrays, strict=True))
    for name, array in parts.items():
        shape = 2 if name == "values" else 1
        if array.dtype.str != _ARRAYS[name] or array.ndim != shape:
            raise FormatError(f"the trees' {name} are {array.dtype} of {array.ndim} dimensions")
    _check(parts, text["n_features"])
    names = text["feature_names"]
    if names is not None and len(names) != text["n_features"]:
        raise FormatError(f"the trees have {len(names)} names for {text['n_features']} features")
    return TreeEnsemble(
        **parts,
        **{name: text[name] for name in ("kind", "strict", "roundoff", "n_features")},
        feature_names=None if names is None else tuple(names),
        categories=_categories(text["categories"], text["n_features"]),
    )


def _check(parts: dict[str, Array], n_features: int) -> None:
    n, roots = len(parts["left"]), parts["roots"]
    if any(len(parts[name]) != n for name in (*_NODES, "values")):
        raise FormatError("the trees have lists of different lengths")
    if not len(roots) or roots[0] != 0 or (np.diff(roots) <= 0).any() or roots[-1] >= n:
        raise FormatError("the trees do not follow each other")
    if parts["values"].shape[1] != len(parts["base"]) or not np.isfinite(parts["values"]).all():
        raise FormatError("the trees have leaves that are not numbers, or too many of them")
    if not np.isfinite(parts["base"]).all() or np.isnan(parts["threshold"]).any():
        raise FormatError("the trees have splits that are not numbers")
    inner = parts["left"] >= 0
    if (inner != (parts["right"] >= 0)).any():
        raise FormatError("the trees have a node with one child only")
    if ((parts["feature"] < 0) | (parts["feature"] >= n_features)).any():
        raise FormatError("the trees split on a feature that does not exist")
    first, last = parts["first"], parts["last"]
    if ((first < 0) | (last < first) | (last > len(parts["codes"]))).any():
        raise FormatError("the trees have categories beyond the end of their list")
    children = np.stack([parts["left"], parts["right"]], axis=1)
    for number, (start, end) in enumerate(zip(roots, np.append(roots[1:], n), strict=True)):
        own = np.where(children[start:end] >= 0, children[start:end] - start, -1)
        check_tree(f"tree {number}", own, inner[start:end])


def _categories(stored: dict[str, Any], n_features: int) -> dict[int, tuple[Any, ...]]:
    found = {}
    for key, values in stored.items():
        if not key.isdecimal() or int(key) >= n_features or not all(map(is_scalar, values)):
            raise FormatError("the trees have categories of a feature that does not exist")
        found[int(key)] = tuple(values)
    return found


# People as plain columns: rows are sent without pickle and arrive unchanged.


_MISSING = {"None": None, "nan": np.nan, "NA": pd.NA, "NaT": pd.NaT}


def pack_rows(rows: Any) -> tuple[dict[str, Any], list[Array]]:
    """Return rows as JSON and plain arrays."""
    if not isinstance(rows, pd.DataFrame):
        return {"frame": False}, [np.asarray(rows)]
    columns, arrays = [], []
    for place, name in enumerate(rows.columns):
        if not isinstance(name, (str, int)):
            raise InputError(
                f"SandboxedModel: the column {name!r} must have text or a whole number as its name."
            )
        about, parts = _pack_column(rows.iloc[:, place], name)
        columns.append({"name": name, **about})
        arrays += parts
    return {"frame": True, "rows": len(rows), "columns": columns}, arrays


def unpack_rows(text: dict[str, Any], arrays: Sequence[Array]) -> Any:
    """Return the rows that `pack_rows` packed."""
    if not text["frame"]:
        return arrays[0]
    left = list(arrays)
    columns = [_unpack_column(about, left) for about in text["columns"]]
    frame = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=range(text["rows"]))
    frame.columns = pd.Index([about["name"] for about in text["columns"]])
    return frame


def _pack_column(column: pd.Series[Any], name: Any) -> tuple[dict[str, Any], list[Array]]:
    dtype: Any = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        about, parts = _pack_column(pd.Series(dtype.categories), name)
        return {"kind": "categories", "ordered": bool(dtype.ordered), "of": about}, [
            column.cat.codes.to_numpy(),
            *parts,
        ]
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return {"kind": "numbers"}, [column.to_numpy()]
    if isinstance(dtype, np.dtype) and dtype.kind in "mM":
        return {"kind": "times", "type": dtype.str}, [column.to_numpy().view(np.int64)]
    if isinstance(dtype, pd.StringDtype):
        codes, values = pd.factorize(column)
        return {"kind": "words", "type": str(dtype), "values": [str(value) for value in values]}, [
            codes.astype(np.int32)
        ]
    if isinstance(dtype, np.dtype) and dtype.kind == "O":
        codes, different = _distinct(column.to_numpy(), name)
        return {"kind": "objects", "values": different}, [codes]
    if dtype.kind in "biuf":
        numbers = column.to_numpy(dtype=dtype.numpy_dtype, na_value=dtype.numpy_dtype.type(0).item())
        return {"kind": "masked", "type": str(dtype)}, [numbers, column.isna().to_numpy()]
    raise _cannot_travel(name, str(dtype))


def _unpack_column(about: dict[str, Any], left: list[Array]) -> pd.Series[Any]:
    array, kind = left.pop(0), about["kind"]
    if kind == "categories":
        of = _unpack_column(about["of"], left)
        return pd.Series(pd.Categorical.from_codes(array, categories=pd.Index(of), ordered=about["ordered"]))
    if kind == "numbers":
        return pd.Series(array)
    if kind == "times":
        return pd.Series(array.view(np.dtype(about["type"])))
    if kind == "words":
        # A code of −1, for a missing word, finds the last.
        words = pd.array([*about["values"], None], dtype=about["type"])
        return pd.Series(words.take(array))
    if kind == "objects":
        values = np.empty(len(about["values"]), dtype=object)
        values[:] = [_MISSING[word] if tag == "missing" else word for tag, word in about["values"]]
        return pd.Series(values[array], dtype=object)
    masked = pd.array(array, dtype=about["type"])
    masked[left.pop(0)] = pd.NA
    return pd.Series(masked)


def _distinct(values: Array, name: Any) -> tuple[Array, list[tuple[str, Any]]]:
    """Codes of objects, and the different objects: 1, 1.0 and True are three."""
    seen: dict[tuple[str, Any], int] = {}
    codes = np.empty(len(values), dtype=np.int32)
    for place, value in enumerate(values):
        codes[place] = seen.setdefault(_tagged(value, name), len(seen))
    return codes, list(seen)


def _tagged(value: Any, name: Any) -> tuple[str, Any]:
    value = python_scalar(value)
    if isinstance(value, (str, bool, int)):
        return type(value).__name__, value
    if isinstance(value, float):
        return ("missing", "nan") if value != value else ("float", value)
    for word, meant in _MISSING.items():
        if value is meant:
            return "missing", word
    raise _cannot_travel(name, type(value).__name__)


def _cannot_travel(name: Any, kind: str) -> InputError:
    return InputError(
        f"SandboxedModel: column {name!r} holds {kind}, which is not sent to a model file in a process of its own. "
        f"Make it text or numbers, or load the model in this process ({option('this_process')})."
    )


MAX_CLASSES = 10_000
_LOSSES: dict[str, type[Loss]] = {
    "probabilities": CrossEntropy,
    "scores": Hinge,
    "decisions": ZeroOne,
    "values": Squared,
}
_FORM = Fields(
    {
        "number": Whole(),
        "adapter": str,
        "kind": OneOf(("probabilities", "scores", "values")),
        "classes": Maybe(ListOf(object, most=MAX_CLASSES)),
        "takes_frame": bool,
        "feature_names": Maybe(ListOf(str)),
        "n_features": Maybe(Whole(0, 100_000_000)),
        "missing": bool,
        "batch_rows": Whole(1, 2**31),
        "decides": bool,
        "guessed": str,
        "keeps_frames": bool,
        "layers": Maybe(dict),
    }
)


def describe(model: Model) -> tuple[dict[str, Any], list[Array]]:
    """Return what there is to know of a model as JSON and plain arrays."""
    from likewise.models.sklearn_model import EstimatorModel

    classes, names = model.known_classes, model.feature_names
    layers: Layers | None = getattr(model, "layers", None)
    text = {
        "adapter": type(model).__name__,
        "kind": model.output_kind,
        "classes": None if classes is None else classes.tolist(),
        "takes_frame": bool(model.takes_frame),
        "feature_names": None if names is None else list(names),
        "n_features": None if model.n_features is None else int(model.n_features),
        "missing": bool(model._missing),
        "batch_rows": int(model.batch_rows),
        "decides": isinstance(model, EstimatorModel) and model.decides,
        "guessed": model._guessed,
        "keeps_frames": type(model)._rows is not Model._rows,
    }
    packed, arrays = (None, []) if layers is None else pack_network(layers)
    return text | {"layers": packed}, arrays


def read_facts(text: dict[str, Any], arrays: Sequence[Array]) -> SimpleNamespace:
    """Return what `describe` described, once it is sure that it hangs together; the names are those of `_FORM`."""
    check_form(text, _FORM, "the description of the model")
    names, width = text["feature_names"], text["n_features"]
    if names is not None and width is not None and len(names) != width:
        raise FormatError(f"the model has {len(names)} names for {width} columns")
    layers = None if text["layers"] is None else unpack_network(text["layers"], arrays)
    if layers is not None and width is not None and layers.n_inputs != width:
        raise FormatError("the model's layers do not fit together")
    own = {
        "classes": class_labels(text["classes"]),
        "feature_names": None if names is None else tuple(names),
        "layers": layers,
    }
    return SimpleNamespace(**text | own)


def class_labels(values: Any) -> Array | None:
    """Return class labels that came as a list."""
    if values is None:
        return None
    if not isinstance(values, list) or not 2 <= len(values) <= MAX_CLASSES or not all(map(is_scalar, values)):
        raise FormatError("the model's classes are not a list of two or more labels")
    return label_array(values)


def plain_labels(labels: Any) -> list[Any] | None:
    """Return class labels as JSON holds them."""
    if labels is None:
        return None
    listed = [python_scalar(label) for label in np.asarray(labels).tolist()]
    for label in listed:
        if not is_scalar(label) or label in (np.inf, -np.inf) or label != label:
            raise InputError(
                f"load_model: a class label is {label!r} ({type(label).__name__}), which cannot be written without "
                "pickle. Use plain text and numbers."
            )
    return listed


def written_loss(loss: Loss) -> dict[str, Any]:
    """Return what a model must know of a loss: what it is asked for, not how that is scored."""
    return {
        "wants": loss.wants,
        "regression": bool(loss.regression),
        "differentiable": bool(loss.differentiable),
    }


def loss_like(written: dict[str, Any]) -> Loss:
    """Return a loss that asks a model for the same as the one that was written."""
    if written["wants"] in _LOSSES:
        return _LOSSES[written["wants"]]()
    return CustomLoss(_elsewhere, regression=written["regression"])


def _elsewhere(scores: Any, targets: Any) -> Any:
    raise NotImplementedError("losses are computed by whoever asks")
