"""CatBoost's symmetric trees as plain arrays, from its own JSON."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from likewise.core.errors import InputError
from likewise.models.boosted import catboost_objective, is_exactly
from likewise.models.tree_ensemble import TreeEnsemble, TreeOutput


def read_catboost(model: Any) -> TreeEnsemble:
    """Read a `CatBoost`, `CatBoostClassifier` or `CatBoostRegressor` with symmetric trees on numbers."""
    if not is_exactly(model, "catboost"):
        raise InputError(
            f"read_trees: {type(model).__name__} is not a class of CatBoost itself, so it may answer in another way than its "
            "trees do."
        )
    if "params" not in model.get_metadata():
        raise InputError(
            "read_trees: a sum of CatBoost models does not say how it was trained, so it is asked and not read."
        )
    loss = catboost_objective(model)
    kind: TreeOutput
    if loss in ("Logloss", "CrossEntropy", "MultiClass"):
        kind = "scores"
    elif loss in ("RMSE", "MAE", "Quantile"):
        kind = "values"
    else:
        raise InputError(
            f"read_trees: CatBoost's {loss} transforms the sum of its trees in a way that is not read."
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        document = json.loads(path.read_text())
    limit = float(document["model_info"].get("binclass_probability_threshold", 0.5))
    if limit != 0.5:
        raise InputError(
            f"read_trees: this CatBoost model decides at a probability of {limit:g}, and only models that decide at 0.5 "
            "are read. Call set_probability_threshold(0.5), or audit without proofs."
        )
    if "oblivious_trees" not in document:
        raise InputError(
            "read_trees: only CatBoost's symmetric trees are read. Train with grow_policy='SymmetricTree'."
        )
    scale, bias = document["scale_and_bias"]
    base = np.atleast_1d(np.asarray(bias, dtype=np.float64))
    floats = document["features_info"].get("float_features", [])
    nodes = _SymmetricNodes(
        [int(info["flat_feature_index"]) for info in floats],
        [info["nan_value_treatment"] != "AsTrue" for info in floats],
        len(base),
    )
    for tree in document["oblivious_trees"]:
        nodes.add(tree, float(scale))
    return TreeEnsemble.from_nodes(
        roots=nodes.roots,
        left=nodes.left,
        right=nodes.right,
        feature=nodes.feature,
        threshold=nodes.threshold,
        missing_left=nodes.missing_left,
        values=nodes.values,
        base=base,
        kind=kind,
        single=True,
        n_features=len(model.feature_names_),
        feature_names=model.feature_names_,
    )


class _SymmetricNodes:
    """Symmetric trees written out: every level asks one question, and the answers are the bits of the leaf."""

    def __init__(self, columns: list[int], nan_left: list[bool], width: int) -> None:
        self.columns, self.nan_left, self.width = columns, nan_left, width
        self.roots: list[int] = []
        self.left: list[int] = []
        self.right: list[int] = []
        self.feature: list[int] = []
        self.threshold: list[float] = []
        self.missing_left: list[bool] = []
        self.values: list[Any] = []

    def add(self, tree: Any, scale: float) -> None:
        """Write one tree out; the first split is the lowest bit of the leaf's number."""
        splits = tree.get("splits") or []
        if any(split["split_type"] != "FloatFeature" for split in splits):
            raise InputError(
                "read_trees: this CatBoost model splits on categories by their hash or by target statistics, "
                "which cannot be read. Encode the categories before training."
            )
        leaves = np.asarray(tree["leaf_values"], dtype=np.float64).reshape(-1, self.width) * scale
        offset, depth = len(self.left), len(splits)
        self.roots.append(offset)
        for level in range(depth + 1):
            first, below = offset + 2**level - 1, offset + 2 ** (level + 1) - 1
            for k in range(2**level):
                inner = level < depth
                split = splits[level] if inner else None
                self.left.append(below + 2 * k if inner else -1)
                self.right.append(below + 2 * k + 1 if inner else -1)
                column = int(split["float_feature_index"]) if split else 0
                self.feature.append(self.columns[column] if split else 0)
                self.threshold.append(float(split["border"]) if split else 0.0)
                self.missing_left.append(self.nan_left[column] if split else False)
                number = sum(((k >> (depth - 1 - bit)) & 1) << bit for bit in range(depth))
                self.values.append(np.zeros(self.width) if inner else leaves[number])
            assert len(self.left) == first + 2**level
