"""Trees as plain arrays give the library's own raw scores, missing values and categories included."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from likewise.core.errors import InputError
from likewise.models.tree_ensemble import read_trees

RNG = np.random.default_rng(0)
N = 300
TABLE = pd.DataFrame(
    {
        "a": RNG.normal(size=N),
        "k": RNG.integers(0, 9, N).astype(float),
        "c": pd.Categorical(RNG.choice(list("uvwxyz"), N)),
        "b": RNG.normal(size=N),
    }
)
TWO = ((TABLE["a"] > 0) ^ TABLE["c"].isin(["u", "w"])).astype(int).to_numpy()
THREE = TWO + (TABLE["k"] > 5).to_numpy()
TABLE.loc[::7, "a"] = np.nan
NUMBERS = TABLE[["a", "k", "b"]]


def features(trees, table):
    out = np.empty(table.shape)
    for j, name in enumerate(table.columns):
        column = table[name]
        if j in trees.categories:
            places = {value: code for code, value in enumerate(trees.categories[j])}
            out[:, j] = [places.get(value, np.nan) for value in column]
        else:
            out[:, j] = column
    return out


def check(model, table, raw):
    trees = read_trees(model)
    mine = trees.outputs(features(trees, table))
    own = np.asarray(raw, dtype=np.float64).reshape(mine.shape)
    assert np.abs(mine - own).max() <= max(trees.slack, 1e-12)
    return trees


@pytest.mark.parametrize("y", [TWO, THREE])
@pytest.mark.parametrize("table", [NUMBERS, TABLE])
def test_xgboost(y, table):
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBClassifier(n_estimators=12, max_depth=4, enable_categorical=True, max_cat_to_onehot=2)
    model.fit(table, y)
    trees = check(model, table, model.predict(table, output_margin=True))
    assert trees.slack < 1e-4
    check(model.get_booster(), table, model.predict(table, output_margin=True))


def test_lightgbm_takes_the_smallest_numbers_for_zero():
    """It splits between negative numbers and zeros at a number that it takes for zero itself."""
    lightgbm = pytest.importorskip("lightgbm")
    table = pd.DataFrame({"a": RNG.integers(-9, 10, 200) / 10})
    for least in (0.0, 0.05):
        model = lightgbm.LGBMClassifier(n_estimators=2, min_child_samples=5, verbose=-1)
        model.fit(table, (table["a"] >= least).astype(int))
        zero = float(np.float32(1e-35))
        at = [sign * np.nextafter(zero, to) for sign in (-1, 1) for to in (-1, zero, 1)]
        near = pd.DataFrame({"a": [*at, 0.0, -0.1, 0.1]})
        check(model, near, model.predict(near, raw_score=True))


def test_xgboost_that_stopped_early_gives_the_trees_it_predicts_with():
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBClassifier(n_estimators=60, max_depth=4, learning_rate=1.0, early_stopping_rounds=2)
    noise = RNG.permutation(TWO)
    model.fit(NUMBERS[:200], noise[:200], eval_set=[(NUMBERS[200:], noise[200:])], verbose=False)
    trees = check(model, NUMBERS, model.predict(NUMBERS, output_margin=True))
    assert trees.n_trees < model.get_booster().num_boosted_rounds()


@pytest.mark.parametrize("y", [TWO, THREE])
@pytest.mark.parametrize("table", [NUMBERS, TABLE])
def test_lightgbm(y, table):
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(
        n_estimators=12, num_leaves=9, verbose=-1, min_data_per_group=5, cat_smooth=1
    )
    model.fit(table, y)
    check(model, table, model.predict(table, raw_score=True))


def test_lightgbm_without_missing_values_in_training_takes_them_for_zero():
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=5, num_leaves=9, verbose=-1).fit(NUMBERS.fillna(1.0), TWO)
    check(model, NUMBERS, model.predict(NUMBERS, raw_score=True))


def test_lightgbm_that_takes_zero_for_missing_is_refused():
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, zero_as_missing=True)
    model.fit(NUMBERS.fillna(0.0), TWO)
    with pytest.raises(InputError, match="zero_as_missing"):
        read_trees(model)


@pytest.mark.parametrize("y", [TWO, THREE])
def test_catboost(y):
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostClassifier(iterations=12, depth=3, verbose=0, allow_writing_files=False)
    model.fit(NUMBERS, y)
    check(model, NUMBERS, model.predict(NUMBERS, prediction_type="RawFormulaVal"))


def test_catboost_categories_are_refused_by_reason():
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostClassifier(
        iterations=5, verbose=0, cat_features=["c"], allow_writing_files=False
    )
    table = TABLE.assign(c=TABLE["c"].astype(str))
    with pytest.raises(InputError, match="Encode the categories"):
        read_trees(model.fit(table, TWO))


@pytest.mark.parametrize("y", [TWO, THREE])
@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_forests(y, kind):
    model = kind(8, max_depth=6, random_state=0).fit(NUMBERS, y)
    check(model, NUMBERS, model.predict_proba(NUMBERS))


def test_single_trees_and_regressions():
    tree = DecisionTreeClassifier(max_depth=5, random_state=0).fit(NUMBERS, THREE)
    check(tree, NUMBERS, tree.predict_proba(NUMBERS))
    for kind in (RandomForestRegressor(5, random_state=0), HistGradientBoostingRegressor(max_iter=5)):
        model = kind.fit(NUMBERS, TABLE["b"])
        check(model, NUMBERS, model.predict(NUMBERS))


@pytest.mark.parametrize("y", [TWO, THREE])
@pytest.mark.parametrize("table", [NUMBERS, TABLE])
def test_hist_gradient_boosting(y, table):
    model = HistGradientBoostingClassifier(max_iter=8, categorical_features="from_dtype").fit(table, y)
    check(model, table, model.decision_function(table))


def test_other_models_are_refused_by_name():
    with pytest.raises(InputError, match="LogisticRegression"):
        read_trees(LogisticRegression().fit(NUMBERS[["k"]], TWO))
    with pytest.raises(InputError, match="GradientBoostingClassifier"):
        read_trees(GradientBoostingClassifier(n_estimators=2).fit(NUMBERS[["k"]], TWO))
