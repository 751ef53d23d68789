"""What a model says of made twins: who flips, how scores change, and how much of it hangs on what was learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.checks import FloatArray, to_numpy
from likewise.core.decisions import decide, decisions_differ
from likewise.core.errors import InputError, ModelError, bad_parameter
from likewise.core.intervals import Measure
from likewise.core.messages import Message
from likewise.counterfactuals.edited_rows import MadeTwins
from likewise.counterfactuals.plausibility import Plausibility, without_implausible

# A model as twins ask it: one decision and one score per row of a table.


_OWNER = "twin_study"


@dataclass(frozen=True)
class AskedModel:
    """Decisions and scores of a model."""

    model: Any
    favourable: Any = None
    tolerance: float | None = None

    def about(self, table: Any) -> tuple[Any, FloatArray]:
        """Return the decision and the score of each row, (n,) each."""
        decision = decide(self.model, table, len(table), owner=_OWNER, scores=self.tolerance is not None)
        if not hasattr(self.model, "predict_proba") or self.tolerance is not None:
            return decision, self._as_score(decision)
        shares = np.asarray(to_numpy(self.model.predict_proba(table)), dtype=float)
        if shares.ndim != 2 or len(shares) != len(table):
            raise ModelError(f"{_OWNER}: predict_proba gave shape {shares.shape} for {len(table)} rows.")
        return decision, shares[:, self._column()]

    @property
    def score(self) -> Message:
        """What the score is, in words."""
        classes = getattr(self.model, "classes_", None)
        if hasattr(self.model, "predict_proba") and self.tolerance is None:
            if classes is None:
                return Message("twins.score.last")
            return Message("twins.score.probability", label=str(classes[self._column()]))
        if self.favourable is not None:
            return Message("twins.score.whether", label=str(self.favourable))
        return Message("twins.score.decision")

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Ends of what two scores can differ by, whoever is asked about; None if nothing bounds them."""
        return (-1.0, 1.0) if self.tolerance is None else None

    def _column(self) -> int:
        classes = getattr(self.model, "classes_", None)
        if self.favourable is None or classes is None:
            return -1
        found = np.flatnonzero(np.asarray(classes) == self.favourable)
        if not len(found):
            raise bad_parameter(
                _OWNER, "favourable", allowed=f"one of the classes {list(classes)}", got=self.favourable
            )
        return int(found[0])

    def _as_score(self, decision: Any) -> FloatArray:
        return np.asarray(decision if self.favourable is None else decision == self.favourable, dtype=float)

    @classmethod
    def of(cls, model: Any, frame: pd.DataFrame, favourable: Any, tolerance: float | None) -> AskedModel:
        """Settle which decision counts as 1 if nothing says it: 1 or True, else the last of the labels."""
        if favourable is None and tolerance is None and not hasattr(model, "predict_proba"):
            decision = decide(model, frame, len(frame), owner=_OWNER)
            labels = set(np.asarray(getattr(model, "classes_", decision)).tolist())
            if all(isinstance(label, (int, float)) for label in labels):
                favourable = max(labels | {1} if labels <= {-1, 0, 1} else labels)
            else:
                favourable = max(labels, key=str)
        return cls(model, favourable, tolerance)


# What one question about twins came to: shares, changes of score, by group, with intervals and validity.


Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class GroupAnswer:
    """What becomes of the people of one group when they are of the other.

    Parameters
    ----------
    group : object
        The value they have.
    n : int
        How many of them were compared.
    changed : Measure
        Share of them whose decision changes.
    change : Measure
        Mean of the twin's score less the person's.

    Examples
    --------
    >>> women = GroupAnswer("F", 50, Measure("changed", 0.4, 0.3, 0.5), Measure("change", 0.2, 0.1, 0.3))
    >>> f"{women.changed.value:.0%} of {women.n} are decided otherwise"
    '40% of 50 are decided otherwise'
    """

    group: Any
    n: int
    changed: Measure
    change: Measure


