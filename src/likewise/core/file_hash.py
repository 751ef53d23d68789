"""Which bytes were read: the SHA-256 of files, so that a repetition can tell whether they are still the same."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

__all__ = ["sha256_of"]


def sha256_of(*paths: str | Path) -> str:
    """Return the SHA-256 of a file, or of the list of the SHA-256 of several, in hexadecimal.

    Parameters
    ----------
    *paths : path-like
        One file or more, in an order that matters.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "empty"
    >>> path.touch()
    >>> sha256_of(path)[:16]
    'e3b0c44298fc1c14'
    """
    hashes = [_of_file(Path(path)) for path in paths]
    return hashes[0] if len(hashes) == 1 else _of_list(hashes)


def _of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _of_list(hashes: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()
