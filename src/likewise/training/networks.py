"""Networks: plain ones with a seeded start, the user's own, behind a projection, and their answers."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn

from likewise.core.checks import FloatArray, check_choice, check_integer, to_numpy
from likewise.core.errors import InputError, bad_parameter
from likewise.core.randomness import private_random_state, torch_generator
from likewise.core.subspace import Subspace
from likewise.models.losses import as_loss
from likewise.models.network import network_of
from likewise.models.oracle import evaluating, module_device, module_dtype
from likewise.training.objective import network_scores, try_network

_ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "elu": nn.ELU,
    "softplus": nn.Softplus,
}


class _Undrawn(nn.Linear):
    """A layer whose constructor draws nothing: that of nn.Linear draws from torch's global generator."""

    def reset_parameters(self) -> None:
        pass


def undrawn_linear(n_in: int, n_out: int, *, dtype: torch.dtype, bias: bool = True) -> nn.Linear:
    """Return a plain layer whose weights are to be filled.

    As ``nn.utils.skip_init`` does, but without what torch compiles with, which that loads.
    """
    layer: nn.Linear = _Undrawn(n_in, n_out, bias=bias, dtype=dtype)
    layer.__class__ = nn.Linear
    return layer


def mlp(
    n_in: int,
    hidden: Sequence[int] = (100,),
    n_out: int = 2,
    *,
    activation: str = "relu",
    generator: torch.Generator | None = None,
    dtype: torch.dtype = torch.float32,
) -> nn.Sequential:
    """Return a multilayer perceptron that gives logits; no hidden layer makes it a linear model.

    Weights are Xavier-normal, biases zero, drawn from `generator` alone.

    Parameters
    ----------
    n_in : int
        Number of columns.
    hidden : sequence of int, default=(100,)
        Widths of the hidden layers; the paper uses one of 100 for Adult and one of 1000 for sentiment.
    n_out : int, default=2
        Number of classes.
    activation : {"relu", "tanh", "sigmoid", "gelu", "silu", "elu", "softplus"}, default="relu"
    generator : torch.Generator, optional
        Default: seeded with 0. Torch's global generator is never used.
    dtype : torch.dtype, default=torch.float32

    Returns
    -------
    torch.nn.Sequential

    Examples
    --------
    >>> net = mlp(3, (4,), 2)
    >>> net(torch.zeros(5, 3)).shape
    torch.Size([5, 2])
    >>> bool((mlp(3)[0].weight == mlp(3)[0].weight).all())
    True
    """
    check_choice(activation, _ACTIVATIONS, owner="mlp", name="activation")
    named = [("n_in", n_in), *(("hidden", width) for width in hidden), ("n_out", n_out)]
    widths = [check_integer(width, owner="mlp", name=name, low=1) for name, width in named]
    source = torch_generator(0) if generator is None else generator
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layer = undrawn_linear(before, after, dtype=dtype)
        nn.init.xavier_normal_(layer.weight, generator=source)
        nn.init.zeros_(layer.bias)
        layers += [layer, _ACTIVATIONS[activation]()]
    return nn.Sequential(*layers[:-1])


# The network of an estimator.


_BATCH_ROWS = 16384
# A coordinate lies in a subspace up to this share of its squared length: a basis stored in float32 is true to 1e-7.
_WHOLE = 1e-6


def make_network(
    module: Any, *, n_in: int, n_out: int, hidden: Sequence[int], activation: str, seed: int, owner: str
) -> nn.Module:
    """Return a fresh network of (n, n_in) rows."""
    if module is None:
        generator = torch.Generator().manual_seed(seed)
        given = (hidden,) if isinstance(hidden, (int, np.integer)) else tuple(hidden)
        widths = [check_integer(one, owner=owner, name="hidden_layer_sizes", low=1) for one in given]
        return mlp(n_in, widths, n_out, activation=activation, generator=generator)
    if isinstance(module, nn.Module):
        return copy.deepcopy(module)
    if not callable(module):
        raise bad_parameter(
            owner, "module", "a torch module, or a function that makes one", type(module).__name__
        )
    with private_random_state(seed, torch.device("cpu")):
        made = module(n_in, n_out) if _takes_sizes(module) else module()
    if not isinstance(made, nn.Module):
        raise bad_parameter(owner, "module", "a function that returns a torch module", type(made).__name__)
    return made


