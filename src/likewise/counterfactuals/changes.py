"""A model's answers about counterparts: changed decisions, changes of score, and their intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.checks import BoolArray, FloatArray, IntArray, to_numpy
from likewise.core.decisions import decide, decisions_differ
from likewise.core.errors import InputError, ModelError, bad_parameter
from likewise.core.intervals import Measure, bounded_mean_interval
from likewise.core.messages import Message
from likewise.counterfactuals.edited_rows import MadeTwins
from likewise.counterfactuals.plausibility import Plausibility, without_implausible

# A model as counterparts ask it: one decision and one score per row of a table.


_OWNER = "twin_study"

QUESTIONS = {
    "attribute": Message("twins.question.attribute"),
    "consequences": Message("twins.question.consequences"),
    "matched": Message("twins.question.matched"),
}


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
            score = decision if self.favourable is None else decision == self.favourable
            return decision, np.asarray(score, dtype=float)
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
        """Ends of what two scores can differ by, for any people; None if nothing bounds them."""
        return (-1.0, 1.0) if self.tolerance is None else None

    def _column(self) -> int:
        classes = getattr(self.model, "classes_", None)
        if self.favourable is None or classes is None:
            return -1
        found = np.flatnonzero(np.asarray(classes) == self.favourable)
        if not len(found):
            raise bad_parameter(_OWNER, "favourable", f"one of the classes {list(classes)}", self.favourable)
        return int(found[0])

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


# What one question about counterparts came to: shares, changes of score, by group, with intervals and validity.


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
        Mean of the counterpart's score less the person's.

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
        People who were compared with at least one counterpart.
    changed : Measure
        Share of them of whom some counterpart is decided otherwise.
    effects : tuple of Measure
        For each further value of the attribute: mean score of everybody with it less that with the first value.
    groups : tuple of GroupAnswer
    validity : Measure
        Share of all counterparts that could be people, before any was dropped; of comparable real people, the share that
        is as near in all columns as neighbours within a group. It has no interval.
    level : float
        Share of real people who pass the same test of distance.
    n_twins : int
        Counterparts other than the people themselves.
    n_implausible : int
        Those that could be nobody, or are not near enough.
    dropped : mapping of str to int
        Counterparts that were not compared, by the reason.
    flips : bool array of shape (n_people,)
        Whose decision changes.
    asked : bool array of shape (n_people,)
        Who was compared at all.
    interval : str
        How the intervals were made, and what they do not include.
    notes : tuple of str
        What else to know, such as groups of very few people, the distances of matches, or the E-value.
    e_values : tuple of (float, float)
        For each effect by consequences or matching: the risk ratio by which an unobserved confounder would have to be
        associated with the attribute and with the outcome to explain the effect away, and to bring the nearer end of its
        interval to no effect (`e_value`). Empty if scores are not probabilities or decisions.

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
    flips: BoolArray
    asked: BoolArray
    interval: str
    notes: tuple[str, ...] = field(default_factory=tuple)
    e_values: tuple[tuple[float, float], ...] = ()

    @property
    def words(self) -> Message:
        """The question in words."""
        return QUESTIONS[self.question]


_TRIES = 100
# Below about so many changes the variance that is seen says little, and that of the design counts more.
_FEW_CHANGES = 20


@dataclass(frozen=True)
class Setting:
    """What all questions of a study share: the model, the people, those to learn from, and the choices."""

    asked: AskedModel
    frame: pd.DataFrame
    known: pd.DataFrame
    looks: Callable[[], Plausibility]
    attribute: str
    level: float
    drop: bool
    confidence: float
    refits: int
    themselves: bool


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Decisions and scores of people (first row) and of their counterparts (a row for each variant)."""

    values: tuple[Any, ...]
    group: IntArray  # (variants,): the number of the variant's value
    own: BoolArray  # (variants, n)
    compared: BoolArray  # (variants, n)
    decision: Any  # (1 + variants, n)
    score: FloatArray  # (1 + variants, n)
    tolerance: float | None

    @property
    def asked(self) -> BoolArray:
        """Who was compared at all, (n,)."""
        return np.asarray(self.compared.any(axis=0))

    def flips(self) -> BoolArray:
        """Of whom some counterpart is decided otherwise, (n,)."""
        found = np.zeros(self.compared.shape[1], dtype=bool)
        for decision, compared in zip(self.decision[1:], self.compared, strict=True):
            found |= decisions_differ([self.decision[0], decision], self.tolerance) & compared
        return found

    def net(self, first: int, second: int, label: Any) -> FloatArray:
        """Whether people get a label in one variant, less whether they do in another, (n,); 0 if either is unknown.

        It is not 0 only if the decision changes.
        """
        known = (self.own | self.compared)[[first, second]].all(axis=0)
        change = (self.decision[1 + second] == label).astype(float) - (self.decision[1 + first] == label)
        return np.asarray(np.where(known, change, 0.0))

    def change(self) -> FloatArray:
        """Mean score of the counterparts less the person's, (n,); NaN without any."""
        with np.errstate(invalid="ignore", divide="ignore"):
            total = np.where(self.compared, self.score[1:] - self.score[0], 0.0).sum(axis=0)
            return np.asarray(total / self.compared.sum(axis=0))

    def mean_as(self, number: int) -> FloatArray:
        """Mean score of everybody with one of the values, (n,); NaN if it is not known."""
        mine = self.group == number
        seen = self.compared[mine] | self.own[mine]
        score = np.where(self.own[mine], self.score[0], self.score[1:][mine])
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(seen, score, 0.0).sum(axis=0) / seen.sum(axis=0))

    def effect(self, number: int) -> FloatArray:
        """Score with one of the values less that with the first, (n,)."""
        return self.mean_as(number) - self.mean_as(0)


