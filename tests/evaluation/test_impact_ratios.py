"""Local Law 144's tables: a hand-computed example, fairlearn's rates, and the rules about small and unknown categories."""

import numpy as np
import pandas as pd
import pytest

from likewise.core.errors import InputError
from likewise.evaluation import above_median, impact_ratios, impact_tables


def by_category(table):
    return {row.category: (row.people, row.selected, row.rate, row.impact_ratio) for row in table.rows}


@pytest.fixture(scope="module")
def applicants():
    """As many applicants as the hand-computed example below says, one a row."""
    counts = {
        ("Male", "White"): (50, 30),
        ("Male", "Black"): (40, 12),
        ("Female", "White"): (60, 27),
        ("Female", "Black"): (30, 6),
        ("Female", "Asian"): (2, 2),
    }
    rows = [
        {"sex": sex, "race": race, "selected": i < taken}
        for (sex, race), (people, taken) in counts.items()
        for i in range(people)
    ]
    return pd.DataFrame(rows)


def test_the_tables_are_those_computed_by_hand(applicants):
    sex, race, both = impact_tables(applicants["selected"], applicants, ["sex", "race"])
    # By hand: 42 of 90 men, 35 of 92 women; the ratio is (35/92) / (42/90).
    assert by_category(sex) == {
        "Male": (90, 42, 42 / 90, 1.0),
        "Female": (92, 35, 35 / 92, pytest.approx(0.815217, abs=1e-6)),
    }
    # Two Asian applicants are 1.1% of 182: counted and rated, and never the highest category.
    assert by_category(race) == {
        "White": (110, 57, 57 / 110, 1.0),
        "Black": (70, 18, 18 / 70, pytest.approx((18 / 70) / (57 / 110))),
        "Asian": (2, 2, 1.0, None),
    }
    assert by_category(both) == {
        "Male × White": (50, 30, 0.6, 1.0),
        "Male × Black": (40, 12, 0.3, pytest.approx(0.5)),
        "Female × White": (60, 27, 0.45, pytest.approx(0.75)),
        "Female × Black": (30, 6, 0.2, pytest.approx(1 / 3)),
        "Female × Asian": (2, 2, 1.0, None),
    }
    assert race.notes == ("Excluded from the impact ratios, each with less than 2% of the people: Asian.",)


def test_rates_are_fairlearns(applicants):
    fairlearn = pytest.importorskip("fairlearn.metrics")
    rng = np.random.default_rng(0)
    frame = applicants.sample(frac=1, random_state=0).reset_index(drop=True)
    selected = rng.random(len(frame)) < np.where(frame["sex"] == "Male", 0.6, 0.3)
    for columns, table in zip(
        (["sex"], ["race"], ["sex", "race"]),
        impact_tables(selected, frame, ["sex", "race"], small_share=0),
        strict=True,
    ):
        theirs = fairlearn.MetricFrame(
            metrics=fairlearn.selection_rate,
            y_true=selected,
            y_pred=selected,
            sensitive_features=frame[columns],
        )
        # Crossings without people are NaN with fairlearn, and have no row here.
        rates = theirs.by_group.dropna()
        names = [" × ".join(name if isinstance(name, tuple) else (name,)) for name in rates.index]
        assert {row.category: row.rate for row in table.rows} == pytest.approx(
            dict(zip(names, rates, strict=True))
        )
        assert min(row.impact_ratio for row in table.rows) == pytest.approx(theirs.ratio())


def test_scores_are_rated_by_the_median_of_the_whole_sample():
    scores = np.array([1, 2, 3, 4, 5, 6, 7, 8.0])
    group = np.array(["a", "b", "b", "a", "a", "a", "b", "b"])
    table = impact_ratios(above_median(scores), group, kind="scoring")
    # The median is 4.5: above it are 5, 6 of a's 1, 4, 5, 6 and 7, 8 of b's 2, 3, 7, 8.
    assert by_category(table) == {"a": (4, 2, 0.5, 1.0), "b": (4, 2, 0.5, 1.0)}
    assert above_median([1.0, 1.0, 1.0]).sum() == 0


def test_unknown_people_are_counted_and_are_in_no_rate():
    frame = pd.DataFrame({"sex": ["f", "m", None, "f"], "race": ["a", None, "a", np.nan]})
    sex, race, both = impact_tables([1, 1, 1, 0], frame, ["sex", "race"])
    assert (sex.unknown, race.unknown, both.unknown) == (1, 2, 3)
    assert by_category(sex) == {"f": (2, 1, 0.5, 0.5), "m": (1, 1, 1.0, 1.0)}
    assert by_category(both) == {"f × a": (1, 1, 1.0, 1.0)}
    assert "3 of unknown category" in str(both)


def test_nobody_selected_gives_no_ratio_and_says_so():
    table = impact_ratios([0, 0, 0], ["a", "b", "b"])
    assert [row.impact_ratio for row in table.rows] == [None, None]
    assert "no impact ratios" in table.notes[-1]


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: impact_ratios([0.5, 1], ["a", "b"]), "'selected' must be True or False"),
        (lambda: impact_ratios([0, 1], ["a"]), "lengths differ"),
        (lambda: impact_ratios([0, 1], ["a", "b"], small_share=2), "'small_share'"),
        (lambda: impact_tables([1], pd.DataFrame({"sex": ["f"]}), ["sexx"]), "did you mean 'sex'"),
        (lambda: impact_tables([1], pd.DataFrame({"sex": ["f"]}), "sex"), "list of columns"),
        (lambda: above_median([1.0, np.nan]), "finite numbers"),
    ],
)
def test_bad_input_is_said_in_words(call, match):
    with pytest.raises(InputError, match=match):
        call()
