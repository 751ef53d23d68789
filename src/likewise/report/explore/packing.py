"""Arrays as text: the smallest type that holds every number exactly, its bytes in base64."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

__all__ = ["pack", "unpack"]

# In the order of their size; the names are those that `evaluate.js` knows.
_WHOLE = {"u1": np.uint8, "i2": np.int16, "u2": np.uint16, "i4": np.int32}
_REAL = {"f4": np.float32, "f8": np.float64}


def pack(values: Any) -> dict[str, Any]:
    """Return an array as JSON values, exactly.

    Parameters
    ----------
    values : array of bools, whole numbers or floats
        Finite or not; NaN is kept too.

    Returns
    -------
    dict
        ``type`` of the elements, ``shape``, and ``data``: little-endian bytes in base64.

    Examples
    --------
    >>> pack(np.array([1, 2, 300]))
    {'type': 'i2', 'shape': [3], 'data': 'AQACACwB'}
    >>> pack(np.array([0.5]))["type"], pack(np.array([0.1]))["type"]
    ('f4', 'f8')
    """
    array = np.asarray(values)
    array = array.astype(np.int64) if array.dtype.kind == "b" else array
    types: dict[str, Any] = _REAL if array.dtype.kind == "f" else _WHOLE
    for name, dtype in types.items():
        with np.errstate(over="ignore", invalid="ignore"):
            held = array.astype(dtype)
        if np.array_equal(held.astype(array.dtype), array, equal_nan=array.dtype.kind == "f"):
            data = base64.b64encode(held.astype(f"<{np.dtype(dtype).str[1:]}").tobytes()).decode()
            return {"type": name, "shape": list(array.shape), "data": data}
    raise OverflowError(f"pack: no type holds whole numbers up to {array.max()}")


def unpack(packed: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Return the array that `pack` wrote.

    Examples
    --------
    >>> unpack(pack(np.array([[0.5, np.inf]])))
    array([[0.5, inf]], dtype=float32)
    """
    dtype = np.dtype((_WHOLE | _REAL)[packed["type"]]).newbyteorder("<")
    return np.frombuffer(base64.b64decode(packed["data"]), dtype=dtype).reshape(packed["shape"])
