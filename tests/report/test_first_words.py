"""What is said first: counts that a direct enumeration finds too, the people it names, ε in the table's own units."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.report import audit_document, comparison_document, print_audit, render_html, write_json
from likewise.report.first_words import disadvantage, first_words, reach_words
from likewise.report.provenance import Provenance, SourceFile, hash_of

LABELS = {0: "refused", 1: "granted"}


def score(frame):
    logit = frame["skill"] + 1.0 * (frame["sex"] == "M") - 0.6 * (frame["race"] == "B")
    return (1 / (1 + np.exp(-logit))).to_numpy()


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "skill": rng.normal(size=n).round(2),
            "years": rng.integers(20, 60, n),
            "sex": rng.choice(["F", "M"], n),
            "race": rng.choice(["A", "B", "C"], n),
        }
    )


@pytest.fixture(scope="module")
def result():
    people = table(60)
    metric = lw.ExpertSubspace(["sex", "race"]).fit(people).metric_
    y = (score(people) > 0.5).astype(int)
    return lw.audit(score, people, y, metric=metric, eps=0.04, search="candidates")


def brute_force(people):
    """For each person whether any other sex and race is decided differently, by asking about all of them."""
    own = score(people) > 0.5
    changed = np.zeros(len(people), dtype=bool)
    for sex, race in itertools.product("FM", "ABC"):
        changed |= (score(people.assign(sex=sex, race=race)) > 0.5) != own
    return own, changed


def test_counts_are_those_of_asking_about_everybody(result):
    people = table(60)
    own, changed = brute_force(people)
    summary = audit_document(result, labels=LABELS)["summary"]
    assert summary["changed"]["count"] == changed.sum() > 0
    assert f" Together {changed.sum()} of 60 people (" in summary["sentence"]
    assert summary["sentences"][0] == summary["sentence"]
    for group in result.sensitive.groups:
        inside = (people[group.column] == group.value).to_numpy() & (own == bool(group.decision))
        assert (group.people, group.changed) == (inside.sum(), changed[inside].sum())
    assert (
        sum(group.people for group in result.sensitive.groups) == 2 * 60
    )  # each stands in one group of each column


def test_the_people_listed_are_those_of_the_table_and_get_another_decision(result):
    people = table(60)
    _, changed = brute_force(people)
    listed = audit_document(result)["summary"]["people"]
    assert sorted(one["person"] for one in listed) == np.flatnonzero(changed).tolist()
    for one in listed:
        person = people.iloc[[one["person"]]]
        assert one["cells"] == {name: plain(person[name].iloc[0]) for name in people.columns}
        assert set(one["change"]) <= {"sex", "race"}
        assert len(one["change"]) == one["changes"]
        assert int(score(person)[0] > 0.5) == one["decision"] != one["instead"]
        assert int(score(person.assign(**one["change"]))[0] > 0.5) == one["instead"]
        assert one["direction"] == ("lose" if one["decision"] == 1 else "gain")
    net = {tuple(map(str, row[:3])): row[5] - row[4] for row in result.effects.to_numpy()}

    def against(one):
        moves = [net[name, str(one["cells"][name]), str(value)] for name, value in one["change"].items()]
        return max(moves if one["direction"] == "gain" else [-move for move in moves])

    order = [(one["direction"] != "gain", one["changes"], -against(one), one["person"]) for one in listed]
    assert order == sorted(order)


def plain(value):
    return value.item() if hasattr(value, "item") else value


def test_every_value_of_the_sensitive_columns_is_counted_as_the_first_sentence_counts(result):
    people = table(60)
    _, changed = brute_force(people)
    document = audit_document(result)
    for column in ("sex", "race"):
        groups = [g for g in document["numbers"]["sensitive_only"]["groups"] if g["column"] == column]
        assert {g["value"] for g in groups} == set(people[column])
        for group in groups:
            inside = (people[column] == group["value"]).to_numpy()
            assert (group["people"], group["changed"]) == (inside.sum(), changed[inside].sum())
    page = render_html(document)
    for row in document["summary"]["group_rates"]:
        assert f'<th scope="row">{row["value"]}</th><td class="right">{row["people"]}</td>' in page
        # With which column a decision changes is said by the effects.
        assert row["changed"] == changed[(people[row["attribute"]] == row["value"]).to_numpy()].sum()


def test_the_example_changes_no_more_than_it_must():
    people = table(60)

    def blind_to_race(frame):
        return 1 / (1 + np.exp(-frame["skill"] - 1.0 * (frame["sex"] == "M")))

    metric = lw.ExpertSubspace(["sex", "race"]).fit(people).metric_
    y = (blind_to_race(people) > 0.5).astype(int)
    found = lw.audit(blind_to_race, people, y, metric=metric, eps=0.0, search="candidates")
    assert {tuple(one.twin) for one in found.listed} == {("sex",)}


def test_parts_of_a_table_say_the_same(result, tmp_path):
    people = table(60)
    people.assign(y=(score(people) > 0.5).astype(int)).to_parquet(
        tmp_path / "people.parquet", row_group_size=15
    )
    metric = lw.ExpertSubspace(["sex", "race"]).fit(people).metric_
    domain = lw.TabularDomain.from_frame(people)
    streamed = lw.audit(
        score, tmp_path / "people.parquet", "y", metric=metric, domain=domain, eps=0.04, search="domain"
    )
    assert streamed.listed == result.listed
    assert streamed.sensitive.groups == result.sensitive.groups
    pd.testing.assert_frame_equal(streamed.effects, result.effects)
    pd.testing.assert_frame_equal(streamed.outcomes, result.outcomes)


def test_nobody_and_numbers_and_no_sensitive_columns(samples):
    unmoved, same = first_words(samples.still_result())
    assert unmoved.startswith("No answer about these people depends on sex")
    assert same.startswith("Everybody gets the same decision")
    people = table(60)
    number = lw.audit(
        lambda frame: frame["skill"].to_numpy() + (frame["sex"] == "M"), people, people["skill"].to_numpy(),
        metric=lw.ExpertSubspace(["sex"]).fit(people).metric_, eps=0.0, loss="squared",
    )  # fmt: skip
    assert first_words(number)[0].startswith(
        "If only the entry for sex were different, the prediction could change by"
    )
    bare = dataclasses.replace(samples.adult_result()[1], sensitive=None)
    assert "a counterpart whom the metric calls equal" in first_words(bare)[0]
    assert audit_document(bare)["summary"]["columns"] == []


def test_eps_in_the_tables_own_units_is_what_the_metric_charges(samples, result):
    people = table(60)
    metric = lw.ExpertSubspace(["sex", "race"]).fit(people).metric_
    said, moves = reach_words(result)
    assert {move["column"] for move in moves} == {"skill", "years"}
    for move in moves:
        assert metric.budget({move["column"]: move["change"]}) == pytest.approx(result.eps)
    assert said.startswith("ε = 0.04 is as far as moving everybody's ")
    assert reach_words(samples.with_worst_case(result, eps=0.0)) == (None, [])
    free = lw.ExpertSubspace(["sex", "years"]).fit(people).metric_
    y = (score(people) > 0.5).astype(int)
    told, _ = reach_words(lw.audit(score, people, y, metric=free, eps=0.04, search="candidates"))
    assert told.endswith("A change of years costs nothing.")


def test_summary_comes_right_after_kind_and_version(result, samples):
    assert list(audit_document(result))[:3] == ["kind", "schema_version", "summary"]
    compared = comparison_document(samples.comparison(), max_people=5)
    assert list(compared)[:3] == ["kind", "schema_version", "summary"]
    told = compared["summary"]["sentences"]
    assert told[1].startswith("“blind <b>”: No answer about these people depends on sex or race")
    assert told[2].startswith("“blind <b>”: None of these ")


def test_a_saved_result_says_the_same_in_german(result, tmp_path):
    result.save(tmp_path / "saved.json")
    read = lw.AuditResult.load(tmp_path / "saved.json")
    assert read.sensitive == result.sensitive
    document = json.loads(json.dumps(audit_document(read, labels=LABELS)))
    page = render_html(document, language="de")
    assert 'lang="de"' in page
    for line in (*result.assumptions, *first_words(result, LABELS)):
        assert line.written("de") != line
    visible = page[: page.index('<script type="application/json"')]
    assert "bekämen eine andere Entscheidung, wenn nur der Eintrag zu sex oder race anders wäre" in visible


def test_where_it_comes_from(result, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    file = tmp_path / "people.csv"
    file.write_bytes(b"a,b\n1,2\n")
    known = Provenance.now(
        tables=[file], models=["m:model"], seed=7, command="likewise audit m:model people.csv"
    )
    assert known.made == "2023-11-14T22:13:20Z"
    digest = "492d5ea496056f1a6a6592241032fab764c321596317930b4fa0e1e8bc3b7470"
    assert known.tables == (SourceFile("people.csv", digest),)
    assert known.models == (SourceFile("m:model", None),)
    assert {"likewise", "python", "numpy", "torch"} <= set(known.versions)
    write_json(result, tmp_path / "audit.json", provenance=known)
    written = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert written["provenance"]["command"] == "likewise audit m:model people.csv"
    page = render_html(written)
    assert written["provenance"]["tables"][0]["sha256"] in page
    assert str(tmp_path) not in page
    assert page == render_html(json.loads((tmp_path / "audit.json").read_text(encoding="utf-8")))


def test_folders_and_patterns_have_a_hash_that_knows_names_and_contents(tmp_path):
    for name, text in (("a.parquet", "one"), ("b.parquet", "two")):
        (tmp_path / name).write_text(text)
    whole = hash_of(tmp_path)
    assert whole == hash_of(tmp_path / "*.parquet")
    (tmp_path / "a.parquet").rename(tmp_path / "c.parquet")
    assert hash_of(tmp_path) != whole
    assert hash_of(tmp_path / "none*") is None
    # A file of the system has no size, and reading it may never end.
    system = Path("/proc/self/mountinfo")
    if system.exists():
        assert hash_of(system) == hashlib.sha256().hexdigest()


def test_the_terminal_says_the_scope_first_and_ends_in_the_verdict(result, capsys):
    print_audit(result, labels=LABELS)
    lines = capsys.readouterr().out.rstrip().split("\n")
    assert len(lines) <= 20
    assert lines[0].startswith("All 60 people of the table. Favourable decision: granted")
    said = f"{result.headline.title}: {disadvantage(result)} {result.headline.sentence}"
    assert " ".join(" ".join(lines).split()).endswith(said)
    assert "to the disadvantage of people recorded as F (sex)" in said


def test_a_column_that_changes_nothing_is_not_said_to_change_decisions():
    people = pd.DataFrame({"sex": ["F", "M"] * 20, "abroad": ["no"] * 10 + ["yes"] * 30, "skill": range(40)})
    by_sex = lw.audit(
        lambda frame: (frame["skill"] + 9 * (frame["sex"] == "M") > 20).astype(float),
        people,
        sensitive_features=["sex", "abroad"],
        favourable=1,
    )
    assert "if only the entry for sex were different" in str(by_sex.headline.sentence)
    either = lw.audit(
        lambda frame: (
            frame["skill"] + 9 * (frame["sex"] == "M") + 5 * (frame["abroad"] == "no") > 20
        ).astype(float),
        people,
        sensitive_features=["sex", "abroad"],
        favourable=1,
    )
    assert "if only the entry for sex or abroad were different" in str(either.headline.sentence)
