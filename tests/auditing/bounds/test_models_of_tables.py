"""Models behind encoders and scalers of a pipeline, and networks of plain numbers: brackets against every row."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler

import likewise as lw
from likewise.auditing.bounds.families import family_of
from likewise.core.errors import InputError
from likewise.models.table_features import read_table_features

AGES, JOBS, SEXES = range(20, 32), "abcd", "FM"


def table(seed=0, n=120):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"age": rng.choice(AGES, n), "job": rng.choice(list(JOBS), n), "sex": rng.choice(list(SEXES), n)}
    )
    frame.loc[: len(AGES) - 1, "age"] = list(AGES)
    frame.loc[: len(JOBS) - 1, "job"] = list(JOBS)
    score = frame["age"] + 3 * (frame["sex"] == "M") + 2 * (frame["job"] == "c") + rng.normal(0, 2, n)
    return frame, (score > 28).to_numpy().astype(int)


def encoder(kind):
    categories = (OneHotEncoder(), ["job"]), (OneHotEncoder(drop="if_binary"), ["sex"])
    if kind == "ordinal":
        categories = ((OrdinalEncoder(), ["sex", "job"]),)
    numbers = make_pipeline(SimpleImputer(), StandardScaler()) if kind != "plain" else "passthrough"
    return make_column_transformer(*categories, (numbers, ["age"]), remainder="drop")


def model(kind):
    if kind == "forest":
        return RandomForestClassifier(8, max_depth=4, min_samples_leaf=3, random_state=0)
    if kind == "hist":
        return HistGradientBoostingClassifier(max_iter=12, min_samples_leaf=5)
    if kind == "xgboost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=10, max_depth=3, n_jobs=1)
    return MLPClassifier((5,), solver="lbfgs", max_iter=60, random_state=0)


@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
@pytest.mark.parametrize("steps", ["scaled", "ordinal", "plain"])
@pytest.mark.parametrize("kind", ["forest", "hist", "xgboost", "mlp"])
def test_bracket_behind_a_pipeline_holds_the_truth(kind, steps):
    frame, y = table()
    fitted = make_pipeline(encoder(steps), model(kind)).fit(frame, y)
    domain = lw.TabularDomain.from_frame(frame)
    metric = lw.ExpertSubspace(["sex"]).fit(frame).metric_
    people = frame.iloc[:20], y[:20]
    for eps in (0.0, 0.1):
        result = lw.audit(fitted, *people, metric=metric, domain=domain, eps=eps, search="exact")
        certificate = result.certificate
        truth = enumerated(fitted, domain, metric, *people, eps)
        assert certificate.estimate.value <= truth + 1e-7
        assert truth <= certificate.bound.value + 1e-7
        assert certificate.bound.value <= truth + (1e-9 if eps == 0 else 0.011 * truth)


def enumerated(model, domain, metric, frame, y, eps):
    """V(ε) over every row of the table, by the least of the dual over a fine grid of λ and its neighbours."""
    rows = pd.DataFrame(itertools.product(AGES, JOBS, SEXES), columns=["age", "job", "sex"])
    losses = lw.as_model(model).loss_table(rows)[:, y].T
    delta = domain.encode_array(rows)[None] - domain.encode_array(frame)[:, None]
    plain = metric.without_feature_map()
    cost = np.stack([np.asarray(plain.squared_norm(part)) for part in delta])
    if eps == 0:
        return np.where(cost < 1e-12, losses, -np.inf).max(axis=1).mean()

    def dual(lam):
        return lam * eps + (losses - lam * cost).max(axis=1).mean()

    low, high = 0.0, losses.max() / eps + 1
    for _ in range(80):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if dual(a) <= dual(b) else (a, high)
    return dual((low + high) / 2)


@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
def test_a_network_of_plain_numbers_is_bounded_in_their_units():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"age": rng.integers(20, 40, 90), "score": rng.integers(0, 9, 90)})
    y = (frame["age"] / 3 + frame["score"] + rng.normal(0, 1, 90) > 14).to_numpy().astype(int)
    net = MLPClassifier((4,), solver="lbfgs", max_iter=80, random_state=0).fit(frame, y)
    domain = lw.TabularDomain.from_frame(frame)
    metric = lw.ExpertSubspace(["age"]).fit(frame).metric_
    result = lw.audit(net, frame[:20], y[:20], metric=metric, domain=domain, eps=0.0, search="exact")
    rows = pd.DataFrame(itertools.product(range(20, 40), range(9)), columns=["age", "score"])
    losses = lw.as_model(net).loss_table(rows)[:, y[:20]].T
    free = rows["score"].to_numpy()[None] == frame["score"].to_numpy()[:20, None]
    truth = np.where(free, losses, -np.inf).max(axis=1).mean()
    assert result.certificate.bound.value == pytest.approx(truth, abs=1e-7)
    assert result.certificate.estimate.value == pytest.approx(truth, abs=1e-7)


def test_steps_that_are_not_read_are_named():
    frame, y = table()
    odd = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["job", "sex"]), (MinMaxScaler(), ["age"])), model("forest")
    ).fit(frame, y)
    with pytest.raises(InputError, match="MinMaxScaler"):
        family_of(odd, lw.TabularDomain.from_frame(frame), encoded=False)
    known = make_pipeline(encoder("scaled"), model("forest")).fit(frame, y)
    with pytest.raises(InputError, match="does not know the category 'z'"):
        read_table_features(known, {"job": ("a", "z"), "sex": ("F", "M")})
    with pytest.raises(InputError, match="a number in the domain"):
        read_table_features(known, {"job": ("a", "b", "c", "d")})


def test_features_are_what_the_pipeline_computes():
    frame, y = table()
    for kind in ("scaled", "ordinal", "plain"):
        fitted = make_pipeline(encoder(kind), model("forest")).fit(frame, y)
        _, features = read_table_features(fitted, {"job": tuple(JOBS), "sex": tuple(SEXES)})
        seen = np.asarray(fitted[:-1].transform(frame), dtype=float)
        for j, feature in enumerate(features):
            values = frame[feature.column]
            if feature.answers is None:
                mine = (values.to_numpy(dtype=float) - feature.mean) / feature.scale
            else:
                mine = values.map(
                    dict(zip({"job": JOBS, "sex": SEXES}[feature.column], feature.answers, strict=True))
                )
            assert (np.asarray(mine, dtype=float) == seen[:, j]).all()
