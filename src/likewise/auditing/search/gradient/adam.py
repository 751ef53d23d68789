"""Per-row Adam, the optimiser of the paper's Appendix C, with the best iterate kept."""

from __future__ import annotations

import torch

from likewise.auditing.search.gradient.ascent import Track
from likewise.auditing.search.gradient.row_status import RowStatus
from likewise.auditing.search.gradient.spaces import Space

__all__ = ["adam", "settled_status"]

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8


def adam(space: Space, v: torch.Tensor, *, steps: int, step_size: float, tol: float) -> Track:
    """Climb ℓ − λ d² with Adam (Kingma & Ba 2015), brought back into the domain after each step.

    The moments belong to the coordinates of each row, so rows do not influence each other. A row counts as
    converged when the last quarter of its steps raised the best value by no more than ``tol · max(1, |value|)``.

    Parameters
    ----------
    space : Space
    v : Tensor of shape (n, D)
        Where to start.
    steps : int
    step_size : float
        Adam's learning rate, in the units of the coordinates.
    tol : float

    Returns
    -------
    Track
        The best point seen, which is not always the last.
    """
    first, second = torch.zeros_like(v), torch.zeros_like(v)
    best, loss = v, space.loss(v)
    objective = space.objective(loss, space.squared(v))
    sound = torch.isfinite(objective)
    late, threshold = objective, 3 * steps // 4
    scale = space.gradient_scale[:, None]
    for k in range(1, steps + 1):
        point = space.look(v)
        if k > 1:
            best, loss, objective = _keep(space, best, loss, objective, v, point.loss, point.squared)
        gradient = point.gradient * scale
        sound &= torch.isfinite(point.loss + gradient.sum(1))
        first = torch.lerp(first, gradient, 1 - _BETA1)
        second = torch.lerp(second, gradient.square(), 1 - _BETA2)
        size = step_size / (1 - _BETA1**k)
        v = space.limit(
            torch.addcdiv(v, first, (second / (1 - _BETA2**k)).sqrt_().add_(_EPSILON), value=size)
        )
        if k == threshold:
            late = objective
    if steps:
        last = space.loss(v)
        sound &= torch.isfinite(last)
        best, loss, objective = _keep(space, best, loss, objective, v, last, space.squared(v))
    status = settled_status(objective, late, sound, steps=steps, tol=tol)
    return Track(best, loss, objective, status, torch.full_like(status, steps, dtype=torch.int32))


def settled_status(
    objective: torch.Tensor, late: torch.Tensor, sound: torch.Tensor, *, steps: int, tol: float
) -> torch.Tensor:
    """RowStatus codes of rows, (n,), by their best value in the end, that after three quarters, and if all was finite."""
    settled = (objective - late <= tol * objective.abs().clamp(min=1.0)) & (steps > 0)
    status = torch.full_like(objective, RowStatus.MAX_STEPS.value, dtype=torch.int8)
    return status.masked_fill_(settled, RowStatus.CONVERGED.value).masked_fill_(
        ~sound, RowStatus.NON_FINITE.value
    )


def _keep(
    space: Space,
    best: torch.Tensor,
    loss: torch.Tensor,
    objective: torch.Tensor,
    v: torch.Tensor,
    new_loss: torch.Tensor,
    new_squared: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    value = space.objective(new_loss, new_squared)
    better = (value > objective) & torch.isfinite(value)
    return (
        torch.where(better[:, None], v, best),
        torch.where(better, new_loss, loss),
        torch.where(better, value, objective),
    )
