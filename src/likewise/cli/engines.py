"""The engine that the options of a verb ask for, started before any work is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.core.errors import InputError

if TYPE_CHECKING:
    from likewise.auditing.parts.engine import Engine
    from likewise.cli.stage_progress import Progress

__all__ = ["check_engine", "open_engine"]


def check_engine(engine: str, scheduler: str | None, workers: int | None, map_folder: Path | None) -> None:
    """Refuse options that do not go together, and a folder that cannot be written."""
    if engine == "local" and (scheduler is not None or workers is not None):
        option = "--workers" if scheduler is None else "--scheduler"
        raise InputError(f"{option} is for Dask. Add --engine dask.")
    if scheduler is not None and workers is not None:
        raise InputError(
            "--workers starts workers on this machine, --scheduler uses those that run. Choose one."
        )
    if map_folder is not None:
        from likewise.auditing.parts.map_folder import MapFolder

        MapFolder(map_folder)


@contextmanager
def open_engine(
    engine: str, scheduler: str | None, workers: int | None, map_folder: Path | None, progress: Progress
) -> Iterator[Engine | None]:
    """Start or reach what an engine needs.

    Parameters
    ----------
    engine : {"local", "dask"}
    scheduler : str or None
        Address of a Dask scheduler.
    workers : int or None
        To start on this machine.
    map_folder : Path or None
        Where a map of everybody goes, which takes an engine.
    progress : Progress
        Says where the engine can be watched.

    Yields
    ------
    Engine or None
        None where a table may be read as a whole.
    """
    if engine == "local":
        from likewise.auditing.parts.engine import LocalEngine

        yield None if map_folder is None else LocalEngine()
        return
    from likewise.scale import DaskEngine

    with ExitStack() as opened:
        with progress.stage("Reaching workers" if scheduler else "Starting workers"):
            dask = opened.enter_context(DaskEngine(scheduler, workers or 2))
        if dask.dashboard is not None:
            if not progress.shown:  # else it is said beside the bar
                progress.note(f"dashboard of {dask.describe()}: {dask.dashboard}")
        else:
            progress.note("install bokeh to watch the workers on Dask's dashboard.")
        yield dask
