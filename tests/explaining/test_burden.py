"""The burden of those refused: planted differences are found, and models that cannot differ are proved not to."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import likewise as lw
from likewise.core.errors import InputError, UnfairError
from likewise.explaining import burden
from likewise.explaining.burden import _Solved, _Store, median_interval
from likewise.explaining.situation import ExplanationRequest


def people(n=160, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {"hours": rng.integers(10, 60, n), "skill": rng.integers(0, 10, n), "sex": rng.choice(["F", "M"], n)}
    )


class Planted:
    """Women need 40 hours, men 30: a function that can only be asked."""

    classes_ = np.array([0, 1])

    def predict(self, table):
        return (table["hours"] >= np.where(table["sex"] == "F", 40, 30)).astype(int).to_numpy()


def planted_tree(table):
    coded = table.assign(sex=(table.sex == "M").astype(int))
    grid = pd.DataFrame(
        [(h, s, m) for h in range(10, 61) for s in range(10) for m in (0, 1)], columns=coded.columns
    )
    return DecisionTreeClassifier().fit(grid, grid.hours >= np.where(grid.sex == 0, 40, 30)), coded


def test_a_planted_difference_is_found_and_proved():
    model, table = planted_tree(people())
    found = lw.recourse(model, table, sensitive_features=["sex"], favourable=True)
    assert found.proved == 1.0
    women, men = found.burden
    assert (women.dearer.value, women.cheaper.value) == (1.0, 0.0)
    assert (men.dearer.value, men.cheaper.value) == (0.0, 1.0)
    low, high = np.quantile(table.hours, [0.1, 0.9])
    refused = found.people.merge(table, left_on="row", right_index=True, suffixes=("", "_own"))
    needed = np.where(refused.sex == 0, 40, 30) - refused.hours
    np.testing.assert_allclose(refused.cost, needed / (high - low))
    other = np.maximum(np.where(refused.sex == 0, 30, 40) - refused.hours, 0)
    np.testing.assert_allclose(refused.difference, (other - needed) / (high - low))
    found.raise_if_unfair(1.0)
    with pytest.raises(UnfairError, match="of those refused have a counterpart"):
        found.raise_if_unfair(0.99)
    with pytest.raises(InputError, match="sensitive_features"):
        lw.recourse(model, table[:20], favourable=True).raise_if_unfair(0.5)


def test_a_model_that_can_only_be_asked_gives_estimates():
    table = people()
    found = lw.recourse(Planted().predict, table, sensitive_features=["sex"], favourable=1, sample=6)
    assert set(found.people.status) == {"estimate"}
    assert found.proved == 0.0
    assert not found.people.exact.any()
    low, high = np.quantile(table.hours, [0.1, 0.9])
    mine = found.people.merge(table, left_on="row", right_index=True, suffixes=("", "_own"))
    np.testing.assert_allclose(mine.cost, (np.where(mine.sex == "F", 40, 30) - mine.hours) / (high - low))


@pytest.mark.parametrize("kind", ["consensus", "boosting"])
def test_models_that_cannot_differ_are_proved_not_to(kind):
    table = people()
    y = (table.hours + 3 * table.skill + 8 * (table.sex == "M") > 50).astype(int)
    if kind == "boosting":
        model = lw.FairBoostingClassifier(sensitive_features=["sex"], n_estimators=8).fit(table, y)
    else:
        coded = table.assign(sex=(table.sex == "M").astype(int))
        table = coded
        model = lw.TwinConsensus(
            LogisticRegression(max_iter=500).fit(coded, y), sensitive_features=["sex"]
        ).fit(coded)
    found = lw.recourse(model, table, sensitive_features=["sex"], favourable=1, sample=5)
    assert (found.people.difference == 0.0).all()
    assert found.people.exact.all()
    assert found.unequal.value == 0.0
    one = lw.explain(model, table, found.people.row[0], sensitive_features=["sex"], favourable=1)
    assert [(twin.difference, twin.exact) for twin in one.counterparts] == [(0.0, True)]


def test_parts_and_resuming_give_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr("likewise.explaining.burden.PART", 10)
    model, table = planted_tree(people())
    asked = {"sensitive_features": ["sex"], "favourable": True}
    whole = lw.recourse(model, table, **asked)
    for k in (1, 2, 3):
        lw.recourse(model, table, **asked, folder=tmp_path, part=(k, 3))
    monkeypatch.setattr("likewise.explaining.burden._solve", None)
    pd.testing.assert_frame_equal(lw.recourse(model, table, **asked, folder=tmp_path).people, whole.people)


def test_a_reading_that_is_withdrawn_proves_nothing_of_any_part(tmp_path, monkeypatch):
    """A run that was resumed, and one that did other parts, kept what was read off before."""
    monkeypatch.setattr("likewise.explaining.burden.PART", 10)
    model, table = planted_tree(people(40))
    asked = {"sensitive_features": ["sex"], "favourable": True, "budget_seconds": 0.01, "folder": tmp_path}
    assert set(lw.recourse(model, table, **asked, part=(1, 2)).people.status) == {"proved"}
    solve = burden._solve

    def denied_or_stopped(situation, numbers):
        if situation.reader is None:
            raise KeyboardInterrupt
        situation.withdraw()
        return solve(situation, numbers)

    monkeypatch.setattr(burden, "_solve", denied_or_stopped)
    assert lw.recourse(model, table, **asked, part=(2, 2)).stopped
    monkeypatch.setattr(burden, "_solve", solve)
    for again in (1, 2):
        whole = lw.recourse(model, table, **asked)
        assert set(whole.people.status) <= {"estimate", "not found"}, again
        assert whole.settings["engine"] == "search"
        assert len(whole.people) == whole.refused


@pytest.mark.parametrize("readable", [True, False])
def test_parts_of_another_model_are_refused(tmp_path, readable):
    """Models that decide alike about everybody in the table, and otherwise about what people are told to become."""
    table = pd.DataFrame({"hours": np.r_[10:30, 45:60], "sex": np.arange(35) % 2})

    def model(needed):
        if not readable:
            return lambda rows: (rows["hours"] >= needed).astype(int)
        grid = pd.DataFrame({"hours": np.repeat(np.arange(10, 60), 2), "sex": np.arange(100) % 2})
        return DecisionTreeClassifier(random_state=0).fit(grid, (grid.hours >= needed).astype(int))

    asked = {"sensitive_features": ["sex"], "favourable": 1, "folder": tmp_path, "sample": 3}
    first = lw.recourse(model(33), table, **asked)
    pd.testing.assert_frame_equal(lw.recourse(model(33), table, **asked).people, first.people)
    with pytest.raises(InputError, match="another model"):
        lw.recourse(model(38), table, **asked)
    with pytest.raises(InputError, match="another model, table or setting"):
        lw.recourse(model(33), table, **asked, budget_seconds=9.0)


@pytest.mark.parametrize("how", ["cut", "noise", "text", "empty", "others", "narrow", "status"])
def test_a_damaged_part_is_named(tmp_path, how):
    """A cut archive was unforeseen, and one about other people was believed."""
    situation = SimpleNamespace(
        **{
            "owner": "recourse",
            "people": np.zeros((9, 3)),
            "digest": "",
            "reader": object(),
            "favourable": 1,
        },
        settings={},
        request=ExplanationRequest(),
    )
    numbers, cells = np.array([2, 5, 7]), np.zeros((3, 2))
    store = _Store(tmp_path, situation, numbers)
    store.write(
        0, _Solved(numbers, cells, cells, cells.astype(int), np.zeros((3, 2, 3)), np.zeros((3, 2, 3)))
    )
    assert store.read(0, numbers).costs.shape == (3, 2)
    (part,) = tmp_path.glob("read-*.npz")
    data, arrays = part.read_bytes(), dict(np.load(part))
    changed = {
        "others": arrays | {"numbers": numbers + 1},
        "narrow": arrays | {"rows": arrays["rows"][:, :, :1]},
        "status": arrays | {"statuses": arrays["statuses"] + 99},
    }
    if how in changed:
        np.savez(part, **changed[how])
    else:
        plain = {
            "cut": data[: len(data) // 2],
            "noise": data[:90] + b"\xff" * 40 + data[130:],
            "text": b"part",
            "empty": b"",
        }
        part.write_bytes(plain[how])
    with pytest.raises(InputError, match=f"{part.name} is (damaged|empty)"):
        store.read(0, numbers)


def test_medians_have_exact_intervals():
    costs = np.arange(1.0, 12.0)
    found = median_interval(costs, 0.95)
    # Of eleven, the second and the tenth enclose the median in 1 − 2 · P(Bin(11, ½) ≤ 1) = 98.8% of samples.
    assert (found.value, found.low, found.high) == (6.0, 2.0, 10.0)
    assert np.isnan(median_interval(costs[:3], 0.95).low)
    endless = median_interval(np.array([1.0, np.inf, np.inf]), 0.95)
    assert endless.value == np.inf


def test_no_female_husband():
    rng = np.random.default_rng(1)
    n = 600
    sex = rng.choice(["Female", "Male"], n)
    married = rng.random(n) < 0.5
    role = np.where(married, np.where(sex == "Male", "Husband", "Wife"), "Single")
    table = pd.DataFrame({"role": role, "hours": rng.integers(10, 60, n), "sex": sex})
    y = (table.hours + 20 * (role == "Husband") + 10 * (role == "Wife") > 50).astype(int)
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    encoder = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["role", "sex"]), remainder="passthrough"
    )
    model = make_pipeline(encoder, DecisionTreeClassifier(max_depth=6, random_state=0)).fit(table, y)
    refused = table.index[(model.predict(table) == 0) & (table.role == "Husband")][0]
    found = lw.explain(model, table, refused, sensitive_features=["sex"], favourable=1)
    (twin,) = found.counterparts
    assert twin.plausible
    assert dict(twin.values) == {"sex": "Female", "role": "Wife"}
    bare = lw.explain(model, table, refused, sensitive_features=["sex"], favourable=1, rules=None)
    assert dict(bare.counterparts[0].values) == {"sex": "Female"}
    single = table.index[(model.predict(table) == 0) & (table.role == "Single") & (table.sex == "Female")][0]
    ways = lw.explain(model, table, single, sensitive_features=["sex"], favourable=1, alternatives=5)
    named = {
        change.instead
        for way in (ways.least, *ways.alternatives)
        for change in way.changes
        if change.column == "role"
    }
    assert "Husband" not in named


def test_nothing_is_claimed_of_a_model_and_a_table_that_do_not_belong_together():
    from likewise.core.errors import NotConvergedError

    table = people().assign(sex=lambda t: (t.sex == "M").astype(int))
    y = (table.hours + 3 * table.skill > 50).astype(int)
    from sklearn.ensemble import RandomForestClassifier

    raw = table * [1000, 1000, 1]
    model = RandomForestClassifier(10, random_state=0).fit((table - table.mean()) / table.std(), y)
    with pytest.raises(NotConvergedError, match="could not be answered"):
        lw.recourse(model, raw, sensitive_features=["sex"], favourable=1)
    with pytest.raises(NotConvergedError, match="could not be answered"):
        lw.explain(model, raw, 0, sensitive_features=["sex"], favourable=1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"actions": {"sex": "up"}}, "'actions' must be about columns that are not sensitive.* got 'sex'"),
        (
            {"reason_codes": {"hour": "Too few"}},
            "'reason_codes': 'X' has no column 'hour' .did you mean 'hours'",
        ),
    ],
)
def test_what_is_said_of_columns_names_columns_that_it_can_be_said_of(given, said):
    table = people(40)
    with pytest.raises(InputError, match=said):
        lw.explain(Planted().predict, table, 0, sensitive_features=["sex"], favourable=1, **given)
    fine = {"actions": {"sex": "fixed"}, "reason_codes": {"hours": "Too few"}}
    lw.explain(Planted().predict, table, 0, sensitive_features=["sex"], favourable=1, **fine)
