"""Files and folders are written whole or not at all: beside the target first, then renamed onto it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["atomic_folder", "atomic_path"]


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside `path`; rename it onto `path` when the block ends without an error.

    Parameters
    ----------
    path : path-like
        Where the finished file goes. Its folder must exist.

    Yields
    ------
    Path
        A path in the same folder with the same suffix, to be written in the block.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
    >>> with atomic_path(target) as temporary:
    ...     _ = temporary.write_text("whole")
    >>> target.read_text(), len(list(target.parent.iterdir()))
    ('whole', 1)
    """
    target = Path(path)
    handle, name = tempfile.mkstemp(prefix=f".{target.stem}-", suffix=target.suffix, dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
        temporary.chmod(mode)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary folder beside `path`; put it in the place of `path` when the block ends without an error.

    Parameters
    ----------
    path : path-like
        Where the finished folder goes. Its parent must exist. What stands there already is replaced: it is moved aside
        first and deleted last, so that one of the two is always whole.

    Yields
    ------
    Path
        An empty folder to be filled in the block.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "results"
    >>> with atomic_folder(target) as folder:
    ...     _ = (folder / "a.txt").write_text("whole")
    >>> [one.name for one in target.parent.iterdir()], [one.name for one in target.iterdir()]
    (['results'], ['a.txt'])
    """
    target = Path(path)
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    aside = temporary.with_name(f"{temporary.name}-old")
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        if target.exists():
            target.rename(aside)
        temporary.rename(target)
    finally:
        if aside.exists() and not target.exists():
            aside.rename(target)
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(aside, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
