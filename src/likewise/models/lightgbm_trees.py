"""LightGBM's trees as plain arrays, from its own dump."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from likewise.core.errors import FormatError, InputError
from likewise.models.boosted import lightgbm_categories
from likewise.models.tree_ensemble import (
    Tree,
    TreeEnsemble,
    TreeOutput,
    check_among,
    check_equal_lengths,
    check_tree,
    integers,
)


def read_lightgbm(model: Any) -> TreeEnsemble:
    """Read a `Booster`, `LGBMClassifier` or `LGBMRegressor`."""
    booster = model.booster_ if hasattr(model, "booster_") else model
    dump = booster.dump_model()
    objective = str(dump.get("objective", "custom")).split()
    kind = _kind(objective[0])
    # A logistic objective of slope s scores s·f.
    slope = next((float(part.split(":")[1]) for part in objective if part.startswith("sigmoid:")), 1.0)
    width = int(dump["num_tree_per_iteration"])
    shrink = width / max(1, len(dump["tree_info"])) if dump.get("average_output") else 1.0
    names = booster.feature_name()
    known = (
        lightgbm_categories(booster, booster.model_to_string(num_iteration=1))
        if booster.pandas_categorical
        else {}
    )
    trees = [
        _tree(tree["tree_structure"], np.arange(width) == number % width, slope * shrink)
        for number, tree in enumerate(dump["tree_info"])
    ]
    return TreeEnsemble.from_trees(
        trees,
        base=np.zeros(width),
        kind=kind,
        n_features=int(booster.num_feature()),
        feature_names=names,
        categories={i: tuple(known[name]) for i, name in enumerate(names) if name in known},
    )


def _kind(objective: str) -> TreeOutput:
    if objective in ("binary", "cross_entropy", "multiclass"):
        return "scores"
    if objective in ("regression", "regression_l1", "huber", "fair", "quantile", "mape"):
        return "values"
    raise InputError(
        f"read_trees: LightGBM's {objective} transforms the sum of its trees in a way that is not read."
    )


def _tree(structure: Any, group: np.ndarray[Any, Any], factor: float) -> Tree:
    """One tree, whose leaves count for the outputs of a group."""
    nodes, left, right = [structure], list[int](), list[int]()
    for node in nodes:  # grows while it is walked
        if "split_feature" not in node:
            left.append(-1)
            right.append(-1)
            continue
        left.append(len(nodes))
        right.append(len(nodes) + 1)
        nodes += [node["left_child"], node["right_child"]]
    splits = [_split(node) for node in nodes]
    leaves = np.array([float(node.get("leaf_value", 0.0)) for node in nodes])
    return Tree(
        np.array(left),
        np.array(right),
        np.array([int(node.get("split_feature", 0)) for node in nodes]),
        np.array([threshold for threshold, _, _ in splits]),
        np.array([missing_left for _, missing_left, _ in splits]),
        np.outer(leaves, group) * factor,
        {at: codes for at, (_, _, codes) in enumerate(splits) if codes is not None},
    )


def _split(node: Any) -> tuple[float, bool, list[int] | None]:
    """Threshold of a node, whether missing values go to the left, and its categories if it asks for some."""
    if "split_feature" not in node:
        if "leaf_const" in node or "leaf_coeff" in node:
            raise InputError(
                "read_trees: this LightGBM model has a linear function in every leaf (linear_tree=True), "
                "and only constant leaves are read. Train with linear_tree=False."
            )
        return 0.0, False, None
    if node["decision_type"] == "==":
        return 0.0, False, [int(part) for part in str(node["threshold"]).split("||") if part != ""]
    if node["missing_type"] == "Zero":
        raise InputError(
            "read_trees: this LightGBM model takes 0 for a missing value (zero_as_missing=True), "
            "so that a split is not an interval. Train with zero_as_missing=False."
        )
    threshold = float(node["threshold"])
    # Without missing values in training a missing one counts as 0.
    return threshold, bool(node["default_left"]) if node["missing_type"] == "NaN" else threshold >= 0.0, None


# Whether the trees of a model file are trees: a node that points nowhere crashes the library that follows it.


def check_lightgbm(text: str) -> None:
    """Check a LightGBM model file."""
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
    check_equal_lengths(where, *arrays, range(n_leaves - 1))
    check_among(where, "splits on feature", integers(arrays[0]), n_features)
    children = np.stack([integers(arrays[3]), integers(arrays[4])], axis=1)
    # A child −k−1 is leaf k; behind the inner nodes the leaves get numbers of their own.
    numbered = np.where(children < 0, n_leaves - 2 - children, children)
    n_nodes = 2 * n_leaves - 1
    everything = np.full((n_nodes, 2), -1, dtype=np.int64)
    everything[: n_leaves - 1] = numbered
    check_tree(where, everything, np.arange(n_nodes) < n_leaves - 1)
    by_category = (integers(arrays[2]) & 1).astype(bool)
    if by_category.any():
        bounds = integers(lines.get("cat_boundaries", "").split())
        total = len(lines.get("cat_threshold", "").split())
        if not len(bounds) or (np.diff(bounds) < 0).any() or bounds[0] < 0 or bounds[-1] > total:
            raise FormatError(f"{where} has categories beyond the end of their list")
        index = np.array([float(value) for value in arrays[1]])[by_category]
        check_among(where, "splits on category set", index.astype(np.int64), len(bounds) - 1)
