"""Sentiment of sentences with names in context, a counterpart of the paper's study of single words."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.checks import IntArray
from likewise.core.plain import plain_settings
from likewise.datasets.sentiment import SentimentData
from likewise.datasets.words import capitalised
from likewise.experiments.sentiment import known_to
from likewise.experiments.study import Study
from likewise.improving.cells import CellResult
from likewise.text.term_swap import Template

# Sentences with a name and an opinion in them, and the same sentences with other names.


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
    """One split of the task."""

    train: list[str]
    test: list[str]
    y_train: IntArray
    y_test: IntArray
    comparable: list[str]
    groups: IntArray
    probes: list[str]
    names: tuple[str, ...]
    people: pd.DataFrame


def sentence_task(data: SentimentData, seed: int) -> SentenceTask:
    """Build the sentences of a split."""
    rng = np.random.default_rng(seed)
    names = [capitalised(str(name)) for name in data.name_words]

    def written(index: IntArray) -> list[str]:
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


STEPS, QUICK_STEPS = 200, 60
HIDDEN, QUICK_HIDDEN = 100, 50
DIRECTIONS = 16
# The root mean square of a coordinate is then about that of a word, which the search's step sizes and ε are about.
SCALE = 1.56
# Names drawn from those of the training sentences, over which TwinConsensus takes the mean.
N_CONSENSUS, QUICK_CONSENSUS = 16, 4


@dataclass(frozen=True)
class SentencesStudy(Study, label="sentences"):
    """Sentences from the opinion lexicon with a first name in them; seed i is split i of the words.

    Parameters
    ----------
    quick : bool, default=False
        A small trial: half the hidden units, few steps.

    Examples
    --------
    >>> SentencesStudy().methods
    ('Baseline', 'Project', 'SenSR', 'SenSeI', 'TwinConsensus')
    """

    @property
    def n_consensus(self) -> int:
        """Names that TwinConsensus takes the mean over."""
        return QUICK_CONSENSUS if self.quick else N_CONSENSUS

    def settings(self, method: str) -> dict[str, Any]:
        """Every parameter of the estimator, and the rest that decides a cell."""
        return {
            "data": "sentences",
            "estimator": plain_settings(self.estimator(method)),
            "directions": DIRECTIONS,
            "scale": SCALE,
            "consensus": self.n_consensus if method == "TwinConsensus" else 0,
        }

    def words(self, method: str | None = None) -> dict[str, Any]:
        """Directions and names of the notes."""
        return {"count": DIRECTIONS, "names": self.n_consensus}

    def cost(self, method: str) -> float:
        """CPU seconds, measured."""
        return float(self.told["costs"][method]) * (0.4 if self.quick else 1.0)

    def estimator(self, method: str, seed: int | None = None) -> Any:
        """Return the estimator of a method, not fitted."""
        from likewise.training import (
            MLPBaselineClassifier,
            ProjectClassifier,
            SenSeIClassifier,
            SenSRClassifier,
        )
        from likewise.training.estimators.parameters import preset_parameters

        chosen = preset_parameters("paper-sentiment")
        chosen |= {"n_steps": QUICK_STEPS if self.quick else STEPS, "random_state": seed}
        chosen |= {"hidden_layer_sizes": (QUICK_HIDDEN if self.quick else HIDDEN,)}
        if method == "SenSR":
            return SenSRClassifier(**chosen)
        if method == "SenSeI":
            chosen |= {"eps": 1e-3, "search": "fast"}
            return SenSeIClassifier(**chosen).set_params(training__search_domain="data")
        kind = ProjectClassifier if method == "Project" else MLPBaselineClassifier
        return kind(**known_to(kind, {**chosen, "training": None}))

    def run(self, method: str, seed: int) -> CellResult:
        """Train on the sentences of a split, measure on its test sentences and on swapped ones."""
        from sklearn.pipeline import make_pipeline

        from likewise.experiments.sentiment_data import sentiment_words
        from likewise.fair_metrics import ComparableSubspace
        from likewise.text.encoders import SwapConsensus, WordMean
        from likewise.text.name_swap import NameSwap
        from likewise.training.results import TrainingWarning

        task = sentence_task(sentiment_words().data.with_split(seed), seed)
        estimator, encoder = self.estimator(method, seed), WordMean(scale=SCALE).fit(task.train)
        if method in ("Project", "SenSR", "SenSeI"):
            learner = ComparableSubspace(n_components=DIRECTIONS)
            swapped = encoder.transform(task.comparable)
            estimator.set_params(metric=learner.fit(swapped, groups=task.groups).metric_)
        model: Any = make_pipeline(encoder, estimator)
        with warnings.catch_warnings():
            # What a training has to say is kept with its cell.
            warnings.simplefilter("ignore", TrainingWarning)
            model.fit(task.train, task.y_train)
        extras = {"status": estimator.status_, "findings": [str(finding) for finding in estimator.findings_]}
        if method == "TwinConsensus":
            swaps = [NameSwap(names=(name,), pronouns=False) for name in task.names[: self.n_consensus]]
            model = SwapConsensus(model, swaps, how="margin")
        return CellResult(_measured(model, task), extras)


def _measured(model: Any, task: SentenceTask) -> dict[str, float]:
    right = float((model.predict(task.test) == task.y_test).mean())
    odds = np.clip(model.predict_proba(task.probes)[:, 1], 1e-12, 1 - 1e-12)
    by_name = np.log(odds / (1 - odds)).reshape(-1, len(task.people)).mean(axis=0)
    white, male = (task.people["race"] == "white").to_numpy(), (task.people["gender"] == "male").to_numpy()
    return {
        "accuracy": right,
        "race gap": abs(float(by_name[white].mean() - by_name[~white].mean())),
        "gender gap": abs(float(by_name[male].mean() - by_name[~male].mean())),
        "spread": float(by_name.std()),
    }
