"""Selection rates and impact ratios as a Markdown page, in the form New York City's Local Law 144 asks for."""

from __future__ import annotations

from collections.abc import Sequence

from likewise.evaluation import ImpactTable
from likewise.report.evidence.markdown import escaped, markdown_table

__all__ = ["impact_page", "impact_sections"]

TITLE = "Selection rates and impact ratios: evidence for an audit under New York City's Local Law 144"
_SCOPE = (
    "These numbers follow the definitions of 6 RCNY § 5-300 and § 5-301. They are evidence for a bias audit under Local "
    "Law 144 of 2021; they are no such audit, which an independent auditor makes of data that the rules allow, and they "
    "do not say that a tool or its use complies with the law."
)
_RATIO = "The impact ratio is a category's rate over that of the highest category; a category with too few people has none."
_DEFINED = {
    "selection": "The selection rate is the share of a category's people who are selected.",
    "scoring": "The scoring rate is the share of a category's people who score above the median score of the sample.",
}


def impact_page(impact: Sequence[ImpactTable], *, about: str = "", notes: Sequence[str] = ()) -> str:
    """Return impact tables as a Markdown page.

    Parameters
    ----------
    impact : sequence of ImpactTable
        One or more.
    about : str, default=""
        What was measured, in words.
    notes : sequence of str, optional
        What else a reader must know.

    Returns
    -------
    str

    Examples
    --------
    >>> from likewise.evaluation import impact_ratios
    >>> page = impact_page([impact_ratios([1, 0, 1], ["f", "f", "m"], attribute="sex")])
    >>> "| f | 2 | 1 | 50.0% | 0.500 |" in page, "complies" in page.split("do not say")[0]
    (True, False)
    """
    lines = [f"# {TITLE}", "", _SCOPE, ""]
    if about:
        lines += [escaped(about), ""]
    lines += [impact_sections(impact, level=2)]
    lines += [f"- {escaped(note)}" for note in notes]
    return "\n".join(lines).rstrip() + "\n"


def impact_sections(impact: Sequence[ImpactTable], *, level: int) -> str:
    """Return a section for each table, with the definition of its numbers and its notes."""
    kinds = dict.fromkeys(table.kind for table in impact)
    parts = [f"{_DEFINED[kind]} {_RATIO}" for kind in kinds]
    for table in impact:
        rate = f"{table.kind} rate"
        rows = [
            [
                row.category,
                f"{row.people:,}",
                f"{row.selected:,}",
                f"{row.rate:.1%}",
                "excluded"
                if row.excluded
                else "n/a"
                if row.impact_ratio is None
                else f"{row.impact_ratio:.3f}",
            ]
            for row in table.rows
        ]
        head = [table.attribute, "people", table.outcome, rate, "impact ratio"]
        parts.append(f"{'#' * level} By {escaped(table.attribute)}")
        parts.append(markdown_table(head, rows))
        if table.notes:
            parts.append("\n".join(f"- {escaped(note)}" for note in table.notes))
    return "\n\n".join(parts) + "\n"
