"""Safetensors files, read once their header agrees with the file: no size is believed before it is checked."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any, Literal

from likewise.core.errors import FormatError
from likewise.core.plain_forms import Fields, ListOf, MapOf, OneOf, Whole, check_form

__all__ = ["check_header", "read_description", "read_tensors"]

MAX_HEADER = 64 * 2**20
_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
    "I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8,
}  # fmt: skip
_TENSOR = Fields(
    {
        "dtype": OneOf(tuple(_BYTES)),
        "shape": ListOf(Whole(), most=16),
        "data_offsets": ListOf(Whole(), most=2),
    }
)


def check_header(path: Path) -> dict[str, str]:
    """Return the metadata of a safetensors file whose header and size agree.

    Raises
    ------
    FormatError
        Says what does not.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(MAX_HEADER, size - 8):
            raise FormatError(f"its header claims {length:,} bytes of {size:,}")
        try:
            header = json.loads(file.read(length))
        except (ValueError, RecursionError) as error:
            raise FormatError(f"its header is no JSON ({type(error).__name__})") from error
    check_form(header, dict, "its header")
    metadata: dict[str, str] = check_form(header.pop("__metadata__", {}), MapOf(str), "its metadata")
    room = size - 8 - length
    for name, tensor in header.items():
        check_form(tensor, _TENSOR, f"the tensor {name[:60]!r}")
        start, end = tensor["data_offsets"] if len(tensor["data_offsets"]) == 2 else (0, -1)
        needed = math.prod(tensor["shape"]) * _BYTES[tensor["dtype"]]
        if not start <= end <= room or end - start != needed:
            raise FormatError(
                f"the tensor {name[:60]!r} of shape {tensor['shape'][:4]} needs {needed:,} bytes, and has {end - start:,} "
                f"of {room:,}"
            )
    return metadata


def read_tensors(
    path: str | os.PathLike[str], framework: Literal["numpy", "pt"]
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the metadata and the tensors of a safetensors file.

    Parameters
    ----------
    path : path-like
        Of a file that exists.
    framework : {"numpy", "pt"}
        What the tensors shall be.

    Raises
    ------
    FormatError
        When it is no readable safetensors file, or its header and its size do not agree.
    """
    from safetensors import SafetensorError, safe_open

    where = Path(path)
    try:
        metadata = check_header(where)
        with safe_open(where, framework=framework) as file:
            return metadata, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
        raise FormatError(
            f"{where.name} is no readable safetensors file: {error}. It is damaged or of another kind."
        ) from error


def read_description(metadata: dict[str, str], key: str, name: str) -> dict[str, Any]:
    """Return the JSON object that a file's metadata has under a key; an empty one where it has none.

    Examples
    --------
    >>> read_description({"likewise": "[1]"}, "likewise", "model.safetensors")
    Traceback (most recent call last):
    ...
    likewise.core.errors.FormatError: model.safetensors is damaged: its description must be a mapping, got a list.
    """
    try:
        found: dict[str, Any] = check_form(json.loads(metadata.get(key, "{}")), dict, "its description")
    except FormatError as error:
        raise FormatError(f"{name} is damaged: {error}.") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(
            f"{name} is damaged: its description is no JSON ({type(error).__name__})."
        ) from error
    return found
