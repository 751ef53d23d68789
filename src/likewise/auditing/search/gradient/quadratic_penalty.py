"""The penalty λ δᵀΣδ on tensors: what a move costs, and where the stationarity condition says to go."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import torch

from likewise.fair_metrics.metric import FairMetric

__all__ = ["Quadratic"]

# Largest system that is solved for each row.
_MAX_SOLVE = 64
# Cost of a free direction, relative to the others, where a system needs one.
_CHEAP = 1e-2


@dataclass(frozen=True)
class Quadratic:
    """The matrix of a metric as tensors: Σ = scale·I + Q diag(costs − scale) Qᵀ.

    Attributes
    ----------
    scale : float
    basis : Tensor of shape (d, k)
    costs : Tensor of shape (k,)
        Eigenvalues of Σ along the basis, 0 along free directions.
    free : Tensor of shape (d, K) or None
        Basis of the free directions where they are few; None where they are everything outside `basis`.

    Examples
    --------
    >>> from likewise.fair_metrics import euclidean
    >>> Quadratic.of(euclidean(2), torch.zeros(1, 2)).squared(torch.tensor([[3.0, 4.0]]))
    tensor([25.])
    """

    scale: float
    basis: torch.Tensor
    costs: torch.Tensor
    free: torch.Tensor | None

    @classmethod
    def of(cls, metric: FairMetric, like: torch.Tensor) -> Quadratic:
        """Read a metric as tensors like `like` (n, d); once, since a training asks at every step."""
        known = _KNOWN.setdefault(metric, {})
        key = (like.dtype, like.device, like.shape[1])
        if key not in known:
            known[key] = cls._read(metric, like)
        return known[key]

    @classmethod
    def _read(cls, metric: FairMetric, like: torch.Tensor) -> Quadratic:
        basis = metric.basis if metric.n_features else torch.zeros(like.shape[1], 0)
        Q = torch.as_tensor(basis, dtype=like.dtype, device=like.device)
        costs = torch.as_tensor(metric.scale + metric.values, dtype=like.dtype, device=like.device)
        return cls(metric.scale, Q, costs, Q[:, costs == 0] if metric.scale > 0 else None)

    @classmethod
    def nothing(cls, like: torch.Tensor) -> Quadratic:
        """Return the penalty under which every direction is free (λ = 0)."""
        return cls(0.0, like.new_zeros(like.shape[1], 0), like.new_zeros(0), None)

    @property
    def has_free(self) -> bool:
        """Whether some direction costs nothing."""
        if self.free is not None:
            return self.free.shape[1] > 0
        return self.basis.shape[1] < self.basis.shape[0]

    @property
    def has_paid(self) -> bool:
        """Whether some direction costs something."""
        return self.scale > 0 or self.basis.shape[1] > 0

    def free_part(self, g: torch.Tensor) -> torch.Tensor:
        """Part of each row along free directions, (n, d)."""
        Q = self.basis if self.free is None else self.free
        inside = (g @ Q) @ Q.t()
        return g - inside if self.free is None else inside

    def squared(self, delta: torch.Tensor) -> torch.Tensor:
        """δᵀΣδ, (n,); what lies inside the basis is taken out first, so that no digits are lost."""
        inside = delta @ self.basis
        total = (inside.square() * self.costs).sum(1)
        if self.scale > 0:
            outside = torch.addmm(delta, inside, self.basis.t(), alpha=-1.0)
            total = total + self.scale * outside.square_().sum(1)
        return total

    def apply(self, delta: torch.Tensor) -> torch.Tensor:
        """Σδ, (n, d)."""
        inside = (delta @ self.basis) * (self.costs - self.scale)
        return torch.addmm(delta, inside, self.basis.t(), beta=self.scale)

    def step(self, delta: torch.Tensor, g: torch.Tensor, half: torch.Tensor) -> torch.Tensor:
        """Σ⁺g/(2λ) − δ outside the free directions, (n, d); `half` is 1/(2λ), (n, 1).

        The stationarity condition of ℓ(x) − λ d²(x, x_i) is Σδ = ∇ℓ/(2λ): this is where it says to go.
        """
        inside, slope = delta @ self.basis, (g @ self.basis) * half
        paid = self.costs > 0
        target = torch.where(paid, slope / self.costs.clamp(min=torch.finfo(g.dtype).tiny) - inside, 0.0)
        if self.scale == 0:
            return target @ self.basis.t()
        outside = torch.addcmul(-delta, g, half / self.scale)
        return torch.addmm(outside, target - slope / self.scale + inside, self.basis.t())

    @cached_property
    def steepest(self) -> float:
        """Largest eigenvalue of Σ."""
        return max(self.scale, float(self.costs.max()) if len(self.costs) else 0.0)

    @cached_property
    def couples(self) -> bool:
        """Whether Σ ties coordinates together, so that stopping one of them changes where the others should go."""
        Q = self.basis
        if Q.shape[1] == 0 or Q.shape[1] > _MAX_SOLVE:
            return False
        away = (Q * (self.costs - self.scale)) @ Q.t()
        away = away - torch.diag(torch.diagonal(away))
        return bool((away.abs() > 1e-6 * self.steepest).any())

    def step_among(
        self, delta: torch.Tensor, g: torch.Tensor, half: torch.Tensor, moving: torch.Tensor
    ) -> torch.Tensor:
        """The same where only some coordinates move, (n, d); `moving` is 1 for those and 0 for the others.

        With F the moving ones it is Σ_FF⁻¹ (∇ℓ/(2λ) − Σδ_C)_F − δ_F, by one k × k system per row. Free
        directions count as cheap here, so that the system has a solution.
        """
        scale = self.scale if self.scale > 0 else _CHEAP * float(self.costs.max())
        excess = self.costs.clamp(min=_CHEAP * scale) - scale
        held = delta * (1 - moving)
        whole = scale * held + ((held @ self.basis) * excess) @ self.basis.t()
        wanted = (g * half - whole) * moving
        k = len(excess)
        pairs = (self.basis[:, :, None] * self.basis[:, None, :]).reshape(-1, k * k)
        system = (moving @ pairs).reshape(-1, k, k) * (excess / scale)[:, None]
        system.diagonal(dim1=1, dim2=2).add_(1.0)
        inside = torch.linalg.solve_ex(system, (wanted @ self.basis) * excess).result
        target: torch.Tensor = (wanted - (inside / scale) @ self.basis.t() * moving) / scale
        return target - delta * moving

    @cached_property
    def whiteners(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Matrices W, U with δ = v Wᵀ, v = δ U and δᵀΣδ = ‖v‖², for a Σ without free directions."""
        Q, roots = self.basis, self.costs.sqrt()
        if self.scale == 0:
            return Q / roots, Q * roots
        eye, root = torch.eye(len(Q), dtype=Q.dtype, device=Q.device), self.scale**0.5
        back = eye / root + (Q * (1 / roots - 1 / root)) @ Q.t()
        return back, eye * root + (Q * (roots - root)) @ Q.t()


_KNOWN: WeakKeyDictionary[FairMetric, dict[Any, Quadratic]] = WeakKeyDictionary()
