"""Three kinds of twins of the people of an audit: what `--twins`, `--graph` and `--rules` ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from likewise.core.errors import InputError, LikewiseError

if TYPE_CHECKING:
    import pandas as pd

    from likewise.cli.audit import AuditChoices
    from likewise.cli.case import Case
    from likewise.models.matching import Matched
    from likewise.twins import TwinStudy

__all__ = ["check_twins", "twins_of_case"]

QUESTIONS = ("attribute", "consequences", "matched")


class _Asked:
    """A matched model as twins ask it: tables in, decisions and, where it has them, probabilities out."""

    def __init__(self, matched: Matched) -> None:
        self._matched = matched
        if matched.model.loss.wants == "probabilities" and not matched.model.loss.regression:
            self.predict_proba = self._shares
            self.classes_ = matched.model.known_classes

    def predict(self, table: Any) -> Any:
        return self._matched.decide(table)

    def _shares(self, table: Any) -> Any:
        model = self._matched.model
        rows = table[list(self._matched.columns)]
        return model.predict_proba(rows if model.takes_frame else self._matched.domain.encode_array(rows))


def check_twins(case: Case, people: pd.DataFrame, choices: AuditChoices) -> dict[str, str]:
    """Read graph and rules before the audit is run, and raise where they fit no sensitive column.

    Returns
    -------
    dict of str to str
        Of several sensitive columns, those that the graph or the rules say nothing of, and why.
    """
    from likewise.twins import Consequences

    if choices.graph is None and choices.rules is None:
        if choices.twins == "consequences":
            raise InputError(
                "--twins consequences needs to know them. Add --rules learned, --rules rules.toml or --graph file.dot."
            )
        return {}
    from likewise.evaluation import Edit

    without: dict[str, str] = {}
    seen = _seen(case)
    for name in seen:
        given = Consequences(graph=choices.graph, rules=choices.rules)
        try:
            given.maker(Edit(name)).check(people[list(case.matched.columns)])
        except LikewiseError as error:
            if len(without) == len(seen) - 1:
                raise
            without[name] = str(error)
    return without


def twins_of_case(
    case: Case, people: pd.DataFrame, choices: AuditChoices, without: Mapping[str, str]
) -> tuple[list[TwinStudy], tuple[str, ...]]:
    """Study the twins of every sensitive column.

    Parameters
    ----------
    case : Case
    people : DataFrame
        Those in memory.
    choices : AuditChoices
    without : mapping
        Columns whose consequences are not known, and why, as `check_twins` found.

    Returns
    -------
    studies : list of TwinStudy
    notes : tuple of str
        What could not be studied, and why.
    """
    from likewise.twins import Consequences, MatchedTwins, twin_study

    regression = case.matched.model.loss.regression
    model = _Asked(case.matched)
    given = choices.graph is not None or choices.rules is not None
    rules = choices.rules if given else "learned"
    studies, notes = [], [f"consequences of {name} are n/a: {why}" for name, why in without.items()]
    for name in _seen(case):
        asked = [*QUESTIONS] if choices.twins == "all" else [str(choices.twins)]
        asked = [question for question in asked if question != "consequences" or name not in without]
        if not asked:
            continue
        try:
            studies.append(
                twin_study(
                    model,
                    people[list(case.matched.columns)],
                    name,
                    questions=asked,
                    consequences=Consequences(graph=choices.graph, rules=rules, random_state=case.seed),
                    matched=MatchedTwins(name, metric=case.metric),
                    tolerance=choices.tolerance if regression else None,
                    confidence=case.confidence,
                    random_state=case.seed,
                )
            )
        except LikewiseError as error:
            if given:
                raise
            notes.append(f"kinds of twins by {name} are n/a: {error}")
    notes += [
        f"kinds of twins by {name} are n/a: the model does not look at it"
        for name in case.sensitive
        if name not in case.matched.columns
    ]
    return studies, tuple(notes)


def _seen(case: Case) -> list[str]:
    return [name for name in case.sensitive if name in case.matched.columns]
