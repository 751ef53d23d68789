"""Plain multilayer networks inside torch modules: which ones there are, and their weights as they are now."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import torch
from torch import nn

from likewise.core.checks import to_numpy
from likewise.core.errors import InputError
from likewise.models.layers import IDENTITY, RELU, Activation, Layers
from likewise.models.losses import Loss
from likewise.models.oracle import TorchOutput

# Activations and their slopes by hand. A forward and backward pass needs no more memory than the values: the first
# function may overwrite its input u, and the second what was kept of the first, which is its value or u.

_Elementwise: TypeAlias = Callable[[torch.Tensor, float], torch.Tensor]


def _leaky_slope(a: torch.Tensor, slope: float) -> torch.Tensor:
    # The sign of a(u) is the sign of u; gt_ writes 0 and 1 into the floats, far cheaper than a bool mask.
    a.gt_(0.0)
    return a.mul_(1.0 - slope).add_(slope) if slope else a


def _silu_slope(u: torch.Tensor, _: float) -> torch.Tensor:
    s = u.sigmoid()
    return u.mul_(1.0 - s).add_(1.0).mul_(s)


def _gelu_slope(u: torch.Tensor, _: float) -> torch.Tensor:
    cdf = (u / math.sqrt(2.0)).erf_().add_(1.0).mul_(0.5)
    pdf = u.square().mul_(-0.5).exp_().mul_(1.0 / math.sqrt(2.0 * math.pi))
    return u.mul_(pdf).add_(cdf)


def _elu_slope(a: torch.Tensor, alpha: float) -> torch.Tensor:
    positive = (a > 0).to(a.dtype)
    return a.clamp_(max=0.0).add_(alpha).mul_(1.0 - positive).add_(positive)


# Of the value: what is kept is the value itself.
_BY_VALUE: dict[str, tuple[_Elementwise, _Elementwise]] = {
    "leaky": (lambda u, s: nn.functional.leaky_relu_(u, s) if s else u.relu_(), _leaky_slope),
    "tanh": (lambda u, _: u.tanh_(), lambda a, _: a.square_().neg_().add_(1.0)),
    "logistic": (lambda u, _: u.sigmoid_(), lambda a, _: a.sub_(a.square())),
    "elu": (nn.functional.elu_, _elu_slope),
}
# Of the input: what is kept is u.
_BY_INPUT: dict[str, tuple[_Elementwise, _Elementwise]] = {
    "silu": (lambda u, _: nn.functional.silu(u), _silu_slope),
    "gelu": (lambda u, _: nn.functional.gelu(u), _gelu_slope),
    "softplus": (lambda u, _: nn.functional.softplus(u), lambda u, _: u.sigmoid_()),
}


def activate_(unit: Activation, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a(u), and what `slope_` needs; u may be overwritten."""
    if unit.name in _BY_VALUE:
        value = _BY_VALUE[unit.name][0](u, unit.number)
        return value, value
    return _BY_INPUT[unit.name][0](u, unit.number), u


def slope_(unit: Activation, kept: torch.Tensor) -> torch.Tensor:
    """Return a′(u) from what `activate_` kept, which may be overwritten."""
    return (_BY_VALUE.get(unit.name) or _BY_INPUT[unit.name])[1](kept, unit.number)


def activation_from_module(module: nn.Module) -> Activation | None:
    """Return the activation that a torch module of exactly a known type computes, or None for any other."""
    kind = type(module)
    plain = {
        nn.ReLU: RELU,
        nn.Tanh: Activation("tanh"),
        nn.Sigmoid: Activation("logistic"),
        nn.SiLU: Activation("silu"),
    }
    if kind in plain:
        return plain[kind]
    if isinstance(module, nn.LeakyReLU) and kind is nn.LeakyReLU and 0 <= module.negative_slope < 1:
        return Activation("leaky", float(module.negative_slope))
    if isinstance(module, nn.ELU) and kind is nn.ELU and module.alpha > 0:
        return Activation("elu", float(module.alpha))
    if isinstance(module, nn.GELU) and kind is nn.GELU and module.approximate == "none":
        return Activation("gelu")
    if isinstance(module, nn.Softplus) and kind is nn.Softplus and (module.beta, module.threshold) == (1, 20):
        return Activation("softplus")
    return None


_NOTHING_IN_EVALUATION = (nn.Identity, nn.Dropout, nn.AlphaDropout, nn.FeatureAlphaDropout)

# A linear layer, a batch norm beside one, or a weight (out, in) and a bias (out,).
Part: TypeAlias = "nn.Linear | nn.BatchNorm1d | tuple[torch.Tensor, torch.Tensor | None]"


