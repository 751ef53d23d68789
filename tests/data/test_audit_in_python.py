"""`lw.audit(model, X, sensitive_features=[...])` answers as the command line does, and as asking the model by hand does."""

from __future__ import annotations

import json
import re
import sys
from itertools import product
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import likewise as lw
from likewise.cli.app import main
from likewise.core.errors import ModelError
from likewise.improving.candidates import LogisticCandidate
from likewise.mitigation import TwinConsensus

N = 160


def base(seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "skill": rng.normal(size=N).round(3),
            "age": rng.integers(18, 66, N),
            "sex": rng.choice(["F", "M"], N),
            "race": rng.choice(["A", "B", "C"], N),
            "job": rng.choice(["cook", "clerk", "nurse"], N),
        }
    )
    push = frame["skill"] + (frame["sex"] == "M") + (frame["race"] == "B") - 0.02 * (frame["age"] - 40)
    return frame, np.where(push + rng.normal(size=N) / 2 > 0.8, "yes", "no")


def with_a_gap(seed=1):
    frame, y = base(seed)
    frame.loc[3, "skill"] = np.nan
    frame.loc[5:20, "job"] = None
    return frame, y


def with_a_sensitive_gap(seed=2):
    frame, y = with_a_gap(seed)
    frame.loc[7, "sex"] = None
    return frame, y


def with_codes(seed=3):
    frame, y = base(seed)
    frame["sex"] = np.where(frame["sex"] == "F", 1, 2)
    frame.loc[4, "skill"] = np.nan
    return frame, y


def with_booleans_and_ids(seed=4):
    frame, y = base(seed)
    frame["sex"] = (frame["sex"] == "M").astype(bool)
    frame.insert(0, "id", [f"person-{i:05d}" for i in range(N)])
    return frame, y


def with_categories(seed=5):
    frame, y = base(seed)
    frame.loc[9, "skill"] = np.nan
    return frame.astype({"sex": "category", "race": "category", "job": "category"}), y


def pipeline(frame, y):
    """Takes missing cells itself: it imputes."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    chosen = make_column_transformer(
        (numbers, make_column_selector(dtype_include=["number", "bool"])),
        (
            OneHotEncoder(handle_unknown="ignore"),
            [name for name in ("sex", "race", "job") if frame[name].dtype.kind not in "biuf"],
        ),
    )
    return make_pipeline(chosen, LogisticRegression()).fit(frame, y)


def histogram(frame, y):
    words = [name for name in frame if frame[name].dtype.kind not in "biuf"]
    encoded = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), words), remainder="passthrough"
    )
    return make_pipeline(encoded, HistGradientBoostingClassifier(max_iter=10)).fit(frame, y)


def boosted(library):
    def fit(frame, y):
        pytest.importorskip(library)
        if library == "xgboost":
            from xgboost import XGBClassifier

            model = XGBClassifier(n_estimators=12, max_depth=3, enable_categorical=True, n_jobs=1)
        else:
            from lightgbm import LGBMClassifier

            model = LGBMClassifier(n_estimators=12, min_child_samples=5, n_jobs=1, verbose=-1)
        return model.fit(frame, (y == "yes").astype(int))

    return fit


def function(frame, y):
    def score(table):
        push = (
            table["skill"].fillna(-1.0) + (table["sex"].astype(str) == str(frame["sex"].dropna().max())) * 1.0
        )
        return 1 / (1 + np.exp(-push - 0.5 * (table["race"] == "B") + 0.02 * table["age"]))

    return score


def decisions(model, frame):
    if hasattr(model, "predict"):
        return np.asarray(model.predict(frame))
    return np.asarray(model(frame)) > 0.5


def changed_by_hand(model, frame, sensitive):
    """Everybody's sensitive cells rewritten in every way; a missing one stays missing."""
    own = decisions(model, frame)
    changed = np.zeros(len(frame), dtype=bool)
    for values in product(*(frame[name].dropna().unique() for name in sensitive)):
        twin = frame.copy()
        for name, value in zip(sensitive, values, strict=True):
            gone = frame[name].isna()
            twin[name] = pd.Series(value, index=frame.index).astype(frame[name].dtype).mask(gone)
            if frame[name].dtype == object:
                twin.loc[gone, name] = None
        changed |= decisions(model, twin) != own
    return changed.mean()


