"""Recourse: what would change a decision at the least cost, why it is as it is, and whether that is the same for everyone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.explaining.burden import Recourse as Recourse, recourse as recourse
    from likewise.explaining.person import (
        Change as Change,
        Counterpart as Counterpart,
        Explanation as Explanation,
        Reason as Reason,
        Suggestion as Suggestion,
        explain as explain,
    )

__getattr__, __dir__, __all__ = lazy_names(__name__)
