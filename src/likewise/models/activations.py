"""Elementwise activations with their slopes by hand, on tensors that are written in place."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import nn

from likewise.core.errors import bad_parameter

__all__ = ["Activation", "activation_from_module", "activation_from_name"]


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
    """Return the activation of a name; None stands for the identity.

    Examples
    --------
    >>> activation_from_name("tanh"), activation_from_name("identity")
    (Tanh(), None)
    """
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
    """Return the activation that a torch module of exactly a known type computes, or None for any other.

    Examples
    --------
    >>> activation_from_module(nn.ReLU()), activation_from_module(nn.Linear(1, 1))
    (LeakyReLU(negative_slope=0.0), None)
    """
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
