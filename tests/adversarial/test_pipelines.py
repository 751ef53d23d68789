"""The usual pipelines on Adult and German credit, with the encoder as it comes: exact at ε = 0, and proved where they are read."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.ensemble import BaggingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import likewise as lw
from likewise.datasets import load_adult, load_german


def encoder(**choices):
    words = make_column_selector(dtype_exclude="number")
    made = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), words), remainder="passthrough")
    return made.set_params(**choices)


def xgboost(**choices):
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=10, max_depth=4, **choices)


def linear_tree():
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=10, linear_tree=True, verbose=-1)


def bagging():
    return BaggingClassifier(DecisionTreeClassifier(max_depth=6), 10, max_features=0.5, random_state=0)


# Whether the model is read, so that there is a bound at ε > 0 as well.
PIPELINES = {
    "sparse one-hot, xgboost": (lambda: make_pipeline(encoder(), xgboost()), True),
    "xgboost, missing=0": (lambda: make_pipeline(encoder(), xgboost(missing=0)), True),
    "bagging on half of the columns": (lambda: make_pipeline(encoder(), bagging()), True),
    "transformer_weights": (
        lambda: make_pipeline(encoder(transformer_weights={"onehotencoder": 3.0}), bagging()),
        False,
    ),
    "linear trees": (lambda: make_pipeline(encoder(), linear_tree()), False),
}


@pytest.fixture(scope="module", params=["adult", "german"])
def table(request):
    data = load_adult() if request.param == "adult" else load_german()
    order = np.random.default_rng(0).permutation(len(data.frame))
    frame = data.frame
    return frame, np.asarray(data.y), order[:300], order[-12:]


@pytest.mark.parametrize("name", list(PIPELINES))
def test_equal_to_brute_force_at_no_distance(table, name):
    frame, y, train, test = table
    make, is_read = PIPELINES[name]
    model = make().fit(frame.iloc[train], y[train])
    people, labels = frame.iloc[test].reset_index(drop=True), y[test]
    values = sorted(frame["sex"].unique())
    twins = [people.assign(sex=pd.Series([v] * len(people), dtype=frame["sex"].dtype)) for v in values]
    decided = np.stack([model.predict(twin) for twin in twins])
    place = {label: k for k, label in enumerate(model.classes_)}
    at = np.array([place[label] for label in labels])
    answers = [model.predict_proba(twin)[np.arange(len(people)), at].astype(float) for twin in twins]
    worst = -np.log(np.maximum(np.stack(answers), 1e-12)).min(axis=0).mean()
    flips = (decided != decided[0]).any(axis=0).mean()
    metric = lw.ExpertSubspace(["sex"]).fit(frame).metric_
    domain = lw.TabularDomain.from_frame(frame)
    given = {"metric": metric, "domain": domain}
    result = lw.audit(model, people, labels, eps=0.0, search="exact" if is_read else "auto", **given)
    for quantity, truth in (("value", worst), ("changed", flips)):
        bracket = result.bracket(quantity)
        assert bracket.closed
        assert bracket.lower == pytest.approx(truth, abs=1e-9)
        assert bracket.upper == pytest.approx(truth, abs=1e-9)
    found = lw.verify(model, people, ["sex"], domain=domain, budget_seconds=0.2)
    assert found.people[1] == pytest.approx(flips, abs=1e-12)
    assert (found.reason is None or found.reason == "") == is_read


@pytest.mark.parametrize(
    "chosen",
    [slice("city", "sex"), slice(1, 3), slice(-3, -1), ["city", "sex"], [-2, -3], [False, True, True, False],
     np.array([False, True, True, False]), lambda table: ["sex", "city"], make_column_selector(dtype_exclude="number")],
    ids=lambda chosen: type(chosen).__name__,
)  # fmt: skip
def test_columns_are_those_that_the_encoder_takes(chosen):
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "age": rng.integers(20, 40, 120),
            "city": rng.choice(["x", "y"], 120),
            "sex": rng.choice(["F", "M"], 120),
            "job": rng.integers(0, 2, 120),
        }
    )
    y = (people["age"] + 6 * (people["sex"] == "M") > 31).astype(int)
    encoder = ColumnTransformer([("words", OneHotEncoder(), chosen)], remainder="passthrough")
    model = make_pipeline(encoder, DecisionTreeClassifier(max_depth=4, random_state=0)).fit(people, y)
    answers = model.predict(people.assign(sex="F")) != model.predict(people.assign(sex="M"))
    assert lw.audit(model, people, y, sensitive_features=["sex"]).changed.count == answers.sum()
    found = lw.verify(model, people, ["sex"], y=y, budget_seconds=20)
    ages, cities, jobs = range(people["age"].min(), people["age"].max() + 1), ["x", "y"], [0, 1]
    everybody = pd.MultiIndex.from_product([ages, cities, ["F"], jobs], names=list(people.columns)).to_frame(
        index=False
    )
    flips = model.predict(everybody) != model.predict(everybody.assign(sex="M"))
    assert found.undecided == pytest.approx(0)
    assert found.flips == pytest.approx(flips.mean())


def first_steps():
    """Steps that take the table itself: by name inside of a union or a function, and steps that get no column of it."""
    words, numbers = (make_column_selector(**{f"dtype_{how}": "number"}) for how in ("exclude", "include"))
    parts = [("words", make_column_transformer((OneHotEncoder(), words))), ("age", make_column_transformer((StandardScaler(), ["age"])))]  # fmt: skip
    named = ["age", "sex_M", "job_cook"]
    dummies = FunctionTransformer(
        lambda t: pd.get_dummies(t, dtype=float).reindex(columns=named, fill_value=0.0)
    )
    nothing = make_pipeline(SimpleImputer(), StandardScaler())
    yield "union", FeatureUnion(parts), ["age", "job", "sex"]
    yield (
        "union inside",
        make_pipeline(FeatureUnion(parts), StandardScaler(with_mean=False)),
        ["age", "job", "sex"],
    )
    yield "function", dummies, ["age", "job", "sex"]
    yield (
        "imputer of nothing",
        make_column_transformer((OneHotEncoder(), words), (nothing, numbers)),
        ["job", "sex"],
    )
    yield (
        "encoder of nothing",
        make_column_transformer((OneHotEncoder(), words), (StandardScaler(), numbers)),
        ["hours", "age"],
    )


@pytest.mark.parametrize("kind", [kind for kind, *_ in first_steps()])
@pytest.mark.parametrize("end", [LogisticRegression(), DecisionTreeClassifier(max_depth=3, random_state=0)])
def test_steps_that_take_the_table_are_handed_it(kind, end):
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {"age": rng.integers(20, 40, 80), "hours": rng.integers(0, 9, 80), "job": rng.choice(["clerk", "cook", "nurse"], 80), "sex": rng.choice(["F", "M"], 80)}
    )  # fmt: skip
    y = (people["age"] / 5 + 2 * (people["sex"] == "M") + (people["job"] == "cook") > 7).astype(int)
    step, names = next(rest for name, *rest in first_steps() if name == kind)
    people, sensitive = people[names], names[-1]
    model = make_pipeline(step, clone(end)).fit(people, y)
    own, changed = model.predict(people), np.zeros(len(people), dtype=bool)
    every = (
        people[sensitive].unique()
        if sensitive == "sex"
        else range(people["age"].min(), people["age"].max() + 1)
    )
    for value in every:
        changed |= model.predict(people.assign(**{sensitive: value})) != own
    assert lw.audit(model, people, y, sensitive_features=[sensitive]).changed.count == changed.sum()
    domain = lw.TabularDomain.from_frame(people)
    metric = lw.ExpertSubspace([sensitive], domain=domain).fit(people).metric_
    free = lw.audit(model, people, y, metric=metric, eps=0.0).bracket("changed", eps=0)
    assert (free.lower, free.upper) == pytest.approx((changed.mean(), changed.mean()))
    assert lw.verify(model, people, [sensitive], budget_seconds=0.2).people[1] == pytest.approx(
        changed.mean()
    )
