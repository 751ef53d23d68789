from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import likewise.counterfactuals as cf
from likewise.core.errors import InputError, ModelError
from likewise.counterfactuals import Edit

PEOPLE = pd.DataFrame(
    {
        "age": [20, 30, 40, 50],
        "sex": ["Female", "Male", "Female", "Male"],
        "race": ["White", "White", "Other", "Other"],
        "relationship": ["Wife", "Husband", "Single", "Single"],
    },
    index=["ann", "bob", "cat", "dan"],
)


def to_frame(table):
    if isinstance(table, pd.DataFrame):
        return table
    return table.to_pandas()


def older_men(table):
    frame = to_frame(table)
    return ((frame["age"] > 25) & (frame["sex"] == "Male")).astype(int).to_numpy()


def test_who_flipped_and_both_decisions():
    study = cf.correspondence_study(older_men, PEOPLE, {"sex": ["Female", "Male"]})
    assert study.consistency == 0.25
    assert study.flipped.tolist() == [False, True, True, True]
    assert study.n_flipped == 3
    assert study.decisions["sex=Male"].to_dict() == {"ann": 0, "bob": 1, "cat": 1, "dan": 1}
    assert study.frame.index.tolist() == ["bob", "cat", "dan"]
    assert study.frame["decision: sex=Female"].tolist() == [0, 0, 0]
    assert study.frame["decision: sex=Male"].tolist() == [1, 1, 1]
    assert study.frame["sex"].tolist() == ["Male", "Female", "Male"]
    assert study.counts.to_dict("index") == {"sex=Female": {0: 4, 1: 0}, "sex=Male": {0: 1, 1: 3}}
    assert study.variants == ({"sex": "Female"}, {"sex": "Male"})


def test_the_callers_frame_is_left_alone():
    before = PEOPLE.copy(deep=True)
    cf.correspondence_study(older_men, PEOPLE, {"sex": None, "race": "all"})
    pd.testing.assert_frame_equal(PEOPLE, before)


def test_all_values_in_all_combinations():
    study = cf.correspondence_study(older_men, PEOPLE, {"sex": None, "race": "all", "relationship": None})
    assert study.decisions.shape == (4, 12)
    assert study.decisions.columns[0] == "sex=Female, race=Other, relationship=Husband"


def test_edits_of_several_columns_together_and_crossed_with_another():
    seen = []

    def model(table):
        seen.append(table[["sex", "relationship", "race"]].drop_duplicates().to_records(index=False).tolist())
        return np.zeros(len(table), dtype=int)

    couple = [{"relationship": "Wife", "sex": "Female"}, {"relationship": "Husband", "sex": "Male"}]
    cf.correspondence_study(model, PEOPLE, [Edit("race"), couple])
    assert seen == [
        [("Female", "Wife", "Other")],
        [("Male", "Husband", "Other")],
        [("Female", "Wife", "White")],
        [("Male", "Husband", "White")],
    ]


def test_the_person_as_they_are_can_be_a_twin():
    study = cf.correspondence_study(older_men, PEOPLE, [{}, {"sex": "Male"}])
    assert study.decisions["as is"].tolist() == [0, 1, 0, 1]
    assert study.flipped.tolist() == [False, False, True, False]


def test_only_people_who_have_the_edited_values():
    study = cf.spouse_consistency(older_men, PEOPLE, only=True)
    assert study.positions.tolist() == [0, 1]
    assert study.decisions.index.tolist() == ["ann", "bob"]
    joint = [{"relationship": "Wife", "sex": "Female"}, {"relationship": "Husband", "sex": "Female"}]
    assert cf.correspondence_study(older_men, PEOPLE, joint, only=True).positions.tolist() == [0]


