"""A fitted estimator in one safetensors file: weights and arrays, and a JSON description. No pickle."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

from likewise.core.errors import FormatError, InputError
from likewise.core.files import (
    Fields,
    ListOf,
    MapOf,
    OneOf,
    Whole,
    atomic_path,
    check_form,
    read_description,
    read_tensors,
)
from likewise.estimators.values import (
    Arrays,
    CannotStoreError,
    check_learned,
    decode,
    encode,
    encode_parameters,
    warn_left_out,
)
from likewise.training.checkpoint import flat_optimizer, load_optimizer, tensors_of
from likewise.training.history import History
from likewise.training.objective import State
from likewise.training.setup import make_optimizer

_KEY = "likewise"
_KIND = "estimator"
_SCHEMA = 1
# What `fit` made that is not written as a value: weights have their own place, and the others come of the rest.
_MADE_AGAIN = frozenset({"network_", "module_", "objective_", "history_"})
_FORM = Fields(
    {
        "kind": OneOf((_KIND,)),
        "schema": Whole(),
        "class": str,
        "parameters": MapOf(object),
        "left_out": ListOf(str),
        "learned": MapOf(object),
        "width": Whole(1, 100_000_000),
    },
    {
        "training": Fields(
            {"groups": object, "state": str, "history": ListOf(str), "random": MapOf(object)}, more=True
        )
    },
    more=True,
)


def save_estimator(estimator: Any, path: str | os.PathLike[str], *, training: bool) -> None:
    """Write a fitted estimator; see `NetworkClassifier.save`."""
    arrays: Arrays = {}
    parameters, left_out = encode_parameters(estimator, arrays)
    learned = {
        name: getattr(estimator, name) for name in estimator._learned_names() if name not in _MADE_AGAIN
    }
    try:
        stored = {name: encode(value, arrays) for name, value in learned.items()}
    except CannotStoreError as error:
        raise InputError(
            f"{type(estimator).__name__}.save: what was learned holds {error}, which cannot be written without "
            "pickle. Use plain labels, and a metric whose feature map is None or a TabularDomain."
        ) from error
    description = {
        "kind": _KIND,
        "schema": _SCHEMA,
        "class": type(estimator).__name__,
        "parameters": parameters,
        "left_out": left_out,
        "learned": stored,
        "width": estimator._width,
    }
    tensors = {name: torch.as_tensor(array) for name, array in arrays.items()}
    tensors |= {f"network.{name}": tensor for name, tensor in estimator.network_.state_dict().items()}
    if training:
        description["training"] = _write_training(estimator, tensors)
    owned = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    with atomic_path(path) as temporary:
        # One key only: safetensors writes several in any order, and equal estimators should be equal files.
        save_file(owned, temporary, metadata={_KEY: json.dumps(description)})


def _write_training(estimator: Any, tensors: dict[str, torch.Tensor]) -> dict[str, Any]:
    """What `partial_fit` needs to go on exactly: optimiser, λ and the like, random state; and the history."""
    moments, groups = flat_optimizer(estimator._optimizer)
    tensors |= {f"optimizer.{name}": tensor for name, tensor in moments.items()}
    state, numbers = estimator._state.to_tensors()
    tensors |= {f"state.{name}": tensor for name, tensor in state.items()}
    tensors |= {f"history.{name}": torch.as_tensor(v) for name, v in estimator.history_.columns.items()}
    return {
        "groups": groups,
        "state": numbers,
        "history": list(estimator.history_.columns),
        "random": estimator._random.bit_generator.state,
    }


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
    >>> from likewise.estimators import MLPBaselineClassifier
    >>> X = np.array([[0.0], [1.0]] * 5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     MLPBaselineClassifier(n_steps=5, random_state=0).fit(X, X[:, 0]).save(f"{folder}/model.safetensors")
    ...     load(f"{folder}/model.safetensors")
    MLPBaselineClassifier(n_steps=5, random_state=0)
    """
    from likewise.estimators.network_classifier import NetworkClassifier

    return load_estimator(NetworkClassifier, path, module=module)


