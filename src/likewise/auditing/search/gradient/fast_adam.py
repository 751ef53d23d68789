"""Adam for small networks by a compiled loop, where numba is installed; else by torch."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch

from likewise.auditing.search.gradient.adam import adam, settled_status
from likewise.auditing.search.gradient.ascent import Track
from likewise.auditing.search.gradient.quadratic_penalty import Quadratic
from likewise.auditing.search.gradient.row_space import RowSpace
from likewise.auditing.search.gradient.spaces import Space
from likewise.models.single_layer import SingleLayer

__all__ = ["fast_adam"]

# Weights of the hidden layer that stay in a core's cache; beyond that BLAS is faster.
_LARGEST = 2**15


def fast_adam(space: Space, v: torch.Tensor, *, steps: int, step_size: float, tol: float) -> Track:
    """Climb as `adam` does, with the same result up to rounding.

    A network with one hidden layer of ReLUs, two classes and cross-entropy is climbed row by row by compiled code, if
    no domain stops the rows. Over all coordinates it is asked only where a hidden unit may have changed its sign: in
    between it is linear.

    Parameters
    ----------
    space, v, steps, step_size, tol
        As in `adam`.

    Returns
    -------
    Track
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
