"""Plain multilayer networks inside torch modules: which ones there are, and their weights as they are now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from likewise.core.errors import InputError
from likewise.models.activations import Activation, activation_from_module
from likewise.models.losses import Loss
from likewise.models.oracle import TorchOutput

__all__ = ["Dense", "Network", "Stage", "network_of", "torch_output"]

_NOTHING_IN_EVALUATION = (nn.Identity, nn.Dropout, nn.AlphaDropout, nn.FeatureAlphaDropout)


@dataclass(frozen=True, eq=False)
class Dense:
    """A linear layer as two tensors: weight (out, in) and bias (out,) or None."""

    weight: torch.Tensor
    bias: torch.Tensor | None


@dataclass(frozen=True, eq=False)
class Stage:
    """One linear map and the activation after it (None: identity).

    The map is a linear layer, or several without an activation between them, and the batch norms beside them.
    """

    parts: tuple[Dense | nn.Linear | nn.BatchNorm1d, ...]
    activation: Activation | None

    @property
    def dense(self) -> Dense | nn.Linear:
        """The first linear layer."""
        return next(part for part in self.parts if not isinstance(part, nn.BatchNorm1d))

    @property
    def n_outputs(self) -> int:
        """Number of outputs: those of the last linear layer."""
        layers = [part for part in self.parts if not isinstance(part, nn.BatchNorm1d)]
        return int(layers[-1].weight.shape[0])

    def read(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return weight (out, in) and bias (out,) as they are now, multiplied out."""
        if len(self.parts) == 1:
            dense = self.dense
            bias = dense.bias
            return dense.weight, dense.weight.new_zeros(len(dense.weight)) if bias is None else bias
        weight = bias = None
        before: list[tuple[torch.Tensor, torch.Tensor]] = []
        for part in self.parts:
            if isinstance(part, nn.BatchNorm1d):
                scale, shift = _affine(part)
                if weight is None or bias is None:
                    before.append((scale, shift))
                else:
                    weight, bias = weight * scale[:, None], bias * scale + shift
            elif weight is not None and bias is not None:
                weight, bias = part.weight @ weight, part.weight @ bias
                bias = bias if part.bias is None else bias + part.bias
            else:
                weight = part.weight
                bias = weight.new_zeros(len(weight)) if part.bias is None else part.bias
                for scale, shift in reversed(before):
                    weight, bias = weight * scale, bias + weight @ shift
        assert weight is not None
        assert bias is not None
        return weight, bias


