import numpy as np
import pandas as pd

from likewise.auditing.results.unfair_map import harm_by_value, harm_rules, make_unfair_map

RNG = np.random.default_rng(0)


def people(n=400):
    return pd.DataFrame(
        {
            "age": RNG.integers(18, 80, n),
            "job": RNG.choice(["a", "b", "c"], n),
            "sex": RNG.choice(["F", "M"], n),
            "hours": RNG.normal(40, 5, n),
        }
    )


def made(table, twins, harm):
    n = len(table)
    return make_unfair_map(
        table,
        twins,
        label=np.ones(n),
        loss=np.full(n, 0.1),
        twin_loss=0.1 + harm,
        decision=np.ones(n),
        twin_decision=np.where(harm > 0.5, 0, 1),
        squared_distance=np.zeros(n),
    )


def test_a_planted_group_is_found_by_rule_support_and_lift():
    table = people()
    inside = (table["job"] == "b") & (table["age"] > 50)
    harm = np.where(inside, 1.0, 0.0)
    first = harm_rules(table, harm)[0]
    assert first.support == inside.sum()
    assert first.mean_harm == 1.0
    assert first.lift == 1.0 / harm.mean()
    assert set(first.conditions) == {"job is b", "age > 50.5"} or "job is b" in first.conditions
    assert not harm_rules(table, np.zeros(len(table)))


def test_thresholds_on_one_column_become_one_interval():
    table = pd.DataFrame({"age": np.arange(100)})
    harm = ((table["age"] > 30) & (table["age"] <= 60)).to_numpy(float)
    assert harm_rules(table, harm)[0].conditions == ("30.5 < age ≤ 60.5",)


def test_harm_by_value_adds_up_to_everybody():
    table = people()
    harm = RNG.random(len(table))
    by_value = harm_by_value(table, harm, harm > 0.5)
    for _, part in by_value.groupby("column"):
        assert part["people"].sum() == len(table)
        np.testing.assert_allclose((part["people"] * part["mean_harm"]).sum() / len(table), harm.mean())


def test_changed_cells_are_named_and_counted():
    table = people(50)
    twins = table.copy()
    twins.loc[:9, "sex"] = np.where(table.loc[:9, "sex"] == "F", "M", "F")
    twins.loc[5:9, "age"] = table.loc[5:9, "age"] + 1
    twins["hours"] = table["hours"] * (1 + 1e-15)
    harm = np.where(np.arange(50) < 10, np.arange(50) / 10, 0.0)
    unfair = made(table, twins, harm)
    assert unfair.outcomes["changed"].tolist()[:10] == ["sex"] * 5 + ["age, sex"] * 5
    assert (unfair.outcomes["changed"][10:] == "").all()
    assert unfair.changes.set_index("column")["people"].to_dict() == {
        "sex": 10,
        "age": 5,
        "hours": 0,
        "job": 0,
    }
    assert unfair.top(3)["person"].tolist() == [9, 8, 7]
    assert unfair.flipped.sum() == 4
    assert unfair.frame.shape == (50, 9 + 4 + 4)


def test_people_whose_decision_changes_come_before_those_with_more_added_loss():
    table, harm = people(50), np.linspace(0.0, 2.0, 50)
    unfair = made(table, table, harm)
    unfair.outcomes["twin_decision"] = np.where(np.arange(50) == 3, 0, 1)
    assert unfair.top(2)["person"].tolist() == [3, 49]


def test_missing_cells_are_values_like_others():
    table = pd.DataFrame({"job": ["a", None, "b", None] * 25, "age": [1.0, np.nan, 2.0, 3.0] * 25})
    harm = np.where(table["job"].isna(), 1.0, 0.0)
    assert harm_rules(table[["job"]], harm)[0].support == 50
    unfair = made(table, table.copy(), harm)
    assert (unfair.outcomes["changed"] == "").all()
    assert unfair.by_value["people"].sum() == 200


def test_who_is_decided_differently_is_found_once():
    """Broke once: recomputed for every person in a sort key, 346 CPU-s instead of 28 for 41,108 people."""
    people = pd.DataFrame({"sex": ["F", "M"]})
    unfair = make_unfair_map(
        people, people, label=[1, 0], loss=[0.1, 0.2], twin_loss=[0.9, 0.2], decision=[1, 0],
        twin_decision=[0, 0], squared_distance=[0.0, 0.0],
    )  # fmt: skip
    assert unfair.flipped is unfair.flipped
    assert unfair.flipped.tolist() == [True, False]
