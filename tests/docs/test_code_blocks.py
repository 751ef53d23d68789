"""Every code block of README and guide: Python is run, page by page, on few people; commands are run or their options checked."""

import functools
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import click
import numpy as np
import pandas as pd
import pytest

import likewise as lw
import likewise.auditing
from likewise.cli.app import VERBS, cli, main

from .code_blocks import blocks_of

ROOT = Path(__file__).parents[2]
SITE = {"contributing.md", "benchmarks.md", "changes.md"}  # pages that are files of the repository
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(page for page in (ROOT / "docs").glob("*.md") if page.name not in SITE),
    *sorted((ROOT / "docs" / "coming_from").glob("*.md")),
]
FEW = 24  # people that are audited
TEST = 60  # people of a test part, about
STEPS = 20  # of a training
LANGUAGES = {"python", "console", "text", "toml", "yaml"}

# Commands that are run here on the staged table and model. Of the others only the verb, its options and their values are
# checked, as click reads them, because
# - `train` (but a plain one), `verify`, `improve`, `reproduce` and `demo` take long on any table,
# - `serve` runs until Ctrl-C,
# - `engine=dask` and `torchrun` start processes,
# - a file that no command before made is somebody's own (their ONNX model, their table of another name).
# tests/cli, tests/serving and tests/scale run those verbs on tables made for them.
CHEAP_VERBS = {"datasets", "inspect", "audit", "audit-texts", "replay"}


@pytest.fixture(scope="module")
def adult():
    """Adult with few people: some of every category, and of every group and class in the test part."""
    data = lw.datasets.load_adult()
    words = data.frame.select_dtypes(exclude="number")
    one_of_each = [words[name].drop_duplicates().index for name in words]
    groups = data.frame_test[["sex", "race"]].assign(y=data.y_test).reset_index(drop=True)
    test = data.test_index[np.union1d(groups.drop_duplicates().index, np.arange(TEST))]
    rows = np.concatenate([*one_of_each, data.train_index[:500], test])
    return replace(
        data,
        frame=data.frame.iloc[rows].reset_index(drop=True),
        X=data.X.iloc[rows].reset_index(drop=True),
        y=data.y[rows],
        train_index=np.arange(len(rows) - len(test)),
        test_index=np.arange(len(rows) - len(test), len(rows)),
    )


@pytest.fixture(scope="module")
def german():
    data = lw.datasets.load_german()
    return replace(data, test_index=data.test_index[:40])


@pytest.fixture(scope="module")
def staged(adult):
    """What pages take for granted: a model, a metric, people and their labels, small enough to be asked at once."""
    from sklearn.linear_model import LogisticRegression

    metric = lw.AttributeSubspace(["sex", "race"], domain=adult.domain).fit(adult.frame_train).metric_
    linear = LogisticRegression(max_iter=1000).fit(adult.X_train.to_numpy(), adult.y_train)
    network = lw.MLPBaselineClassifier(n_steps=STEPS, domain=adult.domain, random_state=0)
    network.fit(adult.frame_train, np.array(adult.target_names)[adult.y_train])
    return SimpleNamespace(
        model=lambda table: linear.predict_proba(adult.domain.encode(table).to_numpy()),
        metric=metric,
        network=network,
    )


