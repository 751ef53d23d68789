"""How much a process that runs somebody else's model file may use."""

from __future__ import annotations

import os
from dataclasses import dataclass

from likewise.core.errors import bad_parameter

__all__ = ["MEMORY", "SECONDS", "Limits"]

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
        raise bad_parameter("environment", name, allowed="a number > 0", got=text)
    return value
