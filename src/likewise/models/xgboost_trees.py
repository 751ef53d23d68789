"""XGBoost's trees as plain arrays, from its own JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from likewise.core.errors import FormatError, InputError
from likewise.models.boosted import xgboost_categories
from likewise.models.tree_ensemble import (
    Tree,
    TreeEnsemble,
    TreeOutput,
    check_among,
    check_equal_lengths,
    check_tree,
    integers,
)

# Whether the trees of a boosted model are trees: a node that points nowhere crashes the library that
# follows it.


def check_xgboost(document: Mapping[str, Any]) -> None:
    """Check an XGBoost model that was saved as JSON."""
    learner = document["learner"]
    n_features = int(learner["learner_model_param"]["num_feature"])
    booster = learner["gradient_booster"]
    # DART keeps its trees one level deeper; a linear booster has none.
    model = booster.get("gbtree", booster).get("model", {})
    for number, tree in enumerate(model.get("trees", [])):
        left, right = integers(tree["left_children"]), integers(tree["right_children"])
        where = f"tree {number}"
        parts = [tree[name] for name in ("split_indices", "split_conditions", "default_left")]
        check_equal_lengths(where, left, right, *parts)
        inner = left >= 0
        check_among(where, "splits on feature", integers(tree["split_indices"])[inner], n_features)
        if (inner != (right >= 0)).any():
            raise FormatError(f"{where} has a node with one child only")
        check_tree(where, np.stack([left, right], axis=1), inner)
        nodes, starts, sizes = (
            integers(tree.get(f"categories_{part}", [])) for part in ("nodes", "segments", "sizes")
        )
        check_equal_lengths(where, nodes, starts, sizes)
        check_among(where, "has categories for node", nodes, len(left))
        total = len(tree.get("categories", []))
        if ((starts < 0) | (sizes < 0) | (starts + sizes > total)).any():
            raise FormatError(f"{where} has categories beyond the end of their list")


def read_xgboost(model: Any) -> TreeEnsemble:
    """Read a `Booster`, `XGBClassifier` or `XGBRegressor` with plain trees (gbtree)."""
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    document = json.loads(bytes(booster.save_raw("json")).decode())
    learner = document["learner"]
    if learner["gradient_booster"].get("name") != "gbtree":
        raise InputError(
            f"read_trees: an XGBoost model with booster {learner['gradient_booster'].get('name')!r} is not a plain sum of trees. "
            "Train with booster='gbtree'."
        )
    check_xgboost(document)
    objective = str(learner["objective"]["name"])
    if objective == "binary:logitraw" and booster is not model:
        raise InputError(
            "read_trees: XGBClassifier compares the margin of binary:logitraw with 0.5, and only models that decide at 0 "
            "are read. Train with objective='binary:logistic'."
        )
    regression = objective.startswith(("reg:", "count:")) and objective != "reg:logistic"
    kind: TreeOutput = "values" if regression else "scores"
    if kind == "values" and objective not in (
        "reg:squarederror",
        "reg:absoluteerror",
        "reg:pseudohubererror",
    ):
        raise InputError(
            f"read_trees: XGBoost's {objective} transforms the sum of its trees; only plain sums are read."
        )
    trees, groups = kept_trees(learner["gradient_booster"]["model"], kept_rounds(model))
    n_classes = int(learner["learner_model_param"]["num_class"])
    width = max(1, n_classes)
    names = learner.get("feature_names") or None
    known = xgboost_categories(booster)
    categories = {i: tuple(known[str(name)]) for i, name in enumerate(names or []) if str(name) in known}
    read = TreeEnsemble.from_trees(
        [_tree(tree, np.arange(width) == group) for tree, group in zip(trees, groups, strict=True)],
        # The listed categories go right.
        listed_left=False,
        strict=True,
        single=True,
        roundoff=2.0**-24,
        base=_base(learner, objective, width),
        kind=kind,
        n_features=int(learner["learner_model_param"]["num_feature"]),
        feature_names=names,
        categories=categories,
    )
    missing = getattr(model, "missing", np.nan)
    return read if missing is None or np.isnan(missing) else read.with_missing(float(missing), single=True)


def kept_rounds(model: Any) -> int | None:
    """How many rounds the model's own `predict` uses; None for all.

    XGBoost's scikit-learn wrappers stop at `best_iteration` whenever the booster has it, which `early_stopping_rounds`,
    the callback `EarlyStopping` and a loaded file bring about alike; a native `Booster` always uses all rounds.
    """
    if not hasattr(model, "get_booster"):
        return None
    try:
        return int(model.best_iteration) + 1
    except AttributeError:
        return None


def kept_trees(model: Any, rounds: int | None) -> tuple[list[Any], list[int]]:
    """Trees of the JSON's ``gradient_booster.model`` up to a round, and the class of each."""
    trees, groups = model["trees"], [int(group) for group in model["tree_info"]]
    if rounds is None:
        return trees, groups
    starts = model.get("iteration_indptr")
    last = int(starts[min(rounds, len(starts) - 1)]) if starts else len(trees)
    return trees[:last], groups[:last]


def _base(learner: Any, objective: str, width: int) -> Any:
    """The base score as a margin: XGBoost stores it as a prediction."""
    raw = str(learner["learner_model_param"]["base_score"]).strip("[]")
    score = np.array([float(part) for part in raw.split(",")], dtype=np.float64)
    if objective in ("binary:logistic", "reg:logistic"):
        # In single precision, as XGBoost has it.
        single = score.astype(np.float32)
        score = -np.log(np.float32(1.0) / single - np.float32(1.0))
    return np.broadcast_to(score, (width,)).astype(np.float64)


def _tree(tree: Any, group: np.ndarray[Any, Any]) -> Tree:
    if int(tree["tree_param"].get("size_leaf_vector", "1")) > 1:
        raise InputError(
            "read_trees: XGBoost trees with vector leaves are not read. Use multi_strategy='one_output_per_tree'."
        )
    # Thresholds and leaves are single precision; their shortest decimal form need not be it in double precision.
    conditions = np.asarray(tree["split_conditions"], dtype=np.float32).astype(np.float64)
    spans = (tree.get(f"categories_{part}", []) for part in ("nodes", "segments", "sizes"))
    return Tree(
        np.asarray(tree["left_children"]),
        np.asarray(tree["right_children"]),
        tree["split_indices"],
        conditions,
        tree["default_left"],
        np.outer(conditions, group),
        {
            int(node): tree["categories"][int(start) : int(start) + int(size)]
            for node, start, size in zip(*spans, strict=True)
        },
    )
