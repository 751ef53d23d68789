"""Who would lose and who would gain the favourable decision: every cell equals brute force by the model's own predict."""

from __future__ import annotations

import jsonschema
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import likewise as lw
from likewise.auditing.results.audit_result import AuditResult
from likewise.auditing.results.effects import ANY, LESS, MORE, OTHER, ChangedPeople, Exchange, Transition
from likewise.core.errors import InputError
from likewise.data.missing_values import MISSING_WORD
from likewise.models import as_model
from likewise.report import audit_document, json_schema
from likewise.report.terminal import audit_lines

MISSING = MISSING_WORD


def table(kind: str, n: int = 160, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray, dict[str, list[str]]]:
    """People, labels, and the columns of each sensitive attribute."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"skill": rng.normal(size=n).round(3), "years": rng.integers(0, 9, n).astype(float)})
    sex, race = rng.choice(["F", "M"], n), rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    age = rng.integers(18, 30, n).astype(float)
    merit = X["skill"] + 0.8 * (sex == "M") - 0.9 * (race == "b") + 0.08 * (age - 24) + rng.normal(0, 0.3, n)
    y = (merit > 0.2).astype(int)
    if kind == "category":
        return X.assign(race=race), y, {"race": ["race"]}
    if kind == "several":
        return X.assign(sex=sex, race=race), y, {"sex": ["sex"], "race": ["race"]}
    if kind == "numeric":
        return X.assign(age=age, sex=sex), y, {"age": ["age"], "sex": ["sex"]}
    if kind == "missing":
        X = X.assign(sex=sex, race=race).astype({"sex": object, "race": object})
        X.loc[rng.choice(n, 14, replace=False), "sex"] = np.nan
        X.loc[rng.choice(n, 11, replace=False), "race"] = np.nan
        return X, y, {"sex": ["sex"], "race": ["race"]}
    if kind == "one-hot":
        bits = {f"race_{value}": (race == value).astype(int) for value in "abc"}
        return X.assign(sex=(sex == "M").astype(int), **bits), y, {"sex": ["sex"], "race": [*bits]}
    assert kind == "three classes"
    return X.assign(sex=sex, race=race), y + (merit > 1.2), {"sex": ["sex"], "race": ["race"]}


def fitted(model: str, X: pd.DataFrame, y: np.ndarray):
    """A model, what `audit` is given of the table, and a function from such a table to decisions."""
    words = [name for name in X if X[name].dtype.kind not in "biuf"]
    if model == "pipeline":
        encode = make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), words), remainder="passthrough"
        )
        last = RandomForestClassifier(12, max_depth=6, random_state=0)
        made = make_pipeline(encode, last).fit(X, y)
        return made, X, made.predict
    if model == "xgboost":
        xgboost = pytest.importorskip("xgboost")
        X = X.astype(dict.fromkeys(words, "category"))
        made = xgboost.XGBClassifier(
            n_estimators=12, max_depth=4, enable_categorical=True, tree_method="hist", n_jobs=1
        ).fit(X, y)
        return made, X, made.predict
    codes = {name: sorted(X[name].dropna().unique()) for name in words}

    def matrix(frame: pd.DataFrame) -> np.ndarray:
        parts = [frame[[name for name in X if name not in words]].to_numpy(dtype=float)]
        parts += [np.stack([frame[name] == value for value in codes[name]], axis=1) for name in words]
        return np.concatenate(parts, axis=1)

    inner = LogisticRegression(max_iter=2000).fit(matrix(X), y)

    def shares(frame: pd.DataFrame) -> np.ndarray:
        return inner.predict_proba(matrix(frame))

    return shares, X, lambda frame: inner.classes_[shares(frame).argmax(axis=1)]


def brute(
    X: pd.DataFrame, decide, groups: dict[str, list[str]], favourable: int
) -> dict[tuple, tuple[int, int, int]]:
    """Every ordered pair of values, one at a time."""
    own, found = decide(X), {}
    for attribute, columns in groups.items():
        patterns = X[columns].dropna().drop_duplicates()
        for recorded in [*patterns.itertuples(index=False, name=None), None]:
            inside = X[columns].isna().any(axis=1)
            if recorded is not None:
                inside = np.all(
                    [X[name] == cell for name, cell in zip(columns, recorded, strict=True)], axis=0
                )
            if not inside.any():
                continue
            for instead in patterns.itertuples(index=False, name=None):
                if instead == recorded:
                    continue
                twin = X.copy()
                for name, value in zip(columns, instead, strict=True):
                    twin[name] = pd.Series([value] * len(X), index=X.index).astype(X[name].dtype)
                then = decide(twin)
                lose = inside & (own == favourable) & (then != favourable)
                gain = inside & (own != favourable) & (then == favourable)
                key = attribute, _name(columns, recorded), _name(columns, instead)
                found[key] = int(inside.sum()), int(lose.sum()), int(gain.sum())
    return found


def _name(columns: list[str], cells: tuple | None):
    if cells is None:
        return MISSING
    return cells[0] if len(columns) == 1 else columns[cells.index(1)].removeprefix("race_")


def cells(effects: pd.DataFrame) -> dict[tuple, tuple[int, int, int]]:
    """The effects of single attributes; those of several together are in test_question_one.py."""
    assert list(effects.columns) == ["attribute", "recorded", "instead", "people", "lose", "gain"]
    effects = effects[~effects["attribute"].str.contains(" × ")]
    total = (effects["lose"] + effects["gain"]).tolist()
    assert total == sorted(total, reverse=True)
    return {tuple(row[:3]): tuple(row[3:]) for row in effects.itertuples(index=False, name=None)}


KINDS = ["category", "several", "numeric", "missing", "one-hot", "three classes"]


@pytest.mark.parametrize("model", ["function", "pipeline", "xgboost"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_cell_equals_brute_force(kind, model):
    X, y, groups = table(kind)
    made, given, decide = fitted(model, X, y)
    favourable = 2 if kind == "three classes" else 1
    columns = [name for names in groups.values() for name in names]
    result = lw.audit(made, given, sensitive_features=columns, favourable=favourable)
    expected = brute(given, decide, groups, favourable)
    assert cells(result.effects) == expected
    assert any(lose or gain for _, lose, gain in expected.values())
    assert result.favourable == favourable
    assert result.changed.count == round(result.sensitive.changed * len(X))
    assert (result.changed.n, result.changed.interval) == (len(X), result.sensitive.changed_interval)


def unusual(kind: str) -> tuple[pd.DataFrame, np.ndarray, dict[str, list[str]]]:
    """Tables as people have them: truth values, pandas' own types, levels nobody has, odd names, a repeated index."""
    X, y, groups = table("several")
    if kind == "truth values":
        return X.assign(sex=X["sex"] == "M"), y, groups
    if kind == "pandas types":
        X = X.assign(sex=pd.array(X["sex"] == "M", dtype="boolean"))
        return X.astype({"race": "string", "years": "Int64"}), y, groups
    if kind == "levels nobody has":
        return X.assign(race=pd.Categorical(X["race"], categories=["a", "b", "c", "z"])), y, groups
    if kind == "odd names":
        names = {"sex": "self", "race": "🙂", "skill": "a b"}
        return X.rename(columns=names), y, {"self": ["self"], "🙂": ["🙂"]}
    if kind == "a repeated index":
        return X.set_axis(np.zeros(len(X), dtype=int)), y, groups
    assert kind == "numbers and words"
    return X.assign(race=X["race"].map({"a": 1, "b": "b", "c": "c"}).astype(object)), y, groups


