"""Mend a fitted model without training it again: the consensus of twins, scores smoothed over comparable people."""

from __future__ import annotations

from likewise.postprocessing.graph_smoothing import GraphSmoothing
from likewise.postprocessing.twin_consensus import TwinConsensus

__all__ = ["GraphSmoothing", "TwinConsensus"]
