"""Mend a fitted model without training it again: the consensus of twins, scores smoothed over comparable people.

Examples
--------
>>> import pandas as pd
>>> from likewise.postprocessing import TwinConsensus
>>> people = pd.DataFrame({"sex": ["F", "M"], "pay": [4, 4]})
>>> biased = lambda table: (table["pay"] + 2 * (table["sex"] == "M") > 4) * 0.8
>>> TwinConsensus(biased, sensitive_features="sex").fit(people).predict(people)
array([0, 0])
"""

from __future__ import annotations

from likewise.postprocessing.graph_smoothing import GraphSmoothing
from likewise.postprocessing.twin_consensus import TwinConsensus

__all__ = ["GraphSmoothing", "TwinConsensus"]
