"""A model fitted on one-hot columns, audited on the raw table: recognised by names, or refused with a way out."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import likewise as lw
from likewise.cli.app import main
from likewise.data.one_hot import WRAPPER, match_one_hot

N = 160


def people(seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "skill": rng.normal(size=N).round(3),
            "hours per week": rng.integers(18, 66, N),
            "sex": rng.choice(["Female", "Male"], N),
            "race": rng.choice(["A", "B c", "D"], N),
            "code": rng.integers(1, 5, N),
        }
    )
    push = frame["skill"] + (frame["sex"] == "Male") + (frame["race"] == "D") + (frame["code"] == 2)
    return frame, (push + rng.normal(size=N) / 4 > 1).astype(int)


def dummies(**choices):
    def encoder(frame):
        names = pd.get_dummies(frame, **choices).columns
        whole = {key: value for key, value in choices.items() if key != "drop_first"}
        return lambda table: pd.get_dummies(table, **whole).reindex(columns=names, fill_value=0)

    return encoder


def one_hot_encoder(drop=None, verbose=True, columns=("sex", "race")):
    def encoder(frame):
        chosen = [("cat", OneHotEncoder(sparse_output=False, drop=drop), list(columns))]
        steps = ColumnTransformer(chosen, remainder="passthrough", verbose_feature_names_out=verbose)
        return steps.set_output(transform="pandas").fit(frame).transform

    return encoder


ENCODERS = {
    "get_dummies": dummies(),
    "drop_first": dummies(drop_first=True),
    "codes": dummies(columns=["code", "sex", "race"]),
    "codes, drop_first": dummies(columns=["code", "sex", "race"], drop_first=True, dtype=float),
    "=": dummies(prefix_sep="="),
    "__": dummies(prefix_sep="__"),
    "dummy_na": dummies(dummy_na=True),
    "cat__sex_Male": one_hot_encoder(),
    "sex_Male": one_hot_encoder(verbose=False),
    "drop='first'": one_hot_encoder("first"),
    "if_binary": one_hot_encoder("if_binary", columns=("race", "sex", "code")),
}


def fitted(kind, rows, y):
    if kind == "lightgbm":
        lightgbm = pytest.importorskip("lightgbm")
        return lightgbm.LGBMClassifier(n_estimators=8, n_jobs=1, verbose=-1).fit(rows, y)
    if kind == "xgboost":
        xgboost = pytest.importorskip("xgboost")
        return xgboost.XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1).fit(rows, y)
    model = (
        LogisticRegression(max_iter=2000) if kind == "linear" else RandomForestClassifier(6, random_state=0)
    )
    return model.fit(rows, y)


def changed_by_hand(decide, frame, column="sex"):
    own = decide(frame)
    twins = [decide(frame.assign(**{column: value})) for value in frame[column].unique()]
    return int(np.any([twin != own for twin in twins], axis=0).sum())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, "linear") for name in ENCODERS),
        ("get_dummies", "xgboost"),
        ("drop_first", "forest"),
        ("cat__sex_Male", "lightgbm"),
    ],
)
def test_the_share_is_the_one_of_encoding_by_hand(name, kind):
    frame, y = people()
    encode = ENCODERS[name](frame)
    model = fitted(kind, encode(frame), y)
    result = lw.audit(model, frame, y, sensitive_features=["sex"])
    by_hand = changed_by_hand(lambda table: model.predict(encode(table)), frame)
    assert result.changed.count == by_hand > 0
    assert any("one-hot columns" in said for said in result.assumptions)


def test_missing_cells_are_zero_in_all_columns_as_get_dummies_writes_them():
    frame, y = people(1)
    frame.loc[:20, "race"] = None
    encode = dummies()(frame)
    model = fitted("xgboost", encode(frame), y)
    result = lw.audit(model, frame, y, sensitive_features=["sex"])
    assert result.changed.count == changed_by_hand(lambda table: model.predict(encode(table)), frame)
    assert any("missing cells of 'race' are 0 in all" in said for said in result.assumptions)


def test_a_one_hot_model_can_be_proved():
    frame, y = people(2)
    encode = dummies()(frame)
    model = fitted("xgboost", encode(frame), y)
    found = lw.verify(model, frame, sensitive_features=["sex"], budget_seconds=1)
    share = changed_by_hand(lambda table: model.predict(encode(table)), frame) / N
    assert found.people == pytest.approx((1 - share, share, 0))
    assert found.reason == ""
    assert found.flips > 0
    without = fitted("forest", encode(frame).drop(columns=["sex_Female", "sex_Male"]), y)
    assert lw.audit(without, frame, sensitive_features=["sex"]).changed.count == 0


def test_columns_that_were_scaled_under_the_same_name_are_found_out():
    frame, y = people(3)
    frame["wage"] = np.random.default_rng(0).integers(1000, 9000, N)
    rows = pd.get_dummies(frame)
    rows["wage"] = StandardScaler().fit_transform(rows[["wage"]])[:, 0]
    rng = np.random.default_rng(0)
    model = fitted("xgboost", rows, (rows["wage"] + rows["sex_Male"] + rng.normal(size=N) > 0.5).astype(int))
    result = lw.audit(model, frame, y, sensitive_features=["sex"])
    assert any(finding.kind == "units" and "wage" in finding.columns for finding in result.findings)


def refused(model, frame, match):
    with pytest.raises(lw.InputError, match=match) as error:
        lw.audit(model, frame, sensitive_features=["sex"])
    assert WRAPPER in str(error.value)


def test_incomplete_and_ambiguous_matches_are_refused_with_a_wrapper_that_works():
    frame, y = people(4)
    rows = pd.get_dummies(frame)
    model = fitted("forest", rows, y)
    strange = frame.assign(race=frame["race"].where(frame.index > 5, "Q").where(frame.index > 2, "R"))
    refused(model, strange, "no column: 'R' and 'Q'")
    refused(model, frame.assign(race=frame["race"].where(frame.index > 5, "Q")), "no column: 'Q'")
    # It sorts first, as a dropped value would, but every value of sex has a column.
    refused(model, frame.assign(race=frame["race"].where(frame.index > 5, "?")), "been dropped or be unknown")
    refused(model, frame.drop(columns="skill"), "'skill' is not a column of the table")
    refused(
        fitted("forest", rows.rename(columns={"skill": "num__skill"}), y),
        frame,
        "'num__skill' is not a column of the table",
    )
    refused(
        fitted("forest", rows.assign(**{"sex_at_birth_Male": 0}), y), frame.assign(sex_at=1), "sex_at_birth"
    )
    refused(fitted("forest", rows.assign(**{"code_mean": 0, "code_1": 0}), y), frame, "'code_mean'")
    namespace = {"pd": pd, "model": model}
    exec(WRAPPER, namespace)  # the line of the message, as a user would paste it
    result = lw.audit(namespace["score"], strange, sensitive_features=["sex"])
    encode = dummies()(frame)
    assert result.changed.count == changed_by_hand(lambda table: model.predict(encode(table)), strange)


def test_names_that_fit_two_columns_or_values_are_refused():
    frame = pd.DataFrame({"a": ["b_c", "x"], "a_b": ["c", "y"]})
    with pytest.raises(lw.InputError, match="can be a = b_c or a_b = c"):
        match_one_hot(["a_b_c", "a_x", "a_b_y"], frame)
    wages = pd.DataFrame({"wage": ["<=50K", ">50K", "?"]})
    with pytest.raises(lw.InputError, match="can be wage = "):
        match_one_hot(["wage_50K", "wage_?"], wages)
    assert match_one_hot(["age", "height"], wages) is None
    ages = pd.DataFrame({"age": [20, 30], "sex": ["F", "M"]})
    with pytest.raises(lw.InputError, match="two of its columns are the table's 'age'"):
        match_one_hot(["age", "remainder__age", "sex_M"], ages)


def test_a_value_unknown_to_the_model_is_not_taken_for_a_dropped_one():
    """The model was fitted where everybody was from one country; both values of sex have a column."""
    frame = pd.DataFrame({"country": ["Cuba", "US", "US"], "sex": ["F", "M", "M"]})
    with pytest.raises(lw.InputError, match=r"country = Cuba has no column.*unknown to the model"):
        match_one_hot(["country_US", "sex_F", "sex_M"], frame)
    assert match_one_hot(["country_US", "sex_M"], frame).omitted == {"country": "Cuba", "sex": "F"}


def test_values_that_nobody_has_and_infrequent_ones():
    frame = pd.DataFrame({"job": ["cook", "nurse", "cook"], "age": [20, 30, 40]})
    found = match_one_hot(["age", "job_clerk", "job_cook", "job_nurse"], frame)
    assert found.encode(frame).to_numpy().tolist() == [[20, 0, 1, 0], [30, 0, 0, 1], [40, 0, 1, 0]]
    assert "Nobody in the table has the value of 'job_clerk'" in found.note()
    with pytest.raises(lw.InputError, match=re.escape("column 'job' has the value 'smith'")):
        found.encode(frame.assign(job="smith"))
    with pytest.raises(lw.InputError, match="infrequent_sklearn"):
        match_one_hot(["age", "job_cook", "job_infrequent_sklearn"], frame)


def test_the_command_line_reads_a_one_hot_model_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame, y = people(5)
    encode = dummies()(frame)
    model = fitted("xgboost", encode(frame), y)
    model.save_model("model.json")
    frame.assign(paid=y).to_csv("people.csv", index=False)
    with pytest.raises(SystemExit) as ended:
        main(["audit", "model.json", "people.csv", "--target", "paid", "--sensitive", "sex", "--metric", "columns",
              "--eps", "0", "-o", "audit.json"])  # fmt: skip
    said = capsys.readouterr().err
    assert ended.value.code == 0, said
    assert "'sex_Female' is sex = Female" in said or "'sex_Male' is sex = Male" in said
    by_hand = changed_by_hand(lambda table: model.predict(encode(table)), frame)
    assert json.dumps(by_hand / N) in (tmp_path / "audit.json").read_text()


@pytest.mark.parametrize("drop_first", [False, True])
@pytest.mark.parametrize("held", ["ab", "bc", "ac", "c"])
def test_declared_values_that_nobody_has_are_recognised(drop_first, held):
    frame = pd.DataFrame(
        {"grade": pd.Categorical(list("abcabcab"), categories=list("abc")), "x": np.arange(1.0, 9.0)}
    )
    encoded = pd.get_dummies(frame, drop_first=drop_first)
    model = LogisticRegression().fit(encoded, [0, 1] * 4)
    some = frame[frame["grade"].isin(list(held))].reset_index(drop=True)
    found = lw.audit(model, some, sensitive_features=["grade"], favourable=1)
    asked = np.stack(
        [
            model.predict(
                pd.get_dummies(
                    some.assign(grade=pd.Categorical([value] * len(some), categories=list("abc"))),
                    drop_first=drop_first,
                )[list(encoded)]
            )
            for value in "abc"
        ]
    )
    assert found.changed.count == int((asked != asked[0]).any(axis=0).sum())
