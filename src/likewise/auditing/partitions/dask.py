"""The parts of an audit on Dask workers: on this machine, or on any cluster that has a Dask scheduler."""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import sys
import threading
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from likewise._version import __version__
from likewise.auditing.partitions.engine import Engine
from likewise.auditing.partitions.tables import Part
from likewise.core.checks import check_integer
from likewise.core.errors import InputError, require

# Getting hold of a Dask cluster that can be worked with, or saying in one sentence why not.


# Dask's own default trims the heap at 64 KiB, which doubles the CPU of torch: every batch gives its memory back to the
# system and asks for it again. 32 MiB is the highest threshold that glibc accepts for mmap.
WORKER_ENVIRONMENT = {
    "MALLOC_TRIM_THRESHOLD_": str(2**30),
    "MALLOC_MMAP_THRESHOLD_": str(2**25),
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
# Dask looks at every worker's stack a hundred times a second, and at its memory twice: CPU that nobody asked for here.
_QUIET = {"distributed.worker.profile.enabled": False, "distributed.admin.system-monitor.interval": "2s"}
# Workers with other versions of these may give other numbers.
_NUMERIC = ("numpy", "pandas", "pyarrow", "scikit-learn", "torch")


def connect(address: Any, timeout: float) -> Any:
    """Connect to a scheduler, or to a cluster object."""
    distributed = _distributed()
    log = logging.getLogger("distributed.comm")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        client = distributed.Client(address, timeout=timeout, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            f"No Dask scheduler answers at {address} within {timeout:g} s. Check the address and that "
            f"`dask scheduler` runs there, or leave the address out to start workers on this machine."
        ) from error
    finally:
        log.setLevel(level)
    try:
        client.wait_for_workers(1, timeout=timeout)
    except (OSError, TimeoutError) as error:
        client.close()
        raise InputError(
            f"The Dask scheduler at {address} has no workers after {timeout:g} s. Start some: dask worker {address}"
        ) from error
    return client


def check_versions(found: Mapping[str, Any]) -> None:
    """Refuse workers that lack this package or have another version of it; warn of other numeric libraries."""
    mine = found["client"]["packages"]
    places = {"The Dask scheduler": found["scheduler"]} | {
        f"The Dask worker {address}": info for address, info in found["workers"].items()
    }
    for place, info in places.items():
        theirs = (info or {}).get("packages", {})
        version = theirs.get("likewise")
        if version is None:
            raise InputError(
                f"{place} does not have likewise. Install it there: pip install 'likewise[scale]=={mine['likewise']}'"
            )
        for name, other in (("likewise", version), ("Python", _minor(theirs.get("python")))):
            own = mine["likewise"] if name == "likewise" else _minor(mine["python"])
            if other != own:
                raise InputError(
                    f"{place} has {name} {other}, this process has {own}. Install the same version everywhere."
                )
        differ = [name for name in _NUMERIC if theirs.get(name) != mine.get(name)]
        if differ and "worker" in place:
            name = differ[0]
            warnings.warn(
                f"{place} has {name} {theirs.get(name)}, this process has {mine.get(name)}: numbers may differ in "
                "their last digits.",
                stacklevel=2,
            )


def missing_files(paths: Sequence[str]) -> list[str]:
    """Return the files that this process cannot read."""
    return [path for path in paths if not (Path(path).is_file() and os.access(path, os.R_OK))]


def _distributed() -> Any:
    return require("distributed", extra="scale", why="The Dask engine")


def _minor(python: str | None) -> str:
    return ".".join((python or "?").split(".")[:2])


# Parts handed to the scheduler at once: enough to keep many workers busy, few enough to hold their answers.
_AHEAD = 64
# Seconds to wait for a scheduler, and for its first worker.
TIMEOUT = 10.0


class DaskEngine(Engine):
    """Work on the parts of Parquet files with Dask workers.

    What all parts share (the model, the metric, the domain, the pool) is sent to each worker once, by the pickling
    that Dask uses between a program and its own workers: these are objects of this process, never a file of somebody
    else's. A part whose worker dies is given to another one.

    Parameters
    ----------
    address : str or cluster, optional
        A scheduler, such as ``"tcp://10.0.0.5:8786"``, or a cluster object of dask-kubernetes, dask-jobqueue or
        dask-ssh. Without one, workers are started on this machine and ended afterwards.
    workers : int, default=2
        How many to start on this machine, one thread each. Not used with an address.
    memory_limit : str, int or None, default="auto"
        Of each worker started on this machine, as Dask takes it.
    timeout : float, optional
        Seconds to wait for a scheduler, and for its first worker; default 10.

    Examples
    --------
    In a script, below ``if __name__ == "__main__":``, since workers import the script:

    >>> import likewise as lw
    >>> engine = DaskEngine(workers=4)
    >>> result = lw.audit(  # doctest: +SKIP
    ...     model, "people/*.parquet", "income", metric=metric, engine=engine
    ... )
    """

    def __init__(
        self,
        address: Any = None,
        workers: int = 2,
        *,
        memory_limit: str | int | None = "auto",
        timeout: float | None = None,
    ) -> None:
        self.address, self.memory_limit = address, memory_limit
        self.timeout = TIMEOUT if timeout is None else timeout
        self.workers = check_integer(workers, owner="DaskEngine", name="workers", low=1)
        self._depth = 0
        self._cluster: Any = None
        self._client: Any = None
        # Objects sent already: the object (kept, so that its id stays its own) and the future of what was sent.
        self._sent: dict[int, tuple[Any, Any]] = {}
        self._homes: dict[Part, str] = {}

    def __enter__(self) -> Self:
        self._depth += 1
        if self._depth == 1:
            try:
                self._start()
            except BaseException:
                self._depth = 0
                self._stop()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if not self._depth:
            self._stop()

    def _start(self) -> None:
        if self.address is None:
            distributed = _distributed()
            import dask

            # Worker processes on this machine, one thread each.
            with dask.config.set({"distributed.nanny.pre-spawn-environ": WORKER_ENVIRONMENT} | _QUIET):
                self._cluster = distributed.LocalCluster(
                    n_workers=self.workers,
                    threads_per_worker=1,
                    processes=True,
                    memory_limit=self.memory_limit,
                    dashboard_address="127.0.0.1:0",
                    silence_logs=logging.ERROR,
                )
        self._client = connect(self._cluster or self.address, self.timeout)
        # Nothing is imported there to answer.
        check_versions(self._client.get_versions(check=False, packages=["likewise", *_NUMERIC]))

    def _stop(self) -> None:
        self._sent, self._homes = {}, {}
        for resource in (self._client, self._cluster):
            if resource is not None:
                resource.close()
        self._client = self._cluster = None

    def map(self, function: Callable[[Any, Any], Any], shared: Any, items: Sequence[Any]) -> Iterator[Any]:
        """Yield ``function(shared, item)`` of every item, in the order of the items."""
        sent = self._send(shared)
        waiting: deque[tuple[Any, Any]] = deque()
        try:
            for item in items:
                if len(waiting) >= max(_AHEAD, 4 * self.at_once):
                    yield self._answer(*waiting.popleft())
                waiting.append((item, self._submit(function, sent, item)))
            while waiting:
                yield self._answer(*waiting.popleft())
        finally:
            if waiting:
                self._client.cancel([future for _, future in waiting], reason="not needed any more")

    def check(self, paths: Sequence[str]) -> None:
        """Raise where a worker cannot see a file."""
        for worker, missing in self._client.run(missing_files, list(paths)).items():
            if missing:
                raise InputError(
                    f"The Dask worker {worker} sees {len(paths) - len(missing)} of {len(paths)} Parquet files; missing is "
                    f"{missing[0]}. Put them where every worker finds them under the same path."
                )

    def forget(self, folder: str) -> None:
        """Remove a folder of temporary files here and on every worker."""
        shutil.rmtree(Path(folder), ignore_errors=True)
        if self._client is not None:
            try:
                self._client.run(shutil.rmtree, folder, ignore_errors=True, on_error="ignore")
            except OSError as error:
                warnings.warn(f"Temporary files may be left in {folder} on workers: {error}", stacklevel=2)

    @property
    def at_once(self) -> int:
        """The threads of all workers."""
        return max(1, int(sum(self._client.ncores().values())))

    def describe(self) -> str:
        """Say how many workers there are."""
        if self._client is None:
            return "dask"
        n = len(self._client.ncores())
        return f"dask, {n} worker{'' if n == 1 else 's'}"

    @property
    def dashboard(self) -> str | None:
        """Address of Dask's dashboard; None before the engine runs, and on this machine without bokeh."""
        own = self._cluster is not None
        # Dask makes it with bokeh.
        if self._client is None or (own and importlib.util.find_spec("bokeh") is None):
            return None
        link: str | None = self._client.dashboard_link
        return link or None

    def _send(self, shared: Any) -> Any:
        """Return the future of what all items share, sent on the first call."""
        if id(shared) not in self._sent:
            import cloudpickle

            token = uuid.uuid4().hex
            try:
                payload = cloudpickle.dumps(shared)
            except Exception as error:
                raise InputError(
                    f"The Dask engine cannot send the model to its workers ({error}). Pass a model that can be "
                    "pickled, or use the local engine."
                ) from error
            with warnings.catch_warnings():
                # Once for all parts is the point of it, however large.
                warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
                future = self._client.submit(
                    Sealed, token, payload, __version__, os.getpid(), key=f"likewise-shared-{token}"
                )
            self._sent[id(shared)] = (shared, future)
        return self._sent[id(shared)][1]

    def _submit(self, function: Callable[[Any, Any], Any], sent: Any, item: Any) -> Any:
        # A part's files of an earlier round are on the disk of the worker that had it, unless disks are shared.
        home = self._homes.get(item) if isinstance(item, Part) else None
        where = {"workers": [home], "allow_other_workers": True} if home is not None else {}
        return self._client.submit(
            run_item, function, sent, item, key=f"likewise-{uuid.uuid4().hex}", pure=False, **where
        )

    def _answer(self, item: Any, future: Any) -> Any:
        from concurrent.futures import CancelledError

        from distributed import KilledWorker
        from distributed.comm.core import CommClosedError

        try:
            worker, answer = future.result()
        except KilledWorker as error:
            raise InputError(
                f"Workers died again and again over {_named(item)} ({error}). Most often they ran out of memory: give "
                "them more, or fewer of them to a machine."
            ) from error
        except (CancelledError, CommClosedError) as error:
            raise InputError(
                f"The Dask scheduler was lost during the audit ({error}). Start again once it runs; nothing was written."
            ) from error
        if isinstance(item, Part):
            self._homes[item] = worker
        return answer


class Sealed:
    """What all items share, pickled: opened once in each worker process, however many items it works on."""

    _opened: dict[str, Any] = {}  # noqa: RUF012 (of the process, on purpose)
    _lock = threading.Lock()

    def __init__(self, token: str, payload: bytes, version: str, sender: int) -> None:
        self.token, self.payload, self.version, self.sender = token, payload, version, sender

    def open(self) -> Any:
        """Return the object, with one torch thread in a process of its own."""
        with self._lock:
            if self.token not in self._opened:
                if self.version != __version__:
                    raise InputError(
                        f"A Dask worker has likewise {__version__}, the audit was started with {self.version}. "
                        "Install the same version everywhere."
                    )
                import cloudpickle

                while len(self._opened) >= 4:
                    self._opened.pop(next(iter(self._opened)))
                self._opened[self.token] = cloudpickle.loads(self.payload)
                if os.getpid() != self.sender and "torch" in sys.modules:
                    sys.modules["torch"].set_num_threads(1)
            return self._opened[self.token]


def run_item(function: Callable[[Any, Any], Any], sealed: Sealed, item: Any) -> tuple[str, Any]:
    """Work on one item in a worker, and say which worker it was."""
    from distributed import get_worker

    return get_worker().address, function(sealed.open(), item)


def _named(item: Any) -> str:
    first = item[0] if isinstance(item, tuple) else item
    if not isinstance(first, Part):
        return "one part"
    return f"rows {first.first:,} to {first.first + first.rows - 1:,} of the table ({first.path})"
