"""The paper's data, offline: Adult, German credit, sentiment words, the two-group toy of Figure 1; scores of CVs.

Every loader returns a fresh frozen object; sources and licences are in its docstring and in NOTICE.

Examples
--------
>>> from likewise.datasets import load_german
>>> load_german().frame.shape
(1000, 21)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.datasets.sentiment import (
        Coverage as Coverage,
        SentimentData as SentimentData,
        load_sentiment as load_sentiment,
    )
    from likewise.datasets.tabular import (
        TabularData as TabularData,
        load_adult as load_adult,
        load_german as load_german,
        load_hiring_scores as load_hiring_scores,
    )
    from likewise.datasets.toy import ToyData as ToyData, make_toy as make_toy
    from likewise.datasets.vectors import WordVectors as WordVectors, read_word_vectors as read_word_vectors

__getattr__, __dir__, __all__ = lazy_names(__name__)