def test_spouses_are_two_copies_of_everyone_with_nothing_else_changed():
    tables = []

    def model(table):
        tables.append(table)
        return table["relationship"].to_numpy()

    study = cf.spouse_consistency(model, PEOPLE)
    assert study.consistency == 0.0
    assert [set(t["relationship"]) for t in tables] == [{"Husband"}, {"Wife"}]
    for table in tables:
        pd.testing.assert_frame_equal(table.drop(columns="relationship"), PEOPLE.drop(columns="relationship"))


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas])
def test_other_libraries_give_the_same_study_in_their_own_tables(make):
    seen = []

    def model(table):
        seen.append(type(table))
        return older_men(table)

    theirs = make(PEOPLE.reset_index(drop=True))
    study = cf.gender_race_consistency(model, theirs, chunk_size=3)
    ours = cf.gender_race_consistency(older_men, PEOPLE)
    assert study.consistency == ours.consistency
    assert (study.decisions.to_numpy() == ours.decisions.to_numpy()).all()
    assert set(seen) == {type(theirs)}
    assert type(study.frame) is type(theirs)
    assert study.frame.shape == (3, 8)
    only = cf.spouse_consistency(model, theirs, only=True)
    assert only.positions.tolist() == [0, 1]


@pytest.mark.parametrize(
    "table",
    [
        PEOPLE.astype({"sex": "category", "age": "int16", "race": object}),
        PEOPLE.astype({"sex": "string", "age": "Int64", "race": "category"}),
        pl.DataFrame({"age": [1, 2], "sex": pl.Series(["Female", "Male"], dtype=pl.Categorical)}),
        pl.DataFrame(
            {"age": [1, 2], "sex": pl.Series(["Female", "Male"], dtype=pl.Enum(["Male", "Female", "X"]))}
        ),
        pa.table({"age": [1, 2], "sex": pa.array(["Female", "Male"]).dictionary_encode()}),
    ],
    ids=["pandas category", "pandas nullable", "polars categorical", "polars enum", "arrow dictionary"],
)
def test_twins_have_the_types_of_the_table(table):
    def types(frame):
        return dict(frame.dtypes) if isinstance(frame, pd.DataFrame) else frame.schema

    expected = types(table)

    def model(twins):
        assert types(twins) == expected
        return to_frame(twins)["sex"].astype(str).to_numpy()

    study = cf.correspondence_study(model, table, {"sex": ["Female", "Male"]})
    assert study.consistency == 0.0
    ages = sorted(to_frame(table)["age"])
    assert cf.correspondence_study(
        lambda t: to_frame(t)["age"].to_numpy(), table, {"age": ages[:2]}
    ).n_flipped == len(ages)


def test_encode_is_applied_to_twins_not_to_people():
    def encode(frame):
        return np.column_stack([frame["age"], frame["sex"] == "Male"])

    class Model:
        def predict(self, X):
            assert isinstance(X, np.ndarray)
            return (X[:, 0] > 25) & (X[:, 1] == 1)

    study = cf.correspondence_study(Model(), PEOPLE, {"sex": None}, encode=encode)
    assert study.flipped.tolist() == [False, True, True, True]


def test_encoded_frames_give_the_same_study():
    dummies = pd.get_dummies(PEOPLE[["relationship"]], dtype=float)
    encoded = pd.concat([PEOPLE[["age"]].astype(float), dummies], axis=1)
    encoded["race_White"] = (PEOPLE["race"] == "White") * 1.0
    encoded["sex_Male"] = (PEOPLE["sex"] == "Male") * 1.0

    def raw_model(t):
        return (t["age"] + 9 * (t["sex"] == "Male") + 12 * (t["relationship"] == "Husband") > 45).to_numpy()

    def encoded_model(t):
        assert (t.filter(like="relationship_").sum(axis=1) == 1).all()
        return (t["age"] + 9 * t["sex_Male"] + 12 * t["relationship_Husband"] > 45).to_numpy()

    for function in (cf.spouse_consistency, cf.gender_race_consistency):
        a, b = function(raw_model, PEOPLE), function(encoded_model, encoded)
        assert a.flipped.tolist() == b.flipped.tolist()
        assert a.decisions.shape == b.decisions.shape
        assert 0 < a.n_flipped < 4
    named = cf.correspondence_study(encoded_model, encoded, {"sex": ["Female", "Male"]}, only=True)
    assert named.decisions.columns.tolist() == ["sex=Female", "sex=Male"]
    assert named.n_people == 4
    with pytest.raises(InputError, match="'Femael' never occurs in column 'sex'"):
        cf.correspondence_study(encoded_model, encoded, {"sex": ["Femael", "Mael"]})
    with pytest.raises(InputError, match="'Widow' never occurs in column 'relationship'"):
        cf.correspondence_study(
            encoded_model, encoded, {"relationship": ["Husband", "Widow"]}, allow_new=True
        )


