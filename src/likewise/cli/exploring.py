"""`--explore`: what a page needs so that its readers can edit people, from the case of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.core.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from likewise.auditing import AuditResult
    from likewise.cli.case import Case

__all__ = ["check_explorable", "explore_case"]


def check_explorable(case: Case, people: pd.DataFrame) -> None:
    """Raise before any work is done where the page of a case could not be explored.

    Parameters
    ----------
    case : Case
    people : DataFrame
        The people in memory.
    """
    from likewise.report.explore import page_model

    if isinstance(case.frame, Path):
        raise InputError(
            "--explore puts some of the people into the page, and this table is read part by part. Pass --sample."
        )
    page_model(case.matched.model, case.matched.domain, people[list(case.matched.columns)])


def explore_case(case: Case, people: pd.DataFrame, result: AuditResult, *, name: str) -> dict[str, Any]:
    """Return the panel of an audit as plain data.

    Parameters
    ----------
    case : Case
    people : DataFrame
        Those audited.
    result : AuditResult
    name : str
        What the model is called on the page.
    """
    from likewise.report.explore import explore_document

    matched = case.matched
    return explore_document(
        matched.domain,
        people[list(matched.columns)],
        case.y,
        models={name: matched.model},
        metric=case.metric,
        sensitive=case.sensitive,
        results={name: result},
        seed=case.seed,
    )
