"""The package without torch: audits, proofs, counterfactuals, boosted models and the command line work."""

import json
import subprocess
import sys

import pytest

# A finder that refuses torch: `sys.modules["torch"] = None` would break scipy, which looks torch up there.
WORK = """
import json, sys, traceback, warnings

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoTorch())
from importlib import metadata

_version = metadata.version

def without_torch(name):
    if name == "torch":
        raise metadata.PackageNotFoundError(name)
    return _version(name)

metadata.version = without_torch
import numpy as np
import pandas as pd
import likewise as lw

random = np.random.default_rng(0)
people = pd.DataFrame({"skill": random.normal(size=300), "sex": pd.Categorical(random.choice(["F", "M"], 300))})
hired = (people["skill"] + (people["sex"] == "M") + random.normal(0, 0.3, 300) > 0.5).astype(int).to_numpy()
numbers = np.column_stack([(people["sex"] == "M").to_numpy(float), people["skill"]])
metric = lw.ExpertSubspace(["sex"]).fit(people).metric_

def boosted():
    from xgboost import XGBClassifier
    return XGBClassifier(n_estimators=8, max_depth=2, enable_categorical=True).fit(people, hired)

def pipeline():
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    columns = make_column_transformer((OneHotEncoder(), ["sex"]), remainder="passthrough")
    return make_pipeline(columns, LogisticRegression()).fit(people, hired)

def network():
    from sklearn.neural_network import MLPClassifier
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MLPClassifier((4,), max_iter=100, random_state=0).fit(numbers, hired)

def sentence(ask):
    try:
        ask()
    except lw.core.MissingExtraError as error:
        return str(error)
    raise SystemExit("no MissingExtraError")


def command(*words):
    from likewise.cli import main

    sys.argv = ["likewise", *words]
    try:
        main()
    except SystemExit as end:
        return end.code

def models():
    for name, model in {"boosted": boosted(), "pipeline": pipeline()}.items():
        result = lw.audit(model, people[:60], hired[:60], metric=metric, eps=0.1)
        yield name, float(result.gap)
    lw.write_html(result, "audit.html")
    domain = lw.TabularDomain().fit(people)
    yield "proved", lw.verify(boosted(), domain, ["sex"], budget_seconds=1).proved
    yield "study", float(lw.correspondence_study(boosted(), people, lw.Edit("sex")).consistency)
    consensus = lw.TwinConsensus(boosted(), edits=[lw.Edit("sex")]).fit(people, hired)
    yield "consensus", len(consensus.predict(people[:3]))

def networks():
    box = lw.data.BoxDomain(numbers.min(axis=0), numbers.max(axis=0))
    free = lw.ExpertSubspace([0]).fit(numbers).metric_
    result = lw.audit(network(), numbers[:40], hired[:40], metric=free, eps=0.1)
    yield "gap", float(result.gap)
    yield "notes", [str(note) for note in result.left_out]
    yield "proved", lw.verify(network(), box, ["x0"], budget_seconds=1).proved
    yield "asked", sentence(lambda: lw.audit(network(), numbers, hired, metric=free, search="gradient"))

def boosting():
    from likewise.improving import candidates

    # Of boosted trees only those of one depth: tuning is tested elsewhere, and costs ten seconds here.
    trees = candidates.boosting_candidates
    candidates.boosting_candidates = lambda data: trees(data)[3:4]
    fair = lw.FairBoostingClassifier(sensitive_features=["sex"], random_state=0).fit(people, hired)
    yield "fair", float(lw.correspondence_study(fair, people, lw.Edit("sex")).consistency)
    found = lw.improve(people[:120], hired[:120], sensitive_features=["sex"], folds=2, eps=0.0)
    yield "names", [one.name for one in found.alternatives]
    yield "notes", [str(note) for note in found.notes]

def trainers():
    for name in ("SenSRClassifier", "MLPBaselineClassifier", "SenSR"):
        yield name, sentence(lambda: getattr(lw, name))

def commands():
    people.assign(hired=hired).to_csv("people.csv", index=False)
    boosted().save_model("model.json")
    asked = ["people.csv", "--target", "hired", "--sensitive", "sex"]
    yield "audit", command("audit", "model.json", *asked, "--metric", "columns")
    yield "train", command("train", *asked, "-o", "model.safetensors")

said = {}
for work in (models, networks, boosting, trainers, commands):
    try:
        said[work.__name__] = dict(work())
    except Exception:
        said[work.__name__] = traceback.format_exc()
    assert "torch" not in sys.modules, work
print("\\n" + json.dumps(said))
"""


@pytest.fixture(scope="module")
def without_torch(tmp_path_factory):
    """What each piece of work said in one process that has no torch, and the folder it worked in."""
    folder = tmp_path_factory.mktemp("without_torch")
    done = subprocess.run([sys.executable, "-c", WORK], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1]), folder


def test_models_are_audited_proved_and_shown(without_torch):
    said, folder = without_torch[0]["models"], without_torch[1]
    assert isinstance(said, dict), said
    assert said["boosted"] > 0
    assert said["pipeline"] > 0
    assert 0 <= said["proved"] <= 1
    assert said["study"] < 1
    assert said["consensus"] == 3
    assert (folder / "audit.html").stat().st_size > 10_000


def test_a_network_of_scikit_learn_is_proved_and_audited_without_the_gradient_search(without_torch):
    said = without_torch[0]["networks"]
    assert isinstance(said, dict), said
    assert said["gap"] > 0
    assert any("likewise[torch]" in note for note in said["notes"])
    assert said["proved"] > 0
    assert "pip install 'likewise[torch]'" in said["asked"]


def test_fair_boosting_and_improve_leave_networks_out_with_a_sentence(without_torch):
    said = without_torch[0]["boosting"]
    assert isinstance(said, dict), said
    assert said["fair"] == 1.0
    assert said["names"] == ["Fair boosting, depth 2", "Logistic regression", "Logistic regression, blind"]
    assert any("likewise[torch]" in note for note in said["notes"])


def test_what_trains_networks_says_what_to_install(without_torch):
    said = without_torch[0]["trainers"]
    assert isinstance(said, dict), said
    for name in ("SenSRClassifier", "MLPBaselineClassifier", "SenSR"):
        assert (
            said[name] == f"{name} needs 'torch', which is not installed. Run: pip install 'likewise[torch]'"
        )


def test_the_command_line_audits_and_refuses_to_train(without_torch):
    said = without_torch[0]["commands"]
    assert said == {"audit": 0, "train": 2}
