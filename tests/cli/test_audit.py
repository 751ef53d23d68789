"""`likewise audit`: exit codes, also through the real command, outputs, options, and bad input in one message."""

import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.training import MLPBaselineClassifier

SEX = ("--target", "paid", "--sensitive", "sex", "--set", "search=candidates")


# ------------------------------------------------------------------------- exit codes, as a person sees them


def test_fair_and_unfair(run, table, model, tmp_path):
    fair = run("audit", model, table, *SEX, "--delta", "5", "-o", "page.html", "-o", "result.json", "--full")
    assert fair.code == 0, fair.err
    assert fair.err == ""
    assert "zero-distance gap" in fair.out
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert len(page) < 2_000_000
    document = json.loads((tmp_path / "result.json").read_text())
    assert document["verdict"]["delta"] == 5
    unfair = run("audit", model, table, *SEX, "--delta", "0.001", "--quiet")
    assert (unfair.code, unfair.out) == (1, "")
    assert unfair.err.startswith("The worst case adds ")
    assert len(unfair.err.splitlines()) == 1


def test_a_limit_is_a_share_of_the_decisions_and_no_search_runs_unasked(run, table, model):
    found = json.loads(run("audit", model, table, *SEX[:4], "-o", "-").out)
    assert "eps" not in found["numbers"]
    assert found["computed"]["search"] == "enumeration"
    share = found["summary"]["changed"]["share"]
    assert 0 < share < 1
    kept = run("audit", model, table, *SEX[:4], "--limit", f"{100 * share + 0.1:.1f}%")
    assert (kept.code, kept.err) == (0, "")
    lines = kept.out.rstrip().split("\n")
    assert len(lines) <= 20
    assert max(map(len, lines)) <= 80
    assert "Within the limit: " in lines[-2] + lines[-1]
    beyond = run("audit", model, table, *SEX[:4], "--limit", "0")
    assert beyond.code == 1
    assert beyond.err.startswith("Above the limit: ")
    assert "95% interval" in beyond.err
    for share in ("5", "1"):  # of 100%, everything is within
        check_refused(run("audit", model, table, *SEX[:4], "--limit", share), "--limit must be a share")
    learned = json.loads(run("audit", model, table, *SEX[:4], "--metric", "learned", "-o", "-").out)
    assert learned["numbers"]["eps"] == 0.1


def test_people_are_named_by_their_line_of_the_file(run, table, model, people):
    whole = run("audit", model, table, *SEX, "--sample", "100", "-o", "-", "-o", "changed.csv")
    document = json.loads(whole.out)
    scope, listed = document["summary"]["scope"], document["summary"]["people"]
    assert (scope["people"], scope["supplied"], scope["sampled"], scope["counted"]) == (
        100,
        240,
        True,
        "line",
    )
    assert listed
    lines = Path(table).read_text().splitlines()
    names = lines[0].split(",")
    for one in listed:
        cells = dict(zip(names, lines[one["row"] - 1].split(","), strict=True))
        assert {name: str(value) for name, value in one["cells"].items()} == {
            name: value for name, value in cells.items() if name in one["cells"]
        }
    written = pd.read_csv("changed.csv")
    assert written["row"].tolist() == [one["row"] for one in listed]
    assert len(written) == document["summary"]["changed"]["count"]
    short = run("audit", model, table, *SEX, "--sample", "100").out
    assert short.startswith("A random sample: 100 of the table's 240 rows.")
    assert f"line {listed[0]['row']} of {Path(table).name}" in " ".join(short.split())


def test_a_search_that_met_nonsense_is_exit_code_three(run, table, tmp_path):
    # The network answers at people who exist and nowhere else, so the gradient search meets nothing but NaN.
    (tmp_path / "fragile.py").write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.layer = torch.nn.Linear(6, 2)\n"
        "    def forward(self, x):\n"
        "        category = x[:, 2:5].max(dim=1).values\n"
        "        whole = (category - category.round()).abs() < 1e-9\n"
        "        return torch.where(whole[:, None], self.layer(x), torch.nan)\n"
        "torch.manual_seed(0)\n"
        "model = Net()\n"
    )
    done = run(
        "audit", "fragile:model", table, "--target", "paid", "--favourable", "yes", "--sensitive", "sex",
        "--set", "search=gradient", "--delta", "100", "--sample", "20", "--metric", "learned",
    )  # fmt: skip
    assert done.code == 3, done.err
    assert done.err.splitlines()[-1].startswith("The audit did not converge: ")
    assert "Traceback" not in done.err


