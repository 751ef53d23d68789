"""Checkpoints: a run that was killed goes on bit for bit; damaged and foreign files are refused."""

import os
import random
import runpy
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from likewise.core.errors import FormatError, InputError
from likewise.training import ERM, mlp, read_checkpoint, train

SCRIPT = Path(__file__).with_name("killable_run.py")


@pytest.fixture(scope="module")
def runs():
    """A process that makes runs in processes of their own, so that the libraries are loaded once for all of them."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error", str(SCRIPT)]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as maker:
        yield maker
        maker.stdin.close()


def killed_at(runs, kind, path, step):
    """Start a run in a process of its own and kill it, with no chance to clean up, once it has made so many steps."""
    marker = Path(f"{path}.step")
    print(kind, path, file=runs.stdin, flush=True)
    process = int(runs.stdout.readline())
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and not select.select([runs.stdout], [], [], 0.005)[0]:
        if marker.exists() and (text := marker.read_text()) and int(text) >= step:
            break
    os.kill(process, signal.SIGKILL)
    # The one that made it tells how it ended.
    assert runs.stdout.readline() == f"{-signal.SIGKILL}\n", "the run ended before it could be killed"
    return int(marker.read_text() or step)


@pytest.mark.parametrize("kind", ["sensr", "adversarial", "loader"])
def test_a_killed_run_goes_on_bit_for_bit(kind, runs, tmp_path):
    script = runpy.run_path(str(SCRIPT))
    whole = script["run"](kind)
    path = tmp_path / "run.safetensors"
    reached = killed_at(runs, kind, path, random.SystemRandom().randrange(8, 40))
    kept = read_checkpoint(path).step
    assert 7 <= kept <= reached + 1 < script["STEPS"]
    resumed = script["run"](kind, path)
    message = f"killed at step {reached}, resumed at {kept}"
    np.testing.assert_array_equal(resumed.history["loss"], whole.history["loss"], err_msg=message)
    assert len(whole.history) == script["STEPS"]
    for name, tensor in whole.net.state_dict().items():
        assert torch.equal(resumed.net.state_dict()[name], tensor), f"{name}, {message}"
    assert resumed.best_step == whole.best_step
    # No half-written file is left beside the checkpoint, whenever the kill came, unless it came in mid-write.
    assert len([p for p in tmp_path.iterdir() if not p.name.startswith(".")]) == 2


def data(n=40):
    X = np.random.default_rng(0).normal(size=(n, 2)).astype(np.float32)
    return X, (X[:, 0] > 0).astype(int)


def test_a_finished_run_is_not_made_again_and_can_be_made_longer(tmp_path):
    path = tmp_path / "deep" / "run.safetensors"
    net = mlp(2)
    train(net, data(), steps=5, checkpoint=path)
    again = train(mlp(2), data(), steps=5, checkpoint=path, resume=True)
    assert torch.equal(again.net[0].weight, net[0].weight)
    longer = train(mlp(2), data(), steps=9, checkpoint=path, resume=True)
    through = train(mlp(2), data(), steps=9)
    assert torch.equal(longer.net[0].weight, through.net[0].weight)
    np.testing.assert_array_equal(longer.history["loss"], through.history["loss"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lr": 0.5}, "another 'lr' \\(0.001, now 0.5\\)"),
        ({"batch_size": 7}, "another 'batch_size'"),
        ({"random_state": 3}, "another 'random_state'"),
        (
            {"objective": ERM(loss="hinge")},
            "another 'objective' \\('loss=cross_entropy', now 'loss=hinge'\\)",
        ),
        ({"data": (data()[0] + 1, data()[1])}, "another 'data'"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(change, message, tmp_path):
    path = tmp_path / "run.safetensors"
    train(mlp(2), data(), steps=3, checkpoint=path)
    settings = {"data": data(), "objective": ERM(), **change}
    with pytest.raises(InputError, match=message):
        train(mlp(2), settings.pop("data"), settings.pop("objective"), steps=5, checkpoint=path, resume=True, **settings)  # fmt: skip


@pytest.mark.parametrize("keep", [0, 10, 500, -1])
def test_a_damaged_file_is_refused(keep, tmp_path):
    path = tmp_path / "run.safetensors"
    train(mlp(2), data(), steps=3, checkpoint=path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(FormatError, match=r"damaged or of another kind.*Delete it to start anew"):
        train(mlp(2), data(), steps=5, checkpoint=path, resume=True)


def test_other_files_and_newer_versions_are_refused(tmp_path):
    path = tmp_path / "x.safetensors"
    save_file({"a": torch.zeros(1)}, path)
    with pytest.raises(FormatError, match="not a checkpoint"):
        read_checkpoint(path)
    save_file({"a": torch.zeros(1)}, path, metadata={"likewise": '{"kind": "training", "schema": 99}'})
    with pytest.raises(FormatError, match="newer version \\(schema 99"):
        read_checkpoint(path)