@pytest.mark.parametrize("model", ["function", "xgboost"])
@pytest.mark.parametrize(
    "kind", ["truth values", "pandas types", "levels nobody has", "odd names", "a repeated index"]
)
def test_unusual_tables_equal_brute_force(kind, model):
    X, y, groups = unusual(kind)
    if model == "function" and kind == "pandas types":
        X = X.astype({"years": float})  # the function's own arithmetic
    made, given, decide = fitted(model, X, y)
    columns = [name for names in groups.values() for name in names]
    result = lw.audit(made, given, sensitive_features=columns, favourable=1)
    found, expected = cells(result.effects), brute(given, decide, groups, 1)
    if kind == "levels nobody has":
        # A declared level is a known value: asked about, though nobody is recorded with it.
        found = {key: counts for key, counts in found.items() if key[2] != "z"}
    assert found == expected
    assert any(lose or gain for _, lose, gain in expected.values())


def test_a_column_of_numbers_and_words_equals_brute_force():
    X, _, groups = unusual("numbers and words")

    def decide(frame: pd.DataFrame) -> np.ndarray:
        points = frame["skill"] + 0.8 * (frame["sex"] == "M") - 0.9 * frame["race"].isin(["b", 1])
        return (points > 0.2).to_numpy().astype(int)

    result = lw.audit(decide, X, sensitive_features=["sex", "race"], favourable=1)
    assert {tuple(map(str, key)): n for key, n in cells(result.effects).items()} == {
        tuple(map(str, key)): n for key, n in brute(X, decide, groups, 1).items()
    }


