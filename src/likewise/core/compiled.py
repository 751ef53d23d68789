"""Loops that are compiled if numba is installed (extra ``fast``), and run as they are if it is not."""

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


class _Compiled:
    """A function that is compiled when it is first called: many audits need none, and numba takes long to load."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._made: Callable[..., Any] | None = None

    def __call__(self, *given: Any) -> Any:
        return self.made()(*given)

    def made(self) -> Callable[..., Any]:
        """Return the compiled function; others that it calls by name are compiled as well."""
        if self._made is None:
            function, numba = self._function, _numba()
            if numba is not None:
                # A function typed at a prompt has no file beside which code could be kept.
                on_disk = not function.__code__.co_filename.startswith("<")
                function = numba.njit(cache=on_disk, error_model="numpy", no_cfunc_wrapper=True)(function)
                # What another loop calls is compiled for each combination of types: numba would do so for each
                # constant too.
                called, plain = function.get_call_template, numba.types.unliteral
                function.get_call_template = lambda args, kws: called(tuple(map(plain, args)), kws)
            self._made = function
            known, stamps = self._function.__globals__, []
            for name in self._function.__code__.co_names:
                callee = known.get(name)
                if isinstance(callee, _Compiled):
                    callee = known[name] = callee.made()
                stamps.append(getattr(_file_of(callee), "_source_stamp", None))
            file = _file_of(function)
            if file is not None:
                # What is called is compiled into this; numba itself would only see a change of this function's own file.
                file._source_stamp = file._source_stamp, *(stamp for stamp in stamps if stamp is not None)
        return self._made


def _file_of(function: Any) -> Any:
    """The file in which numba keeps what it compiled; None if there is none."""
    return getattr(getattr(function, "_cache", None), "_cache_file", None)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of plain arrays if numba is installed; else it runs as it is.

    Nothing is reordered (no fast maths), so both give the same numbers.
    """
    return _Compiled(function)


@compiled
def fill(target, source):  # type: ignore[no-untyped-def]
    """``target[:] = source`` for compiled loops, which would take seconds to compile the words of its error."""
    for i in range(len(source)):
        target[i] = source[i]


def is_compiled() -> bool:
    """Whether `compiled` compiles here."""
    return _numba() is not None


def is_loaded() -> bool:
    """Whether what `compiled` needs is loaded already; that takes about half a second."""
    return _numba.cache_info().currsize > 0
