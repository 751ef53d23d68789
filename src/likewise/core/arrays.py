"""One piece of maths on numpy arrays and torch tensors alike, without importing torch before it is used."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import torch

__all__ = ["Array", "FloatArray", "is_tensor", "like", "namespace", "to_numpy"]

FloatArray: TypeAlias = np.ndarray[Any, np.dtype[np.floating[Any]]]
Array: TypeAlias = "FloatArray | torch.Tensor"


def is_tensor(x: object) -> bool:
    """Whether `x` is a torch tensor (False when torch was never imported: then nothing can be one).

    Examples
    --------
    >>> is_tensor([1.0])
    False
    """
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def namespace(x: object) -> ModuleType:
    """Return the module whose functions work on `x`: `torch` for a tensor, else `numpy`.

    Examples
    --------
    >>> namespace(np.zeros(2)).__name__
    'numpy'
    """
    return sys.modules["torch"] if is_tensor(x) else np


def to_numpy(x: Any) -> np.ndarray[Any, Any]:
    """Return `x` as a numpy array; a tensor is detached and brought to the CPU.

    Examples
    --------
    >>> to_numpy([1, 2]).tolist()
    [1, 2]
    """
    if is_tensor(x):
        return np.asarray(x.detach().cpu().numpy())
    return np.asarray(x)


def like(values: Any, reference: Any) -> Any:
    """Return `values` as the kind of array `reference` is: same library, floating dtype and device.

    Examples
    --------
    >>> like([1, 2], np.zeros(1, dtype=np.float32)).dtype
    dtype('float32')
    """
    if is_tensor(reference):
        torch = sys.modules["torch"]
        dtype = reference.dtype if reference.dtype.is_floating_point else torch.get_default_dtype()
        if is_tensor(values):
            return values.to(dtype=dtype, device=reference.device)
        array = np.asarray(values)
        # torch warns of memory that may not be written to, which is what pandas hands out.
        array = array if array.flags.writeable else array.copy()
        return torch.as_tensor(array, dtype=dtype, device=reference.device)
    dtype = getattr(reference, "dtype", np.dtype(float))
    dtype = dtype if np.issubdtype(dtype, np.floating) else np.dtype(float)
    return to_numpy(values).astype(dtype, copy=False)
