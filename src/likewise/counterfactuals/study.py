"""Three questions about one attribute, side by side: the attribute alone, its consequences, comparable real people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from likewise.core.checks import FloatArray, IntArray, check_integer, check_number
from likewise.core.decisions import check_model
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import check_columns, check_no_missing, to_pandas
from likewise.core.intervals import Measure, bounded_mean_interval
from likewise.core.messages import Message
from likewise.core.randomness import numpy_generator
from likewise.core.text import text_table
from likewise.counterfactuals.attribute import AttributeTwins
from likewise.counterfactuals.changes import (
    AskedModel,
    FoundChanges,
    GroupAnswer,
    StudyChoices,
    TwinAnswer,
    find_changes,
    with_refits,
)
from likewise.counterfactuals.edited_rows import TwinMaker
from likewise.counterfactuals.edits import Edit
from likewise.counterfactuals.matched import MatchedTwins
from likewise.counterfactuals.plausibility import Plausibility, learn_plausibility, without_implausible

if TYPE_CHECKING:
    from likewise.counterfactuals.causal.consequences import Consequences

# Intervals of means over pairs of a person and a twin, whether or not twins are shared.


def share_measure(name: str, flags: Any, confidence: float, clusters: IntArray | None = None) -> Measure:
    """Share of people with its interval: Clopper and Pearson's if people are independent."""
    found = mean_measure(name, np.asarray(flags, dtype=float), confidence, clusters, bounds=(0.0, 1.0))
    return replace(found, method="exact") if clusters is None and len(flags) else found


def mean_measure(
    name: str,
    values: FloatArray,
    confidence: float,
    clusters: IntArray | None = None,
    bounds: tuple[float, float] | None = None,
) -> Measure:
    """Mean with its interval; people who share a comparator are not independent observations.

    Numbers within `bounds` have Gaffke's limits, which hold for few people and rare changes too. With clusters they are
    those of as many independent people as the variance corresponds to (Korn and Graubard 1998). Without bounds there is
    no interval: whatever was seen, a rare change that was not may be of any size.
    """
    values = np.asarray(values, dtype=float)
    mean = float(values.mean()) if len(values) else np.nan
    if bounds is None or not len(values):
        return Measure(name, mean, np.nan, np.nan, "none")
    size = None if clusters is None else effective_people(values, np.atleast_2d(clusters), confidence)
    found = Measure.of(name, mean, bounded_mean_interval(values, *bounds, confidence=confidence, n=size))
    return found if clusters is None else replace(found, method="clustered by comparator")


def effective_people(values: FloatArray, clusters: IntArray, confidence: float = 0.95) -> float:
    """How many independent people the mean of people who share comparators, (variants, n), is worth.

    The variance sums over all pairs of people who share a comparator, and is at least that of independent people (Cameron,
    Gelbach and Miller 2011; a pair that shares several counts for each). If everybody has the same value, there is no
    variance, and the comparators are counted instead.
    """
    from scipy.special import stdtrit

    n, left = len(values), values - values.mean()
    variant, person = np.nonzero(clusters >= 0)
    comparators, number = np.unique(clusters[variant, person], return_inverse=True)
    k, alone = len(comparators), float((left**2).sum())
    if alone == 0 or k < 2:
        return float(min(max(k, 1), n))
    sums = np.bincount(number.ravel(), weights=left[person])
    # Everybody is a pair with themselves once, however many comparators they have.
    again = np.maximum((clusters >= 0).sum(axis=0) - 1, 0)
    shared = float((sums**2).sum() - (again * left**2).sum()) * k / (k - 1)
    tails = stdtrit(np.array([n - 1, k - 1]), (1 + confidence) / 2)
    return n / max(shared * (n - 1) / (alone * n), 1.0) * min(float(tails[0] / tails[1]) ** 2, 1.0)


Mask = np.ndarray[Any, np.dtype[np.bool_]]

_FEW = 20  # people of a group that say little about what follows from being of it

QUESTIONS = {
    "attribute": Message("twins.question.attribute"),
    "consequences": Message("twins.question.consequences"),
    "matched": Message("twins.question.matched"),
}


