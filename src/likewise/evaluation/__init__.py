"""What predictions alone can tell: accuracy, correspondence studies, group and sentiment gaps, intervals.

Examples
--------
>>> from likewise.evaluation import balanced_accuracy
>>> balanced_accuracy([0, 0, 0, 1], [0, 0, 0, 0])
0.5
"""

from __future__ import annotations

from likewise.evaluation.accuracy import (
    accuracy,
    accuracy_interval,
    balanced_accuracy,
    balanced_accuracy_interval,
)
from likewise.evaluation.bootstrap import bootstrap_counts, bootstrap_interval
from likewise.evaluation.correspondence import (
    CorrespondenceStudy,
    correspondence_study,
    gender_race_consistency,
    spouse_consistency,
)
from likewise.evaluation.edits import Edit
from likewise.evaluation.group_gaps import GroupGaps, group_gaps, group_gaps_by_attribute
from likewise.evaluation.impact_ratios import (
    CategoryRate,
    ImpactTable,
    above_median,
    impact_ratios,
    impact_tables,
)
from likewise.evaluation.measures import Interval, Measure
from likewise.evaluation.proportions import proportion_interval
from likewise.evaluation.sentiment import (
    SentimentGaps,
    sentiment_gap,
    sentiment_gap_interval,
    sentiment_gaps,
)
from likewise.evaluation.summary import Evaluation, evaluate

__all__ = [
    "CategoryRate",
    "CorrespondenceStudy",
    "Edit",
    "Evaluation",
    "GroupGaps",
    "ImpactTable",
    "Interval",
    "Measure",
    "SentimentGaps",
    "above_median",
    "accuracy",
    "accuracy_interval",
    "balanced_accuracy",
    "balanced_accuracy_interval",
    "bootstrap_counts",
    "bootstrap_interval",
    "correspondence_study",
    "evaluate",
    "gender_race_consistency",
    "group_gaps",
    "group_gaps_by_attribute",
    "impact_ratios",
    "impact_tables",
    "proportion_interval",
    "sentiment_gap",
    "sentiment_gap_interval",
    "sentiment_gaps",
    "spouse_consistency",
]
