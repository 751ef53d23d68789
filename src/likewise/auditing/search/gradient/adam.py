"""Per-row Adam, the optimiser of the paper's Appendix C, with the best iterate kept."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch

from likewise.auditing.search.gradient.ascent import RowStatus, Track
from likewise.auditing.search.gradient.spaces import Quadratic, RowSpace, Space
from likewise.models.oracle import SingleLayer

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8


def adam(space: Space, v: torch.Tensor, *, steps: int, step_size: float, tol: float) -> Track:
    """Climb ℓ − λ d² with Adam (Kingma & Ba 2015), brought back into the domain after each step.

    The moments belong to the coordinates of each row, so rows do not influence each other. A row counts as
    converged when the last quarter of its steps raised the best value by no more than ``tol · max(1, |value|)``.
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


# Adam for small networks by a compiled loop, where numba is installed; else by torch.


# Weights of the hidden layer that stay in a core's cache; beyond that BLAS is faster.
_LARGEST = 2**15


def fast_adam(space: Space, v: torch.Tensor, *, steps: int, step_size: float, tol: float) -> Track:
    """Climb as `adam` does, with the same result up to rounding.

    A network with one hidden layer of ReLUs, two classes and cross-entropy is climbed row by row by compiled code, if
    no domain stops the rows. Over all coordinates it is asked only where a hidden unit may have changed its sign: in
    between it is linear.
    """
    layer = _small_layer(space)
    kernel = None if layer is None else _kernel()
    if layer is None or kernel is None:
        return adam(space, v, steps=steps, step_size=step_size, tol=tol)
    penalty = space.penalty if isinstance(space, RowSpace) else Quadratic.nothing(v)
    directions, head = layer.directions.contiguous(), layer.head
    lengths = 1.0 / directions.square().sum(0)
    network = (
        *map(_array, (directions, directions.t(), directions * head, head, lengths)),
        *_like(v, layer.offset, layer.leak),
    )
    best, found = kernel(
        _array(layer.before),
        network,
        _array(layer.signs),
        _array(space.lam),
        (*_like(v, penalty.scale), _array(penalty.basis.t()), _array(penalty.costs)),
        steps,
        step_size,
        isinstance(space, RowSpace),
        _array(v).copy(),
    )
    loss, objective, late, sound = torch.from_numpy(found).to(v.dtype).unbind(1)
    status = settled_status(objective, late, sound > 0, steps=steps, tol=tol)
    return Track(
        torch.from_numpy(best), loss, objective, status, torch.full_like(status, steps, dtype=torch.int32)
    )


def _small_layer(space: Space) -> SingleLayer | None:
    """What the kernel needs of the model, or None where it does not serve."""
    layer = space.single_layer()
    if layer is None or layer.loss != "cross_entropy":
        return None
    if layer.before.device.type != "cpu" or layer.directions.numel() > _LARGEST:
        return None
    return layer


@cache
def _kernel() -> Any:
    try:
        from likewise.auditing.search.gradient.compiled_adam import climb
    except ImportError:
        return None
    return climb


def _array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    return np.asarray(tensor.detach().contiguous().numpy())


def _like(v: torch.Tensor, *numbers: float) -> tuple[Any, ...]:
    real = _array(v).dtype.type
    return tuple(real(number) for number in numbers)