@dataclass(frozen=True, eq=False)
class TwinAnswer:
    """The answer to one question.

    Parameters
    ----------
    question : {"attribute", "consequences", "matched"}
    n : int
        People who were compared with at least one twin.
    changed : Measure
        Share of them of whom some twin is decided otherwise.
    effects : tuple of Measure
        For each further value of the attribute: mean score of everybody with it less that with the first value.
    groups : tuple of GroupAnswer
    validity : Measure
        Share of all twins that could be people, before any was dropped.
    level : float
        Share of real people who pass the same test of distance.
    n_twins : int
        Twins other than the people themselves.
    n_implausible : int
        Those that could be nobody.
    dropped : mapping of str to int
        Twins that were not compared, by the reason.
    flips : bool array of shape (n_people,)
        Whose decision changes.
    asked : bool array of shape (n_people,)
        Who was compared at all.
    interval : str
        How the intervals were made, and why so.
    notes : tuple of str
        What else to know, such as groups of very few people.

    Examples
    --------
    >>> import pandas as pd
    >>> from likewise.counterfactuals import twin_study
    >>> people = pd.DataFrame({"sex": ["F", "M"] * 10, "age": range(20)})
    >>> paid = lambda table: (table["sex"] == "M") & (table["age"] < 10)
    >>> answer = twin_study(paid, people, "sex", questions=["attribute"])["attribute"]
    >>> answer.n, answer.changed.value, [(group.group, group.change.value) for group in answer.groups]
    (20, 0.5, [('F', 0.5), ('M', -0.5)])
    >>> np.flatnonzero(answer.flips).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    question: str
    n: int
    changed: Measure
    effects: tuple[Measure, ...]
    groups: tuple[GroupAnswer, ...]
    validity: Measure
    level: float
    n_twins: int
    n_implausible: int
    dropped: dict[str, int]
    flips: Mask
    asked: Mask
    interval: str
    notes: tuple[str, ...] = field(default_factory=tuple)


_TRIES = 100


@dataclass(frozen=True)
class StudyChoices:
    """What is asked in all questions of a study."""

    attribute: str
    drop: bool
    confidence: float
    refits: int
    themselves: bool


@dataclass(frozen=True, eq=False)
class FoundChanges:
    """Person by person."""

    values: tuple[Any, ...]
    flips: Mask
    asked: Mask
    change: FloatArray
    effects: tuple[FloatArray, ...]
    bounds: tuple[float, float] | None = None


def find_changes(asked: AskedModel, frame: pd.DataFrame, made: MadeTwins, attribute: str) -> FoundChanges:
    """Ask a model about people and all their usable twins."""
    own_decision, own_score = asked.about(frame)
    n = len(frame)
    flips, total, count = np.zeros(n, dtype=bool), np.zeros(n), np.zeros(n)
    values = tuple(dict.fromkeys(variant[attribute] for variant in made.variants))
    sums, seen = np.zeros((len(values), n)), np.zeros((len(values), n))
    for number, (table, variant) in enumerate(zip(made.tables, made.variants, strict=True)):
        at = values.index(variant[attribute])
        own, some = made.own[number], np.flatnonzero(made.compared[number])
        sums[at, own] += own_score[own]
        seen[at, own] += 1
        if not len(some):
            continue
        decision, score = asked.about(table.iloc[some])
        flips[some] |= decisions_differ([own_decision[some], decision], asked.tolerance)
        total[some] += score - own_score[some]
        count[some] += 1
        sums[at, some] += score
        seen[at, some] += 1
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums / seen
        change = total / count
    effects = tuple(mean[k] - mean[0] for k in range(1, len(values)))
    return FoundChanges(values, flips, count > 0, change, effects, asked.bounds)


def with_refits(
    answer: TwinAnswer,
    asked: AskedModel,
    frame: pd.DataFrame,
    known: pd.DataFrame,
    maker: Any,
    looks: Plausibility,
    choices: StudyChoices,
    values: Sequence[Any],
    rng: np.random.Generator,
) -> TwinAnswer:
    """Return an answer with intervals from people drawn anew and consequences learned anew.

    They are the estimate ± t times the standard deviation over the refits (a bootstrap).
    """
    from scipy.special import stdtrit

    if not hasattr(maker, "anew"):
        raise InputError(
            f"twin_study: refits need a maker of twins that can be learned anew, and {type(maker).__name__} has no "
            "method anew(). Pass a Consequences, or refits=0."
        )
    draws: list[list[float]] = []
    for _ in range(choices.refits):
        rows = _drawn(known[choices.attribute], values, rng)
        drawn = known.iloc[rows].reset_index(drop=True)
        person = rows if choices.themselves else None
        people = drawn
        if not choices.themselves:
            drawn_rows = _drawn(frame[choices.attribute], [g.group for g in answer.groups], rng)
            people = frame.iloc[drawn_rows].reset_index(drop=True)
        made = maker.anew().fit(drawn).make(people)
        if choices.drop:
            made = without_implausible(made, looks.of_twins(made, person))
        found = find_changes(asked, people, made, choices.attribute)
        groups = [np.asarray(people[choices.attribute] == g.group) & found.asked for g in answer.groups]
        draws.append(
            [
                _mean(found.flips[found.asked]),
                *(_mean(effect[~np.isnan(effect)]) for effect in found.effects),
                *(_mean(found.flips[mine]) for mine in groups),
                *(_mean(found.change[mine]) for mine in groups),
            ]
        )
    # Few refits know the deviation poorly: Student's t with one degree less than there are.
    reach = float(stdtrit(choices.refits - 1, (1 + choices.confidence) / 2)) * np.std(draws, axis=0, ddof=1)
    k, m = len(answer.effects), len(answer.groups)
    groups_now = tuple(
        replace(
            g,
            changed=_around(g.changed, reach[1 + k + i]),
            change=_around(g.change, reach[1 + k + m + i]),
        )
        for i, g in enumerate(answer.groups)
    )
    return replace(
        answer,
        changed=_around(answer.changed, reach[0]),
        effects=tuple(_around(e, reach[1 + i]) for i, e in enumerate(answer.effects)),
        groups=groups_now,
        interval=answer.interval
        if np.isnan(answer.groups[0].change.low)
        else Message("twins.interval.refits", n=choices.refits),
    )


def _drawn(column: pd.Series[Any], values: Sequence[Any], rng: np.random.Generator) -> Any:
    """Positions drawn with replacement, again until every group is among them."""
    cells = column.to_numpy()
    for _ in range(_TRIES):
        rows = rng.integers(0, len(cells), len(cells))
        if all((cells[rows] == value).any() for value in values):
            return rows
    rare = min(values, key=lambda value: int((cells == value).sum()))
    raise InputError(
        f"twin_study: {int((cells == rare).sum())} of {len(cells)} people have {column.name} = {rare!r}, too few to be "
        "drawn anew. Leave this value out of the edit, or pass refits=0."
    )


def _mean(values: Any) -> float:
    return float(np.mean(values)) if len(values) else np.nan


def _around(measure: Measure, reach: float) -> Measure:
    """Widen an interval to the refits'; if nothing bounds the values there is none."""
    if np.isnan(measure.low):
        return measure
    low, high = min(measure.low, measure.value - reach), max(measure.high, measure.value + reach)
    if measure.name == "changed":
        low, high = max(low, 0.0), min(high, 1.0)
    return replace(measure, low=float(low), high=float(high), method="refits")