@dataclass(frozen=True, eq=False)
class TwinStudy:
    """What became of people under each question.

    Parameters
    ----------
    attribute : str
    values : tuple
        Its values, the groups.
    answers : tuple of TwinAnswer
    rules : tuple of str
        The rules that consequences kept to, in words.
    moved : tuple of str
        Columns that followed the attribute along the graph.
    n_people : int
    confidence : float
    only_under : mapping of str to int array
        For each question the positions of people whose decision changes under it and under no other.
    score : str
        What the score is whose change is told.

    Examples
    --------
    >>> people = pd.DataFrame({"sex": ["F", "M"] * 10, "age": range(20)})
    >>> study = twin_study(lambda table: table["sex"] == "M", people, "sex", questions=["attribute"])
    >>> study.values, study["attribute"].changed.value, len(study.only_under["attribute"])
    (('F', 'M'), 1.0, 20)
    """

    attribute: str
    values: tuple[Any, ...]
    answers: tuple[TwinAnswer, ...]
    rules: tuple[str, ...]
    moved: tuple[str, ...]
    n_people: int
    confidence: float
    only_under: Mapping[str, Any]
    score: str = ""

    def __getitem__(self, question: str) -> TwinAnswer:
        for answer in self.answers:
            if answer.question == question:
                return answer
        raise KeyError(question)

    def __str__(self) -> str:
        header = ["", "people", "changed", "effect", "valid twins", "only here"]
        rows = []
        for answer in self.answers:
            only = f"{len(self.only_under[answer.question]):,}"
            rows.append(
                [
                    QUESTIONS.get(answer.question, answer.question),
                    f"{answer.n:,}",
                    _said(answer.changed, ".1%"),
                    "; ".join(_said(effect, "+.3f") for effect in answer.effects),
                    f"{answer.validity.value:.1%}" if answer.n_twins else "n/a",
                    only,
                ]
            )
            rows += [
                [
                    f"  of {self.attribute} = {g.group}",
                    f"{g.n:,}",
                    _said(g.changed, ".1%"),
                    _said(g.change, "+.3f"),
                    "",
                    "",
                ]
                for g in answer.groups
            ]
        first, rest = self.values[0], ", ".join(str(v) for v in self.values[1:])
        words = [
            text_table(header, rows),
            f"effect: mean score with {self.attribute} = {rest} less that with {first}; by group, twin less person; "
            f"score: {self.score}.",
        ]
        for answer in self.answers:
            dropped = "".join(f"; {n:,} not compared: {why}" for why, n in answer.dropped.items())
            words.append(
                f"{answer.question}: {answer.n_implausible:,} of {answer.n_twins:,} twins could be nobody{dropped}; "
                f"intervals: {answer.interval}."
            )
            words += [f"{answer.question}: {note}." for note in answer.notes]
        return "\n".join(words)


