"""Calls that cost money: no faster than allowed, tried again when the server is busy, never more than the cap."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from likewise.core.checks import check_number
from likewise.core.errors import LikewiseError, ModelError, NotConvergedError, bad_parameter

__all__ = ["BudgetError", "CallLimits", "CarefulCaller"]

_TRY_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


class BudgetError(NotConvergedError):
    """The cap on calls was reached; what was paid for is kept.

    Examples
    --------
    >>> from likewise.text import CallLimits, NameSwap, audit_texts
    >>> try:
    ...     audit_texts(len, ["Emily wrote it."], edits=[NameSwap(names=("Lakisha",))], limits=CallLimits(max_calls=1))
    ... except BudgetError:
    ...     print("stopped before the cap")
    stopped before the cap
    """


@dataclass(frozen=True)
class CallLimits:
    """How a scorer may be called.

    Parameters
    ----------
    max_calls : int or None, default=None
        No call is made beyond so many in this run; a call that failed counts, since it may have been paid.
    per_second : float or None, default=None
        Calls per second at most.
    retries : int, default=6
        How often to try one text again when the server is busy or cannot be reached.
    first_wait, longest_wait : float, default=1.0, 60.0
        Seconds before the first retry, doubled each time up to the longest; a server that says how long to
        wait (Retry-After) is believed up to the longest.

    Examples
    --------
    >>> CallLimits(max_calls=100, per_second=2.0).wait(3)
    8.0
    """

    max_calls: int | None = None
    per_second: float | None = None
    retries: int = 6
    first_wait: float = 1.0
    longest_wait: float = 60.0

    def __post_init__(self) -> None:
        owner = "CallLimits"
        if self.max_calls is not None and self.max_calls < 0:
            raise bad_parameter(owner, "max_calls", allowed="an int >= 0 or None", got=self.max_calls)
        if self.per_second is not None and not self.per_second > 0:
            raise bad_parameter(owner, "per_second", allowed="a number > 0 or None", got=self.per_second)
        if self.retries < 0:
            raise bad_parameter(owner, "retries", allowed="an int >= 0", got=self.retries)
        for name in ("first_wait", "longest_wait"):
            check_number(getattr(self, name), owner=owner, name=name, low=0.0)

    def wait(self, attempt: int) -> float:
        """Return the seconds to wait after attempt number `attempt` (0 is the first)."""
        return float(min(self.first_wait * 2.0**attempt, self.longest_wait))


@dataclass(eq=False)
class CarefulCaller:
    """Calls a scorer within limits.

    Parameters
    ----------
    scorer : callable
        Text to reply.
    limits : CallLimits
    sleep, clock : callables
        For tests.
    """

    scorer: Callable[[str], Any]
    limits: CallLimits = field(default_factory=CallLimits)
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    calls: int = 0
    _next: float = 0.0

    def __call__(self, text: str) -> Any:
        """Ask for one text."""
        for attempt in range(self.limits.retries + 1):
            self._take_turn()
            try:
                return self.scorer(text)
            except LikewiseError:
                raise
            except Exception as error:
                last = error
                _let_go(error)
                if not worth_another_try(error):
                    raise ModelError(f"The scorer failed: {type(error).__name__}: {error}") from error
                if attempt < self.limits.retries:
                    self.sleep(_asked_wait(error, self.limits) or self.limits.wait(attempt))
        raise NotConvergedError(
            f"The scorer failed {self.limits.retries + 1} times in a row ({type(last).__name__}: {last}). What was "
            "scored so far is in the cache: run again later."
        ) from last

    def _take_turn(self) -> None:
        limits = self.limits
        if limits.max_calls is not None and self.calls >= limits.max_calls:
            raise BudgetError(
                f"The cap of {limits.max_calls} calls is reached. What was scored so far is in the cache, if one was "
                "given: run again with a larger cap to go on."
            )
        if limits.per_second is not None:
            now = self.clock()
            if now < self._next:
                self.sleep(self._next - now)
            self._next = max(now, self._next) + 1.0 / limits.per_second
        self.calls += 1


def worth_another_try(error: Exception) -> bool:
    """Whether a failure may pass: the server is busy or broken, or cannot be reached.

    Examples
    --------
    >>> worth_another_try(ConnectionResetError()), worth_another_try(ValueError("no number"))
    (True, False)
    """
    status = _status(error)
    if status is not None:
        return status in _TRY_AGAIN
    if isinstance(error, (FileNotFoundError, PermissionError, IsADirectoryError)):
        return False
    return isinstance(error, (OSError, TimeoutError)) or "Timeout" in type(error).__name__


def _status(error: Exception) -> int | None:
    """HTTP status of an error of urllib (code), requests and httpx (response.status_code) or an API client."""
    for owner, name in (
        (error, "status_code"),
        (error, "code"),
        (getattr(error, "response", None), "status_code"),
    ):
        value = getattr(owner, name, None)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def _asked_wait(error: Exception, limits: CallLimits) -> float | None:
    headers = getattr(error, "headers", None) or getattr(getattr(error, "response", None), "headers", None)
    try:
        return min(float(headers["Retry-After"]), limits.longest_wait) if headers is not None else None
    except (KeyError, TypeError, ValueError):
        return None


def _let_go(error: Exception) -> None:
    """Close the connection that an error of urllib still holds."""
    close = getattr(error, "close", None)
    if callable(close):
        close()
