"""The first question is answered without the machinery of the worst case, and the worst case on top of the same answer."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import likewise as lw

PARTS_OF_THE_WORST_CASE = (
    "fair_metrics/",
    "auditing/dual/",
    "auditing/search/",
    "auditing/bounds/",
    "unfair_map",
)


def people(n=40):
    random = np.random.default_rng(0)
    return pd.DataFrame({"skill": random.normal(size=n), "sex": random.choice(["F", "M"], n)})


def score(frame):
    return 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))


def files_run(run):
    seen = set()

    def watch(frame, event, argument):
        if event == "call" and frame.f_code.co_name != "<module>":
            seen.add(frame.f_code.co_filename)

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    return seen


def test_the_first_answer_needs_no_metric_no_search_and_no_dual():
    table = people()
    y = (table["skill"] > 0).astype(int)
    lw.audit(score, table, y, sensitive_features=["sex"])
    files = files_run(lambda: lw.audit(score, table, y, sensitive_features=["sex"]))
    assert [file for file in files if any(part in file for part in PARTS_OF_THE_WORST_CASE)] == []


@pytest.mark.parametrize(
    "asked", [{"eps": 0.0}, {"eps": 0.1}, {"delta": 0.1}, {"tau": 0.01}, {"search": "domain"}, {"metric": "columns"}]
)  # fmt: skip
def test_the_worst_case_is_added_to_the_same_answer(asked):
    table = people()
    y = (table["skill"] > 0).astype(int)
    first = lw.audit(score, table, y, sensitive_features=["sex"])
    wider = lw.audit(score, table, y, sensitive_features=["sex"], **asked)
    assert first.worst_case is None
    assert wider.worst_case is not None
    assert str(first.headline) == str(wider.headline)
    assert first.changed == wider.changed
    for name in ("effects", "outcomes", "group_rates", "people"):
        pd.testing.assert_frame_equal(getattr(first, name), getattr(wider, name))


def test_what_was_not_asked_for_says_how_to_ask():
    result = lw.audit(score, people(), sensitive_features=["sex"])
    for name in ("gap", "value", "pure_gap", "unfair_map", "certificate", "curve", "brackets", "test", "eps"):
        with pytest.raises(lw.core.NotAskedError, match=r"Ask for it: audit\(…, eps=0\.1\)"):
            getattr(result, name)
    assert not hasattr(result, "gap")
    with pytest.raises(AttributeError, match="was not asked for"):
        result.verdict(0.1)
    assert result.status == "converged"


def test_a_first_answer_is_saved_and_read_again(tmp_path):
    result = lw.audit(score, people(), sensitive_features=["sex"], limit=0.5)
    result.save(tmp_path / "audit.json")
    again = lw.AuditResult.load(tmp_path / "audit.json")
    assert again.worst_case is None
    assert str(again.headline) == str(result.headline)
    pd.testing.assert_frame_equal(again.effects, result.effects)
    result.save(tmp_path / "audit.html")
    result.save(tmp_path / "evidence")
    assert not (tmp_path / "evidence" / "tables" / "curve.csv").exists()


def test_a_sensitive_column_that_may_not_change_is_an_error():
    table = people()
    domain = lw.TabularDomain.from_frame(table, immutable=["sex"])
    with pytest.raises(lw.InputError, match="may change"):
        lw.audit(score, table, sensitive_features=["sex"], domain=domain)


@pytest.mark.parametrize(
    "name", ["people", "favourable", "share", "row", "decision", "pair", "cost", "status"]
)
def test_a_sensitive_column_may_be_called_like_one_of_ours(name):
    people = pd.DataFrame({name: ["F", "M", "F", "M"], "skill": [1.0, 2.0, 3.0, 4.0]})

    def model(table):
        return (table["skill"] + (table[name] == "M") > 2.5).astype(float)

    result = lw.audit(model, people, sensitive_features=[name], favourable=1)
    (first, second) = result.outcomes.to_dict("records")
    assert {first.get(f"{name} (cell)", first.get(name)), second.get(f"{name} (cell)", second.get(name))} == {
        "F",
        "M",
    }
    assert [one["people"] for one in (first, second)] == [4, 4]
    assert [one["favourable"] for one in (first, second)] == [2, 3]
    pairs = lw.verify(model, people, [name]).examples
    assert set(pairs.get(f"{name} (cell)", pairs.get(name))) == {"F", "M"}
    assert set(pairs["decision"]) == {0, 1}
    refused = lw.recourse(model, people, sensitive_features=[name], favourable=1).people
    assert set(refused.get(f"{name} (cell)", refused.get(name))) == {"F"}


def test_the_favourable_class_may_be_missing_among_the_labels():
    people = pd.DataFrame({"sex": [0, 1] * 6, "skill": range(12)})
    tree = DecisionTreeClassifier(random_state=0).fit(people, [0] * 4 + [1] * 4 + [2] * 4)
    some, labels = people.iloc[:8], [0] * 4 + [1] * 4
    told = lw.audit(tree, some, labels, sensitive_features=["sex"], favourable=2)
    assert told.favourable == 2
    assert told.changed.n == lw.audit(tree, some, sensitive_features=["sex"], favourable=2).changed.n
