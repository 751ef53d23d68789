"""The only training loop: any objective, any source of batches."""

from __future__ import annotations

import math
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from torch import nn

from likewise.core.checks import check_integer
from likewise.core.errors import InputError, bad_parameter
from likewise.core.progress import ProgressBar, progress_bar
from likewise.core.randomness import RandomState, private_random_state, spawn_seeds
from likewise.models.oracle import module_device
from likewise.training.batch import Batch, BatchSource, Sampling
from likewise.training.checkpoint import (
    Checkpoint,
    flat_optimizer,
    load_optimizer,
    read_checkpoint,
    write_checkpoint,
)
from likewise.training.distributed import (
    DistributedStep,
    check_same_plan,
    current_ranks,
    joined,
    same_weights,
)
from likewise.training.objective import ERM, Objective, State
from likewise.training.results import (
    History,
    Status,
    TrainingResult,
    TrainingWarning,
    diagnose_training,
    warn_about,
)
from likewise.training.setup import (
    Data,
    OptimizerLike,
    checked_rows,
    fingerprint,
    make_optimizer,
    make_source,
    torch_threads,
)

# One training run: its moving parts, a step, and how it ends.


Callback: TypeAlias = "Callable[[int, float, State], None]"


@dataclass(frozen=True)
class Schedule:
    """How long a run lasts and what happens when."""

    steps: int
    validate_every: int
    patience: int | None
    checkpoint_every: int

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name != "patience" or value is not None:
                check_integer(value, owner="train", name=name, low=1)


# What a checkpoint keeps of the validations so far.
_PROGRESS = ("best_step", "best_validation", "waited")