@dataclass(frozen=True, eq=False)
class Network:
    """Stages from input to output, and the softmax or sigmoid that came after them, if any."""

    stages: tuple[Stage, ...]
    ending: str | None = None

    @property
    def n_inputs(self) -> int:
        """Number of input columns."""
        return int(self.stages[0].dense.weight.shape[1])

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.stages[-1].n_outputs

    def linear(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Return weight (C, d) and bias (C,) of the whole when it is linear, else None."""
        if any(stage.activation is not None for stage in self.stages):
            return None
        with torch.no_grad():
            weight, bias = self.stages[0].read()
            for stage in self.stages[1:]:
                next_weight, next_bias = stage.read()
                weight, bias = next_weight @ weight, next_weight @ bias + next_bias
        return weight, bias


def network_of(module: nn.Module) -> Network | None:
    """Return the plain network that a module is, or None.

    Plain: an `nn.Linear`, or an `nn.Sequential` (nested or not) of Linear layers with known activations,
    dropout, identity and BatchNorm1d with running statistics between them; exactly these types and no hooks,
    since a subclass or a hook may compute anything. The result reads the module's own tensors, so it follows
    training.

    Examples
    --------
    >>> net = network_of(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2), nn.Softmax(dim=1)))
    >>> len(net.stages), net.n_inputs, net.n_outputs, net.ending
    (2, 3, 2, 'softmax')
    """
    leaves = list(_leaves(module))
    if not leaves or any(leaf is None or _hooked(leaf) for leaf in leaves):
        return None
    layers = [leaf for leaf in leaves if leaf is not None and not _does_nothing(leaf)]
    ending = _ending(layers)
    stages = _stages(layers[:-1] if ending else layers)
    if stages is None or (ending == "sigmoid" and stages[-1].n_outputs != 1):
        return None
    return Network(stages, ending)


def torch_output(module: nn.Module, loss: Loss | None = None) -> TorchOutput:
    """What a module returns, by its last layer: probabilities after a softmax or a single sigmoid, else logits.

    Examples
    --------
    >>> torch_output(nn.Sequential(nn.Linear(2, 1), nn.Sigmoid())), torch_output(nn.Linear(2, 2))
    ('probabilities', 'logits')
    """
    leaves = [leaf for leaf in _leaves(module) if leaf is not None and not _does_nothing(leaf)]
    ending = _ending(leaves)
    if ending == "sigmoid":
        widths = [leaf.out_features for leaf in leaves if isinstance(leaf, nn.Linear)]
        if widths and widths[-1] != 1 and (loss is None or loss.wants != "native"):
            raise InputError(
                f"as_model: the module ends in a Sigmoid over {widths[-1]} outputs, which are neither logits nor "
                "probabilities that sum to 1. Remove the Sigmoid, or pass your own per-row loss."
            )
    return "probabilities" if ending in ("softmax", "sigmoid") else "logits"


def _leaves(module: nn.Module) -> Iterator[nn.Module | None]:
    """Walk nested Sequentials in order; None marks one that has hooks of its own."""
    if type(module) is nn.Sequential:
        if _hooked(module):
            yield None
        for child in module:
            yield from _leaves(child)
    else:
        yield module


def _hooked(module: nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks or "forward" in module.__dict__)


def _does_nothing(leaf: nn.Module) -> bool:
    flat = type(leaf) is nn.Flatten and (leaf.start_dim, leaf.end_dim) == (1, -1)
    return flat or type(leaf) in _NOTHING_IN_EVALUATION


def _ending(layers: list[nn.Module]) -> str | None:
    if not layers:
        return None
    last = layers[-1]
    if type(last) in (nn.Softmax, nn.LogSoftmax) and last.dim in (1, -1):
        return "softmax" if type(last) is nn.Softmax else "log_softmax"
    return "sigmoid" if type(last) is nn.Sigmoid else None


def _stages(layers: list[nn.Module]) -> tuple[Stage, ...] | None:
    stages: list[Stage] = []
    parts: list[Dense | nn.Linear | nn.BatchNorm1d] = []
    linear = False
    for layer in layers:
        activation = activation_from_module(layer)
        if isinstance(layer, nn.Linear) and type(layer) is nn.Linear:
            if linear and not _worth_multiplying(parts, layer):
                stages.append(Stage(tuple(parts), None))
                parts = []
            parts.append(layer)
            linear = True
        elif isinstance(layer, nn.BatchNorm1d) and type(layer) is nn.BatchNorm1d:
            if layer.running_mean is None:
                return None
            parts.append(layer)
        elif activation is not None and linear:
            stages.append(Stage(tuple(parts), activation))
            parts, linear = [], False
        else:
            return None
    if not linear:
        return None
    return (*stages, Stage(tuple(parts), None))


def _worth_multiplying(parts: list[Dense | nn.Linear | nn.BatchNorm1d], layer: nn.Linear) -> bool:
    """Whether the product of two linear layers in a row is smaller than both: not behind a bottleneck."""
    n_in = Stage(tuple(parts), None).dense.weight.shape[1]
    return n_in * layer.out_features <= (n_in + layer.out_features) * layer.in_features


def _affine(norm: nn.BatchNorm1d) -> tuple[torch.Tensor, torch.Tensor]:
    """Scale and shift that a batch norm applies in evaluation mode."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = (norm.running_var + norm.eps).rsqrt()
    shift = -norm.running_mean * scale
    if norm.affine:
        return scale * norm.weight, shift * norm.weight + norm.bias
    return scale, shift
