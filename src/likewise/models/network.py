"""Plain multilayer networks inside torch modules: which ones there are, and their weights as they are now."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from likewise.core.errors import InputError, bad_parameter
from likewise.models.losses import Loss
from likewise.models.oracle import TorchOutput

# Elementwise activations with their slopes by hand, on tensors that are written in place.


class Activation(ABC):
    """An elementwise function a(u) and its derivative.

    `forward_` may overwrite u; it returns the value and whatever `slope_` needs, which may be the same tensor.
    `slope_` may overwrite that in turn. So a forward and backward pass needs no more memory than the values.
    """

    @abstractmethod
    def forward_(self, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a(u) and what `slope_` needs."""

    @abstractmethod
    def slope_(self, kept: torch.Tensor) -> torch.Tensor:
        """Return a′(u) from what `forward_` kept."""


@dataclass(frozen=True)
class LeakyReLU(Activation):
    """max(u, s·u) with 0 ≤ s < 1; s = 0 is the ReLU."""

    negative_slope: float = 0.0

    def forward_(self, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        a = nn.functional.leaky_relu_(u, self.negative_slope) if self.negative_slope else u.relu_()
        return a, a

    def slope_(self, kept: torch.Tensor) -> torch.Tensor:
        # The sign of a(u) is the sign of u; gt_ writes 0 and 1 into the floats, far cheaper than a bool mask.
        kept.gt_(0.0)
        if self.negative_slope != 0.0:
            kept.mul_(1.0 - self.negative_slope).add_(self.negative_slope)
        return kept


@dataclass(frozen=True)
class Tanh(Activation):
    """tanh(u); slope 1 − a²."""

    def forward_(self, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        a = u.tanh_()
        return a, a

    def slope_(self, kept: torch.Tensor) -> torch.Tensor:
        return kept.square_().neg_().add_(1.0)


@dataclass(frozen=True)
class Sigmoid(Activation):
    """1/(1 + exp(−u)); slope a(1 − a)."""

    def forward_(self, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        a = u.sigmoid_()
        return a, a

    def slope_(self, kept: torch.Tensor) -> torch.Tensor:
        return kept.sub_(kept.square())


@dataclass(frozen=True)
class SiLU(Activation):
    """u·σ(u); slope σ(u)(1 + u(1 − σ(u)))."""

    def forward_(self, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return nn.functional.silu(u), u

    def slope_(self, kept: torch.Tensor) -> torch.Tensor:
        s = kept.sigmoid()
        return kept.mul_(1.0 - s).add_(1.0).mul_(s)


@dataclass(frozen=True)
class GELU(Activation):
    """u·Φ(u), exactly; slope Φ(u) + u·φ(u) with the normal distribution and density."""

    def forward_(self, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return nn.functional.gelu(u), u

    def slope_(self, kept: torch.Tensor) -> torch.Tensor:
        cdf = (kept / math.sqrt(2.0)).erf_().add_(1.0).mul_(0.5)
        pdf = kept.square().mul_(-0.5).exp_().mul_(1.0 / math.sqrt(2.0 * math.pi))
        return kept.mul_(pdf).add_(cdf)


@dataclass(frozen=True)
class ELU(Activation):
    """u for u > 0, α(exp(u) − 1) else; slope 1 or a + α."""

    alpha: float = 1.0

    def forward_(self, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        a = nn.functional.elu_(u, self.alpha)
        return a, a

    def slope_(self, kept: torch.Tensor) -> torch.Tensor:
        positive = (kept > 0).to(kept.dtype)
        return kept.clamp_(max=0.0).add_(self.alpha).mul_(1.0 - positive).add_(positive)


@dataclass(frozen=True)
class Softplus(Activation):
    """log(1 + exp(u)); slope σ(u)."""

    def forward_(self, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return nn.functional.softplus(u), u

    def slope_(self, kept: torch.Tensor) -> torch.Tensor:
        return kept.sigmoid_()


_NAMED: dict[str, Activation] = {
    "relu": LeakyReLU(),
    "leaky_relu": LeakyReLU(0.01),
    "tanh": Tanh(),
    "sigmoid": Sigmoid(),
    "logistic": Sigmoid(),
    "silu": SiLU(),
    "gelu": GELU(),
    "elu": ELU(),
    "softplus": Softplus(),
}


def activation_from_name(name: str | Activation | None) -> Activation | None:
    """Return the activation of a name; None stands for the identity."""
    if name is None or isinstance(name, Activation):
        return name
    if name in ("identity", "linear"):
        return None
    if name not in _NAMED:
        raise bad_parameter(
            "MLPOracle", "activations", allowed=f"names among {sorted(_NAMED)} and 'identity'", got=name
        )
    return _NAMED[name]


def activation_from_module(module: nn.Module) -> Activation | None:
    """Return the activation that a torch module of exactly a known type computes, or None for any other."""
    kind = type(module)
    plain: dict[type[nn.Module], Activation] = {
        nn.ReLU: LeakyReLU(),
        nn.Tanh: Tanh(),
        nn.Sigmoid: Sigmoid(),
        nn.SiLU: SiLU(),
    }
    if kind in plain:
        return plain[kind]
    if isinstance(module, nn.LeakyReLU) and kind is nn.LeakyReLU and 0 <= module.negative_slope < 1:
        return LeakyReLU(float(module.negative_slope))
    if isinstance(module, nn.ELU) and kind is nn.ELU and module.alpha > 0:
        return ELU(float(module.alpha))
    if isinstance(module, nn.GELU) and kind is nn.GELU and module.approximate == "none":
        return GELU()
    if isinstance(module, nn.Softplus) and kind is nn.Softplus and (module.beta, module.threshold) == (1, 20):
        return Softplus()
    return None


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
