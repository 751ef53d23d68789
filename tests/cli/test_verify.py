"""`likewise verify`: exit codes, outputs, what is proved and shown, bad input in one message."""

import json

import pandas as pd
import pytest

SEX = ("--target", "paid", "--sensitive", "sex", "--seconds", "5")


@pytest.fixture
def blunt(tmp_path, table):
    """A tree that pays men from 40 on, written by XGBoost: 40 of 62 ages flip."""
    xgboost = pytest.importorskip("xgboost")
    people = pd.read_csv(table)
    X = people[["age", "sex"]].astype({"sex": pd.CategoricalDtype(["Female", "Male"])})
    y = ((people.age >= 40) & (people.sex == "Male")).astype(int)
    X["sex"] = X["sex"].cat.codes
    model = xgboost.XGBClassifier(n_estimators=20, max_depth=2, learning_rate=0.5).fit(X, y)
    model.save_model(tmp_path / "blunt.json")
    numbers = people.assign(sex=(people.sex == "Male").astype(int))[["age", "sex", "paid"]]
    numbers.to_csv(tmp_path / "numbers.csv", index=False)
    return tmp_path / "blunt.json", tmp_path / "numbers.csv"


def test_shares_rules_and_rows_that_flip(run, blunt, tmp_path):
    model, numbers = blunt
    done = run("verify", model, numbers, *SEX, "--json", "found.json", "-o", "flips.csv")
    assert done.code == 0, done.err
    assert "the same decision, proved" in done.out
    found = json.loads((tmp_path / "found.json").read_text())
    ages = pd.read_csv(numbers).age
    older = (ages.max() - 39) / (ages.max() - ages.min() + 1)
    assert found["domain"]["flips"] == pytest.approx(older)
    assert found["domain"]["proved"] == pytest.approx(1 - older)
    assert found["people"]["flips"] == pytest.approx((ages >= 40).mean())
    assert found["rules"][0]["rows"].startswith("age >= 4")
    flips = pd.read_csv(tmp_path / "flips.csv")
    first, second = flips[::2].reset_index(drop=True), flips[1::2].reset_index(drop=True)
    assert (first.age == second.age).all()
    assert (first.sex != second.sex).all()
    assert (first.decision != second.decision).all()
    assert (flips.age >= 40).all()


def test_delta_decides_the_exit_code(run, blunt, table, model):
    tree, numbers = blunt
    unfair = run("verify", tree, numbers, *SEX, "--delta", "0.1", "--quiet")
    assert (unfair.code, unfair.out) == (1, "")
    assert unfair.err.startswith("Unfair")
    assert "are shown to flip" in unfair.err
    fair = run("verify", tree, numbers, *SEX, "--delta", "0.9", "--quiet")
    assert (fair.code, fair.out, fair.err) == (0, "", "")


def test_undecided_is_exit_code_three(run, table, model, monkeypatch):
    from likewise.auditing.bounds.verifying import undecided_regions

    # Nothing is cut: what the first look leaves open stays open.
    monkeypatch.setattr(undecided_regions.UndecidedRegions, "advance", lambda self: self.heap.clear())
    done = run("verify", model, table, *SEX, "--delta", "0.000001")
    assert done.code == 3
    assert "undecided" in done.err


def test_ctrl_c_prints_what_is_proved(run, table, model, monkeypatch):
    from likewise.auditing.bounds.verifying import undecided_regions

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(undecided_regions.UndecidedRegions, "advance", interrupted)
    done = run("verify", model, table, *SEX, "--delta", "0.000001")
    assert done.code == 130
    assert "what is proved so far stands" in done.out


def test_a_network_of_ours_and_json_on_the_screen(run, table, model):
    done = run("verify", model, table, *SEX, "--json", "-")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert sum(found["domain"].values()) == pytest.approx(1.0)
    assert found["domain"]["proved"] > 0.5
    for first, second in zip(found["flips"][::2], found["flips"][1::2], strict=True):
        differs = {name for name in first if first[name] != second[name]}
        assert differs == {"sex", "decision"}
        assert {first["decision"], second["decision"]} == {"yes", "no"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Which columns should not decide?"),
        (("--sensitive", "sexx"), "no column 'sexx'"),
        (("--sensitive", "sex", "--seconds", "0"), "--seconds"),
        (("--sensitive", "sex", "-o", "nowhere/flips.csv"), "does not exist"),
    ],
)
def test_mistakes_are_one_message(run, table, model, arguments, said):
    done = run("verify", model, table, "--target", "paid", *arguments)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err


def test_a_model_that_nothing_can_be_proved_of_is_refused(run, table, tmp_path):
    (tmp_path / "asked.py").write_text("def model(frame):\n    return (frame['age'] > 40).astype(float)\n")
    done = run("verify", "asked:model", table, *SEX)
    assert done.code == 2
    assert "no upper bound is known" in done.err
