"""The unfair map of everybody as a folder of Parquet files that workers write: there as a whole, or not at all."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

from likewise.auditing.parts.parquet_table import Part
from likewise.core.errors import InputError

__all__ = ["MapFolder"]


class MapFolder:
    """A folder that gets its name when every part of the map is in it.

    Parameters
    ----------
    path : str or Path
        Where the map goes; must not exist yet, or be an empty folder.

    Raises
    ------
    InputError
        Something is there already, or the parent is not.

    Examples
    --------
    >>> import tempfile
    >>> folder = MapFolder(Path(tempfile.mkdtemp()) / "map")
    >>> folder.open().is_dir(), folder.path.exists()
    (True, False)
    >>> folder.finish([])
    >>> folder.path.is_dir()
    True
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        if self.path.exists() and not (self.path.is_dir() and not any(self.path.iterdir())):
            raise InputError(f"audit: {path} exists. Choose another folder for the unfair map, or remove it.")
        if not self.path.parent.is_dir():
            raise InputError(f"audit: the folder {self.path.parent} does not exist. Make it first.")
        self._temporary = self.path.parent / f".{self.path.name}-{uuid.uuid4().hex}"

    def open(self) -> Path:
        """Make the folder that parts are written to."""
        self._temporary.mkdir()
        return self._temporary

    def finish(self, parts: Sequence[Part]) -> None:
        """Give the folder its name, once the file of every part is seen in it."""
        found = len(list(self._temporary.glob("part-*.parquet")))
        if found != len(parts):
            raise InputError(
                f"audit: {len(parts)} files of the unfair map were written, but {found} are seen here. The folder "
                f"{self.path.parent} must be the same one on every machine."
            )
        if self.path.exists():
            self.path.rmdir()
        self._temporary.rename(self.path)

    def discard(self) -> None:
        """Remove what is not finished."""
        shutil.rmtree(self._temporary, ignore_errors=True)
