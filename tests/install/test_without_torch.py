"""The package without torch: audits, proofs, counterfactuals, boosted models and the command line work."""

import json
import subprocess
import sys

import pytest

# A finder that refuses torch: `sys.modules["torch"] = None` would break scipy, which looks torch up there.
PREPARE = """
import json, sys, warnings

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

said = {}
"""


def run(code, folder):
    """Return what the code put in `said`, run in a process that has no torch."""
    whole = f"{PREPARE}\n{code}\nassert 'torch' not in sys.modules\nprint('\\n' + json.dumps(said))"
    done = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_models_are_audited_proved_and_shown(tmp_path):
    code = """
for name, model in {"boosted": boosted(), "pipeline": pipeline()}.items():
    result = lw.audit(model, people[:60], hired[:60], metric=metric, eps=0.1)
    said[name] = float(result.gap)
lw.write_html(result, "audit.html")
domain = lw.TabularDomain().fit(people)
said["proved"] = lw.verify(boosted(), domain, ["sex"], budget_seconds=2).proved
said["study"] = float(lw.correspondence_study(boosted(), people, lw.Edit("sex")).consistency)
said["consensus"] = len(lw.TwinConsensus(boosted(), edits=[lw.Edit("sex")]).fit(people, hired).predict(people[:3]))
"""
    said = run(code, tmp_path)
    assert said["boosted"] > 0
    assert said["pipeline"] > 0
    assert 0 <= said["proved"] <= 1
    assert said["study"] < 1
    assert said["consensus"] == 3
    assert (tmp_path / "audit.html").stat().st_size > 10_000


def test_a_network_of_scikit_learn_is_proved_and_audited_without_the_gradient_search(tmp_path):
    code = """
box = lw.data.BoxDomain(numbers.min(axis=0), numbers.max(axis=0))
free = lw.ExpertSubspace([0]).fit(numbers).metric_
result = lw.audit(network(), numbers[:40], hired[:40], metric=free, eps=0.1)
said["gap"], said["notes"] = float(result.gap), [str(note) for note in result.left_out]
said["proved"] = lw.verify(network(), box, ["x0"], budget_seconds=1).proved
said["asked"] = sentence(lambda: lw.audit(network(), numbers, hired, metric=free, search="gradient"))
"""
    said = run(code, tmp_path)
    assert said["gap"] > 0
    assert any("likewise[torch]" in note for note in said["notes"])
    assert said["proved"] > 0
    assert "pip install 'likewise[torch]'" in said["asked"]


def test_fair_boosting_and_improve_leave_networks_out_with_a_sentence(tmp_path):
    code = """
fair = lw.FairBoostingClassifier(sensitive_features=["sex"], random_state=0).fit(people, hired)
said["fair"] = float(lw.correspondence_study(fair, people, lw.Edit("sex")).consistency)
found = lw.improve(people[:120], hired[:120], sensitive_features=["sex"], folds=2, eps=0.0)
said["names"] = [one.name for one in found.alternatives]
said["notes"] = [str(note) for note in found.notes]
"""
    said = run(code, tmp_path)
    assert said["fair"] == 1.0
    assert not any("SenSR" in name or "SenSeI" in name for name in said["names"])
    assert any("likewise[torch]" in note for note in said["notes"])


@pytest.mark.parametrize("name", ["SenSRClassifier", "MLPBaselineClassifier", "SenSR"])
def test_what_trains_networks_says_what_to_install(name, tmp_path):
    said = run(f"said['asked'] = sentence(lambda: lw.{name})", tmp_path)
    assert (
        said["asked"] == f"{name} needs 'torch', which is not installed. Run: pip install 'likewise[torch]'"
    )


def test_the_command_line_audits_and_refuses_to_train(tmp_path):
    code = """
from likewise.cli import main

def command(*words):
    sys.argv = ["likewise", *words]
    try:
        main()
    except SystemExit as end:
        return end.code

people.assign(hired=hired).to_csv("people.csv", index=False)
boosted().save_model("model.json")
asked = ["people.csv", "--target", "hired", "--sensitive", "sex"]
said["audit"] = command("audit", "model.json", *asked, "--metric", "columns")
said["train"] = command("train", *asked, "-o", "model.safetensors")
"""
    said = run(code, tmp_path)
    assert said["audit"] == 0
    assert said["train"] == 2
