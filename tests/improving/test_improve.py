"""The whole search on a small table: chosen by the rule, the same however it is computed, files that load."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.core.errors import InputError
from likewise.counterfactuals import correspondence_study
from likewise.improving import Rule, improve, write_improvement
from likewise.improving.candidates import MOST_TO_TUNE, BoostingCandidate, LogisticCandidate, NetworkCandidate
from likewise.improving.output import render_improvement
from likewise.improving.people import split_data, tally_model

SMALL = {"n_estimators": 15, "max_depth": 2}
PLAIN = BoostingCandidate("plain", "", blind=False, choices=SMALL)
TWINS = BoostingCandidate("twins", "", blind=False, consensus=True, choices=SMALL)
BLIND = BoostingCandidate("blind", "", choices=SMALL)
LINEAR = NetworkCandidate(
    "linear", "", "ProjectClassifier", 1.0, {"hidden_layer_sizes": (), "n_steps": 60, "lr": 0.05}
)
ALL = (PLAIN, TWINS, BLIND, LINEAR)


@pytest.fixture(scope="module", autouse=True)
def few_are_searched():
    """The worst case of 30 people instead of 120: how they are searched is tested in tests/auditing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("likewise.improving.people.MIN_SEARCHED", 30)
        patch.setattr("likewise.improving.people.MAX_SEARCHED", 30)
        yield


@pytest.fixture(scope="module")
def found(hiring):
    return improve(
        *hiring, sensitive_features=["sex", "race"], candidates=ALL, rule=Rule(within=0.3), folds=3
    )


def test_the_choice_follows_the_rule_and_is_trained_on_all_training_people(found, hiring):
    values = {a.name: {key: a[key] for key in RULE_FIGURES} for a in found.alternatives}
    assert found.chosen == Rule(within=0.3).choose(values)
    assert found.chosen != "plain"
    assert values["plain"]["changed decisions"] > 0.05
    assert values["twins"]["changed decisions"] == 0.0
    assert values["twins"]["pure gap"] < 0.2 * values["plain"]["pure gap"]
    assert found.n_train == 480
    assert found.n_test == 120
    assert not found.failed


RULE_FIGURES = (
    "balanced accuracy",
    "changed decisions",
    "pure gap",
    "gap at ε",
    "group gap",
    "standard error",
)


def test_figures_on_unseen_people_are_of_unseen_people(found, hiring):
    frame, y = hiring
    data = split_data(frame, y, sensitive_features=["sex", "race"], folds=3)
    assert set(data.test).isdisjoint(data.train)
    assert sorted(np.concatenate(data.folds)) == data.train.tolist()
    test = frame.iloc[data.test]
    expected = np.mean([np.mean(found.model.predict(test[y[data.test] == c]) == c) for c in ("no", "yes")])
    assert found.unseen.figures[0].value == pytest.approx(expected)
    study = correspondence_study(found.model, test, {"sex": None, "race": None})
    assert found.unseen.figures[1].value == pytest.approx(1 - study.consistency)
    assert {m.name for m in found.unseen.announced} == {m.name for m in found.unseen.figures}
    assert found.reference.name == "plain"


def test_a_small_group_has_no_rates(found):
    assert found.measures[-2:] == ("Gap_RMS sex", "Gap_RMS race")
    assert any("leave out c" in note for note in found.notes)


def test_gaps_are_those_of_an_audit_of_the_same_people(found, hiring):
    frame, y = hiring
    data = split_data(frame, y, sensitive_features=["sex", "race"], folds=3)
    model = PLAIN.fit(data, data.train, seed=0)
    data = replace(data, n_searched=len(data.test))
    tally = tally_model(model, data, data.test, seed=0)
    assert data.n_audited == len(data.test)
    people = frame.iloc[data.test].reset_index(drop=True)
    result = lw.audit(model, people, y[data.test], metric=data.metric, domain=data.domain, eps=0.1)
    assert tally.gap.mean == pytest.approx(result.gap)
    assert tally.pure_gap.mean == pytest.approx(result.pure_gap)


def test_frontiers_hold_what_nobody_beats(found):
    for kind in RULE_FIGURES[1:]:
        best = max(a["balanced accuracy"] for a in found.alternatives)
        names = found.frontier(kind)
        by_name = {a.name: a for a in found.alternatives}
        assert any(by_name[name]["balanced accuracy"] == best for name in names)
        assert [by_name[name][kind] for name in names] == sorted(by_name[name][kind] for name in names)