def test_a_mistake_is_exit_code_two_with_one_message(run, table, model, tmp_path):
    done = run("audit", model, table, "--target", "paid", "--sensitive", "sexx", "-o", "page.html")
    assert (done.code, done.out) == (2, "")
    assert done.err.strip().splitlines() == [
        "Error: people.csv: 'table' has no column 'sexx' (did you mean 'sex'?). "
        "Its columns: age, hours, job, sex, paid."
    ]
    assert list(tmp_path.iterdir()) == []


# --------------------------------------------------------------------------------------------- what it does


def test_json_on_standard_output_and_the_same_numbers_as_python(run, table, model, people):
    done = run(
        "audit",
        model,
        table,
        *SEX,
        "--edit",
        "job:cook=nurse",
        "-o",
        "-",
        "--metric",
        "learned",
        "--eps",
        "0.2",
    )
    assert done.code == 0, done.err
    document = json.loads(done.out)
    trained = MLPBaselineClassifier.load(model)
    frame = people.drop(columns="paid")
    domain = trained.encoder_
    metric = lw.AttributeSubspace(["sex"], domain=domain).fit(frame).metric_
    result = lw.auditing.audit(
        trained,
        frame,
        people["paid"].to_numpy(),
        metric=metric,
        domain=domain,
        eps=0.2,
        edits=["sex", lw.Edit("job", ("cook", "nurse"))],
        search="candidates",
    )
    assert document["numbers"]["gap"]["value"] == pytest.approx(result.gap, rel=1e-4)
    assert document["numbers"]["pure_gap"]["value"] == pytest.approx(result.pure_gap, rel=1e-4)
    assert "job: cook ↔ nurse" in json.dumps(document["evaluation"], ensure_ascii=False)


def test_formats_of_tables_give_one_result(run, table, model, people, tmp_path):
    people.to_parquet("people.parquet")
    people.to_feather("people.arrow")
    people.to_csv("people.tsv", sep=";", index=False, encoding="utf-8-sig")
    found = []
    for source in (table, "people.parquet", "people.arrow", "people.tsv"):
        done = run("audit", model, source, *SEX, "-o", "-")
        assert done.code == 0, done.err
        found.append(json.loads(done.out)["numbers"])
    assert all(numbers == found[0] for numbers in found)


def test_a_budget_in_the_tables_units_and_a_column_that_stays(run, table, model, metric):
    wide = run("audit", model, table, *SEX, "--metric", metric, "--eps", "age=20", "-o", "-")
    narrow = run("audit", model, table, *SEX, "--metric", metric, "--eps", "age=2", "-o", "-")
    assert (wide.code, narrow.code) == (0, 0), wide.err + narrow.err
    wide, narrow = (json.loads(done.out)["numbers"] for done in (wide, narrow))
    assert wide["eps"] == pytest.approx(100 * narrow["eps"])
    assert wide["gap"]["value"] > narrow["gap"]["value"]
    done = run("audit", model, table, *SEX, "--set", "immutable=age", "-o", "-")
    assert done.code == 0, done.err
    assert all(
        "age" not in row["twin"] for part in json.loads(done.out)["maps"] for row in part["people"]["rows"]
    )


def test_options_from_a_file_and_the_command_line_wins(run, table, model, tmp_path):
    Path("likewise.toml").write_text(
        f'table = "{table}"\ntarget = "paid"\nsensitive = ["sex"]\n\n'
        '[audit]\nset = ["search=candidates"]\neps = 0.3\noutput = "-"\n\n[train]\nmethod = "project"\n'
    )
    done = run("audit", model, "--config", "likewise.toml")
    assert done.code == 0, done.err
    assert json.loads(done.out)["numbers"]["eps"] == 0.3
    done = run("audit", model, "--config", "likewise.toml", "--eps", "0.1")
    assert json.loads(done.out)["numbers"]["eps"] == 0.1
    for text, message in [
        ("targt = 1", "unknown key 'targt' (did you mean 'target'?)."),
        ("[audti]\neps = 1", "unknown section 'audti' (did you mean 'audit'?)."),
        ("[audit]\nmethod = 'sensr'", "unknown key 'method'"),
        ("eps = ", "not a TOML file"),
        ("eps = 1979-05-27", "must be text, a number"),
    ]:
        Path("likewise.toml").write_text(text)
        done = run("audit", model, table, "--config", "likewise.toml")
        assert (done.code, message in done.err) == (2, True), done.err


