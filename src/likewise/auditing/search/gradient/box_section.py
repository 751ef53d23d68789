"""Where free directions cut a box: the rows of a closed box that lie in x + span(Q), as limits on K coefficients.

Oblique free directions cross many faces of a box, and what a row may do along them is a polytope in K dimensions:
lower ≤ x + Qz ≤ upper. Two things are asked of it, for all rows at once and in double precision: a step that slides
along the faces it meets, and the vertex that is farthest along a gradient (where a loss that is convex along the free
directions, such as that of a linear model, has its maximum).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

__all__ = ["BoxSection"]

_PIVOTS = 40
_TOL = 1e-9
_TINY = 1e-11


@dataclass(frozen=True)
class BoxSection:
    """The polytope lower ≤ x + Qz ≤ upper of each row.

    Parameters
    ----------
    basis : Tensor of shape (d, K)
        Orthonormal columns Q.
    lower, upper : Tensors of shape (d,), finite
    fixed : Tensor of shape (d,), bool
        Coordinates that may not change at all.

    Examples
    --------
    >>> diagonal = torch.tensor([[0.6], [0.8]])
    >>> section = BoxSection(diagonal, -torch.ones(2), torch.ones(2), torch.zeros(2, dtype=torch.bool))
    >>> section.vertex(torch.ones(1, 1), torch.zeros(1, 2)).item()
    1.25
    >>> section.slide(torch.zeros(1, 1), torch.full((1, 1), -9.0), torch.zeros(1, 2)).item()
    -1.25
    """

    basis: torch.Tensor
    lower: torch.Tensor
    upper: torch.Tensor
    fixed: torch.Tensor

    def slide(self, z: torch.Tensor, step: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Go a step (n, K) from z, along the faces that stop it; return what was gone.

        On every face the rest of the step goes on without its part across that face, so the step never turns against
        itself: gone · step ≥ 0.
        """
        Q, low, high = self._around(x)
        begun, rest = z.double(), step.double()
        at, active = begun, torch.full(z.shape, -1, dtype=torch.int64, device=z.device)
        along = torch.eye(z.shape[1], dtype=Q.dtype, device=z.device).repeat(len(z), 1, 1)
        for k in range(z.shape[1]):
            room, blocked, _ = _room(Q, at, rest, low, high, active)
            share = room.clamp(max=1.0)
            at = torch.addcmul(at, rest, share[:, None])
            active[:, k] = blocked
            along = _along_face(along, Q[blocked])
            rest = torch.einsum("nkl,nl->nk", along, rest * (1.0 - share)[:, None])
        return (_shorten(Q, at, low, high) - begun).to(z.dtype)

    def vertex(self, gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Return the vertex with the largest gradientᵀz, (n, K): a linear programme per row, by the simplex method."""
        Q, low, high = self._around(x)
        return _shorten(Q, _best_vertex(Q, gradient.double(), low, high), low, high).to(gradient.dtype)

    def _around(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Q, and the room of each row below and above it, which holds 0 even where the row lies outside."""
        rows = x.double()
        low = (self.lower.double() - rows).clamp(max=0.0).masked_fill(self.fixed, 0.0)
        high = (self.upper.double() - rows).clamp(min=0.0).masked_fill(self.fixed, 0.0)
        return self.basis.double(), low, high


def _shorten(Q: torch.Tensor, z: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """Shorten moves until they stay inside, up to rounding."""
    at = z @ Q.t()
    room = torch.where(at > 0, high + _TOL, low - _TOL) / torch.where(at == 0, 1.0, at)
    share = torch.where(at == 0, 1.0, room).amin(1).clamp(0.0, 1.0)
    return z * share[:, None]


def _best_vertex(Q: torch.Tensor, g: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """Go to some vertex along the gradient, then from vertex to vertex while the gradient rises."""
    z, active, side = _some_vertex(Q, g, low, high)
    going = torch.arange(len(g), device=g.device)
    for _ in range(_PIVOTS):
        held = Q[active[going]]
        inverse = torch.linalg.inv_ex(held).inverse
        price = torch.einsum("nk,nkr->nr", g[going], inverse) * side[going]
        least, which = price.min(1)
        # Not a number where the held faces do not make a vertex: such a row stays where it is.
        rises = least < -_TINY * g[going].abs().amax(1)
        going, which, inverse = going[rises], which[rises], inverse[rises]
        if len(going) == 0:
            break
        each = torch.arange(len(going), device=g.device)
        edge = -inverse[each, :, which] * side[going, which][:, None]
        held_back = active[going].scatter(1, which[:, None], -1)
        length, blocked, sign = _room(Q, z[going], edge, low[going], high[going], held_back)
        z[going] += length[:, None] * edge
        active[going, which], side[going, which] = blocked, sign
    return z


def _some_vertex(
    Q: torch.Tensor, g: torch.Tensor, low: torch.Tensor, high: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Follow the gradient along K faces: coefficients (n, K), the faces (n, K), and +1 for upper or −1 for lower."""
    n, k = g.shape
    z = torch.zeros_like(g)
    along = torch.eye(k, dtype=Q.dtype, device=Q.device).repeat(n, 1, 1)
    active = torch.full((n, k), -1, dtype=torch.int64, device=Q.device)
    side = torch.ones_like(g)
    # Where the gradient says nothing any more, any direction leads to a vertex of the same face.
    other = torch.linspace(1.0, 2.0, k, dtype=Q.dtype, device=Q.device)
    for step in range(k):
        way = torch.einsum("nkl,nl->nk", along, g)
        flat = way.abs().amax(1) <= _TINY * g.abs().amax(1)
        way = torch.where(flat[:, None], torch.einsum("nkl,l->nk", along, other), way)
        length, blocked, sign = _room(Q, z, way, low, high, active)
        z = z + length[:, None] * way
        active[:, step], side[:, step] = blocked, sign
        along = _along_face(along, Q[blocked])
    return z, active, side


def _along_face(along: torch.Tensor, normal: torch.Tensor) -> torch.Tensor:
    """Projections (n, K, K) on what the faces held so far leave, once one more with this normal is held."""
    face = torch.einsum("nkl,nl->nk", along, normal)
    size = (face * normal).sum(1)
    # A normal that the held faces span already takes nothing more away.
    share = torch.where(size > 1e-14, 1.0 / size.clamp(min=1e-14), 0.0)
    return along - face[:, :, None] * face[:, None, :] * share[:, None, None]


def _room(
    Q: torch.Tensor,
    z: torch.Tensor,
    way: torch.Tensor,
    low: torch.Tensor,
    high: torch.Tensor,
    active: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """How far along a way the box lets, which face stops it, and whether that is an upper (+1) or a lower one (−1)."""
    at, change = z @ Q.t(), way @ Q.t()
    still = change.abs() <= _TINY * change.abs().amax(1, keepdim=True)
    # A face that is held does not move; without one the place is a copy of the last coordinate, which is put back.
    held = torch.zeros_like(still, dtype=torch.int8).scatter_add_(
        1, active.clamp(min=0), (active >= 0).to(torch.int8)
    )
    still = still | (held > 0)
    room = torch.where(change > 0, high - at, low - at) / torch.where(still, 1.0, change)
    length, blocked = torch.where(still, torch.inf, room.clamp(min=0.0)).min(1)
    sign = torch.where(change.gather(1, blocked[:, None])[:, 0] > 0, 1.0, -1.0).to(z.dtype)
    return torch.where(torch.isfinite(length), length, 0.0), blocked, sign
