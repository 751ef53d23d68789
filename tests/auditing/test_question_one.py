"""Question 1 against a brute force that is written apart from the package: plain loops over tables.

Ten tables of different nature and five kinds of models: `changed`, every cell of `effects`, what everybody would get if
recorded alike, and the rates of groups.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import likewise as lw
from likewise.auditing.first_answer import guess_favourable
from likewise.auditing.inference.verdict import BADGES
from likewise.models import as_model

N = 90


def people(seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"skill": rng.normal(size=N).round(2), "years": rng.integers(0, 9, N)})
    X["sex"], X["race"] = rng.choice(["F", "M"], N), rng.choice(["a", "b", "c"], N)
    merit = X["skill"] + 0.9 * (X["sex"] == "M") - 0.8 * (X["race"] == "b") + rng.normal(0, 0.3, N)
    return X, (merit > 0.3).to_numpy().astype(int)


def adult() -> tuple[pd.DataFrame, np.ndarray, list[str], object]:
    data = lw.datasets.load_adult()
    return data.frame_test[:N], data.y_test[:N], ["sex", "race"], 1


def german() -> tuple[pd.DataFrame, np.ndarray, list[str], object]:
    data = lw.datasets.load_german()
    return data.frame[:N], data.y[:N], ["sex"], 1


def table(kind: str):
    """People, labels, sensitive columns, favourable outcome."""
    X, y = people()
    rng = np.random.default_rng(1)
    if kind in ("adult", "german"):
        return {"adult": adult, "german": german}[kind]()
    if kind == "missing cells":
        X = X.astype({"sex": object})
        X.loc[rng.choice(N, 9, replace=False), "sex"] = np.nan
        X.loc[rng.choice(N, 7, replace=False), "skill"] = np.nan
        return X, y, ["sex", "race"], 1
    if kind == "one-hot columns":
        return (
            pd.get_dummies(X, columns=["race"], dtype=int).drop(columns="sex"),
            y,
            ["race_a", "race_b", "race_c"],
            1,
        )
    if kind == "numeric sensitive":
        return X.assign(age=rng.integers(20, 28, N)).drop(columns=["race"]), y, ["age", "sex"], 1
    if kind == "string labels":
        return X, np.where(y == 1, "granted", "refused"), ["sex", "race"], "granted"
    if kind == "ids and dates":
        days = pd.date_range("2020-01-01", periods=N).astype(str)
        return X.assign(id=np.arange(N) + 7001, day=days), y, ["sex"], 1
    if kind == "three classes":
        return X, y + (X["skill"] > 1).to_numpy(), ["sex", "race"], 2
    if kind == "unseen categories":
        return X.assign(race=X["race"].replace({"c": "d"})), y, ["race"], 1
    assert kind == "regression"
    return X, X["skill"].to_numpy() * 1000 + 500 * (X["sex"] == "M").to_numpy(), ["sex", "race"], None


def fitted(model: str, X: pd.DataFrame, y: np.ndarray, kind: str):
    """A model, the table as it takes it, and a function from such a table to decisions."""
    use = [name for name in X if name not in ("id", "day")]
    words = [name for name in use if X[name].dtype.kind not in "biuf"]
    numbers = [name for name in use if name not in words]
    learned = X.assign(race=X["race"].replace({"d": "c"})) if kind == "unseen categories" else X
    regression = kind == "regression"

    def matrix(frame: pd.DataFrame) -> np.ndarray:
        plain = [frame[name].fillna(0.0).to_numpy(dtype=float) for name in numbers]
        hot = [
            (frame[name] == value).to_numpy(dtype=float)
            for name in words
            for value in sorted(learned[name].dropna().unique())
        ]
        return np.column_stack([*plain, *hot])

    if model in ("xgboost", "lightgbm"):
        module = pytest.importorskip(model)
        typed = X[use].astype(dict.fromkeys(words, "category"))
        seen = learned[use].astype({name: typed[name].dtype for name in words})
        if model == "xgboost":
            made = (module.XGBRegressor if regression else module.XGBClassifier)(
                n_estimators=8, max_depth=3, enable_categorical=True, n_jobs=1
            )
            codes = y if regression else np.unique(y, return_inverse=True)[1]
            if not regression and y.dtype.kind not in "biu":
                pytest.skip("XGBoost numbers its classes")
            made.fit(seen, codes)
        else:
            made = (module.LGBMRegressor if regression else module.LGBMClassifier)(
                n_estimators=8, min_child_samples=3, n_jobs=1, verbose=-1
            ).fit(seen, y)
        return made, typed, made.predict
    if model == "pipeline":
        rest = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), words), (_Filled(), numbers))
        made = make_pipeline(rest, LinearRegression() if regression else LogisticRegression(max_iter=500))
        made.fit(learned[use], y)
        return made, X, lambda frame: made.predict(frame[use])
    inner = (LinearRegression() if regression else LogisticRegression(max_iter=500)).fit(matrix(learned), y)
    if regression:
        return (
            as_model(lambda frame: inner.predict(matrix(frame)), loss="squared", takes_frame=True),
            X,
            lambda frame: inner.predict(matrix(frame)),
        )
    classes = inner.classes_

    def shares(frame: pd.DataFrame) -> np.ndarray:
        return inner.predict_proba(matrix(frame))

    if model == "torch":
        torch = pytest.importorskip("torch")
        layer = torch.nn.Linear(matrix(X).shape[1], len(classes)).double()
        weights = inner.coef_ if len(classes) > 2 else np.vstack([-inner.coef_ / 2, inner.coef_ / 2])
        bias = (
            inner.intercept_ if len(classes) > 2 else np.hstack([-inner.intercept_ / 2, inner.intercept_ / 2])
        )
        with torch.no_grad():
            layer.weight.copy_(torch.tensor(weights))
            layer.bias.copy_(torch.tensor(bias))

        def shares(frame: pd.DataFrame) -> np.ndarray:
            with torch.no_grad():
                return torch.softmax(layer(torch.tensor(matrix(frame))), dim=1).numpy()

    named = as_model(shares, classes=list(classes), takes_frame=True)
    return named, X, lambda frame: classes[shares(frame).argmax(axis=1)]


class _Filled:
    """Missing numbers as 0; a transformer."""

    def fit(self, X, y=None):
        return self

    def fit_transform(self, X, y=None):
        return self.transform(X)

    def transform(self, X):
        return X.fillna(0.0).to_numpy(dtype=float)

    def get_params(self, deep=True):
        return {}

    def set_params(self, **_):
        return self

    def __sklearn_is_fitted__(self):
        return True


def with_values(X: pd.DataFrame, rows: list[int], cells: dict[str, object]) -> pd.DataFrame:
    """Some rows, with cells changed."""
    found = X.iloc[rows].copy()
    for name, value in cells.items():
        found[name] = pd.Series([value] * len(found), index=found.index).astype(X[name].dtype)
    return found


def brute(X: pd.DataFrame, decide, columns: list[str]):
    """Decisions as they are, and of everybody with every combination of the values that occur; by attribute."""
    if columns[0].startswith("race_"):
        names = [name.removeprefix("race_") for name in columns]
        ones = {a: {o: int(o == c) for o in columns} for a, c in zip(names, columns, strict=True)}
        attributes = {"race": [*ones.items()]}
        recorded = {
            "race": [
                next(a for a, c in zip(names, columns, strict=True) if row[c]) for _, row in X.iterrows()
            ]
        }
    else:
        attributes, recorded = {}, {}
        for name in columns:
            values = sorted(X[name].dropna().unique().tolist())
            attributes[name] = [(value, {name: value}) for value in values]
            recorded[name] = ["(missing)" if pd.isna(v) else v for v in X[name].tolist()]
    own = list(decide(X))
    everybody = list(range(len(X)))
    answers = {}
    for combination in itertools.product(*attributes.values()):
        cells: dict[str, object] = {}
        for _, some in combination:
            cells |= some
        answers[tuple(label for label, _ in combination)] = list(decide(with_values(X, everybody, cells)))
    alone = {
        (name, label): list(decide(with_values(X, everybody, cells)))
        for name, choices in attributes.items()
        for label, cells in choices
    }
    return own, answers, alone, recorded


TABLES = [
    "adult", "german", "missing cells", "one-hot columns", "numeric sensitive", "string labels", "ids and dates",
    "three classes", "unseen categories", "regression",
]  # fmt: skip
MODELS = ["pipeline", "xgboost", "lightgbm", "torch", "function"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.filterwarnings("ignore")
def test_every_number_of_question_one_equals_brute_force(kind, model):
    X, y, columns, favourable = table(kind)
    if kind == "regression" and model == "torch":
        pytest.skip("the function stands for it")
    made, given, decide = fitted(model, X, y, kind)
    result = lw.audit(
        made,
        given,
        None if kind == "unseen categories" else y,
        sensitive_features=columns,
        favourable=favourable,
    )
    own, answers, alone, recorded = brute(given, decide, columns)
    names = list(recorded)
    if kind == "regression":
        shifts = [max(abs(answers[c][i] - own[i]) for c in answers) for i in range(N)]
        assert result.sensitive.shift == pytest.approx((np.mean(shifts), max(shifts)))
        for row in result.effects.itertuples(index=False):
            if row.attribute in recorded:
                inside = [i for i in range(N) if recorded[row.attribute][i] == row.recorded]
                moved = [alone[row.attribute, row.instead][i] - own[i] for i in inside]
                assert row.people == len(inside)
                assert (row.lower, row.higher) == (
                    sum(m < -1e-6 for m in moved),
                    sum(m > 1e-6 for m in moved),
                )
                assert row.change == pytest.approx(np.mean(moved), abs=1e-3)
        return
    missing = any("(missing)" in cells for cells in recorded.values())
    changed = [
        any(answers[c][i] != own[i] for c in answers) or any(then[i] != own[i] for then in alone.values())
        for i in range(N)
    ]
    if kind != "numeric sensitive":  # ages that nobody has are tried too
        assert result.changed.count == sum(changed)
    assert result.changed.count >= sum(changed)
    assert result.favourable == favourable
    assert not result.guessed
    effects = {tuple(row[:3]): tuple(row[3:]) for row in result.effects.itertuples(index=False, name=None)}
    expected = {}
    for (name, instead), then in alone.items():
        for value in dict.fromkeys(recorded[name]):
            inside = [i for i in range(N) if recorded[name][i] == value]
            if value != instead:
                expected[name, value, instead] = counted(inside, own, then, favourable)
    for values, then in answers.items():
        for was in dict.fromkeys(zip(*(recorded[name] for name in names), strict=True)):
            if sum(a != b for a, b in zip(was, values, strict=True)) >= 2:
                inside = [
                    i
                    for i in range(N)
                    if all(recorded[name][i] == w for name, w in zip(names, was, strict=True))
                ]
                key = " × ".join(names), ", ".join(map(str, was)), ", ".join(map(str, values))
                expected[key] = counted(inside, own, then, favourable)
    assert effects == expected
    outcomes = {
        tuple(row[: len(names)]): row[-2] for row in result.outcomes.itertuples(index=False, name=None)
    }
    assert outcomes == {values: sum(d == favourable for d in then) for values, then in answers.items()}
    for row in result.group_rates.to_dict("records"):
        inside = [i for i in range(N) if recorded[row["attribute"]][i] == row["value"]]
        assert row["people"] == len(inside)
        assert row["rate"] == pytest.approx(np.mean([own[i] == favourable for i in inside]))
        if kind != "unseen categories":
            assert row["error_rate"] == pytest.approx(np.mean([own[i] != y[i] for i in inside]))
    listed = result.people
    assert len(listed) == result.changed.count
    assert missing or set(listed["row"]) >= {given.index[i] for i in range(N) if changed[i]}
    order = {"gain": 0, "lose": 1, "other": 2}
    assert [order[d] for d in listed["direction"]] == sorted(order[d] for d in listed["direction"])


def counted(inside: list[int], own: list, then: list, favourable: object) -> tuple[int, int, int]:
    lose = sum(own[i] == favourable and then[i] != favourable for i in inside)
    gain = sum(own[i] != favourable and then[i] == favourable for i in inside)
    return len(inside), lose, gain


# ---- the headline ----------------------------------------------------------------------------------------


def results():
    X, y = people()

    def blind(frame):
        return 1 / (1 + np.exp(-frame["skill"]))

    def tiny(frame):
        return 1 / (1 + np.exp(-frame["skill"] - 1e-3 * (frame["sex"] == "M")))

    def biased(frame):
        return 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))

    def old(frame):
        return 1 / (1 + np.exp(-frame["skill"] - 0.001 * frame["age"]))

    pay = as_model(lambda frame: frame["skill"] + (frame["sex"] == "M"), loss="squared", takes_frame=True)
    flat = as_model(lambda frame: frame["skill"] * 1.0, loss="squared", takes_frame=True)
    aged = X.assign(age=np.random.default_rng(0).normal(40, 9, N))
    wrong = np.where(biased(X) > 0.5, 0, 1)
    metric = lw.ExpertSubspace(["sex"]).fit(X).metric_
    yield "biased", lw.audit(biased, X, sensitive_features=["sex"]), "depends"
    yield "labels", lw.audit(biased, X, y, sensitive_features=["sex", "race"]), "depends"
    # No answer of a function depends on sex; that it is not read is known of a model without such a column.
    yield "blind", lw.audit(blind, X, sensitive_features=["sex"]), "independent"
    without = LogisticRegression().fit(X[["skill"]], X["skill"] > 0)
    yield "without sex", lw.audit(without, X, sensitive_features=["sex"]), "not_read"
    yield "tiny", lw.audit(tiny, X[np.abs(X["skill"]) > 0.1], sensitive_features=["sex"]), "independent"
    yield (
        "sampled values",
        lw.audit(old, aged[np.abs(aged["skill"]) > 0.5], sensitive_features=["age"]),
        "not_found",
    )
    yield "wrong labels", lw.audit(biased, X, wrong, sensitive_features=["sex"]), "unanswered"
    yield "numbers", lw.audit(pay, X, sensitive_features=["sex"]), "depends"
    yield "numbers, blind", lw.audit(flat, X, sensitive_features=["sex"]), "independent"
    yield "close numbers", lw.audit(pay, X, sensitive_features=["sex"], tolerance=2.0), "independent"
    yield "metric", lw.audit(biased, X, y, metric=metric, eps=0.05), "depends"
    rng = np.random.default_rng()

    def noisy(frame):
        return np.clip(biased(frame) + rng.normal(0, 0.2, len(frame)), 0, 1)

    yield "noisy", lw.audit(noisy, X, sensitive_features=["sex"]), "unanswered"


def test_badge_and_sentence_come_from_the_same_count():
    seen = set()
    for name, result, badge in results():
        found = result.headline
        assert found.badge == badge, (name, found)
        assert badge in BADGES
        seen.add(badge)
        moves = result.sensitive.depends
        assert (found.badge == "depends") == (moves and result.answered), name
        none = found.sentence.startswith(
            ("None of", "For none", "No other", "No prediction", "The model does not use", "Everybody gets")
        )
        assert none == (badge in ("not_read", "independent", "not_found")), (name, found.sentence)
        if badge == "independent":
            assert result.sensitive.exact, name
            assert f"these {result.n} people" in found.sentence, name
        if result.changed is not None and badge == "depends":
            assert f"{result.changed.count} of {result.n} people" in found.sentence, name
        lines = str(result).split("\n")
        assert len(lines) <= 20, name
        assert max(map(len, lines)) <= 80, name
        shown = " ".join(" ".join(lines).split())
        assert shown.endswith(found.sentence), name
        assert repr(result).count("\n") == 0
        assert len(repr(result)) < 120
        assert found.title in result._repr_html_()
        assert found.title.written("de") != str(found.title) or badge == "not_read"
        for word in ("harmed", "pure", "twin"):
            assert word not in shown, (name, word)
    assert seen == set(BADGES)


def test_a_sample_is_never_called_a_proof():
    from dataclasses import replace

    X, _ = people()

    def tiny(frame):
        return 1 / (1 + np.exp(-frame["skill"] - 1e-3 * (frame["sex"] == "M")))

    result = lw.audit(tiny, X[np.abs(X["skill"]) > 0.1], sensitive_features=["sex"])
    sampled = replace(result, scope=replace(result.scope, supplied=1000, sampled=True))
    assert (result.headline.badge, sampled.headline.badge) == ("independent", "not_found")
    assert str(sampled).startswith(f"A random sample: {result.n} of the table's 1,000 rows.")


def test_a_limit_is_a_share_of_the_decisions():
    X, _ = people()

    def biased(frame):
        return 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))

    share = lw.audit(biased, X, sensitive_features=["sex"]).changed.share
    kept = lw.audit(biased, X, sensitive_features=["sex"], limit=share)
    assert kept.headline.limit.passed is True
    kept.raise_if_unfair()
    with pytest.raises(lw.UnfairError, match=r"Above the limit: .*95% interval"):
        kept.raise_if_unfair(share - 0.01)
    beyond = lw.audit(biased, X, sensitive_features=["sex"], limit=share / 2)
    assert beyond.headline.limit.passed is False
    assert str(beyond).split("\n")[-1] in beyond.headline.limit.sentence
    with pytest.raises(lw.LikewiseError, match="limit"):
        lw.audit(biased, X, sensitive_features=["sex"], limit=5)


@pytest.mark.parametrize(
    ("classes", "favourable"),
    [
        ([0, 1], 1), ([-1, 1], 1), ([0.0, 1.0], 1.0), ([False, True], True), (["no", "yes"], "yes"), (["Y", "N"], "Y"),
        (["good", "bad"], "good"), (["<=50K", ">50K"], ">50K"), ([">50K.", "<=50K."], ">50K."), (["< 5", ">= 5"], ">= 5"),
        (["a", "b"], None), ([1, 2], None), ([0, 1, 2], None), (["<5", ">50"], None), (["low", "high"], None),
    ],
)  # fmt: skip
def test_a_favourable_outcome_is_guessed_only_if_it_is_plain(classes, favourable):
    assert guess_favourable(np.array(classes, dtype=object)) == favourable


@pytest.mark.parametrize(
    ("target", "favourable"),
    [("two_year_recid", 0), ("default payment", 0), ("Fraud", 0), ("hired", 1), (None, 1), ("pass_bar", 1)],
)
def test_nobody_is_assumed_to_want_a_yes_that_costs_them(target, favourable):
    """Broke once: being predicted to offend again was called the favourable decision."""
    assert guess_favourable(np.array([0, 1]), target) == favourable
    X, y = people()

    def biased(frame):
        return 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))

    result = lw.audit(biased, X, pd.Series(y, name=target), sensitive_features=["sex"])
    assert (result.favourable, result.guessed) == (favourable, True)
    women = result.effects.query("recorded == 'F'")[["lose", "gain"]].iloc[0]
    assert (women["gain"] > 0) == (favourable == 1)
    assert (women["lose"] > 0) == (favourable == 0)


def test_people_are_where_they_are_in_the_users_frame():
    X, _ = people()
    X.index = [f"p{number}" for number in range(N)]

    def biased(frame):
        return 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))

    shown = lw.audit(biased, X, sensitive_features=["sex"]).people
    for row in shown.to_dict("records"):
        assert X.loc[row["row"], "skill"] == row["skill"]
        assert (biased(X.loc[[row["row"]]]).iloc[0] > 0.5) == (row["decision"] == 1)
