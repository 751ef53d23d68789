"""`likewise proxies`: columns that stand in for an attribute, groups from names, what is not written, bad input."""

import json

import numpy as np
import pandas as pd
import pytest

ASKED = ("--target", "paid", "--favourable", "1")


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """Decisions read height and hours; men are taller; names as a spreadsheet leaves them."""
    xgboost = pytest.importorskip("xgboost")
    folder = tmp_path_factory.mktemp("proxies")
    rng = np.random.default_rng(0)
    sex = rng.integers(0, 2, 600)
    people = pd.DataFrame(
        {"height": rng.normal(size=600) + 1.5 * sex, "hours": rng.integers(10, 60, 600), "sex": sex}
    )
    people["paid"] = (people.height + (people.hours - 35) / 20 > 0.7).astype(int)
    model = xgboost.XGBClassifier(n_estimators=15, max_depth=2, learning_rate=0.7, n_jobs=1)
    model.fit(people[["height", "hours"]], people.paid)
    model.save_model(folder / "model.json")
    people["given"] = np.where(sex == 0, "María", "John")
    people.loc[0, "given"] = "Zzyzx"
    people.loc[1, "given"] = None
    people["last"] = np.where(rng.uniform(size=600) < 0.5, "Washington", "O'Brien")
    people["zip"] = rng.choice(["02139", "60619-1234"], 600)
    people["seen"] = np.where(np.arange(600) % 4 == 0, np.where(sex == 0, "female", "male"), None)
    people.to_csv(folder / "people.csv", index=False)
    return folder / "model.json", folder / "people.csv"


def test_a_column_that_stands_in_is_named(run, case, tmp_path):
    done = run(
        "proxies",
        *case,
        *ASKED,
        "--sensitive",
        "sex",
        "-o",
        "found.json",
        "-o",
        "page.html",
        "-o",
        "found.csv",
    )
    assert done.code == 0, done.err
    found = json.loads((tmp_path / "found.json").read_text())
    verdicts = {one["name"]: one["verdict"] for one in found["columns"]}
    assert verdicts["height"] == "proxy"
    assert verdicts["hours"] == "used"
    assert found["direct"] == 0.0
    said = done.out.replace("\n", " ")
    assert "The model does not read sex" in said
    assert "height moves" in said
    assert all(f"{word}: " in said for word in ("Carries", "Moves", "Needed"))
    assert len(done.out.splitlines()) <= 20
    assert max(map(len, done.out.splitlines())) <= 80
    page = (tmp_path / "page.html").read_text()
    assert "Other columns stand in for sex" in page
    assert "<svg" in page
    assert pd.read_csv(tmp_path / "found.csv")["column"].iloc[0] == "height"


@pytest.mark.parametrize("how", ["sex:given", "bifsg:last,given,zip"])
def test_groups_come_from_names_and_no_name_is_written(run, case, tmp_path, how):
    words = ("--groups-from", how, "--pairs", "1", "-o", "found.json", "-o", "page.html", "--force")
    done = run("proxies", *case, *ASKED, *words, *(("--known", "seen") if how == "sex:given" else ()))
    assert done.code == 0, done.err
    found = json.loads((tmp_path / "found.json").read_text())
    given = found["probabilities"]["matched"]["given"]
    assert given == {"found": 598, "in part": 0, "unknown": 1, "empty": 1, "contradicts": 0}
    assert {one["name"] for one in found["columns"]} >= {"height", "hours"}
    if how == "sex:given":
        gap = next(one for one in found["disparity"]["figures"] if one["kind"] == "difference")
        assert gap["outer_low"] < gap["low"] <= gap["high"] < gap["outer_high"]
        assert found["disparity"]["known"] == 150
        assert gap["known"]["low"] < gap["known"]["high"]
    else:
        assert found["probabilities"]["matched"]["zip"]["found"] == 600
    everything = (
        (tmp_path / "found.json").read_text() + (tmp_path / "page.html").read_text() + done.out + done.err
    )
    for secret in ("Mar", "Zzyzx", "Brien", "60619"):
        assert secret not in everything.replace("Marx", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Name one attribute"),
        (("--sensitive", "sex", "--groups-from", "sex:given"), "Name one attribute"),
        (("--groups-from", "sex:nobody"), "'nobody'"),
        (("--groups-from", "surgeo:given"), "one of"),
        (("--sensitive", "sex", "--known", "seen"), "--known goes with"),
        (("--sensitive", "sex", "--reference", "zz"), "--reference goes with"),
        (("--sensitive", "sex", "--legitimate", "shoe"), "'shoe'"),
    ],
)
def test_bad_input_is_one_message(run, case, words, said):
    done = run("proxies", *case, *ASKED, *words)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err


def test_the_favourable_decision_may_be_a_word_of_the_target(run, case, tmp_path):
    """The model answers 0 and 1, as models saved by themselves do."""
    model, table = case
    words = pd.read_csv(table, dtype=str, keep_default_na=False)
    words.assign(paid=words.paid.map({"1": "yes", "0": "no"})).to_csv(tmp_path / "words.csv", index=False)
    asked = ("--favourable", "yes", "--groups-from", "sex:given", "--pairs", "0", "-q", "-o", "words.json")
    done = run("proxies", model, tmp_path / "words.csv", "--target", "paid", *asked)
    assert done.code == 0, done.err
    plain = run("proxies", *case, *ASKED, *asked[2:-1], "plain.json")
    assert plain.code == 0, plain.err
    rates = [json.loads((tmp_path / f"{name}.json").read_text())["disparity"] for name in ("words", "plain")]
    assert rates[0] == rates[1]
