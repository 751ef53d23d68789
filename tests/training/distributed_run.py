"""What the distributed tests start under torchrun, and run once more in one process to compare with."""

import contextlib
import io
import json
import os
import signal
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn

from likewise.auditing.search.gradient.search import GradientSearch
from likewise.cli import main as cli
from likewise.core.errors import InputError
from likewise.core.subspace import Subspace
from likewise.data import BoxDomain
from likewise.fair_metrics import FairMetric
from likewise.training import (
    ERM,
    AdversarialDebiasing,
    Batch,
    CoCL,
    SenSeI,
    SenSR,
    SenSRClassifier,
    TrainingConfig,
    WithCovariancePenalty,
    alone,
    current_ranks,
    joined,
    mlp,
    train,
    wasserstein_robust,
)

METRIC = FairMetric.from_subspace(Subspace.from_directions([[0.0, 1.0, 0.0]]), weight=0.1)
FREE = FairMetric.from_subspace(Subspace.from_directions([[0.0, 1.0, 0.0]]))
BOX = BoxDomain(np.full(3, -4.0), np.full(3, 4.0))
FEW = GradientSearch(subspace_steps=3, full_steps=3)
RULES = {"domain": BOX, "search": FEW, "eps": 0.05}


class Own(ERM):
    """An objective that knows nothing of ranks."""

    def step(self, net, batch, state):
        losses = nn.functional.cross_entropy(net(batch.x), batch.y, reduction="none")
        return losses.square().mean().sqrt(), state.after()


OBJECTIVES = {
    "erm": ERM(),
    "sensr_fast": SenSR(FREE),
    "sensr_paper": SenSR(METRIC, lambda_rule="paper", **RULES),
    "sensr_authors": SenSR(METRIC, lambda_rule="authors", **RULES),
    "sensr_dual": SenSR(METRIC, lambda_rule="dual", **RULES),
    "sensr_fixed": SenSR(METRIC, lambda_rule="fixed", **RULES),
    "sensr_warm": SenSR(METRIC, lambda_rule="dual", warm_start=True, **RULES),
    "wasserstein": wasserstein_robust(3, eps=0.1, search=FEW),
    "sensei": SenSeI(METRIC, lambda_rule="dual", **RULES),
    "sensei_logits": SenSeI(METRIC, lambda_rule="paper", outputs="logits", **RULES),
    "adversarial": AdversarialDebiasing(n_values=(2, 3)),
    "cocl": CoCL(strength=2.0),
    "penalised": WithCovariancePenalty(SenSR(METRIC, **RULES), strength=2.0),
    "own": Own(),
}


def rows(n=60, weight=True):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)).clip(-3, 3)
    y = (X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=n) > 0).astype(int) + (X[:, 2] > 1)
    S = np.stack([X[:, 1] > 0, rng.integers(0, 3, n)], axis=1).astype(int)
    W = rng.uniform(0.5, 2.0, n) if weight else None
    return Batch.from_arrays(
        X, y, sensitive_features=S, proxy=rng.normal(size=(n, 4)), weight=W, dtype=torch.float64
    )


