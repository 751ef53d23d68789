"""Old names of keywords that are still taken for one release, with a warning."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from likewise.core.errors import InputError

__all__ = ["renamed_keyword", "warn_renamed"]

F = TypeVar("F", bound=Callable[..., Any])


def warn_renamed(owner: str, old: str, new: str, *, stacklevel: int = 2) -> None:
    """Warn that a name is on its way out.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     warn_renamed("Bound", "lam", "lambda_")
    >>> str(seen[0].message)
    "Bound: 'lam' is called 'lambda_' now, and the old name goes with the next release."
    """
    warnings.warn(
        f"{owner}: {old!r} is called {new!r} now, and the old name goes with the next release.",
        DeprecationWarning,
        stacklevel=stacklevel + 1,
    )


def renamed_keyword(old: str, new: str) -> Callable[[F], F]:
    """Let a function or a class still take a keyword by its old name.

    Parameters
    ----------
    old, new : str

    Returns
    -------
    callable
        A decorator. Of a class it wraps `__init__`, also for the classes that inherit it.

    Examples
    --------
    >>> @renamed_keyword("lam", "lambda_")
    ... def price(*, lambda_):
    ...     return lambda_
    >>> price(lambda_=2.0)
    2.0
    """

    def decorate(target: F) -> F:
        call = target.__init__ if isinstance(target, type) else target  # type: ignore[misc]

        @functools.wraps(call)
        def wrapped(*args: Any, **keywords: Any) -> Any:
            if old in keywords:
                owner = type(args[0]).__name__ if isinstance(target, type) else target.__name__
                if new in keywords:
                    raise InputError(f"{owner}: {old!r} and {new!r} are the same. Pass {new!r} only.")
                warn_renamed(owner, old, new)
                keywords[new] = keywords.pop(old)
            return call(*args, **keywords)

        if isinstance(target, type):
            target.__init__ = wrapped  # type: ignore[misc]
            return target
        return wrapped  # type: ignore[return-value]

    return decorate
