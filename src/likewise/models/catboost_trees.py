"""CatBoost's symmetric trees as plain arrays, from its own JSON."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from likewise.core.errors import InputError
from likewise.models.boosted import catboost_objective
from likewise.models.tree_ensemble import Tree, TreeEnsemble, TreeOutput


def read_catboost(model: Any) -> TreeEnsemble:
    """Read a `CatBoost`, `CatBoostClassifier` or `CatBoostRegressor` with symmetric trees on numbers."""
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
    columns = [int(info["flat_feature_index"]) for info in floats]
    nan_left = [info["nan_value_treatment"] != "AsTrue" for info in floats]
    return TreeEnsemble.from_trees(
        [_tree(tree, columns, nan_left, len(base), float(scale)) for tree in document["oblivious_trees"]],
        base=base,
        kind=kind,
        single=True,
        n_features=len(model.feature_names_),
        feature_names=model.feature_names_,
    )


def _tree(tree: Any, columns: list[int], nan_left: list[bool], width: int, scale: float) -> Tree:
    """Write a symmetric tree out: every level asks one question, and the answers are the bits of the leaf's number.

    The first split is the lowest bit.
    """
    splits = tree.get("splits") or []
    if any(split["split_type"] != "FloatFeature" for split in splits):
        raise InputError(
            "read_trees: this CatBoost model splits on categories by their hash or by target statistics, "
            "which cannot be read. Encode the categories before training."
        )
    n_inner, depth = 2 ** len(splits) - 1, len(splits)
    n = 2 * n_inner + 1
    # Level by level: the children of node i are 2i + 1 and 2i + 2.
    children = np.where(np.arange(n) < n_inner, 2 * np.arange(n) + 1, -1)
    asked = [int(split["float_feature_index"]) for split in splits]

    def by_level(values: list[Any]) -> np.ndarray[Any, Any]:
        """Each level's value for all of its nodes, and 0 for the leaves."""
        return np.concatenate([np.full(2**i, value) for i, value in enumerate([*values, 0])])

    places = np.arange(n_inner + 1)
    numbers = sum((((places >> (depth - 1 - bit)) & 1) << bit for bit in range(depth)), 0 * places)
    values = np.zeros((n, width))
    values[n_inner:] = np.asarray(tree["leaf_values"], dtype=np.float64).reshape(-1, width)[numbers] * scale
    return Tree(
        children,
        np.where(children >= 0, children + 1, -1),
        by_level([columns[k] for k in asked]),
        by_level([float(split["border"]) for split in splits]),
        by_level([nan_left[k] for k in asked]),
        values,
    )
