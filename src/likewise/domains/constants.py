"""Constants of a domain at hand in every kind of array that a search may use."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from likewise.core.arrays import is_tensor, like

__all__ = ["Constants", "on_numpy"]


class Constants:
    """Named arrays that are converted once for each library, dtype and device they are asked in.

    `project` runs at every step of every search: converting bounds and indices anew each time would cost
    more than the projection of a small batch.

    Examples
    --------
    >>> constants = Constants(lower=np.zeros(2), index=np.array([1]))
    >>> constants.like(np.ones(1, dtype=np.float32))["lower"].dtype
    dtype('float32')
    """

    def __init__(self, **arrays: np.ndarray[Any, Any]) -> None:
        self._arrays = arrays
        self._ready: dict[Any, dict[str, Any]] = {}

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        return self._arrays[name]

    def like(self, reference: Any) -> dict[str, Any]:
        """Return the arrays as the kind `reference` is; integer arrays stay integer."""
        key = (reference.dtype, reference.device) if is_tensor(reference) else reference.dtype
        if key not in self._ready:
            self._ready[key] = {name: _convert(values, reference) for name, values in self._arrays.items()}
        return self._ready[key]

    def __getstate__(self) -> dict[str, Any]:
        return {"_arrays": self._arrays, "_ready": {}}


def _convert(values: np.ndarray[Any, Any], reference: Any) -> Any:
    if values.dtype.kind == "f":
        return like(values, reference)
    if is_tensor(reference):
        return sys.modules["torch"].as_tensor(values, device=reference.device)
    return values


def on_numpy(x: Any) -> np.ndarray[Any, Any] | None:
    """Return the memory of a plain CPU tensor as a numpy array without a copy; None where that cannot be.

    numpy costs a fraction of torch's overhead per operation, which dominates on batches of a thousand rows.
    A tensor that takes part in a gradient, lives elsewhere, or has a dtype numpy lacks stays with torch.
    """
    torch = sys.modules["torch"]
    plain = (
        x.device.type == "cpu"
        and x.layout == torch.strided
        and not (x.requires_grad and torch.is_grad_enabled())
    )
    if not plain or x.dtype not in (torch.float32, torch.float64) or torch.compiler.is_compiling():
        return None
    view: np.ndarray[Any, Any] = x.detach().numpy()
    return view