def test_stopped_and_resumed_it_ends_the_same(hiring, tmp_path):
    class Stop(Exception):
        pass

    def stop(progress, task, outcome):
        if progress.done == 3:
            raise Stop

    choices = {
        "sensitive_features": ["sex", "race"],
        "candidates": (TWINS, LINEAR),
        "rule": Rule(within=0.3),
        "folds": 2,
    }
    whole = improve(*hiring, **choices)
    choices["folder"] = tmp_path
    with pytest.raises(Stop):
        improve(*hiring, **choices, report=stop)
    before = (tmp_path / "cells.jsonl").read_bytes()
    assert before.count(b"\n") == 3
    again = improve(*hiring, **choices)
    assert (tmp_path / "cells.jsonl").read_bytes().startswith(before)
    assert str(again) == str(whole)
    with pytest.raises(InputError, match="other settings"):
        improve(*hiring, **choices, random_state=1)


def test_in_a_worker_process_it_ends_the_same(hiring):
    two = {"sensitive_features": ["sex"], "candidates": (PLAIN, BLIND), "folds": 2}
    assert str(improve(*hiring, **two, n_jobs=1)) == str(improve(*hiring, **two))


def test_files_hold_all_alternatives_and_a_model_that_answers_the_same(found, hiring, tmp_path):
    written = {path.name for path in write_improvement(found, tmp_path / "new")}
    document = json.loads((tmp_path / "new" / "improvement.json").read_text())
    assert [a["name"] for a in document["alternatives"]] == ["plain", "twins", "blind", "linear"]
    assert document["chosen"] == found.chosen
    assert document["rule"]["within"] == 0.3
    table = pd.read_csv(tmp_path / "new" / "alternatives.csv", index_col="model")
    np.testing.assert_allclose(table.to_numpy(), found.frame.to_numpy())
    page = (tmp_path / "new" / "index.html").read_text()
    assert page.count("<svg") == 2  # changed decisions and group gaps
    assert "script" not in page
    (model,) = written - {"improvement.json", "alternatives.csv", "index.html"}
    loaded = lw.load_model(tmp_path / "new" / model)
    frame, _ = hiring
    np.testing.assert_allclose(loaded.predict_proba(frame), found.model.predict_proba(frame), atol=1e-6)


def test_files_of_others_are_not_replaced(found, tmp_path):
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(InputError, match="was not written by `improve`"):
        write_improvement(found, tmp_path)
    (tmp_path / "improvement.json").write_text("{}")
    with pytest.raises(InputError, match="was not written by `improve`"):
        write_improvement(found, tmp_path)
    with pytest.raises(InputError, match="is a file, not a folder"):
        write_improvement(found, tmp_path / "index.html")


def test_names_from_data_are_escaped(hiring, tmp_path):
    frame, y = hiring
    frame = frame.rename(columns={"sex": "<b>sex</b>"})
    name = BoostingCandidate("<script>alert(1)</script>", "", choices=SMALL)
    result = improve(frame, y, sensitive_features=["<b>sex</b>"], candidates=[name], folds=2)
    write_improvement(result, tmp_path)
    page = (tmp_path / "index.html").read_text()
    assert "<script" not in page
    assert "<b>" not in page


def test_what_each_fold_warned_about_is_on_the_page_once(found):
    lines = ("<b> lost 0.1 of 2", "<b> lost 0.25 of 3", "near chance")
    first, *others = found.alternatives
    page = render_improvement(
        replace(found, alternatives=(replace(first, warnings=lines), *others)), language="de"
    )
    assert page.count("&lt;b&gt; lost 0.1 of 2 (2×)") == 1 + (first.name == found.chosen)
    assert "<details" not in page.split('id="annex"')[0].removesuffix('<details class="card" ')
    assert "0.25 of 3" not in page


def test_a_given_model_is_shown_as_it_is_and_mended(hiring, tmp_path):
    frame, y = hiring
    biased = lambda t: 1 / (1 + np.exp(-4 * (t["skill"] + 0.8 * (t["sex"] == "M") - 0.4)))  # noqa: E731
    result = improve(
        frame,
        y,
        sensitive_features=["sex"],
        model=biased,
        favourable="yes",
        candidates=[BLIND],
        folds=2,
        rule=Rule(within=1),
    )
    mine, mended, _ = result.alternatives
    assert (mine.name, mended.name) == ("Your model", "Your model, twin consensus")
    assert mine["changed decisions"] > 0.1
    assert mended["changed decisions"] == 0.0
    assert not any("flattered" in str(note) for note in result.notes)
    assert result.reference.name == "Your model"
    assert result.model is not None