def test_a_sample_is_seeded_and_rows_with_holes_can_be_left_out(run, model, people):
    people.loc[3, "job"] = None
    people.to_csv("holes.csv", index=False)
    done = run("audit", model, "holes.csv", *SEX, "--read", "missing=keep")
    assert done.code == 2
    assert "missing values in 'job', and the model does not take them" in done.err
    assert "--read missing=impute" in done.err
    numbers = []
    for seed in (0, 0, 1):
        done = run(
            "audit",
            model,
            "holes.csv",
            *SEX,
            "--read",
            "missing=drop",
            "--sample",
            100,
            "--seed",
            seed,
            "-o",
            "-",
        )
        assert done.code == 0, done.err
        assert "left out 1 people" in done.err
        numbers.append(json.loads(done.out)["numbers"])
    assert numbers[0]["people"] == 100
    assert numbers[0] == numbers[1] != numbers[2]


def test_columns_that_the_model_does_not_use_are_left_out(run, model, people):
    people.assign(id=[f"person {i}" for i in range(len(people))]).to_csv("ids.csv", index=False)
    done = run("audit", model, "ids.csv", *SEX, "-o", "-")
    assert done.code == 0, done.err
    assert "the model does not use 'id'; left out." in done.err


def test_functions_get_the_table_and_torch_modules_get_encoded_numbers(run, table, monkeypatch):
    Path("two_models.py").write_text(
        "import torch\n"
        "def score(frame):\n"
        "    return 0.1 + 0.5 * (frame['sex'] == 'Male') + 0.3 * (frame['age'] > 40)\n"
        "class Male(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return torch.stack([-x[:, 5], x[:, 5]], dim=1)\n"
        "net = Male()\n"
    )
    common = ["--target", "paid", "--sensitive", "sex", "-o", "-", "--set", "search=candidates"]
    done = run("audit", "two_models:score", table, *common)
    assert done.code == 2
    assert "Say which value is class 1 (--favourable)." in done.err
    done = run("audit", "two_models:score", table, *common, "--favourable", "yes")
    assert done.code == 0, done.err
    assert json.loads(done.out)["numbers"]["pure_gap"]["value"] > 0.1
    done = run("audit", "two_models:net", table, *common, "--favourable", "yes")
    assert done.code == 0, done.err
    assert json.loads(done.out)["findings"][0]["kind"] == "encoding"
    # log(1 + e²) for whoever loses by it instead of log(1 + 1) for a column that is 0 or 1
    assert json.loads(done.out)["numbers"]["pure_gap"]["value"] > 0.1


def test_plain_numbers_reach_a_model_as_they_are(run, people, tmp_path):
    import lightgbm

    numbers = people.assign(
        sex=(people["sex"] == "Male").astype(int), paid=(people["paid"] == "yes").astype(int)
    )
    numbers = numbers.drop(columns="job")
    native = lightgbm.LGBMClassifier(n_estimators=5, num_leaves=5, verbose=-1, n_jobs=1)
    native.fit(numbers.drop(columns="paid"), numbers["paid"])
    native.booster_.save_model("trees.txt")
    numbers.to_csv("numbers.csv", index=False)
    done = run("audit", "trees.txt", "numbers.csv", *SEX, "-o", "-")
    assert done.code == 0, done.err
    wanted = -np.log(
        native.predict_proba(numbers.drop(columns="paid"))[np.arange(len(numbers)), numbers["paid"]]
    ).mean()
    assert json.loads(done.out)["numbers"]["base_loss"] == pytest.approx(wanted, rel=1e-6)


