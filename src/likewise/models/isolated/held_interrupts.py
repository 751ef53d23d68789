"""Ctrl-C that waits for the end of something short, and is heard at once when it is pressed again."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["held_interrupts"]


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Run a block to its end before Ctrl-C is heard; a second Ctrl-C is heard inside it.

    Only the main thread hears Ctrl-C, and only where somebody listens; elsewhere the block is run as it is.

    Examples
    --------
    >>> done = False
    >>> try:
    ...     with held_interrupts():
    ...         signal.raise_signal(signal.SIGINT)
    ...         done = True
    ... except KeyboardInterrupt:
    ...     print("heard, done:", done)
    heard, done: True
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    heard: list[Any] = []

    def hold(number: int, frame: Any) -> None:
        heard.append(number)
        if len(heard) > 1:
            before(number, frame)

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if heard:
            before(heard[0], None)