def test_new_values_only_when_allowed():
    with pytest.raises(InputError, match=r"'Femal' never occurs in column 'sex' \(did you mean 'Female'\?\)"):
        cf.correspondence_study(older_men, PEOPLE, {"sex": ["Femal", "Male"]})
    study = cf.correspondence_study(older_men, PEOPLE, {"sex": ["X", "Male"]}, allow_new=True)
    assert study.n_flipped == 3
    category = PEOPLE.astype({"sex": "category"})
    assert cf.correspondence_study(older_men, category, {"sex": ["X", "Male"]}, allow_new=True).n_flipped == 3
    polars = pl.from_pandas(PEOPLE)
    assert cf.correspondence_study(older_men, polars, {"sex": ["X", "Male"]}, allow_new=True).n_flipped == 3
    for table in (PEOPLE, polars):
        with pytest.raises(InputError, match=r"column 'age' .* cannot hold 0.5"):
            cf.correspondence_study(older_men, table, {"age": [0.5, 20]}, allow_new=True)


def test_chunks_bound_what_the_model_gets_and_change_nothing():
    sizes = []

    def model(table):
        sizes.append(len(table))
        return older_men(table)

    whole = cf.correspondence_study(older_men, PEOPLE, {"sex": None})
    chunked = cf.correspondence_study(model, PEOPLE, {"sex": None}, chunk_size=3)
    assert sizes == [3, 1, 3, 1]
    pd.testing.assert_frame_equal(whole.decisions, chunked.decisions)


def test_text_decisions_of_different_length_over_chunks():
    study = cf.correspondence_study(
        lambda t: t["sex"].str[: len(t)].to_numpy(str), PEOPLE, {"sex": None}, chunk_size=3
    )
    assert study.consistency == 0.0
    assert study.decisions["sex=Female"].tolist() == ["Fem", "Fem", "Fem", "F"]


def test_scores_need_a_tolerance():
    def scores(table):
        return table["age"] / 100 + 0.01 * (table["sex"] == "Male")

    with pytest.raises(ModelError, match="scores, not decisions"):
        cf.correspondence_study(scores, PEOPLE, {"sex": None})
    assert cf.correspondence_study(scores, PEOPLE, {"sex": None}, tolerance=0.02).consistency == 1.0
    assert cf.correspondence_study(scores, PEOPLE, {"sex": None}, tolerance=0.005).consistency == 0.0


def test_intervals_and_text():
    study = cf.correspondence_study(older_men, PEOPLE, {"sex": None})
    assert study.consistency in study.interval()
    assert "1 of 4 people" in str(study)
    assert "sex=Male" in str(study)


def test_scikit_learn_pipeline_on_a_frame():
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.tree import DecisionTreeClassifier

    encoder = make_column_transformer(
        (OneHotEncoder(), ["sex", "race", "relationship"]), remainder="passthrough"
    )
    model = make_pipeline(encoder, DecisionTreeClassifier(random_state=0)).fit(PEOPLE, older_men(PEOPLE))
    assert 0 <= cf.gender_race_consistency(model, PEOPLE).consistency <= 1


