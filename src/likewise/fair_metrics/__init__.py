"""Who is comparable with whom: the fair metric, and the ways to learn it."""

from __future__ import annotations

from likewise.fair_metrics.metric import Euclidean, FairMetric, Mahalanobis

__all__ = ["Euclidean", "FairMetric", "Mahalanobis"]
