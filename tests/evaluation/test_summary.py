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


def test_selection_rates_are_compared_if_the_favourable_decision_is_named(people):
    frame, y = people
    result = ev.evaluate(model, frame, y, sensitive_features="sex", favourable=1)
    rates = pd.Series(model(frame) == 1).groupby(frame["sex"].to_numpy()).mean()
    assert result["selection difference sex"].value == pytest.approx(np.ptp(rates))
    assert result["selection ratio sex"].value == pytest.approx(rates.min() / rates.max())
    equal = ev.evaluate(np.tile([0, 1], 300), frame.assign(sex=["F", "F", "M", "M"] * 150), y, favourable=1)
    assert equal["selection difference sex"].low == 0.0 < equal["selection difference sex"].high
    assert equal["selection ratio sex"].low < 1.0 == equal["selection ratio sex"].high


def test_a_column_with_one_group_has_no_gaps_and_that_is_said(people):
    frame, y = people
    result = ev.evaluate(model(frame), frame.assign(race="x"), y, sensitive_features=["sex", "race"])
    assert set(result.gaps) == {"sex"}
    assert "race: one group only" in str(result)


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
    result = ev.evaluate(model, frame, y, sensitive_features=["sex"], studies={"sex only": {"sex": None}})
    assert list(result.values) == ["accuracy", "balanced accuracy", "sex only", "Gap_RMS sex", "Gap_max sex"]
    crossed = ev.evaluate(model, frame, y, sensitive_features=[("sex", "race")])
    assert list(crossed.values)[2:] == ["S-Con", "GR-Con", "Gap_RMS sex × race", "Gap_max sex × race"]
    other = ev.evaluate(model, frame, y, sensitive_features=["sex", "relationship"])
    assert "consistency (sex × relationship)" in other.values
    none = ev.evaluate(model, frame, y, sensitive_features=[], studies={})
    assert list(none.values) == NAMES[:2]


def test_a_name_that_is_not_there_lists_those_that_are(people):
    frame, y = people
    with pytest.raises(KeyError, match="balanced accuracy"):
        ev.evaluate(model, frame, y)["bacc"]


def test_bad_input(people):
    frame, y = people
    for call, error, message in [
        (lambda: ev.evaluate(model, frame, y[:-1]), InputError, "lengths differ"),
        (lambda: ev.evaluate(y[:-1], frame, y[:-1]), InputError, "lengths differ"),
        (lambda: ev.evaluate(model, None, y), InputError, "'X' is None"),
        (lambda: ev.evaluate(y, None, y, sensitive_features=["sex"]), InputError, "'X' is None"),
        (lambda: ev.evaluate(model, frame, y, sensitive_features=["sexx"]), InputError, "did you mean 'sex'"),
        (lambda: ev.evaluate(model, frame, y * 0), InputError, "one class only"),
        (lambda: ev.evaluate(lambda t: [1], frame, y), ModelError, "1 decisions for 600 rows"),
        (lambda: ev.evaluate("model.pt", frame, y), InputError, "'model' must be"),
        (lambda: ev.evaluate(model, frame, y, confidence=95), InputError, "'confidence' must be"),
        (lambda: ev.evaluate(model, frame.assign(sex=None), y), InputError, "missing values: 'sex'"),
        (lambda: ev.evaluate(model, frame.iloc[:0], y[:0]), InputError, "empty"),
    ]:
        with pytest.raises(error, match=message):
            call()
