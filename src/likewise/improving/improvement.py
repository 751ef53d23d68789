"""What a search for a fairer model found: all alternatives, the choice, and how it did on people never seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from likewise.core.text import text_table
from likewise.evaluation.measures import Measure
from likewise.improving.figures import ACCURACY, CHANGED, GAP, GROUP_GAP, PURE_GAP, ROUNDING, group_gap
from likewise.improving.rule import Rule
from likewise.texts import Said

__all__ = ["Alternative", "Improvement", "Unseen"]


@dataclass(frozen=True)
class Alternative:
    """One candidate, cross-validated on training people.

    Parameters
    ----------
    name, note : str
    figures : tuple of Measure
        Pooled over the folds, each person judged by a model that was not trained on them, with confidence intervals.
    accurate_enough : bool
        Whether the rule lets it be chosen.
    cpu_seconds : float
        Of all its folds.
    warnings : tuple of str
        What its training warned about.

    Examples
    --------
    >>> from likewise.evaluation import Measure
    >>> figures = (Measure("balanced accuracy", 0.8, 0.7, 0.9, "bootstrap"), Measure("pure gap", 0.02, 0.0, 0.04, "t"))
    >>> Alternative("plain", "boosted trees", figures)["pure gap"]
    0.02
    """

    name: str
    note: str
    figures: tuple[Measure, ...]
    accurate_enough: bool = True
    cpu_seconds: float = 0.0
    warnings: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> float:
        if name == GROUP_GAP:
            return group_gap(self.figures)
        return next(measure.value for measure in self.figures if measure.name == name)


@dataclass(frozen=True)
class Unseen:
    """A model on people that neither it nor the choice had seen.

    Parameters
    ----------
    name : str
    figures : tuple of Measure
        With confidence intervals.
    announced : tuple of Measure
        What the cross-validation let expect of them, with prediction intervals that hold together; set down before
        these people were looked at.

    Examples
    --------
    >>> from likewise.evaluation import Measure
    >>> seen = (Measure("pure gap", 0.05, 0.03, 0.07, "t"),)
    >>> announced = (Measure("pure gap", 0.02, 0.01, 0.04, "prediction"),)
    >>> Unseen("plain", seen, announced).surprises
    ('pure gap',)
    """

    name: str
    figures: tuple[Measure, ...]
    announced: tuple[Measure, ...]

    @property
    def surprises(self) -> tuple[str, ...]:
        """Names of the figures outside of what was announced, by more than rounding."""
        expected = {measure.name: measure for measure in self.announced}
        return tuple(
            m.name
            for m in self.figures
            if not expected[m.name].low - ROUNDING <= m.value <= expected[m.name].high + ROUNDING
        )


@dataclass(frozen=True, eq=False)
class Improvement:
    """A chosen model and everything that led to it; `print` shows the table.

    Parameters
    ----------
    alternatives : tuple of Alternative
        All candidates, in the order tried.
    rule : Rule
        By which one was chosen.
    chosen : str
        Its name.
    model : object
        The chosen model, trained on all training people.
    unseen : Unseen
        The chosen model on people never seen.
    reference : Unseen
        The same of the user's model, or of plain boosting where none was given.
    failed : dict of str to str
        Candidates that could not be computed, and why.
    eps, confidence : float
    n_train, n_test, folds : int
    suffix : str
        Ending of the model's file.
    command : str
        What repeats all this.
    notes : tuple of str
        What the reader should know.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from likewise.improving import improve
    >>> from likewise.improving.families.boosting import BoostingCandidate
    >>> random = np.random.default_rng(0)
    >>> people = pd.DataFrame(random.normal(size=(200, 2)), columns=["skill", "talk"])
    >>> people["sex"] = random.choice(["F", "M"], 200)
    >>> hired = (people["skill"] + (people["sex"] == "M") > 0.5).astype(int)
    >>> few = {"n_estimators": 10, "max_depth": 2}
    >>> plain = BoostingCandidate("plain", "", blind=False, choices=few)
    >>> blind = BoostingCandidate("blind", "", choices=few)
    >>> result = improve(people, hired, sensitive=["sex"], candidates=[plain, blind], folds=2)
    >>> result.measures[:2], result.frame.shape
    (('balanced accuracy', 'changed decisions'), (2, 4))
    >>> result.frontier("changed decisions")[0]
    'blind'
    """

    alternatives: tuple[Alternative, ...]
    rule: Rule
    chosen: str
    model: Any = field(repr=False)
    unseen: Unseen
    reference: Unseen
    failed: dict[str, str]
    eps: float
    confidence: float
    n_train: int
    n_test: int
    folds: int
    suffix: str = ".safetensors"
    command: str = ""
    notes: tuple[str, ...] = ()

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the figures, in the order shown."""
        return tuple(measure.name for measure in self.alternatives[0].figures)

    @property
    def frame(self) -> pd.DataFrame:
        """One row per alternative, one column per figure."""
        rows = {a.name: [m.value for m in a.figures] for a in self.alternatives}
        return pd.DataFrame.from_dict(rows, orient="index", columns=list(self.measures))

    def frontier(self, unfairness: str = GAP) -> tuple[str, ...]:
        """Names of the alternatives that none beats in both balanced accuracy and the unfairness, the fairest first.

        Parameters
        ----------
        unfairness : str, default="gap at ε"
            Or "pure gap", "changed decisions", "group gap".
        """
        points = [(a[unfairness], -a[ACCURACY], a.name) for a in self.alternatives]
        kept = [
            p for p in points if not any(q[0] <= p[0] and q[1] <= p[1] and q[:2] != p[:2] for q in points)
        ]
        return tuple(name for *_, name in sorted(kept))

    def sentence(self) -> str:
        """Say in a sentence what was chosen and what it changes for people never seen."""
        after, before = _values(self.unseen.figures), _values(self.reference.figures)
        shared = {"chosen": self.chosen, "models": len(self.alternatives), "reference": self.reference.name}
        if self.chosen == self.reference.name:
            return Said("improve.kept", people=self.n_test, accuracy=after[ACCURACY], **shared)
        return Said(
            "improve.sentence",
            people=self.n_test,
            accuracy=after[ACCURACY],
            accuracy_before=before[ACCURACY],
            changed=after[CHANGED],
            changed_before=before[CHANGED],
            pure=after[PURE_GAP],
            pure_before=before[PURE_GAP],
            eps=self.eps,
            gap=after[GAP],
            gap_before=before[GAP],
            group=group_gap(self.unseen.figures),
            group_before=group_gap(self.reference.figures),
            **shared,
        )

    def __str__(self) -> str:
        head = [f"cross-validated on {self.n_train:,} people", *self.measures]
        rows = [
            [("→ " if a.name == self.chosen else "  ") + a.name, *(_shown(m) for m in a.figures)]
            for a in self.alternatives
        ]
        lines = [text_table(head, rows), "", f"Rule: {self.rule}.", self.sentence(), ""]
        head = [f"“{self.chosen}” on {self.n_test:,} people never seen", "value", "announced"]
        announced = {m.name: m for m in self.unseen.announced}
        rows = [
            [m.name, f"{m.value:.3f}", f"[{announced[m.name].low:.3f}, {announced[m.name].high:.3f}]"]
            for m in self.unseen.figures
        ]
        return "\n".join([*lines, text_table(head, rows)])


def _values(figures: Sequence[Measure]) -> dict[str, float]:
    return {measure.name: measure.value for measure in figures}


def _shown(measure: Measure) -> str:
    return f"{measure.value:.3f} [{measure.low:.3f}, {measure.high:.3f}]"
