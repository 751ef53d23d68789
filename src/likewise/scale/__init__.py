"""Past one machine: the same audit on Dask, the same training on torch.distributed.

Examples
--------
>>> from likewise.scale import LocalEngine
>>> list(LocalEngine().map(lambda shared, item: shared + item, 10, [1, 2]))
[11, 12]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.auditing.parts.engine import Engine, LocalEngine
    from likewise.scale.dask_engine import DaskEngine

__all__ = ["DaskEngine", "Engine", "LocalEngine"]

_HOMES = {"DaskEngine": "dask_engine"}


def __getattr__(name: str) -> object:
    if name in ("Engine", "LocalEngine"):
        from likewise.auditing.parts import engine

        return getattr(engine, name)
    return _lazy(name)


_lazy, __dir__ = lazy_names(__name__, _HOMES)
