"""Messages between two processes: one JSON object and plain arrays, without anything executable.

A message is a mark, the length of the JSON, the JSON, and the bytes of the arrays that it announces. Whoever receives
says how many bytes of arrays it takes; no more is ever allocated.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from likewise.core.errors import FormatError, bad_parameter
from likewise.core.files import Fields, ListOf, OneOf, Whole, check_form

# How much a process that runs a model file of another library may use.


# Environment variables for models that need more than the defaults.
MEMORY = "LIKEWISE_MODEL_GB"
SECONDS = "LIKEWISE_MODEL_SECONDS"

_GB = 2**30


@dataclass(frozen=True)
class Limits:
    """What a model file may use while it is loaded and asked.

    Parameters
    ----------
    memory : int, default=4 GiB
        Bytes of memory of its process, libraries not counted.
    seconds : float, default=300
        Time that loading the file, or one question about up to 65,536 people, may take.

    Examples
    --------
    >>> Limits().gigabytes
    4.0
    """

    memory: int = 4 * _GB
    seconds: float = 300.0

    @property
    def gigabytes(self) -> float:
        """The memory in GiB."""
        return round(self.memory / _GB, 2)

    @classmethod
    def from_environment(cls, file_size: int = 0) -> Limits:
        """Return the limits that the environment names, else defaults that leave room for a file of this size.

        Examples
        --------
        >>> Limits.from_environment(file_size=2**30).gigabytes
        16.0
        """
        roomy = max(cls.memory, 16 * file_size)
        memory, seconds = _number(MEMORY), _number(SECONDS)
        return cls(
            roomy if memory is None else int(memory * _GB), cls.seconds if seconds is None else seconds
        )


def _number(name: str) -> float | None:
    text = os.environ.get(name)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e6:
        raise bad_parameter("environment", name, "a number > 0", text)
    return value


Array = np.ndarray[Any, np.dtype[Any]]

MAX_TEXT = 64 * 2**20
_MARK = b"LWM1"
_START = struct.Struct("<4sI")
_TYPES = ("<f8", "<f4", "<f2", "<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1", "|b1")
_ARRAYS = ListOf(Fields({"type": OneOf(_TYPES), "shape": ListOf(Whole(), most=3)}), most=10_000)


def send(stream: BinaryIO, text: dict[str, Any], arrays: Sequence[Array] = ()) -> None:
    """Write a message."""
    parts = [_little(array) for array in arrays]
    about = [{"type": part.dtype.str, "shape": list(part.shape)} for part in parts]
    data = json.dumps({"text": text, "arrays": about}).encode()
    stream.write(_START.pack(_MARK, len(data)) + data)
    for part in parts:
        if part.size:
            stream.write(part.reshape(-1).view(np.uint8).data)
    stream.flush()


def receive(stream: BinaryIO, *, most: int) -> tuple[dict[str, Any], list[Array]]:
    """Read a message."""
    mark, length = _START.unpack(_exactly(stream, _START.size))
    if mark != _MARK or length > MAX_TEXT:
        raise FormatError("the answer is not a message")
    try:
        document = json.loads(_exactly(stream, length))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the answer is not JSON ({type(error).__name__})") from error
    check_form(document, Fields({"text": dict, "arrays": _ARRAYS}), "the answer")
    sizes = [np.dtype(a["type"]).itemsize * math.prod(a["shape"]) for a in document["arrays"]]
    if sum(sizes) > most:
        raise FormatError(f"the answer has {sum(sizes):,} bytes, and at most {most:,} were expected")
    arrays = []
    for about in document["arrays"]:
        array = np.empty(about["shape"], dtype=np.dtype(about["type"]))
        if array.size:
            _fill(stream, array.reshape(-1).view(np.uint8).data)
        arrays.append(array)
    return document["text"], arrays


def _little(array: Array) -> Array:
    """The array in one piece, lowest byte first."""
    piece = np.ascontiguousarray(array)
    return piece.astype(piece.dtype.newbyteorder("<"), copy=False)


def _exactly(stream: BinaryIO, size: int) -> bytes:
    data = bytearray(size)
    _fill(stream, memoryview(data))
    return bytes(data)


def _fill(stream: Any, room: memoryview) -> None:
    while len(room):
        got = stream.readinto(room)
        if not got:
            raise EOFError
        room = room[got:]
