"""Trees of each library as plain arrays; `tree_ensemble.read_trees` has the closed list of the types that are read."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from likewise.core.errors import FormatError, InputError
from likewise.models.boosted import catboost_objective, lightgbm_categories, xgboost_categories
from likewise.models.tree_ensemble import (
    Tree,
    TreeEnsemble,
    TreeOutput,
    check_among,
    check_equal_lengths,
    check_tree,
    integers,
)

# XGBoost, from its own JSON.


# Check the structure of XGBoost's trees: an invalid node crashes the library that follows it.


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
        [_xgboost_tree(tree, np.arange(width) == group) for tree, group in zip(trees, groups, strict=True)],
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


def _xgboost_tree(tree: Any, group: np.ndarray[Any, Any]) -> Tree:
    if int(tree["tree_param"].get("size_leaf_vector", "1")) > 1:
        raise InputError(
            "read_trees: XGBoost trees with vector leaves are not read. Use multi_strategy='one_output_per_tree'."
        )
    # Thresholds and leaves are single precision; their shortest decimal form need not be it in double precision.
    conditions = np.asarray(tree["split_conditions"], dtype=np.float32).astype(np.float64)
    return Tree(
        np.asarray(tree["left_children"]),
        np.asarray(tree["right_children"]),
        tree["split_indices"],
        conditions,
        tree["default_left"],
        np.outer(conditions, group),
        node_categories(tree),
    )


def node_categories(tree: Any) -> dict[int, list[Any]]:
    """Return the categories that each node of one of XGBoost's trees asks for."""
    spans = (tree.get(f"categories_{part}", []) for part in ("nodes", "segments", "sizes"))
    return {
        int(node): tree["categories"][int(start) : int(start) + int(size)]
        for node, start, size in zip(*spans, strict=True)
    }


# LightGBM, from its own dump.

# Numbers of at most this size are 0 to LightGBM; it splits there, and then the threshold itself goes to the side of 0.
_ZERO = float(np.float32(1e-35))


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
        _lightgbm_tree(tree["tree_structure"], np.arange(width) == number % width, slope * shrink)
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


def _lightgbm_tree(structure: Any, group: np.ndarray[Any, Any], factor: float) -> Tree:
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
    if -_ZERO <= threshold < 0.0:
        threshold = float(np.nextafter(-_ZERO, -np.inf))
    # Without missing values in training a missing one counts as 0.
    return threshold, bool(node["default_left"]) if node["missing_type"] == "NaN" else threshold >= 0.0, None


# Check the structure of LightGBM's trees: an invalid node crashes the library that follows it.


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


# CatBoost's symmetric trees, from its own JSON.


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
    if model.get_text_feature_indices() or model.get_embedding_feature_indices():
        raise InputError("read_trees: a CatBoost model of texts or embeddings is not read.")
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
        [
            _catboost_tree(tree, columns, nan_left, len(base), float(scale))
            for tree in document["oblivious_trees"]
        ],
        base=base,
        kind=kind,
        single=True,
        n_features=len(model.feature_names_),
        feature_names=model.feature_names_,
    )


def _catboost_tree(tree: Any, columns: list[int], nan_left: list[bool], width: int, scale: float) -> Tree:
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


# Scikit-learn's trees, forests and HistGradientBoosting.


def read_sklearn(estimator: Any) -> TreeEnsemble:
    """Read a decision tree, a forest (random or extra), a bag of trees or a HistGradientBoosting model."""
    kind = type(estimator).__name__
    if kind.startswith("HistGradientBoosting"):
        return _hist(estimator)
    if kind == "BaggingClassifier":
        return _bagging(estimator)
    members = getattr(estimator, "estimators_", [estimator])
    return _forest(estimator, [member.tree_ for member in members])


