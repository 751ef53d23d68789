"""Mend a fitted model without training it again: the consensus of twins, scores smoothed over comparable people.

Examples
--------
>>> import pandas as pd
>>> from likewise.mitigation import TwinConsensus
>>> people = pd.DataFrame({"sex": ["F", "M"], "pay": [4, 4]})
>>> biased = lambda table: (table["pay"] + 2 * (table["sex"] == "M") > 4) * 0.8
>>> TwinConsensus(biased, sensitive_features="sex").fit(people).predict(people)
array([0, 0])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.mitigation.graph_smoothing import GraphSmoothing as GraphSmoothing
    from likewise.mitigation.hard_debias import HardDebias as HardDebias
    from likewise.mitigation.project import Project as Project
    from likewise.mitigation.twin_consensus import TwinConsensus as TwinConsensus

__getattr__, __dir__, __all__ = lazy_names(__name__)