@pytest.mark.parametrize("encoding", ["get_dummies", "get_dummies, first dropped", "OneHotEncoder"])
@pytest.mark.parametrize("model", ["xgboost", "scikit-learn"])
def test_models_of_one_hot_columns_are_asked_about_the_raw_table(encoding, model):
    X, y, groups = table("several")
    levels = {"sex": pd.CategoricalDtype(["F", "M"]), "race": pd.CategoricalDtype(["a", "b", "c"])}
    encoder = OneHotEncoder(sparse_output=False).set_output(transform="pandas").fit(X[["sex", "race"]])

    def encoded(frame: pd.DataFrame) -> pd.DataFrame:
        if encoding == "OneHotEncoder":
            numbers = frame[["skill", "years"]]
            return pd.concat([numbers, encoder.transform(frame[["sex", "race"]])], axis=1)
        return pd.get_dummies(frame.astype(levels), drop_first=encoding.endswith("dropped"))

    made = LogisticRegression(max_iter=1000)
    if model == "xgboost":
        made = pytest.importorskip("xgboost").XGBClassifier(n_estimators=12, max_depth=4, n_jobs=1)
    made.fit(encoded(X), y)
    result = lw.audit(made, X, sensitive_features=["sex", "race"], favourable=1)
    assert cells(result.effects) == brute(X, lambda frame: made.predict(encoded(frame)), groups, 1)
    assert result.changed.count > 0


def test_a_model_of_nameless_one_hot_columns_is_told_the_way_out():
    X, y, _ = table("several")
    made = LogisticRegression().fit(pd.get_dummies(X, drop_first=True).to_numpy(dtype=float), y)
    with pytest.raises(
        InputError, match=r"Pass a function .* lambda table: model\.predict_proba\(encode\(table\)\)"
    ):
        lw.audit(made, X, sensitive_features=["sex"])


def test_the_other_outcome_turns_losses_into_gains():
    X, y, _ = table("several")
    made, given, decide = fitted("pipeline", X, y)
    other = lw.audit(made, given, sensitive_features=["sex", "race"], favourable=0)
    assert cells(other.effects) == brute(given, decide, {"sex": ["sex"], "race": ["race"]}, 0)
    assert lw.audit(made, given, sensitive_features=["sex"]).favourable == 1
    assert other.favourable == 0


def test_more_than_two_classes_without_a_favourable_one_say_who_changes_and_not_how():
    X, y, _ = table("three classes")
    made, given, _ = fitted("pipeline", X, y)
    result = lw.audit(made, given, sensitive_features=["sex"])
    assert result.favourable is None
    assert result.effects["lose"].isna().all()
    assert result.effects["gain"].isna().all()
    assert "Name the favourable decision to see who would lose" in result.headline.sentence
    assert "The favourable decision is not known: name one of 0, 1 or 2." in " ".join(str(result).split())
    jsonschema.Draft202012Validator(json_schema("audit")).validate(audit_document(result))
    with pytest.raises(lw.LikewiseError, match="favourable"):
        lw.audit(made, given, sensitive_features=["sex"], favourable="granted")


