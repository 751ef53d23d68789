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

from likewise._api import RENAMED
from likewise.core.lazy import lazy_names
from likewise.fair_metrics.attribute import AttributeSubspace
from likewise.fair_metrics.comparable import ComparableSubspace
from likewise.fair_metrics.diagnosing import diagnose
from likewise.fair_metrics.diagnosis import Diagnosis, ProbeScores
from likewise.fair_metrics.expert import ExpertSubspace
from likewise.fair_metrics.fixed_metrics import euclidean, mahalanobis
from likewise.fair_metrics.metric import FairMetric
from likewise.fair_metrics.pair_metric import PairMetric
from likewise.fair_metrics.stability import Stability

__all__ = [
    "AttributeSubspace",
    "ComparableSubspace",
    "Diagnosis",
    "ExpertSubspace",
    "FairMetric",
    "PairMetric",
    "ProbeScores",
    "Stability",
    "diagnose",
    "euclidean",
    "mahalanobis",
]

__getattr__ = lazy_names(__name__, {}, RENAMED)[0]