class Run:
    """The moving parts of a training, and the loop over them."""

    def __init__(
        self,
        net: nn.Module,
        source: BatchSource,
        optimizer: torch.optim.Optimizer,
        state: State,
        *,
        validation: Batch | None,
        checkpoint: Path | None,
        together: DistributedStep,
    ) -> None:
        self.net, self.source, self.objective = net, source, together.objective
        self.optimizer, self.state = optimizer, state
        self.validation, self.checkpoint = validation, checkpoint
        self.settings: dict[str, Any] = {}
        self.together, self.ranks = together, together.ranks
        # A process by itself asks the objective at once.
        self.maker = together if together.ranks.several else together.objective
        self.step = 0
        self.noted: list[dict[Any, float]] = []
        self.best: dict[str, torch.Tensor] = {}
        self.best_step, self.best_validation, self.waited = 0, math.inf, 0
        self._good = _weights(net)
        self._moving = [p for group in optimizer.param_groups for p in group["params"]]

    def run(self, schedule: Schedule, *, progress: bool, callback: Callback | None) -> TrainingResult:
        """Make the steps that are missing and return the result."""
        started = time.perf_counter()
        modes = [(part, part.training) for part in self.net.modules()]
        self.net.train()
        title = type(self.objective).__name__
        status: Status
        show = progress and self.ranks.first
        try:
            with progress_bar(show=show, counted=True) as bar, self.together.interrupts():
                bar.start(title, total=schedule.steps, done=self.step)
                ended: tuple[Status, str] | None = None
                while ended is None and self.step < schedule.steps:
                    ended = self._after(self._update(), schedule, callback, bar)
                status, reason = ended or ("finished", f"all {schedule.steps} steps were made")
        except KeyboardInterrupt:
            # An update may have been cut in half: the weights before it are whole.
            self._load(self._good)
            status, reason = "interrupted", f"interrupted by the keyboard after {self.step} steps"
        finally:
            for part, mode in modes:
                part.training = mode
        if self.checkpoint is not None and status in ("finished", "stopped_early"):
            self.save()
        return self._result(status, reason, time.perf_counter() - started)

    def _after(
        self, row: dict[str, float] | None, schedule: Schedule, callback: Callback | None, bar: ProgressBar
    ) -> tuple[Status, str] | None:
        """Do what is due after an update; return how the run ended, if it did."""
        if row is None:
            self._load(self._good)
            return "diverged", (
                f"the loss or its gradient was not finite at step {self.step + 1}; the weights are the last ones "
                "whose loss was. Lower the learning rate or the search's step size, or scale the columns"
            )
        self.step += 1
        stopped = False
        if self.validation is not None and self.step % schedule.validate_every == 0:
            row["validation"] = value = self.maker.robust_loss(self.net, self.validation, self.state)
            self.waited += 1
            if value < self.best_validation:
                self.best, self.best_step, self.best_validation = _weights(self.net), self.step, value
                self.waited = 0
            stopped = schedule.patience is not None and self.waited >= schedule.patience
        self.noted.append({"step": self.step, **row})
        if self.checkpoint is not None and self.step % schedule.checkpoint_every == 0:
            self.save()
        bar.update(self.step, note=f"loss {row['loss']:.4f}")
        if callback is not None:
            callback(self.step, row["loss"], self.state)
        if stopped:
            return "stopped_early", (
                f"no better validation in the last {self.waited}, the best was at step {self.best_step}"
            )
        return None

    def _update(self) -> dict[str, float] | None:
        """Make one update; None when its loss or gradient is not finite, and then nothing was updated."""
        loss, state = self.maker.step(self.net, self.source.next(), self.state)
        self.optimizer.zero_grad()
        if not self.together.backward(loss, self._moving):
            return None
        gradients = [p.grad for p in self._moving if p.grad is not None]
        largest = torch.stack([gradient.detach().abs().amax() for gradient in gradients]).amax()
        if not math.isfinite(float(largest)):
            return None
        # These weights gave a finite loss: the ones to go back to.
        self._remember()
        self.optimizer.step()
        self.state = state
        return {"loss": float(loss.detach()), "lambda_": state.lambda_, **state.last}

    def _result(self, status: Status, reason: str, seconds: float) -> TrainingResult:
        if self.best:
            self._load(self.best)
        history = History.of(self.noted)
        return TrainingResult(
            net=self.net,
            status=status,
            reason=reason,
            history=history,
            state=self.state,
            optimizer=self.optimizer,
            steps=self.step,
            best_step=self.best_step if self.best else self.step,
            best_validation=self.best_validation if self.best else None,
            findings=diagnose_training(self.objective, history, self.state),
            seconds=seconds,
        )

    # ---- weights to go back to ------------------------------------------------------------------------

    @torch.no_grad()
    def _remember(self) -> None:
        now = self.net.state_dict()
        for name, kept in self._good.items():
            kept.copy_(now[name])

    @torch.no_grad()
    def _load(self, weights: dict[str, torch.Tensor]) -> None:
        now = self.net.state_dict()
        for name, kept in weights.items():
            now[name].copy_(kept)

    # ---- files ----------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write the run to its checkpoint: all ranks know the same, and the first writes it down."""
        assert self.checkpoint is not None
        with self.ranks.agree():
            if self.ranks.first:
                moments, groups = flat_optimizer(self.optimizer)
                kept = Checkpoint(
                    settings=self.settings,
                    step=self.step,
                    weights=_weights(self.net),
                    best=self.best,
                    optimizer=moments,
                    optimizer_groups=groups,
                    state=self.state,
                    source=self.source.position(),
                    generator=torch.get_rng_state(),
                    history=History.of(self.noted),
                    progress={name: getattr(self, name) for name in _PROGRESS},
                )
                write_checkpoint(self.checkpoint, kept)

    def resume(self) -> None:
        """Go on from the checkpoint, if there is one and it is of this run."""
        kept = self._read()
        if kept is None:
            return
        self._load(dict(kept.weights))
        load_optimizer(self.optimizer, kept.optimizer, kept.optimizer_groups)
        self.state = kept.state.to(next(iter(self._moving)).device)
        self.source.restore(kept.source)
        torch.set_rng_state(kept.generator)
        self.noted = kept.history.frame().to_dict("records")
        self.best, self.step = dict(kept.best), kept.step
        for name in _PROGRESS:
            setattr(self, name, kept.progress[name])
        self._good = _weights(self.net)

    def _read(self) -> Checkpoint | None:
        """The checkpoint, if there is one; if there are several ranks only the first needs to have the file."""
        assert self.checkpoint is not None
        kept: Checkpoint | None = None
        with self.ranks.agree():
            if self.ranks.first and self.checkpoint.exists():
                kept = read_checkpoint(self.checkpoint)
                _check_same_run(kept.settings, self.settings, self.checkpoint)
        if not self.ranks.several:
            return kept
        data = self.ranks.bytes_from_first(None if kept is None else self.checkpoint.read_bytes())
        if data is None or kept is not None:
            return kept
        with tempfile.TemporaryDirectory() as folder:
            copied = Path(folder, self.checkpoint.name)
            copied.write_bytes(data)
            return read_checkpoint(copied)


