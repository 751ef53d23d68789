"""Where a result comes from: when, of which table and model, by which versions and command."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import platform
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from likewise._version import __version__
from likewise.core.errors import installed_versions

# Always there, and those that were loaded to read or run the model.
_ALWAYS = ("numpy", "pandas", "scikit-learn", "torch")
_IF_LOADED = {
    "xgboost": ("xgboost", "xgboost-cpu"),
    "lightgbm": ("lightgbm",),
    "catboost": ("catboost",),
    "onnxruntime": ("onnxruntime",),
    "skops": ("skops",),
    "dask": ("dask",),
}


@dataclass(frozen=True)
class SourceFile:
    """A table or a model by name and content."""

    name: str
    sha256: str | None

    @classmethod
    def of(cls, source: str | os.PathLike[str]) -> SourceFile:
        """Name and hash a file, a folder, a pattern of files, or anything else that was named."""
        found = hash_of(source)
        return cls(os.fspath(source) if found is None else Path(source).name, found)


@dataclass(frozen=True)
class Provenance:
    """Everything needed to know a result again, and to find it again.

    Parameters
    ----------
    made : str
        Date and time in UTC, ISO 8601.
    tables, models : tuple of SourceFile
    seed : int or None
    command : str or None
        The command line, every choice that is not the default.
    versions : mapping of str to str
        likewise, Python and the libraries that took part.

    Examples
    --------
    >>> import os
    >>> os.environ["SOURCE_DATE_EPOCH"] = "0"
    >>> Provenance.now(seed=3).made
    '1970-01-01T00:00:00Z'
    >>> del os.environ["SOURCE_DATE_EPOCH"]
    """

    made: str
    tables: tuple[SourceFile, ...] = ()
    models: tuple[SourceFile, ...] = ()
    seed: int | None = None
    command: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def now(
        cls,
        *,
        tables: Iterable[str | os.PathLike[str]] = (),
        models: Iterable[str | os.PathLike[str]] = (),
        seed: int | None = None,
        command: str | None = None,
    ) -> Provenance:
        """Note what is known at this moment.

        Parameters
        ----------
        tables, models : iterable of path-like
            Hashed if they are files.
        seed : int, optional
        command : str, optional

        Returns
        -------
        Provenance
            Of the time in ``SOURCE_DATE_EPOCH`` if that is set, as reproducible builds do.
        """
        return cls(
            made=_time(),
            tables=tuple(SourceFile.of(table) for table in tables),
            models=tuple(SourceFile.of(model) for model in models),
            seed=seed,
            command=command,
            versions=_versions(),
        )

    def document(self) -> dict[str, Any]:
        """Return plain values."""
        found = dataclasses.asdict(self)
        return found | {name: list(found[name]) for name in ("tables", "models")}


def hash_of(source: str | os.PathLike[str]) -> str | None:
    """Return the SHA-256 of a file, or of all files of a folder or a pattern by name; None if there is none."""
    path = Path(source)
    if path.is_file():
        return _digest(path)
    if path.is_dir():
        files = sorted(one for one in path.rglob("*") if one.is_file())
    else:
        pattern = path.relative_to(path.anchor).as_posix()
        files = sorted(one for one in Path(path.anchor or ".").glob(pattern) if one.is_file())
        path = Path(os.path.commonpath(files)) if files else path
    if not files:
        return None
    total = hashlib.sha256()
    for one in files:
        name = one.relative_to(path).as_posix() if one != path else one.name
        total.update(f"{_digest(one)}  {name}\n".encode())
    return total.hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        # The system's own files (/proc) have no size, and reading some of them never ends.
        if not os.fstat(stream.fileno()).st_size:
            return hashlib.sha256().hexdigest()
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _time() -> str:
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = int(given) if given.isdigit() else time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))


def _versions() -> dict[str, str]:
    loaded = [name for module, names in _IF_LOADED.items() if module in sys.modules for name in names]
    found = {"likewise": __version__, "python": platform.python_version()}
    return found | installed_versions([*_ALWAYS, *loaded])
