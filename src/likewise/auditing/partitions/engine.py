"""Where the parts of an audit are worked on: a small contract with one implementation here, in this process.

An audit of Parquet files is a few rounds of the same kind: a pure function of what all parts share and of one part,
applied to every part, its small answers put together in the order of the parts. An engine decides where that
function runs. Since the order of putting together is fixed, every engine gives the same numbers.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from likewise.core.errors import bad_parameter


class Engine(ABC):
    """Runs a function over parts. `map` is all that an engine of your own must have.

    An engine is a context manager: entering starts what it needs, leaving ends what it started. `audit` enters the
    engine it is given, so only an engine that should serve several audits needs a ``with`` of your own.

    Examples
    --------
    An engine that works backwards, and still answers in order:

    >>> class Backwards(Engine):
    ...     def map(self, function, shared, items):
    ...         answers = [function(shared, item) for item in reversed(items)]
    ...         return iter(answers[::-1])
    >>> list(Backwards().map(lambda shared, item: shared + item, 10, [1, 2, 3]))
    [11, 12, 13]
    """

    @abstractmethod
    def map(self, function: Callable[[Any, Any], Any], shared: Any, items: Sequence[Any]) -> Iterator[Any]:
        """Yield ``function(shared, item)`` of every item, in the order of the items, each exactly once.

        Parameters
        ----------
        function : callable
            A function of a module, or a partial of one. It is pure but for files that it writes whole, and again
            the same when it is run again, so an engine may run it twice and take one answer.
        shared : object
            What all items need, such as the model. The same object comes in several calls: send it once.
        items : sequence
            Small descriptions of parts.
        """

    def check(self, paths: Sequence[str]) -> None:  # noqa: B027 (an engine in one place has nothing to check)
        """Raise an `InputError` where files cannot be read at the places where the function will run."""

    def forget(self, folder: str) -> None:
        """Remove a folder of temporary files wherever the function ran."""
        shutil.rmtree(Path(folder), ignore_errors=True)

    @property
    def at_once(self) -> int:
        """How many parts are worked on at the same time; the time of an audit is shared out by this."""
        return 1

    def describe(self) -> str:
        """Say in a few words what this is, for the settings of a result."""
        return type(self).__name__

    @property
    def dashboard(self) -> str | None:
        """Where a person can watch the engine work, if anywhere."""
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class LocalEngine(Engine):
    """One part after the other, in this process. The default.

    Examples
    --------
    >>> list(LocalEngine().map(pow, 2, [1, 2, 3]))
    [2, 4, 8]
    """

    def map(self, function: Callable[[Any, Any], Any], shared: Any, items: Sequence[Any]) -> Iterator[Any]:
        """Yield ``function(shared, item)`` of every item in turn."""
        for item in items:
            yield function(shared, item)

    def describe(self) -> str:
        """Say that it is this process."""
        return "local"


def read_engine(engine: Engine | str, *, owner: str = "audit") -> Engine:
    """Return an engine, or the one that a word names."""
    if isinstance(engine, Engine):
        return engine
    name, _, where = engine.partition(":") if isinstance(engine, str) else ("", "", "")
    if name not in ("local", "dask") or (name == "local" and where) or where == "0":
        allowed = "local, dask, dask:WORKERS, dask:ADDRESS or an Engine"
        raise bad_parameter(owner, "engine", allowed, engine)
    if name == "local":
        return LocalEngine()
    from likewise.auditing.partitions.dask import DaskEngine

    return DaskEngine(workers=int(where)) if where.isdigit() else DaskEngine(where or None)