def _takes_sizes(factory: Any) -> bool:
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return True
    return len([p for p in parameters if p.kind in kinds]) >= 2


def check_outputs(net: nn.Module, x: FloatArray, n_classes: int, *, owner: str) -> None:
    """Raise, before training starts, when a module does not give one score per class.

    One output per row stands for two classes.
    """
    outputs = try_network(net, _tensor(net, x[:2]), as_loss("cross_entropy"), owner=owner, name="'module'")
    if outputs != n_classes:
        raise InputError(
            f"{owner}: 'module' gives {outputs} scores per row, 'y' has {n_classes} classes. "
            "Give it one output per class."
        )


def scores_of(net: nn.Module, x: FloatArray) -> FloatArray:
    """Return class scores (n, C) in float64, the network in evaluation mode and left as it came."""
    loss = as_loss("cross_entropy")
    with evaluating(net), torch.no_grad():
        parts = [
            network_scores(net, _tensor(net, x[start : start + _BATCH_ROWS]), loss).double().cpu()
            for start in range(0, len(x), _BATCH_ROWS)
        ]
    return np.asarray(torch.cat(parts).numpy())


def _tensor(net: nn.Module, x: FloatArray) -> torch.Tensor:
    return torch.tensor(x, dtype=module_dtype(net), device=module_device(net))


def whole_axes(removed: Subspace) -> list[int]:
    """Return the coordinates that lie in a subspace as a whole: a network behind its removal never sees them."""
    inside = np.square(np.asarray(to_numpy(removed.basis), dtype=float)).sum(axis=1)
    return [int(i) for i in np.flatnonzero(inside > 1.0 - _WHOLE)]


def behind_projection(net: nn.Module, removed: Subspace | None) -> nn.Module:
    """Return the network of rows whose part in a subspace is removed first; it shares the network's weights.

    In front is a frozen linear layer x ↦ x (I − QQᵀ), exactly 0 on coordinates that are removed as a whole.
    """
    if removed is None:
        return net
    basis = torch.as_tensor(to_numpy(removed.basis), dtype=torch.float64)
    d = basis.shape[0]
    layer = undrawn_linear(d, d, bias=False, dtype=module_dtype(net))
    with torch.no_grad():
        layer.weight.copy_(torch.eye(d, dtype=torch.float64) - basis @ basis.T)
        # Without what rounding leaves of them: a column that is hidden changes no decision at all.
        layer.weight[:, whole_axes(removed)] = 0.0
    layer.weight.requires_grad_(False)
    return nn.Sequential(layer.to(module_device(net)), net)


def folded(net: nn.Module, removed: Subspace | None) -> nn.Module:
    """Return a copy of a plain MLP with the projection folded into its first layer; others stay behind it."""
    if removed is None:
        return net
    first = net[0] if type(net) is nn.Sequential and len(net) else None
    if not isinstance(first, nn.Linear) or type(first) is not nn.Linear:
        return behind_projection(net, removed)
    plain = copy.deepcopy(net)
    assert isinstance(plain, nn.Sequential)
    layer = plain[0]
    assert isinstance(layer, nn.Linear)
    with torch.no_grad():
        basis = torch.as_tensor(to_numpy(removed.basis), dtype=torch.float64, device=layer.weight.device)
        weight = layer.weight.double()
        layer.weight.copy_(weight - (weight @ basis) @ basis.T)
        layer.weight[:, whole_axes(removed)] = 0.0
    return plain


def plain_layers(net: nn.Module) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return weights (out, in) and biases (out,) of a plain MLP in float64; an AttributeError for other modules."""
    network = network_of(net)
    if network is None or network.ending is not None:
        raise AttributeError("the network is not a plain MLP, so it has no coefs_ and intercepts_")
    layers = network.layers()
    return list(layers.weights), list(layers.biases)
