"""`inspect`, `train` and `audit` on troublesome tables: they run, or say in one sentence what to do."""

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from likewise.core.errors import InputError
from likewise.core.text import command_line

ENCODING = {
    "latin": ("--read", "encoding=latin-1"),
    "without_header": (
        "--read",
        "header=no",
    ),
}
# What cannot be trained on, and what is said then.
REFUSED = {"one_row": "one value only", "no_rows": "no rows", "without_header": "no column 'paid'"}
TRAIN = ("--target", "paid", "--sensitive", "SEX", "--method", "baseline", "--steps", "3", "--hidden", "4")


def peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


@pytest.mark.parametrize(
    "name",
    [
        "comma", "doubled", "ids_and_dates", "codes", "gaps_everywhere", "many_categories", "one_row", "no_rows",
        "old_mac", "latin", "zipped", "huge_numbers", "without_header",
    ],
)  # fmt: skip
def test_inspect_train_and_audit_run_or_say_what_to_do(trouble, run, name):
    table, more = trouble(name), ENCODING.get(name, ())
    code, out, err = run("inspect", table, *more)
    if name == "no_rows":
        assert (code, "no rows" in err) == (2, True)
    else:
        assert (code, "columns.toml" in out) == (0, True), err
    sample = ("--sample", "60") if name == "many_categories" else ()
    code, _, err = run("train", table, *TRAIN, *more, *sample, "-o", "model.safetensors")
    if name in REFUSED:
        assert code == 2
        assert REFUSED[name] in err.splitlines()[-1]
        return
    assert code == 0, err
    code, out, err = run(
        "audit",
        "model.safetensors",
        table,
        *TRAIN[:4],
        *more,
        "--set",
        "search=candidates",
        "--eps",
        "0",
        "--sample",
        "40",
    )
    assert code == 0, err
    assert "another decision" in " ".join(out.split())
    assert peak_gigabytes() < 2.0


def test_ten_thousand_columns_are_read_and_too_many_to_audit(trouble, run):
    """Training takes them too, in twenty seconds; here they are read as `train` reads them."""
    from likewise.data.case import WIDEST_AUDIT, TableRequest, read_people

    code, out, err = run("inspect", trouble("many_columns"))
    assert code == 0, err
    assert "and 9,908 more" in out
    people = read_people(trouble("many_columns"), TableRequest("paid", needed=("SEX",)))
    assert people.frame.shape == (60, 10_007)
    with command_line(), pytest.raises(InputError, match=r"take fewer columns \(--read only\)"):
        read_people(trouble("many_columns"), TableRequest("paid", widest=WIDEST_AUDIT))
    assert peak_gigabytes() < 2.0


@pytest.mark.parametrize("verb", ["inspect", "audit", "train"])
@pytest.mark.parametrize(
    ("file", "target", "sensitive"),
    [("compas-scores-two-years.csv", "two_year_recid", "race"), ("law_school.csv", "pass_bar", "male")],
)
def test_published_tables_as_they_are(published, run, compas_model, verb, file, target, sensitive):
    table = published(file)
    if verb == "inspect":
        code, out, err = run("inspect", table, "--target", target)
        assert "target" in out
    elif verb == "train":
        code, _, err = run(
            "train", table, "--target", target, "--sensitive", sensitive, "--method", "baseline", "--steps", "3", "-o",
            "m.safetensors",
        )  # fmt: skip
    else:
        code, _, err = run(
            "audit", compas_model(table, target), table, "--target", target, "--sensitive", sensitive, "--sample", "150",
            "--eps", "0",
        )  # fmt: skip
    assert code == 0, err
    assert peak_gigabytes() < 2.0