def ask_about(setting: Setting, frame: pd.DataFrame, made: MadeTwins) -> Outcomes:
    """Ask a model about people and all their usable counterparts."""
    asked, attribute = setting.asked, setting.attribute
    own_decision, own_score = asked.about(frame)
    values = tuple(dict.fromkeys(variant[attribute] for variant in made.variants))
    decisions, scores = [own_decision], [own_score]
    for table, compared in zip(made.tables, made.compared, strict=True):
        decision, score, some = own_decision.copy(), own_score.copy(), np.flatnonzero(compared)
        if len(some):
            told, score[some] = asked.about(table.iloc[some])
            if told.dtype != decision.dtype:
                decision = decision.astype(np.result_type(decision, told))
            decision[some] = told
        decisions.append(decision)
        scores.append(score)
    group = np.array([values.index(variant[attribute]) for variant in made.variants])
    stacked = np.stack(decisions), np.stack(scores)
    return Outcomes(values, group, made.own, made.compared, *stacked, asked.tolerance)


@dataclass(frozen=True, eq=False)
class SharedPeople:
    """Real people who are in several comparisons, and what is decided of the nearest others of their groups.

    `units` says who stands in each place of the outcomes, (1 + variants, n); `decision` and `score` are those of the
    nearest other person of the same group.
    """

    units: IntArray
    decision: Any
    score: FloatArray
    distinct: bool

    def design_effect(
        self, statistic: Callable[[Outcomes], Any], outcomes: Outcomes, keep: IntArray
    ) -> float:
        """How many times the variance of a mean of people is that of as many independent ones.

        The variance is that of Abadie and Imbens (2006, theorem 7), for any statistic of a person and their comparators:
        that of the people's values, and what people in several comparisons add to it given where everybody stands. The
        latter is half the sum of squared changes of the statistic when one person's outcome is replaced by that of the
        nearest other person of the same group (Efron and Stein 1981), less the part that is in the former already. For
        differences of scores this is their formula. Rare changes show little of it: with few of them it goes over to
        the variance if every change were one person's. Distinct pairs have that by construction.
        """
        present = np.concatenate([np.ones((1, len(keep)), dtype=bool), outcomes.compared[:, keep]])
        _, units = np.unique(self.units[:, keep][present], return_inverse=True)
        times = np.bincount(units)
        by_design = float((times**2).sum() / times.sum())
        values = np.asarray(statistic(outcomes), dtype=float)[keep]
        spread = float(((values - values.mean()) ** 2).sum())
        if self.distinct or spread == 0:
            return by_design
        moved = []
        for row in range(len(outcomes.decision)):
            chosen = np.arange(len(outcomes.decision)) == row
            moved.append(self._replaced(statistic, outcomes, chosen)[keep] - values)
        each = np.bincount(units, weights=np.stack(moved)[present])
        anew = self._replaced(statistic, outcomes, np.ones(len(moved), dtype=bool))[keep] - values
        found = 1.0 + max(float((each**2).sum() - (anew**2).sum()), 0.0) / 2 / spread
        seen = int((values != 0).sum())
        if np.isin(values, (0.0, 1.0)).all():
            seen = min(seen, len(values) - seen)
        weight = _FEW_CHANGES / (_FEW_CHANGES + seen)
        return found + max(by_design - found, 0.0) * weight

    def _replaced(
        self, statistic: Callable[[Outcomes], Any], outcomes: Outcomes, rows: BoolArray
    ) -> FloatArray:
        chosen = rows[:, None]
        decision = np.where(chosen, self.decision, outcomes.decision)
        score = np.where(chosen, self.score, outcomes.score)
        return np.asarray(statistic(replace(outcomes, decision=decision, score=score)), dtype=float)


