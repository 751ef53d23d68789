"""A fitted estimator in one safetensors file: weights and arrays, and a JSON description. No pickle."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from likewise.core.errors import FormatError, InputError
from likewise.core.files import Fields, ListOf, MapOf, Whole, check_form, load_described, save_described
from likewise.models.stored import DESCRIBED, described, remade
from likewise.training.checkpoint import flat_optimizer, load_optimizer, tensors_of
from likewise.training.objective import State
from likewise.training.results import History
from likewise.training.setup import make_optimizer

_KIND = "estimator"
# Fitted attributes that are not written as values: weights are stored apart, the others are made again.
_MADE_AGAIN = frozenset({"network_", "module_", "objective_", "history_"})
_FORM = Fields(
    DESCRIBED | {"width": Whole(1, 100_000_000)},
    {
        "training": Fields(
            {"groups": object, "state": str, "history": ListOf(str), "random": MapOf(object)}, more=True
        )
    },
    more=True,
)


def save_estimator(estimator: Any, path: str | os.PathLike[str], *, training: bool) -> None:
    """Write a fitted estimator; see `NetworkClassifier.save`."""
    tensors: dict[str, Any] = {}
    names = [name for name in estimator._learned_names() if name not in _MADE_AGAIN]
    description = described(estimator, {name: getattr(estimator, name) for name in names}, tensors)
    description["width"] = estimator._width
    tensors |= {f"network.{name}": tensor for name, tensor in estimator.network_.state_dict().items()}
    if training:
        moments, groups = flat_optimizer(estimator._optimizer)
        tensors |= {f"optimizer.{name}": tensor for name, tensor in moments.items()}
        state, numbers = estimator._state.to_tensors()
        tensors |= {f"state.{name}": tensor for name, tensor in state.items()}
        tensors |= {f"history.{name}": v for name, v in estimator.history_.columns.items()}
        description["training"] = {
            "groups": groups,
            "state": numbers,
            "history": list(estimator.history_.columns),
            "random": estimator._random.bit_generator.state,
        }
    save_described(path, _KIND, description, tensors)


def load(path: str | os.PathLike[str], *, module: Any = None) -> Any:
    """Read whichever estimator a file holds; nothing in it is executed.

    Parameters
    ----------
    path : path-like
        That an estimator's `save` wrote.
    module : torch.nn.Module or callable, optional
        The module of your own that was trained, if it was one.

    Returns
    -------
    NetworkClassifier
        Of the class that was saved.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from likewise.training import MLPBaselineClassifier
    >>> X = np.array([[0.0], [1.0]] * 5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     MLPBaselineClassifier(n_steps=5, random_state=0).fit(X, X[:, 0]).save(f"{folder}/model.safetensors")
    ...     load(f"{folder}/model.safetensors")
    MLPBaselineClassifier(n_steps=5, random_state=0)
    """
    from likewise.training.estimators.network_classifier import NetworkClassifier

    return load_estimator(NetworkClassifier, path, module=module)


def load_estimator(cls: type[Any], path: str | os.PathLike[str], *, module: Any = None) -> Any:
    """Read what `save_estimator` wrote; see `NetworkClassifier.load`."""
    where = Path(path)

    def build(description: dict[str, Any], tensors: dict[str, Any]) -> Any:
        return _build(_class_of(cls, description["class"], where), description, tensors, module, where)

    return load_described(path, _KIND, _FORM, build, what="an estimator", owner="load", framework="pt")


def _class_of(cls: type[Any], name: str, path: Path) -> type[Any]:
    from likewise import training

    if name not in training.__all__:
        raise FormatError(f"{path.name} holds a {name}, which this version does not know.")
    found: type[Any] = getattr(training, name)
    if not issubclass(found, cls):
        raise FormatError(f"{path.name} holds a {name}, not a {cls.__name__}. Call {name}.load.")
    return found


def _build(
    cls: type[Any], description: dict[str, Any], tensors: Mapping[str, torch.Tensor], module: Any, path: Path
) -> Any:
    arrays = {name: tensor.numpy() for name, tensor in tensors.items() if name.startswith("value.")}
    own, width, weights = (
        "module" in description["left_out"],
        description["width"],
        tensors_of(tensors, "network"),
    )
    if own and module is None:
        raise InputError(
            f"{path.name} has the weights of a module of your own. Pass it: {cls.__name__}.load(path, module=...), a "
            "module of the same build or the function that makes it."
        )
    if module is not None and not own:
        raise InputError(f"{path.name} was not trained with a module of your own; leave 'module' out.")
    given = {"module": module} if own else {}
    estimator = remade(cls, description, arrays, width=width, **given)
    _check_size(estimator, width, weights)
    estimator._restore(width)
    _load_weights(estimator.network_, weights, path)
    if "training" in description:
        stored = description["training"]
        optimizer = make_optimizer(estimator.network_, estimator._config.optimizer, estimator.lr)
        load_optimizer(optimizer, tensors_of(tensors, "optimizer"), stored["groups"])
        estimator._optimizer = optimizer
        estimator._state = State.from_tensors(tensors_of(tensors, "state"), stored["state"])
        estimator.history_ = History({name: tensors[f"history.{name}"].numpy() for name in stored["history"]})
        generator = np.random.default_rng()
        generator.bit_generator.state = stored["random"]
        estimator._random = generator
    estimator.module_ = estimator._as_module(estimator.network_)
    return estimator


def _check_size(estimator: Any, width: int, weights: Mapping[str, torch.Tensor]) -> None:
    """Check what the network's size comes from before a network of that size is made."""
    if estimator.module is not None:
        return
    hidden = estimator.hidden_layer_sizes
    sizes = [hidden] if isinstance(hidden, int) else list(hidden)
    check_form(sizes, ListOf(Whole(1, 2**31), most=1000), "'hidden_layer_sizes'")
    widths = [width, *sizes, len(estimator.classes_)]
    needed = sum((n_in + 1) * n_out for n_in, n_out in itertools.pairwise(widths))
    stored = sum(tensor.numel() for tensor in weights.values())
    if needed != stored:
        raise FormatError(f"a network of the widths {widths} has {needed:,} weights, and the file {stored:,}")


def _load_weights(network: nn.Module, weights: dict[str, torch.Tensor], path: Path) -> None:
    own = network.state_dict()
    if own.keys() != weights.keys() or any(own[k].shape != weights[k].shape for k in own):
        raise FormatError(
            f"{path.name} has other weights than the network: {_shapes(weights)} in the file, {_shapes(own)} in "
            "the network. Pass the module that was trained."
        )
    network.load_state_dict({k: v.to(own[k].dtype) for k, v in weights.items()})


def _shapes(weights: Mapping[str, torch.Tensor]) -> str:
    return ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in list(weights.items())[:6])
