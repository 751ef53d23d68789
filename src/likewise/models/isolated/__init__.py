"""Model files of others run in a process of their own: a crash, a hang or a flood of memory stays there.

`limits` says how much that process may use, `confined` is its first lines, `child` what it answers, `messages` and
`table_rows` how questions and answers travel (plain arrays and JSON, never pickle), `process` is its handle,
`model_file` one file behind it, and `isolated_model` the file's model behind the contract of every other model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names
from likewise.models.isolated.limits import Limits

if TYPE_CHECKING:
    from likewise.models.isolated.isolated_model import IsolatedModel, IsolatedNetwork
    from likewise.models.isolated.model_file import IsolatedFile

__all__ = ["IsolatedFile", "IsolatedModel", "IsolatedNetwork", "Limits"]

_HOMES = {
    "IsolatedFile": "model_file",
    "IsolatedModel": "isolated_model",
    "IsolatedNetwork": "isolated_model",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
