"""A whole real-valued column at no cost: trees have finitely many answers there, and the bracket at ε = 0 no width."""

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.models.tree_ensemble import read_trees


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "income": rng.gamma(2.0, 1.7, 150),
            "age": rng.integers(20, 60, 150),
            "sex": rng.choice(["F", "M"], 150),
        }
    )
    score = frame["income"] + frame["age"] / 8 + (frame["sex"] == "M") + rng.normal(0, 1, 150)
    return frame.astype({"sex": "category"}), (score > 9).to_numpy().astype(int)


def fitted(kind, frame, y):
    if kind == "xgboost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=30, max_depth=4, n_jobs=1, enable_categorical=True).fit(frame, y)
    if kind == "lightgbm":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_estimators=30, min_child_samples=5, n_jobs=1, verbose=-1).fit(frame, y)
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=30, categorical_features="from_dtype").fit(frame, y)


def every_answer(model, frame, y, column, low, high):
    """The worst of all answers along a column: one value in every cell between thresholds, asked of the model itself."""
    trees = read_trees(lw.as_model(model))
    at = [str(name) for name in trees.feature_names].index(column)
    inner = (trees.left >= 0) & (trees.feature == at)
    cuts = np.unique(np.clip(trees.threshold[inner], low, high))
    edges = np.concatenate([[low], cuts, [high]])
    values = np.unique(np.concatenate([[low, high], (edges[1:] + edges[:-1]) / 2]))
    adapter, worst = lw.as_model(model), np.full(len(frame), -np.inf)
    for value in values:
        worst = np.maximum(worst, adapter.losses(frame.assign(**{column: value}), y))
    return np.maximum(worst, adapter.losses(frame, y)).mean()


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm", "hist"])
def test_pure_unfairness_along_a_number_is_exact(people, kind):
    frame, y = people
    model = fitted(kind, frame, y)
    domain = lw.TabularDomain.from_frame(frame)
    assert next(c for c in domain.columns_ if c.name == "income").kind == "continuous"
    metric = lw.ExpertSubspace(["income"]).fit(frame).metric_
    some = frame[:40], y[:40]
    result = lw.audit(model, *some, metric=metric, domain=domain, eps=0.0, search="exact")
    truth = every_answer(model, *some, "income", frame["income"].min(), frame["income"].max())
    bound, estimate = result.certificate.bound.value, result.certificate.estimate.value
    assert bound - estimate == pytest.approx(0.0, abs=1e-15)
    assert estimate == pytest.approx(truth, abs=1e-12)
    assert truth > result.base_loss + 0.1
