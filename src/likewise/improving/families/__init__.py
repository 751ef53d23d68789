"""Who takes part, one file per family."""

from __future__ import annotations

from likewise.improving.candidate import Candidate
from likewise.improving.families.boosting import boosting_candidates
from likewise.improving.families.networks import network_candidates
from likewise.improving.people import Ground

__all__ = ["trained_candidates"]


def trained_candidates(ground: Ground) -> tuple[Candidate, ...]:
    """Return the candidates that are trained, in the order of tables."""
    return (*boosting_candidates(ground), *network_candidates(ground))