@pytest.mark.parametrize("predicts", [False, True])
def test_a_number_with_many_values_has_a_row_for_lower_and_one_for_higher_ones(predicts):
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"skill": rng.normal(size=200), "age": rng.integers(18, 70, 200).astype(float)})
    X.loc[::17, "age"] = np.nan
    known = X["age"].notna().to_numpy()

    def score(frame: pd.DataFrame) -> pd.Series:
        return frame["skill"] + 0.03 * (frame["age"].fillna(30) - 40) + 0.4 * (frame["age"] > 60)

    def granted(frame: pd.DataFrame) -> pd.Series:
        return 100 * score(frame) if predicts else 1 / (1 + np.exp(-score(frame)))

    result = lw.audit(granted, X, sensitive_features=["age"])
    tried = np.arange(X["age"].min(), X["age"].max() + 1)
    own = score(X).to_numpy()
    twins = np.stack([score(X.assign(age=age)) for age in tried], axis=1)
    age = X["age"].to_numpy()[:, None]
    expected = {}
    for key, inside in {
        (ANY, LESS): tried < age,
        (ANY, MORE): tried > age,
        (MISSING, OTHER): age != age,
    }.items():
        rows = known if key[0] == ANY else ~known
        moved = (twins < own[:, None] - 1e-12, twins > own[:, None] + 1e-12)
        if not predicts:
            moved = ((own > 0)[:, None] & (twins <= 0), (own <= 0)[:, None] & (twins > 0))
        expected[key] = (int(rows.sum()), *(int((side & inside)[rows].any(axis=1).sum()) for side in moved))
    found = {(r[1], r[2]): tuple(r[3:6]) for r in result.effects.to_numpy().tolist()}
    assert found == expected
    if predicts:
        return
    sentence = "would gain and 0 would lose the favourable decision with a higher age; with a lower one, 0 would gain"
    assert sentence in result.headline.sentence
    assert "to the disadvantage of people recorded as low values (age)." in " ".join(str(result).split())
    assert result.group_rates["value"].tolist()[0].startswith("≤ ")
    german, _ = audit_lines(result, language="de")
    assert [line.split()[1:4] for line in german if "→" in line][:2] == [
        ["beliebig", "→", "niedriger"],
        ["beliebig", "→", "höher"],
    ]


def test_numbers_that_the_enumeration_thins_out_are_asked_about():
    """Two numbers leave few values of each to try, and those people hold may not be among them."""
    rng = np.random.default_rng(2)
    X = pd.DataFrame(
        {"skill": rng.normal(size=150), "one": rng.choice([0.13, 1.7, 3.9], 150), "two": rng.normal(size=150)}
    )

    def granted(frame: pd.DataFrame) -> pd.Series:
        return 1 / (1 + np.exp(-(frame["skill"] + 0.4 * frame["one"] - 0.7 + 0.3 * frame["two"])))

    result = lw.audit(granted, X, sensitive_features=["one", "two"])
    expected = brute(X, lambda frame: (granted(frame) > 0.5).astype(int), {"one": ["one"]}, 1)
    effects = result.effects
    assert cells(effects[effects["attribute"] == "one"]) == expected
    assert set(effects[effects["attribute"] == "two"]["instead"].tolist()) == {LESS, MORE}


def test_cells_filled_for_a_model_that_takes_none_are_recorded_as_missing():
    X, y, _ = table("missing")
    filled = X.fillna({name: X[name].mode()[0] for name in ("sex", "race")})
    inner, _, decide = fitted("pipeline", filled, y)

    def strict(frame: pd.DataFrame) -> np.ndarray:
        if frame.isna().any(axis=None):
            raise ValueError("missing cells")
        return inner.predict_proba(frame)

    result = lw.audit(strict, X, sensitive_features=["sex"])
    gone, own = X["sex"].isna(), decide(filled)
    then = decide(filled.assign(sex="F"))
    row = (int(gone.sum()), int((gone & (own > then)).sum()), int((gone & (own < then)).sum()))
    assert cells(result.effects)["sex", MISSING, "F"] == row
    known = result.effects.drop_duplicates(["recorded"]).set_index("recorded")["people"]
    assert known["F"] == (X["sex"] == "F").sum()


def test_a_missing_cell_that_is_none_stays_none():
    X, y, groups = table("missing")
    X = X.astype(object).where(X.notna(), None).astype({"skill": float, "years": float})
    made, given, decide = fitted("pipeline", X, y)
    result = lw.audit(made, given, sensitive_features=["sex", "race"])
    assert cells(result.effects) == brute(given, decide, groups, 1)