@pytest.fixture
def compas_model(tmp_path):
    """A model of ours, trained in a moment on a published table."""
    from likewise.cli.app import main

    def make(table: Path, target: str) -> Path:
        path = tmp_path / "model.safetensors"
        with pytest.raises(SystemExit) as ended:
            main(
                ["train", str(table), "--target", target, "--method", "baseline", "--steps", "30", "--sample", "1500",
                 "-o", str(path), "-q"]
            )  # fmt: skip
        assert ended.value.code == 0
        return path

    return make


@pytest.mark.parametrize(
    ("file", "target", "sensitive"),
    [
        ("compas-scores-two-years.csv", "two_year_recid", ("sex", "race")),
        ("law_school.csv", "pass_bar", ("male", "race")),
    ],
)
def test_every_value_of_a_twin_is_one_of_its_column(published, tmp_path, file, target, sensitive):
    """Found in a random linear model, for which every column matters."""
    from likewise.auditing import audit
    from likewise.data.case import TableRequest, read_people
    from likewise.fair_metrics import AttributeSubspace
    from likewise.models import as_model

    people = read_people(published(file), TableRequest(target, needed=sensitive, sample=200))
    domain = people.domain()
    slope = np.random.default_rng(0).normal(size=domain.n_features)
    score = as_model(lambda frame: 1 / (1 + np.exp(-domain.encode_array(frame) @ slope)), takes_frame=True)
    metric = AttributeSubspace(list(sensitive), domain=domain).fit(people.frame).metric_
    labels = np.asarray(people.labels).astype(int)
    result = audit(score, people.frame, labels, metric=metric, domain=domain, eps=0.5, search="candidates")
    twins = result.unfair_map.twins
    assert domain.validate(twins[list(people.frame.columns)]) == ()
    assert (twins != result.unfair_map.people).to_numpy().any()
    for name in sensitive:
        assert set(twins[name]) <= set(people.frame[name])
    for name, plan in people.plans.items():
        if plan.kind == "category":
            assert set(twins[name]) <= set(people.frame[name]), name
        elif plan.kind == "integer":
            assert (twins[name] == twins[name].round()).all(), name


# ------------------------------------------------------------------------------------------- the user's word


def test_a_columns_file_is_never_overwritten_unless_told(trouble, run):
    assert run("inspect", trouble("codes"))[0] == 0
    first = Path("columns.toml").read_text()
    code, out, err = run("inspect", trouble("comma"))
    assert code == 0
    assert "people" in out
    assert "left as it is" in err
    code, _, err = run("inspect", trouble("comma"), "-o", "columns.toml")
    assert code == 2
    assert "--force" in err
    assert Path("columns.toml").read_text() == first
    assert run("inspect", trouble("comma"), "--force")[0] == 0


def test_options_and_the_file_say_what_columns_are(trouble):
    from likewise.cli.options import TableChoices
    from likewise.data.case import TableRequest, read_people

    def read(**choices):
        return read_people(trouble("ids_and_dates"), TableRequest("paid", choices=TableChoices(**choices)))

    plain = read()
    assert "'id' (looks like an id" in plain.notes[-1]
    assert set(plain.frame) == {"age", "height", "SEX", "male", "MARRIAGE", "priors_count", "job"}
    assert plain.domain().column("SEX").kind == "categorical"
    changed = read(keep=("id",), integer=("MARRIAGE",), categorical=("priors_count",), ignore=("height",))
    domain = changed.domain()
    assert domain.column("MARRIAGE").kind == "integer"
    assert domain.column("priors_count").kind == "categorical"
    assert "id" in changed.frame
    assert "height" not in changed.frame
    assert set(read(only=("age", "job")).frame) == {"age", "job"}
    with command_line(), pytest.raises(InputError, match=r"--read categorical.*did you mean 'SEX'"):
        read(categorical=("SEXX",))


def test_thousands_of_categories_that_somebody_keeps_do_not_fill_the_memory(trouble, run):
    code, _, err = run(
        "train", trouble("many_categories"), *TRAIN, "--read", "keep=street", "-o", "m.safetensors"
    )
    assert code == 2
    assert "50,000 categories" in err
    assert "--read ignore=street" in err
    assert peak_gigabytes() < 2.0


