from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import likewise.counterfactuals as cf
import likewise.evaluation as ev
from likewise.core.errors import InputError, ModelError


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    n = 600
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "sex": rng.choice(["Female", "Male"], n),
            "race": rng.choice(["Non-White", "White"], n),
            "relationship": rng.choice(["Husband", "Wife", "Own-child"], n),
        }
    )
    y = (frame["age"] + rng.normal(0, 15, n) > 50).astype(int).to_numpy()
    return frame, y


def model(table):
    frame = table if isinstance(table, pd.DataFrame) else table.to_pandas()
    score = frame["age"] + 5 * (frame["sex"] == "Male") + 3 * (frame["relationship"] == "Husband")
    return (score > 52).astype(int).to_numpy()


NAMES = [
    "accuracy",
    "balanced accuracy",
    "S-Con",
    "GR-Con",
    "Gap_RMS sex",
    "Gap_max sex",
    "Gap_RMS race",
    "Gap_max race",
]


def test_the_papers_row_in_one_call(people):
    frame, y = people
    result = ev.evaluate(model, frame, y)
    assert list(result.values) == NAMES
    assert result["accuracy"].value == ev.accuracy(y, model(frame))
    assert result["S-Con"].value == cf.spouse_consistency(model, frame).consistency
    assert result["GR-Con"].value == cf.gender_race_consistency(model, frame).consistency
    assert result["Gap_max sex"].value == ev.group_gaps(y, model(frame), frame["sex"]).max
    assert all(m.low <= m.value <= m.high and m.low < m.high for m in result.measures)
    assert result.studies["S-Con"].n_flipped > 0
    assert set(result.gaps) == {"sex", "race"}
    assert [line.split("  ")[0] for line in str(result).splitlines()] == ["600 people", *NAMES]
    assert result.frame.loc["accuracy", "method"] == "exact"
    assert result.frame.loc["balanced accuracy", "method"] == "combined"
    assert result.frame.loc["Gap_max sex", "method"] == "simultaneous"


def test_same_seed_same_numbers_and_a_bootstrap_of_all_but_the_gaps(people):
    frame, y = people
    a, b = (ev.evaluate(model, frame, y, random_state=3, interval="bca") for _ in range(2))
    assert a.measures == b.measures
    assert set(a.frame.loc[NAMES[:4], "method"]) == {"bca"}
    assert set(a.frame.loc[NAMES[4:], "method"]) == {"simultaneous"}


def test_polars_and_encode(people):
    frame, y = people

    def encode(table):
        return table.to_pandas()

    result = ev.evaluate(model, pl.from_pandas(frame), y, encode=encode)
    assert result.values == ev.evaluate(model, frame, y).values


def test_predictions_have_accuracies_and_gaps_and_finished_studies(people):
    frame, y = people
    predictions = model(frame)
    assert list(ev.evaluate(predictions, None, y).values) == NAMES[:2]
    assert list(ev.evaluate(predictions, frame, y).values) == NAMES[:2] + NAMES[4:]
    study = cf.spouse_consistency(model, frame)
    with_study = ev.evaluate(predictions, frame, y, studies={"S-Con": study})
    assert with_study["S-Con"].value == study.consistency
    with pytest.raises(InputError, match="predictions alone do not tell"):
        ev.evaluate(predictions, frame, y, studies={"S-Con": {"sex": None}})


def test_own_attributes_and_studies(people):
    frame, y = people
    result = ev.evaluate(model, frame, y, attributes=["sex"], studies={"sex only": {"sex": None}})
    assert list(result.values) == ["accuracy", "balanced accuracy", "sex only", "Gap_RMS sex", "Gap_max sex"]
    crossed = ev.evaluate(model, frame, y, attributes=[("sex", "race")])
    assert list(crossed.values)[2:] == ["S-Con", "GR-Con", "Gap_RMS sex × race", "Gap_max sex × race"]
    other = ev.evaluate(model, frame, y, attributes=["sex", "relationship"])
    assert "consistency (sex × relationship)" in other.values
    none = ev.evaluate(model, frame, y, attributes=[], studies={})
    assert list(none.values) == NAMES[:2]


def test_unknown_intervals_are_shown_as_unknown():
    y = np.array([0] * 50 + [1])
    assert "unknown" in str(ev.evaluate(y, None, y, interval="percentile"))


def test_a_name_that_is_not_there_lists_those_that_are(people):
    frame, y = people
    with pytest.raises(KeyError, match="balanced accuracy"):
        ev.evaluate(model, frame, y)["bacc"]


def test_bad_input(people):
    frame, y = people
    for call, error, message in [
        (lambda: ev.evaluate(model, frame, y[:-1]), InputError, "lengths differ"),
        (lambda: ev.evaluate(y[:-1], frame, y[:-1]), InputError, "lengths differ"),
        (lambda: ev.evaluate(model, None, y), InputError, "'frame' is None"),
        (lambda: ev.evaluate(y, None, y, attributes=["sex"]), InputError, "'frame' is None"),
        (lambda: ev.evaluate(model, frame, y, attributes=["sexx"]), InputError, "did you mean 'sex'"),
        (lambda: ev.evaluate(model, frame, y * 0), InputError, "one class only"),
        (lambda: ev.evaluate(lambda t: [1], frame, y), ModelError, "1 decisions for 600 rows"),
        (lambda: ev.evaluate("model.pt", frame, y), InputError, "'model' must be"),
        (
            lambda: ev.evaluate(model, frame, y, interval="exact"),
            InputError,
            "'interval' must be one of 'auto'",
        ),
        (lambda: ev.evaluate(model, frame.assign(sex=None), y), InputError, "missing values: 'sex'"),
        (lambda: ev.evaluate(model, frame.iloc[:0], y[:0]), InputError, "empty"),
    ]:
        with pytest.raises(error, match=message):
            call()