def _weights(net: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in net.state_dict().items()}


def _check_same_run(kept: dict[str, Any], now: dict[str, Any], path: Path) -> None:
    for name, value in now.items():
        if kept.get(name) != value:
            shown = (kept.get(name), value) if name != "objective" else _first_difference(kept[name], value)
            raise InputError(
                f"train: the checkpoint {path.name} is of a run with another {name!r} ({shown[0]!r}, now "
                f"{shown[1]!r}). Resume with the settings and data of the first run, or use another file."
            )


def _first_difference(kept: dict[str, Any], now: dict[str, Any]) -> tuple[Any, Any]:
    for name in {**kept, **now}:
        if kept.get(name) != now.get(name):
            return f"{name}={kept.get(name)}", f"{name}={now.get(name)}"
    return kept, now


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
    """Train a network in place; together with other processes if torchrun started several.

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
    schedule = Schedule(steps, validate_every, patience, checkpoint_every)
    if resume and checkpoint is None:
        raise bad_parameter(
            "train",
            "resume",
            "False if there is no checkpoint",
            resume,
            "Name the file to go on from: checkpoint=PATH.",
        )
    with joined() as ranks, _warning(warn):
        target = module_device(net) if device is None else torch.device(device)
        net.to(target)
        seeds = ranks.from_first(torch.tensor(spawn_seeds(random_state, 2))).tolist()
        with torch_threads(net, threads), private_random_state(seeds[0], target):
            with ranks.agree():
                generator = torch.Generator().manual_seed(seeds[1])
                source = make_source(
                    net,
                    data,
                    objective,
                    batch_size=batch_size,
                    sampling=sampling,
                    generator=generator,
                    device=target,
                )
                held_out = None
                if validation is not None:
                    held_out = checked_rows(net, validation, objective, target, name="validation")
                moments = make_optimizer(net, optimizer, lr)
            files = (checkpoint is None, resume, validation is None)
            check_same_plan(ranks, source, [schedule, *files, type(objective).__name__])
            same_weights(ranks, net)
            run = Run(
                net,
                source,
                moments,
                (objective.init(net) if state is None else state).to(target),
                validation=held_out,
                checkpoint=None if checkpoint is None else Path(checkpoint),
                together=DistributedStep(objective, ranks, net, seed=seeds[0]),
            )
            if checkpoint is not None:
                drawn = {"batch_size": batch_size, "sampling": sampling, "data": fingerprint(source)}
                every = None if validation is None else validate_every
                run.settings = drawn | _settings(objective, optimizer, lr, every, random_state)
            if resume:
                run.resume()
            result = run.run(schedule, progress=progress, callback=callback)
        warn_about(result.findings)
    return result


def _settings(
    objective: Objective, optimizer: OptimizerLike, lr: float, every: int | None, random_state: RandomState
) -> dict[str, Any]:
    """What a run that goes on must have in common with the one before, besides its batches."""
    return {
        "objective": objective.describe(),
        "lr": lr,
        "optimizer": optimizer if isinstance(optimizer, str) else "own",
        "validate_every": every,
        "random_state": int(random_state) if isinstance(random_state, (int, np.integer)) else None,
    }


@contextmanager
def _warning(warn: bool) -> Iterator[None]:
    """Run a block whose `TrainingWarning` are given only if asked for, and by the first rank alone."""
    with warnings.catch_warnings():
        if not (warn and current_ranks().first):
            warnings.simplefilter("ignore", TrainingWarning)
        yield
