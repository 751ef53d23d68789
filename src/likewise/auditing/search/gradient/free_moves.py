"""How far a row may go along the free directions without leaving the domain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch

from likewise.auditing.search.gradient.box_section import BoxSection
from likewise.core.arrays import to_numpy
from likewise.domains.boxes import BoxDomain, DataRangeDomain, Unbounded
from likewise.domains.domain import Domain
from likewise.domains.tabular import TabularDomain

__all__ = ["CoefficientBox", "FreeMoves", "Limit", "free_moves", "meet"]

Limit: TypeAlias = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

_ROUNDS = 60
_MEET_TOL = 1e-7
_MAX_CORNER_DIMS = 4


@dataclass(frozen=True)
class CoefficientBox:
    """Bounds on coordinates of x + Qz along directions R inside the span of Q: lower ≤ Rᵀ(x + Qz) ≤ upper.

    Attributes
    ----------
    directions : Tensor of shape (d, r)
        Orthonormal columns R.
    mix : Tensor of shape (K, r)
        QᵀR, orthonormal columns as well.
    lower, upper : Tensor of shape (r,)
    """

    directions: torch.Tensor
    mix: torch.Tensor
    lower: torch.Tensor
    upper: torch.Tensor

    def __call__(self, z: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Project coefficients z (n, K) of the rows x (n, d)."""
        at = torch.addmm(x @ self.directions, z, self.mix)
        return torch.addmm(z, at.clamp(self.lower, self.upper) - at, self.mix.t())

    def corners(self, x: torch.Tensor) -> list[torch.Tensor]:
        """Coefficients of every corner of the box, each (n, K); none where it is open or has too many."""
        r = len(self.lower)
        if r > _MAX_CORNER_DIMS or not bool(
            torch.isfinite(self.lower).all() & torch.isfinite(self.upper).all()
        ):
            return []
        at = x @ self.directions
        ends = torch.cartesian_prod(*torch.stack([self.lower, self.upper], dim=1)).reshape(-1, r)
        return [(end - at) @ self.mix.t() for end in ends]

    def vertex(self, gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Coefficients of the corner that is farthest along a gradient (n, K), each (n, K); 0 along open sides."""
        slope, at = gradient @ self.mix, x @ self.directions
        end = torch.where(slope > 0, self.upper, self.lower)
        end = torch.where((slope == 0) | ~torch.isfinite(end), at, end)
        return (end - at) @ self.mix.t()


@dataclass(frozen=True)
class FreeMoves:
    """Free directions of a metric together with what the domain says about them.

    Attributes
    ----------
    basis : Tensor of shape (d, K)
    limit : callable or None
        Brings coefficients back, given the rows; None where the domain says nothing.
    section : BoxSection or None
        Knows faces and vertices, where oblique directions cut a closed box.
    """

    basis: torch.Tensor
    limit: Limit | None
    section: BoxSection | None = None


def free_moves(domain: Domain, basis: torch.Tensor, *, exact: bool) -> FreeMoves | None:
    """Return the free moves that a search can make with K coefficients per row.

    Parameters
    ----------
    domain : Domain
    basis : Tensor of shape (d, K)
        Orthonormal free directions.
    exact : bool
        Whether all of them are needed (λ = ∞), even where the domain cuts across them and each projection
        takes rounds. Otherwise only those directions are taken that the domain bounds one by one.

    Returns
    -------
    FreeMoves or None
        None where there is nothing to move along.
    """
    if basis.shape[1] == 0:
        return None
    if isinstance(domain, Unbounded):
        return FreeMoves(basis, None)
    if isinstance(domain, DataRangeDomain):
        R = torch.as_tensor(to_numpy(domain.subspace.basis), dtype=basis.dtype, device=basis.device)
        mix = basis.t() @ R
        if torch.allclose(basis @ mix, R, atol=1e-5):
            ends = (
                torch.as_tensor(end, dtype=basis.dtype, device=basis.device)
                for end in (domain.lower, domain.upper)
            )
            return FreeMoves(basis, CoefficientBox(R, mix, *ends))
    axes = _box_axes(domain, basis)
    if len(axes) and (not exact or len(axes) == basis.shape[1]):
        columns = torch.eye(len(basis), dtype=basis.dtype, device=basis.device)[:, axes]
        eye = torch.eye(len(axes), dtype=basis.dtype, device=basis.device)
        ends = (torch.as_tensor(end[axes], dtype=basis.dtype, device=basis.device) for end in domain.bounds())
        return FreeMoves(columns, CoefficientBox(columns, eye, *ends))
    if not exact:
        return None
    return FreeMoves(basis, meet(domain, basis), _section(domain, basis))


def _section(domain: Domain, basis: torch.Tensor) -> BoxSection | None:
    """Return where the free directions cut a closed box; None for other domains."""
    if not isinstance(domain, BoxDomain):
        return None
    lower, upper = (torch.as_tensor(end, dtype=torch.float64, device=basis.device) for end in domain.bounds())
    if not bool(torch.isfinite(lower).all() & torch.isfinite(upper).all()):
        return None
    fixed = torch.zeros(len(lower), dtype=torch.bool, device=basis.device)
    fixed[list(domain.immutable)] = True
    return BoxSection(basis, lower, upper, fixed)


def _box_axes(domain: Domain, basis: torch.Tensor) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Coordinates whose axis lies in the span of the basis and that the domain bounds by themselves."""
    inside = np.isclose(to_numpy(basis.square().sum(1)), 1.0, rtol=0.0, atol=1e-5)
    if isinstance(domain, BoxDomain):
        inside[list(domain.immutable)] = False
    elif isinstance(domain, TabularDomain):
        alone = np.zeros_like(inside)
        for column in domain.columns_:
            alone[column.slice] = column.stop - column.start == 1 and not column.immutable
        inside &= alone
    else:
        inside[:] = False
    return np.flatnonzero(inside)


def meet(domain: Domain, basis: torch.Tensor) -> Limit:
    """Return the projection on the rows of the domain that lie in x + span(basis), as a limit on coefficients.

    Dykstra's alternating projections (Boyle & Dykstra 1986), each row stopping by itself. A row that the rounds
    did not bring inside is drawn back towards x, which lies in both sets.
    """

    def limit(z: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        z = z.clone()
        correction = torch.zeros_like(x)
        going = torch.arange(len(z), device=z.device)
        for _ in range(_ROUNDS):
            wanted = torch.addmm(x[going], z[going], basis.t()).add_(correction)
            inside = domain.project(wanted, x[going])
            correction = wanted - inside
            nearer = (inside - x[going]) @ basis
            z[going] = nearer
            off = (torch.addmm(x[going], nearer, basis.t()) - inside).abs().amax(1)
            keep = (off > _MEET_TOL).nonzero()[:, 0]
            going, correction = going[keep], correction[keep]
            if len(going) == 0:
                return z
        return _draw_back(domain, basis, z, x, going)

    return limit


def _draw_back(
    domain: Domain, basis: torch.Tensor, z: torch.Tensor, x: torch.Tensor, rows: torch.Tensor
) -> torch.Tensor:
    """Halve the coefficients of some rows until x + Qz lies in the domain; after 30 times they are 0."""
    for _ in range(30):
        at = torch.addmm(x[rows], z[rows], basis.t())
        off = (at - domain.project(at, x[rows])).abs().amax(1)
        rows = rows[off > 10 * _MEET_TOL]
        if len(rows) == 0:
            return z
        z[rows] *= 0.5
    z[rows] = 0.0
    return z