def test_missing_values_matter_only_where_columns_are_edited():
    holes = PEOPLE.assign(age=[20, np.nan, 40, 50])
    assert cf.correspondence_study(older_men, holes, {"sex": None}).n_people == 4
    holes = PEOPLE.assign(sex=["Male", None, "Male", "Female"])
    with pytest.raises(InputError, match=r"missing values: 'sex' \(1 of 4 rows, first at row 1\)"):
        cf.correspondence_study(older_men, holes, {"sex": None})


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ({"sexx": None}, "did you mean 'sex'"),
        ({"sex": "Male"}, "a list of values for 'sex', or 'all'"),
        ({"sex": ["Male"]}, "two or more are needed"),
        ({"sex": ["Male", "Male"]}, "two or more are needed"),
        ({}, "two or more are needed"),
        ([], "two or more are needed"),
        ("sex", "'edits' must be"),
        (3, "'edits' must be"),
        ([3.5], "'edits' must be"),
        ([Edit("sex"), [{"sex": "Male"}, {"sex": "Female"}]], "edits column 'sex' twice"),
        ([Edit("sex"), Edit("sex")], "edits column 'sex' twice"),
        ([{"sex": "Male"}, {"race": "Green"}], "'Green' never occurs in column 'race'"),
    ],
)
def test_bad_edits(edits, message):
    with pytest.raises(InputError, match=message):
        cf.correspondence_study(older_men, PEOPLE, edits)


def test_too_many_twins():
    frame = pd.DataFrame(
        {"a": range(150), "b": [i % 40 for i in range(150)], "c": [i % 30 for i in range(150)]}
    )
    with pytest.raises(InputError, match="too many to try all"):
        cf.correspondence_study(older_men, frame, {"a": None})
    with pytest.raises(InputError, match="1,200 combinations"):
        cf.correspondence_study(older_men, frame, {"b": None, "c": None})


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (lambda t: np.zeros(3), ModelError, "3 decisions for 4 rows"),
        (lambda t: np.zeros((4, 2)), ModelError, r"table of shape \(4, 2\)"),
        (lambda t: np.zeros((4, 1, 1)), ModelError, r"answer of shape \(4, 1, 1\)"),
        (lambda t: 1, ModelError, r"answer of shape \(\)"),
        (
            lambda t: [0, 1, None, 1],
            ModelError,
            r"no decision \(NaN or None\) for 1 of 4 rows, first at row 2",
        ),
        (lambda t: [0, 1, np.nan, 1], ModelError, "no decision"),
        (lambda t: [0.1] * 4, ModelError, "scores, not decisions"),
        ("model.onnx", InputError, "'model' must be an object with predict"),
        (dict, InputError, "the class dict"),
    ],
)
def test_bad_models(model, error, message):
    with pytest.raises(error, match=message):
        cf.correspondence_study(model, PEOPLE, {"sex": None})


def test_a_torch_module_is_told_how_to_come_in():
    import torch

    with pytest.raises(InputError, match="as_model"):
        cf.correspondence_study(torch.nn.Linear(1, 2), PEOPLE, {"sex": None})


def test_column_answers_are_flattened():
    study = cf.correspondence_study(lambda t: older_men(t)[:, None], PEOPLE, {"sex": None})
    assert study.n_flipped == 3


@pytest.mark.parametrize(
    ("frame", "kwargs", "message"),
    [
        (PEOPLE.iloc[:0], {}, "empty"),
        (pl.from_pandas(PEOPLE.iloc[:0]), {}, "empty"),
        (PEOPLE.to_numpy(), {}, "pandas, polars or arrow table"),
        (PEOPLE.rename(columns={"race": "sex"}), {}, "columns of the same name"),
        (PEOPLE, {"chunk_size": 0}, "'chunk_size' must be"),
        (PEOPLE, {"tolerance": -1}, "'tolerance' must be"),
        (PEOPLE, {"encode": 3}, "'encode' must be"),
    ],
)
def test_bad_frames_and_options(frame, kwargs, message):
    with pytest.raises(InputError, match=message):
        cf.correspondence_study(older_men, frame, {"sex": None}, **kwargs)
