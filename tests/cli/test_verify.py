"""`likewise verify`: exit codes, outputs, what is proved and shown, bad input in one message."""

import json

import pandas as pd
import pytest

SEX = ("--target", "paid", "--sensitive", "sex", "--budget-seconds", "5")


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
    done = run("verify", model, numbers, *SEX, "-o", "found.json", "-o", "flips.csv")
    assert done.code == 0, done.err
    assert "the same decision, proved" in done.out
    lines = [line for line in done.out.splitlines() if not line.startswith("Wrote ")]
    assert len(lines) <= 20
    assert max(map(len, lines)) <= 80
    assert "Depends on sex: " in "\n".join(lines[-5:])
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
    assert unfair.err.startswith(
        "64.516% of all people who could exist are shown to flip, more than --delta 0.1"
    )
    assert "are shown to flip" in unfair.err
    fair = run("verify", tree, numbers, *SEX, "--delta", "0.9", "--quiet")
    assert (fair.code, fair.out, fair.err) == (0, "", "")


def test_undecided_is_exit_code_three(run, table, model, monkeypatch):
    from likewise.auditing.verification import undecided_regions

    # Nothing is cut: what the first look leaves open stays open.
    monkeypatch.setattr(undecided_regions.UndecidedRegions, "advance", lambda self: self.heap.clear())
    done = run("verify", model, table, *SEX, "--delta", "0.000001")
    assert done.code == 3
    assert "undecided" in done.err


def test_ctrl_c_prints_what_is_proved(run, table, model, monkeypatch):
    from likewise.auditing.verification import undecided_regions

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(undecided_regions.UndecidedRegions, "advance", interrupted)
    done = run("verify", model, table, *SEX, "--delta", "0.000001")
    assert done.code == 130
    assert "Stopped early: what was proved holds" in done.out


def test_a_network_of_ours_and_json_on_the_screen(run, table, model):
    done = run("verify", model, table, *SEX, "-o", "-")
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
        ((), "Which columns should decisions not depend on?"),
        (("--sensitive", "sexx"), "no column 'sexx'"),
        (("--sensitive", "sex", "--budget-seconds", "0"), "--budget-seconds"),
        (("--sensitive", "sex", "-o", "nowhere/flips.csv"), "does not exist"),
    ],
)
def test_mistakes_are_one_message(run, table, model, arguments, said):
    done = run("verify", model, table, "--target", "paid", *arguments)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err


def test_a_model_that_nothing_can_be_proved_of_is_asked(run, table, tmp_path):
    (tmp_path / "asked.py").write_text(
        "def model(frame):\n    return ((frame['age'] > 40) & (frame['sex'] == 'Male')).astype(float)\n"
    )
    done = run("verify", "asked:model", table, *SEX, "-o", "found.json")
    assert done.code == 0, done.err
    assert "Nothing could be proved: no upper bound is known" in done.out
    # Pairs are listed, so the share above them is not written as 0.
    assert "pairs found" in done.out
    assert "a different one, shown     │                    0.000%" not in done.out
    found, ages = json.loads((tmp_path / "found.json").read_text()), pd.read_csv(table).age
    assert found["domain"] == {"proved": 0.0, "flips": 0.0, "undecided": 1.0}
    assert found["people"]["flips"] == pytest.approx((ages > 40).mean())
    older = (ages.max() - 40) / (ages.max() - ages.min() + 1)
    assert found["sampled"]["low"] < older < found["sampled"]["high"]
    undecided = run("verify", "asked:model", table, *SEX, "--delta", "0.01", "--quiet")
    assert undecided.code == 3
    assert "Nothing could be proved" in undecided.err


def test_columns_that_the_model_does_not_read_are_called_trivial(run, blunt, tmp_path):
    model, numbers = blunt
    pd.read_csv(numbers).assign(town=lambda t: t.index % 5).to_csv(tmp_path / "more.csv", index=False)
    words = ("--target", "paid", "--sensitive", "town", "--budget-seconds", "5", "-o", "found.json")
    done = run("verify", model, tmp_path / "more.csv", *words)
    assert done.code == 0, done.err
    assert "The decision is the same because the model does not read town" in done.out
    assert json.loads((tmp_path / "found.json").read_text())["trivial"] is True


def test_what_is_printed_can_be_german(run, blunt):
    model, numbers = blunt
    done = run("verify", model, numbers, *SEX, "--language", "de")
    assert done.code == 0, done.err
    assert "dieselbe Entscheidung" in done.out
    assert "Wo Entscheidungen am häufigsten wechseln:" in done.out


@pytest.mark.parametrize("policy", [(), ("--read", "missing=impute"), ("--read", "missing=drop")])
def test_people_with_missing_cells_are_those_of_the_audit(run, blunt, tmp_path, policy):
    xgboost = pytest.importorskip("xgboost")
    people = pd.read_csv(blunt[1]).astype({"age": float})
    people.loc[people.index % 4 == 0, "age"] = None
    y = ((people.age.fillna(20) >= 40) & (people.sex == 1)).astype(int)
    model = xgboost.XGBClassifier(n_estimators=20, max_depth=2, learning_rate=0.5).fit(
        people[["age", "sex"]], y
    )
    model.save_model(tmp_path / "gaps.json")
    people.to_csv(tmp_path / "gaps.csv", index=False)
    named = ("--target", "paid", "--favourable", "yes", "--sensitive", "sex", *policy)
    audited = run(
        "audit",
        "gaps.json",
        "gaps.csv",
        *named,
        "--eps",
        "0",
        "-o",
        "-",
        "--metric",
        "columns",
        "--set",
        "search=candidates",
    )
    verified = run("verify", "gaps.json", "gaps.csv", *named, "--budget-seconds", "2", "-o", "-")
    assert (audited.code, verified.code) == (0, 0), audited.err + verified.err
    only = json.loads(audited.out)["numbers"]["sensitive_only"]
    found = json.loads(verified.out)
    assert found["people"]["flips"] == pytest.approx(only["changed_decisions"]["value"])
    assert found["people"]["undecided"] == 0
    told = people[["age", "sex"]]
    if policy:
        told = told.dropna() if policy[1] == "missing=drop" else told.fillna({"age": people.age.median()})
    each = [model.predict(told.assign(sex=sex)) for sex in (0, 1)]
    assert found["people"]["flips"] == pytest.approx((each[0] != each[1]).mean())
    # To the model a missing age is a low one, unlike the median that would be filled in.
    assert model.predict(
        pd.DataFrame({"age": [None, people.age.median()], "sex": 1}, dtype=float)
    ).tolist() == [0, 1]
    assert found["domain"]["proved"] > 0