def twin_study(
    model: Any,
    people: Any,
    attribute: Edit | str,
    *,
    questions: Sequence[str] | Literal["all"] = "all",
    consequences: Consequences | TwinMaker | None = None,
    matched: MatchedTwins | None = None,
    reference: Any = None,
    implausible: Literal["keep", "drop"] = "keep",
    level: float = 0.95,
    refits: int = 0,
    favourable: Any = None,
    tolerance: float | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
) -> TwinStudy:
    """Ask a model about three kinds of twins of everybody.

    Parameters
    ----------
    model : object with `predict` (and `predict_proba`), or callable
        Gets tables of people. Without `predict_proba` the score is whether the decision is the favourable one.
    people : table of n people
    attribute : Edit or str
        The column that twins differ in, and its values.
    questions : "all" or sequence of {"attribute", "consequences", "matched"}, default="all"
        "consequences" is left out of all where none are given.
    consequences : Consequences or TwinMaker, optional
        What follows from the attribute; by default the consequences of the `Edit`.
    matched : MatchedTwins, optional
        How comparable people are found; by default the nearest one, with replacement.
    reference : table, optional
        People that twins and plausibility are learned from; by default those studied.
    implausible : {"keep", "drop"}, default="keep"
        Whether twins that could be nobody are compared all the same. They are counted either way.
    level : float in (0, 1), default=0.95
        Share of real people who pass the test of plausible distance.
    refits : int, default=0
        How often the consequences are learned anew from people drawn with replacement, so that their intervals include
        what is not known about the consequences. 0: the intervals take the learned consequences as they are.
    favourable : object, optional
        The class whose probability is the score; by default the last one, and of decisions without probabilities 1 or
        True.
    tolerance : float >= 0, optional
        For models that predict numbers: what counts as the same decision.
    confidence : float in (0, 1), default=0.95
    random_state : int, default=0
        Of the refits.

    Returns
    -------
    TwinStudy

    Examples
    --------
    >>> from likewise.counterfactuals import Consequences
    >>> rng = np.random.default_rng(0)
    >>> sex = np.array(["F", "M"] * 100)
    >>> people = pd.DataFrame({"sex": sex, "pay": rng.normal(10, 1, 200) + 2 * (sex == "M"), "age": range(200)})
    >>> study = twin_study(lambda table: table["pay"] > 11, people, "sex",
    ...     consequences=Consequences(graph={"sex": ["pay"]}))
    >>> [answer.question for answer in study.answers]
    ['attribute', 'consequences', 'matched']
    >>> study["attribute"].changed.value, study["consequences"].changed.value > 0.5
    (0.0, True)
    """
    owner = "twin_study"
    check_model(model, owner=owner)
    check_number(confidence, owner=owner, name="confidence", low=0, high=1, open_low=True, open_high=True)
    check_integer(refits, owner=owner, name="refits", low=0)
    if refits == 1:
        raise bad_parameter(owner, "refits", allowed="0, or 2 and more", got=refits)
    if implausible not in ("keep", "drop"):
        raise bad_parameter(owner, "implausible", allowed="'keep' or 'drop'", got=implausible)
    frame = to_pandas(people, owner=owner, name="people").reset_index(drop=True)
    known = (
        frame
        if reference is None
        else to_pandas(reference, owner=owner, name="reference").reset_index(drop=True)
    )
    edit = attribute if isinstance(attribute, Edit) else Edit(attribute)
    column = str(edit.column)
    for table, name in ((frame, "people"), (known, "reference")):
        check_columns(table, [column], owner=owner, name=name)
        check_no_missing(table, owner=owner, name=name)
    makers = _makers(edit, questions, consequences, matched, owner)
    asked = AskedModel.of(model, frame, favourable, tolerance)
    looks = learn_plausibility(known, column, level=level)
    choices = StudyChoices(column, implausible == "drop", confidence, refits, reference is None)
    answers = []
    for question, maker in makers.items():
        fitted = maker if maker.fitted else maker.fit(known)
        answer = _answer(question, asked, frame, known, fitted, looks, choices)
        if refits and question == "consequences":
            rng = numpy_generator(random_state)
            values = _values(fitted, edit)
            answer = with_refits(answer, asked, frame, known, maker, looks, choices, values, rng)
        answers.append(answer)
    carrying = makers.get("consequences")
    rules = getattr(carrying, "rules_", None)
    return TwinStudy(
        column,
        _values(next(iter(makers.values())), edit),
        tuple(answers),
        () if rules is None else rules.said(),
        tuple(getattr(carrying, "moved_", ())),
        len(frame),
        confidence,
        _only_under(answers),
        asked.score,
    )


def _makers(
    edit: Edit, questions: Any, consequences: Any, matched: MatchedTwins | None, owner: str
) -> dict[str, TwinMaker]:
    plain = Edit(edit.column, edit.values)
    given = edit.consequences if consequences is None else consequences
    names = list(QUESTIONS) if isinstance(questions, str) and questions == "all" else questions
    names = [names] if isinstance(names, str) else list(names)
    unknown = [name for name in names if name not in QUESTIONS]
    if unknown or not names:
        words = "'all', or some of 'attribute', 'consequences' and 'matched'"
        raise bad_parameter(owner, "questions", allowed=words, got=questions)
    if given is None and "consequences" in names:
        if questions != "all":
            raise InputError(
                f"{owner}: the question 'consequences' needs to know them. Pass "
                'consequences=Consequences(rules="learned"), with a graph where there is one.'
            )
        names.remove("consequences")
    made: dict[str, TwinMaker] = {}
    for name in names:
        if name == "attribute":
            made[name] = AttributeTwins(plain)
        elif name == "consequences":
            made[name] = given.maker(plain) if hasattr(given, "maker") else given
        else:
            made[name] = MatchedTwins(plain) if matched is None else matched
    return made