def test_a_model_that_refuses_every_man_does_not_pass_where_sex_is_a_number(run, tmp_path):
    """Broke once: on a table of numbers it passed with gap 0.000 and exit code 0."""
    import xgboost

    rng = np.random.default_rng(0)
    table = pd.DataFrame({"SEX": rng.integers(1, 3, 300), "AGE": rng.integers(18, 80, 300)})
    table = table.assign(HOURS=rng.integers(0, 60, 300), YEARS=rng.integers(0, 20, 300))
    used = list(table)
    table["paid"] = (table["SEX"] == 2).astype(int)
    model = xgboost.XGBClassifier(n_estimators=20, max_depth=2, learning_rate=0.5, n_jobs=1)
    model.fit(table[used], table["paid"]).save_model("sexist.json")
    table.to_csv("people.csv", index=False)
    asked = ("--target", "paid", "--sensitive", "SEX", "--eps", 0, "--delta", 0.1)
    done = run("audit", "sexist.json", "people.csv", *asked, "-o", "-")
    assert done.code == 1, done.err
    numbers = json.loads(done.out)["numbers"]
    p = model.predict_proba(table[used])[np.arange(300), table["paid"]]
    other = table.assign(SEX=3 - table["SEX"])
    q = model.predict_proba(other[used])[np.arange(300), table["paid"]]
    truth = float(np.mean(np.log(p) - np.log(q)))
    assert numbers["sensitive_only"]["changed_decisions"]["value"] == 1.0
    assert numbers["sensitive_only"]["gap"]["value"] == pytest.approx(truth, rel=1e-4)
    assert numbers["pure_gap"]["value"] >= truth * 0.9999
    shown = run("audit", "sexist.json", "people.csv", *asked)
    flat = " ".join(shown.out.split())
    assert "Depends on SEX: The dependence is to the disadvantage of people recorded as SEX = 1. Of " in flat
    assert "Together 300 of 300 people" in flat


def test_labels_are_optional(run, table, model):
    asked = ("--sensitive", "sex", "--favourable", "yes", "-o", "-")
    without, named = (json.loads(run("audit", model, table, *more, *asked).out) for more in ((), SEX[:2]))
    for name in ("changed", "effects", "outcomes"):
        assert without["summary"][name] == named["summary"][name]
    assert without["evaluation"] is None
    assert named["evaluation"] is not None
    assert "error_rate" not in without["summary"]["group_rates"][0]
    assert "Without labels it was not checked" in without["summary"]["sure"]
    check_refused(run("audit", model, table, *asked[:2], "--delta", "0.1"), "--target COLUMN")


def test_a_model_of_three_classes_keeps_them_if_one_is_called_favourable(run, people, tmp_path):
    """Broke once: the target was cut into Low and not Low, which the model had never heard of."""
    skops = pytest.importorskip("skops.io")
    from sklearn.tree import DecisionTreeClassifier

    numbers = people[["age", "hours"]].assign(sex=(people["sex"] == "Male").astype(int))
    risk = np.select(
        [people["age"] + 20 * numbers["sex"] > 70, people["age"] > 40], ["High", "Medium"], "Low"
    )
    skops.dump(
        DecisionTreeClassifier(max_depth=4, random_state=0).fit(numbers, risk), tmp_path / "tree.skops"
    )
    numbers.assign(risk=risk).to_csv("risks.csv", index=False)
    asked = ("--target", "risk", "--sensitive", "sex", "--favourable", "Low", "-o", "-")
    done = run("audit", "tree.skops", "risks.csv", *asked)
    assert done.code == 0, done.err
    found = json.loads(done.out)["summary"]
    assert found["scope"]["favourable"] == "Low"
    assert found["changed"]["count"] == sum(found["directions"].values()) > 0


# ------------------------------------------------------------------------------------------------ bad input


def csv(text):
    return lambda path, people: path.write_text(text)


def changed(**columns):
    def write(path, people):
        people.assign(**{k: v(people) if callable(v) else v for k, v in columns.items()}).to_csv(
            path, index=False
        )

    return write


