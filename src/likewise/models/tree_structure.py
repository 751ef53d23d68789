"""Whether the trees of a boosted model are trees: a node that points nowhere crashes the library that follows it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from likewise.core.errors import FormatError

__all__ = ["check_lightgbm", "check_tree", "check_xgboost"]


def check_xgboost(document: Mapping[str, Any]) -> None:
    """Check an XGBoost model that was saved as JSON.

    Parameters
    ----------
    document : mapping
        The parsed JSON.

    Raises
    ------
    FormatError
        Names the tree and what is wrong with it.
    """
    learner = document["learner"]
    n_features = int(learner["learner_model_param"]["num_feature"])
    booster = learner["gradient_booster"]
    # DART keeps its trees one level deeper; a linear booster has none.
    model = booster.get("gbtree", booster).get("model", {})
    for number, tree in enumerate(model.get("trees", [])):
        left, right = _integers(tree["left_children"]), _integers(tree["right_children"])
        where = f"tree {number}"
        parts = [tree[name] for name in ("split_indices", "split_conditions", "default_left")]
        _equal_lengths(where, left, right, *parts)
        inner = left >= 0
        _among(where, "splits on feature", _integers(tree["split_indices"])[inner], n_features)
        if (inner != (right >= 0)).any():
            raise FormatError(f"{where} has a node with one child only")
        check_tree(where, np.stack([left, right], axis=1), inner)
        _check_categories(where, tree, len(left))


def _check_categories(where: str, tree: Mapping[str, Any], n_nodes: int) -> None:
    nodes = _integers(tree.get("categories_nodes", []))
    starts, sizes = (_integers(tree.get(f"categories_{part}", [])) for part in ("segments", "sizes"))
    _equal_lengths(where, nodes, starts, sizes)
    _among(where, "has categories for node", nodes, n_nodes)
    ends, total = starts + sizes, len(tree.get("categories", []))
    if len(nodes) and ((starts < 0) | (sizes < 0) | (ends > total)).any():
        raise FormatError(f"{where} has categories beyond the end of their list")


def check_lightgbm(text: str) -> None:
    """Check a LightGBM model file.

    Parameters
    ----------
    text : str
        The whole file.

    Raises
    ------
    FormatError
        Names the tree and what is wrong with it.
    """
    found = re.search(r"^max_feature_idx=(\d+)\s*$", text, flags=re.MULTILINE)
    if found is None:
        raise FormatError("the header does not say how many features there are")
    n_features = int(found.group(1)) + 1
    body = text.split("\nend of trees")[0]
    for part in re.split(r"^Tree=", body, flags=re.MULTILINE)[1:]:
        number, _, rest = part.partition("\n")
        lines = dict(line.split("=", 1) for line in rest.splitlines() if "=" in line)
        _check_lightgbm_tree(f"tree {number.strip()}", lines, n_features)


def _check_lightgbm_tree(where: str, lines: Mapping[str, str], n_features: int) -> None:
    n_leaves = int(lines["num_leaves"])
    if len(lines["leaf_value"].split()) != n_leaves:
        raise FormatError(f"{where} does not have a value for each of its {n_leaves} leaves")
    if n_leaves < 2:
        return
    arrays = [
        lines[name].split()
        for name in ("split_feature", "threshold", "decision_type", "left_child", "right_child")
    ]
    _equal_lengths(where, *arrays, range(n_leaves - 1))
    _among(where, "splits on feature", _integers(arrays[0]), n_features)
    children = np.stack([_integers(arrays[3]), _integers(arrays[4])], axis=1)
    # A child −k−1 is leaf k; behind the inner nodes the leaves get numbers of their own.
    numbered = np.where(children < 0, n_leaves - 2 - children, children)
    n_nodes = 2 * n_leaves - 1
    everything = np.full((n_nodes, 2), -1, dtype=np.int64)
    everything[: n_leaves - 1] = numbered
    check_tree(where, everything, np.arange(n_nodes) < n_leaves - 1)
    _check_lightgbm_categories(where, lines, _integers(arrays[2]), arrays[1])


def _check_lightgbm_categories(
    where: str, lines: Mapping[str, str], decisions: np.ndarray[Any, Any], thresholds: Sequence[str]
) -> None:
    by_category = (decisions & 1).astype(bool)
    if not by_category.any():
        return
    bounds = _integers(lines.get("cat_boundaries", "").split())
    total = len(lines.get("cat_threshold", "").split())
    if not len(bounds) or (np.diff(bounds) < 0).any() or bounds[0] < 0 or bounds[-1] > total:
        raise FormatError(f"{where} has categories beyond the end of their list")
    index = np.array([float(value) for value in thresholds])[by_category]
    _among(where, "splits on category set", index.astype(np.int64), len(bounds) - 1)


def check_tree(where: str, children: np.ndarray[Any, Any], inner: np.ndarray[Any, Any]) -> None:
    """Follow every node once from the root; a node met twice is a loop, one out of range points nowhere."""
    seen = np.zeros(len(inner), dtype=bool)
    level = np.array([0])
    while len(level):
        if (level < 0).any() or (level >= len(inner)).any():
            raise FormatError(f"{where} has a node whose child does not exist")
        if seen[level].any() or len(np.unique(level)) < len(level):
            raise FormatError(f"{where} has a node that is its own descendant, or a child of two nodes")
        seen[level] = True
        level = children[level[inner[level]]].ravel()


def _among(where: str, what: str, values: np.ndarray[Any, Any], n: int) -> None:
    wrong = values[(values < 0) | (values >= n)]
    if len(wrong):
        raise FormatError(f"{where} {what} {int(wrong[0])}, and there are {n}")


def _equal_lengths(where: str, *parts: Any) -> None:
    lengths = {len(part) for part in parts}
    if len(lengths) > 1:
        raise FormatError(f"{where} has lists of different lengths: {sorted(lengths)}")


def _integers(values: Sequence[Any]) -> np.ndarray[Any, Any]:
    return np.array([int(value) for value in values], dtype=np.int64)
