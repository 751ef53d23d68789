"""The command line: one file per verb; parse, call, print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.cli.app import main as main

__getattr__, __dir__, __all__ = lazy_names(__name__)