TABLES = {
    "an unknown category": (changed(job="pilot"), "'job'"),
    "an infinite number": (changed(age=lambda p: p["age"].astype(float).where(p.index != 5, np.inf)), "'age'"),
    "no target": (changed(paid=None), "the target 'paid' is missing for everybody"),
    "no rows": (csv("age,hours,job,sex,paid\n"), "has no rows"),
    "nothing": (csv(""), "is empty"),
    "a ragged row": (csv("age,hours,job,sex,paid\n1,2,a,b,c\n1,2,a,b,c,d,e\n"), "not a rectangular CSV"),
    "a name twice": (csv("age,age,paid\n1,2,no\n"), "columns of the same name with different values: 'age'"),
    "no header": (csv("1,2,3\n4,5,6\n"), "no header"),
    "a name missing": (csv("age,,paid\n1,2,no\n"), "no column 'sex'. Its columns: age, column 2, paid"),
    "a page": (csv("<!doctype html><html><table><tr><td>age,sex"), "web page"),
    "a workbook": (lambda path, people: path.write_bytes(b"PK\x03\x04..."), "damaged zip archive or workbook"),
    "another encoding": (lambda path, people: path.write_bytes("âge,paid\n1,no\n".encode("latin-1")), "not UTF-8"),
    "a damaged Parquet file": (lambda path, people: path.write_bytes(b"PAR1" + b"x" * 50), "not a readable Parquet"),
    "words where numbers were": (changed(age="old"), "'age'"),
    "a column missing": (lambda path, people: people.drop(columns="job").to_csv(path, index=False), "'job'"),
    "other labels": (changed(paid=lambda p: p["paid"].str.upper()), "The model's classes are 'no', 'yes'"),
}  # fmt: skip


@pytest.mark.parametrize("what", sorted(TABLES))
def test_bad_tables(what, run, model, people, tmp_path):
    write, message = TABLES[what]
    write(tmp_path / "people.csv", people)
    done = run("audit", model, "people.csv", *SEX, "-o", "page.html", "-o", "result.json")
    check_refused(done, message)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv"]


def check_refused(done, message):
    assert done.code == 2, done.out + done.err
    assert done.out == ""
    assert message in done.err
    assert "Traceback" not in done.err
    assert "unforeseen" not in done.err
    assert len([line for line in done.err.splitlines() if line.startswith("Error: ")]) == 1


OPTIONS = [
    (["--target", "income"], "no column 'income'"),
    (["--sensitive", "race"], "no column 'race'"),
    (["--sensitive", "paid"], "is the target"),
    (["--set", "immutable=size"], "no column 'size'"),
    (["--set", "immutable=sex"], "both sensitive and immutable"),
    (["--set", "immutable=job", "--edit", "job:cook=nurse"], "may not change"),
    (["--favourable", "maybe"], "no value 'maybe'. Its values: 'no' and 'yes'"),
    (["--edit", "job=cook"], "COLUMN:A=B"),
    (["--edit", "job:cook=pilot"], "no value 'pilot'"),
    (["--edit", "work:a=b"], "no column 'work'"),
    (["--eps", "-1"], "--eps must be a number >= 0"),
    (["--eps", "nan"], "--eps must be"),
    (["--eps", "size=2"], "size"),
    (["--delta", "-0.1"], "-0.1"),
    (["--set", "confidence=1"], "1"),
    (["--sample", "1"], "1"),
    (["--set", "search=luck"], "luck"),
    (["--metric", "nothing.safetensors"], "there is no file"),
    (["--metric", "people.csv"], "not a readable safetensors file"),
    (["--metric", "other.safetensors"], "no column 'size'"),
    (["-o", "no/page.html"], "does not exist"),
    (["-o", "."], "holds no evidence"),
    (["-o", "people.txt"], "-o takes FILE.html, FILE.json, FILE.csv, -, FOLDER/, FOLDER.parquet, got"),
    (["-o", "other.json"], "--force"),
    (["-o", "a.json", "-o", "b.json"], "two of the same kind"),
    (["--set", "serch=exact"], "no key 'serch' (did you mean 'search'?)."),
    (["--read", "missing"], "write missing=HOW"),
    (["--trust", "everything"], "is not pickle, process or a package.Type"),
    (["--set", "engine=spark"], "'engine' must be local, dask"),
    (["--config", "nothing.toml"], "there is no file"),
]


def test_bad_options(run, model, people, tmp_path):
    people.to_csv("people.csv", index=False)
    other = people.rename(columns={"age": "size"}).drop(columns="paid")
    lw.ExpertSubspace(["sex"]).fit(other).metric_.save("other.safetensors")
    Path("other.json").write_text("{}")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for arguments, message in OPTIONS:
        done = run("audit", model, "people.csv", *SEX, *arguments)
        assert (done.code, done.out) == (2, ""), (arguments, done)
        assert message in done.err, (arguments, done.err)
        assert "Traceback" not in done.err
        assert "unforeseen" not in done.err, (arguments, done.err)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    done = run("audit", model, "people.csv", "--target", "paid")
    assert (done.code, "--sensitive COLUMN" in done.err) == (2, True)


