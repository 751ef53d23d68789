"""Who is comparable with whom: the fair metric, and the ways to learn it.

Examples
--------
>>> import pandas as pd
>>> from likewise.fair_metrics import ExpertSubspace
>>> people = pd.DataFrame({"age": [30, 50, 30], "sex": ["F", "M", "M"]})
>>> metric = ExpertSubspace(["sex"]).fit(people).metric_
>>> metric.pairwise(people).round(2)
array([[0. , 4.5, 0. ],
       [4.5, 0. , 4.5],
       [0. , 4.5, 0. ]])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.fair_metrics.attribute import AttributeSubspace as AttributeSubspace
    from likewise.fair_metrics.comparable import ComparableSubspace as ComparableSubspace
    from likewise.fair_metrics.constructors import euclidean as euclidean, mahalanobis as mahalanobis
    from likewise.fair_metrics.diagnosis import (
        Diagnosis as Diagnosis,
        ProbeScores as ProbeScores,
        diagnose as diagnose,
    )
    from likewise.fair_metrics.expert import ExpertSubspace as ExpertSubspace
    from likewise.fair_metrics.metric import FairMetric as FairMetric
    from likewise.fair_metrics.pair_metric import PairMetric as PairMetric
    from likewise.fair_metrics.stability import Stability as Stability

__getattr__, __dir__, __all__ = lazy_names(__name__)
