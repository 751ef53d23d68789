"""Loops that are compiled where numba is installed (extra ``fast``), and run as they are where it is not."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def _numba() -> Any:
    try:
        import numba
    except ImportError:
        return None
    return numba


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of plain arrays, or return it as it is.

    Nothing is reordered (no fast maths), so both give the same numbers.
    """
    numba = _numba()
    if numba is None:
        return function
    # A function typed at a prompt has no file beside which code could be kept.
    on_disk = not function.__code__.co_filename.startswith("<")
    made: Callable[..., Any] = numba.njit(cache=on_disk, error_model="numpy", no_cfunc_wrapper=True)(function)
    return made


def is_compiled() -> bool:
    """Whether `compiled` compiles here."""
    return _numba() is not None
