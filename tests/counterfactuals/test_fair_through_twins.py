"""The same twins as a promise: a consensus, or boosted trees, that decide about all of them alike."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import likewise as lw
from likewise.counterfactuals import (
    Boosting,
    Consequences,
    ConsequenceTwins,
    Edit,
    correspondence_study,
    orbit_representatives,
)
from likewise.counterfactuals.edited_rows import _keys
from likewise.fair_metrics.learner import ready_metric
from likewise.models.stored import load_beside

GRAPH = {"sex": ["job", "pay"], "age": ["pay"], "job": ["pay"]}


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    n = 200
    sex, age = rng.choice(["F", "M"], n), rng.uniform(20, 60, n)
    job = np.where(rng.random(n) < np.where(sex == "M", 0.3, 0.5), "office", rng.choice(["field", "home"], n))
    hours = np.where(rng.random(n) < 0.5, 40, rng.integers(10, 60, n)) + 2 * (sex == "M")
    pay = 0.1 * age + 2.0 * (sex == "M") + (job == "office") + rng.normal(size=n)
    return pd.DataFrame({"sex": sex, "age": age, "job": job, "hours": hours, "pay": pay})


@pytest.fixture(scope="module")
def maker(people):
    return ConsequenceTwins("sex", graph=GRAPH, boosting=Boosting(n_iter=5)).fit(people)


def biased(table):
    return 1 / (1 + np.exp(-(table["pay"] + 0.05 * table["hours"] + (table["sex"] == "M") - 8.5)))


def test_everybody_ends_in_the_circle_of_their_twins(people, maker):
    own = orbit_representatives(maker, people)
    made = maker.make(people)
    for table in made.tables:
        there = orbit_representatives(maker, table)
        same = (own["job"] == there["job"]) & np.isclose(own["pay"], there["pay"])
        assert same.mean() >= 0.99
    assert set(own["sex"]) == {"F"}


def test_what_a_row_is_known_by_hangs_on_nobody_else():
    rows = pd.DataFrame({"pay": [0.2, 0.4, 0.2 + 1e-12], "job": ["a", "a", "a"]})
    one, other, again = _keys(rows)
    assert one == again != other
    beside = _keys(pd.concat([rows, pd.DataFrame({"pay": [1e15, np.nan], "job": ["a", "a"]})]))
    assert beside[:3].tolist() == [one, other, again]


def test_a_consensus_over_consequence_twins_is_consistent_under_the_same_study(people, maker):
    before = correspondence_study(lambda t: biased(t) > 0.5, people, maker)
    fair = lw.TwinConsensus(biased, edits=maker).fit(people)
    after = correspondence_study(fair, people, maker)
    assert before.consistency < 0.9
    assert after.consistency >= 0.99
    assert fair.n_twins_ == 2


def test_a_consensus_learns_from_its_own_people_and_leaves_the_edit_as_it_was(people):
    edit = Edit("sex", consequences=Consequences(graph={"sex": ["job"]}))
    fair = lw.TwinConsensus(biased, edits=edit)
    fitted = clone(fair).fit(people)
    assert fitted.maker_.fitted
    assert correspondence_study(fitted, people, fitted.maker_).consistency >= 0.99
    unfitted = ConsequenceTwins("sex", graph={"sex": ["job"]})
    lw.TwinConsensus(biased, edits=unfitted).fit(people)
    assert not unfitted.fitted


def test_boosted_trees_see_everybody_as_all_their_twins_are(people, maker):
    y = (biased(people) > 0.5).to_numpy().astype(int)
    trees = lw.FairBoostingClassifier("sex", edits=maker, n_estimators=10, random_state=0).fit(people, y)
    assert correspondence_study(trees, people, maker).consistency >= 0.99


def test_an_audit_takes_the_same_edit_and_finds_more(people):
    y = (people["pay"] > 5).astype(int)
    from likewise.models import as_model

    model = as_model(lambda t: 1 / (1 + np.exp(-(t["pay"] - 6))), takes_frame=True)
    metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    edit = Edit("sex", consequences=Consequences(graph={"sex": ["pay"]}))
    plain, more = (
        lw.audit(
            model,
            people,
            y,
            metric=metric,
            eps=1.0,
            edits=edits,
            search=lw.auditing.CandidateSearch(use_rows=False),
        )
        for edits in (["sex"], [edit])
    )
    assert plain.gap == 0
    assert more.gap > 0.01


def test_the_edit_stands_wherever_a_metric_can(people, maker):
    edit = Edit("sex", consequences=Consequences(graph=GRAPH, boosting=Boosting(n_iter=5)))
    learned = lw.counterfactuals.TwinSubspace(maker).fit(people).metric_
    assert learned.sensitive_features == ("sex",)
    y = (biased(people) > 0.5).to_numpy().astype(int)
    for given in (edit, maker):
        found = ready_metric(given, people, owner="x", encoder=lw.TabularDomain.from_frame(people))
        np.testing.assert_allclose(found.sigma(), learned.sigma(), atol=1e-8)
    with pytest.raises(lw.InputError, match=r"only with consequences.*AttributeSubspace"):
        lw.SenSRClassifier(metric=Edit("sex")).fit(people, y)


@pytest.fixture(scope="module")
def by_rules():
    return Edit("sex", consequences=Consequences(rules={
        "map": [{"when": {"sex": "F"}, "column": "job", "values": {"field": "home"}},
                {"when": {"sex": "M"}, "column": "job", "values": {"home": "field"}}],
        "forbid": [{"sex": "F", "job": "field", "hours": [40, 42]}],
    }))  # fmt: skip


def test_models_over_twins_by_rules_are_saved_and_decide_the_same(people, by_rules, tmp_path):
    y = (biased(people) > 0.5).to_numpy().astype(int)
    trees = lw.FairBoostingClassifier("sex", edits=by_rules, n_estimators=5, random_state=0).fit(people, y)
    trees.save(tmp_path / "trees.ubj")
    inner = lw.FairBoostingClassifier(n_estimators=5, random_state=0).fit(people, y)
    consensus = lw.TwinConsensus(inner, edits=by_rules).fit(people)
    consensus.save(tmp_path / "fair.ubj")
    asked = people.astype({"job": "category"})
    for name, one in (("trees.ubj", trees), ("fair.ubj", consensus)):
        again = load_beside(
            tmp_path / name, trust=True
        )  # without a process of its own, which other tests have
        np.testing.assert_array_equal(again.predict_proba(asked), one.predict_proba(asked))
        made = again.edits.make(asked)
        assert all(table["job"].dtype == "category" for table in made.tables)
        assert correspondence_study(again, people, by_rules).consistency == 1
    assert correspondence_study(inner, people, by_rules).consistency < 1


def test_what_cannot_be_done_with_learned_twins_says_why(people, maker, tmp_path):
    fair = lw.TwinConsensus(biased, edits=maker).fit(people)
    with pytest.raises(lw.InputError, match="along the graph is learned"):
        fair.save(tmp_path / "model.json")
    with pytest.raises(lw.InputError, match="cannot export"):
        fair.export(tmp_path / "model.json")
    with pytest.raises(lw.InputError, match="stand alone"):
        lw.TwinConsensus(biased, edits=maker, sensitive_features=["sex"]).fit(people)