def test_models_that_answer_nonsense(run, table, tmp_path):
    Path("odd_models.py").write_text(
        "import numpy as np\n"
        "def nan(frame): return np.full(len(frame), np.nan)\n"
        "def short(frame): return np.full(3, 0.5)\n"
        "def logits(frame): return np.full(len(frame), 7.0)\n"
        "def raises(frame): raise RuntimeError('no')\n"
        "def wide(frame): return np.full((len(frame), 3), 1 / 3)\n"
        "number = 3\n"
    )
    common = [table, *SEX, "--favourable", "yes", "--delta", "9", "-o", "page.html"]
    for name, message in [
        ("nan", "not finite"),
        ("short", "shape (3,) for"),
        ("logits", "not probabilities"),
        ("raises", "RuntimeError"),
        ("wide", "3 columns for 2 classes"),
        ("number", "as_model: 'model' must be"),
    ]:
        check_refused(run("audit", f"odd_models:{name}", *common), message)
    assert not Path("page.html").exists()


class Bomb:
    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return (Path.touch, (self.mark,))


def test_nothing_is_unpickled_as_model_table_or_metric(run, table, model, tmp_path):
    mark, bomb = tmp_path / "ran", tmp_path / "bomb.safetensors"
    bomb.write_bytes(pickle.dumps(Bomb(mark)))
    check_refused(run("audit", bomb, table, *SEX), "--trust pickle")
    check_refused(run("audit", model, bomb, *SEX), "pickle")
    check_refused(run("audit", model, table, *SEX, "--metric", bomb), "not a readable safetensors file")
    check_refused(
        run("train", bomb, "--target", "paid", "--sensitive", "sex", "-o", "m.safetensors"), "pickle"
    )
    assert not mark.exists()
    assert not Path("m.safetensors").exists()


def test_a_pickle_needs_a_word_and_brings_a_warning_and_a_verdict_through_the_real_command(
    command, table, people, tmp_path
):
    import joblib
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    pipeline = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["job", "sex"]), remainder="passthrough"),
        LogisticRegression(max_iter=2000),
    ).fit(people.drop(columns="paid"), people["paid"])
    joblib.dump(pipeline, tmp_path / "model.joblib")
    done = command("audit", "model.joblib", table, *SEX, "--trust", "pickle", "--delta", "0.001", "--quiet")
    assert (done.code, done.out) == (1, ""), done.err
    assert done.err.startswith(
        "Warning: model.joblib is a pickle (or joblib) file. Loading it can run any code"
    )
    verdict = done.err.splitlines()[-1]
    assert verdict.startswith("The worst case adds ")


def test_existing_files_stay_without_force(run, table, model, tmp_path):
    Path("page.html").write_text("mine")
    done = run("audit", model, table, *SEX, "-o", "page.html")
    check_refused(done, "--force")
    assert Path("page.html").read_text() == "mine"
    done = run("audit", model, table, *SEX, "-o", "page.html", "--force", "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert Path("page.html").read_text() != "mine"


def test_large_tables_are_read_part_by_part(run, model, people, tmp_path, monkeypatch):
    monkeypatch.setattr("likewise.auditing.sources.STREAM_ROWS", 200)
    people.to_parquet("people.parquet")
    people.to_csv("people.csv", index=False)
    found = []
    for source in ("people.parquet", "people.csv"):
        done = run("audit", model, source, *SEX, "--edit", "job:cook=nurse", "-o", "-")
        assert done.code == 0, done.err
        assert "240 people are read part by part" in done.err
        found.append(json.loads(done.out)["numbers"])
    assert found[0] == found[1]
    done = run(
        "audit", model, "people.parquet", *SEX, "--edit", "job:cook=nurse", "--sample", "1000", "-o", "-"
    )
    whole = json.loads(done.out)["numbers"]
    assert found[0]["people"] == whole["people"] == 240
    assert found[0]["gap"]["value"] == pytest.approx(whole["gap"]["value"], rel=1e-6)
    check_refused(run("audit", model, "people.parquet", *SEX, "--sensitive", "size"), "no column 'size'")
