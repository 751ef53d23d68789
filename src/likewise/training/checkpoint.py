"""A run on disk: one safetensors file, written whole or not at all, from which it goes on bit for bit."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from likewise.core.errors import FormatError, InputError
from likewise.core.files import atomic_path, read_tensors
from likewise.training.objective import State
from likewise.training.results import History

_FORMAT, _VERSION = "likewise-training", 1


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


_PARTS = ("weights", "best", "optimizer", "source")


def write_checkpoint(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write a checkpoint: a reader sees the one before or this one, never half of it."""
    tensors: dict[str, torch.Tensor] = {"generator": checkpoint.generator}
    for part in _PARTS:
        tensors.update({f"{part}.{name}": tensor for name, tensor in getattr(checkpoint, part).items()})
    state_tensors, numbers = checkpoint.state.to_tensors()
    tensors.update({f"state.{name}": tensor for name, tensor in state_tensors.items()})
    for name, values in checkpoint.history.columns.items():
        tensors[f"history.{name}"] = torch.from_numpy(np.ascontiguousarray(values, dtype=np.float64))
    # safetensors refuses views and shared memory, so everything is its own contiguous copy on the CPU.
    owned = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    metadata = {
        "format": _FORMAT,
        "version": str(_VERSION),
        "settings": json.dumps(checkpoint.settings),
        "step": str(checkpoint.step),
        "optimizer_groups": checkpoint.optimizer_groups,
        "state": numbers,
        "history": json.dumps(list(checkpoint.history.columns)),
        "progress": json.dumps(checkpoint.progress),
    }
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(target) as temporary:
        save_file(owned, temporary, metadata=metadata)


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
        metadata, tensors = read_tensors(path, "pt")
    except (FormatError, OSError) as error:
        raise FormatError(
            f"read_checkpoint: {Path(path).name} cannot be read ({error}). It is damaged or not a checkpoint; delete "
            "it to start anew."
        ) from error
    if metadata.get("format") != _FORMAT:
        raise FormatError(f"read_checkpoint: {Path(path).name} is a safetensors file but not a checkpoint.")
    if int(metadata["version"]) > _VERSION:
        raise FormatError(
            f"read_checkpoint: {Path(path).name} has format version {metadata['version']}, this package reads up "
            f"to {_VERSION}. Update the package."
        )
    columns = {name: tensors[f"history.{name}"].numpy() for name in json.loads(metadata["history"])}
    return Checkpoint(
        settings=json.loads(metadata["settings"]),
        step=int(metadata["step"]),
        weights=tensors_of(tensors, "weights"),
        best=tensors_of(tensors, "best"),
        optimizer=tensors_of(tensors, "optimizer"),
        optimizer_groups=metadata["optimizer_groups"],
        state=State.from_tensors(tensors_of(tensors, "state"), metadata["state"]),
        source=tensors_of(tensors, "source"),
        generator=tensors["generator"],
        history=History(columns),
        progress=json.loads(metadata["progress"]),
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
