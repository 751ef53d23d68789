"""Sentences with a name and an opinion in them, and the same sentences with other names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from likewise.datasets.sentiment import SentimentData
from likewise.datasets.splits import IndexArray
from likewise.datasets.words import capitalised
from likewise.text.templates import Template

__all__ = ["SentenceTask", "sentence_task"]

# Names stand inside the sentence, where a capital tells them from words.
TEMPLATES = tuple(
    Template(text)
    for text in (
        "Yesterday we talked about {name}, and somebody said: {word}.",
        "The letter of {name} was about something {word}.",
        "When they asked me about {name}, the first word was {word}.",
        "With {name} it is always the same, {word}.",
    )
)
_GROUPS, _SWAPS = 400, 10
_PROBES = 20


@dataclass(frozen=True, eq=False)
class SentenceTask:
    """One split of the task.

    Parameters
    ----------
    train, test : list of str
        Sentences; the words of the two never meet, and no evaluation name is in either.
    y_train, y_test : ndarray of int
    comparable : list of str
        Training sentences with their names swapped, for the metric.
    groups : ndarray of int
        Which of them are the same sentence but for the name.
    probes : list of str
        Test sentences with every evaluation name in turn: all names of the first sentence, then of the next.
    names : tuple of str
        Names of the training sentences, in an order drawn by the seed.
    people : DataFrame
        name, race and gender of the evaluation names.
    """

    train: list[str]
    test: list[str]
    y_train: IndexArray
    y_test: IndexArray
    comparable: list[str]
    groups: IndexArray
    probes: list[str]
    names: tuple[str, ...]
    people: pd.DataFrame


def sentence_task(data: SentimentData, seed: int) -> SentenceTask:
    """Build the sentences of a split.

    Parameters
    ----------
    data : SentimentData
        With the split wanted.
    seed : int
        Of the names and the templates.

    Examples
    --------
    >>> from likewise.datasets import load_sentiment
    >>> task = sentence_task(load_sentiment(), 0)
    >>> len(task.train), len(task.test), len(task.probes)
    (5609, 624, 1720)
    """
    rng = np.random.default_rng(seed)
    names = [capitalised(str(name)) for name in data.name_words]

    def written(index: IndexArray) -> list[str]:
        return [
            TEMPLATES[rng.integers(len(TEMPLATES))].fill(
                name=names[rng.integers(len(names))], word=str(data.words[row])
            )
            for row in index
        ]

    train, test = written(data.train_index), written(data.test_index)
    comparable, groups = [], []
    for group, row in enumerate(rng.choice(data.train_index, _GROUPS, replace=False)):
        template = TEMPLATES[rng.integers(len(TEMPLATES))]
        for name in rng.choice(names, _SWAPS, replace=False):
            comparable.append(template.fill(name=str(name), word=str(data.words[row])))
            groups.append(group)
    people = data.evaluation_names
    probes = [
        TEMPLATES[place % len(TEMPLATES)].fill(name=capitalised(name), word=str(data.words[row]))
        for place, row in enumerate(rng.choice(data.test_index, _PROBES, replace=False))
        for name in people["name"]
    ]
    order = tuple(str(name) for name in rng.permutation(names))
    return SentenceTask(
        train,
        test,
        data.y_train,
        data.y_test,
        comparable,
        np.array(groups),
        probes,
        order,
        people.reset_index(drop=True),
    )
