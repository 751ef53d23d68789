"""A scorer of texts from a Python file: `judge.py:score`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from likewise.core.errors import InputError

__all__ = ["load_scorer"]


def load_scorer(source: str) -> Any:
    """Run a Python file and return the function (or model) it defines.

    Parameters
    ----------
    source : str
        ``FILE.py:NAME``. The file is the user's own code and is run.
    """
    file, colon, name = source.rpartition(":")
    path = Path(file)
    if not colon or not name.isidentifier() or path.suffix != ".py":
        raise InputError(f"--scorer must be FILE.py:NAME, such as judge.py:score, got {source!r}.")
    if not path.is_file():
        raise InputError(f"--scorer: there is no file {file!r}. Check the path.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(f"--scorer: {path.name} failed ({type(error).__name__}: {error}).") from error
    if not hasattr(module, name):
        raise InputError(f"--scorer: {path.name} defines no {name!r}.")
    return getattr(module, name)