@dataclass(frozen=True, eq=False)
class Quantity:
    """A mean over people that a study tells."""

    name: str
    statistic: Callable[[Outcomes], Any]
    people: IntArray
    bounds: tuple[float, float] | None

    def values(self, outcomes: Outcomes) -> FloatArray:
        """Person by person."""
        return np.asarray(self.statistic(outcomes), dtype=float)[self.people]

    def measure(self, outcomes: Outcomes, confidence: float, shared: SharedPeople | None) -> Measure:
        """The mean with its interval: Gaffke's limits, which hold for few people and rare changes too.

        If people are in several comparisons they are those of as many independent people as the variance corresponds
        to (Korn and Graubard 1998). Without bounds there is no interval: a rare change that was not seen may be of any
        size.
        """
        values = self.values(outcomes)
        mean = _mean(values)
        if self.bounds is None or not len(values):
            return Measure(self.name, mean, np.nan, np.nan, "none")
        effect = 1.0 if shared is None else shared.design_effect(self.statistic, outcomes, self.people)
        low, high = bounded_mean_interval(values, *self.bounds, confidence=confidence, n=len(values) / effect)
        independent = shared is None or shared.distinct
        method = ("exact" if self.bounds[0] == 0.0 else "Gaffke") if independent else "Abadie and Imbens"
        return Measure(self.name, mean, low, high, method)


def quantities(outcomes: Outcomes, column: Any, bounds: tuple[float, float] | None) -> list[Quantity]:
    """List what is reported: who changes, each effect, and for each group who changes and the mean change."""
    share = (0.0, 1.0)
    found = [Quantity("changed", Outcomes.flips, np.flatnonzero(outcomes.asked), share)]
    for number, value in enumerate(outcomes.values[1:], start=1):
        effect = partial(Outcomes.effect, number=number)
        known = np.flatnonzero(~np.isnan(effect(outcomes)))
        found.append(Quantity(f"{value} less {outcomes.values[0]}", effect, known, bounds))
    for value in outcomes.values:
        mine = np.flatnonzero(np.asarray(column == value) & outcomes.asked)
        found.append(Quantity("changed", Outcomes.flips, mine, share))
        found.append(Quantity("change", Outcomes.change, mine, bounds))
    return found