def test_the_model_is_asked_once_about_each_distinct_counterpart():
    X, y, _ = table("several")
    inner, _, _ = fitted("pipeline", X, y)
    twice = pd.concat([X, X], ignore_index=True)
    asked: list[pd.DataFrame] = []

    def shares(frame: pd.DataFrame) -> np.ndarray:
        asked.append(frame)
        return inner.predict_proba(frame)

    lw.audit(shares, twice, sensitive_features=["sex", "race"])
    # Trials before, everybody as they are, and everybody with another combination, each of which is one row of the two.
    small = [len(frame) for frame in asked if len(frame) < len(X)]
    large = [frame for frame in asked if len(frame) >= len(X)]
    assert max(small) <= 64
    assert sum(map(len, large)) <= 2 * len(twice) + 5 * len(X)
    assert len(large[-1]) == 5 * len(X) == len(large[-1].drop_duplicates())


def test_saved_results_keep_changed_and_effects(tmp_path):
    X, y, _ = table("missing")
    made, given, _ = fitted("xgboost", X, y)
    result = lw.audit(made, given, sensitive_features=["sex", "race"])
    result.save(tmp_path / "audit.json")
    again = AuditResult.load(tmp_path / "audit.json")
    pd.testing.assert_frame_equal(again.effects, result.effects)
    assert again.changed == result.changed
    assert again.favourable == result.favourable == 1
    document = audit_document(again)
    jsonschema.Draft202012Validator(json_schema("audit")).validate(document)
    assert document["numbers"]["changed"]["count"] == result.changed.count
    rows = [{name: row[name] for name in result.effects.columns} for row in document["summary"]["effects"]]
    assert rows == result.effects.to_dict("records")
    assert document["summary"]["scope"]["favourable"] == 1
    assert again.headline == result.headline
    pd.testing.assert_frame_equal(again.people, result.people)


def test_regressions_speak_of_the_target_and_count_only_with_a_tolerance():
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"skill": rng.normal(size=80), "sex": rng.choice(["F", "M"], 80)})
    pay = as_model(lambda frame: frame["skill"] + (frame["sex"] == "M"), loss="squared", takes_frame=True)
    plain = lw.audit(pay, X, X["skill"].rename("pay"), sensitive_features=["sex"])
    assert plain.changed is None
    assert plain.favourable is None
    rows = plain.effects.set_index("recorded")[["people", "lower", "higher", "change"]].to_dict("index")
    women = int((X["sex"] == "F").sum())
    assert rows["F"] == {"people": women, "lower": 0, "higher": women, "change": pytest.approx(1.0)}
    assert rows["M"] == {
        "people": 80 - women,
        "lower": 80 - women,
        "higher": 0,
        "change": pytest.approx(-1.0),
    }
    assert plain.sensitive.shift == pytest.approx((1.0, 1.0))
    assert plain.headline.sentence.startswith(
        "If only the entry for sex were different, the predicted pay could change by 1.000 on average over 80 people"
    )
    assert lw.audit(pay, X, X["skill"], sensitive_features=["sex"], tolerance=0.5).changed.count == 80


def test_parts_of_a_parquet_table_add_up(tmp_path):
    X, y, groups = table("several")
    made, given, decide = fitted("pipeline", X, y)
    for part in range(2):
        X.assign(y=y).iloc[part * 80 : part * 80 + 80].to_parquet(tmp_path / f"{part}.parquet")
    result = lw.audit(
        as_model(made, takes_frame=True), tmp_path, "y", sensitive_features=["sex", "race"], favourable=1
    )
    assert cells(result.effects) == brute(given, decide, groups, 1)


def test_words():
    assert str(ChangedPeople(411, 9045, 411 / 9045, (0.0412, 0.0499), True)) == (
        "411 of 9,045 (4.5%, 95% interval 4.1% to 5.0%)"
    )
    assert str(ChangedPeople(1, 2, 0.5, (0.1, 1.0), False)).startswith("at least 1 of 2")
    one = Exchange("sex", "F", "M", 9, (Transition(0, None, 3), Transition(0, 1, 2), Transition(0, 2, 1)))
    assert (one.changed, one.lose(1), one.gain(1), one.lose(0)) == (3, 0, 2, 3)
