"""CPU per SenSR training step against inFairness' SenSR, in turns, on the same weights, batches and problem.

    OMP_NUM_THREADS=1 python benchmarks/training.py [--steps 20] [--lam 1 10]

Needs inFairness. The net is 41-100-2 on Adult, batches have 1,000 rows (as many of each class), the fair metric has
the subspace learned from sex and race with a weight of 0.01 (inFairness has no domain, so the problem must be bounded
by itself), λ is fixed. Each contender makes a whole training step (search, loss, backward, Adam) from the same
weights on the same batch; the weights go on from ours. "objective" is the mean of loss − λ d² at the rows that a
contender trained on, measured the same way for all. inFairness runs 90 Adam steps, as many as the paper's 50 + 40, at
the learning rate that finds the highest objective of those tried, and at the one of its own Adult example. CPU is
`time.process_time`; means over the steps.
"""

from __future__ import annotations

import argparse
import copy
import os
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from inFairness.distances import MahalanobisDistances
    from inFairness.fairalgo import SenSR as TheirSenSR

from likewise.auditing.search.gradient.search import GradientSearch
from likewise.core.randomness import torch_generator
from likewise.datasets import load_adult
from likewise.fair_metrics import AttributeSubspace, FairMetric
from likewise.training import ArrayBatches, Batch, SenSR, State, mlp, train

THEIR_STEPS = 90
THEIR_RATES = (0.01, 0.03, 0.1, 0.3, 1.0)
THEIR_EXAMPLE_RATE = 1e-3
STAGES = (0, 1000)
CHOICES: dict[str, dict[str, Any]] = {
    "likewise, 8 steps, warm starts": {
        "search": GradientSearch(full_steps=8, probes=0, tol=1e-4),
        "warm_start": True,
    },
    "likewise, 20 steps, probes": {"search": GradientSearch(full_steps=20)},
}


@dataclass
class Tally:
    cpu: list[float] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)

    def ms(self) -> float:
        return 1e3 * statistics.fmean(self.cpu)


class Ours:
    """One set of choices of `SenSR`, with the state it has by now."""

    def __init__(self, objective: SenSR, state: State) -> None:
        self._objective, self._state = objective, state

    def worst(self, net: torch.nn.Module, batch: Batch) -> torch.Tensor:
        return self._objective.worst_case(net, batch, self._state).x

    def loss(self, net: torch.nn.Module, batch: Batch) -> torch.Tensor:
        loss, self._state = self._objective.step(net, batch, self._state)
        return loss


class Theirs:
    """inFairness' SenSR with a fixed λ."""

    def __init__(self, metric: FairMetric, lam: float, rate: float) -> None:
        self._distance = MahalanobisDistances()
        self._distance.fit(torch.as_tensor(metric.sigma(), dtype=torch.float32))
        self._lam, self._rate = torch.tensor(lam), rate

    def _algorithm(self, net: torch.nn.Module) -> TheirSenSR:
        found = TheirSenSR(
            network=net,
            distance_x=self._distance,
            loss_fn=torch.nn.functional.cross_entropy,
            eps=0.0,
            lr_lamb=0.0,
            lr_param=1.0,
            auditor_nsteps=THEIR_STEPS,
            auditor_lr=self._rate,
        )
        found.lambda_param = self._lam
        return found.train()

    def worst(self, net: torch.nn.Module, batch: Batch) -> torch.Tensor:
        auditor = self._algorithm(net).auditor
        return auditor.generate_worst_case_examples(net, batch.x, batch.y, self._lam)

    def loss(self, net: torch.nn.Module, batch: Batch) -> torch.Tensor:
        return self._algorithm(net)(batch.x, batch.y).loss


def training_step(loss: Callable[[], torch.Tensor], optimizer: torch.optim.Optimizer) -> float:
    """Make one training step and return its CPU seconds."""
    start = time.process_time()
    value = loss()
    optimizer.zero_grad()
    value.backward()
    optimizer.step()
    return time.process_time() - start


def penalised(net: torch.nn.Module, batch: Batch, x: torch.Tensor, metric: FairMetric, lam: float) -> float:
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(net(x).double(), batch.y, reduction="none")
    return float((loss - lam * metric.squared_distance(x.double(), batch.x.double())).mean())


def best_rate(net: torch.nn.Module, batch: Batch, metric: FairMetric, lam: float) -> float:
    found = {rate: Theirs(metric, lam, rate).worst(copy.deepcopy(net), batch) for rate in THEIR_RATES}
    return max(THEIR_RATES, key=lambda rate: penalised(net, batch, found[rate], metric, lam))


def in_turns(
    net: torch.nn.Module,
    moments: dict[str, Any],
    source: ArrayBatches,
    metric: FairMetric,
    lam: float,
    contenders: dict[str, Any],
    steps: int,
) -> dict[str, Tally]:
    """Let everyone make each step from the same weights and moments of Adam; go on from the first one's."""
    tallies = {name: Tally() for name in contenders}
    leader = next(iter(contenders))
    for k in range(-2, steps):
        batch, after = source.next(), {}
        for name, contender in contenders.items():
            twin = copy.deepcopy(net)
            optimizer = torch.optim.Adam(twin.parameters(), lr=1e-3, fused=True)
            optimizer.load_state_dict(copy.deepcopy(moments))
            x = contender.worst(twin, batch)
            cpu = training_step(lambda c=contender, t=twin, b=batch: c.loss(t, b), optimizer)
            after[name] = (twin, optimizer)
            if k >= 0:
                tallies[name].cpu.append(cpu)
                tallies[name].objective.append(penalised(net, batch, x, metric, lam))
        net, moments = after[leader][0], after[leader][1].state_dict()
    return tallies


def measure(data: Batch, metric: FairMetric, lam: float, trained: int, steps: int) -> None:
    net = mlp(data.x.shape[1], (100,), 2, generator=torch_generator(0))
    moments = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True).state_dict()
    contenders: dict[str, Any] = {}
    for name, choices in CHOICES.items():
        objective = SenSR(metric, lambda_rule="fixed", lambda_init=lam, **choices)
        state = objective.init(net)
        if trained and not contenders:
            result = train(net, data, objective, steps=trained, warn=False)
            state, moments = result.state, result.optimizer.state_dict()
        contenders[name] = Ours(objective, state)
    source = ArrayBatches(data, 1000, generator=torch.Generator().manual_seed(1))
    rate = best_rate(net, source.next(), metric, lam)
    for tried in (rate, THEIR_EXAMPLE_RATE):
        contenders[f"inFairness, {THEIR_STEPS} Adam steps of {tried:g}"] = Theirs(metric, lam, tried)
    tallies = in_turns(net, moments, source, metric, lam, contenders, steps)
    ours = next(iter(tallies.values()))
    for name, tally in tallies.items():
        row = (f"{lam:g}", str(trained), name, f"{tally.ms():.1f}", f"{tally.ms() / ours.ms():.1f} ×")
        print(f"| {' | '.join(row)} | {statistics.fmean(tally.objective):.4f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--lam", type=float, nargs="+", default=[1.0, 10.0])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    adult = load_adult()
    subspace = AttributeSubspace(attributes=["sex", "race"]).fit(adult.X_train).subspace_
    metric = FairMetric.from_subspace(subspace, weight=0.01)
    data = Batch.from_arrays(np.asarray(adult.X_train), adult.y_train)
    print("| λ | steps trained | | CPU ms per training step | | objective |")
    print("|---|---|---|---|---|---|")
    for lam in arguments.lam:
        for trained in STAGES:
            measure(data, metric, lam, trained, arguments.steps)


if __name__ == "__main__":
    main()
