"""The gradient search beside inFairness' SenSRAuditor: the worst cases of Adult's 9,045 test people.

    OMP_NUM_THREADS=1 python benchmarks/audit.py [--repeats R] [--training-steps S] [--lam 1 10]

Both search the maximum of ℓ(x, y_i) − λ d²(x, x_i) for the same network (41-100-2), the same rows (float32), the
same λ and the same metric. inFairness has no domain, so the metric bounds the problem for both: weight 0.01 along
span[w_g, e_sex, e_race], 1 across it. SenSRAuditor runs Adam for 100 steps, with the learning rate of a grid that
gives it the highest objective (found beforehand, not timed), and with the mean loss as its own examples do: with one
loss per row it builds an n × n matrix. CPU seconds are those of `time.process_time`; contenders take turns, one
thread. The objective is computed for both by the same lines, in double precision.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from likewise.auditing.search.gradient.search import GradientSearch
from likewise.core.subspace import Subspace
from likewise.data import Unbounded
from likewise.datasets import load_adult
from likewise.fair_metrics import AttributeSubspace, FairMetric
from likewise.models import make_oracle

WEIGHT = 0.01
LEARNING_RATES = (0.1, 0.3, 1.0, 3.0, 10.0)
STEPS = 100


@dataclass(frozen=True)
class Problem:
    net: torch.nn.Module
    x: torch.Tensor
    y: torch.Tensor
    metric: FairMetric

    def objective(self, found: torch.Tensor, lam: float) -> float:
        """Mean of ℓ − λ d² in double precision."""
        net = torch.nn.Sequential(*self.net).double()
        with torch.no_grad():
            loss = torch.nn.functional.cross_entropy(net(found.double()), self.y, reduction="none")
        self.net.float()
        squared = self.metric.squared_distance(found.double().numpy(), self.x.double().numpy())
        return float(loss.mean()) - lam * float(squared.mean())


def make_problem(training_steps: int) -> Problem:
    data = load_adult(split=0)
    names = list(data.X.columns)
    learner = AttributeSubspace("sex").fit(data.X_train)
    axes = np.eye(len(names))[[names.index("sex_Male"), names.index("race_White")]]
    subspace = Subspace.from_directions(np.vstack([*learner.directions_.values(), axes]))
    x, y = (torch.tensor(np.asarray(part)) for part in (data.X_train, data.y_train))
    net = train(x.float(), y.long(), training_steps)
    x, y = (torch.tensor(np.asarray(part)) for part in (data.X_test, data.y_test))
    return Problem(net, x.float(), y.long(), FairMetric.from_subspace(subspace, weight=WEIGHT))


def train(x: torch.Tensor, y: torch.Tensor, steps: int) -> torch.nn.Module:
    """The paper's baseline: 100 units, Adam 0.001, batches of 1,000 with both classes equal."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(x.shape[1], 100), torch.nn.ReLU(), torch.nn.Linear(100, 2))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    rows = [(y == label).nonzero()[:, 0] for label in (0, 1)]
    for _ in range(steps):
        batch = torch.cat([r[torch.randint(len(r), (500,))] for r in rows])
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x[batch]), y[batch]).backward()
        optimizer.step()
    for parameter in net.parameters():
        parameter.requires_grad_(False)
    return net


def run_likewise(problem: Problem, lam: float, search: GradientSearch) -> torch.Tensor:
    oracle = make_oracle(problem.net)
    found = search.run(oracle, problem.x, problem.y, metric=problem.metric, domain=Unbounded(), lam=lam)
    assert bool(found.finite.all())
    return found.x


def run_infairness(problem: Problem, lam: float, rate: float) -> torch.Tensor:
    from inFairness.auditor import SenSRAuditor
    from inFairness.distances import MahalanobisDistances

    distance = MahalanobisDistances()
    distance.fit(torch.as_tensor(problem.metric.sigma(), dtype=torch.float32))
    auditor = SenSRAuditor(torch.nn.functional.cross_entropy, distance, num_steps=STEPS, lr=rate)
    torch.manual_seed(0)
    return auditor.generate_worst_case_examples(
        problem.net, problem.x, problem.y, torch.tensor(lam), optimizer=torch.optim.Adam
    )


def timed(call: Callable[[], torch.Tensor]) -> tuple[float, torch.Tensor]:
    start = time.process_time()
    found = call()
    return time.process_time() - start, found


def compare(problem: Problem, lam: float, repeats: int, present: bool) -> None:
    contenders: dict[str, Callable[[], torch.Tensor]] = {
        "GradientSearch()": lambda: run_likewise(problem, lam, GradientSearch()),
        "GradientSearch(full_steps=2)": lambda: run_likewise(problem, lam, GradientSearch(full_steps=2)),
        'GradientSearch(method="adam", ...)': lambda: run_likewise(
            problem, lam, GradientSearch(method="adam", full_steps=STEPS, full_step_size=1.0)
        ),
    }
    reference = "SenSRAuditor"
    if present:
        reached = {
            rate: problem.objective(run_infairness(problem, lam, rate), lam) for rate in LEARNING_RATES
        }
        rate = max(reached, key=reached.__getitem__)
        print("SenSRAuditor by learning rate:", {k: round(v, 4) for k, v in reached.items()})
        reference = f"SenSRAuditor, lr {rate:g}"
        contenders[reference] = lambda: run_infairness(problem, lam, rate)
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    value: dict[str, float] = {}
    for name, call in contenders.items():
        value[name] = problem.objective(call(), lam)
    for _ in range(repeats):
        for name, call in contenders.items():
            seconds[name].append(timed(call)[0])
    print(
        f"\n| λ = {lam:g} | objective | CPU ms (median) | CPU ms (range) | times less CPU (median of rounds) |"
    )
    print("|---|---|---|---|---|")
    for name, runs in seconds.items():
        ratio = "—"
        if present:
            rounds = [theirs / ours for ours, theirs in zip(runs, seconds[reference], strict=True)]
            ratio = f"{statistics.median(rounds):.1f} ×"
        print(
            f"| {name} | {value[name]:.4f} | {1e3 * statistics.median(runs):.0f} "
            f"| {1e3 * min(runs):.0f}–{1e3 * max(runs):.0f} | {ratio} |"
        )
    with torch.no_grad():
        base = torch.nn.functional.cross_entropy(problem.net(problem.x), problem.y)
    print(f"\nMean loss of the rows themselves: {float(base):.4f}\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--training-steps", type=int, default=2000)
    parser.add_argument("--lam", type=float, nargs="+", default=[1.0, 10.0])
    options = parser.parse_args()
    torch.set_num_threads(1)
    present = importlib.util.find_spec("inFairness") is not None
    if not present:
        print("inFairness is NOT installed: only likewise is timed, there is nothing to compare with.")
        print("Install it with: pip install 'likewise[bench]'\n")
    problem = make_problem(options.training_steps)
    print(
        f"{len(problem.x)} rows × {problem.x.shape[1]} columns, network of {options.training_steps} training steps"
    )
    for lam in options.lam:
        compare(problem, lam, options.repeats, present)


if __name__ == "__main__":
    main()
