"""Three questions about one attribute, side by side: the attribute alone, its consequences, comparable real people."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from likewise.core.checks import check_integer, check_share
from likewise.core.decisions import check_model, decisions_differ
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import check_columns, check_no_missing, to_pandas
from likewise.core.intervals import Measure
from likewise.core.messages import Message
from likewise.core.randomness import numpy_generator
from likewise.core.text import text_table
from likewise.counterfactuals.changes import (
    QUESTIONS,
    AskedModel,
    GroupAnswer,
    Outcomes,
    Setting,
    SharedPeople,
    TwinAnswer,
    ask_about,
    e_value,
    quantities,
    refit_measures,
)
from likewise.counterfactuals.edited_rows import AttributeTwins, TwinMaker
from likewise.counterfactuals.edits import Edit
from likewise.counterfactuals.matched import TOO_FAR, MatchedTwins
from likewise.counterfactuals.plausibility import IMPLAUSIBLE, learn_plausibility, without_implausible

if TYPE_CHECKING:
    from likewise.counterfactuals.causal.consequences import Consequences

_NO_OVERLAP = 0.5  # share of matches that are farther than neighbours within a group
_MOST_RULES = 6  # that are shown
_FEW = 20  # people of a group that say little about what follows from being of it


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
        What the score is whose change is given.

    Examples
    --------
    >>> import pandas as pd
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

    @property
    def table(self) -> tuple[list[str], list[list[str]]]:
        """Heads and rows: every question, its effects if there are several, and its groups."""
        rows = []
        for answer in self.answers:
            several = len(answer.effects) > 1
            first = "" if several else _with_interval(answer.effects[0], "+.3f")
            plausible = f"{answer.validity.value:.1%}" if answer.n_twins else "n/a"
            only = f"{len(self.only_under[answer.question]):,}"
            changed = _with_interval(answer.changed, ".1%")
            rows.append([str(answer.words), f"{answer.n:,}", changed, first, plausible, only])
            named = answer.effects if several else ()
            rows += [[f"  {effect.name}", "", "", _with_interval(effect, "+.3f"), "", ""] for effect in named]
            for group in answer.groups:
                name, changes = f"  of {self.attribute} = {group.group}", _with_interval(group.changed, ".1%")
                rows.append([name, f"{group.n:,}", changes, _with_interval(group.change, "+.3f"), "", ""])
        head = [
            "counterparts differ in",
            "people",
            "decision changes",
            "change of score",
            "plausible",
            "only here",
        ]
        return head, rows

    @property
    def words(self) -> list[str]:
        """What was measured, the rules, and who was not compared."""
        first, rest = self.values[0], ", ".join(str(value) for value in self.values[1:])
        words = [
            f"change of score: the mean with {rest} less that with {first}; by group, the counterparts' less the people's "
            f"own (score: {self.score})"
        ]
        if self.moved:
            words.append(f"columns that follow along the graph: {', '.join(self.moved)}")
        if self.rules:
            more = f"; and {len(self.rules) - _MOST_RULES} more" if len(self.rules) > _MOST_RULES else ""
            words.append(f"rules that counterparts keep to: {'; '.join(self.rules[:_MOST_RULES])}{more}")
        for answer in self.answers:
            about = [f"{count:,} counterparts not compared: {why}" for why, count in answer.dropped.items()]
            about += [*map(str, answer.notes), f"intervals {answer.interval}"]
            words.append(f"{answer.words}: {'; '.join(about)}")
        return words

    def __str__(self) -> str:
        return "\n".join([text_table(*self.table), *(f"{one}." for one in self.words)])


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
    """Ask a model about three kinds of counterparts of everybody.

    Parameters
    ----------
    model : object with `predict` (and `predict_proba`), or callable
        Gets tables of people. Without `predict_proba` the score is whether the decision is the favourable one.
    people : table of n people
    attribute : Edit or str
        The column that counterparts differ in, and its values.
    questions : "all" or sequence of {"attribute", "consequences", "matched"}, default="all"
        "consequences" is left out of all if none are given.
    consequences : Consequences or TwinMaker, optional
        What follows from the attribute; by default the consequences of the `Edit`.
    matched : MatchedTwins, optional
        How comparable people are found; by default the nearest one, with replacement.
    reference : table, optional
        People that counterparts and plausibility are learned from; by default those studied.
    implausible : {"keep", "drop"}, default="keep"
        Whether counterparts that could be nobody, and comparators that are not near enough, are compared all the same.
        They are counted either way.
    level : float in (0, 1), default=0.95
        Share of real people who pass the test of plausible distance.
    refits : int, default=0
        How often the consequences that follow along a graph are learned anew from people drawn with replacement; 20 or
        so for intervals. 0: no intervals, unless the consequences are rules alone. A wrong graph or an unobserved
        confounder is not part of the intervals; `TwinAnswer.e_values` say how strong one would have to be.
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
    >>> import pandas as pd
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
    check_share(confidence, owner=owner, name="confidence")
    check_integer(refits, owner=owner, name="refits", low=0)
    if refits == 1:
        raise bad_parameter(owner, "refits", "0, or 2 and more", refits)
    if implausible not in ("keep", "drop"):
        raise bad_parameter(owner, "implausible", "'keep' or 'drop'", implausible)
    frame = to_pandas(people, owner=owner, name="people").reset_index(drop=True)
    known = frame
    if reference is not None:
        known = to_pandas(reference, owner=owner, name="reference").reset_index(drop=True)
    edit = attribute if isinstance(attribute, Edit) else Edit(attribute)
    column = str(edit.column)
    for table, name in ((frame, "people"), (known, "reference")):
        check_columns(table, [column], owner=owner, name=name)
        check_no_missing(table, owner=owner, name=name)
    makers = _makers(edit, questions, consequences, matched, owner)
    asked = AskedModel.of(model, frame, favourable, tolerance)
    check_share(level, owner=owner, name="level")
    looks = cache(partial(learn_plausibility, known, column, level=level))  # not needed for comparable people
    if set(makers) != {"matched"}:
        looks()
    told = (column, level, implausible == "drop", confidence, refits, reference is None)
    setting = Setting(asked, frame, known, looks, *told)
    answers = [
        _answer(question, maker if maker.fitted else maker.fit(known), setting, numpy_generator(random_state))
        for question, maker in makers.items()
    ]
    alone = np.sum([answer.flips for answer in answers], axis=0) == 1
    first: Any = next(iter(makers.values()))
    # In the order of the variants.
    values = getattr(first, "values_", None) or tuple(dict.fromkeys(v[edit.column] for v in first.variants_))
    carrying = makers.get("consequences")
    rules = getattr(carrying, "rules_", None)
    return TwinStudy(
        column,
        values,
        tuple(answers),
        () if rules is None else rules.sentences(),
        tuple(getattr(carrying, "moved_", ())),
        len(frame),
        confidence,
        {answer.question: np.flatnonzero(answer.flips & alone) for answer in answers},
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
        raise bad_parameter(owner, "questions", words, questions)
    if given is None and "consequences" in names:
        if questions != "all":
            raise InputError(
                f"{owner}: the question 'consequences' needs to know them. Pass "
                'consequences=Consequences(rules="learned"), with a graph if there is one.'
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


def _answer(question: str, maker: TwinMaker, setting: Setting, rng: np.random.Generator) -> TwinAnswer:
    asked, frame, attribute = setting.asked, setting.frame, setting.attribute
    made = maker.make(frame)
    if not all(attribute in variant for variant in made.variants):
        raise InputError(
            f"twin_study: the twins of the question {question!r} differ in "
            f"{', '.join(map(str, made.variants[0]))}, not in {attribute!r}. Make them of the column studied."
        )
    matched = maker if isinstance(maker, MatchedTwins) else None
    if matched is None:
        valid = setting.looks().of_twins(made, np.arange(len(frame)) if setting.themselves else None)
    else:
        # Comparators are real people; the question is whether they are near enough to be compared.
        valid = matched.comparable(setting.level) | ~made.compared
    compared, dropped = made.compared, made.compared & ~valid
    if setting.drop:
        made = without_implausible(made, valid, IMPLAUSIBLE if matched is None else TOO_FAR)
    outcomes = ask_about(setting, frame, made)
    shared = None if matched is None else _shared(asked, matched, outcomes)
    told = quantities(outcomes, frame[attribute], asked.bounds)
    learned = question == "consequences" and bool(getattr(maker, "moved_", ()))
    if learned and not setting.refits:
        told = [replace(quantity, bounds=None) for quantity in told]
    measures = [quantity.measure(outcomes, setting.confidence, shared) for quantity in told]
    if setting.refits and question == "consequences":
        measures = refit_measures(told, outcomes, maker, setting, rng)
    k = len(outcomes.values)
    groups = [
        GroupAnswer(value, len(quantity.people), changed, change)
        for value, quantity, changed, change in zip(
            outcomes.values, told[k::2], measures[k::2], measures[k + 1 :: 2], strict=True
        )
    ]
    e_values: tuple[tuple[float, float], ...] = ()
    if (learned or matched is not None) and asked.bounds is not None:
        e_values = tuple(_e_values(outcomes, number, measures[number]) for number in range(1, k))
    notes: tuple[str, ...] = ()
    for value in () if question == "attribute" else outcomes.values:
        n = int((setting.known[attribute] == value).sum())
        if n < _FEW:
            notes += (Message("twins.note.few", n=n, attribute=attribute, value=str(value)),)
    if learned:
        notes += (Message("twins.note.graph", attribute=attribute),)
    if matched is not None:
        notes += _overlap(matched, asked, outcomes, compared, dropped, attribute)
    notes += tuple(_confounder(attribute, m, *e) for m, e in zip(measures[1:k], e_values, strict=False))
    return TwinAnswer(
        question,
        len(told[0].people),
        measures[0],
        tuple(measures[1:k]),
        tuple(group for group in groups if group.n),
        Measure(
            "validity", float(valid[compared].mean()) if compared.any() else np.nan, np.nan, np.nan, "none"
        ),
        setting.level,
        int(compared.sum()),
        int(dropped.sum()),
        {why: int(mask.sum()) for why, mask in made.why_not.items()},
        outcomes.flips(),
        outcomes.asked,
        _why(question, learned, setting.refits, shared, asked.bounds),
        notes,
        e_values,
    )


def _shared(asked: AskedModel, matched: MatchedTwins, outcomes: Outcomes) -> SharedPeople:
    """Who stands where, and the outcome of the nearest other person of the same group."""
    decision, score = asked.about(matched.pool_)
    n = outcomes.compared.shape[1]
    people = np.arange(n) if matched.same_people_ else len(matched.pool_) + np.arange(n)
    nearest = np.concatenate([matched.own_neighbours_[None], matched.neighbours_[matched.matched_]])
    nobody = np.concatenate([matched.own_neighbours_[None] < 0, ~outcomes.compared])
    return SharedPeople(
        np.concatenate([people[None], matched.matched_]),
        np.where(nobody, outcomes.decision, decision[nearest]),
        np.where(nobody, outcomes.score, score[nearest]),
        not matched.replace,
    )


def _overlap(
    matched: MatchedTwins, asked: AskedModel, outcomes: Outcomes, compared: Any, far: Any, attribute: str
) -> tuple[str, ...]:
    """Distances and decisions of matches beside those of neighbours within a group; a warning without overlap."""
    if not compared.any():
        return ()
    share = float(far.sum() / compared.sum())
    within = matched.own_neighbours_ >= 0
    decision = asked.about(matched.pool_)[0][matched.own_neighbours_]
    alike = decisions_differ([outcomes.decision[0], decision], asked.tolerance)[within & outcomes.asked]
    notes: tuple[str, ...] = (
        Message(
            "twins.note.distance",
            matched=float(np.median(matched.apart_[:-1][compared])),
            within=float(np.nanmedian(matched.apart_[-1])),
            far=share,
        ),
    )
    if len(alike):
        notes += (Message("twins.note.placebo", share=float(alike.mean())),)
    if share > _NO_OVERLAP:
        notes += (no_overlap := Message("twins.note.no_overlap", attribute=attribute, far=share),)
        warnings.warn(f"twin_study: {no_overlap}", UserWarning, stacklevel=4)
    return notes


def _e_values(outcomes: Outcomes, number: int, effect: Measure) -> tuple[float, float]:
    """Of the ratio of mean scores, and of the end of the effect's interval that is nearer to no effect."""
    first = float(np.nanmean(outcomes.mean_as(0)[~np.isnan(outcomes.effect(number))]))

    def of(difference: float) -> float:
        return e_value((first + difference) / first if first > 0 else 0.0)

    if np.isnan(effect.low):
        return of(effect.value), np.nan
    return of(effect.value), 1.0 if effect.low <= 0 <= effect.high else of(
        min(effect.low, effect.high, key=abs)
    )


def _confounder(attribute: str, effect: Measure, point: float, limit: float) -> Message:
    told = {"attribute": attribute, "effect": effect.name, "point": point}
    if np.isnan(limit):
        return Message("twins.note.confounder_of_value", **told)
    if limit == 1.0:
        return Message("twins.note.confounder_of_none", effect=effect.name)
    return Message("twins.note.confounder", limit=limit, **told)


def _why(question: str, learned: bool, refits: int, shared: SharedPeople | None, bounds: Any) -> Message:
    if learned and not refits:
        return Message("twins.interval.learned")
    if bounds is None:
        return Message("twins.interval.unbounded")
    if shared is not None:
        return Message("twins.interval.pairs" if shared.distinct else "twins.interval.shared")
    if question == "consequences" and refits:
        return Message("twins.interval.refits", n=refits)
    return Message("twins.interval.people")


def _with_interval(measure: Measure, form: str) -> str:
    if np.isnan(measure.value):
        return "n/a"
    if np.isnan(measure.low):
        return f"{measure.value:{form}}"
    return f"{measure.value:{form}} [{measure.low:{form}}, {measure.high:{form}}]"
