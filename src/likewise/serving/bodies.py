"""What a browser sends, read no further than is allowed."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.core.errors import InputError

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["TooLargeError", "nesting", "read_body", "read_json"]

_WORD = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)


class TooLargeError(InputError):
    """More was sent than is read."""


async def read_body(request: Request, *, most: int, seconds: float) -> bytes:
    """Read a body, and stop as soon as it is too large or comes too slowly.

    Parameters
    ----------
    request : Request
        Of Starlette.
    most : int
        Bytes.
    seconds : float
        For all of it.

    Raises
    ------
    TooLargeError
    """
    said = request.headers.get("content-length", "0")
    if said.isdigit() and len(said) < 20 and int(said) > most:
        raise _too_large(most)
    parts, size = [], 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise _too_large(most)
                parts.append(part)
    except TimeoutError as error:
        raise InputError(f"The request did not arrive within {seconds:g} s. Try again.") from error
    return b"".join(parts)


async def read_json(request: Request, *, most: int, depth: int, seconds: float) -> dict[str, Any]:
    """Read a JSON object that is neither too large nor nested too deeply.

    Parameters
    ----------
    request, most, seconds
        As in `read_body`.
    depth : int
        Of arrays and objects in each other.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise InputError("The request is no JSON. Send it as application/json.")
    body = await read_body(request, most=most, seconds=seconds)
    if nesting(body) > depth:
        raise InputError(f"The request is nested deeper than {depth} levels.")
    try:
        found = json.loads(body.decode("utf-8"), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise InputError("The request is no valid JSON.") from error
    if not isinstance(found, dict):
        raise InputError("The request is no JSON object.")
    return found


def nesting(text: bytes) -> int:
    """Return how deep arrays and objects of a JSON text stand in each other; it is not parsed for that.

    Examples
    --------
    >>> nesting(b'{"rows": [[1, 2]]}'), nesting(b"")
    (3, 0)
    """
    signs = np.frombuffer(_WORD.sub(b"", text), dtype=np.uint8)
    step = np.isin(signs, (0x5B, 0x7B)).astype(np.int64) - np.isin(signs, (0x5D, 0x7D))
    return int(np.cumsum(step).max(initial=0))


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


def _too_large(most: int) -> TooLargeError:
    size = f"{most / 2**20:g} MB" if most >= 2**20 else f"{most:,} bytes"
    return TooLargeError(f"The request is larger than {size}, which is the most that this server takes.")
