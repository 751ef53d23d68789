"""Three kinds of twins of the people of an audit: what `--twins`, `--graph` and `--rules` ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from likewise.core.errors import InputError, LikewiseError

if TYPE_CHECKING:
    import pandas as pd

    from likewise.cli.audit import AuditChoices
    from likewise.cli.case import Case
    from likewise.models.matching import Matched
    from likewise.twins import TwinStudy

__all__ = ["twins_of_case"]


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


def twins_of_case(
    case: Case, people: pd.DataFrame, choices: AuditChoices
) -> tuple[list[TwinStudy], tuple[str, ...]]:
    """Study the twins of every sensitive column.

    Parameters
    ----------
    case : Case
    people : DataFrame
        Those in memory.
    choices : AuditChoices

    Returns
    -------
    studies : list of TwinStudy
    notes : tuple of str
        What could not be studied, and why.
    """
    from likewise.twins import Consequences, MatchedTwins, twin_study

    regression = case.matched.model.loss.regression
    model = _Asked(case.matched)
    seen = [name for name in case.sensitive if name in case.matched.columns]
    given = choices.graph is not None or choices.rules is not None
    if choices.twins == "consequences" and not given:
        raise InputError(
            "--twins consequences needs to know them. Add --rules learned, --rules rules.toml or --graph file.dot."
        )
    studies, notes = [], []
    for name in seen:
        consequences = Consequences(graph=choices.graph, rules=choices.rules, random_state=case.seed)
        if choices.twins == "all" and not given:
            consequences = Consequences(rules="learned", random_state=case.seed)
        try:
            studies.append(
                twin_study(
                    model,
                    people[list(case.matched.columns)],
                    name,
                    questions="all" if choices.twins == "all" else [str(choices.twins)],
                    consequences=consequences,
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
        if name not in seen
    ]
    return studies, tuple(notes)
