"""Tree ensembles of every library as one set of plain arrays: leaf values, and where each split sends a row."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from likewise.core.checks import BoolArray, FloatArray, IntArray
from likewise.core.errors import FormatError, InputError
from likewise.models.model import Model, has_other_methods

TreeOutput: TypeAlias = Literal["scores", "probabilities", "values"]


class Tree(NamedTuple):
    """One tree, its nodes numbered from 0, the root; a leaf has a negative left child."""

    left: Any
    right: Any
    feature: Any
    threshold: Any
    missing_left: Any
    # Of the leaves (n, C); what inner nodes have there is not looked at.
    values: Any
    # Codes of the categories that a node asks for, by node.
    sets: Mapping[int, Any] = {}


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """A sum of trees over the model's own features.

    Nodes of all trees stand one after the other. A split on a number sends x to the left if x ≤ threshold
    (x < threshold when `strict`); a split on a category if its code is among ``codes[first:last]``, or is
    not, by `listed_left`. A missing value goes where `missing_left` says.
    """

    roots: IntArray
    left: IntArray
    right: IntArray
    feature: IntArray
    threshold: FloatArray
    missing_left: BoolArray
    first: IntArray
    last: IntArray
    codes: IntArray
    listed_left: BoolArray
    values: FloatArray
    base: FloatArray
    single: BoolArray
    kind: TreeOutput
    n_features: int
    strict: bool = False
    roundoff: float = 2.0**-53
    feature_names: tuple[str, ...] | None = None
    categories: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)

    @classmethod
    def from_nodes(
        cls,
        *,
        roots: Any,
        left: Any,
        right: Any,
        feature: Any,
        threshold: Any,
        values: Any,
        base: Any,
        missing_left: Any = None,
        sets: Mapping[int, Any] | None = None,
        listed_left: bool = True,
        single: bool = False,
        feature_names: Any = None,
        **about: Any,
    ) -> TreeEnsemble:
        """Make one from lists; `sets` maps a node that splits on a category to its codes.

        `about` are the other fields: at least `kind` and `n_features`.
        """
        n = len(left)
        first, last = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        codes: list[int] = []
        for node, members in (sets or {}).items():
            first[node] = len(codes)
            # A set may be empty; −1 is not the code of any category, and marks the node as one on categories.
            codes += [int(code) for code in members] or [-1]
            last[node] = len(codes)
        missing = np.zeros(n, dtype=bool) if missing_left is None else np.asarray(missing_left, dtype=bool)
        leaves = np.asarray(left) < 0
        table = np.asarray(values, dtype=np.float64).reshape(n, -1)
        return cls(
            roots=np.asarray(roots, dtype=np.int64),
            left=np.asarray(left, dtype=np.int64),
            right=np.asarray(right, dtype=np.int64),
            feature=np.where(leaves, 0, np.asarray(feature, dtype=np.int64)),
            threshold=np.asarray(threshold, dtype=np.float64),
            missing_left=missing,
            first=first,
            last=last,
            codes=np.asarray(codes, dtype=np.int64),
            listed_left=np.full(n, listed_left),
            values=np.where(leaves[:, None], table, 0.0),
            base=np.asarray(base, dtype=np.float64).reshape(-1),
            single=np.full(n, single),
            feature_names=None if feature_names is None else tuple(map(str, feature_names)),
            **about,
        )

    @classmethod
    def from_trees(cls, trees: Sequence[Tree], **about: Any) -> TreeEnsemble:
        """Put single trees one after the other; `about` as for `from_nodes`."""
        sizes = [len(tree.left) for tree in trees]
        roots = np.cumsum([0, *sizes[:-1]]) if trees else np.zeros(0)
        shift = np.repeat(roots, sizes).astype(np.int64)
        joined: dict[str, Any] = {
            name: np.concatenate([np.asarray(getattr(tree, name)) for tree in trees])
            for name in ("left", "right", "feature", "threshold", "missing_left", "values")
        }
        for side in ("left", "right"):
            joined[side] = np.where(joined[side] >= 0, joined[side].astype(np.int64) + shift, -1)
        sets = {
            int(root) + int(node): codes
            for root, tree in zip(roots, trees, strict=True)
            for node, codes in tree.sets.items()
        }
        return cls.from_nodes(roots=roots, sets=sets, **joined, **about)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.roots)

    @property
    def slack(self) -> float:
        """How far the library's own sum may lie from the exact one, by the rounding of every addition."""
        highest = np.abs(self.values).max(axis=1)
        # Nodes behind the last tree belong to several and have no leaves.
        ends = np.append(self.roots[1:], len(self.left))
        peaks = [highest[start:end].max() for start, end in zip(self.roots, ends, strict=True)]
        partial = float(np.abs(self.base).max(initial=0.0)) + np.cumsum(peaks)
        # Each addition errs by its result times the roundoff, to first order; the base is a logarithm of two roundings.
        base = 4.0 * (1.0 + float(np.abs(self.base).max(initial=0.0)))
        return float(1.01 * self.roundoff * (partial.sum() + base))

    def goes_left(self, node: int, values: Any) -> BoolArray:
        """Whether a node sends values of its feature to the left."""
        return self._goes_left(np.full(np.shape(values), node), np.asarray(values, dtype=np.float64))

    def outputs(self, X: FloatArray) -> FloatArray:
        """Return the exact sums, (n, C)."""
        X = np.asarray(X, dtype=np.float64)
        rows = np.arange(len(X))
        total = np.tile(self.base, (len(X), 1))
        for root in self.roots:
            node = np.full(len(X), root)
            inner = self.left[node] >= 0
            while inner.any():
                at = node[inner]
                goes = self._goes_left(at, X[rows[inner], self.feature[at]])
                node[inner] = np.where(goes, self.left[at], self.right[at])
                inner = self.left[node] >= 0
            total += self.values[node]
        return total

    def with_missing(self, value: float, *, single: bool) -> TreeEnsemble:
        """Return the same trees for a library that takes one number for a missing value.

        A split that sends that number elsewhere than its threshold does becomes up to three: below it, at it, above it.
        The children are shared, so that the result is an acyclic graph rather than a tree.
        """
        at = float(np.float32(value)) if single else float(value)
        numbers = np.flatnonzero((self.left >= 0) & (self.first == self.last))
        by_threshold = self._goes_left(numbers, np.full(len(numbers), at))
        other = numbers[by_threshold != self.missing_left[numbers]]
        if not len(other):
            return self
        n, k = len(self.left), len(other)
        # After all others: a test at the number, and the split as it was.
        equal, again = n + np.arange(k), n + k + np.arange(k)
        source = np.concatenate([np.arange(n), other, other])
        found: dict[str, Any] = {
            name: getattr(self, name)[source]
            for name in ("left", "right", "feature", "threshold", "missing_left", "first", "last", "single")
        }
        found["listed_left"], found["values"] = self.listed_left[source], self.values[source]
        precise = np.float32 if single else np.float64
        following = float(np.nextafter(precise(at), precise(np.inf)))
        before = float(np.nextafter(precise(at), precise(-np.inf)))
        below, up_to = (at, following) if self.strict else (before, at)
        # The number goes left by its threshold: all below it do too. Else all above it go right.
        goes, left, right = self.missing_left[other], self.left[other], self.right[other]
        found["threshold"][other], found["threshold"][equal] = below, up_to
        found["single"][other] = found["single"][equal] = single
        found["left"][other], found["right"][other] = np.where(goes, again, left), equal
        found["left"][equal], found["right"][equal] = (
            np.where(goes, left, right),
            np.where(goes, right, again),
        )
        found["missing_left"][other], found["missing_left"][equal] = False, True
        return replace(self, **found)

    def _goes_left(self, node: IntArray, x: FloatArray) -> BoolArray:
        by_category = self.last[node] > self.first[node]
        with np.errstate(over="ignore"):
            seen = np.where(self.single[node], x.astype(np.float32).astype(np.float64), x)
        below = seen < self.threshold[node] if self.strict else seen <= self.threshold[node]
        for i in np.flatnonzero(by_category):
            members = self.codes[self.first[node[i]] : self.last[node[i]]]
            below[i] = bool((members == x[i]).any()) == bool(self.listed_left[node[i]])
        return np.asarray(np.where(np.isnan(x), self.missing_left[node], below))


