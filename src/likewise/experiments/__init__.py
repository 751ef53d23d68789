"""The paper's tables and figures, ours beside them: one file per experiment, one runner for all."""

from likewise.core.lazy import lazy_names

_HOMES = {
    "CellResult": "study",
    "Measure": "study",
    "Published": "study",
    "Study": "study",
}

__all__ = list(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
