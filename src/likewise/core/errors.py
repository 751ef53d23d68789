"""Every exception of the package, in one tree under `LikewiseError`."""

from __future__ import annotations

__all__ = [
    "FormatError",
    "InputError",
    "LikewiseError",
    "MissingExtraError",
    "ModelError",
    "NotConvergedError",
    "UnfairError",
    "bad_parameter",
]


class LikewiseError(Exception):
    """Base of every error that the package raises on purpose."""


class InputError(LikewiseError, ValueError):
    """What the caller passed cannot be used; the message says what to do."""


class FormatError(InputError):
    """A file is not what it claims to be, is damaged, or comes from a newer version."""


class ModelError(LikewiseError, ValueError):
    """A model answered with something that cannot be scored (wrong shape, not finite, no classes)."""


class NotConvergedError(LikewiseError, RuntimeError):
    """A search or a training ended without a trustworthy answer."""


class UnfairError(LikewiseError):
    """A model did not pass the audit at the asked level."""


class MissingExtraError(LikewiseError, ImportError):
    """An optional dependency is needed and absent; the message names the extra to install."""


def bad_parameter(owner: str, name: str, *, allowed: str, got: object, remedy: str = "") -> InputError:
    """Build the error for one bad parameter: whose, which, what is allowed, what came, what to do.

    Parameters
    ----------
    owner : str
        The function or class whose parameter it is.
    name : str
        The parameter.
    allowed : str
        What may be passed, in words that follow "must be".
    got : object
        What came; shown with `repr` unless it is a string already written for a person.
    remedy : str, default=""
        One sentence that says what to do.

    Returns
    -------
    InputError
        To be raised by the caller.

    Examples
    --------
    >>> print(bad_parameter("audit", "eps", allowed="a number >= 0", got=-1, remedy="Pass eps=0."))
    audit: 'eps' must be a number >= 0, got -1. Pass eps=0.
    """
    shown = got if isinstance(got, str) else repr(got)
    return InputError(f"{owner}: {name!r} must be {allowed}, got {shown}." + (f" {remedy}" if remedy else ""))
