"""The public surface: which name comes from which module. Loaded lazily by `likewise.__getattr__`."""

from __future__ import annotations

SUBPACKAGES = frozenset({"core"})

PUBLIC = {
    "LikewiseError": "likewise.core.errors",
    "Subspace": "likewise.core.subspace",
}
