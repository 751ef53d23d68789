"""`likewise person` and `likewise recourse`: letter, JSON, exit codes, parts that are kept, bad input in one message."""

import json

import pandas as pd
import pytest

PAID = ("--target", "paid", "--favourable", "1", "--sensitive", "sex")


@pytest.fixture
def case(tmp_path):
    """Whoever works 40 hours is paid, men from 35 on."""
    xgboost = pytest.importorskip("xgboost")
    hours = list(range(20, 60)) * 2
    people = pd.DataFrame({"hours": hours, "sex": [0] * 40 + [1] * 40, "home": [0, 1] * 40})
    people["paid"] = (people.hours >= 40 - 5 * people.sex).astype(int)
    model = xgboost.XGBClassifier(n_estimators=10, max_depth=2, learning_rate=0.7, n_jobs=1)
    model.fit(people[["hours", "sex", "home"]], people.paid)
    model.save_model(tmp_path / "model.json")
    people.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "model.json", tmp_path / "people.csv"


def test_the_letter_says_what_would_change_the_decision(run, case, tmp_path):
    model, table = case
    done = run("person", model, table, "--row", "12", *PAID, "-o", "letter.html", "-o", "found.json")
    assert done.code == 0, done.err
    # Line 12 is a woman of 30 hours; she needs 40, a man 35.
    said = done.out.replace("\n", " ")
    assert "hours 40 instead of 30" in said
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["least"]["status"] == "proved"
    assert found["least"]["changes"][0]["instead"] == 40
    (twin,) = found["counterparts"]
    assert twin["least"]["changes"][0]["instead"] == 35
    assert twin["difference"] == pytest.approx(found["least"]["cost"] / -2)
    page = (tmp_path / "letter.html").read_text()
    assert "hours 40 instead of 30" in page
    assert "50.0% less" in page
    # What a change is, and in which unit it costs what it costs.
    for told in ("It is not advice", "spans of the middle 80% of people"):
        assert told in said
        assert told in page
    assert "--only-up COLUMN" in said


def test_german(run, case):
    done = run("person", *case, "--row", "12", *PAID, "--language", "de")
    assert done.code == 0, done.err
    assert "Es ist bewiesen" in done.out


def test_rules_of_the_command_line(run, case):
    model, table = case
    done = run("person", model, table, "--row", "12", *PAID, "--fixed", "hours", "-o", "-")
    assert json.loads(done.out)["least"]["status"] == "none"
    done = run("person", model, table, "--row", "12", *PAID, "--only-down", "hours", "-o", "-")
    assert json.loads(done.out)["least"]["status"] == "none"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--row", "9999", *PAID), "'row' must be"),
        (("--row", "12", "--sensitive", "sex", "--favourable", "maybe"), "favourable"),
        (("--row", "12", *PAID, "--fixed", "house"), "'house'"),
        (("--row", "12", *PAID, "--fixed", "hours", "--only-up", "hours"), "twice"),
        (("--row", "12", *PAID, "--rules", "no.toml"), "no.toml"),
    ],
)
def test_bad_input_is_one_message(run, case, words, said):
    done = run("person", *case, *words)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err


def test_burden_limit_and_parts(run, case, tmp_path):
    model, table = case
    done = run("recourse", model, table, *PAID, "-o", "found.json", "-o", "refused.csv")
    assert done.code == 0, done.err
    found = json.loads((tmp_path / "found.json").read_text())
    women, men = found["burden"]
    assert (women["refused"], men["refused"]) == (20, 15)
    assert women["dearer"]["value"] == 1.0
    assert men["cheaper"]["value"] == 1.0
    assert found["proved"] == 1.0
    rows = pd.read_csv(tmp_path / "refused.csv")
    assert len(rows) == 35
    assert run("recourse", model, table, *PAID, "--limit", "1%", "--quiet").code == 1
    assert run("recourse", model, table, *PAID, "--limit", "100%", "--quiet").code == 0
    alone = run("recourse", model, table, *PAID[:4], "--limit", "1%")
    assert (alone.code, "--sensitive" in alone.err) == (2, True), (
        "nothing was compared, so nothing is within a limit"
    )
    kept = run("recourse", model, table, *PAID, "--keep", "parts", "-o", "-")
    again = run("recourse", model, table, *PAID, "--keep", "parts", "-o", "-")
    assert json.loads(kept.out)["people"] == json.loads(again.out)["people"] == found["people"]
    other = run("recourse", model, table, *PAID, "--keep", "parts", "--only-up", "hours")
    assert other.code == 2
    assert "another model, table or setting" in other.err
