"""Plain networks with a seeded start."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn

from likewise.core.checks import check_integer
from likewise.core.errors import bad_parameter
from likewise.core.randomness import torch_generator

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
    if activation not in _ACTIVATIONS:
        raise bad_parameter("mlp", "activation", allowed=f"one of {sorted(_ACTIVATIONS)}", got=activation)
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
