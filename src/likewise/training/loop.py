"""The only training loop: any objective, any source of batches."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from likewise.core.checks import check_integer
from likewise.core.errors import bad_parameter
from likewise.core.randomness import RandomState, spawn_seeds
from likewise.models.guard import module_device, module_dtype
from likewise.training.batch import Batch
from likewise.training.erm import ERM
from likewise.training.findings import TrainingWarning, warn_about
from likewise.training.joint_step import Together, check_same_plan, same_weights, why_not_shared
from likewise.training.objective import Objective, State
from likewise.training.ranks import Ranks, joined
from likewise.training.run import Callback, Run, Schedule, TrainingResult, private_random_state
from likewise.training.sampling import Sampling
from likewise.training.setup import Data, OptimizerLike, check_batch, make_optimizer, make_source
from likewise.training.threads import choose_threads, torch_threads

__all__ = ["train"]


def train(
    net: nn.Module,
    data: Data,
    objective: Objective | None = None,
    *,
    steps: int = 2000,
    batch_size: int = 1000,
    sampling: Sampling = "balanced",
    lr: float = 1e-3,
    optimizer: OptimizerLike = "adam",
    validation: Batch | tuple[Any, Any] | None = None,
    validate_every: int = 100,
    patience: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 500,
    resume: bool = False,
    progress: bool = False,
    callback: Callback | None = None,
    random_state: RandomState = 0,
    device: str | torch.device | None = None,
    threads: int | Literal["auto"] | None = "auto",
    state: State | None = None,
    warn: bool = True,
) -> TrainingResult:
    """Train a network in place; together with other processes where torchrun started several.

    Parameters
    ----------
    net : torch.nn.Module
        Maps (n, d) to (n, C) logits. Its weights are changed; modules leave in the mode they came in.
    data : Batch, (X, y), DataLoader, iterable of batches, or BatchSource
        Rows in memory are drawn as `sampling` says; a loader says itself what a batch is.
    objective : Objective, default=ERM()
    steps : int, default=2000
        Updates in total; a resumed run makes those that are missing.
    batch_size : int, default=1000
    sampling : {"balanced", "uniform", "weighted"}, default="balanced"
        "balanced" draws as many rows of each class, as Appendix C of the paper does.
    lr : float, default=1e-3
    optimizer : {"adam", "adamw", "sgd"}, Optimizer or callable, default="adam"
    validation : Batch or (X, y), optional
        Held-out rows: the weights with the lowest robust loss on them are kept.
    validate_every : int, default=100
        Steps between validations.
    patience : int, optional
        Stop after so many validations without a better one.
    checkpoint : path, optional
        File that the run is written to, whole or not at all, every `checkpoint_every` steps and at the end.
    checkpoint_every : int, default=500
    resume : bool, default=False
        Go on from the checkpoint if there is one. The result is bit for bit that of an uninterrupted run.
    progress : bool, default=False
        Show a bar with the time left.
    callback : callable (step, loss, state), optional
        Called after every step.
    random_state : int, Generator, RandomState or None, default=0
        For the batches and for anything random in the network (dropout). Torch's global generator is put back.
    device : str or torch.device, optional
        Where to train; default: where the network is.
    threads : int, "auto" or None, default="auto"
        Torch threads while it runs, put back afterwards; "auto" is 1 for networks below a million parameters,
        None leaves the number alone.
    state : State, optional
        Of the objective, to go on with (with ``optimizer=result.optimizer``).
    warn : bool, default=True
        Give a `TrainingWarning` for every finding of the result.

    Returns
    -------
    TrainingResult
        Ctrl-C ends the run with the best weights so far and status "interrupted"; a loss that is not finite
        ends it with the last good weights and status "diverged".

    Notes
    -----
    Under ``torchrun --nproc-per-node 2 script.py``, or in a process group that is initialised already, the script
    runs on every rank and passes the same data to each. All draw the same batch, each searches the worst cases of
    its share of the rows, and all make the same update: weights, λ and the result are those of one process up
    to rounding. The first rank writes the checkpoint and shows progress; a checkpoint goes on with any number of
    ranks. ``likewise.training.alone()`` is a block in which a rank trains by itself.

    Examples
    --------
    >>> from likewise.training import mlp
    >>> X = torch.tensor([[-1.0], [-2.0], [1.0], [2.0]])
    >>> result = train(mlp(1, (), 2), (X, [0, 0, 1, 1]), steps=200, lr=0.1)
    >>> result.status, bool(result.history["loss"][-1] < 0.1)
    ('finished', True)
    """
    objective = ERM() if objective is None else objective
    schedule = _schedule(steps, validate_every, patience, checkpoint_every)
    if resume and checkpoint is None:
        raise bad_parameter(
            "train",
            "resume",
            allowed="False where there is no checkpoint",
            got=resume,
            remedy="Pass checkpoint=.",
        )
    settings = {
        "objective": objective.describe(),
        "batch_size": batch_size,
        "sampling": sampling,
        "lr": lr,
        "optimizer": optimizer if isinstance(optimizer, str) else "own",
        "validate_every": None if validation is None else validate_every,
        "random_state": int(random_state) if isinstance(random_state, (int, np.integer)) else None,
    }
    with joined() as ranks:
        target = module_device(net) if device is None else torch.device(device)
        net.to(target)
        seeds = ranks.from_first(torch.tensor(spawn_seeds(random_state, 2))).tolist()
        with torch_threads(choose_threads(net, threads)), private_random_state(seeds[0], target):
            with ranks.agree():
                generator = torch.Generator().manual_seed(seeds[1])
                source, code = make_source(
                    net,
                    data,
                    objective,
                    batch_size=batch_size,
                    sampling=sampling,
                    generator=generator,
                    device=target,
                )
                held_out = _validation_rows(net, validation, objective, target)
                moments = make_optimizer(net, optimizer, lr)
            files = (checkpoint is None, resume, validation is None)
            check_same_plan(ranks, source, [schedule, *files, type(objective).__name__])
            same_weights(ranks, net)
            run = Run(
                net,
                source,
                objective,
                moments,
                (_first_state(objective, net, warn=warn and ranks.first) if state is None else state).to(
                    target
                ),
                validation=held_out,
                settings={**settings, "data": code},
                checkpoint=None if checkpoint is None else Path(checkpoint),
                together=_together(ranks, objective, net, seed=seeds[0], warn=warn),
            )
            if resume:
                run.resume()
            result = run.run(schedule, progress=progress, callback=callback)
        if warn and ranks.first:
            warn_about(result.findings)
    return result


def _first_state(objective: Objective, net: nn.Module, *, warn: bool) -> State:
    """The state before the first step, without what the objective says about itself unless `warn`."""
    if warn:
        return objective.init(net)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        return objective.init(net)


def _together(ranks: Ranks, objective: Objective, net: nn.Module, *, seed: int, warn: bool) -> Together:
    reason = why_not_shared(objective, net) if ranks.several else None
    if reason is not None and warn and ranks.first:
        warnings.warn(
            f"train: every rank works on whole batches, so several are no faster than one: {reason}.",
            TrainingWarning,
            stacklevel=3,
        )
    return Together(ranks, share=reason is None, seed=seed)


def _schedule(steps: int, validate_every: int, patience: int | None, checkpoint_every: int) -> Schedule:
    numbers = {"steps": steps, "validate_every": validate_every, "checkpoint_every": checkpoint_every}
    if patience is not None:
        numbers["patience"] = patience
    for name, value in numbers.items():
        check_integer(value, owner="train", name=name, low=1)
    return Schedule(steps, validate_every, patience, checkpoint_every)


def _validation_rows(
    net: nn.Module, validation: Batch | tuple[Any, Any] | None, objective: Objective, device: torch.device
) -> Batch | None:
    if validation is None:
        return None
    dtype = module_dtype(net)
    rows = validation if isinstance(validation, Batch) else Batch.from_arrays(*validation, dtype=dtype)
    rows = rows.to(device, dtype)
    check_batch(net, rows, objective, name="validation")
    return rows