def _answer(
    question: str,
    asked: AskedModel,
    frame: pd.DataFrame,
    known: pd.DataFrame,
    maker: TwinMaker,
    looks: Plausibility,
    choices: StudyChoices,
) -> TwinAnswer:
    made = maker.make(frame)
    if not all(choices.attribute in variant for variant in made.variants):
        raise InputError(
            f"twin_study: the twins of the question {question!r} differ in "
            f"{', '.join(map(str, made.variants[0]))}, not in {choices.attribute!r}. Make them of the column studied."
        )
    person: Any = np.arange(len(frame)) if choices.themselves else None
    if isinstance(maker, MatchedTwins):
        # A comparator is a real person and nobody's making: they themselves are left out.
        person = maker.matched_ if maker.pool_ is known else None
    valid = looks.of_twins(made, person)
    compared = made.compared.copy()
    validity = share_measure("validity", valid[compared], choices.confidence)
    if choices.drop:
        made = without_implausible(made, valid)
    # The comparators of each person, (variants, n); None if everybody has their own.
    cluster = maker.matched_ if isinstance(maker, MatchedTwins) and maker.replace else None
    found = find_changes(asked, frame, made, choices.attribute)
    keep = np.flatnonzero(found.asked)
    shared = None if cluster is None else cluster[:, keep]
    confidence = choices.confidence
    column = frame[choices.attribute]
    groups = [_group(value, found, column, cluster, confidence) for value in found.values]
    return TwinAnswer(
        question,
        len(keep),
        share_measure("changed", found.flips[keep], confidence, shared),
        tuple(
            mean_measure(f"{value} less {found.values[0]}", effect[~np.isnan(effect)], confidence,
                         None if cluster is None else cluster[:, ~np.isnan(effect)], found.bounds)
            for value, effect in zip(found.values[1:], found.effects, strict=True)
        ),
        tuple(group for group in groups if group.n),
        validity,
        looks.level,
        int(compared.sum()),
        int((compared & ~valid).sum()),
        {why: int(mask.sum()) for why, mask in made.why_not.items()},
        found.flips,
        found.asked,
        _why(question, cluster, found.bounds),
        () if question == "attribute" else _few(known[choices.attribute], found.values, choices.attribute),
    )  # fmt: skip


def _group(value: Any, found: FoundChanges, column: Any, cluster: Any, confidence: float) -> GroupAnswer:
    mine = np.flatnonzero(np.asarray(column == value) & found.asked)
    shared = None if cluster is None else cluster[:, mine]
    return GroupAnswer(
        value,
        len(mine),
        share_measure("changed", found.flips[mine], confidence, shared),
        mean_measure("change", found.change[mine], confidence, shared, found.bounds),
    )


def _few(column: Any, values: Sequence[Any], attribute: str) -> tuple[str, ...]:
    """What to know of groups that hardly anything can be learned of."""
    counts = {value: int((column == value).sum()) for value in values}
    return tuple(
        Message("twins.note.few", n=n, attribute=attribute, value=str(value))
        for value, n in counts.items()
        if n < _FEW
    )


def _why(question: str, cluster: Any, bounds: Any) -> Message:
    if bounds is None:
        return Message("twins.interval.unbounded")
    if question == "matched":
        return Message("twins.interval.pairs") if cluster is None else Message("twins.interval.shared")
    return (
        Message("twins.interval.learned") if question == "consequences" else Message("twins.interval.people")
    )


def _values(maker: Any, edit: Edit) -> tuple[Any, ...]:
    """Values of the attribute, in the order of the variants."""
    known = getattr(maker, "values_", None)
    return tuple(dict.fromkeys(v[edit.column] for v in maker.variants_) if known is None else known)


def _only_under(answers: Sequence[TwinAnswer]) -> dict[str, Any]:
    flips = np.stack([answer.flips for answer in answers])
    return {
        answer.question: np.flatnonzero(flips[k] & (flips.sum(axis=0) == 1))
        for k, answer in enumerate(answers)
    }


def _said(measure: Measure, form: str) -> str:
    if np.isnan(measure.value):
        return "n/a"
    if np.isnan(measure.low):
        return f"{measure.value:{form}}"
    return f"{measure.value:{form}} [{measure.low:{form}}, {measure.high:{form}}]"
