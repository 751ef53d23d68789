"""The paper's tables and figures, ours beside them: one file per experiment, one runner for all.

Examples
--------
>>> from likewise.experiments import AdultStudy
>>> AdultStudy().methods[:2]
('Baseline', 'Project')
"""

from likewise.core.lazy import lazy_names

_HOMES = {
    "AdultStudy": "adult",
    "CellResult": "study",
    "Published": "study",
    "SentencesStudy": "sentences",
    "SentimentStudy": "sentiment",
    "Store": "store",
    "Study": "study",
    "StudyMeasure": "study",
    "ToyStudy": "toy",
    "plan_run": "runner",
    "run_plan": "runner",
}

__all__ = list(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
