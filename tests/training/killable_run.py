"""Runs in processes of their own, which the checkpoint tests kill."""

import os
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from likewise.auditing.search.gradient.search import GradientSearch
from likewise.core.subspace import Subspace
from likewise.fair_metrics import FairMetric
from likewise.training import ERM, AdversarialDebiasing, Batch, SenSR, mlp, train

STEPS = 70


def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4)).astype(np.float32)
    return X, (X[:, 0] + X[:, 1] > 0).astype(int), (X[:, 1] > 0).astype(int)


def parts(kind):
    """Network, data, objective and validation rows: together everything that has to survive."""
    X, y, S = rows()
    net = mlp(4, (8,), 2)
    data = Batch.from_arrays(X, y, sensitive_features=S)
    if kind == "sensr":
        # λ that moves, warm starts, early stopping's best weights.
        metric = FairMetric.from_subspace(Subspace.from_directions([[0.0, 1.0, 0.0, 0.0]]), weight=0.1)
        search = GradientSearch(full_steps=3)
        objective = SenSR(metric, eps=0.05, lambda_rule="dual", warm_start=True, search=search)
        return net, data, objective, (X[:50], y[:50])
    if kind == "adversarial":
        # A second network with its own optimiser.
        return net, data, AdversarialDebiasing(), None
    # Torch's random state (dropout), buffers (batch norm), a loader that shuffles.
    net = nn.Sequential(net[0], nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), net[2])
    loader = DataLoader(TensorDataset(torch.as_tensor(X), torch.as_tensor(y)), batch_size=32, shuffle=True)
    return net, loader, ERM(), (X[:50], y[:50])


def run(kind, path=None, pause=0.0):
    """Train to the end, going on from `path` if it exists; write the number of each step beside it."""
    net, data, objective, validation = parts(kind)
    marker = None if path is None else Path(f"{path}.step")

    def note(step, loss, state):
        if marker is not None:
            marker.write_text(str(step))
        time.sleep(pause)

    return train(
        net, data, objective, steps=STEPS, batch_size=32, lr=0.01, validation=validation, validate_every=10,
        checkpoint=path, checkpoint_every=7, resume=path is not None, callback=note,
    )  # fmt: skip


def answer():
    """For every line "kind path" make a run in a process, say which it is, and then how it ended."""
    for line in sys.stdin:
        kind, path = line.rstrip("\n").split(" ", 1)
        process = os.fork()
        if process == 0:
            run(kind, path, pause=0.05)
            os._exit(0)
        print(process, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


if __name__ == "__main__":
    answer()
