"""Functions of predictions: accuracy, correspondence studies, group and sentiment gaps, intervals.

Examples
--------
>>> from likewise.evaluation import balanced_accuracy
>>> balanced_accuracy([0, 0, 0, 1], [0, 0, 0, 0])
0.5
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.core.intervals import (
        Interval as Interval,
        Measure as Measure,
        proportion_interval as proportion_interval,
    )
    from likewise.evaluation.groups import (
        GroupGaps as GroupGaps,
        group_gaps as group_gaps,
        group_gaps_by_attribute as group_gaps_by_attribute,
    )
    from likewise.evaluation.impact import (
        CategoryRate as CategoryRate,
        ImpactTable as ImpactTable,
        above_median as above_median,
        impact_ratios as impact_ratios,
        impact_tables as impact_tables,
    )
    from likewise.evaluation.sentiment import (
        SentimentGaps as SentimentGaps,
        sentiment_gap as sentiment_gap,
        sentiment_gap_interval as sentiment_gap_interval,
        sentiment_gaps as sentiment_gaps,
    )
    from likewise.evaluation.summary import (
        Evaluation as Evaluation,
        accuracy as accuracy,
        accuracy_interval as accuracy_interval,
        balanced_accuracy as balanced_accuracy,
        balanced_accuracy_interval as balanced_accuracy_interval,
        evaluate as evaluate,
    )

__getattr__, __dir__, __all__ = lazy_names(__name__)
