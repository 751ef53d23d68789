"""Open the data files that ship inside the package."""

from __future__ import annotations

from importlib.resources import files
from typing import IO

__all__ = ["open_bundled", "read_bundled_text"]


def open_bundled(name: str) -> IO[bytes]:
    r"""Open a file of ``likewise/datasets/data`` for reading bytes.

    Examples
    --------
    >>> with open_bundled("german.csv.gz") as stream:
    ...     stream.read(2) == b"\x1f\x8b"
    True
    """
    return files("likewise.datasets").joinpath("data", name).open("rb")


def read_bundled_text(name: str) -> str:
    """Return the whole text of a small bundled file.

    Examples
    --------
    >>> read_bundled_text("census_first_names.csv").splitlines()[0]
    'name,sex,percent'
    """
    with open_bundled(name) as stream:
        return stream.read().decode("utf-8")
