"""Optional dependencies load when used; an absent one says which extra to install."""

from __future__ import annotations

import importlib
from types import ModuleType

from likewise.core.errors import MissingExtraError

__all__ = ["require"]


def require(module: str, *, extra: str, why: str) -> ModuleType:
    """Import an optional module, or raise an error that tells how to get it.

    Parameters
    ----------
    module : str
        Name to import, such as ``"onnxruntime"``.
    extra : str
        The extra of this package that brings it.
    why : str
        What needs it, as the start of a sentence: ``"Auditing an ONNX model"``.

    Returns
    -------
    module

    Examples
    --------
    >>> require("json", extra="onnx", why="Reading").__name__
    'json'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.split(".")[0] != module.split(".")[0]:
            raise
        raise MissingExtraError(
            f"{why} needs {module!r}, which is not installed. Run: pip install 'likewise[{extra}]'"
        ) from error
