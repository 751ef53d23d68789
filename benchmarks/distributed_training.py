"""SenSR on Adult on one process and on two ranks of torchrun: quality, CPU time and what the ranks send each other.

OMP_NUM_THREADS=1 python benchmarks/distributed_training.py
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from adult_quality import MEASURES

from likewise.datasets import load_adult
from likewise.evaluation import evaluate
from likewise.fair_metrics import AttributeSubspace, ExpertSubspace
from likewise.training import SenSRClassifier, TrainingWarning, joined
from likewise.training.estimators.parameters import AS_PUBLISHED


def fitted(seed, steps, data):
    """The estimator, and CPU and wall seconds of its fit."""
    subspace = [AttributeSubspace("sex", regularization=0.1), ExpertSubspace(["race"])]
    model = SenSRClassifier(
        subspace,
        **{**AS_PUBLISHED, "eps": 1e-3, "search": "fast", "batch_size": 1000, "lr": 1e-3},
        n_steps=steps,
        random_state=seed,
    )
    cpu, wall = time.process_time(), time.perf_counter()
    model.fit(data.X_train, data.y_train)
    return model, time.process_time() - cpu, time.perf_counter() - wall


def warm_up(data):
    """Load and compile what the first fit of a process does."""
    fitted(0, 5, data)


def measured(model, data):
    values = evaluate(model, data.X_test, data.y_test).values
    return [float(values[name]) for name in MEASURES]


class Counted:
    """Messages that this rank takes part in, and the bytes of its own tensors in them."""

    def __init__(self):
        self.messages = self.bytes = 0
        import torch.distributed as dist

        for name in ("all_reduce", "all_gather", "broadcast"):
            setattr(dist, name, self._watched(getattr(dist, name), last=name == "all_gather"))

    def _watched(self, call, last):
        def watched(*tensors, **choices):
            sent = tensors[-1] if last else tensors[0]
            self.messages += 1
            self.bytes += sent.numel() * sent.element_size()
            return call(*tensors, **choices)

        return watched


def rank_of_two(out, seed, steps):
    """What each process of torchrun runs."""
    data = load_adult()
    with joined() as ranks:
        warm_up(data)
        counted = Counted()
        model, cpu, wall = fitted(seed, steps, data)
        seconds = ranks.gather(torch.tensor([cpu, wall], dtype=torch.float64))
    if ranks.first:
        found = {
            "values": measured(model, data),
            "cpu": [float(pair[0]) for pair in seconds],
            "wall": float(seconds[0][1]),
            "messages": counted.messages / steps,
            "bytes": counted.bytes / steps,
        }
        Path(out).write_text(json.dumps(found))


def two_ranks(seed, steps):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", __file__]
        words += ["--rank-of-two", str(out), "--seeds", str(seed), "--steps", str(steps)]
        subprocess.run([sys.executable, *words], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        return json.loads(out.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--rank-of-two", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore", TrainingWarning)
    if options.rank_of_two:
        rank_of_two(options.rank_of_two, options.seeds[0], options.steps)
        return
    data = load_adult()
    warm_up(data)
    print("| | CPU s of each process | wall s | B-Acc | S-Con | GR-Con | Gap_G RMS | Gap_R RMS |")
    print("|---|---|---|---|---|---|---|---|")
    ones = []
    for seed in options.seeds:
        model, cpu, wall = fitted(seed, options.steps, data)
        ones.append(measured(model, data))
        show(f"one process, seed {seed}", [cpu], wall, ones[-1])
    two = two_ranks(options.seeds[0], options.steps)
    show(f"two ranks, seed {options.seeds[0]}", two["cpu"], two["wall"], two["values"])
    spread = np.ptp(ones, axis=0)
    apart = np.abs(np.subtract(two["values"], ones[0]))
    print("| largest − smallest of the seeds | | | " + " | ".join(f"{v:.4f}" for v in spread) + " |")
    print("| two ranks − one process, same seed | | | " + " | ".join(f"{v:.4f}" for v in apart) + " |")
    print(f"\nPer step and rank: {two['messages']:.2f} messages, {two['bytes']:,.0f} bytes.")
    print("Within the spread in every column:", bool((apart <= spread).all()))


def show(name, cpu, wall, values):
    seconds = ", ".join(f"{s:.1f}" for s in cpu)
    print(f"| {name} | {seconds} | {wall:.1f} | " + " | ".join(f"{v:.4f}" for v in values) + " |", flush=True)


if __name__ == "__main__":
    main()
