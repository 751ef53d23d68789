"""likewise: individual fairness in machine learning.

Learn who is comparable with whom, audit any model for unequal treatment of comparable people, certify what
was found, and train models that pass. Nothing heavy is imported before it is used.
"""

from __future__ import annotations

import importlib
from typing import Any

from likewise._api import PUBLIC, SUBPACKAGES
from likewise._version import __version__

__all__ = ["__version__", *sorted(PUBLIC), *sorted(SUBPACKAGES)]


def __getattr__(name: str) -> Any:
    if name in SUBPACKAGES:
        return importlib.import_module(f"likewise.{name}")
    if name in PUBLIC:
        value = getattr(importlib.import_module(PUBLIC[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'likewise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