@pytest.fixture
def stage(monkeypatch, tmp_path, adult, german, staged):
    """A folder with the files that pages name, loaders of few people, and engines without processes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(likewise.datasets, "load_adult", lambda: adult)
    monkeypatch.setattr(likewise.datasets, "load_german", lambda: german)
    monkeypatch.setattr(likewise.auditing, "DaskEngine", lambda *a, **k: likewise.auditing.LocalEngine())
    Path("sex.dot").write_text('digraph { sex -> "hours-per-week" }', encoding="utf-8")
    few, labels = adult.frame_test.iloc[:FEW], adult.y_test[:FEW]
    few.assign(target=np.array(adult.target_names)[labels]).to_csv("people.csv", index=False)
    Path("people").mkdir()
    few.assign(target=labels).to_parquet("people/part.parquet", index=False)
    staged.network.save("model.safetensors")


@pytest.fixture
def names(adult, staged, monkeypatch):
    """Python names that a page uses without having made them, by page."""
    from likewise.improving.candidates import BoostingCandidate
    from likewise.training import ArrayBatches, Batch, mlp

    people, y = adult.frame_test.iloc[:FEW], adult.y_test[:FEW]
    common = {"lw": lw, "model": staged.model, "metric": staged.metric, "people": people, "y": y}
    few = {"n_estimators": 5, "max_depth": 2}
    two = [
        BoostingCandidate("plain", "", blind=False, choices=few),
        BoostingCandidate("blind", "", choices=few),
    ]
    improve = functools.partial(lw.improve, candidates=two, folds=2)
    preset = functools.partial(lw.SenSRClassifier.preset, n_steps=STEPS)

    def quickly():
        for name in ("MLPBaselineClassifier", "SenSRClassifier"):
            monkeypatch.setattr(lw, name, _few_steps(getattr(lw, name)))
        return {}

    def serving():  # nobody presses Ctrl-C
        from likewise.serving import RunningServer

        monkeypatch.setattr(RunningServer, "until_interrupted", lambda server, say=None: server.close())
        return {"score": lambda table: staged.model(table)[:, 1]}

    def twins():
        import likewise.counterfactuals

        def study(*args, refits, **choices):
            return twin_study(*args, refits=min(refits, 2), **choices)

        twin_study = likewise.counterfactuals.twin_study
        monkeypatch.setattr(likewise.counterfactuals, "twin_study", study)
        quickly()
        return {"people": adult.frame_test, "y": adult.y_test, "model": staged.network}

    def scale():
        table = pd.read_parquet("people/part.parquet").rename(columns={"target": "income"})
        table.to_parquet("people/part.parquet", index=False)
        return {}

    def searches():  # asks for people of 20 and of 60, who must lie in the range of the people at hand
        adult.frame_test.assign(target=adult.y_test).to_parquet("people/part.parquet", index=False)
        return {"people": adult.frame_test, "y": adult.y_test}

    def integrations():
        monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        monkeypatch.setenv("MLFLOW_TRACKING_URI", (Path.cwd() / "runs").as_uri())
        result = lw.audit(
            staged.model, people, y, metric=staged.metric, domain=adult.domain, search="candidates"
        )
        module = mlp(adult.X_train.shape[1], (8,), 2)
        return {
            "result": result,
            "evaluation": None,
            "pipeline": staged.network,
            "grid": {},
            "module": module,
        }

    def page():
        words = np.array(adult.target_names)[y]
        result = lw.audit(
            staged.network, people, words, metric=staged.metric, domain=adult.domain, search="candidates"
        )
        return {"result": result, "domain": adult.domain, "model": staged.network, "y": words}

    def index():
        words = np.array(adult.target_names)[adult.y_test]
        return {"X": adult.frame_test, "y": words, "model": staged.network}

    def readme():
        import torch

        quickly()
        rows = Batch(torch.tensor(adult.X_train.to_numpy("float32")), torch.tensor(adult.y_train))
        batches = ArrayBatches(rows, batch_size=64, generator=torch.Generator().manual_seed(0))
        net = mlp(adult.X_train.shape[1], (8,), 2)
        optimizer = torch.optim.Adam(net.parameters())
        return {"X": people, "net": net, "loader": [batches.next() for _ in range(3)], "optimizer": optimizer}

    def proof():
        result = lw.audit(
            staged.model, people, y, metric=staged.metric, domain=adult.domain, search="candidates"
        )
        tree = _small_tree(adult)
        metric = lw.ExpertSubspace(["sex", "race"], domain=tree.domain).fit(tree.people).metric_
        verify = functools.partial(lw.verify, max_regions=50)
        monkeypatch.setattr(lw, "verify", verify)
        # The first block reads a result, the second audits this small tree exactly.
        return {
            "result": result,
            "model": tree.model,
            "people": tree.people,
            "metric": metric,
            "domain": tree.domain,
        }

    def one_person():
        monkeypatch.setattr(lw, "recourse", functools.partial(_few_sampled, lw.recourse))
        return {}

    def improving():
        monkeypatch.setattr(lw, "improve", improve)
        return {"people": adult.frame.iloc[:400], "y": adult.y[:400], "current": None}

    def text():
        from likewise.text import text_audit as text_auditor

        unhurried = functools.partial(text_auditor.LimitedCaller, sleep=lambda seconds: None)
        monkeypatch.setattr(text_auditor, "LimitedCaller", unhurried)
        letters = [f"Emily has been to church for {n} years." for n in range(2, 10)]
        return {"score": len, "letters": letters, "jobs": list(range(8))}

    def scale_training():
        monkeypatch.setattr(lw.SenSRClassifier, "preset", preset)
        return {}

    own = {
        "README": readme, "index": index, "proof": proof, "improving": improving, "text": text, "scale": scale, "searches": searches, "integrations": integrations, "read_the_report": page,
        "scale_training": scale_training, "serving": serving, "twins": twins, "training": quickly, "infairness": quickly,
        "one_person": one_person,
    }  # fmt: skip
    return lambda page: common | own.get(page, dict)() | {"__name__": "__main__"}


def _few_sampled(recourse, *args, sample, **choices):
    """The burden of fewer people than a page asks about."""
    return recourse(*args, sample=min(sample, 8), **choices)


def _few_steps(estimator):
    """The same class, trained for a few steps whatever a page says."""
    return lambda *args, n_steps=STEPS, **choices: estimator(*args, n_steps=min(n_steps, STEPS), **choices)


def _small_tree(adult):
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.tree import DecisionTreeClassifier

    few = ["age", "sex", "race"]
    domain = lw.TabularDomain.from_frame(adult.frame[few])
    columns = make_column_transformer((OneHotEncoder(), ["sex", "race"]), remainder="passthrough")
    model = make_pipeline(columns, DecisionTreeClassifier(max_depth=3, random_state=0))
    model.fit(adult.frame[few], adult.y)
    return SimpleNamespace(model=model, domain=domain, people=adult.frame_test[few].iloc[:FEW])


def pages_with(language):
    chosen = [
        page
        for page in PAGES
        if any(b.language == language for b in blocks_of(page.read_text("utf-8")))
        and (language, page.stem) != ("python", "audit_your_model")  # each of its blocks is run alone
    ]
    return pytest.mark.parametrize("page", chosen, ids=lambda page: page.stem)


@pages_with("python")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:fairlearn")
@pytest.mark.filterwarnings(  # what is found about a few steps on few people is not about the page's own training
    "ignore::likewise.training.results.TrainingWarning"
)
def test_python_of_a_page_runs(page, stage, names):
    namespace = names(page.stem)
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if block.language != "python":
            continue
        code = compile("\n" * block.line + block.text, str(page), "exec")
        if block.why_not is None:
            exec(code, namespace)


COPIED = [
    block
    for block in blocks_of((ROOT / "docs" / "audit_your_model.md").read_text(encoding="utf-8"))
    if block.language == "python"
]


def test_there_is_a_program_for_each_library():
    said = "".join(block.text for block in COPIED)
    for library in ("sklearn", "xgboost", "lightgbm", "catboost", "torch"):
        assert f"from {library}" in said or f"import {library}" in said


@pytest.mark.parametrize("block", COPIED, ids=lambda block: f"line {block.line}")
def test_a_program_to_copy_runs_alone(block, stage, capsys):
    """One copy and paste: nothing of the page but the block is there."""
    exec(compile(block.text, "audit_your_model.md", "exec"), {"__name__": "__main__"})
    assert "people" in capsys.readouterr().out


@pages_with("console")
def test_commands_of_a_page_run_or_have_the_options_they_name(page, stage, capsys):
    for block in blocks_of(page.read_text(encoding="utf-8")):
        for words in block.commands if block.language == "console" else ():
            check_command(words, capsys)


def check_command(words, capsys):
    """Run a cheap command; check the options of another; check that a make target is there."""
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in words[1:]), words
        return
    if "likewise" not in words:
        assert words[0] in {"pip", "export", "torchrun", "python"}, f"nobody checks {words}"
        return
    arguments = words[words.index("likewise") + 1 :]
    cheap = arguments[0] in CHEAP_VERBS or {"train", "baseline"} <= set(arguments)
    if (
        words[0] == "likewise"
        and not any(word.startswith("engine=") for word in words)
        and cheap
        and files_are_there(arguments)
    ):
        set_the_stage(arguments)
        with pytest.raises(SystemExit) as ended:
            main([*arguments, *(("--steps", str(STEPS)) if arguments[0] == "train" else ())])
        fine = (0, 1) if arguments[0].startswith("audit") else (0, None)  # 1: unfair, which some pages show
        assert ended.value.code in fine, (words, capsys.readouterr())
    else:
        check_options(arguments)


def set_the_stage(arguments):
    """Make room for a table that is written; keep few people of one that is read, with the target that a page names."""
    for place, word in enumerate(arguments[:-1]):
        if word == "-o" and Path(arguments[place + 1]).is_file():
            Path(arguments[place + 1]).unlink()
    if "--target" in arguments and "people.csv" in arguments and arguments[0] != "train":
        table = pd.read_csv("people.csv").iloc[:FEW]
        target = arguments[arguments.index("--target") + 1]
        table.rename(columns={table.columns[-1]: target}).to_csv("people.csv", index=False)


def files_are_there(arguments):
    """Whether all files that a command reads are staged, or were written by a command before it."""
    written = {arguments[place + 1] for place, word in enumerate(arguments[:-1]) if word == "-o"}
    named = [
        word
        for word in arguments
        if Path(word).suffix in {".csv", ".parquet", ".onnx", ".safetensors", ".toml", ".json", ".pem"}
    ]
    return all(Path(name).exists() or name in written for name in named if "*" not in name)


def check_options(arguments):
    """Parse a command as click does, without running it. A file that a type asks for is made, empty."""
    assert arguments[0] in VERBS, arguments
    command = cli.get_command(click.Context(cli), arguments[0])
    for word in arguments[1:]:
        if Path(word).suffix and "*" not in word and ":" not in word and "/" not in word:
            Path(word).touch()
    command.make_context(arguments[0], list(arguments[1:]))


def test_no_block_of_another_language_goes_unread():
    for page in PAGES:
        for block in blocks_of(page.read_text(encoding="utf-8")):
            assert block.language in LANGUAGES, f"{page.name}:{block.line}"
            if block.language == "toml":
                assert tomllib.loads(block.text)
            if block.language == "yaml":
                assert "likewise" in block.text
    assert any(block.why_not for page in PAGES for block in blocks_of(page.read_text(encoding="utf-8")))


def test_options_that_do_not_exist_are_found(stage, capsys):
    with pytest.raises(click.NoSuchOption):
        check_options(["audit", "model.safetensors", "people.csv", "--no-such-option"])
    with pytest.raises(AssertionError, match="nobody checks"):
        check_command(["curl", "somewhere"], capsys)