def refit_measures(
    told: Sequence[Quantity], outcomes: Outcomes, maker: Any, setting: Setting, rng: np.random.Generator
) -> list[Measure]:
    """Return measures with intervals from people drawn anew and consequences learned anew.

    They are the estimate ± t times the standard deviation over the refits (a bootstrap), and at least as wide as with the
    consequences taken as learned. Errors of what was learned change decisions either way, so the share of people who
    change is too high, and not 0 if nothing follows from the attribute. Its lower end is therefore that of the net change:
    so many more of the people have a decision than of their counterparts, or fewer.
    """
    from scipy.special import stdtrit

    if not hasattr(maker, "anew"):
        raise InputError(
            f"twin_study: refits need a maker of twins that can be learned anew, and {type(maker).__name__} has no "
            "method anew(). Pass a Consequences, or refits=0."
        )
    asked, frame, known, column = setting.asked, setting.frame, setting.known, setting.attribute
    values = maker.values_
    labels = [] if asked.tolerance is not None else np.unique(outcomes.decision).tolist()
    labels = labels[1:] if len(labels) == 2 else labels
    net = [_net_changes(quantity, outcomes, labels) for quantity in told]
    draws: list[list[float]] = []
    for _ in range(setting.refits):
        rows = _drawn(known[column], values, rng)
        drawn = known.iloc[rows].reset_index(drop=True)
        person, people = (rows, drawn) if setting.themselves else (None, None)
        if people is None:
            present = [v for v in values if (frame[column] == v).any()]
            people = frame.iloc[_drawn(frame[column], present, rng)].reset_index(drop=True)
        made = maker.anew().fit(drawn).make(people)
        if setting.drop:
            made = without_implausible(made, setting.looks().of_twins(made, person))
        found = ask_about(setting, people, made)
        again = quantities(found, people[column], asked.bounds)
        again += [part for quantity in again for part in _net_changes(quantity, found, labels)]
        draws.append([_mean(quantity.values(found)) for quantity in again])
    deviation = iter(np.std(draws, axis=0, ddof=1))

    def measure(quantity: Quantity, confidence: float) -> Measure:
        # Few refits know the deviation poorly: Student's t with one degree less than there are.
        reach = float(stdtrit(setting.refits - 1, (1 + confidence) / 2)) * float(next(deviation))
        plain = quantity.measure(outcomes, confidence, None)
        if quantity.bounds is None or np.isnan(plain.low):
            return plain
        low, high = min(plain.low, plain.value - reach), max(plain.high, plain.value + reach)
        return replace(
            plain, low=max(low, quantity.bounds[0]), high=min(high, quantity.bounds[1]), method="refits"
        )

    measures = [measure(quantity, setting.confidence) for quantity in told]
    for number, parts in enumerate(net):
        each = [measure(part, 1.0 - (1.0 - setting.confidence) / len(parts)) for part in parts]
        if told[number].name == "changed" and measures[number].method == "refits":
            least = max((max(one.low, -one.high) for one in each), default=0.0)
            measures[number] = replace(measures[number], low=max(least, 0.0))
    return measures


def _net_changes(quantity: Quantity, outcomes: Outcomes, labels: Sequence[Any]) -> list[Quantity]:
    """What a share of people who change is at least, by pairs of variants and decision."""
    if quantity.name != "changed":
        return []
    return [
        Quantity("net", partial(Outcomes.net, first=a, second=b, label=label), quantity.people, (-1.0, 1.0))
        for a, b in combinations(range(len(outcomes.compared)), 2)
        for label in labels
    ]


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


def e_value(ratio: float) -> float:
    """Least risk ratio by which an unobserved confounder would have to explain a risk ratio (VanderWeele and Ding 2017).

    The confounder is associated by this ratio with the attribute and with the outcome, beyond the columns compared.
    """
    ratio = max(ratio, 1.0 / ratio) if ratio > 0 else np.inf
    return float(ratio + np.sqrt(ratio * (ratio - 1.0)))
