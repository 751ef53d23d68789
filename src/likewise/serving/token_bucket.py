"""How often something may happen: a bucket that fills at a rate, and from which everything takes one."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["TokenBucket"]


class TokenBucket:
    """So many at once, and so many per second after that.

    Parameters
    ----------
    per_second : float
        How fast the bucket fills.
    burst : int
        How much it holds.
    clock : callable, default=time.monotonic
        Seconds that never go back.

    Examples
    --------
    >>> now = [0.0]
    >>> bucket = TokenBucket(1.0, 2, clock=lambda: now[0])
    >>> [bucket.take() for _ in range(3)]
    [True, True, False]
    >>> now[0] = 1.0
    >>> bucket.take(), bucket.take()
    (True, False)
    """

    def __init__(self, per_second: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._size, self._clock = float(per_second), float(burst), clock
        self._left, self._last = float(burst), clock()

    def take(self) -> bool:
        """Take one, if there is one."""
        now = self._clock()
        self._left = min(self._size, self._left + (now - self._last) * self._rate)
        self._last = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
