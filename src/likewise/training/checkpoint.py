"""Checkpoints of a training: one safetensors file, written atomically, from which it resumes bit for bit."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from likewise.core.errors import FormatError, InputError
from likewise.core.files import Fields, ListOf, Whole, load_described, save_described
from likewise.training.objective import State
from likewise.training.results import History


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Everything a run is, after a step."""

    settings: dict[str, Any]
    step: int
    weights: Mapping[str, torch.Tensor]
    best: Mapping[str, torch.Tensor]
    optimizer: Mapping[str, torch.Tensor]
    optimizer_groups: str
    state: State
    source: Mapping[str, torch.Tensor]
    generator: torch.Tensor
    history: History
    progress: dict[str, Any]


_KIND = "training"
_PARTS = ("weights", "best", "optimizer", "source")
_FORM = Fields(
    {
        "settings": dict,
        "step": Whole(),
        "optimizer_groups": str,
        "state": str,
        "history": ListOf(str),
        "progress": dict,
    },
    more=True,
)


def write_checkpoint(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write a checkpoint: a reader sees the one before or this one, never half of it."""
    tensors: dict[str, Any] = {"generator": checkpoint.generator}
    state, numbers = checkpoint.state.to_tensors()
    parts = {part: getattr(checkpoint, part) for part in _PARTS}
    for part, named in (parts | {"state": state, "history": checkpoint.history.columns}).items():
        tensors |= {f"{part}.{name}": tensor for name, tensor in named.items()}
    description = {
        "settings": checkpoint.settings,
        "step": checkpoint.step,
        "optimizer_groups": checkpoint.optimizer_groups,
        "state": numbers,
        "history": list(checkpoint.history.columns),
        "progress": checkpoint.progress,
    }
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    save_described(path, _KIND, description, tensors, framework="pt")


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint; anything else raises a `FormatError`.

    Raises
    ------
    FormatError
        When the file is damaged, not a checkpoint, or of a newer version.

    Examples
    --------
    >>> import tempfile
    >>> from likewise.training import mlp, train
    >>> path = Path(tempfile.mkdtemp()) / "run.safetensors"
    >>> X = torch.tensor([[-1.0], [-2.0], [1.0], [2.0]])
    >>> _ = train(mlp(1, (), 2), (X, [0, 0, 1, 1]), steps=20, lr=0.1, checkpoint=path)
    >>> read_checkpoint(path).step
    20
    """
    try:
        found: Checkpoint = load_described(
            path, _KIND, _FORM, _build, what="a checkpoint", owner="read_checkpoint", framework="pt"
        )
    except FormatError as error:
        raise FormatError(f"read_checkpoint: {error} Delete it to start anew.") from error
    return found


def _build(description: dict[str, Any], tensors: dict[str, Any]) -> Checkpoint:
    return Checkpoint(
        settings=description["settings"],
        step=description["step"],
        optimizer_groups=description["optimizer_groups"],
        state=State.from_tensors(tensors_of(tensors, "state"), description["state"]),
        generator=tensors["generator"],
        history=History({name: tensors[f"history.{name}"].numpy() for name in description["history"]}),
        progress=description["progress"],
        **{part: tensors_of(tensors, part) for part in _PARTS},
    )


def tensors_of(tensors: Mapping[str, torch.Tensor], name: str) -> dict[str, torch.Tensor]:
    """Return the tensors whose names begin with ``name.``, without it."""
    start = f"{name}."
    return {key[len(start) :]: tensor for key, tensor in tensors.items() if key.startswith(start)}


def flat_optimizer(optimizer: torch.optim.Optimizer) -> tuple[dict[str, torch.Tensor], str]:
    """Return an optimiser's state as tensors by name and its settings as JSON."""
    whole = optimizer.state_dict()
    tensors: dict[str, torch.Tensor] = {}
    others: dict[str, dict[str, Any]] = {}
    for index, values in whole["state"].items():
        for name, value in values.items():
            if isinstance(value, torch.Tensor):
                tensors[f"{index}.{name}"] = value
            else:
                others.setdefault(str(index), {})[name] = value
    try:
        return tensors, json.dumps({"groups": whole["param_groups"], "others": others})
    except TypeError as error:
        raise InputError(
            f"train: the optimiser {type(optimizer).__name__} holds something that a checkpoint cannot store "
            f"({error}). Train without a checkpoint, or with an optimiser of plain numbers and tensors."
        ) from error


def load_optimizer(
    optimizer: torch.optim.Optimizer, tensors: Mapping[str, torch.Tensor], settings: str
) -> None:
    """Put back what `flat_optimizer` returned."""
    read = json.loads(settings)
    state: dict[int, dict[str, Any]] = {int(index): dict(values) for index, values in read["others"].items()}
    for key, tensor in tensors.items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": read["groups"]})
