"""Model files of others run in a process of their own: a crash, a hang or a flood of memory stays there.

`limits` says how much that process may use, `confined` is its first lines, `child` what it answers, `messages` and
`table_rows` how questions and answers travel (plain arrays and JSON, never pickle), `process` is its handle,
`model_file` one file behind it, and `isolated_model` the file's model behind the contract of every other model.
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
