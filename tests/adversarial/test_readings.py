"""A reading that differs from its model in one leaf, threshold, category or weight is not believed."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import likewise as lw
from likewise.auditing.bounds.families import Asker, check_reading, family_of
from likewise.auditing.bounds.networks import NetworkFamily
from likewise.auditing.bounds.tree_tables import TableTrees
from likewise.auditing.problem import AuditProblem
from likewise.core.errors import InputError

WORDS = np.array(["a", "b", "c", "d", "e"])


def people(seed=0, n=400):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "pay": rng.normal(1e3, 300.0, n),
            "age": rng.integers(18, 70, n),
            "gain": np.where(rng.random(n) < 0.7, 0, rng.integers(1, 9_000, n)),
            "job": rng.choice(WORDS, n),
            "sex": rng.choice(["F", "M"], n),
        }
    )
    score = (
        (table["pay"] - 1e3) / 300 + (table["age"] - 44) / 15 + (table["sex"] == "M") + (table["job"] == "b")
    )
    return table, (score + rng.normal(0, 0.7, n) > 0.8).astype(int).to_numpy()


def encoder():
    return make_column_transformer((OneHotEncoder(), ["job", "sex"]), remainder="passthrough")


def scaled():
    return make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["job", "sex"]), (StandardScaler(), ["pay", "age", "gain"])
    )


def boosted(name):
    if name == "xgboost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=20, max_depth=4)
    if name == "lightgbm":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_estimators=20, num_leaves=12, verbose=-1)
    from catboost import CatBoostClassifier

    return CatBoostClassifier(iterations=20, depth=4, verbose=False, allow_writing_files=False)


def by_categories(table):
    return table.astype({"job": "category", "sex": "category"})


MODELS = {
    "xgboost, sparse one-hot": lambda X, y: make_pipeline(encoder(), boosted("xgboost")).fit(X, y),
    "lightgbm, sparse one-hot": lambda X, y: make_pipeline(encoder(), boosted("lightgbm")).fit(X, y),
    "catboost": lambda X, y: make_pipeline(scaled(), boosted("catboost")).fit(X, y),
    "tree": lambda X, y: make_pipeline(scaled(), DecisionTreeClassifier(max_depth=6)).fit(X, y),
    "forest": lambda X, y: make_pipeline(encoder(), RandomForestClassifier(10, max_depth=6)).fit(X, y),
    "extra trees": lambda X, y: make_pipeline(scaled(), ExtraTreesClassifier(10, max_depth=6)).fit(X, y),
    "bagging": lambda X, y: make_pipeline(
        scaled(), BaggingClassifier(DecisionTreeClassifier(max_depth=5), 8, max_features=0.6)
    ).fit(X, y),
    "hist": lambda X, y: HistGradientBoostingClassifier(
        max_iter=15, categorical_features="from_dtype", early_stopping=False
    ).fit(X, y),
    "linear": lambda X, y: make_pipeline(scaled(), LogisticRegression()).fit(X, y),
    "network": lambda X, y: make_pipeline(scaled(), MLPClassifier((16,), max_iter=60, tol=1.0)).fit(X, y),
}


def changed_trees(family, rng):
    """One leaf, one cut or one category of the trees, where a row of the domain reaches it."""
    trees: TableTrees = family.trees
    values, base, slack = family._outputs
    leaves = np.flatnonzero(trees.left < 0)
    inner = np.flatnonzero(trees.left >= 0)
    reached = leaves[trees._paths(family.layout, leaves)[3]]
    alive = inner[trees._paths(family.layout, inner)[3]]
    how = ["leaf", "cut", "category"][int(rng.integers(3))]
    other = values.copy(), trees.cut.copy(), trees.goes_left.copy()
    numbers, sets = alive[trees.group[alive] < 0], alive[trees.group[alive] >= 0]
    if how == "cut" and len(numbers):
        node = rng.choice(numbers)
        span = float(np.ptp([c for c in trees.cut[numbers] if np.isfinite(c)])) or 1.0
        other[1][node] += np.ceil(0.05 * span) * rng.choice([-1.0, 1.0])
    elif how == "category" and len(sets):
        node = rng.choice(sets)
        column = trees.column[node]
        first, count = family.layout.offset[column], family.layout.count[column]
        other[2][trees.group[node], first + rng.integers(count)] ^= 1
    else:
        node = rng.choice(reached)
        other[0][node] += 0.02 * (1.0 + np.abs(values).max()) * rng.choice([-1.0, 1.0])
    family._outputs = other[0], base, slack
    family.trees = replace(trees, cut=other[1], goes_left=other[2])
    t = family.trees
    family._walk = (t.left, t.right, t.column, t.cut, t.group, t.goes_left, t.values, t.peak)
    return family


def changed_network(family, rng):
    """One weight that counts anywhere in the domain."""
    layers = [k for k, weight in enumerate(family.net.weights) if np.abs(weight).max() > 0]
    k = int(rng.choice(layers))
    weight = family.net.weights[k].copy()
    place = np.unravel_index(
        rng.choice(np.flatnonzero(np.abs(weight) > 0.05 * np.abs(weight).max())), weight.shape
    )
    weight[place] *= 1.0 + rng.choice([-0.1, 0.1])
    weights = tuple(weight if i == k else own for i, own in enumerate(family.net.weights))
    return NetworkFamily(replace(family.net, weights=weights), family.layout, family.parts.loss)


def differs(family, changed, rows):
    """Whether the change shows anywhere at all: 20,000 rows of the domain that the check does not see."""
    return bool((np.abs(family.outputs(rows)[0] - changed.outputs(rows)[0]) > 1e-3).any())


def caught(name, count, seed=0):
    """How many of `count` changed readings are refused, and how many changes show."""
    from likewise.auditing.bounds.families import random_rows

    table, y = people()
    table = by_categories(table) if name == "hist" else table
    np.random.seed(seed)  # noqa: NPY002 (what scikit-learn draws from)
    model = MODELS[name](table, y)
    metric = lw.ExpertSubspace(["sex"]).fit(table).metric_
    problem = AuditProblem.build(model, table, y, metric=metric)
    place = problem.coordinates

    def fresh():
        return family_of(place.model, place.domain, encoded=place.takes in ("encoded", "own"), own=place.own)

    right = fresh()
    asker, own = Asker(place, right.layout), right.layout.values(problem.X)
    check_reading(right, asker, own, decides=True)
    found = shown = 0
    rng = np.random.default_rng(seed)
    unseen = random_rows(right.layout, own, np.random.default_rng(99), 20_000)
    while shown < count:
        change = changed_network if isinstance(right, NetworkFamily) else changed_trees
        changed = change(fresh(), rng)
        if not differs(right, changed, unseen):
            continue
        shown += 1
        try:
            check_reading(changed, asker, own, decides=True)
        except InputError as error:
            found += "read differently than it answers" in str(error)
    return found, shown


@pytest.mark.parametrize("name", list(MODELS))
def test_a_changed_reading_is_refused(name):
    assert caught(name, 5) == (5, 5)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    for kind in MODELS:
        print(kind, *caught(kind, 100, seed=1), flush=True)
