"""Scikit-learn's trees, forests and HistGradientBoosting as plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from likewise.core.errors import InputError
from likewise.models.tree_ensemble import TreeEnsemble, TreeOutput


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
    left, right, features, thresholds, missing, values, roots = [], [], [], [], [], [], []
    offset = 0
    for number, tree in enumerate(trees):
        roots.append(offset)
        inner = tree.children_left >= 0
        own = np.maximum(tree.feature, 0)
        left.append(np.where(inner, tree.children_left + offset, -1))
        right.append(np.where(inner, tree.children_right + offset, -1))
        features.append(own if columns is None else columns[number][own])
        thresholds.append(tree.threshold)
        missing.append(np.asarray(tree.missing_go_to_left, dtype=bool))
        value = tree.value[:, 0, :]
        if classifier:
            value = value / value.sum(axis=1, keepdims=True)
        values.append(value / len(trees))
        offset += len(inner)
    table = np.concatenate(values)
    kind: TreeOutput = "probabilities" if classifier else "values"
    return TreeEnsemble.from_nodes(
        roots=roots,
        left=np.concatenate(left),
        right=np.concatenate(right),
        feature=np.concatenate(features),
        threshold=np.concatenate(thresholds),
        missing_left=np.concatenate(missing),
        values=table,
        base=np.zeros(table.shape[1]),
        kind=kind,
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
    width = estimator._baseline_prediction.size
    left, right, features, thresholds, missing, values, roots = [], [], [], [], [], [], []
    sets: dict[int, list[int]] = {}
    offset = 0
    for stage in estimator._predictors:
        for group, predictor in enumerate(stage):
            nodes = predictor.nodes
            roots.append(offset)
            inner = nodes["is_leaf"] == 0
            left.append(np.where(inner, nodes["left"].astype(np.int64) + offset, -1))
            right.append(np.where(inner, nodes["right"].astype(np.int64) + offset, -1))
            features.append(order[np.where(inner, nodes["feature_idx"], 0)])
            thresholds.append(nodes["num_threshold"])
            missing.append(nodes["missing_go_to_left"].astype(bool))
            leaf = np.zeros((len(nodes), width))
            leaf[~inner, group] = nodes["value"][~inner]
            values.append(leaf)
            for at in np.flatnonzero(inner & (nodes["is_categorical"] == 1)):
                sets[offset + int(at)] = _members(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][at]])
            offset += len(nodes)
    return TreeEnsemble.from_nodes(
        roots=roots,
        left=np.concatenate(left),
        right=np.concatenate(right),
        feature=np.concatenate(features),
        threshold=np.concatenate(thresholds),
        missing_left=np.concatenate(missing),
        sets=sets,
        values=np.concatenate(values),
        base=estimator._baseline_prediction.ravel(),
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