def test_a_given_model_of_a_library_is_written_in_its_format(hiring, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    frame, y = hiring
    numbers = frame.assign(sex=(frame["sex"] == "M").astype(int))[["sex", "skill", "years"]]
    model = xgboost.XGBClassifier(n_estimators=20, max_depth=3, n_jobs=1).fit(
        numbers, (y == "yes").astype(int)
    )
    labels = (y == "yes").astype(int)
    poor = NetworkCandidate(
        "poor", "", "ProjectClassifier", 1.0, {"hidden_layer_sizes": (), "n_steps": 1, "lr": 1e-6}
    )
    result = improve(
        numbers, labels, sensitive_features=["sex"], model=model, candidates=[poor], folds=2, rule=Rule(0.05)
    )
    assert result.chosen == "Your model, twin consensus"
    # Nobody knows whether it has seen these people: what it keeps out is told.
    assert any("without it the choice would be “poor”" in str(note) for note in result.notes)
    names = {path.name for path in write_improvement(result, tmp_path)}
    assert "model.ubj" in names
    loaded = lw.load_model(tmp_path / "model.ubj")
    np.testing.assert_allclose(loaded.predict_proba(numbers), result.model.predict_proba(numbers), atol=1e-6)


def test_a_candidate_that_fails_is_told_and_the_others_go_on(hiring):
    bad = BoostingCandidate("bad", "", choices={"max_depth": 0})
    result = improve(*hiring, sensitive_features=["sex"], candidates=[BLIND, bad], folds=2)
    assert result.chosen == "blind"
    assert "max_depth" in result.failed["bad"]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"sensitive_features": []}, "'sensitive_features' names no column"),
        ({"sensitive_features": ["sexx"]}, "sexx"),
        ({"candidates": []}, "'candidates'"),
        ({"candidates": [BLIND, BLIND]}, "two of the name 'blind'"),
        ({"rule": "fair"}, "'rule' must be a Rule"),
        ({"test_share": 1.0}, "'test_share'"),
        ({"folds": 1}, "'folds'"),
        ({"eps": -1}, "'eps'"),
        ({"y": ["no"] * 600}, "one class only"),
        ({"y": ["no", None] * 300}, "missing label"),
        ({"y": ["no"] * 595 + ["yes"] * 5}, "takes 20 of each"),
        ({"y": ["no", "yes"] * 10}, "600"),
    ],
)
def test_bad_input_is_refused(hiring, choices, message):
    frame, y = hiring
    given = {"y": y, "sensitive_features": ["sex"], "candidates": [BLIND]} | choices
    with pytest.raises(InputError, match=message):
        improve(frame, given.pop("y"), **given)


@pytest.mark.parametrize(("n", "size"), [(130, 99), (600, 480), (2900, 1999), (8000, 5999), (300, 240)])
def test_the_final_model_is_the_learner_of_the_folds(n, size):
    """Broke once: folds had fewer people than it takes to stop early and the final model did, so intervals failed."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(n, 3)), columns=["skill", "test", "talk"])
    frame["sex"] = np.arange(n) % 2
    data = split_data(frame, np.arange(n) // 2 % 2, sensitive_features=["sex"], metric="columns")
    assert len(data.final) == size
    smallest = min(len(data.kept(fold)) for fold in range(5))
    for limit in (100, 2000, MOST_TO_TUNE):
        assert (smallest < limit) == (len(data.final) < limit)
    assert set(data.final) <= set(data.train)


def test_simple_models_are_in_the_field_and_what_is_not_measured_is_said(hiring, tmp_path):
    frame, y = hiring
    ages = np.random.default_rng(1).integers(18, 80, len(frame))  # too many values to be groups
    frame = frame.assign(sex=ages, shoe=None).drop(columns="race").iloc[:200]
    frame["shoe"] = np.where(ages[:200] % 7 == 0, np.nan, ages[:200] * 1.0)
    two = [
        LogisticCandidate("Logistic regression", "", blind=False),
        LogisticCandidate("Logistic regression, blind", "", blind=True),
    ]
    result = improve(
        frame, y[:200], sensitive_features=["sex"], candidates=two, folds=2, rule=Rule(within=0.2)
    )
    assert result.chosen == "Logistic regression, blind"
    assert result.frame.loc[result.chosen, "changed decisions"] == 0.0
    assert "group gaps were not measured" in str(result)
    assert "group gap is 0.000" not in str(result)
    assert result.frontier("group gap") == ()
    write_improvement(result, tmp_path)
    loaded = lw.load_model(tmp_path / "model.skops")
    filled = frame.fillna({"shoe": 40.0})
    np.testing.assert_allclose(loaded.predict_proba(filled), result.model.predict_proba(filled), atol=1e-9)


def test_depth_is_tuned_inside_of_the_training_people(hiring):
    frame, y = hiring
    data = split_data(frame, y, sensitive_features=["sex"], folds=2)
    tuned = BoostingCandidate("tuned", "", choices={"n_estimators": 30}, depths=(1, 6))
    grown = tuned.fit(data, data.kept(0)[:150], seed=0)
    assert grown.max_depth == 1  # the truth is a sum of columns
    assert grown.n_iter_ == grown.n_estimators < 30, (
        "rounds are those at which the people held out fared best"
    )