@pytest.mark.parametrize(
    ("target", "more", "said"),
    [
        ("height", (), "Cut it in two with a limit, such as --favourable '>="),
        ("age", (), "pass --classes if each of them is a class"),
        ("age", ("--favourable", ">=45"), None),
        ("MARRIAGE", (), None),
        ("key", (), "so they are not classes"),
    ],
)
def test_targets_that_are_numbers_are_asked_about(trouble, run, target, more, said):
    code, _, err = run(
        "train",
        trouble("ids_and_dates"),
        "--target",
        target,
        *more,
        *TRAIN[2:],
        "--read",
        "only=job",
        "-o",
        "m.safetensors",
    )
    if said is None:
        assert code == 0, err
    else:
        assert code == 2
        assert said in err


@pytest.mark.usefixtures("files_in_this_process")
def test_a_regression_is_audited_with_a_tolerance(people, run, tmp_path):
    import json

    import skops.io
    from sklearn.linear_model import LinearRegression

    frame = people()[["age", "SEX", "male", "height"]]
    model = LinearRegression().fit(frame[["age", "SEX", "male"]], frame["height"])
    skops.io.dump(model, "model.skops")
    frame.to_csv("people.csv", index=False)
    asked = (
        "audit",
        "model.skops",
        "people.csv",
        "--target",
        "height",
        "--sensitive",
        "SEX",
        "--metric",
        "columns",
    )
    code, _, err = run(*asked, "--eps", "0", "-o", "a.json")
    assert code == 0, err
    assert "n/a: the model predicts numbers" in err
    code, _, err = run(*asked, "--eps", "0", "-o", "b.json", "--set", "tolerance=1000")
    assert code == 0, err
    strict, loose = (json.loads(Path(name).read_text()) for name in ("a.json", "b.json"))
    changed = [[part["changed_decisions"] for part in document["maps"]] for document in (strict, loose)]
    assert max(changed[0]) > 0
    assert max(changed[1]) == 0


def test_an_empty_group_and_class_is_not_the_end_of_an_audit(people, run, compas_model):
    frame = people()
    frame["job"] = np.where((frame["job"] == "cook") & (frame["paid"] == "yes"), "nurse", frame["job"])
    frame.to_csv("people.csv", index=False)
    model = compas_model(Path("people.csv"), "paid")
    code, _, err = run("audit", model, "people.csv", "--target", "paid", "--sensitive", "job", "--eps", "0")
    assert code == 0, err
    assert "job: nobody of class yes in group cook, so the gaps leave them out" in err


def test_a_rare_value_does_not_end_learn_metric(people, run):
    frame = people().assign(race=["a"] * 99 + ["rare"] + ["b"] * 100)
    frame.to_csv("people.csv", index=False)
    code, out, err = run(
        "learn-metric", "people.csv", "--sensitive", "race", "--target", "paid", "-o", "m.safetensors"
    )
    assert code == 0, err
    assert "Wrote m.safetensors" in out


def test_a_model_of_other_columns_says_which(people, run, compas_model):
    frame = people()
    frame.to_csv("people.csv", index=False)
    model = compas_model(Path("people.csv"), "paid")
    frame.drop(columns=["age", "job"]).assign(extra=1.5).to_csv("other.csv", index=False)
    code, _, err = run("audit", model, "other.csv", "--target", "paid", "--sensitive", "SEX")
    assert code == 2
    assert "'age'" in err
    assert "'job'" in err


# ------------------------------------------------------------------------------------------ the real command


