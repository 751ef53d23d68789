"""`likewise improve`: a table in, a folder out; stopped and started again it ends the same."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import likewise as lw
from likewise.cli.app import cli
from likewise.core.errors import InputError
from likewise.improving.candidates import BoostingCandidate

SMALL = {"n_estimators": 10, "max_depth": 2}
TWO_FOLDS = ("--set", "folds=2")
TWO = (
    BoostingCandidate("plain", "", blind=False, choices=SMALL),
    BoostingCandidate("blind", "", choices=SMALL),
)


@pytest.fixture(scope="module", autouse=True)
def few_are_searched():
    """The worst case of 30 people instead of 120: how they are searched is tested in tests/auditing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("likewise.improving.people.MIN_SEARCHED", 30)
        patch.setattr("likewise.improving.people.MAX_SEARCHED", 30)
        yield


@pytest.fixture
def table(tmp_path, monkeypatch):
    """People, and only two quick candidates, computed in this process."""
    monkeypatch.setattr("likewise.improving.choosing.trained_candidates", lambda data: TWO)
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(300, 2)), columns=list("ab")).assign(
        sex=random.choice(["F", "M"], 300), kind=random.choice(["x", "y", "z"], 300)
    )
    frame["hired"] = np.where(frame["a"] + 1.0 * (frame["sex"] == "M") > 0.5, "yes", "no")
    frame.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


@pytest.fixture
def here(monkeypatch):
    """Let worker processes be this one: starting them costs seconds each."""
    from likewise.improving import runner

    work = runner.work
    monkeypatch.setattr("likewise.improving.runner.work", lambda tasks, jobs: work(tasks, 0))


def run(*words):
    return CliRunner().invoke(cli, ["improve", *map(str, words)], catch_exceptions=False)


def test_a_folder_with_everything_comes_out(table, here, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    out = tmp_path / "better"
    words = (
        table,
        "--target",
        "hired",
        "--sensitive",
        "sex",
        "--edit",
        "kind:x=y",
        "--within",
        "0.2",
        *TWO_FOLDS,
    )
    done = run(*words, "-o", out)
    assert done.exit_code == 0
    assert {path.name for path in out.iterdir()} == {
        "alternatives.csv", "cells.jsonl", "improvement.json", "index.html", "model.ubj", "model.ubj.likewise.json",
    }  # fmt: skip
    document = json.loads((out / "improvement.json").read_text())
    assert document["chosen"] == "blind"
    repeated = f"likewise improve {table} --target hired --sensitive sex --edit kind:x=y --within 0.2 --set folds=2 --output {out}"
    assert shlex.split(document["command"]) == shlex.split(repeated)
    assert "Wrote improvement.json, index.html, alternatives.csv and model.ubj to " in done.stdout
    assert "about" in done.stderr
    people = pd.read_csv(table).drop(columns="hired")
    model = lw.load_model(out / "model.ubj")
    swapped = people.assign(sex=people["sex"].map({"F": "M", "M": "F"}))
    assert model.predict(people).tolist() == model.predict(swapped).tolist()
    assert set(model.predict(people)) == {"yes", "no"}
    # again: nothing is left to compute, and the same comes out
    before = {p.name: p.read_bytes() for p in out.iterdir() if p.is_file()}
    again = run(*words, "-o", out)
    assert "4 cells are finished; 0 to compute" in again.stderr
    assert {p.name: p.read_bytes() for p in out.iterdir() if p.is_file()} == before


def test_stopped_and_started_again_it_ends_the_same(table, here, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    words = (table, "--target", "hired", "--sensitive", "sex", "--quiet", *TWO_FOLDS)
    run(*words, "-o", tmp_path / "whole")
    from likewise.improving import choosing as cross_validation

    tally, calls = cross_validation.tally_model, []

    def stop(*arguments, **choices):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return tally(*arguments, **choices)

    monkeypatch.setattr(cross_validation, "tally_model", stop)
    assert (
        CliRunner().invoke(cli, ["improve", *map(str, words), "-o", str(tmp_path / "parts")]).exit_code == 1
    )
    assert len((tmp_path / "parts" / "cells.jsonl").read_text().splitlines()) == 2
    assert not (tmp_path / "parts" / "improvement.json").exists()
    assert run(*words, "-o", tmp_path / "parts").exit_code == 0
    whole, parts = (
        (tmp_path / name / "improvement.json").read_text().replace(str(tmp_path / name), "")
        for name in ("whole", "parts")
    )
    without_time = [
        [line for line in text.splitlines() if "cpu_seconds" not in line] for text in (whole, parts)
    ]
    assert without_time[0] == without_time[1]
    models = [(tmp_path / name / "model.ubj").read_bytes() for name in ("whole", "parts")]
    assert models[0] == models[1]


def test_your_model_is_compared(table, here, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    frame = pd.read_csv(table)
    frame = frame.assign(sex=(frame["sex"] == "M").astype(int), hired=(frame["hired"] == "yes").astype(int))
    frame = frame.drop(columns="kind")
    frame.to_csv(tmp_path / "numbers.csv", index=False)
    model = xgboost.XGBClassifier(n_estimators=20, max_depth=3, n_jobs=1)
    model.fit(frame.drop(columns="hired"), frame["hired"]).save_model(tmp_path / "current.json")
    done = run(
        tmp_path / "numbers.csv", "--target", "hired", "--sensitive", "sex", "--model", tmp_path / "current.json",
        "-o", tmp_path / "better", "--least", "changed", "--within", "0.3", *TWO_FOLDS,
    )  # fmt: skip
    assert done.exit_code == 0
    document = json.loads((tmp_path / "better" / "improvement.json").read_text())
    assert [a["name"] for a in document["alternatives"]][:2] == ["Your model", "Your model, twin consensus"]
    assert document["unseen"]["reference"]["name"] == "Your model"
    assert document["rule"]["least"] == ["changed decisions"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--target", "hired"), "--sensitive COLUMN"),
        (("--target", "hired", "--sensitive", "sexx"), "sexx"),
        (("--target", "nothing", "--sensitive", "sex"), "nothing"),
        (("--target", "hired", "--sensitive", "sex", "--edit", "kind"), "--edit must be"),
        (("--target", "hired", "--sensitive", "sex", "--model", "nowhere.json"), "nowhere.json"),
    ],
)
def test_mistakes_are_told(table, words, message, tmp_path):
    with pytest.raises(InputError, match=message):
        run(table, *words, "-o", tmp_path / "better")


def test_other_choices_do_not_replace_what_is_there(table, here, tmp_path):
    words = (
        table,
        "--target",
        "hired",
        "--sensitive",
        "sex",
        "--quiet",
        *TWO_FOLDS,
        "-o",
        tmp_path / "better",
    )
    run(*words)
    with pytest.raises(InputError, match="other settings"):
        run(*words, "--seed", "1")
    assert run(*words, "--seed", "1", "--force").exit_code == 0
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("mine")
    with pytest.raises(InputError, match="was not written by `improve`"):
        run(*words[:-1], tmp_path / "mine")
