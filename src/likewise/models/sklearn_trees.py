"""Scikit-learn's trees, forests and HistGradientBoosting as plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from likewise.core.errors import InputError
from likewise.models.tree_ensemble import Tree, TreeEnsemble


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
