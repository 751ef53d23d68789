"""Files a verb will write: checked before any work is done, so that nobody waits for a refusal."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path

from likewise.core.errors import InputError
from likewise.core.extras import require

__all__ = ["can_write_pages", "check_outputs"]


def can_write_pages() -> bool:
    """Whether what pages are made with is installed; it comes with the extra "report"."""
    return importlib.util.find_spec("jinja2") is not None


def check_outputs(
    paths: Sequence[Path | None], *, force: bool, suffixes: Sequence[str] = (), option: str = "-o"
) -> None:
    """Raise unless every file can be written where it should go.

    Parameters
    ----------
    paths : sequence of Path or None
        None is nothing to write.
    force : bool
        Whether existing files may be replaced.
    suffixes : sequence of str, optional
        What their names must end in.
    option : str
        For the message about the ending.
    """
    wanted = [path for path in paths if path is not None]
    if any(path.suffix == ".html" for path in wanted):
        require("jinja2", extra="report", why="Writing a page")
    for path in wanted:
        if not path.parent.is_dir():
            raise InputError(f"The folder {str(path.parent)!r} does not exist. Make it first.")
        if path.is_dir():
            raise InputError(f"{str(path)!r} is a folder. Name a file in it.")
        if path.exists() and not force:
            raise InputError(f"{path} exists already. Choose another name, or pass --force to replace it.")
        if not os.access(path.parent, os.W_OK):
            raise InputError(f"The folder {str(path.parent)!r} cannot be written to.")
        if suffixes and not path.name.endswith(tuple(suffixes)):
            raise InputError(f"{option} must end in {' or '.join(suffixes)}, got {path.name!r}.")
    if len({path.absolute() for path in wanted}) < len(wanted):
        raise InputError("Two outputs have the same name. Give each its own.")
