"""The paper's tables and figures, ours beside them: one file per experiment, one runner for all."""

from likewise.core.lazy import lazy_names

_HOMES = {
    "AdultStudy": "adult",
    "CellResult": "study",
    "Measure": "study",
    "Published": "study",
    "SentencesStudy": "sentences",
    "SentimentStudy": "sentiment",
    "Store": "store",
    "Study": "study",
    "ToyStudy": "toy",
    "plan_run": "runner",
    "run_plan": "runner",
}

__all__ = list(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
