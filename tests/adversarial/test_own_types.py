"""What reaches the model is the user's own table: its dtypes, its missing values, its rows, its classes."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import likewise as lw
from likewise.core.errors import InputError, ModelError

N = 90
RNG = np.random.default_rng(3)
CODES, WORDS, AGES = (
    RNG.integers(0, 3, N),
    np.array(["F", "M", "X"])[RNG.integers(0, 3, N)],
    RNG.integers(18, 70, N),
)


def _mixed(values, *gaps):
    cells = np.array(values, dtype=object)
    for k, gap in enumerate(gaps):
        cells[k :: 4 * len(gaps)] = [gap] * len(cells[k :: 4 * len(gaps)])
    return pd.Series(cells, dtype=object)


def _gapped(values, dtype):
    column = pd.Series(pd.array(values, dtype=dtype))
    column[::5] = pd.NA if not str(dtype).startswith("float") else np.nan
    return column


COLUMNS = {
    "Int8": _gapped(CODES, "Int8"),
    "Int64": _gapped(CODES, "Int64"),
    "UInt16": _gapped(CODES, "UInt16"),
    "Float32": _gapped(CODES.astype("float32"), "Float32"),
    "float32": _gapped(CODES.astype("float32"), "float32"),
    "boolean": _gapped(CODES > 0, "boolean"),
    "string": _gapped(WORDS, "string"),
    "category of words": _gapped(pd.Categorical(WORDS), "category"),
    "ordered category": _gapped(WORDS, pd.CategoricalDtype(["X", "M", "F"], ordered=True)),
    "category of numbers": _gapped(CODES, "category"),
    "objects": _mixed(WORDS),
    "None": _mixed(WORDS, None),
    "NaN": _mixed(WORDS, np.nan),
    "NA": _mixed(WORDS, pd.NA),
    "None and NaN": _mixed(WORDS, None, np.nan),
    "None, NA and NaN": _mixed(WORDS, None, pd.NA, np.nan),
    "objects True and None": _mixed(CODES > 0, None),
    "dates": _mixed([datetime.date(2000 + code, 1, 1) for code in CODES], None),
    "timestamps": pd.Series(pd.to_datetime([f"200{code}-01-01" for code in CODES])).mask(
        CODES * AGES % 5 == 1
    ),
    "zoned": pd.Series(pd.to_datetime([f"200{code}-01-01" for code in CODES]).tz_localize("Europe/Berlin")),
    "durations": pd.Series(pd.to_timedelta(CODES, unit="D")),
    "periods": pd.Series([pd.Period(f"200{code}", "Y") for code in CODES]),
    "intervals": pd.cut(pd.Series(CODES), [-1, 0, 1, 2]),
    "decimals": pd.Series([decimal.Decimal(int(code)) / 4 for code in CODES]),
    "int8": pd.Series(CODES.astype("int8")),
    "bool": pd.Series(CODES > 0),
    "category": pd.Series(pd.Categorical(WORDS)),
}


def _shown(cell):
    return f"{type(cell).__name__} {cell}"


@pytest.mark.parametrize("place", ["sensitive", "beside"])
@pytest.mark.parametrize("kind", COLUMNS)
def test_the_model_is_handed_the_users_own_types(kind, place):
    """The score reads the cells with their types, so that any other type is another answer."""
    other = pd.Series(np.where(CODES > 0, "a", "b"))
    sex = COLUMNS[kind] if place == "sensitive" else other
    job = COLUMNS[kind] if place == "beside" else other
    table = pd.DataFrame({"sex": sex, "age": AGES, "job": job})
    seen = set()

    def score(frame):
        seen.add((str(frame["sex"].dtype), str(frame["job"].dtype), str(frame["age"].dtype)))
        cells = [_shown(a) + _shown(b) for a, b in zip(frame["sex"], frame["job"], strict=True)]
        return (np.array([sum(map(ord, cell)) % 97 for cell in cells]) + frame["age"].to_numpy() % 30) / 130

    values = table["sex"].dropna().unique()
    own = score(table) > 0.5
    changed = np.zeros(N, dtype=bool)
    for value in values:
        again = table.copy()
        again["sex"] = pd.Series([value] * N, dtype=table["sex"].dtype)
        changed |= (score(again) > 0.5) != own
    seen.clear()
    result = lw.audit(score, table, sensitive_features=["sex"])
    assert seen == {(str(table["sex"].dtype), str(table["job"].dtype), str(table["age"].dtype))}
    assert result.changed.exact or kind in ("Float32", "float32")
    assert result.changed.count == changed.sum() or kind in ("Float32", "float32")


@pytest.mark.parametrize(
    "model",
    [
        RidgeClassifier(),
        SVC(),
        LinearSVC(),
        Perceptron(),
        VotingClassifier([("ridge", RidgeClassifier()), ("svc", SVC())]),
        make_pipeline(StandardScaler(), LinearSVC()),
        OneVsRestClassifier(LinearSVC()),
        BaggingClassifier(LinearSVC(), n_estimators=3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("words", [False, True])
def test_models_without_probabilities_are_audited_by_their_decisions(model, words):
    table = pd.DataFrame({"male": CODES % 2, "age": AGES})
    labels = (AGES / 15 + 2 * (CODES % 2) > 3.5).astype(int)
    target = np.array(["no", "yes"])[labels] if words else labels
    fitted = model.fit(table, target)
    brute = (fitted.predict(table.assign(male=0)) != fitted.predict(table.assign(male=1))).sum()
    for y in (None, target):
        result = lw.audit(fitted, table, y, sensitive_features=["male"])
        assert (result.changed.count, result.changed.exact) == (brute, True)


@pytest.mark.parametrize("shuffled", [False, True])
def test_people_left_out_do_not_move_the_others(shuffled):
    """Rows of the maps are those of the user's table."""
    table = pd.DataFrame({"sex": CODES % 2, "age": AGES, "kids": np.where(AGES % 3 == 0, np.nan, 1.0)})
    if shuffled:
        table.index = RNG.permutation(N)

    def score(frame):
        return np.where((frame["sex"] == 1) & (frame["age"] > 40), 0.9, 0.1)

    result = lw.audit(score, table, sensitive_features=["sex"], missing="drop", eps=0.0)
    rows = result.pure_map.outcomes
    assert len(rows) == table["kids"].notna().sum()
    own = table.iloc[rows["person"]]
    assert own["age"].tolist() == result.pure_map.people["age"].tolist()
    assert own["kids"].notna().all()
    for one in result.sensitive.people:
        assert table.loc[one.row, "age"] > 40


