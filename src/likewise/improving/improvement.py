"""What a search for a fairer model found: all alternatives, the choice, and how it did on held-out people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.checks import check_number
from likewise.core.errors import bad_parameter
from likewise.core.intervals import Measure
from likewise.core.messages import Message
from likewise.core.text import text_table
from likewise.improving.figures import ACCURACY, CHANGED, ERROR, GAP, GROUP_GAP, PURE_GAP, ROUNDING, group_gap
from likewise.report.comparison import unbeaten

# The rule by which one of several models is chosen: accurate enough, and of those the least unfair.


UNFAIRNESS = (CHANGED, PURE_GAP, GAP, GROUP_GAP)
_WORDS = {
    CHANGED: "improve.changed",
    PURE_GAP: "improve.pure_gap",
    GAP: "improve.gap",
    GROUP_GAP: "improve.a_group_gap",
}
# Models, and figures of held-out people, that are printed.
# With the lines around them at most 20 on a terminal.
_MODELS, _FIGURES = 4, 5
# What the command line calls them.
SHORT = {"changed": CHANGED, "pure": PURE_GAP, "gap": GAP, "group": GROUP_GAP}


@dataclass(frozen=True)
class Rule:
    """Take the least unfair model within some distance of the best balanced accuracy.

    Parameters
    ----------
    within : float, default=0.01
        How much balanced accuracy may be given up against the most accurate model, besides the standard error of the
        difference over the folds: so much may be chance.
    least : tuple of str
        What is to be least, one after the other: the next counts between models that are alike in those before it.
        Of "changed decisions", "pure gap", "gap at ε" and "group gap".
    alike : float, default=0.005
        Values are rounded to multiples of it before they are compared: what differs by less is not worth a choice.

    Examples
    --------
    >>> figures = {
    ...     "plain": {"balanced accuracy": 0.80, "changed decisions": 0.1, "pure gap": 0.1, "gap at ε": 0.2, "group gap": 0.1},
    ...     "blind": {"balanced accuracy": 0.795, "changed decisions": 0.0, "pure gap": 0.0, "gap at ε": 0.2, "group gap": 0.1},
    ...     "robust": {"balanced accuracy": 0.792, "changed decisions": 0.001, "pure gap": 0.0, "gap at ε": 0.1, "group gap": 0.1},
    ...     "useless": {"balanced accuracy": 0.5, "changed decisions": 0.0, "pure gap": 0.0, "gap at ε": 0.0, "group gap": 0.0},
    ... }
    >>> Rule().choose(figures), Rule(least=("changed decisions",), alike=0.0).choose(figures), Rule(within=1).choose(figures)
    ('robust', 'blind', 'useless')
    >>> print(Rule(least=("gap at ε",)))
    of the models within 0.01 plus a standard error of the best balanced accuracy, the one with the least gap at ε
    """

    within: float = 0.01
    least: tuple[str, ...] = UNFAIRNESS
    alike: float = 0.005

    def __post_init__(self) -> None:
        check_number(self.within, owner="Rule", name="within", low=0, high=1)
        check_number(self.alike, owner="Rule", name="alike", low=0, high=1)
        object.__setattr__(self, "least", tuple(self.least))
        wrong = [name for name in self.least if name not in UNFAIRNESS]
        if wrong or not self.least:
            allowed = "one or more of " + ", ".join(repr(name) for name in UNFAIRNESS)
            raise bad_parameter("Rule", "least", allowed, self.least)

    def allowed(self, figures: Mapping[str, Mapping[str, float]]) -> tuple[str, ...]:
        """Names of the models that are accurate enough."""
        best = max(values[ACCURACY] for values in figures.values())
        return tuple(
            name
            for name, values in figures.items()
            if values[ACCURACY] >= best - self.within - values.get(ERROR, 0.0)
        )

    def dominated(self, figures: Mapping[str, Mapping[str, float]]) -> tuple[str, ...]:
        """Names of the models that another beats: about as accurate, in nothing less fair and in something fairer.

        About as accurate: not less by more than `alike`. Another that is as fair and more accurate by more than `alike`
        beats a model too. What was not measured (NaN) does not count.
        """

        def beats(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
            kinds = [
                kind
                for kind in UNFAIRNESS
                if not math.isnan(one.get(kind, math.nan) + other.get(kind, math.nan))
            ]
            if one[ACCURACY] < other[ACCURACY] - self.alike or any(one[kind] > other[kind] for kind in kinds):
                return False
            fairer = any(one[kind] < other[kind] - self.alike for kind in kinds)
            return fairer or one[ACCURACY] > other[ACCURACY] + self.alike

        return tuple(
            name for name, own in figures.items() if any(beats(one, own) for one in figures.values())
        )

    def choose(self, figures: Mapping[str, Mapping[str, float]]) -> str:
        """Return the name of the model that the rule takes.

        Parameters
        ----------
        figures : mapping of str to mapping
            Model's name to its figures: "balanced accuracy" and those of `least`; NaN if not measured. "standard error", of
            the difference to the most accurate model, is 0 if absent. Of the models that are
            accurate enough, one that another beats is never taken (`dominated`). Between models that are alike in all of `least` the more
            accurate is taken, and of equals the first.
        """

        def rank(name: str) -> tuple[float, ...]:
            values = figures[name]
            known = [values[key] for key in self.least if not math.isnan(values[key])]
            return (*map(self._coarse, known), -values[ACCURACY])

        allowed = {name: figures[name] for name in self.allowed(figures)}
        beaten = self.dominated(allowed)
        return min((name for name in allowed if name not in beaten), key=rank)

    def looser(self, figures: Mapping[str, Mapping[str, float]]) -> tuple[str, Rule] | None:
        """Return the model that halves what is to be least, with the rule that gives up just enough accuracy to take it.

        None if no model does, or if the one that this rule takes leaves nothing to be halved.

        Parameters
        ----------
        figures : mapping of str to mapping
            As in `choose`.

        Examples
        --------
        >>> figures = {
        ...     "plain": {"balanced accuracy": 0.80, "changed decisions": 0.1},
        ...     "blind": {"balanced accuracy": 0.768, "changed decisions": 0.0},
        ... }
        >>> Rule(least=("changed decisions",)).looser(figures)
        ('blind', Rule(within=0.04, least=('changed decisions',), alike=0.005))
        """
        first, best = self.least[0], max(values[ACCURACY] for values in figures.values())
        own = self._coarse(figures[self.choose(figures)][first])
        for lost in sorted(best - values[ACCURACY] for values in figures.values()):
            wider = replace(self, within=max(self.within, float(np.ceil(round(100 * lost, 6)) / 100)))
            name = wider.choose(figures)
            if 2 * self._coarse(figures[name][first]) <= own and own > 0:
                return name, wider
        return None

    def _coarse(self, value: float) -> float:
        return float(np.round(value / self.alike)) if self.alike > 0 else value

    @staticmethod
    def words_of(figure: str) -> Message:
        """Return a figure's name in words that can be said in another language."""
        return Message(_WORDS[figure])

    def words(self) -> Message:
        """Return the rule in words that can be said in another language."""
        first, *more = (Message(_WORDS[name]) for name in self.least)
        if not more:
            return Message("improve.rule_one", first=first, within=self.within)
        then = more[0]
        for word in more[1:]:
            then = Message("improve.rule_then", one=then, two=word)
        return Message("improve.rule_many", first=first, then=then, alike=self.alike, within=self.within)

    def __str__(self) -> str:
        return str(self.words())


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
    linear : bool
        Whether it is a linear model, the simplest kind there is.
    error : float
        Standard error of how much less accurate it is than the most accurate.

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
    linear: bool = False
    error: float = 0.0

    def __getitem__(self, name: str) -> float:
        if name == ERROR:
            return self.error
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
        The chosen model on held-out people.
    reference : Unseen
        The same of the user's model, or of plain boosting if none was given.
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
    >>> from likewise.improving.candidates import BoostingCandidate
    >>> random = np.random.default_rng(0)
    >>> people = pd.DataFrame(random.normal(size=(200, 2)), columns=["skill", "talk"])
    >>> people["sex"] = random.choice(["F", "M"], 200)
    >>> hired = (people["skill"] + (people["sex"] == "M") > 0.5).astype(int)
    >>> few = {"n_estimators": 10, "max_depth": 2}
    >>> plain = BoostingCandidate("plain", "", blind=False, choices=few)
    >>> blind = BoostingCandidate("blind", "", choices=few)
    >>> result = improve(people, hired, sensitive_features=["sex"], candidates=[plain, blind], folds=2)
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
        points = [(a[unfairness], a[ACCURACY], a.name) for a in self.alternatives]
        return unbeaten([point for point in points if not math.isnan(point[0])])

    def sentence(self) -> str:
        """Say in a sentence what was chosen and what it changes for held-out people."""
        after, before = _values(self.unseen.figures), _values(self.reference.figures)
        shared = {"chosen": self.chosen, "models": len(self.alternatives), "reference": self.reference.name}
        if self.chosen == self.reference.name:
            return Message("improve.kept", people=self.n_test, accuracy=after[ACCURACY], **shared)
        return Message(
            "improve.sentence",
            people=self.n_test,
            accuracy=after[ACCURACY],
            accuracy_before=before[ACCURACY],
            changed=after[CHANGED],
            changed_before=before[CHANGED],
            groups=self._groups(),
            **shared,
        )

    def _groups(self) -> Message:
        group, before = group_gap(self.unseen.figures), group_gap(self.reference.figures)
        if math.isnan(group):
            return Message("improve.no_groups")
        return Message("improve.groups", group=group, group_before=before)

    def __str__(self) -> str:
        # The models that the rule would take next come first; `frame` has all of them.
        chosen = {self.chosen: 0}
        order = sorted(
            self.alternatives, key=lambda a: (chosen.get(a.name, 1), not a.accurate_enough, a[CHANGED])
        )
        names = {ACCURACY: "bal. accuracy", CHANGED: "changed", PURE_GAP: PURE_GAP, GAP: GAP}
        rows = [
            [("→ " if a.name == self.chosen else "  ") + a.name, *(f"{a[name]:.3f}" for name in names)]
            for a in order[:_MODELS]
        ]
        lines = [text_table([f"{self.n_train:,} people", *names.values()], rows)]
        if len(order) > _MODELS:
            lines.append(f"  and {len(order) - _MODELS} more")
        announced = {m.name: m for m in self.unseen.announced}
        rows = [
            [m.name, f"{m.value:.3f}", f"{announced[m.name].low:.3f} to {announced[m.name].high:.3f}"]
            for m in self.unseen.figures[:_FIGURES]
        ]
        head = [f"{self.n_test:,} held-out people", "value", "announced"]
        return "\n".join([*lines, "", text_table(head, rows), "", self.sentence()])


def _values(figures: Sequence[Measure]) -> dict[str, float]:
    return {measure.name: measure.value for measure in figures}
