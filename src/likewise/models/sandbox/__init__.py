"""Untrusted model files, run in a process of their own that contains crashes, hangs and memory exhaustion.

`confined` is the first program of that process and imports nothing of the package, `child` answers, `messages` says
how much it may use and how questions and answers travel (plain arrays and JSON, never pickle), `facts` packs rows,
trees and layers for the way, `process` is its handle, and `model_file` the file and its model on this side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.models.sandbox.messages import Limits as Limits
    from likewise.models.sandbox.model_file import (
        SandboxedFile as SandboxedFile,
        SandboxedModel as SandboxedModel,
        SandboxedNetwork as SandboxedNetwork,
    )

__getattr__, __dir__, __all__ = lazy_names(__name__)