def test_a_favourable_value_must_be_one_of_the_models():
    table = pd.DataFrame({"male": CODES % 2, "age": AGES})
    numbers = (AGES / 15 + 2 * (CODES % 2) > 3.5).astype(int)
    fitted = DecisionTreeClassifier(max_depth=3, random_state=0).fit(table, numbers)
    for asked, value in (
        (fitted, "accept"),
        (fitted, 7),
        (lambda frame: fitted.predict_proba(frame), "accept"),
    ):
        with pytest.raises(InputError, match=r"favourable.*the model has no value"):
            lw.audit(asked, table, sensitive_features=["male"], favourable=value)
    assert lw.audit(fitted, table, sensitive_features=["male"], favourable=0).favourable == 0
    # Class 1 is "good" here.
    words = np.array(["poor", "good"])[numbers]
    named = lw.audit(fitted, table, words, sensitive_features=["male"], favourable="good")
    assert (named.favourable, int(named.effects["lose"].sum()) > 0) == ("good", True)
    with pytest.raises(InputError, match="class 1 seems to be 'good'"):
        lw.audit(fitted, table, words, sensitive_features=["male"], favourable="poor")


def test_what_cannot_be_meant_is_said_in_pythons_words():
    table = pd.DataFrame({"sex": WORDS, "age": AGES})
    model = make_pipeline(lw.TabularDomain.from_frame(table), LogisticRegression()).fit(
        table, (AGES > 40).astype(int)
    )
    score = lambda frame: np.where((frame["sex"] == "M") & (frame["age"] > 40), 0.9, 0.1)  # noqa: E731
    labels = pd.Series((AGES > 40).astype(int), index=RNG.permutation(N))
    gapped = table.assign(age=np.where(AGES > 30, AGES, np.nan))
    wrong = [
        (score, table, {"missing": "fill"}, "'missing' must be one of"),
        (score, table.set_index(np.arange(N)), {"y": labels}, "another order"),
        (score, table.assign(sex=None), {}, "'sex' has no value"),
        (score, table.assign(sex=np.nan), {}, "'sex' has no value"),
        (model, table.assign(sex=np.nan), {}, "'sex' has no value"),
        (score, table.assign(sex="F"), {}, "one value only"),
        (score, table.assign(sex=[[1], [2]] * (N // 2)), {}, "holds lists"),
        (model, gapped, {"missing": "keep"}, "missing='impute'"),
        (score, table.assign(age=np.inf), {}, "infinite"),
    ]
    for asked, people, more, words in wrong:
        with pytest.raises((InputError, ModelError), match=words) as raised:
            lw.audit(asked, people, more.pop("y", None), sensitive_features=["sex"], **more)
        assert "--" not in str(raised.value)
    twice = lw.audit(score, table, sensitive_features=["sex", "sex"])
    assert twice.changed.count == lw.audit(score, table, sensitive_features=["sex"]).changed.count
    listed = table.assign(notes=[[1]] * N)
    assert lw.audit(score, listed, sensitive_features=["sex"]).changed.count == twice.changed.count


def test_declared_values_that_nobody_has_are_said():
    table = pd.DataFrame({"sex": pd.Categorical(WORDS, categories=["F", "M", "X", "unknown"]), "age": AGES})
    score = lambda frame: np.where(frame["sex"] == "unknown", 0.9, 0.1)  # noqa: E731
    result = lw.audit(score, table, sensitive_features=["sex"])
    assert result.changed.count == N
    assert any("nobody in the table has 'sex' 'unknown'" in line for line in result.assumptions)
    whole = table.assign(sex=table["sex"].cat.remove_unused_categories())
    result = lw.audit(score, whole, sensitive_features=["sex"])
    assert result.changed.count == 0
    assert not any("nobody in the table" in line for line in result.assumptions)


def test_a_word_for_missing_cells_that_the_model_does_not_know_is_said_first():
    job = _mixed(np.where(CODES > 0, "a", "b"), None)
    table = pd.DataFrame({"sex": WORDS, "age": AGES, "job": job})

    def score(frame):
        return np.where(frame["job"].isna() | ((frame["sex"] == "M") & (frame["age"] > 40)), 0.9, 0.1)

    result = lw.audit(score, table, sensitive_features=["sex"], missing="category")
    said = [line for line in result.assumptions if "takes missing cells itself" in line]
    assert len(said) == 1
    assert "missing='keep'" in said[0]
    kept = lw.audit(score, table, sensitive_features=["sex"], missing="keep")
    assert not any("takes missing cells itself" in line for line in kept.assumptions)


def test_pairs_of_a_table_with_nullable_numbers_are_listed_as_the_model_takes_them():
    table = pd.DataFrame({"sex": WORDS, "age": AGES, "pay": AGES / 7}).astype(
        {"age": "Int64", "pay": "Float64"}
    )

    def decide(frame):
        return ((frame["sex"] == "M") & (frame["age"] + frame["pay"] > 40)).to_numpy(dtype=int)

    found = lw.verify(decide, table, ["sex"])
    assert found.examples[["age", "pay"]].dtypes.astype(str).tolist() == ["Int64", "Float64"]
    decided = decide(found.examples)
    assert found.pairs
    assert (decided[::2] != decided[1::2]).all()


def test_the_favourable_class_of_a_network_is_known_before_it_was_asked():
    torch = pytest.importorskip("torch")
    net = torch.nn.Linear(2, 2)
    with torch.no_grad():
        net.weight[:], net.bias[:] = torch.tensor([[0.0, 0.0], [20.0, 1.0]]), torch.tensor([0.0, -50.0])
    table = pd.DataFrame({"sex": CODES % 2, "age": AGES})
    result = lw.audit(net, table, sensitive_features=["sex"], favourable=1)
    assert result.changed.count == int(((AGES > 30) & (AGES <= 50)).sum())
    assert result.effects[["lose", "gain"]].to_numpy().sum() == result.changed.count


def test_made_up_pairs_have_the_dates_that_the_model_was_asked_about():
    days = pd.to_timedelta(RNG.integers(0, 900, N), "D")
    table = pd.DataFrame({"sex": WORDS, "age": AGES, "since": pd.Timestamp("2020-01-01") + days})

    def decide(frame):
        late = (pd.to_datetime(frame["since"]) > "2021-03-01").to_numpy()
        return (late & (frame["sex"] == "M") & (frame["age"] > 64)).to_numpy(dtype=int)

    found = lw.verify(decide, table, ["sex"])
    assert found.examples["row"].isna().any()
    assert decide(found.examples).tolist() == found.examples["decision"].tolist()


@pytest.mark.parametrize(
    "values",
    [["lives in the district of " * 20 + end for end in "AB"], [0.1 + 0.2, 0.3], [1e12, 1e12 + 1], [1e-3, 1e-3 * (1 + 1e-12)]],
    ids=["long words", "last bits", "large", "small"],
)  # fmt: skip
def test_values_that_look_alike_when_shortened_are_counted_apart(values):
    low, high = values if isinstance(values[0], str) else sorted(values)
    people = pd.DataFrame({"skill": np.arange(20.0), "from": [low, high] * 10})
    result = lw.audit(
        lambda table: ((table["from"] == high) & (table["skill"] > 9)).astype(int),
        people,
        sensitive_features=["from"],
        favourable=1,
    )
    rates = result.group_rates
    assert rates["people"].tolist() == [10, 10]
    assert sorted(rates["rate"]) == [0.0, 0.5]
    assert (result.effects["recorded"] != result.effects["instead"]).all()


def test_whole_numbers_with_gaps_are_listed_as_they_are():
    codes = 12345678901.0 + np.arange(20) % 3
    codes[0] = np.nan
    people = pd.DataFrame({"code": codes, "skill": np.arange(20.0) * 1.5, "sex": ["F", "M"] * 10})
    listed = lw.audit(
        lambda table: ((table["sex"] == "M") & (table["skill"] > 9)).astype(int),
        people,
        sensitive_features=["sex"],
    ).people
    assert listed["code"].tolist() == people["code"].iloc[listed["row"]].tolist()
