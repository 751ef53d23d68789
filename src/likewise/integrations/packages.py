"""Packages of others that an integration meets; an absent one is named with the command that installs it."""

from __future__ import annotations

import importlib
from types import ModuleType

from likewise.core.errors import MissingExtraError

__all__ = ["require_package"]


def require_package(module: str, *, why: str) -> ModuleType:
    """Import a package that no extra of likewise brings, or say how to get it.

    Parameters
    ----------
    module : str
        Also what it is installed by.
    why : str
        What needs it, as the start of a sentence.

    Examples
    --------
    >>> require_package("json", why="Reading").__name__
    'json'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise MissingExtraError(
            f"{why} needs {module!r}, which is not installed. Run: pip install {module}"
        ) from error
