"""The paper's data, offline: Adult, German credit, sentiment words, the two-group toy of Figure 1; scores of CVs.

Every loader returns a fresh frozen object; sources and licences are in its docstring and in NOTICE.

Examples
--------
>>> from likewise.datasets import load_german
>>> load_german().frame.shape
(1000, 21)
"""

from likewise.datasets.adult import load_adult
from likewise.datasets.german import load_german
from likewise.datasets.hiring import load_hiring_scores
from likewise.datasets.sentiment import Coverage, SentimentData, load_sentiment
from likewise.datasets.tabular import TabularData
from likewise.datasets.toy import ToyData, make_toy
from likewise.datasets.vector_files import read_word_vectors
from likewise.datasets.vectors import WordVectors

__all__ = [
    "Coverage",
    "SentimentData",
    "TabularData",
    "ToyData",
    "WordVectors",
    "load_adult",
    "load_german",
    "load_hiring_scores",
    "load_sentiment",
    "make_toy",
    "read_word_vectors",
]
