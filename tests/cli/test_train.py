"""`likewise train`, `learn-metric`, `improve --compare`: what they write, and what they refuse."""

import json
import re
from pathlib import Path

import pytest

import likewise as lw
from likewise.cli.train import METHODS

BASIC = ("--target", "paid", "--sensitive", "sex")


@pytest.mark.filterwarnings("ignore::likewise.training.TrainingWarning")  # so few people prove little
def test_what_train_writes_audit_reads(run, table):
    done = run(
        "train", table, *BASIC, "--method", "sensr", "--steps", "60", "--hidden", "8", "-o", "m.safetensors"
    )
    assert done.code == 0, done.err
    assert re.fullmatch(
        r"Wrote m\.safetensors: SenSR on 192 people\.\nOn 48 people held out: accuracy 0\.\d+, balanced accuracy "
        r"0\.\d+; 0\.0% get another decision with other values of sex\.\n",
        done.out,
    )
    done = run("audit", "m.safetensors", table, *BASIC, "--set", "search=candidates", "-o", "-")
    assert done.code == 0, done.err
    assert json.loads(done.out)["numbers"]["people"] == 240


@pytest.mark.filterwarnings("ignore::likewise.training.TrainingWarning")
@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_trains_and_is_read_again(method, run, table, people):
    done = run(
        "train",
        table,
        *BASIC,
        "--method",
        method,
        "--steps",
        "10",
        "--hidden",
        "4",
        "-o",
        "m.safetensors",
        "-q",
    )
    assert (done.code, done.out) == (0, ""), done.err
    model = lw.models.load_model("m.safetensors")
    assert model.classes_.tolist() == ["no", "yes"]
    assert len(model.predict(people.drop(columns="paid"))) == 240


# A few steps on a small table teach nothing, and that is said.
@pytest.mark.filterwarnings("ignore::likewise.training.TrainingWarning")
def test_a_metric_is_learned_shown_and_used(run, table):
    done = run("learn-metric", table, "--sensitive", "sex", "--target", "paid", "-o", "metric.safetensors")
    assert done.code == 0, done.err
    assert "Wrote metric.safetensors: 2 sensitive directions of 6 encoded columns." in done.out
    assert "AUC" in done.out
    metric = lw.FairMetric.load("metric.safetensors")
    assert "paid" not in [column.name for column in metric.feature_map.columns_]
    again = run("learn-metric", table, "--sensitive", "sex", "-o", "metric.safetensors")
    assert (again.code, "--force" in again.err) == (2, True)
    done = run(
        "train",
        table,
        "--target",
        "paid",
        "--metric",
        "metric.safetensors",
        "--steps",
        "10",
        "-o",
        "m.safetensors",
    )
    assert done.code == 0, done.err
    done = run(
        "audit",
        "m.safetensors",
        table,
        "--target",
        "paid",
        "--metric",
        "metric.safetensors",
        "--set",
        "search=candidates",
    )
    assert done.code == 0, done.err


def test_a_comparison_of_methods_and_a_ready_model(run, table, model):
    done = run(
        "improve", table, *BASIC, "--compare", "baseline", "--compare", "project", "--compare", f"ready={model}",
        "--set", "steps=60", "--set", "search=candidates", "-o", "page.html", "-o", "compare.json",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "Wrote page.html" in done.out
    document = json.loads(Path("compare.json").read_text())
    entries = {entry["name"]: entry["audit"]["numbers"] for entry in document["entries"]}
    assert list(entries) == ["Baseline", "Project", "ready"]
    assert entries["Baseline"]["people"] == 48
    assert entries["Project"]["pure_gap"]["value"] < 0.25 * entries["Baseline"]["pure_gap"]["value"]
    assert any(entry["on_frontier"]["budget"] for entry in document["entries"])


# A few steps on a small table teach nothing, and that is said.
@pytest.mark.filterwarnings("ignore::likewise.training.TrainingWarning")
def test_a_target_with_more_values_is_cut_in_two(run, people, tmp_path):
    people.assign(paid=["low", "middle", "high"] * 80).to_csv("three.csv", index=False)
    arguments = ["three.csv", *BASIC, "--favourable", "high", "--steps", "5", "-o", "m.safetensors"]
    assert run("train", *arguments).code == 0
    assert lw.models.load_model("m.safetensors").classes_.tolist() == ["high", "not high"]
    done = run(
        "audit", "m.safetensors", "three.csv", *BASIC, "--favourable", "high", "--set", "search=candidates"
    )
    assert done.code == 0, done.err


TRAIN = [
    (["--target", "paid", "--sensitive", "sexx"], "no column 'sexx'"),
    (["--target", "paid"], "--method sensr needs --sensitive"),
    (["--target", "paid", "--method", "cocl"], "needs the sensitive columns"),
    ([*BASIC, "--method", "magic"], "magic"),
    ([*BASIC, "--eps", "-1"], "-1"),
    ([*BASIC, "--method", "baseline", "--eps", "1"], "has no tolerance"),
    ([*BASIC, "--steps", "0"], "0"),
    ([*BASIC, "--hidden", "many"], "--hidden must be"),
    ([*BASIC, "-o", "model.pkl"], ".safetensors"),
    ([*BASIC, "-o", "no/model.safetensors"], "does not exist"),
    ([*BASIC, "--read", "ignore=sex"], "left out (--read ignore)"),
    (["--target", "one", "--sensitive", "sex"], "one value only"),
    (["--target", "paid", "--sensitive", "one"], "one"),
    ([*BASIC, "--metric", "other.safetensors"], "no column 'size'"),
]


def test_bad_input_leaves_no_file(run, people, tmp_path):
    people.assign(one="same").to_csv("people.csv", index=False)
    other = people.rename(columns={"age": "size"}).drop(columns="paid")
    lw.ExpertSubspace(["sex"]).fit(other).metric_.save("other.safetensors")
    for arguments, message in TRAIN:
        done = run("train", "people.csv", "-o", "m.safetensors", *arguments)
        assert (done.code, done.out) == (2, ""), (arguments, done)
        assert message in done.err, (arguments, done.err)
        assert "Traceback" not in done.err
        assert "unforeseen" not in done.err, done.err
    for arguments, message in [
        (["improve", "people.csv", "--target", "paid", "--compare", "sensr"], "--sensitive COLUMN"),
        (["improve", "people.csv", *BASIC, "--compare", "nothing.onnx"], "there is no file"),
        (["improve", "people.csv", *BASIC, "--compare", "magic"], "magic"),
        (["learn-metric", "people.csv", "-o", "m.safetensors"], "--sensitive COLUMN"),
        (["learn-metric", "people.csv", "--sensitive", "one", "-o", "m.safetensors"], "one"),
        (
            ["learn-metric", "nothing.csv", "--sensitive", "sex", "-o", "m.safetensors"],
            "no file 'nothing.csv'",
        ),
    ]:
        done = run(*arguments)
        assert (done.code, done.out) == (2, ""), (arguments, done)
        assert message in done.err, (arguments, done.err)
        assert "unforeseen" not in done.err, done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.safetensors", "people.csv"]
