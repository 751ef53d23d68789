"""The paper's tables and figures, ours beside them: one file per experiment, one runner for all.

Examples
--------
>>> from likewise.experiments import AdultStudy
>>> AdultStudy().methods[:2]
('Baseline', 'Project')
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.experiments.adult import AdultStudy as AdultStudy
    from likewise.experiments.sentences import SentencesStudy as SentencesStudy
    from likewise.experiments.sentiment import SentimentStudy as SentimentStudy
    from likewise.experiments.study import (
        Published as Published,
        Study as Study,
        StudyMeasure as StudyMeasure,
    )
    from likewise.experiments.toy import ToyStudy as ToyStudy
    from likewise.improving.cells import CellResult as CellResult, Store as Store
    from likewise.improving.runner import plan_run as plan_run, run_plan as run_plan

__getattr__, __dir__, __all__ = lazy_names(__name__)
