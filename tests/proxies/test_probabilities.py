"""Groups by probability: spellings, what is not found, other tables, calibration, odd input."""

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.datasets.names_race import RACES, names_race
from likewise.proxies.probabilities import group_probabilities, name_spellings, zip_spellings


@pytest.mark.parametrize(
    ("name", "best"),
    [
        ("García", "GARCIA"),
        ("O'Brien", "OBRIEN"),
        ("O’Brien", "OBRIEN"),
        ("smith jr.", "SMITH"),
        ("Smith, III", "SMITH"),
        ("Łukasz", "LUKASZ"),
        ("Sørensen", "SORENSEN"),
        ("Weiß", "WEISS"),
        ("  de la Cruz ", "DELACRUZ"),
        ("王", "王"),
    ],
)
def test_names_are_compared_in_plain_capitals(name, best):
    assert name_spellings(name)[0] == best


@pytest.mark.parametrize("nothing", [None, np.nan, pd.NA, "", "  ", "-", 7])
def test_a_cell_without_letters_is_empty(nothing):
    assert name_spellings(nothing) == ()


@pytest.mark.parametrize(
    ("place", "read"),
    [
        ("02139", "02139"),
        ("2139", "02139"),
        (2139, "02139"),
        (2139.0, "02139"),
        (501, "00501"),
        ("02139-1234", "02139"),
        ("2139-1234", "02139"),
        ("021391234", "02139"),
        (21391234, "02139"),
        (np.int64(10001), "10001"),
        ("SW1A 1AA", "SW1A 1AA"),
    ],
)
def test_zip_codes_are_read_as_spreadsheets_leave_them(place, read):
    assert zip_spellings(place) == (read,)


def test_what_was_not_found_is_said_and_has_the_shares_of_names_that_are_not_listed():
    people = pd.DataFrame(
        {"s": ["Garcia", "Xqzvwy", "Smith-Xqzvwy", None, "王"], "z": ["10001", "10001", "10001", "00000", ""]}
    )
    found = group_probabilities(people, "bisg:s,z")
    assert found.matched.loc["s"].tolist() == [1, 1, 2, 1, 0]
    assert found.matched.loc["z"].tolist() == [3, 0, 1, 1, 0]
    np.testing.assert_allclose(found.table.sum(axis=1), 1.0)
    tables = names_race()
    area = tables.area_given_race.chances[tables.area_given_race.values.get_loc("10001")]
    others = tables.race_given_surname.others * area
    np.testing.assert_allclose(found.table.to_numpy()[1], others / others.sum())
    np.testing.assert_allclose(found.table.to_numpy()[3], tables.race)
    assert found.informed.tolist() == [True, True, True, False, False]
    assert "Xqzvwy" not in repr(found)
    assert "Xqzvwy" not in str(found)


def test_an_area_alone_gives_the_shares_of_its_people():
    tables = names_race()
    area = tables.area_given_race.chances[tables.area_given_race.values.get_loc("60619")] * tables.race
    found = group_probabilities(pd.DataFrame({"s": [None], "z": ["60619"]}), "bisg:s,z")
    np.testing.assert_allclose(found.table.to_numpy()[0], area / area.sum())


def test_any_table_of_probabilities_can_be_used():
    names = pd.DataFrame({"a": [0.9, 0.2], "b": [0.1, 0.8]}, index=["Ann", "Bo"])
    towns = pd.DataFrame({"b": [0.5, 0.7], "a": [0.5, 0.3]}, index=[1, 2])
    people = pd.DataFrame({"name": ["Ann", "Bo", "Cy"], "town": [1.0, 2.0, 9.0]})
    one = group_probabilities(people, {"name": names})
    np.testing.assert_allclose(one.table["a"], [0.9, 0.2, 0.55])
    both = group_probabilities(people, {"name": names, "town": towns}, shares={"a": 0.5, "b": 0.5})
    # By Bayes: the odds of each table over the shares it was made with, times the shares.
    odds = (0.9 / 0.1) / (0.55 / 0.45) * (0.5 / 0.5) / (0.4 / 0.6)
    np.testing.assert_allclose(both.table["a"].iloc[0], odds / (1 + odds))


def test_calibration_brings_back_the_shares_and_sharpness_of_a_population():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 4000)
    truth = p**0.5 * [1.0, 2.0, 0.5]
    truth /= truth.sum(1, keepdims=True)
    group = (rng.uniform(size=(4000, 1)) > truth.cumsum(1)).sum(1)
    known = np.where(rng.uniform(size=4000) < 0.5, np.array(["x", "y", "z"], object)[group], None)
    found = group_probabilities(pd.DataFrame(p, columns=list("xyz"))).calibrated(known)
    assert np.abs(found.table.to_numpy() - truth).mean() < 0.02 < np.abs(p - truth).mean()
    assert "calibrated on" in found.how


@pytest.mark.parametrize(
    ("table", "by", "words"),
    [
        ({"s": ["a"]}, "bisg:s", "bisg:surname,zip"),
        ({"s": ["a"]}, "bisg:s,zipp", "no column 'zipp'"),
        ({"s": ["a"]}, "surgeo:s,z", "one of"),
        ({"s": ["a"]}, None, "without 'by'"),
        ({"a": [0.5], "b": [0.6]}, None, "sum to 1"),
        ({"s": []}, "sex:s", "no rows"),
        ({"s": ["a"]}, {"s": [1]}, "DataFrame of P"),
    ],
)
def test_what_cannot_be_used_is_said(table, by, words):
    with pytest.raises(lw.InputError, match=words):
        group_probabilities(pd.DataFrame(table), by)


def test_known_groups_must_be_groups_of_the_table():
    found = group_probabilities(pd.DataFrame({"a": [0.5] * 60, "b": [0.5] * 60}))
    with pytest.raises(lw.InputError, match="one of"):
        found.calibrated(["c"] * 60)
    with pytest.raises(lw.InputError, match="at least 50"):
        found.calibrated([None] * 59 + ["a"])
    assert RACES[0] == "white"
