"""Training on several ranks, under a real torchrun: what is learned is what one process learns."""

import json
import os
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from likewise.core.errors import InputError, NotConvergedError
from likewise.core.launch import Launch, launched
from likewise.models import load_model
from likewise.training import ERM, Batch, Ranks, SenSR, WithCovariancePenalty, mlp, read_checkpoint, train
from likewise.training.distributed import ONE, Share, _error_of, current_ranks, joined, why_not_shared

SCRIPT = Path(__file__).with_name("distributed_run.py")
HERE = runpy.run_path(str(SCRIPT))


def torchrun(*words, cwd):
    """Start two ranks on this machine, one thread each."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=environment,
        timeout=600,
    )


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """What both ranks found; and the folder with the checkpoints."""
    folder = tmp_path_factory.mktemp("ranks")
    HERE["long_run"](folder / "one.safetensors", steps=11)
    HERE["table"](folder)
    done = torchrun(SCRIPT, folder, cwd=folder)
    files = [folder / f"{rank}.json" for rank in (0, 1)]
    assert all(file.exists() for file in files), done.stderr
    return [json.loads(file.read_text()) for file in files], folder, done


@pytest.fixture(scope="module")
def alone():
    """What one process finds."""
    return HERE["traces"]()


def test_there_were_two(ran):
    assert [(found["rank"], found["world"]) for found in ran[0]] == [(0, 2), (1, 2)]


@pytest.mark.parametrize("name", list(HERE["OBJECTIVES"]))
def test_gradients_lambda_and_validation_are_those_of_one_process(name, ran, alone):
    expected = alone[name]
    for found in ran[0]:
        trace = found["traces"][name]
        for one, two in zip(expected["gradients"], trace["gradients"], strict=True):
            scale = np.abs(one).max()
            np.testing.assert_allclose(two, one, rtol=1e-5, atol=1e-8 * scale)
        assert trace["history"].keys() == expected["history"].keys()
        for column, values in expected["history"].items():
            np.testing.assert_allclose(
                trace["history"][column], values, rtol=1e-5, atol=1e-10, err_msg=column
            )
        assert trace["best"][0] == expected["best"][0]
        assert trace["counters"] == expected["counters"]
    # Bit for bit the same on both ranks, or they would drift apart.
    assert ran[0][0]["traces"][name] == ran[0][1]["traces"][name]


def test_lambda_moves_in_what_is_compared(alone):
    for name in ("sensr_paper", "sensr_authors", "sensr_dual", "sensei", "wasserstein"):
        assert len(set(alone[name]["history"]["lambda_"])) == 4, name


@pytest.fixture(scope="module")
def whole():
    """The long run of one process, without interruption."""
    return HERE["long_run"]()


def test_a_checkpoint_of_one_rank_goes_on_with_two(ran, whole):
    for found in ran[0]:
        np.testing.assert_allclose(found["resumed"], HERE["flat"](whole.net), rtol=1e-5, atol=1e-8)


def test_two_ranks_one_of_which_dies_leave_a_checkpoint_that_one_goes_on_from(ran, whole):
    _, folder, done = ran
    assert done.returncode != 0
    assert "another process of this training ended" in done.stderr
    kept = read_checkpoint(folder / "two.safetensors")
    assert kept.step == 10
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    resumed = HERE["long_run"](folder / "two.safetensors")
    assert len(resumed.history) == len(whole.history) == 24
    np.testing.assert_allclose(HERE["flat"](resumed.net), HERE["flat"](whole.net), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(resumed.history["lambda_"], whole.history["lambda_"], rtol=1e-5)
    np.testing.assert_allclose(resumed.state.warm, whole.state.warm, rtol=1e-5, atol=1e-8)


def test_a_group_made_by_train_is_destroyed(ran):
    expected = HERE["flat"](HERE["long_run"](steps=4).net)
    for found in ran[0]:
        np.testing.assert_allclose(found["again"], expected, rtol=1e-5, atol=1e-8)
        assert not found["group left"]


def test_estimators_fit_on_all_ranks_with_and_without_a_seed(ran):
    seeded, unseeded = zip(*(found["estimators"] for found in ran[0]), strict=True)
    assert seeded[0] == seeded[1]
    assert unseeded[0] == unseeded[1] != seeded[0]
    # The estimator's network is in single precision.
    np.testing.assert_allclose(seeded[0], HERE["flat"](HERE["estimator"](0).network_), rtol=1e-4, atol=1e-5)


def test_random_and_mixing_networks(ran):
    one, two = (found["random"] for found in ran[0])
    assert one["dropout"]["weights"] == two["dropout"]["weights"]
    assert one["batch_norm"]["weights"] == two["batch_norm"]["weights"]
    with warnings.catch_warnings(record=True):
        expected = HERE["with_random_parts"]()
    np.testing.assert_allclose(one["batch_norm"]["weights"], expected["batch_norm"]["weights"], rtol=1e-5)
    assert any("has a BatchNorm1d" in message for message in one["batch_norm"]["warnings"])
    # Told once.
    assert not two["batch_norm"]["warnings"]


def test_all_ranks_end_alike(ran):
    one, two = (found["ends"] for found in ran[0])
    assert one["diverged"][0] == "diverged"
    assert one["interrupted"][:2] == ["interrupted", 7]
    for name in ("diverged", "interrupted"):
        assert one[name] == two[name]


def test_errors_are_raised_on_every_rank(ran):
    one, two = (found["ends"] for found in ran[0])
    assert one["other rows"] == two["other rows"]
    assert "rank 1 would draw another first batch than rank 0" in one["other rows"]
    assert one["other files"] == two["other files"]
    assert "rank 1" in one["other files"]
    # The rank that failed says what; the other says who.
    assert one["bad rows"] == f"rank 1: {two['bad rows']}"
    assert "not finite" in two["bad rows"] or "NaN" in two["bad rows"]
    assert one["bad everywhere"] == two["bad everywhere"]
    assert "rank" not in one["bad everywhere"]


def test_a_rank_may_train_by_itself(ran):
    for rank, found in enumerate(ran[0]):
        data = HERE["rows"]().to("cpu", torch.float32)
        expected = HERE["flat"](train(mlp(3, (8,), 3), data, steps=1 + rank).net)
        assert found["ends"]["alone"] == expected


def test_the_command_line_says_it_once_and_all_exit_alike(ran):
    one, two = (found["commands"] for found in ran[0])
    for name, word in {
        "all": "nobody",
        "first": "exists already",
        "other": "no.csv",
        "usage": "nonsense",
    }.items():
        assert one[name][0] == two[name][0] == 2, name
        assert one[name][1:] != two[name][1:] == ["", ""], name
        assert word in one[name][2], name
        assert one[name][2].count("Error") == 1, name
    assert one["other"][2].startswith("Error: rank 1: ")
    folder = ran[1]
    assert (folder / "taken.safetensors").read_text() == "mine"
    assert not (folder / "a.safetensors").exists()
    # What is one process's work is left to the first.
    assert one["listed"][0] == two["listed"][0] == 0
    assert "adult" in one["listed"][1]
    assert two["listed"][1:] == ["", ""]


def test_likewise_train_on_two_ranks(ran, tmp_path):
    found, folder, _ = ran
    one, two = (ended["commands"]["trained"] for ended in found)
    assert one[0] == two[0] == 0, one
    people = folder / "people.csv"
    code, out, _ = HERE["command"](*HERE["TRAIN"], people, "-o", tmp_path / "alone.safetensors")
    assert code == 0
    # One line from one rank, and the accuracy in it is one process's.
    assert one[1] == out.replace(str(tmp_path), str(folder)).replace(
        "alone.safetensors", "trained.safetensors"
    )
    assert two[1] == ""
    one, two = (load_model(path) for path in (tmp_path / "alone.safetensors", folder / "trained.safetensors"))
    frame = pd.read_csv(people).drop(columns="paid")
    np.testing.assert_allclose(two.outputs(frame), one.outputs(frame), rtol=1e-3, atol=1e-4)


# ---- without a second process ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, Launch()),
        ({"RANK": "1", "WORLD_SIZE": "3", "LOCAL_RANK": "1", "MASTER_ADDR": "x"}, Launch(1, 3, 1)),
        ({"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "x"}, Launch()),
        ({"WORLD_SIZE": "4", "MASTER_ADDR": "x"}, Launch()),
        ({"RANK": "0", "WORLD_SIZE": "4"}, Launch()),
        ({"RANK": "no", "WORLD_SIZE": "4", "MASTER_ADDR": "x"}, Launch()),
    ],
)
def test_what_the_environment_says(variables, expected, monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert launched() == expected


def test_one_process_has_nobody_to_talk_to():
    assert current_ranks() is ONE
    with joined() as ranks:
        assert ranks is ONE
    x = torch.rand(3)
    assert ranks.sum(x) is x
    assert ranks.from_first(x) is x
    assert ranks.gather(x)[0] is x
    assert ranks.bytes_from_first(b"a") == b"a"
    with pytest.raises(KeyError, match="mine"), ranks.agree():
        raise KeyError("mine")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (InputError("x"), InputError),
        (NotConvergedError("x"), NotConvergedError),
        (PermissionError("x"), OSError),
        (KeyError("x"), RuntimeError),
    ],
)
def test_an_error_of_another_rank_is_of_its_kind(error, expected):
    found = _error_of(type(error).__name__, "rank 1: x")
    assert type(found) is expected
    assert "rank 1: x" in str(found)


@pytest.mark.parametrize("world", [1, 2, 3, 7])
def test_shares_are_all_rows_once(world):
    whole = Batch(torch.rand(10, 2), torch.arange(10) % 2, index=torch.arange(10))
    shares = [Share(Ranks(rank, world), whole).rows for rank in range(world)]
    assert sorted(torch.cat([share.index for share in shares]).tolist()) == list(range(10))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_who_does_not_say_that_it_adds_up_gets_whole_batches():
    class Mine(ERM):
        def step(self, net, batch, state):
            return super().step(net, batch, state)

    class Named(ERM):
        pass

    net = nn.Linear(2, 2)
    assert "does not say" in why_not_shared(Mine(), net)
    assert why_not_shared(Named(), net) is None
    assert why_not_shared(SenSR(HERE["FREE"]), net) is None
    assert why_not_shared(WithCovariancePenalty(ERM()), net) is None
    assert "Mine does not say" in why_not_shared(WithCovariancePenalty(Mine()), net)
