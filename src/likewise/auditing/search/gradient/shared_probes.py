"""Displacements that make a model fail whatever the row: found once, tried on every row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from likewise.auditing.search.gradient.ascent import ascend
from likewise.auditing.search.gradient.spaces import Space

__all__ = ["Probes", "find_probes"]

_STEPS = 8
# A probe begins where the penalty is of this size, far outside what a loss of a few nats can pay for.
_COST = 100.0
_FARTHEST = 1e6


@dataclass(frozen=True)
class Probes:
    """Displacements found at one fixed row, for every row with the same label.

    Attributes
    ----------
    labels : Tensor of shape (C,)
        Sorted.
    deltas : Tensor of shape (m, C, d)
    """

    labels: torch.Tensor
    deltas: torch.Tensor

    def ends(self, space: Space, base: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        """Each displacement from `base` as far as the domain lets it, m tensors (n, D)."""
        at = torch.searchsorted(self.labels, y)
        return [space.away(base, space.point(delta).index_select(0, at)) for delta in self.deltas]


def find_probes(
    make_space: Callable[[torch.Tensor], Space],
    labels: torch.Tensor,
    noise: torch.Tensor,
    origin: torch.Tensor,
    *,
    count: int,
    cost: Callable[[torch.Tensor], torch.Tensor],
) -> Probes:
    """Search from random displacements of one fixed row, and keep the best distinct ones of each label.

    Far from the data a network is nearly linear along rays, so where it is worst hardly depends on the row. What
    is found here depends on the model, the metric, the domain, λ and the label alone, not on the rows audited:
    so it may be tried on each of them without making one row's result depend on another's.

    Parameters
    ----------
    make_space : callable
        From targets (m,) to the space of m copies of the fixed row.
    labels : Tensor of shape (C,)
        Sorted.
    noise : Tensor of shape (s, d)
        Random directions.
    origin : Tensor of shape (1, d)
        The fixed row.
    count : int
        How many displacements to keep per label.
    cost : callable
        λ d² of displacements.

    Returns
    -------
    Probes
        With displacements of length 0 for a label where nothing finite was found.
    """
    targets = labels.repeat_interleave(len(noise))
    space = make_space(targets)
    paid = cost(noise).clamp(min=torch.finfo(noise.dtype).tiny)
    far = noise * (_COST / paid).sqrt().clamp(max=_FARTHEST)[:, None]
    v = space.limit(space.point(far.repeat(len(labels), 1)))
    track = ascend(space, v, space.look(v), steps=_STEPS, damping=0.5, tol=1e-4)
    deltas = space.rows(track.v) - origin
    chosen = [
        _distinct(deltas[targets == label], track.objective[targets == label], count) for label in labels
    ]
    return Probes(labels, torch.stack(chosen, dim=1))


def _distinct(deltas: torch.Tensor, values: torch.Tensor, count: int) -> torch.Tensor:
    """Best `count` displacements that differ by a tenth of their length; the best again where there are fewer."""
    sound = torch.isfinite(values) & torch.isfinite(deltas).all(1)
    deltas, values = deltas[sound], values[sound]
    if len(values) == 0:
        return deltas.new_zeros(count, deltas.shape[1])
    away = torch.cdist(deltas, deltas) / deltas.norm(dim=1).clamp(min=torch.finfo(deltas.dtype).tiny)
    kept: list[int] = []
    for i in values.argsort(descending=True, stable=True).tolist():
        if all(float(away[i, j]) > 0.1 for j in kept):
            kept.append(i)
        if len(kept) == count:
            break
    return deltas[kept + [kept[0]] * (count - len(kept))]
