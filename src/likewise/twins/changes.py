"""What a model says of made twins: who flips, how scores change, and how much of it hangs on what was learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.arrays import FloatArray
from likewise.core.errors import InputError
from likewise.evaluation.measures import Measure
from likewise.evaluation.twin_makers import MadeTwins
from likewise.texts import Said
from likewise.twins.answers import TwinAnswer
from likewise.twins.asked_model import AskedModel
from likewise.twins.plausibility import Plausibility, without_implausible

__all__ = ["FoundChanges", "StudyChoices", "find_changes", "with_refits"]

Mask = np.ndarray[Any, np.dtype[np.bool_]]

_TRIES = 100


@dataclass(frozen=True)
class StudyChoices:
    """What is asked in all questions of a study.

    Parameters
    ----------
    attribute : str
    drop : bool
        Whether implausible twins are not compared.
    confidence : float
    refits : int
    themselves : bool
        Whether twins are learned from the very people that are studied.
    """

    attribute: str
    drop: bool
    confidence: float
    refits: int
    themselves: bool


@dataclass(frozen=True, eq=False)
class FoundChanges:
    """Person by person.

    Parameters
    ----------
    values : tuple
        Of the attribute.
    flips, asked : bool arrays of shape (n,)
        Of whom some twin is decided otherwise; who has a twin to compare with.
    change : float array of shape (n,)
        Mean score of the twins less the person's; NaN without twins.
    effects : tuple of float arrays of shape (n,)
        For each further value the score with it less that with the first; NaN where one of them is not known.
    span : float or None
        No change can be larger, up or down; None if that is not known.
    """

    values: tuple[Any, ...]
    flips: Mask
    asked: Mask
    change: FloatArray
    effects: tuple[FloatArray, ...]
    span: float | None = None


def find_changes(asked: AskedModel, frame: pd.DataFrame, made: MadeTwins, attribute: str) -> FoundChanges:
    """Ask a model about people and all their usable twins.

    Examples
    --------
    >>> from likewise.twins.attribute_twins import AttributeTwins
    >>> people = pd.DataFrame({"sex": ["F", "M", "M"], "pay": [1, 2, 9]})
    >>> biased = AskedModel(lambda table: table["pay"] + (table["sex"] == "M") > 2)
    >>> found = find_changes(biased, people, AttributeTwins({"sex": ["F", "M"]}).fit(people).make(people), "sex")
    >>> found.flips.tolist(), found.effects[0].tolist()
    ([False, True, False], [0.0, 1.0, 0.0])
    """
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
        flips[some] |= asked.differ(decision, own_decision[some])
        total[some] += score - own_score[some]
        count[some] += 1
        sums[at, some] += score
        seen[at, some] += 1
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums / seen
        change = total / count
    effects = tuple(mean[k] - mean[0] for k in range(1, len(values)))
    span = 1.0 if own_decision.dtype.kind in "bOUS" and asked.tolerance is None else asked.span
    return FoundChanges(values, flips, count > 0, change, effects, span)


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

    Parameters
    ----------
    answer : TwinAnswer
    asked : AskedModel
    frame, known : DataFrame
        The people studied, and those that twins are learned from.
    maker : ConsequenceTwins
    looks : Plausibility
    choices : StudyChoices
    values : sequence
        Of the attribute: people of every one are drawn each time.
    rng : Generator
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
            changed=_around(g.changed, reach[1 + k + i], True),
            change=_around(g.change, reach[1 + k + m + i]),
        )
        for i, g in enumerate(answer.groups)
    )
    return replace(
        answer,
        changed=_around(answer.changed, reach[0], True),
        effects=tuple(_around(e, reach[1 + i]) for i, e in enumerate(answer.effects)),
        groups=groups_now,
        interval=Said("twins.interval.refits", n=choices.refits),
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


def _around(measure: Measure, reach: float, share: bool = False) -> Measure:
    if share and reach == 0:
        return measure  # no refit changed anything: what stays is what so many people can show
    low, high = measure.value - reach, measure.value + reach
    if share:
        low, high = max(low, 0.0), min(high, 1.0)
    return Measure(measure.name, measure.value, float(low), float(high), "refits")
