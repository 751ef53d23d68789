"""XGBoost's trees as plain arrays, from its own JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from likewise.core.errors import FormatError, InputError
from likewise.models.boosted import is_exactly, xgboost_categories
from likewise.models.tree_ensemble import TreeEnsemble, TreeOutput

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


def read_xgboost(model: Any) -> TreeEnsemble:
    """Read a `Booster`, `XGBClassifier` or `XGBRegressor` with plain trees (gbtree)."""
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
