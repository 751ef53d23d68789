"""Twins: every combination, own dtypes, encoded columns rewritten together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.auditing.editable_rows import editable_rows, plan_candidates
from likewise.core.errors import InputError
from likewise.counterfactuals.edits import Edit, read_edits
from likewise.data import TabularDomain


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "age": pd.array([30, 40, 50], dtype="Int64"),
            "job": pd.Categorical(
                ["cook", "nurse", "cook"], categories=["nurse", "cook", "clerk"], ordered=True
            ),
            "sex": ["F", "M", "F"],
            "vet": [True, False, False],
        }
    )


def raw(frame, domain=None):
    return editable_rows(frame, domain and domain.encoding_, raw=True)


def plan_of(people, edits, **choices):
    return plan_candidates(people, read_edits(edits, owner="audit"), **choices)


def test_all_combinations_but_the_own_one(frame):
    plan = plan_of(raw(frame), ["sex", "vet"])
    twins = plan.take(np.arange(len(plan)))
    assert len(plan) == 3 + 3 * 3
    pd.testing.assert_frame_equal(twins[:3], frame)
    for row in range(3):
        mine = twins[plan.source == row]
        assert len(mine[["sex", "vet"]].drop_duplicates()) == 4
        assert (mine["age"] == frame["age"][row]).all()
    assert twins.dtypes.equals(frame.dtypes)


def test_categories_of_the_dtype_survive(frame):
    plan = plan_of(raw(frame), {"job": ["clerk", "cook"]})
    twins = plan.take(np.arange(3, len(plan)))
    assert twins["job"].dtype == frame["job"].dtype
    assert sorted(twins["job"].astype(str)) == ["clerk", "clerk", "clerk", "cook"]


def test_numbers_to_try_must_be_listed_and_fit_the_column(frame):
    plan = plan_of(raw(frame), {"age": [30, 60]})
    assert plan.take([3, 4, 5, 6, 7])["age"].tolist() == [30, 30, 60, 60, 60]
    with pytest.raises(InputError, match="cannot hold"):
        plan_of(raw(frame), {"age": ["old"]})
    with pytest.raises(InputError, match="a list of values"):
        plan_of(raw(frame), {"sex": "F"})


def test_a_number_with_many_values_takes_its_quartiles():
    frame = pd.DataFrame({"age": np.arange(101), "sex": ["F", "M"] * 50 + ["F"]})
    domain = TabularDomain.from_frame(frame)
    assert plan_of(raw(frame), ["age"]).fields[0].values == (0, 25, 50, 75, 100)
    people = editable_rows(domain.encode_array(frame), domain.encoding_, raw=False)
    plan = plan_of(people, ["age"])
    assert plan.fields[0].values == (0, 25, 50, 75, 100)
    assert len(plan) == 101 + 5 * 101 - 5
    ages = domain.decode(plan.take(np.arange(101, len(plan))))["age"]
    assert ages.value_counts().to_dict() == dict.fromkeys((0, 25, 50, 75, 100), 100)


def test_encoded_rows_are_the_encoded_twins():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 30, 40),
            "job": rng.choice(["a", "b", "c"], 40),
            "sex": rng.choice(["F", "M"], 40),
        }
    )
    domain = TabularDomain.from_frame(frame)
    encoded = domain.encode(frame)
    asked = ["sex", Edit("job", ["c", "a"]), Edit("age", [20, 25])]
    before = plan_of(raw(frame, domain), asked)
    people = editable_rows(encoded.to_numpy(), domain.encoding_, raw=False)
    after = plan_of(people, asked)
    np.testing.assert_array_equal(before.source, after.source)
    every = np.arange(len(before))
    np.testing.assert_allclose(after.take(every), domain.encode_array(before.take(every)), atol=1e-12)
    np.testing.assert_array_equal(after.take(np.arange(40)), encoded.to_numpy())


def test_too_many_combinations_are_refused():
    frame = pd.DataFrame({f"c{k}": list("abcdefgh") for k in range(4)})
    with pytest.raises(InputError, match="4,096 combinations"):
        plan_of(raw(frame), list(frame))


def test_only_the_sensitive_columns_means_those_that_were_named():
    """Broke once: on a narrow table the learned metric made every column free, and all counted as sensitive."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"sex": np.repeat(["f", "m"], 20), "skill": rng.normal(size=40)})
    with pytest.warns(UserWarning, match="everybody is comparable"):
        metric = lw.AttributeSubspace(["sex"]).fit(people).metric_

    def by_skill(frame):
        return 1 / (1 + np.exp(-4 * frame["skill"].to_numpy()))

    found = lw.audit(by_skill, people, (people["skill"] > 0).astype(int), metric=metric, eps=0.0)
    assert found.settings["sensitive"] == ["sex"]
    assert (found.sensitive.columns, found.sensitive.changed) == (("sex",), 0.0)
    assert found.flipped == 1.0  # everything is free, and everybody finds somebody decided differently


def test_free_columns_that_nobody_named_do_not_stop_an_audit_by_their_combinations():
    """Broke once, on COMPAS: race and sex made age and priors free, with 5,280 combinations to exchange."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame({name: rng.choice(list("abcdefghijkl"), 60) for name in ("town", "job", "club")})
    people = people.assign(sex=["f", "m"] * 30, age=rng.normal(size=60))
    told = lw.ExpertSubspace(["sex", "town", "job", "club"]).fit(people).metric_
    metric = replace(told, sensitive_features=("sex",))  # as a learned one that takes everything

    def by_town(frame):
        return np.where(frame["town"] < "e", 0.3, 0.8)

    found = lw.audit(by_town, people, np.arange(60) % 2, metric=metric, eps=0.0, search="candidates")
    assert found.sensitive.columns == ("sex",)
    assert any("town, job and club free" in line for line in found.assumptions)
