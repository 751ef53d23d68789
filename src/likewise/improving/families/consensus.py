"""The consensus of twins over a model, on the ground's sensitive columns and edits."""

from __future__ import annotations

from typing import Any

from likewise.improving.people import Ground
from likewise.postprocessing import TwinConsensus

__all__ = ["twin_consensus"]


def twin_consensus(model: Any, ground: Ground) -> TwinConsensus:
    """Return a fitted model that answers for all twins of a person alike."""
    wrapped = TwinConsensus(
        model,
        sensitive_features={name: list(values) for name, values in ground.twin_values.items()},
        edits=list(ground.edits) or None,
    )
    return wrapped.fit(ground.frame.iloc[ground.train])
