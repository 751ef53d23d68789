"""Names that changed: the old one works for one release, and says what the new one is."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from likewise.core.errors import InputError

__all__ = ["renamed_parameters", "warn_renamed"]

Target = TypeVar("Target", bound=Callable[..., Any])


def warn_renamed(old: str, new: str, *, stacklevel: int = 3) -> None:
    """Give the `DeprecationWarning` of a name that changed.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_renamed("likewise.Euclidean", "likewise.euclidean")
    >>> print(caught[0].message)
    likewise.Euclidean is now called likewise.euclidean; the old name goes in the next release.
    """
    warnings.warn(
        f"{old} is now called {new}; the old name goes in the next release.",
        DeprecationWarning,
        stacklevel=stacklevel,
    )


def renamed_parameters(**new_names: str) -> Callable[[Target], Target]:
    """Make a function or a class take parameters by their old names too, with a `DeprecationWarning`.

    Parameters
    ----------
    **new_names : str
        Old name to new name. The signature shows the new one alone.

    Returns
    -------
    callable
        The decorator.

    Examples
    --------
    >>> @renamed_parameters(lam="lambda_")
    ... def price(distance, lambda_):
    ...     return distance * lambda_
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     price(2.0, lam=3.0)
    6.0
    """

    def decorate(target: Target) -> Target:
        owner = target.__qualname__

        def translated(given: dict[str, Any]) -> dict[str, Any]:
            for old, new in new_names.items():
                if old in given:
                    if new in given:
                        raise InputError(f"{owner}: {old!r} is {new!r} by its old name. Pass {new!r} alone.")
                    warn_renamed(f"{owner}({old}=...)", f"{owner}({new}=...)", stacklevel=4)
                    given = {new if name == old else name: value for name, value in given.items()}
            return given

        if not isinstance(target, type):

            @functools.wraps(target)
            def call(*args: Any, **given: Any) -> Any:
                return target(*args, **translated(given))

            return call  # type: ignore[return-value]

        made = target.__init__  # type: ignore[misc]

        @functools.wraps(made)
        def init(self: Any, *args: Any, **given: Any) -> None:
            made(self, *args, **translated(given))

        target.__init__ = init  # type: ignore[misc]
        return target

    return decorate
