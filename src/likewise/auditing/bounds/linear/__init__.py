"""Linear models, where the worst case is known exactly: the ground truth of every search, and a `Bound`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.auditing.bounds.linear.model import LinearModel as LinearModel
    from likewise.auditing.bounds.linear.search import (
        AttainedRows as AttainedRows,
        ExactDual as ExactDual,
        exact_bound as exact_bound,
        exact_dual as exact_dual,
        loss_ceiling as loss_ceiling,
    )
    from likewise.auditing.bounds.linear.supremum import (
        ExactResult as ExactResult,
        ExactStatus as ExactStatus,
        exact_supremum as exact_supremum,
        logistic_supremum as logistic_supremum,
    )

__getattr__, __dir__, __all__ = lazy_names(__name__)
