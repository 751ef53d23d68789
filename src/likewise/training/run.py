"""One training run: its moving parts, a step, and how it ends."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import nn

from likewise.core.errors import InputError
from likewise.training.batch import Batch
from likewise.training.checkpoint import (
    Checkpoint,
    flat_optimizer,
    load_optimizer,
    read_checkpoint,
    write_checkpoint,
)
from likewise.training.findings import diagnose_training
from likewise.training.history import Recorder
from likewise.training.joint_step import Together, held_interrupts, seed_torch
from likewise.training.objective import Objective, State
from likewise.training.progress_bar import progress_bar
from likewise.training.sampling import BatchSource
from likewise.training.training_result import Status, TrainingResult

__all__ = ["Callback", "Run", "Schedule", "Status", "TrainingResult", "private_random_state"]

Callback: TypeAlias = "Callable[[int, float, State], None]"


@dataclass(frozen=True)
class Schedule:
    """How long a run lasts and what happens when."""

    steps: int
    validate_every: int
    patience: int | None
    checkpoint_every: int


class Run:
    """The moving parts of a training, and the loop over them."""

    def __init__(
        self,
        net: nn.Module,
        source: BatchSource,
        objective: Objective,
        optimizer: torch.optim.Optimizer,
        state: State,
        *,
        validation: Batch | None,
        settings: dict[str, Any],
        checkpoint: Path | None,
        together: Together,
    ) -> None:
        self.net, self.source, self.objective = net, source, objective
        self.optimizer, self.state = optimizer, state
        self.validation, self.settings, self.checkpoint = validation, settings, checkpoint
        self.together, self.ranks = together, together.ranks
        self.step = 0
        self.recorder = Recorder()
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
        status: Status = "finished"
        reason = f"all {schedule.steps} steps were made"
        show = progress and self.ranks.first
        try:
            with (
                progress_bar(schedule.steps, self.step, show=show, title=title) as report,
                held_interrupts(self.together),
            ):
                while self.step < schedule.steps:
                    ended = self._advance(schedule, callback, report)
                    if ended is not None:
                        status, reason = ended
                        break
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

    def _advance(
        self, schedule: Schedule, callback: Callback | None, report: Callable[[int, float], None]
    ) -> tuple[Status, str] | None:
        """Make one step and what is due after it; return how the run ended, if it did."""
        row = self._update()
        if row is None:
            self._load(self._good)
            return "diverged", (
                f"the loss or its gradient was not finite at step {self.step + 1}; the weights are the last ones "
                "whose loss was. Lower the learning rate or the search's step size, or scale the columns"
            )
        self.step += 1
        stopped = False
        if self.validation is not None and self.step % schedule.validate_every == 0:
            row["validation"] = self._validate(self.validation)
            stopped = schedule.patience is not None and self.waited >= schedule.patience
        self.recorder.add({"step": self.step, **row})
        if self.checkpoint is not None and self.step % schedule.checkpoint_every == 0:
            self.save()
        report(self.step, row["loss"])
        if callback is not None:
            callback(self.step, row["loss"], self.state)
        if stopped:
            return "stopped_early", (
                f"no better validation in the last {self.waited}, the best was at step {self.best_step}"
            )
        return None

    def _update(self) -> dict[str, float] | None:
        """Make one update; None when its loss or gradient is not finite, and then nothing was updated."""
        loss, state = self.together.step(self.objective, self.net, self.source.next(), self.state)
        value = float(loss.detach())
        # Several ranks find out together that a loss is not finite, below.
        if not math.isfinite(value) and not self.ranks.several:
            return None
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
        return {"loss": value, "lambda_": state.lambda_, **state.last}

    def _validate(self, rows: Batch) -> float:
        value = self.together.robust_loss(self.objective, self.net, rows, self.state)
        if value < self.best_validation:
            self.best, self.best_step, self.best_validation = _weights(self.net), self.step, value
            self.waited = 0
        else:
            self.waited += 1
        return value

    def _result(self, status: Status, reason: str, seconds: float) -> TrainingResult:
        if self.best:
            self._load(self.best)
        history = self.recorder.history()
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
                write_checkpoint(self.checkpoint, self._checkpoint())

    def _checkpoint(self) -> Checkpoint:
        moments, groups = flat_optimizer(self.optimizer)
        return Checkpoint(
            settings=self.settings,
            step=self.step,
            weights=_weights(self.net),
            best=self.best,
            optimizer=moments,
            optimizer_groups=groups,
            state=self.state,
            source=self.source.position(),
            generator=torch.get_rng_state(),
            history=self.recorder.history(),
            progress={
                "best_step": self.best_step,
                "best_validation": self.best_validation,
                "waited": self.waited,
            },
        )

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
        self.recorder = Recorder(kept.history)
        self.best, self.step = dict(kept.best), kept.step
        self.best_step = kept.progress["best_step"]
        self.best_validation = kept.progress["best_validation"]
        self.waited = kept.progress["waited"]
        self._good = _weights(self.net)

    def _read(self) -> Checkpoint | None:
        """The checkpoint, if there is one; where there are several ranks only the first needs to have the file."""
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


@contextmanager
def private_random_state(seed: int, device: torch.device) -> Iterator[None]:
    """Run a block with torch's generators seeded (dropout draws from them), then put them back.

    Examples
    --------
    >>> before = torch.get_rng_state()
    >>> with private_random_state(0, torch.device("cpu")):
    ...     _ = torch.rand(3)
    >>> bool((torch.get_rng_state() == before).all())
    True
    """
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        seed_torch(seed, device)
        yield


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