def load_estimator(cls: type[Any], path: str | os.PathLike[str], *, module: Any = None) -> Any:
    """Read what `save_estimator` wrote; see `NetworkClassifier.load`."""
    where = Path(path)
    description, tensors = _read(where)
    try:
        if description.get("kind") != _KIND:
            raise FormatError(
                f"{where.name} is not an estimator (kind {description.get('kind')!r}). Pass a file that save wrote."
            )
        check_form(description, _FORM, "its description")
        if description["schema"] > _SCHEMA:
            raise FormatError(
                f"{where.name} was written by a newer version (schema {description['schema']}; this one reads up "
                f"to {_SCHEMA}). Upgrade likewise."
            )
        return _build(_class_of(cls, description["class"], where), description, tensors, module, where)
    except FormatError as error:
        if str(error).startswith(where.name):
            raise
        raise FormatError(f"{where.name} is damaged: {str(error).rstrip('.')}. Save it again.") from error
    except (AttributeError, ArithmeticError, LookupError, TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, InputError):
            raise
        raise FormatError(
            f"{where.name} is damaged ({type(error).__name__}: {error}). Save it again."
        ) from error


def _read(path: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    if not path.is_file():
        raise FileNotFoundError(f"load: there is no file {str(path)!r}.")
    metadata, tensors = read_tensors(path, "pt")
    return read_description(metadata, _KEY, path.name), tensors


def _class_of(cls: type[Any], name: str, path: Path) -> type[Any]:
    from likewise import estimators

    if name not in estimators.__all__:
        raise FormatError(f"{path.name} holds a {name}, which this version does not know.")
    found: type[Any] = getattr(estimators, name)
    if not issubclass(found, cls):
        raise FormatError(f"{path.name} holds a {name}, not a {cls.__name__}. Call {name}.load.")
    return found


def _build(
    cls: type[Any],
    description: dict[str, Any],
    tensors: Mapping[str, torch.Tensor],
    module: Any,
    path: Path,
) -> Any:
    arrays = {name: tensor.numpy() for name, tensor in tensors.items() if name.startswith("value.")}
    parameters = {name: decode(item, arrays) for name, item in description["parameters"].items()}
    left_out = [name for name in description["left_out"] if name != "module"]
    if "module" in description["left_out"]:
        if module is None:
            raise InputError(
                f"{path.name} has the weights of a module of your own. Pass it: {cls.__name__}.load(path, "
                "module=...), a module of the same build or the function that makes it."
            )
        parameters["module"] = module
    elif module is not None:
        raise InputError(f"{path.name} was not trained with a module of your own; leave 'module' out.")
    warn_left_out(cls.__name__, left_out, stacklevel=4)
    estimator = cls(**parameters)
    learned = {name: decode(item, arrays) for name, item in description["learned"].items()}
    check_learned(learned, description["width"])
    for name, value in learned.items():
        setattr(estimator, name, value)
    _check_size(estimator, description["width"], tensors_of(tensors, "network"))
    estimator._restore(description["width"])
    _load_weights(estimator.network_, tensors_of(tensors, "network"), path)
    if "training" in description:
        _read_training(estimator, description["training"], tensors)
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


def _read_training(estimator: Any, stored: dict[str, Any], tensors: Mapping[str, torch.Tensor]) -> None:
    optimizer = make_optimizer(estimator.network_, estimator.optimizer, estimator.lr)
    load_optimizer(optimizer, tensors_of(tensors, "optimizer"), stored["groups"])
    estimator._optimizer = optimizer
    estimator._state = State.from_tensors(tensors_of(tensors, "state"), stored["state"])
    estimator.history_ = History({name: tensors[f"history.{name}"].numpy() for name in stored["history"]})
    generator = np.random.default_rng()
    generator.bit_generator.state = stored["random"]
    estimator._random = generator