def read_trees(model: Any) -> TreeEnsemble:
    """Read the trees of a fitted model."""
    if isinstance(model, Model) and hasattr(model, "read_trees"):
        found: TreeEnsemble = model.read_trees()
        return found
    inner = model.estimator if isinstance(model, Model) and hasattr(model, "estimator") else model
    kind = type(inner)
    library = kind.__module__.split(".")[0]
    if kind.__name__ not in _CLASSES.get(library, ()) or not _is_own(inner):
        raise InputError(
            f"read_trees: {kind.__name__} is not on the list of tree models that are read: some classes of XGBoost, "
            "LightGBM, CatBoost and scikit-learn, not their subclasses, no method replaced."
        )
    read: TreeEnsemble = getattr(import_module("likewise.models.tree_readers"), f"read_{library}")(inner)
    return read


# The exact classes whose trees are read, by library; what each setting means stands in its reader.
_CLASSES = {
    "xgboost": ("Booster", "XGBClassifier", "XGBRegressor"),
    "lightgbm": ("Booster", "LGBMClassifier", "LGBMRegressor"),
    "catboost": ("CatBoost", "CatBoostClassifier", "CatBoostRegressor"),
    "sklearn": (
        "BaggingClassifier", "DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier",
        "ExtraTreeRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor", "HistGradientBoostingClassifier",
        "HistGradientBoostingRegressor", "RandomForestClassifier", "RandomForestRegressor",
    ),
}  # fmt: skip


def _is_own(model: Any) -> bool:
    """Whether a model is the library's own, with all that it asks, and not one that a user gave a name or a method."""
    kind = type(model)
    asked = [model, *np.ravel(getattr(model, "estimators_", ())), getattr(model, "_Booster", None)]
    return getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind and not any(
        map(has_other_methods, asked)
    )


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


def check_among(where: str, what: str, values: np.ndarray[Any, Any], n: int) -> None:
    """Raise unless numbers from a file are positions in a list of n."""
    wrong = values[(values < 0) | (values >= n)]
    if len(wrong):
        raise FormatError(f"{where} {what} {int(wrong[0])}, and there are {n}")


def check_equal_lengths(where: str, *parts: Any) -> None:
    """Raise unless lists from a file have one length."""
    lengths = {len(part) for part in parts}
    if len(lengths) > 1:
        raise FormatError(f"{where} has lists of different lengths: {sorted(lengths)}")


def integers(values: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Return numbers or text from a file as int64."""
    return np.array([int(value) for value in values], dtype=np.int64)
