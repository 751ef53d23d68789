"""A study of three kinds of twins as plain values, and as a table in the terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from likewise.report.plain import plain, plain_number
from likewise.twins.twin_study import QUESTIONS

if TYPE_CHECKING:
    from rich.table import Table

    from likewise.evaluation.measures import Measure
    from likewise.twins.answers import TwinAnswer
    from likewise.twins.twin_study import TwinStudy

__all__ = ["twins_document", "twins_table", "twins_words"]

_MOST_RULES = 6


def twins_document(study: TwinStudy) -> dict[str, Any]:
    """Return a study as plain values that follow the published JSON Schema.

    Parameters
    ----------
    study : TwinStudy

    Examples
    --------
    >>> import pandas as pd
    >>> from likewise.twins import twin_study
    >>> people = pd.DataFrame({"sex": ["F", "M"] * 20, "pay": range(40), "age": [30, 40, 50, 60] * 10})
    >>> study = twin_study(lambda t: t["pay"] + 2 * (t["sex"] == "M") > 20, people, "sex", questions=["attribute"])
    >>> twins_document(study)["answers"][0]["changed"]["value"]
    0.05
    """
    return {
        "attribute": study.attribute,
        "values": [plain(value) for value in study.values],
        "people": study.n_people,
        "confidence": study.confidence,
        "rules": list(study.rules),
        "score": study.score,
        "moved": list(study.moved),
        "answers": [_answer(answer, len(study.only_under[answer.question])) for answer in study.answers],
    }


def _answer(answer: TwinAnswer, only: int) -> dict[str, Any]:
    return {
        "question": answer.question,
        "words": QUESTIONS[answer.question],
        "people": answer.n,
        "changed": _measure(answer.changed),
        "effects": [_measure(effect) for effect in answer.effects],
        "groups": [
            {
                "group": plain(group.group),
                "people": group.n,
                "changed": _measure(group.changed),
                "change": _measure(group.change),
            }
            for group in answer.groups
        ],
        "validity": _measure(answer.validity),
        "level": answer.level,
        "twins": answer.n_twins,
        "implausible": answer.n_implausible,
        "dropped": [{"why": why, "twins": count} for why, count in answer.dropped.items()],
        "interval": answer.interval,
        "only_here": only,
        "notes": list(answer.notes),
    }


def _measure(measure: Measure) -> dict[str, Any]:
    return {
        "name": str(measure.name),
        "value": plain_number(measure.value),
        "low": plain_number(measure.low),
        "high": plain_number(measure.high),
        "method": measure.method,
    }


def twins_table(study: TwinStudy) -> Table:
    """Return a study as a table for the terminal; what comes from data is text, never markup."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE, title=Text(f"Three kinds of twins by {study.attribute}"), title_justify="left"
    )
    for name in (
        "twins differ in",
        "people",
        "decision changes",
        "change of score",
        "plausible",
        "only here",
    ):
        table.add_column(name, justify="left" if name == "twins differ in" else "right")
    for answer in study.answers:
        table.add_row(
            Text(str(QUESTIONS[answer.question])),
            f"{answer.n:,}",
            _share(answer.changed),
            _change(answer.effects[0]) if len(answer.effects) == 1 else "",
            f"{answer.validity.value:.1%}" if answer.n_twins else "n/a",
            f"{len(study.only_under[answer.question]):,}",
        )
        for effect in answer.effects if len(answer.effects) > 1 else ():
            table.add_row(Text(f"  {effect.name}", style="dim"), "", "", _change(effect), "", "")
        for group in answer.groups:
            table.add_row(
                Text(f"  of {study.attribute} = {group.group}", style="dim"),
                f"{group.n:,}",
                _share(group.changed),
                _change(group.change),
                "",
                "",
            )
    return table


def twins_words(study: TwinStudy) -> list[str]:
    """Return what to know of a study's table in the terminal: what was measured, the rules, who was not compared."""
    first, rest = study.values[0], ", ".join(str(value) for value in study.values[1:])
    words = [
        f"change of score: the mean with {rest} less that with {first}; by group, the twins' less the people's own "
        f"(score: {study.score})",
    ]
    if study.moved:
        words.append(f"columns that follow along the graph: {', '.join(study.moved)}")
    if study.rules:
        more = f"; and {len(study.rules) - _MOST_RULES} more" if len(study.rules) > _MOST_RULES else ""
        words.append(f"rules that twins keep to: {'; '.join(study.rules[:_MOST_RULES])}{more}")
    for answer in study.answers:
        about = [f"{count:,} twins not compared: {why}" for why, count in answer.dropped.items()]
        about += [*map(str, answer.notes), f"intervals {answer.interval}"]
        words.append(f"{QUESTIONS[answer.question]}: {'; '.join(about)}")
    return words


def _share(measure: Measure) -> str:
    return _said(measure, ".1%")


def _change(measure: Measure) -> str:
    return _said(measure, "+.3f")


def _said(measure: Measure, form: str) -> str:
    if math.isnan(measure.value):
        return "n/a"
    if math.isnan(measure.low):
        return f"{measure.value:{form}}"
    return f"{measure.value:{form}} [{measure.low:{form}}, {measure.high:{form}}]".replace("[", "\\[")