def _bagging(estimator: Any) -> TreeEnsemble:
    """Trees that each see some of the columns, in an order of their own, and are averaged."""
    from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

    for member in estimator.estimators_:
        if type(member) not in (DecisionTreeClassifier, ExtraTreeClassifier):
            raise InputError(
                f"read_trees: a BaggingClassifier of {type(member).__name__} is not read, only one of single trees."
            )
        if len(member.classes_) != len(estimator.classes_):
            raise InputError("read_trees: a tree of this BaggingClassifier has not seen every class.")
    trees = [member.tree_ for member in estimator.estimators_]
    return _forest(estimator, trees, [np.asarray(columns) for columns in estimator.estimators_features_])


def _forest(
    estimator: Any, trees: Sequence[Any], columns: Sequence[np.ndarray[Any, Any]] | None = None
) -> TreeEnsemble:
    """Trees that are averaged; `columns` says which column each one's own columns are."""
    if getattr(estimator, "n_outputs_", 1) != 1:
        raise InputError("read_trees: a forest of several targets is not read. Train one per target.")
    classifier = hasattr(estimator, "classes_")
    found = []
    for number, tree in enumerate(trees):
        own = np.maximum(tree.feature, 0)
        value = tree.value[:, 0, :]
        if classifier:
            value = value / value.sum(axis=1, keepdims=True)
        found.append(
            Tree(
                tree.children_left,
                tree.children_right,
                own if columns is None else columns[number][own],
                tree.threshold,
                tree.missing_go_to_left,
                value / len(trees),
            )
        )
    return TreeEnsemble.from_trees(
        found,
        base=np.zeros(found[0].values.shape[1]),
        kind="probabilities" if classifier else "values",
        single=True,
        n_features=int(estimator.n_features_in_),
        feature_names=getattr(estimator, "feature_names_in_", None),
    )


def _hist(estimator: Any) -> TreeEnsemble:
    classifier = hasattr(estimator, "classes_")
    if not classifier and type(estimator._loss.link).__name__ != "IdentityLink":
        raise InputError(
            "read_trees: this HistGradientBoosting model transforms the sum of its trees; only plain sums are read."
        )
    order, categories = _columns(estimator)
    base = estimator._baseline_prediction.ravel()
    found = []
    for stage in estimator._predictors:
        for group, predictor in enumerate(stage):
            nodes = predictor.nodes
            inner = nodes["is_leaf"] == 0
            by_category = np.flatnonzero(inner & (nodes["is_categorical"] == 1))
            bits = predictor.raw_left_cat_bitsets
            found.append(
                Tree(
                    np.where(inner, nodes["left"].astype(np.int64), -1),
                    np.where(inner, nodes["right"].astype(np.int64), -1),
                    order[np.where(inner, nodes["feature_idx"], 0)],
                    nodes["num_threshold"],
                    nodes["missing_go_to_left"],
                    np.outer(nodes["value"], np.arange(len(base)) == group),
                    {int(at): _members(bits[nodes["bitset_idx"][at]]) for at in by_category},
                )
            )
    return TreeEnsemble.from_trees(
        found,
        base=base,
        kind="scores" if classifier else "values",
        n_features=int(estimator.n_features_in_),
        feature_names=getattr(estimator, "feature_names_in_", None),
        categories=categories,
    )


def _columns(estimator: Any) -> tuple[np.ndarray[Any, Any], dict[int, tuple[Any, ...]]]:
    """Original column of each of the trees' columns (categories come first), and the categories by code."""
    n = int(estimator.n_features_in_)
    if getattr(estimator, "_preprocessor", None) is None:
        return np.arange(n), {}
    is_categorical = np.asarray(estimator.is_categorical_, dtype=bool)
    order = np.concatenate([np.flatnonzero(is_categorical), np.flatnonzero(~is_categorical)])
    encoder = estimator._preprocessor.named_transformers_["encoder"]
    lists = encoder.categories_
    return order, {
        int(column): tuple(lists[i].tolist()) for i, column in enumerate(np.flatnonzero(is_categorical))
    }


def _members(words: Any) -> list[int]:
    """Codes in a bit set of 32-bit words."""
    return [32 * i + bit for i, word in enumerate(words) for bit in range(32) if (int(word) >> bit) & 1]
