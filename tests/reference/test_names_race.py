"""BISG and BIFSG beside the formulas by hand and beside the answers of pyethnicity 0.0.27 (bisg6, bifsg6), which were kept."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from likewise.datasets.names_race import RACES, names_race
from likewise.proxies import group_probabilities

KEPT = Path(__file__).with_name("names_race.csv")


@pytest.fixture(scope="module")
def kept():
    return pd.read_csv(KEPT, dtype={"zip": str})


@pytest.mark.parametrize(("by", "suffix"), [("bisg:surname,zip", ""), ("bifsg:surname,first,zip", "_first")])
def test_two_hundred_people_have_the_probabilities_of_pyethnicity(kept, by, suffix):
    found = group_probabilities(kept, by)
    theirs = kept[[f"{race}{suffix}" for race in RACES]].to_numpy(float)
    # Two pairs of names exclude every group between them: pyethnicity has no answer.
    known = ~np.isnan(theirs).any(axis=1)
    assert (~known).sum() == (2 if suffix else 0) == found.matched["contradicts"].sum()
    off = np.abs(found.table.to_numpy() - theirs)[known]
    # Areas are kept in hundredths of a person, so small ones are rounded.
    assert off.max() < 2e-4
    assert off.mean() < 2e-5
    assert found.matched["unknown"].sum() == 0


def test_the_formulas_by_hand():
    tables = names_race()
    s = tables.race_given_surname.chances[tables.race_given_surname.values.get_loc("WASHINGTON")]
    f = tables.first_given_race.chances[tables.first_given_race.values.get_loc("JAMES")]
    g = tables.area_given_race.chances[tables.area_given_race.values.get_loc("60619")]
    person = pd.DataFrame({"s": ["Washington"], "f": ["JAMES"], "g": [60619]})
    for by, product in (("bisg:s,g", s * g), ("bifsg:s,f,g", s * f * g)):
        found = group_probabilities(person, by).table.to_numpy()[0]
        np.testing.assert_allclose(found, product / product.sum(), rtol=1e-12)
    assert s.argmax() == 1


def test_the_areas_of_a_group_sum_to_one_and_so_do_the_groups():
    tables = names_race()
    np.testing.assert_allclose(tables.area_given_race.chances.sum(0), 1.0)
    np.testing.assert_allclose(tables.race_given_surname.chances.sum(1), 1.0, atol=3e-4)
    np.testing.assert_allclose(tables.race.sum(), 1.0)
    assert len(tables.race_given_surname.values) == 162_253