def _affine(part: Part) -> tuple[torch.Tensor, torch.Tensor]:
    """Weight (out, in) and bias (out,) of a linear layer; scale (d,) and shift (d,) of a batch norm in evaluation."""
    if isinstance(part, nn.BatchNorm1d):
        assert part.running_mean is not None
        assert part.running_var is not None
        scale = (part.running_var + part.eps).rsqrt()
        shift = -part.running_mean * scale
        return (scale * part.weight, shift * part.weight + part.bias) if part.affine else (scale, shift)
    weight, bias = part if isinstance(part, tuple) else (part.weight, part.bias)
    return weight, weight.new_zeros(len(weight)) if bias is None else bias


@dataclass(frozen=True, eq=False)
class Stage:
    """One linear map and the activation after it (None: identity).

    The map is a linear layer, or several without an activation between them, and the batch norms beside them.
    """

    parts: tuple[Part, ...]
    activation: Activation | None

    def read(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return weight (out, in) and bias (out,) as they are now, multiplied out."""
        weight, bias = _affine(self.parts[0])
        for part in self.parts[1:]:
            step, shift = _affine(part)
            if step.ndim == 2:
                bias = step @ bias + shift
                weight = step @ weight if weight.ndim == 2 else step * weight
            else:
                bias = bias * step + shift
                weight = weight * (step[:, None] if weight.ndim == 2 else step)
        return weight, bias


@dataclass(frozen=True, eq=False)
class Network:
    """Stages from input to output, and the softmax or sigmoid that came after them, if any.

    The stages read a module's own tensors, so they follow training; `layers` is what they are now.
    """

    stages: tuple[Stage, ...]
    ending: str | None = None

    @property
    def first(self) -> torch.Tensor:
        """Weight of the first layer, or scale of a batch norm before it; its dtype and device are the network's."""
        part = self.stages[0].parts[0]
        return (
            part[0]
            if isinstance(part, tuple)
            else part.weight
            if part.weight is not None
            else _affine(part)[0]
        )

    @cached_property
    def n_inputs(self) -> int:
        """Number of input columns."""
        return int(self.first.shape[-1])

    @cached_property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return int(_affine(self.stages[-1].parts[-1])[0].shape[0])

    def layers(self) -> Layers:
        """Return the weights as they are now as arrays."""
        with torch.no_grad():
            read = [stage.read() for stage in self.stages]
        precision = torch.finfo(read[0][0].dtype)
        if precision.bits < 32:
            raise InputError(
                f"read_relu_network: the module computes in {read[0][0].dtype}, which rounds too coarsely to be read. "
                "Convert it with module.float() to have proofs."
            )
        # What is multiplied out here is rounded once more.
        several = any(len(stage.parts) > 1 for stage in self.stages)
        return Layers(
            tuple(to_numpy(weight).astype(np.float64) for weight, _ in read),
            tuple(to_numpy(bias).astype(np.float64) for _, bias in read),
            precision.eps / 2 * (8.0 if several else 1.0),
            activations=tuple(stage.activation or IDENTITY for stage in self.stages[:-1]),
        )


def network_of(module: nn.Module) -> Network | None:
    """Return the plain network that a module is, or None.

    Plain: an `nn.Linear`, or an `nn.Sequential` (nested or not) of Linear layers with known activations,
    dropout, identity and BatchNorm1d with running statistics between them; exactly these types and no hooks,
    since a subclass or a hook may compute anything. The result reads the module's own tensors, so it follows
    training.
    """
    leaves = list(_leaves(module))
    if not leaves or any(leaf is None or _hooked(leaf) for leaf in leaves):
        return None
    layers = [leaf for leaf in leaves if leaf is not None and not _does_nothing(leaf)]
    ending = _ending(layers)
    stages = _stages(layers[:-1] if ending else layers)
    network = None if stages is None else Network(stages, ending)
    return None if network is None or (ending == "sigmoid" and network.n_outputs != 1) else network


def torch_output(module: nn.Module, loss: Loss | None = None) -> TorchOutput:
    """What a module returns, by its last layer: probabilities after a softmax or a single sigmoid, else logits."""
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
    parts: list[Part] = []
    linear = False
    for layer in layers:
        activation = activation_from_module(layer)
        if isinstance(layer, nn.Linear) and type(layer) is nn.Linear:
            if linear:
                # Two in a row are multiplied if the product is smaller than both: not behind a bottleneck.
                n_in = _affine(parts[0])[0].shape[-1]
                if n_in * layer.out_features > (n_in + layer.out_features) * layer.in_features:
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
