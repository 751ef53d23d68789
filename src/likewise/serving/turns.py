"""One thing at a time: work that a browser asks for waits its turn, and too much of it is refused."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from likewise.core.errors import LikewiseError, ModelError

__all__ = ["BusyError", "Turns"]

T = TypeVar("T")


class BusyError(LikewiseError):
    """So much is waiting already that nothing more is taken."""


class Turns:
    """A thread that does one piece of work after the other.

    Parameters
    ----------
    name : str
        Of the thread.
    waiting : int
        Pieces that may wait.
    """

    def __init__(self, name: str, waiting: int) -> None:
        self._queue: queue.Queue[Any] = queue.Queue(waiting)
        self._name, self._thread = name, threading.Thread()
        self._lock = threading.Lock()

    async def run(self, work: Callable[[], T]) -> T:
        """Do a piece of work in its turn, and return or raise what it does.

        Raises
        ------
        BusyError
            Too much is waiting.
        """
        self._begin()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        try:
            self._queue.put_nowait((work, loop, done))
        except queue.Full as error:
            raise BusyError(
                "The model has more questions than it can answer. Try again in a moment."
            ) from error
        return await done

    def _begin(self) -> None:
        with self._lock:
            if not self._thread.is_alive():
                # A daemon, so that the end of the server does not wait for a model that never answers.
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()

    def _work(self) -> None:
        while True:
            work, loop, done = self._queue.get()
            try:
                outcome: Any = work()
                failed: Exception | None = None
            except Exception as error:
                outcome, failed = None, error
            except BaseException as error:  # a model that ends its process does not end the server
                outcome, failed = None, ModelError(f"The model raised {type(error).__name__}.")
            try:
                loop.call_soon_threadsafe(_settle, done, outcome, failed)
            except RuntimeError:
                return  # the server has ended
            del work, outcome, failed, done


def _settle(done: asyncio.Future[Any], outcome: Any, failed: Exception | None) -> None:
    if done.done():
        return
    if failed is None:
        done.set_result(outcome)
    else:
        done.set_exception(failed)
