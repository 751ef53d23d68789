from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import likewise.evaluation as ev
from likewise.core.errors import InputError

Y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
P = np.array([0, 0, 0, 1, 1, 1, 0, 0])
G = np.array(["f", "f", "m", "m", "f", "f", "m", "m"])


def test_by_hand():
    gaps = ev.group_gaps(Y, P, G)
    assert gaps.tpr.loc["f"].tolist() == [1.0, 1.0]
    assert gaps.tpr.loc["m"].tolist() == [0.5, 0.0]
    assert gaps.per_class.tolist() == [0.5, 1.0]
    assert gaps.max == 1.0
    assert gaps.rms == pytest.approx(np.sqrt((0.25 + 1) / 2))
    assert gaps.counts.to_numpy().tolist() == [[2, 2], [2, 2]]


def test_order_of_groups_turns_the_sign_only():
    turned = ev.group_gaps(Y, P, G, groups=["m", "f"])
    assert turned.per_class.tolist() == [-0.5, -1.0]
    assert turned.groups == ("m", "f")
    assert (turned.rms, turned.max) == (ev.group_gaps(Y, P, G).rms, ev.group_gaps(Y, P, G).max)


def test_more_than_two_groups_report_the_worst_pair():
    y = np.array([0, 1] * 30)
    group = np.repeat(["a", "b", "c"], 20)
    p = y.copy()
    p[20:30] = 1 - p[20:30]  # b is right half of the time
    gaps = ev.group_gaps(y, p, group)
    assert len(gaps.pairs) == 3
    assert gaps.max == ev.group_gaps(y[:40], p[:40], group[:40]).max == 0.5
    assert gaps.rms == ev.group_gaps(y[:40], p[:40], group[:40]).rms
    assert (gaps.per_class >= 0).all()


def test_a_class_without_people_in_a_group_is_left_out_and_named():
    y, p, g = [0, 0, 1, 1], [0, 1, 1, 1], ["f", "m", "m", "m"]
    gaps = ev.group_gaps(y, p, g, attribute="sex")
    assert gaps.left_out == (("f", 1),)
    assert "sex: nobody of class 1 in group f" in str(gaps)
    assert (gaps.rms, gaps.max, gaps.per_class[0]) == (1.0, 1.0, 1.0)  # of class 0 alone
    assert np.isnan(gaps.per_class[1])
    rms, largest, known, unknown = gaps.measures()
    assert (rms.high, largest.high, known.high) == (1.0, 1.0, 1.0)
    assert np.isnan([unknown.value, unknown.low, unknown.high]).all()
    three = ev.group_gaps([*y, 0, 1], [*p, 0, 0], [*g, "x", "x"])
    assert (three.max, three.per_class[1]) == (1.0, 1.0)  # of "m" and "x", who have both classes
    assert three.rms == 1.0  # of "f" and "m", who share class 0
    evaluation = ev.evaluate(p, pd.DataFrame({"sex": g}), y)
    assert evaluation["Gap_max sex"].value == 1.0
    assert "nobody of class 1 in group f" in str(evaluation)


def test_nothing_left_is_unknown_and_not_fair():
    gaps = ev.group_gaps([0, 0, 1, 1], [0, 0, 1, 1], ["f", "f", "m", "m"])
    assert len(gaps.left_out) == 2
    assert np.isnan([gaps.rms, gaps.max, *gaps.per_class]).all()
    assert all(np.isnan([m.low, m.high]).all() for m in gaps.measures())


def test_measures_have_names_values_and_intervals():
    rng = np.random.default_rng(0)
    y, g = rng.integers(2, size=2000), rng.choice(["f", "m"], 2000)
    p = np.where(rng.random(2000) < np.where(g == "f", 0.7, 0.9), y, 1 - y)
    gaps = ev.group_gaps(y, p, g, attribute="sex")
    measures = gaps.measures()
    assert [m.name for m in measures] == [
        "Gap_RMS sex",
        "Gap_max sex",
        "Gap sex, class 0",
        "Gap sex, class 1",
    ]
    assert [m.value for m in measures] == pytest.approx([gaps.rms, gaps.max, *gaps.per_class])
    assert all(m.low < m.value < m.high for m in measures)
    assert measures == gaps.measures()
    assert measures[2].low < -0.2 < measures[2].high
    assert "Gap_RMS" in str(gaps)


def test_several_attributes_from_raw_and_encoded_frames():
    import polars as pl
    import pyarrow as pa

    frame = pd.DataFrame({"sex": G, "race": ["a", "b"] * 4})
    raw = ev.group_gaps_by_attribute(Y, P, frame, ["sex", "race"])
    assert raw["sex"].max == 1.0
    for other in (pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        again = ev.group_gaps_by_attribute(Y, P, other, ["sex", "race"])
        assert {k: v.rms for k, v in again.items()} == {k: v.rms for k, v in raw.items()}
    encoded = pd.DataFrame({"sex_m": (G == "m") * 1.0, "race_a": [1, 0] * 4, "race_b": [0, 1] * 4})
    again = ev.group_gaps_by_attribute(Y, P, encoded, ["sex", "race"])
    assert again["sex"].max == 1.0
    assert again["race"].rms == raw["race"].rms
    assert again["sex"].groups == ("m", "not m")


def test_crossed_attributes():
    frame = pd.DataFrame({"sex": G, "race": ["a", "b"] * 4})
    crossed = ev.group_gaps_by_attribute(Y, P, frame, [("sex", "race")])["sex × race"]
    assert crossed.groups == ("f × a", "f × b", "m × a", "m × b")
    assert crossed.max == 1.0


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"group": ["f"] * 8}, "one group only"),
        ({"group": ["f"] * 7}, "lengths differ"),
        ({"group": [*G[:7], None]}, "'group' has 1 missing"),
        ({"groups": ["f", "m", "x"]}, "group 'x' has no members"),
        ({"groups": ["f", "x"]}, "group 'x' has no members"),
        ({"groups": ["f"]}, "'groups' does not list"),
        ({"y_true": [1] * 8}, "one class only"),
        ({"y_pred": P[:7]}, "lengths differ"),
    ],
)
def test_bad_input(kwargs, message):
    with pytest.raises(InputError, match=message):
        ev.group_gaps(**{"y_true": Y, "y_pred": P, "group": G, **kwargs})


@pytest.mark.parametrize(
    ("frame", "attributes", "message"),
    [
        (pd.DataFrame({"sex": G}), ["sexx"], "did you mean 'sex'"),
        (pd.DataFrame({"sex": G}), "sex", "a list of column names"),
        (pd.DataFrame({"sex": [None, *G[1:]]}), ["sex"], "missing values: 'sex'"),
        (pd.DataFrame({"sex": G[:5]}), ["sex"], "lengths differ"),
        (pd.DataFrame({"sex": []}), ["sex"], "empty"),
        (pd.DataFrame({"sex_a": [0.5] * 8}), ["sex"], "not a one-hot"),
        (np.zeros((8, 1)), ["sex"], "pandas, polars or arrow table"),
    ],
)
def test_bad_frames(frame, attributes, message):
    with pytest.raises(InputError, match=message):
        ev.group_gaps_by_attribute(Y, P, frame, attributes)
