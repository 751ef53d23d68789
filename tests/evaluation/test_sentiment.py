from __future__ import annotations

import numpy as np
import pytest

import likewise.evaluation as ev
from likewise.core.errors import InputError

SCORES = np.array([3.0, 1.0, 0.0, 2.0])
RACE = ["Caucasian", "Caucasian", "African-American", "African-American"]
GENDER = ["female", "male", "female", "male"]


def test_sign_is_caucasian_minus_african_american_and_female_minus_male():
    gaps = ev.sentiment_gaps(SCORES + np.array([0, 0, 0, 4]), RACE, GENDER, [1.0, 3.0])
    assert gaps.race.value == 2.0 - 3.0
    assert gaps.gender.value == 1.5 - 3.5
    assert gaps.cuisine.value == -2.0
    assert gaps.absolute == {"race gap": 1.0, "gender gap": 2.0, "cuisine gap": 2.0}


@pytest.mark.parametrize(
    ("race", "gender"),
    [(["white", "white", "black", "black"], ["F", "M", "F", "M"]), ([0, 0, 1, 1], [0, 1, 0, 1])],
)
def test_the_usual_words_are_known(race, gender):
    a, b = ev.sentiment_gaps(SCORES, race, gender), ev.sentiment_gaps(SCORES, RACE, GENDER)
    assert (a.race, a.gender) == (b.race, b.gender)


def test_other_words_need_an_order():
    with pytest.raises(InputError, match=r"Pass race_order=\(first, second\)"):
        ev.sentiment_gaps(SCORES, ["p", "p", "q", "q"], GENDER)
    gaps = ev.sentiment_gaps(SCORES, ["p", "p", "q", "q"], GENDER, race_order=("q", "p"))
    assert gaps.race.value == -1.0
    with pytest.raises(InputError, match="'race_order' must be the two values"):
        ev.sentiment_gaps(SCORES, ["p", "p", "q", "q"], GENDER, race_order=("x", "p"))


def test_logits_are_turned_into_differences():
    logits = np.stack([np.ones(4), SCORES + 1], axis=1)
    sentences = np.array([[0.0, 1.0], [0.0, -1.0]])
    gaps = ev.sentiment_gaps(logits, RACE, GENDER, sentences)
    assert gaps.race.value == ev.sentiment_gaps(SCORES, RACE, GENDER).race.value
    assert gaps.cuisine.value == 2.0


def test_one_pair_of_sentences_has_no_interval_several_have():
    one = ev.sentiment_gaps(SCORES, RACE, GENDER, [2.0, 1.0]).cuisine
    assert np.isnan(one.low)
    assert one.value == 1.0
    several = ev.sentiment_gaps(SCORES, RACE, GENDER, [[2.0, 1.0], [3.0, 1.0], [1.0, 1.0]]).cuisine
    assert several.low < several.value == 1.0 < several.high
    assert np.isnan(ev.sentiment_gaps(SCORES, RACE, GENDER).cuisine.value)


def test_intervals_hold_the_gap_and_repeat():
    rng = np.random.default_rng(0)
    a, b = rng.normal(1, 1, 49), rng.normal(0, 1, 45)
    first = ev.sentiment_gap_interval(a, b)
    assert ev.sentiment_gap(a, b) in first
    assert first == ev.sentiment_gap_interval(a, b)
    # The textbook interval of a difference in means, to two decimals or so.
    half = 1.96 * np.sqrt(a.var() / len(a) + b.var() / len(b))
    assert first.high - first.low == pytest.approx(2 * half, rel=0.1)


def test_tensors_and_text():
    import torch

    gaps = ev.sentiment_gaps(torch.tensor(SCORES), RACE, GENDER, torch.tensor([1.0, 0.0]))
    assert gaps.race.value == 1.0
    assert "race gap" in str(gaps)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"scores": SCORES[:3]}, "lengths differ"),
        ({"scores": []}, "'scores'"),
        ({"scores": [1.0, np.nan, 0.0, 1.0]}, "not finite at row 1"),
        ({"scores": np.zeros((4, 3))}, r"shape \(4, 3\)"),
        ({"race": ["white"] * 4}, "one class only"),
        ({"gender": ["f", "m", "f", None]}, "missing label"),
        ({"sentences": [1.0, 2.0, 3.0]}, "'sentences' must be"),
        ({"sentences": [1.0, np.inf]}, "'sentences' is not finite"),
    ],
)
def test_bad_input(kwargs, message):
    with pytest.raises(InputError, match=message):
        ev.sentiment_gaps(**{"scores": SCORES, "race": RACE, "gender": GENDER, **kwargs})
