"""Files that can run code when they are loaded: only opened when the user says so, and told what that means."""

from __future__ import annotations

import importlib
import io
import warnings
from pathlib import Path
from typing import Any

from likewise.core.errors import FormatError, InputError
from likewise.models.containers import Container

__all__ = ["UnsafeFileWarning", "check_allowed", "load_unsafe"]

_NAMES = {
    "pickle": "a pickle (or joblib) file",
    "torch": "a torch file with a pickle inside",
    "torchscript": "a TorchScript program",
    "pt2": "a torch.export program (.pt2)",
}


class UnsafeFileWarning(UserWarning):
    """A file that can run any code was loaded because the user allowed it."""


def check_allowed(kind: Container, path: Path, *, allow_pickle: bool) -> None:
    """Refuse a file that can run code, unless it was allowed; then warn.

    Examples
    --------
    >>> check_allowed("pickle", Path("model.pkl"), allow_pickle=False)
    Traceback (most recent call last):
    ...
    likewise.core.errors.InputError: model.pkl is a pickle (or joblib) file, which can run any code on this machine when it is loaded, so it was not opened. Save the model with skops.io.dump or as ONNX; or, if you made the file yourself, pass allow_pickle=True (--allow-pickle).
    """
    if not allow_pickle:
        better = "with skops.io.dump or as ONNX" if kind == "pickle" else "as ONNX (torch.onnx.export)"
        raise InputError(
            f"{path.name} is {_NAMES[kind]}, which can run any code on this machine when it is loaded, so it was not "
            f"opened. Save the model {better}; or, if you made the file yourself, pass allow_pickle=True "
            "(--allow-pickle)."
        )
    warnings.warn(
        f"{path.name} is {_NAMES[kind]}. Loading it can run any code that its maker put there: read or delete files, "
        "send data away. Load only files from people you trust.",
        UnsafeFileWarning,
        stacklevel=3,
    )


def load_unsafe(kind: Container, data: bytes, path: Path) -> Any:
    """Load a file that `check_allowed` let through.

    Parameters
    ----------
    kind : {"pickle", "torch", "torchscript", "pt2"}
    data : bytes
        The file.
    path : Path
        For the error message.
    """
    try:
        loaded = _load(kind, data)
    except Exception as error:
        raise FormatError(f"{path.name} cannot be loaded: {type(error).__name__}: {error}") from error
    if isinstance(loaded, dict):
        raise FormatError(
            f"{path.name} holds a dictionary ({', '.join(map(str, list(loaded)[:4]))}, …), not a model. "
            "Weights need the module they belong to: save the module, export it to ONNX, or pass an import path."
        )
    return loaded


def _load(kind: Container, data: bytes) -> Any:
    stream = io.BytesIO(data)
    if kind == "pickle" and not _is_old_torch(data):
        return importlib.import_module("joblib").load(stream)
    import torch

    if kind == "pt2":
        return torch.export.load(stream).module()
    if kind == "torchscript":
        return torch.jit.load(stream, map_location="cpu")  # type: ignore[no-untyped-call]
    return torch.load(stream, map_location="cpu", weights_only=False)


def _is_old_torch(data: bytes) -> bool:
    """Whether a pickle begins with torch's magic number of files before 1.6."""
    return data[2:15].startswith(b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19")
