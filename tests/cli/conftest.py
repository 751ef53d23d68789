"""A small table of people, models in files, and two ways to run the command: in this process, or as a person would."""

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run the command in this process, which saves the seconds of importing everything again."""
    from likewise.cli.app import main

    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> Done:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Done(int(ended.value.code or 0), out, err)

    return call


@pytest.fixture
def command(tmp_path):
    """Run the real command in a process of its own."""

    def call(*arguments: object) -> Done:
        words = [sys.executable, "-m", "likewise", *map(str, arguments)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
        return Done(done.returncode, done.stdout, done.stderr)

    return call


def make_people(n: int = 240, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "hours": rng.integers(10, 60, n),
            "job": rng.choice(["clerk", "cook", "nurse"], n),
            "sex": rng.choice(["Female", "Male"], n),
        }
    )
    score = (frame["age"] - 45) / 12 + 1.5 * (frame["sex"] == "Male") + rng.normal(size=n)
    return frame.assign(paid=np.where(score > 0.5, "yes", "no"))


@pytest.fixture
def people():
    """The people as a frame."""
    return make_people()


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    """The people as a CSV file."""
    path = tmp_path_factory.mktemp("people") / "people.csv"
    make_people().to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """A trained model of ours in its file."""
    from likewise.data import TabularDomain
    from likewise.training import MLPBaselineClassifier

    people = make_people()
    frame = people.drop(columns="paid")
    trained = MLPBaselineClassifier(
        domain=TabularDomain.from_frame(frame), n_steps=150, hidden_layer_sizes=(8,), lr=0.01, random_state=0
    ).fit(frame, people["paid"].to_numpy())
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    trained.save(path)
    return path


@pytest.fixture(scope="session")
def metric(tmp_path_factory):
    """A learned metric in its file."""
    from likewise.fair_metrics import AttributeSubspace

    path = tmp_path_factory.mktemp("metric") / "metric.safetensors"
    AttributeSubspace(["sex"]).fit(make_people().drop(columns="paid")).metric_.save(path)
    return path
