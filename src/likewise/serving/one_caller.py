"""A function that is called by one thread at a time, whatever it does inside."""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["one_caller"]


def one_caller(native: Any) -> Any:
    """Return a model that a page and an audit may ask at the same time.

    Only functions are changed: nobody knows what they share. The libraries' own models can be asked by several threads,
    and a model file in a process of its own answers one question after the other anyway.

    Parameters
    ----------
    native : object
        A model as the user has it.

    Examples
    --------
    >>> one_caller(abs)(-1)
    1
    """
    known = hasattr(native, "predict") or hasattr(native, "forward")
    return _OneCaller(native) if callable(native) and not known else native


class _OneCaller:
    """A function behind a lock; everything else about it is as it was."""

    def __init__(self, function: Any) -> None:
        self._function, self._lock = function, threading.Lock()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return self._function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name not in ("__self__", "__name__"):
            raise AttributeError(name)
        return getattr(self._function, name)