CASES = [
    (base, pipeline, ["sex"]),
    (base, function, ["sex", "race"]),
    (with_a_gap, pipeline, ["sex", "race"]),
    (with_a_gap, function, ["sex"]),
    (with_a_gap, histogram, ["race"]),
    (with_a_sensitive_gap, function, ["sex", "race"]),
    (with_codes, pipeline, ["sex"]),
    (with_codes, histogram, ["sex", "race"]),
    (with_booleans_and_ids, function, ["sex"]),
    (with_booleans_and_ids, pipeline, ["sex", "race"]),
    (with_categories, boosted("xgboost"), ["sex"]),
    (with_categories, boosted("xgboost"), ["sex", "race"]),
    (with_categories, boosted("lightgbm"), ["sex", "race"]),
]


@pytest.mark.parametrize(("table", "fit", "sensitive"), CASES)
def test_the_share_is_the_one_by_hand(table, fit, sensitive):
    frame, y = table()
    model = fit(frame, y)
    before = frame.copy()
    result = lw.audit(model, frame, sensitive_features=sensitive)
    assert result.sensitive.exact
    assert result.sensitive.changed == pytest.approx(changed_by_hand(model, frame, sensitive), abs=1e-12)
    assert 0 < result.sensitive.changed < 1
    assert result.worst_case is None
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize(
    ("table", "fit", "sensitive"), [case for case in CASES if case[0] is not with_categories]
)
def test_the_command_line_says_the_same_of_the_same_table_in_a_file(
    table, fit, sensitive, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    frame, y = table()
    model = fit(frame, y)
    place = ModuleType("python_models")
    place.model = model
    monkeypatch.setitem(sys.modules, "python_models", place)
    frame.assign(paid=y).to_parquet("people.parquet")
    options = [word for name in sensitive for word in ("--sensitive", name)]
    with pytest.raises(SystemExit) as ended:
        main(
            ["audit", "python_models:model", "people.parquet", "--target", "paid", *options, "--favourable", "yes",
             "--metric", "columns", "--eps", "0", "-o", "-"]
        )  # fmt: skip
    out, err = capsys.readouterr()
    assert ended.value.code == 0, err
    told = json.loads(out)
    found = lw.audit(model, frame, y, sensitive_features=sensitive, favourable="yes", eps=0.0)
    assert json.dumps(found.sensitive.changed) in json.dumps(told)
    assert told["numbers"]["gap"]["value"] == pytest.approx(found.gap, abs=1e-12)


def test_no_search_above_zero_runs_unasked_and_labels_are_not_needed():
    frame, y = with_a_gap()
    model = function(frame, y)
    plain = lw.audit(model, frame, sensitive_features=["sex"])
    known = lw.audit(model, frame, (y == "yes").astype(int), sensitive_features=["sex"])
    assert plain.search == known.search == "enumeration"
    assert plain.sensitive.changed == known.sensitive.changed
    assert not plain.labelled
    for shown in (str(plain), plain._repr_html_().split("<table")[1]):
        assert not re.search(r"\bloss\b", shown)
    assert any("went to the model as they are" in said for said in plain.assumptions)
    with pytest.raises(lw.InputError, match="needs labels"):
        lw.audit(model, frame, sensitive_features=["sex"], delta=0.1)


def test_people_and_examples_have_their_missing_cells_again():
    frame, y = with_a_gap()
    result = lw.audit(function(frame, y), frame, sensitive_features=["sex"], eps=0.0)
    assert list(result.pure_map.people.columns) == list(frame.columns)
    assert result.pure_map.people["job"].isna().sum() == frame["job"].isna().sum()
    assert set(result.listed[0].cells) == set(frame.columns)


def test_a_metric_and_eps_add_the_papers_audit():
    frame, y = with_a_gap()
    result = lw.audit(
        function(frame, y), frame, (y == "yes").astype(int), sensitive_features=["sex"], metric="learned", eps=0.05,
        search="candidates",
    )  # fmt: skip
    assert result.eps == 0.05
    assert result.gap >= result.pure_gap > 0
    with pytest.raises(lw.InputError, match="'columns', 'learned'"):
        lw.audit(function(frame, y), frame, sensitive_features=["sex"], metric="colums")


def test_a_column_that_the_model_does_not_use_changes_nothing():
    frame, y = base()
    model = lw.MLPBaselineClassifier(n_steps=5, random_state=0).fit(frame[["skill", "age"]], y)
    result = lw.audit(model, frame, y, sensitive_features=["sex"])
    assert result.sensitive.changed == 0
    assert result.trivial or any(finding.kind == "unread" for finding in result.findings)


def test_verify_takes_a_table_as_it_is():
    frame, y = with_codes()
    numbers = frame[["skill", "age", "sex"]]
    model = boosted("xgboost")(numbers, y)
    found = lw.verify(model, numbers, sensitive_features=["sex"], budget_seconds=5)
    assert found.people[1] == pytest.approx(changed_by_hand(model, numbers, ["sex"]))
    words, y = with_a_gap()
    model = function(words, y)
    found = lw.verify(model, words, sensitive_features=["sex"], budget_seconds=2)
    assert found.people[1] == pytest.approx(changed_by_hand(model, words, ["sex"]))


def test_improve_fills_missing_cells_and_says_so():
    from likewise.improving.people import split_data

    frame, y = with_a_gap()
    data = split_data(frame, y, sensitive_features=["sex"])
    assert not data.frame.isna().any().any()
    assert any("were filled" in note for note in data.notes)


def test_ids_dates_and_texts_that_a_model_takes_reach_it_as_they_are():
    """One category per person would be wider than any audit."""
    frame, _ = base()
    frame = pd.concat([frame] * 30, ignore_index=True)
    frame.insert(0, "id", [f"person-{i:05d}" for i in range(len(frame))])
    frame["hired"] = pd.date_range("2001-01-01", periods=len(frame), freq="D")
    frame["note"] = [f"the {i}th letter, which says a lot about work and life" for i in range(len(frame))]
    frame.loc[8, "note"] = None
    frame.loc[9, "skill"] = np.nan

    def score(table):
        late = (table["hired"].dt.year > 2005) * 0.7 + table["note"].str.contains("7").fillna(False).astype(
            float
        )
        first = (table["id"] < "person-00100") * 1.0
        return 1 / (1 + np.exp(-table["skill"].fillna(0.0) - (table["sex"] == "M") + late + first))

    result = lw.audit(score, frame, sensitive_features=["sex"], eps=0.0)
    assert result.sensitive.changed == pytest.approx(changed_by_hand(score, frame, ["sex"]), abs=1e-12)
    people = result.pure_map.people
    assert people["id"].tolist() == frame["id"].iloc[result.pure_map.outcomes["person"]].tolist()
    assert people["hired"].dtype == frame["hired"].dtype


@pytest.mark.parametrize(
    "names",
    [
        ("frame", "cls", "self"),
        ("a b", "job title", "😀"),
        ("0", "1", "2"),
        ("a\nb", "y", "loss"),
        ("n", "job", "sex "),
    ],
)
def test_columns_may_be_called_anything(names, tmp_path):
    frame, y = with_a_gap()
    frame = frame[["skill", "job", "sex"]].set_axis(list(names), axis=1)
    number, _, sex = names

    def score(table):
        return 1 / (1 + np.exp(-table[number].fillna(-1.0) - (table[sex] == "M")))

    result = lw.audit(score, frame, (y == "yes").astype(int), sensitive_features=[sex])
    assert result.sensitive.changed == pytest.approx(changed_by_hand(score, frame, [sex]), abs=1e-12)
    result.save(tmp_path / "audit.html")
    assert sex in (tmp_path / "audit.html").read_text()
    if sex.endswith(" "):  # or nobody sees it
        assert f"Depends on “{sex}”:" in str(result)
        with pytest.raises(lw.InputError, match=f"Its columns: .*“{sex}”"):
            lw.audit(score, frame, sensitive_features=[sex.strip()])


def test_columns_of_one_name_are_refused():
    frame, y = base()
    for twice in (frame.rename(columns={"race": "sex"}), frame.rename(columns={"race": "3", "job": 3})):
        with pytest.raises(lw.InputError, match=r"columns of the same name: \['(sex|3)'\]"):
            lw.audit(function(frame, y), twice, sensitive_features=["sex"])


@pytest.mark.parametrize("kind", ["function", "places", "selected"])
def test_columns_may_have_numbers_for_names(kind):
    """Broke once: the names were to be made text, and a model that was fitted before could then not be asked."""
    frame, y = base()
    named = frame[["skill", "age", "sex"]]
    numbered = named.set_axis([10, 11, 12] if kind == "function" else [0, 1, 2], axis=1)
    sex = numbered.columns[2]
    if kind == "function":
        model, hand = (lambda rows: 0.2 + 0.5 * (rows[12] == "M") + (rows[10] > 1) * 0.3), None
    else:
        numbers, words = (
            make_column_selector(dtype_include="number"),
            make_column_selector(dtype_exclude="number"),
        )
        columns = ([0, 1], [2]) if kind == "places" else (numbers, words)
        encode = make_column_transformer((StandardScaler(), columns[0]), (OneHotEncoder(), columns[1]))
        model = make_pipeline(encode, LogisticRegression()).fit(numbered, y == "yes")
        hand = model.predict
    ask = hand or (lambda rows: model(rows) > 0.5)
    swapped = numbered.copy()
    swapped[sex] = np.where(numbered[sex] == "M", "F", "M")
    share = float((ask(numbered) != ask(swapped)).mean())
    assert share > 0
    for names in ([sex], [str(sex)]):
        found = lw.audit(model, numbered, sensitive_features=names)
        assert found.sensitive.changed == pytest.approx(share, abs=1e-12)
    metric = lw.ExpertSubspace([str(sex)]).fit(numbered).metric_
    assert lw.audit(model, numbered, y == "yes", metric=metric, eps=0.0).changed.share == pytest.approx(share)
    assert lw.verify(model, numbered, [sex]).people[1] == pytest.approx(share)


class OwnColumns(TransformerMixin, BaseEstimator):
    """Reads columns by name, and keeps neither their names nor their number."""

    def fit(self, X, y=None):
        self.highest_ = X["sex"].max()
        return self

    def transform(self, X):
        last = X["id"].str.endswith("1") if "id" in X else X["age"] > 40
        return np.stack([X["skill"], X["sex"] == self.highest_, last], axis=1).astype(float)


class OwnClassifier(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.inner_ = make_pipeline(OwnColumns(), LogisticRegression()).fit(X, y)
        self.classes_, self.n_features_in_ = self.inner_.classes_, X.shape[1]
        return self

    def predict_proba(self, X):
        return self.inner_.predict_proba(X)

    def predict(self, X):
        return self.inner_.predict(X)


@pytest.mark.parametrize("table", [with_booleans_and_ids, with_codes])
@pytest.mark.parametrize("kind", [OwnClassifier, lambda: make_pipeline(OwnColumns(), LogisticRegression())])
def test_an_estimator_of_ones_own_that_was_fitted_on_frames_gets_frames(table, kind):
    frame, y = table()
    frame["skill"] = frame["skill"].fillna(0.0)
    if table is with_codes:
        frame = frame[["skill", "age", "sex"]]
    model = kind().fit(frame, y)
    result = lw.audit(model, frame, y, sensitive_features=["sex"])
    assert result.sensitive.changed == pytest.approx(changed_by_hand(model, frame, ["sex"]), abs=1e-12)
    assert result.sensitive.changed > 0


@pytest.mark.parametrize("words", [True, False])
def test_an_audit_by_distance_a_consensus_and_improve_show_it_frames_too(words):
    frame, y = base()
    frame = frame[["skill", "age", "sex"]]
    frame = frame if words else frame.assign(sex=(frame["sex"] == "M").astype(int))
    model = OwnClassifier().fit(frame, y)
    by_hand = changed_by_hand(model, frame, ["sex"])
    metric = lw.ExpertSubspace(["sex"]).fit(frame).metric_
    audited = lw.audit(model, frame, y, metric=metric, eps=0.0)
    assert audited.sensitive.changed == pytest.approx(by_hand, abs=1e-12)
    consensus = TwinConsensus(model, sensitive_features="sex").fit(frame)
    assert changed_by_hand(consensus, frame, ["sex"]) == 0 < by_hand
    simple = LogisticCandidate("simple", "", blind=True)
    gaps = frame.assign(age=frame["age"].where(np.arange(N) % 9 > 0))
    found = lw.improve(gaps, y, sensitive_features=["sex"], model=model, candidates=[simple], folds=2)
    assert not found.failed
    assert found.frame.loc["Your model, twin consensus", "changed decisions"] == 0
    assert found.frame.loc["Your model", "changed decisions"] > 0


def test_ids_and_dates_beside_gaps_are_listed_as_the_table_has_them():
    """Stand-ins of ids and dates, and gaps that the model takes, are both undone in what people read."""
    frame = pd.DataFrame(
        {
            "number": [f"A{k:03d}" for k in range(60)],
            "born": pd.date_range("1970-01-01", periods=60, freq="31D"),
            "sex": ["F", "M"] * 30,
            "income": np.where(np.arange(60) % 7 == 0, np.nan, np.arange(60.0)),
        }
    )

    def score(table):
        known = table["number"].str.len() + pd.to_datetime(table["born"]).dt.year
        return 1 / (1 + np.exp(-(table["income"].fillna(30) - 30) / 10 - (table["sex"] == "M") - 0 * known))

    people = lw.audit(score, frame, sensitive_features=["sex"]).people
    assert len(people)
    for one in people.itertuples():
        assert (one.number, one.born[:10]) == (frame["number"][one.row], str(frame["born"][one.row])[:10])


def two_columns(n=60):
    random = np.random.default_rng(0)
    return pd.DataFrame({"age": random.integers(18, 80, n), "sex": random.choice(["F", "M"], n)})


def by_age_and_sex(frame):
    return 1 / (1 + np.exp(-(frame["age"] - 50) / 9 - (frame["sex"] == "M")))


@pytest.mark.parametrize("name", ["level", "age group", "kind"])
def test_a_category_of_whole_numbers_is_a_category_whatever_its_name(name):
    """A name such as level made it an integer, which its type is not."""
    frame = two_columns().assign(**{name: pd.Series([1, 2, 5] * 20).astype("category")})
    found = lw.audit(by_age_and_sex, frame, sensitive_features=["sex"])
    assert found.sensitive.changed == changed_by_hand(AsModel(by_age_and_sex), frame, ["sex"]) > 0


class AsModel:
    def __init__(self, function):
        self.function = function

    def predict(self, frame):
        return (self.function(frame) > 0.5).astype(int)


@pytest.mark.parametrize("gap", [False, True], ids=["whole", "a missing word"])
@pytest.mark.parametrize("label", [1, 1.0, True, "yes"], ids=["int", "float", "bool", "word"])
def test_labels_that_are_all_favourable(label, gap):
    frame = two_columns()
    if gap:
        frame["word"] = pd.Series(["u", "v"] * 30).mask(np.arange(60) == 5)
    favourable = label if isinstance(label, str) else 1
    found = lw.audit(by_age_and_sex, frame, [label] * 60, sensitive_features=["sex"], favourable=favourable)
    assert found.sensitive.changed == changed_by_hand(AsModel(by_age_and_sex), frame, ["sex"]) > 0


@pytest.mark.parametrize(
    ("y", "favourable", "said"),
    [
        ([5] * 60, 5, r"the target has 5\. Pass people of both labels"),
        ([True, False] * 30, 2, r"no value 2\. Its values: False and True\."),
        ([None] * 60, 1, "missing for everybody"),
        ([1, "a", None] * 20, 1, "a mix of int and str"),
    ],
)
def test_labels_that_cannot_be_used_are_said(y, favourable, said):
    with pytest.raises(lw.InputError, match=said):
        lw.audit(by_age_and_sex, two_columns(), y, sensitive_features=["sex"], favourable=favourable)


def test_a_path_takes_the_name_of_the_target(tmp_path):
    frame = two_columns()
    frame.to_csv(tmp_path / "people.csv", index=False)
    with pytest.raises(lw.InputError, match=r"'y' must be the name of the target column .* got a Series"):
        lw.audit(by_age_and_sex, tmp_path / "people.csv", frame["age"], sensitive_features=["sex"])


def test_what_another_library_says_ends_in_one_full_stop():
    def fails(frame):
        raise ValueError("these do not match.")

    with pytest.raises(ModelError, match=r"do not match\. The model was handed") as caught:
        lw.audit(fails, two_columns(), sensitive_features=["sex"])
    assert ".." not in str(caught.value)


@pytest.mark.parametrize("labels", [None, "numbers"])
def test_a_function_may_predict_numbers(labels):
    people = pd.DataFrame({"x": np.arange(60) % 31 * 1.5, "s": ["a", "b"] * 30})

    def pay(table):
        return 100.0 * table["x"] + 7.0 * (table["s"] == "a")

    y = None if labels is None else pay(people) + 3.0
    result = lw.audit(pay, people, y, sensitive_features=["s"])
    effects = result.effects.set_index("recorded")
    assert effects.loc["a", "change"] == pytest.approx(-7.0)
    assert effects.loc["b", "change"] == pytest.approx(7.0)
    assert lw.audit(pay, people, y, sensitive_features=["s"], tolerance=6.0).changed.count == 60
    assert lw.audit(pay, people, y, sensitive_features=["s"], tolerance=8.0).changed.count == 0


def test_a_function_of_scores_is_not_taken_for_numbers_if_the_labels_are_classes():
    people = pd.DataFrame({"x": np.arange(40.0) - 20, "s": ["a", "b"] * 20})
    with pytest.raises(ValueError, match=r"not probabilities.*loss='squared'"):
        lw.audit(lambda table: table["x"] * 3.0, people, [0, 1] * 20, sensitive_features=["s"])


@pytest.mark.parametrize("fitted_on", [bool, int])
def test_truth_values_are_the_classes_0_and_1(fitted_on):
    people, y = base()
    said = y == "yes"
    model = pipeline(people, said.astype(fitted_on))
    asked = {"sensitive_features": ["sex"]}
    counts = [
        lw.audit(model, people, labels, **asked).changed.count for labels in (said, said.astype(int), None)
    ]
    assert counts[0] > 0
    assert counts == counts[:1] * 3


def test_who_moves_nobody_is_said_last_and_sentences_are_not_cut():
    people = pd.DataFrame({"a long name of a column": "x" * 38, "s": ["a"] * 30 + ["b"] * 3})
    people["skill"] = [1.0] * 30 + [-1.0] * 3

    def decide(table):
        return 1 * (table["skill"] + (table["s"] == "a") > 1)

    result = lw.audit(decide, people, sensitive_features=["s"])
    said = " ".join(str(result).split())
    assert "Of 30 people with s recorded as a, 0 would gain and 30 would lose" in said
    assert said.count("…") == 0


def test_numbers_that_are_no_counts_fit_on_a_line():
    people = pd.DataFrame(
        {"x": np.arange(60.0), "s": np.where(np.arange(60) % 2, 0.0506801187, -0.0446416365)}
    )
    lines = str(lw.audit(lambda table: table["x"] + 20.0 * table["s"], people, sensitive_features=["s"]))
    assert "s: -0.0446416 → 0.0506801" in lines
    assert "at most" not in lines


def test_an_answer_that_names_its_rows_is_put_in_their_order():
    """Broke once: a function that sorts its table was said to answer differently when it is asked again."""
    frame, _ = base()

    def score(rows):
        return 0.3 + 0.2 * rows["skill"].clip(-1, 1) + 0.3 * (rows["sex"] == "M")

    def score_sorted(rows):
        return score(rows.sort_values("age"))

    mixed = frame.sample(frac=1, random_state=0)
    for table in (frame, mixed):
        plain = lw.audit(score, table, sensitive_features=["sex"])
        found = lw.audit(score_sorted, table, sensitive_features=["sex"])
        assert (str(found.changed), found.findings) == (str(plain.changed), plain.findings)
        assert plain.changed.count > 0


def test_what_predicts_numbers_costs_its_squared_error_unless_another_loss_is_named():
    frame, _ = base()
    frame["sex"] = (frame["sex"] == "M").astype(int)
    table, y = frame[["skill", "age", "sex"]], frame["skill"] + frame["sex"]
    metric = lw.ExpertSubspace(["sex"]).fit(table).metric_
    share = 1 / (1 + np.exp(-y))
    models = [(LinearRegression().fit(table, y), y)]
    xgboost = pytest.importorskip("xgboost")
    models.append((xgboost.XGBRegressor(objective="reg:logistic", n_estimators=3).fit(table, share), share))
    for model, labels in models:
        assert lw.audit(model, table, labels, sensitive_features=["sex"]).settings["loss"] == "squared"
        named = lw.audit(model, table, labels, metric=metric, eps=0.0, loss="squared")
        assert named.settings["loss"] == "squared"
    assert lw.audit(models[0][0], table, y, metric=metric, eps=0.0).settings["loss"] == "squared"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"sensitive_features": base()[0]["sex"]},
            "list of names of columns of 'X'.* got a Series of values",
        ),
        (
            {"sensitive_features": None, "metric": "columns"},
            "'columns' or 'learned', got 'columns'. Name the col",
        ),
        (
            {"y": np.where(base()[0]["sex"] == "M", np.nan, base()[1] == "yes")},
            r"one value only \(F\) among \d+ of 160 people",
        ),
        ({"engine": "spark"}, "'engine' must be local, dask, dask:WORKERS"),
        ({"engine": "dask"}, "'engine' and 'map_folder' are for Parquet files"),
        ({"model": lambda rows: np.full(len(rows), 0.5 + 1j)}, "complex numbers"),
    ],
)
def test_a_message_names_what_is_wrong(given, said):
    frame, y = base()
    asked = {"model": lambda rows: rows["age"] / 100, "y": y == "yes", "sensitive_features": ["sex"]} | given
    with pytest.raises(lw.LikewiseError, match=said):
        lw.audit(X=frame, **asked)
