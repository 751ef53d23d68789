"""XGBoost's trees as plain arrays, from its own JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from likewise.core.errors import InputError
from likewise.models.boosted import is_exactly
from likewise.models.categories import xgboost_categories
from likewise.models.tree_ensemble import TreeEnsemble, TreeOutput
from likewise.models.tree_structure import check_xgboost

__all__ = ["kept_rounds", "kept_trees", "read_xgboost"]


def read_xgboost(model: Any) -> TreeEnsemble:
    """Read a `Booster`, `XGBClassifier` or `XGBRegressor` with plain trees (gbtree).

    Parameters
    ----------
    model : xgboost.Booster or wrapper
        A wrapper that stopped early gives the trees up to its best iteration, as its `predict` does; a `Booster` all.

    Returns
    -------
    TreeEnsemble
        Of margins; of values for a regression.
    """
    if not is_exactly(model, "xgboost"):
        raise InputError(
            f"read_trees: {type(model).__name__} is not a class of XGBoost itself, so it may answer in another way than its "
            "trees do."
        )
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
    kind: TreeOutput = "values" if _is_regression(objective) else "scores"
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
    read = _assemble(
        trees,
        groups,
        width,
        base=_base(learner, objective, width),
        kind=kind,
        n_features=int(learner["learner_model_param"]["num_feature"]),
        feature_names=names,
        categories=categories,
    )
    missing = getattr(model, "missing", np.nan)
    return read if missing is None or np.isnan(missing) else read.with_missing(float(missing), single=True)


def _is_regression(objective: str) -> bool:
    return objective.startswith(("reg:", "count:")) and objective != "reg:logistic"


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


def _assemble(trees: list[Any], groups: list[int], width: int, **about: Any) -> TreeEnsemble:
    parts: dict[str, list[Any]] = {
        name: [] for name in ("left", "right", "feature", "threshold", "missing_left")
    }
    values, roots, sets, offset = [], [], {}, 0
    for tree, group in zip(trees, groups, strict=True):
        left = np.asarray(tree["left_children"], dtype=np.int64)
        right = np.asarray(tree["right_children"], dtype=np.int64)
        conditions = np.asarray(tree["split_conditions"], dtype=np.float64)
        if int(tree["tree_param"].get("size_leaf_vector", "1")) > 1:
            raise InputError(
                "read_trees: XGBoost trees with vector leaves are not read. Use multi_strategy='one_output_per_tree'."
            )
        roots.append(offset)
        parts["left"].append(np.where(left >= 0, left + offset, -1))
        parts["right"].append(np.where(right >= 0, right + offset, -1))
        parts["feature"].append(tree["split_indices"])
        # Thresholds are single precision; their shortest decimal form need not be it in double precision.
        parts["threshold"].append(conditions.astype(np.float32).astype(np.float64))
        parts["missing_left"].append(tree["default_left"])
        leaf = np.zeros((len(left), width))
        leaf[left < 0, group] = conditions.astype(np.float32)[left < 0]
        values.append(leaf)
        spans = (tree.get(f"categories_{part}", []) for part in ("nodes", "segments", "sizes"))
        for node, start, size in zip(*spans, strict=True):
            sets[offset + int(node)] = tree["categories"][int(start) : int(start) + int(size)]
        offset += len(left)
    joined: dict[str, Any] = {name: np.concatenate(lists) for name, lists in parts.items()}
    # The listed categories go right.
    return TreeEnsemble.from_nodes(
        roots=roots,
        values=np.concatenate(values),
        sets=sets,
        listed_left=False,
        strict=True,
        single=True,
        roundoff=2.0**-24,
        **joined,
        **about,
    )