def test_files_in_the_working_directory_do_not_shadow_the_command(tmp_path, people):
    for name in ("click", "pandas", "rich", "numpy", "tomllib", "sklearn"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed')\n")
    people(20).to_csv(tmp_path / "people.csv", index=False)
    words = [sys.executable, "-m", "likewise", "inspect", "people.csv"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "priors_count" in done.stdout


def test_a_module_of_the_working_directory_is_found_and_hides_nothing(tmp_path, monkeypatch):
    from likewise.models.model_files import read_model

    (tmp_path / "beside.py").write_text("NAME = 'beside'\n")
    (tmp_path / "statistics.py").write_text("raise SystemExit('shadowed')\n")
    (tmp_path / "my_model_here.py").write_text(
        "import statistics, beside\nmodel = beside.NAME, statistics.mean([1, 3])\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "statistics", raising=False)
    assert read_model("my_model_here:model").native == ("beside", 2)


def test_warnings_that_repeat_become_one(capsys):
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    from likewise.cli.app import ShownWarnings

    shown = ShownWarnings()
    for at in range(141):
        shown(
            ConvergenceWarning(f"It did not converge (slope {at}). Raise 'max_iter'."),
            ConvergenceWarning,
            "a",
            1,
        )
    shown(DeprecationWarning("old"), DeprecationWarning, "a", 1)
    err = capsys.readouterr().err
    assert err.count("did not converge") == 1
    assert "--read ignore=" in err
    assert "max_iter" not in err
    assert "141 times" in shown.repeated()[0]
    assert warnings.showwarning is not shown


def test_twins_are_shown_in_the_precision_of_their_columns():
    from likewise.auditing.results.unfair_map import differences_in_words, rounded_like

    people = pd.DataFrame({"ugpa": [3.5, 2.25], "male": [0.0, 1.0], "age": [30, 40]})
    twins = pd.DataFrame({"ugpa": [3.1415926, 2.25], "male": [1.0, 1.0], "age": [30, 41]})
    shown = rounded_like(twins, people)
    words = [differences_in_words(people.iloc[i].to_dict(), shown.iloc[i].to_dict()) for i in (0, 1)]
    assert words == ["ugpa: 3.5 → 3.14, male: 0 → 1", "age: 40 → 41"]
    many = {f"c{i}": 0 for i in range(13)}
    assert differences_in_words(many, dict.fromkeys(many, 1)).endswith("and 7 more")


def test_nobody_has_a_twin_where_a_sensitive_column_has_one_value(run, people, tmp_path):
    """Broke once: "none of the people gets another decision when only sex changes", of people who are all women."""
    people(40).assign(SEX=1).to_csv(tmp_path / "women.csv", index=False)
    rule = "def model(frame):\n    return (frame['age'] > 40).astype(float)\n"
    (tmp_path / "asked_of_women.py").write_text(rule)
    for words in (
        ("train", "women.csv", *TRAIN, "-o", "model.safetensors"),
        (
            "audit",
            "asked_of_women:model",
            "women.csv",
            *TRAIN[:4],
            "--favourable",
            "yes",
            "--metric",
            "columns",
        ),
    ):
        code, _, err = run(*words)
        assert (code, "'SEX' has one value only (1)" in err) == (2, True), err


def test_infinite_numbers_say_what_to_do(run, people, tmp_path):
    frame = people(40)
    frame.assign(ratio=np.where(np.arange(40) == 3, np.inf, 1.5)).to_csv(
        tmp_path / "infinite.csv", index=False
    )
    code, _, err = run("train", "infinite.csv", *TRAIN, "-o", "model.safetensors")
    assert code == 2
    assert "'ratio' has 1 infinite values, the first in row 3" in err
    assert "--read ignore=ratio" in err
    few = ("--read", "only=age", "--read", "only=SEX")
    assert run("train", "infinite.csv", *TRAIN, *few, "-o", "model.safetensors")[0] == 0
    plain = ("--metric", "columns", "--eps", "0", "--set", "search=candidates")
    code, out, err = run("audit", "model.safetensors", "infinite.csv", *TRAIN[:4], *plain)
    # The model does not see that column. It is worse than guessing, so there is no verdict.
    assert (code, "Could not be answered" in out) == (3, True), err
