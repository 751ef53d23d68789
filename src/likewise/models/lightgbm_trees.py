"""LightGBM's trees as plain arrays, from its own dump."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.core.errors import InputError
from likewise.models.boosted import lightgbm_categories
from likewise.models.tree_ensemble import TreeEnsemble, TreeOutput


def read_lightgbm(model: Any) -> TreeEnsemble:
    """Read a `Booster`, `LGBMClassifier` or `LGBMRegressor`."""
    booster = model.booster_ if hasattr(model, "booster_") else model
    dump = booster.dump_model()
    objective = str(dump.get("objective", "custom")).split()
    kind = _kind(objective[0])
    # A logistic objective of slope s scores s·f.
    slope = next((float(part.split(":")[1]) for part in objective if part.startswith("sigmoid:")), 1.0)
    width = int(dump["num_tree_per_iteration"])
    nodes = _Nodes(width)
    for number, tree in enumerate(dump["tree_info"]):
        nodes.add(tree["tree_structure"], number % width)
    shrink = width / max(1, len(dump["tree_info"])) if dump.get("average_output") else 1.0
    names = booster.feature_name()
    known = (
        lightgbm_categories(booster, booster.model_to_string(num_iteration=1))
        if booster.pandas_categorical
        else {}
    )
    return TreeEnsemble.from_nodes(
        roots=nodes.roots,
        left=nodes.left,
        right=nodes.right,
        feature=nodes.feature,
        threshold=nodes.threshold,
        missing_left=nodes.missing_left,
        sets=nodes.sets,
        values=np.array(nodes.values) * slope * shrink,
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


class _Nodes:
    """Lists that grow while nested nodes are walked."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.roots: list[int] = []
        self.left: list[int] = []
        self.right: list[int] = []
        self.feature: list[int] = []
        self.threshold: list[float] = []
        self.missing_left: list[bool] = []
        self.values: list[list[float]] = []
        self.sets: dict[int, list[int]] = {}

    def add(self, structure: Any, group: int) -> None:
        """Add one tree whose leaves count for one output."""
        self.roots.append(len(self.left))
        stack = [(structure, -1, False)]
        while stack:
            node, parent, is_right = stack.pop()
            at = len(self.left)
            if parent >= 0:
                (self.right if is_right else self.left)[parent] = at
            self._append(node, group)
            if "split_feature" in node:
                stack += [(node["right_child"], at, True), (node["left_child"], at, False)]

    def _append(self, node: Any, group: int) -> None:
        at = len(self.left)
        inner = "split_feature" in node
        leaf = [0.0] * self.width
        if not inner:
            if "leaf_const" in node or "leaf_coeff" in node:
                raise InputError(
                    "read_trees: this LightGBM model has a linear function in every leaf (linear_tree=True), "
                    "and only constant leaves are read. Train with linear_tree=False."
                )
            leaf[group] = float(node["leaf_value"])
        threshold, missing_left = 0.0, False
        if inner and node["decision_type"] == "==":
            self.sets[at] = [int(part) for part in str(node["threshold"]).split("||") if part != ""]
        elif inner:
            threshold = float(node["threshold"])
            if node["missing_type"] == "Zero":
                raise InputError(
                    "read_trees: this LightGBM model takes 0 for a missing value (zero_as_missing=True), "
                    "so that a split is not an interval. Train with zero_as_missing=False."
                )
            # Without missing values in training a missing one counts as 0.
            missing_left = bool(node["default_left"]) if node["missing_type"] == "NaN" else threshold >= 0.0
        self.left.append(-1)
        self.right.append(-1)
        self.feature.append(int(node["split_feature"]) if inner else 0)
        self.threshold.append(threshold)
        self.missing_left.append(missing_left)
        self.values.append(leaf)