class Recording(torch.optim.SGD):
    """Plain descent that keeps every gradient it was given."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, lr=lr)
        self.seen = []

    def step(self, closure=None):
        whole = [p.grad.reshape(-1) for group in self.param_groups for p in group["params"]]
        self.seen.append(torch.cat(whole).tolist())
        super().step()


def traces():
    """For every objective four steps of 33 rows (shares of 17 and 16): gradients, λ and whatever is noted."""
    found = {}
    for name, objective in OBJECTIVES.items():
        data = rows()
        with warnings.catch_warnings(record=True):
            result = train(
                mlp(3, (8,), 3, dtype=torch.float64), data, objective, steps=4, batch_size=33, lr=0.05,
                optimizer=Recording, validation=data.take(torch.arange(25)), validate_every=2,
            )  # fmt: skip
        counters = {
            k: v for k, v in result.state.counters.items() if k not in ("looked_at_rows", "unmoved_rows")
        }
        found[name] = {
            "gradients": result.optimizer.seen,
            "history": {k: np.nan_to_num(v, nan=-1.0).tolist() for k, v in result.history.columns.items()},
            "best": [result.best_step, result.best_validation],
            "counters": counters,
        }
    return found


def long_run(path=None, steps=24, callback=None, resume=True):
    """A run with everything that a checkpoint holds: λ that moves, warm starts, best weights, Adam."""
    data = rows(weight=False)
    objective = OBJECTIVES["sensr_warm"]
    net = mlp(3, (8,), 3, dtype=torch.float64)
    return train(
        net, data, objective, steps=steps, batch_size=20, lr=0.01, validation=data.take(torch.arange(20)),
        validate_every=6, checkpoint=path, checkpoint_every=5, resume=resume and path is not None, callback=callback,
        warn=False,
    )  # fmt: skip


def flat(net):
    return torch.cat([t.detach().reshape(-1).double() for t in net.state_dict().values()]).tolist()


def estimator(seed):
    X, y = rows().x.numpy(), rows().y.numpy()
    model = SenSRClassifier(
        FREE,
        n_steps=20,
        batch_size=25,
        hidden_layer_sizes=(6,),
        validation=0.3,
        training=TrainingConfig(baseline=False),
        random_state=seed,
    )
    return model.fit(X, y)


def with_random_parts():
    """Dropout and batch statistics: ranks draw masks of their own, and share no batch where its rows mix."""
    weights = {}
    for name, part in {
        "dropout": nn.Dropout(0.3),
        "batch_norm": nn.BatchNorm1d(8, dtype=torch.float64),
    }.items():
        net = mlp(3, (8,), 3, dtype=torch.float64)
        net = nn.Sequential(net[0], part, *net[1:])
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            train(net, rows(), ERM(), steps=10, batch_size=30)
        weights[name] = {"weights": flat(net), "warnings": [str(w.message) for w in told]}
    return weights


def ends(folder, ranks):
    """Diverged, interrupted and refused runs: all ranks must end alike."""
    found = {}
    result = train(
        mlp(3, (8,), 3), rows().to("cpu", torch.float32), steps=50, optimizer="sgd", lr=1e30, warn=False
    )
    found["diverged"] = [result.status, result.steps, flat(result.net)]

    def press(step, loss, state):
        if step == 7 and ranks.rank == 1:
            os.kill(os.getpid(), signal.SIGINT)

    result = train(mlp(3, (8,), 3), rows().to("cpu", torch.float32), steps=5000, callback=press, warn=False)
    found["interrupted"] = [result.status, result.steps, flat(result.net)]
    data = rows()
    try:
        path = None if ranks.rank else folder / "first_only.safetensors"
        train(mlp(3, (8,), 3, dtype=torch.float64), data, steps=2, checkpoint=path)
    except InputError as error:
        found["other files"] = str(error)
    for name, bad in {
        "other rows": data.take(torch.arange(50)) if ranks.rank else data,
        "bad rows": (np.full((4, 3), np.nan), np.arange(4) % 2) if ranks.rank else data,
        "bad everywhere": (np.full((4, 3), np.nan), np.arange(4) % 2),
    }.items():
        try:
            train(mlp(3, (8,), 3, dtype=torch.float64), bad, steps=2)
        except InputError as error:
            found[name] = str(error)
    with alone():
        found["alone"] = flat(
            train(mlp(3, (8,), 3), rows().to("cpu", torch.float32), steps=1 + ranks.rank).net
        )
    return found


def table(folder, name="people.csv"):
    """A small table of people in a file."""
    data = rows(80)
    frame = pd.DataFrame(data.x.numpy(), columns=["age", "hours", "income"])
    frame["sex"] = np.where(data.sensitive_features[:, 0].numpy() == 1, "Male", "Female")
    frame["paid"] = np.where(data.y.numpy() > 0, "yes", "no")
    frame.to_csv(folder / name, index=False)
    return folder / name


TRAIN = (
    "train",
    "--target",
    "paid",
    "--sensitive",
    "sex",
    "--method",
    "sensei",
    "--steps",
    "40",
    "--hidden",
    "8",
)


def command(*words):
    """Exit code of the command line, and what this process printed."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli([str(word) for word in words])
        except SystemExit as ended:
            code = ended.code
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    return [code, out.getvalue(), err.getvalue()]


def commands(folder, rank):
    """Mistakes that all make, that only the first or only the other sees, and a verb that is nobody's but the first's."""
    people = folder / "people.csv"
    basic = ("--target", "paid", "--sensitive", "sex", "--steps", "2", "--method", "baseline", "-o")
    taken = folder / "taken.safetensors"
    if rank == 0:
        taken.write_text("mine")
    return {
        "all": command("train", people, "--sensitive", "nobody", *basic, folder / "a.safetensors"),
        "first": command("train", people, *basic, taken),
        "other": command(
            "train", people if rank == 0 else folder / "no.csv", *basic, folder / "a.safetensors"
        ),
        "usage": command("train", people, "--nonsense"),
        "listed": command("datasets"),
        "trained": command(*TRAIN, people, "-o", folder / "trained.safetensors"),
    }


def main(folder):
    with joined() as ranks:
        found = {"rank": ranks.rank, "world": ranks.world, "traces": traces()}
        found["resumed"] = flat(long_run(folder / "one.safetensors").net)
        found["estimators"] = [flat(estimator(seed).network_) for seed in (0, None)]
        found["random"] = with_random_parts()
        found["ends"] = ends(folder, ranks)
        assert current_ranks().several
    # A group that train makes for itself, and leaves no trace of.
    found["again"] = flat(long_run(steps=4).net)
    found["group left"] = torch.distributed.is_initialized()
    found["commands"] = commands(folder, ranks.rank)
    (folder / f"{ranks.rank}.json").write_text(json.dumps(found))

    def die(step, loss, state):
        if step == 13 and ranks.rank == 1:
            os._exit(9)

    # torchrun ends who is left, often before they have noticed: the one that is left has to be heard here.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    long_run(folder / "two.safetensors", callback=die)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
