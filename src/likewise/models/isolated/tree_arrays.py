"""The trees of a model as plain arrays between two processes, checked on arrival as if a stranger had sent them."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.core.errors import FormatError
from likewise.core.plain_forms import Fields, ListOf, MapOf, Maybe, OneOf, Whole, check_form, is_scalar
from likewise.models.isolated.messages import Array
from likewise.models.tree_ensemble import TreeEnsemble
from likewise.models.tree_structure import check_tree

__all__ = ["pack_trees", "unpack_trees"]

_NODES = ("left", "right", "feature", "threshold", "missing_left", "first", "last", "listed_left", "single")
_ARRAYS = ("roots", *_NODES, "codes", "values", "base")
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
_KINDS = {"i": "<i8", "f": "<f8", "b": "|b1"}
_WANTED = dict.fromkeys(_ARRAYS, "i") | {
    "threshold": "f",
    "values": "f",
    "base": "f",
    "missing_left": "b",
    "listed_left": "b",
    "single": "b",
}


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
            str(i): [v.item() if isinstance(v, np.generic) else v for v in values]
            for i, values in trees.categories.items()
        },
    }
    return text, [np.asarray(getattr(trees, name)) for name in _ARRAYS]


def unpack_trees(text: dict[str, Any], arrays: list[Array]) -> TreeEnsemble:
    """Return the trees that `pack_trees` packed.

    Raises
    ------
    FormatError
        Where they are no trees.
    """
    check_form(text, _TEXT, "the trees")
    if len(arrays) != len(_ARRAYS):
        raise FormatError(f"the trees have {len(arrays)} arrays, expected {len(_ARRAYS)}")
    parts: dict[str, Any] = dict(zip(_ARRAYS, arrays, strict=True))
    for name, array in parts.items():
        shape = 2 if name == "values" else 1
        if array.dtype.str != _KINDS[_WANTED[name]] or array.ndim != shape:
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
        raise FormatError("the trees have leaves that are no numbers, or too many of them")
    if not np.isfinite(parts["base"]).all() or np.isnan(parts["threshold"]).any():
        raise FormatError("the trees have splits that are no numbers")
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
