"""Getting hold of a Dask cluster that can be worked with, or saying in one sentence why not."""

from __future__ import annotations

import importlib.util
import logging
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from likewise.core.checks import check_integer
from likewise.core.errors import InputError
from likewise.core.extras import require

__all__ = ["WORKER_ENVIRONMENT", "check_files", "check_versions", "connect", "start_workers"]

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


def start_workers(workers: int, memory_limit: str | int | None) -> Any:
    """Start worker processes on this machine, one thread each.

    Parameters
    ----------
    workers : int
    memory_limit : str, int or None
        Of each worker, as Dask takes it: "auto", "4GB", bytes, None for no limit.

    Returns
    -------
    distributed.LocalCluster
    """
    distributed = _distributed()
    import dask

    with dask.config.set({"distributed.nanny.pre-spawn-environ": WORKER_ENVIRONMENT} | _QUIET):
        return distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=memory_limit,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.ERROR,
        )


def connect(address: Any, timeout: float) -> Any:
    """Connect to a scheduler, or to a cluster object.

    Parameters
    ----------
    address : str or cluster
        Such as ``"tcp://10.0.0.5:8786"``.
    timeout : float
        Seconds to wait for the scheduler, and for its first worker.

    Returns
    -------
    distributed.Client

    Raises
    ------
    InputError
        Nobody answers, or the scheduler has no workers.
    """
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
    """Refuse workers that lack this package or have another version of it; warn of other numeric libraries.

    Parameters
    ----------
    found : mapping
        What ``client.get_versions(packages=…)`` returned.

    Examples
    --------
    >>> here = {"packages": {"likewise": "1.0", "python": "3.11.4.final.0"}}
    >>> old = {"packages": {"likewise": "0.9", "python": "3.11.4.final.0"}}
    >>> check_versions({"client": here, "scheduler": here, "workers": {"tcp://a:1": old}})
    Traceback (most recent call last):
    ...
    likewise.core.errors.InputError: The Dask worker tcp://a:1 has likewise 0.9, this process has 1.0. Install the same version everywhere.
    """
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


def versions(client: Any) -> Mapping[str, Any]:
    """Ask everybody for their versions, without importing anything."""
    answer: Mapping[str, Any] = client.get_versions(check=False, packages=["likewise", *_NUMERIC])
    return answer


def check_files(client: Any, paths: Sequence[str]) -> None:
    """Raise an `InputError` where a worker cannot see a file that this process sees."""
    for worker, missing in client.run(missing_files, list(paths)).items():
        if missing:
            raise InputError(
                f"The Dask worker {worker} sees {len(paths) - len(missing)} of {len(paths)} Parquet files; missing is "
                f"{missing[0]}. Put them where every worker finds them under the same path."
            )


def missing_files(paths: Sequence[str]) -> list[str]:
    """Return the files that this process cannot read."""
    return [path for path in paths if not (Path(path).is_file() and os.access(path, os.R_OK))]


def can_show_dashboard() -> bool:
    """Whether a scheduler of this process has a dashboard to show, which Dask makes with bokeh."""
    return importlib.util.find_spec("bokeh") is not None


def check_number_of_workers(workers: Any) -> int:
    """Return the number of workers, or say what is wrong with it."""
    return check_integer(workers, owner="DaskEngine", name="workers", low=1)


def _distributed() -> Any:
    return require("distributed", extra="scale", why="The Dask engine")


def _minor(python: str | None) -> str:
    return ".".join((python or "?").split(".")[:2])
